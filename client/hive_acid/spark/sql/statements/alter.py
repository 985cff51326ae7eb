"""ALTER TABLE, in all the forms that a verb of the session stands behind."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import AlreadyExistsError, ColumnError, NoSuchObjectError, SqlError
from hive_acid.format.properties import TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, is_insert_only, is_transactional
from hive_acid.spark.sql.columns import column_definition, column_definitions, hive_type_text, properties, property_key
from hive_acid.spark.sql.partitions import partition_clause
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.show import operate
from hive_acid.spark.sql.tokens import Cursor

_UNDERSTOOD = (
    "of ALTER TABLE, ADD COLUMNS, RENAME COLUMN, CHANGE COLUMN, ALTER COLUMN … TYPE, RENAME TO, SET and UNSET "
    "TBLPROPERTIES, ADD and DROP PARTITION, CONCATENATE and COMPACT are understood"
)


def alter_table(run: Run, cursor: Cursor) -> DataFrame | None:
    """``ALTER TABLE t …``; None if the table is not ours."""
    cursor.expect("ALTER", "TABLE")
    table = run.names.defined(cursor.name())
    if table is None:
        return None
    if _asks_for_compaction(cursor.text):
        return operate(run, cursor)
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
    if cursor.accept("ADD", "COLUMNS") or cursor.accept("ADD", "COLUMN"):
        added = column_definitions(cursor) if cursor.sees("(") else [column_definition(cursor)]
        _to_the_end(cursor)
        acid.add_columns(table, added)
    elif cursor.accept("RENAME", "COLUMN"):
        old = cursor.identifier("a column")
        cursor.expect("TO")
        acid.rename_column(table, old, cursor.identifier("a column's name"))
    elif cursor.accept("RENAME", "TO"):
        _rename(run, table, cursor)
    elif cursor.sees("CHANGE") or (cursor.sees("ALTER") and cursor.peek(1) != "TABLE"):
        _change_column(run, table, cursor)
    elif cursor.accept("SET", "TBLPROPERTIES"):
        _set_properties(run, table, properties(cursor))
    elif cursor.accept("UNSET", "TBLPROPERTIES"):
        cursor.accept("IF", "EXISTS")
        acid.set_properties(table, {property_key(item): None for item in cursor.items("properties")})
    elif cursor.sees("ADD"):
        _add_partitions(run, table, cursor)
    elif cursor.sees("DROP") and cursor.peek(1) in ("IF", "PARTITION"):
        _drop_partitions(run, table, cursor)
    else:
        _concatenate(run, table, cursor)


# --- columns, names, properties ------------------------------------------------------------------


def _change_column(run: Run, table: Table, cursor: Cursor) -> None:
    """``CHANGE [COLUMN] old new type`` and ``ALTER [COLUMN] c TYPE type``: a name, a type or both are new."""
    hives = cursor.accept("CHANGE")
    if not hives:
        cursor.expect("ALTER")
    cursor.accept("COLUMN")
    old = cursor.identifier("a column").lower()
    if hives:
        new = column_definition(cursor)
    else:
        cursor.expect("TYPE")
        new = Column(old, hive_type_text(cursor))
    _to_the_end(cursor)
    if new.comment is not None:
        raise SqlError(f"CHANGE of {table.full_name}.{old}: comments of columns cannot be changed")
    types = {column.name: column.type for column in table.columns}

    def work() -> None:
        if new.type != types.get(old):
            run.acid.change_column_type(table, old, new.type)
        if new.name != old:
            run.acid.rename_column(table, old, new.name)

    run.in_transaction(work, [table.full_name])


def _to_the_end(cursor: Cursor) -> None:
    if cursor.peek() in ("FIRST", "AFTER"):
        raise cursor.error("columns stay in their places, and new ones come last: files know columns by their places")


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
        spec = partition_clause(run, table, cursor.parentheses("a partition"))
        if spec.dynamic:
            raise ColumnError(f"DROP PARTITION of {table.full_name} needs a value for {', '.join(spec.dynamic)}")
        covered = spec.covered(known)
        if not covered and not if_exists:
            raise NoSuchObjectError(f"{table.full_name} has no partition of these values: {dict(spec.static)}")
        dropped |= set(covered)
        cursor.accept(",")
    cursor.accept("PURGE")
    cursor.finish()
    run.acid.drop_partitions(table, sorted(dropped), if_exists=if_exists)


def _concatenate(run: Run, table: Table, cursor: Cursor) -> None:
    """``[PARTITION (…)] CONCATENATE [AND WAIT]``."""
    spec = None
    if cursor.accept("PARTITION"):
        spec = partition_clause(run, table, cursor.parentheses("a partition"))
    if not cursor.accept("CONCATENATE"):
        raise cursor.error(_UNDERSTOOD)
    wait = cursor.accept("AND", "WAIT")
    cursor.finish()
    run.acid.concatenate(table, None if spec is None else spec.static, wait=wait)
