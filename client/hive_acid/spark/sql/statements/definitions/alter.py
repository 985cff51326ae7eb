"""ALTER TABLE, in all the forms that a verb of the session stands behind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from pyspark.sql import DataFrame

from hive_acid.catalog.alterations import refuse_checked
from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import AlreadyExistsError, ColumnError, NoSuchObjectError, SqlError
from hive_acid.format.properties import TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, is_insert_only, is_transactional
from hive_acid.spark.sql.columns import (
    comment,
    hive_type_text,
    owner,
    properties,
    removed_properties,
)
from hive_acid.spark.sql.partitions import parenthesized_partition, partition_clause, partitions_where
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.definitions.constraints import (
    check_constraints,
    column_constraint,
    column_element,
    table_constraint,
    table_elements,
)
from hive_acid.spark.sql.statements.operate import operate
from hive_acid.spark.sql.statements.repair import add_found
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.spark.tables.repair import astray
from hive_acid.wire import ConstraintKind, ttypes

_UNDERSTOOD = (
    "of ALTER TABLE, ADD COLUMNS, RENAME COLUMN, CHANGE COLUMN, ALTER COLUMN … TYPE, COMMENT, SET and DROP, RENAME TO, "
    "SET OWNER, ADD and DROP CONSTRAINT, SET and UNSET TBLPROPERTIES, ADD, DROP, RENAME and EXCHANGE PARTITION, "
    "RECOVER PARTITIONS, UPDATE STATISTICS, TOUCH, CONCATENATE and COMPACT are understood"
)
_FIGURES = ("numRows", "rawDataSize", "numFiles", "totalSize")
_NUMBER = re.compile(r"\d{1,18}")
_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
_BY_PLACE = "files know columns by their places"
_SKEW = "skewed values are said when a table is made: CREATE TABLE … SKEWED BY"
_REFUSED: dict[tuple[str, ...], str] = {
    ("REPLACE", "COLUMNS"): f"{_BY_PLACE}: add, rename and widen columns, or write the rows to another table",
    ("DROP", "COLUMN"): f"{_BY_PLACE}: CREATE TABLE … AS SELECT the others",
    ("DROP", "COLUMNS"): f"{_BY_PLACE}: CREATE TABLE … AS SELECT the others",
    ("SET", "FILEFORMAT"): "files that are there would be read as others: CREATE TABLE … STORED AS … AS SELECT",
    ("SET", "INPUTFORMAT"): "files that are there would be read as others: CREATE TABLE … STORED AS … AS SELECT",
    ("SET", "SERDE"): "files that are there would be read as others: CREATE TABLE … STORED AS … AS SELECT",
    ("SET", "SERDEPROPERTIES"): "an ACID table's files are ORC, which has none",
    ("SET", "LOCATION"): "rows do not move with it: CREATE TABLE … LOCATION … AS SELECT",
    ("CLUSTERED", "BY"): "rows that are there lie in other buckets: CREATE TABLE … CLUSTERED BY … AS SELECT",
    ("NOT", "CLUSTERED"): "rows lie in buckets, by which others read them: CREATE TABLE … AS SELECT",
    ("NOT", "SORTED"): "files are in the order of their row ids",
    ("SKEWED", "BY"): _SKEW,
    ("ARCHIVE", "PARTITION"): "Hive's archives are not read",
    ("UNARCHIVE", "PARTITION"): "Hive's archives are not read",
    ("UNSET", "SERDEPROPERTIES"): "an ACID table's files are ORC, which has none",
    ("NOT", "SKEWED"): _SKEW,
    ("NOT", "STORED", "AS"): _SKEW,
    ("SET", "SKEWED"): _SKEW,
    ("SET", "PARTITION", "SPEC"): "partitions have values of columns: CREATE TABLE … PARTITIONED BY … AS SELECT",
    ("PARTITION", "COLUMN"): "files lie in directories of the values: CREATE TABLE … PARTITIONED BY … AS SELECT",
    ("CLUSTER", "BY"): "rows are placed by CLUSTERED BY, when a table is made: CREATE TABLE … AS SELECT",
    ("INTO",): "rows that are there lie in other buckets: CREATE TABLE … CLUSTERED BY … AS SELECT",
    ("DEFAULT", "COLLATION"): "texts are compared by their bytes",
    ("CONVERT", "TO"): "a table stays an ACID table: CREATE TABLE … AS SELECT of the other engine",
    ("EXECUTE",): "rows have one history, without branches and rollbacks",
    ("CREATE",): "rows have one history, without branches and tags",
    ("REPLACE", "BRANCH"): "rows have one history, without branches and tags",
    ("DROP", "BRANCH"): "rows have one history, without branches and tags",
    ("DROP", "TAG"): "rows have one history, without branches and tags",
    ("ENABLE",): "nothing is protected from being dropped here",
    ("DISABLE",): "nothing is protected from being dropped here",
}
"""What is no alteration here, and why."""

_ALL_PARTITIONS = "columns are those of all partitions: leave PARTITION out"
_REFUSED_OF_PARTITION: dict[tuple[str, ...], str] = {
    ("ADD", "COLUMNS"): _ALL_PARTITIONS,
    ("ADD", "COLUMN"): _ALL_PARTITIONS,
    ("CHANGE",): _ALL_PARTITIONS,
    ("SET", "TBLPROPERTIES"): "properties are those of the table: leave PARTITION out",
    ("SET", "LOCATION"): "rows do not move with it: DROP PARTITION, and ADD PARTITION with another LOCATION",
}
"""As `_REFUSED`, of one partition."""


def alter_table(run: Run, cursor: Cursor) -> DataFrame | None:
    """``ALTER TABLE t …``; None if the table is not ours."""
    cursor.expect("ALTER", "TABLE")
    table = run.names.defined_table(cursor.name())
    if table is None:
        return None
    if _asks_for_compaction(cursor.text):
        return operate(run, cursor)
    if cursor.accept("RECOVER", "PARTITIONS"):
        cursor.finish()
        add_found(run, table, astray(run.acid.connection, table).unregistered)
        return run.nothing()
    _alter(run, table, cursor)
    cursor.finish()
    return run.nothing()


def _asks_for_compaction(text: str) -> bool:
    """Whether COMPACT comes behind the table, or behind its partition."""
    ahead = Cursor(text)
    ahead.expect("ALTER", "TABLE")
    ahead.name()
    if ahead.sees("PARTITION", "("):
        ahead.expect("PARTITION")
        ahead.parentheses("a partition")
    return ahead.sees("COMPACT")


def _alter(run: Run, table: Table, cursor: Cursor) -> None:
    acid = run.acid
    _refuse(table, cursor)
    if cursor.accept("ADD", "COLUMNS") or cursor.accept("ADD", "COLUMN"):
        _add_columns(run, table, cursor)
    elif cursor.accept("RENAME", "COLUMN"):
        old = cursor.identifier("a column")
        cursor.expect("TO")
        acid.rename_column(table, old, cursor.identifier("a column's name"))
    elif cursor.accept("RENAME", "TO"):
        _rename(run, table, cursor)
    elif cursor.sees("CHANGE") or (cursor.sees("ALTER") and cursor.peek(1) != "TABLE"):
        _change_column(run, table, cursor)
    elif cursor.accept("SET", "OWNER"):
        kind, who = owner(cursor)
        cursor.finish()
        acid.set_owner(table, who, is_role=kind == ttypes.PrincipalType.ROLE)
    elif cursor.accept("TOUCH"):
        _touch(run, table, cursor)
    elif cursor.accept("SET", "TBLPROPERTIES"):
        _set_properties(run, table, properties(cursor))
    elif cursor.accept("UNSET", "TBLPROPERTIES"):
        acid.set_properties(table, removed_properties(cursor))
    elif cursor.sees("ADD") and cursor.peek(1) in _CONSTRAINTS:
        cursor.expect("ADD")
        one = table_constraint(run, cursor)
        cursor.finish()
        _add_constraint(run, table, one)
    elif cursor.accept("DROP", "CONSTRAINT"):
        _drop_constraint(run, table, cursor)
    elif cursor.accept("EXCHANGE"):
        _exchange(run, table, cursor)
    elif cursor.accept("UPDATE", "STATISTICS"):
        _set_figures(run, table, cursor, None)
    elif cursor.sees("ADD"):
        _add_partitions(run, table, cursor)
    elif cursor.sees("DROP") and cursor.peek(1) in ("IF", "PARTITION"):
        _drop_partitions(run, table, cursor)
    else:
        _of_files(run, table, cursor)


def _refuse(table: Table, cursor: Cursor, *, of_partition: bool = False) -> None:
    """Raise SqlError for what is no alteration, of the table or of one partition."""
    known = _REFUSED | _REFUSED_OF_PARTITION if of_partition else _REFUSED
    refused = next((words for words in known if cursor.sees(*words)), None)
    if refused is None:
        return
    why = known[refused]
    if refused[-1] in ("SERDE", "SERDEPROPERTIES") and not table.is_orc:
        why = "DROP the table, if it is EXTERNAL, and CREATE it anew at its LOCATION, with another ROW FORMAT"
    raise cursor.error(f"{' '.join(refused)} of {table.full_name}: {why}")


# --- columns, names, properties ------------------------------------------------------------------


def _add_columns(run: Run, table: Table, cursor: Cursor) -> None:
    """``(name type [constraint …] [COMMENT 'c'], …)``, or one without parentheses; rows that are there have null."""
    if cursor.sees("("):
        added, constraints = table_elements(run, cursor)
    else:
        one, constraints = column_element(run, cursor)
        added = [one]
    _to_the_end(cursor)
    cursor.finish()
    if not constraints:
        run.acid.add_columns(table, added)
        return
    _refuse_key(cursor, constraints)
    there = tuple(one for one in table.columns if one.name not in {new.name for new in added})
    wanted = replace(table, columns=(*there, *added), constraints=(*table.constraints, *constraints))
    check_constraints(run, wanted, constraints)

    def work() -> None:
        run.acid.add_columns(table, added)
        run.acid.connection.add_constraints(table, constraints)

    run.in_transaction(work, [table.full_name])


def _change_column(run: Run, table: Table, cursor: Cursor) -> None:
    """``CHANGE [COLUMN] old new type [constraint …] [COMMENT 'c']`` and ``ALTER [COLUMN] c TYPE type | COMMENT 'c'``.

    Also ``ALTER [COLUMN] c SET | DROP NOT NULL | DEFAULT value``.
    """
    hives = cursor.accept("CHANGE")
    if not hives:
        cursor.expect("ALTER")
    cursor.accept("COLUMN")
    old = cursor.identifier("a column").lower()
    if not hives and cursor.peek() in ("SET", "DROP"):
        _set_constraint(run, table, cursor, old)
        return
    constraints: list[Constraint] = []
    types = {column.name: column.type for column in table.columns}
    if hives:
        new, constraints = column_element(run, cursor)
    elif cursor.sees("COMMENT"):
        new = Column(old, types.get(old, ""), comment(cursor))
    else:
        cursor.expect("TYPE")
        new = Column(old, hive_type_text(cursor), comment(cursor))
    _to_the_end(cursor)
    cursor.finish()

    if new.name != old:
        refuse_checked(table, old)
    _refuse_key(cursor, constraints)
    if constraints:
        changed = tuple(new if one.name == old else one for one in table.columns)
        there = (
            replace(one, columns=tuple(new.name if name == old else name for name in one.columns))
            for one in table.constraints
        )
        check_constraints(run, replace(table, columns=changed, constraints=(*there, *constraints)), constraints)

    def work() -> None:
        if new.comment is not None:
            run.acid.set_column_comment(table, old, new.comment)
        if new.type != types.get(old):
            run.acid.change_column_type(table, old, new.type)
        if new.name != old:
            run.acid.rename_column(table, old, new.name)
        run.acid.connection.add_constraints(table, constraints)

    run.in_transaction(work, [table.full_name])


def _to_the_end(cursor: Cursor) -> None:
    if cursor.peek() in ("FIRST", "AFTER"):
        raise cursor.error(f"columns stay in their places, and new ones come last: {_BY_PLACE}")
    # To files it is all one: they know columns by their places, and partitions are told of each change.
    cursor.accept("CASCADE")
    if cursor.accept("RESTRICT"):
        raise cursor.error("a change of columns is of all partitions: RESTRICT would keep them as they are")


def _rename(run: Run, table: Table, cursor: Cursor) -> None:
    name = cursor.name("the table's new name")
    new = run.names.full(name) if len(name.parts) > 1 else f"{table.database}.{name.parts[0]}"
    cursor.finish()
    run.acid.rename_table(table, new)


def _set_properties(run: Run, table: Table, given: dict[str, str]) -> None:
    """Properties; a plain table that becomes transactional by them is converted."""
    if is_transactional(given) and not table.is_transactional:
        run.acid.convert_table(table, insert_only=is_insert_only(given))
        kind = (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES)
        given = {key: value for key, value in given.items() if key.lower() not in kind}
    if given:
        run.acid.set_properties(table, given)


def _set_constraint(run: Run, table: Table, cursor: Cursor, column: str) -> None:
    """``SET NOT NULL | DEFAULT value`` and ``DROP NOT NULL | DEFAULT``. Raises NoSuchObjectError for none to drop."""
    drops = cursor.one_of("SET", "DROP") == "DROP"
    kind = ConstraintKind.NOT_NULL if cursor.peek() == "NOT" else ConstraintKind.DEFAULT
    there = [one for one in table.constraints if one.kind is kind and one.columns == (column,)]
    if drops:
        cursor.expect(*(("NOT", "NULL") if kind is ConstraintKind.NOT_NULL else ("DEFAULT",)))
        cursor.finish()
        if not there:
            raise NoSuchObjectError(f"column {column} of {table.full_name} has no {kind.name.replace('_', ' ')}")
        one = None
    else:
        one = column_constraint(run, cursor, column)
        cursor.finish()
        if one.kind is not kind:
            raise SqlError("of SET, NOT NULL and DEFAULT are understood: others are made by ADD CONSTRAINT")
        others = tuple(other for other in table.constraints if other not in there)
        check_constraints(run, replace(table, constraints=(*others, one)), [one])
    for other in there:
        run.acid.connection.drop_constraint(table, other.name or "")
    if one is not None:
        run.acid.connection.add_constraints(table, [one])


def _add_constraint(run: Run, table: Table, one: Constraint) -> None:
    added = [one]
    check_constraints(run, table.with_constraints(added), added)
    if one.is_enforced_key:
        run.acid.add_primary_key(table, one.columns, name=one.name, rely=one.rely)
    else:
        run.acid.connection.add_constraints(table, added)


def _refuse_key(cursor: Cursor, added: Iterable[Constraint]) -> None:
    if any(one.is_enforced_key for one in added):
        raise cursor.error("a PRIMARY KEY that is enforced comes by itself: ALTER TABLE … ADD CONSTRAINT … PRIMARY KEY")


def _drop_constraint(run: Run, table: Table, cursor: Cursor) -> None:
    """``DROP CONSTRAINT [IF EXISTS] name``. Raises NoSuchObjectError."""
    if_exists = cursor.accept("IF", "EXISTS")
    name = cursor.identifier("a constraint's name").lower()
    cursor.finish()
    if not if_exists or any(one.name == name for one in table.constraints):
        run.acid.connection.drop_constraint(table, name)


# --- partitions and files ------------------------------------------------------------------------


def _add_partitions(run: Run, table: Table, cursor: Cursor) -> None:
    cursor.expect("ADD")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if not cursor.sees("PARTITION"):
        raise cursor.error(_UNDERSTOOD)
    added: dict[str, str | None] = {}
    while cursor.accept("PARTITION"):
        spec = partition_clause(run, table, cursor.parentheses("a partition"))
        if spec.name in added:
            raise AlreadyExistsError(f"partition {spec.name} of {table.full_name} is given twice")
        added[spec.name] = cursor.string("a location") if cursor.accept("LOCATION") else None
    cursor.finish()
    run.acid.add_partitions(table, added, if_not_exists=if_not_exists)


def _drop_partitions(run: Run, table: Table, cursor: Cursor) -> None:
    """Partitions of which the values, or some of them, are given. Raises NoSuchObjectError if one covers none."""
    cursor.expect("DROP")
    if_exists = cursor.accept("IF", "EXISTS")
    known = run.acid.connection.partition_names(table)
    dropped: set[str] = set()
    while cursor.accept("PARTITION"):
        inside = cursor.parentheses("a partition")
        covered = partitions_where(run, table, inside, known)
        if not covered and not if_exists:
            raise NoSuchObjectError(f"{table.full_name} has no partition of these values: {inside.source}")
        dropped |= set(covered)
        cursor.accept(",")
    cursor.accept("PURGE")
    cursor.finish()
    run.acid.drop_partitions(table, sorted(dropped), if_exists=if_exists)


def _touch(run: Run, table: Table, cursor: Cursor) -> None:
    """``TOUCH [PARTITION (…)]``: nothing is new but the time of the last change. Raises NoSuchObjectError."""
    spec = partition_clause(run, table, inside) if (inside := parenthesized_partition(cursor)) else None
    cursor.finish()
    if spec is not None and not run.acid.connection.partitions_named(table, [spec.name]):
        raise NoSuchObjectError(f"{table.full_name} has no partition {spec.name}")
    run.acid.set_properties(table, {})


def _exchange(run: Run, table: Table, cursor: Cursor) -> None:
    """``EXCHANGE PARTITION (…) WITH TABLE source``: those of `source` that have the values come to the table."""
    refused = cursor.error(
        "EXCHANGE PARTITION is of plain tables: files of ACID tables have the ids of their table's writes. INSERT the "
        "rows, and drop the partition"
    )
    inside = _required_partition(cursor)
    cursor.expect("WITH", "TABLE")
    source = run.names.known(cursor.name())
    cursor.finish()
    if table.is_transactional or source.is_transactional:
        raise refused
    spec = partition_clause(run, table, inside)
    if spec.dynamic:
        raise ColumnError(f"PARTITION of {table.full_name} needs a value for {', '.join(spec.dynamic)}")
    run.acid.exchange_partition(table, source, spec.static)


def _required_partition(cursor: Cursor) -> Cursor:
    cursor.expect("PARTITION")
    return cursor.parentheses("a partition")


def _set_figures(run: Run, table: Table, cursor: Cursor, partition: str | None) -> None:
    """``SET ('numRows' = '5', …)`` behind UPDATE STATISTICS: what planners guess by, and nobody answers out of."""
    if cursor.sees("FOR"):
        raise cursor.error(
            f"UPDATE STATISTICS FOR COLUMN of {table.full_name}: Hive answers queries out of the statistics of "
            "columns, so they are counted: ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS"
        )
    cursor.expect("SET")
    wrong = cursor.error(f"UPDATE STATISTICS takes whole numbers for {', '.join(_FIGURES)}")
    by_name = {name.lower(): name for name in _FIGURES}
    given = {key.lower(): value for key, value in properties(cursor).items()}
    cursor.finish()
    if not given or not given.keys() <= by_name.keys() or not all(map(_NUMBER.fullmatch, given.values())):
        raise wrong
    run.acid.set_figures(table, {by_name[key]: value for key, value in given.items()}, partition)


def _of_files(run: Run, table: Table, cursor: Cursor) -> None:
    """``[PARTITION (…)] CONCATENATE [AND WAIT]`` , ``PARTITION (…) RENAME TO PARTITION (…)`` and
    ``PARTITION (…) UPDATE STATISTICS …``.
    """
    spec = None
    if cursor.accept("PARTITION"):
        spec = partition_clause(run, table, cursor.parentheses("a partition"))
        _refuse(table, cursor, of_partition=True)
    if spec is not None and cursor.accept("RENAME", "TO", "PARTITION"):
        new = partition_clause(run, table, cursor.parentheses("a partition"))
        cursor.finish()
        run.acid.rename_partition(table, spec.name, new.name)
        return
    if spec is not None and cursor.accept("UPDATE", "STATISTICS"):
        _set_figures(run, table, cursor, spec.name)
        return
    if not cursor.accept("CONCATENATE"):
        raise cursor.error(_UNDERSTOOD)
    wait = cursor.accept("AND", "WAIT")
    cursor.finish()
    run.acid.concatenate(table, None if spec is None else spec.static, wait=wait)
