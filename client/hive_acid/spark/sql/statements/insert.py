"""INSERT INTO and INSERT OVERWRITE, of one table or of several out of one source."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import types as t
from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError, SqlError
from hive_acid.spark.change.merge import RowCounts
from hive_acid.spark.change.source import Join
from hive_acid.spark.jvm.frames.kept_rows import kept_rows
from hive_acid.spark.jvm.frames.projection import projected, renamed
from hive_acid.spark.jvm.session_settings import word
from hive_acid.spark.sql.defaults import has_default, with_defaults
from hive_acid.spark.sql.hints import direct_sources
from hive_acid.spark.sql.parsing import parsed
from hive_acid.spark.sql.partitions import PartitionClause, parenthesized_partition, partition_clause
from hive_acid.spark.sql.relations import Ctes, Relation, ctes, relation
from hive_acid.spark.sql.rewriting.reads import ChangedTable
from hive_acid.spark.sql.rewriting.rewriter import Rewriter
from hive_acid.spark.sql.run import Query, Run, new_name
from hive_acid.spark.sql.statements.change import assignments
from hive_acid.spark.sql.statements.definitions.storage import Storage, accept_storage
from hive_acid.spark.sql.tokens import Cursor, Name
from hive_acid.spark.values.assign import left_out, sql_type
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import with_keys
from hive_acid.spark.values.structs import placed
from hive_acid.spark.values.types import check_distinct, spark_type

_DIRECTORIES = {"parquet": "parquet", "orc": "orc", "avro": "avro", "jsonfile": "json"}
"""What Spark calls the formats that STORED AS names."""
_UNNAMED = "__acid_new"

_QUERY = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE")
_GOES_ON = frozenset({*_QUERY, "AND", "OR", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "NOT", "DIV", "COLLATE"})
"""Words behind a parenthesis that are no name of what it holds."""


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where rows go, as it is written: INSERT INTO or OVERWRITE, a table, a partition, columns.

    `replaced` says which rows they replace, `evolves` that columns are added which the table lacks.
    """

    name: Name
    overwrite: bool
    partition: Cursor | None
    if_not_exists: bool
    columns: tuple[str, ...] | None
    by_name: bool
    replaced: str | None
    evolves: bool
    matched: tuple[str, ...] = ()
    """Rows are replaced that have the values of new ones in these columns."""

    alias: str | None = None
    on: str | None = None
    """Rows are replaced for which this condition is true with a new row."""

    source: Relation | None = None
    """The new rows, and what `on` calls them, if it does."""

    @property
    def replaces_matched(self) -> bool:
        """Whether the rows that are replaced are found by the new ones."""
        return bool(self.matched) or self.on is not None


def insert(run: Run, cursor: Cursor) -> DataFrame:
    """``[WITH …] INSERT INTO | OVERWRITE [TABLE] t [PARTITION (…)] [IF NOT EXISTS] [(columns) | BY NAME] query``.

    Also ``INSERT INTO t [BY NAME] REPLACE WHERE condition | USING (columns) query``, ``INSERT INTO t [a] [BY NAME]
    REPLACE ON condition (query) [b]``, ``INSERT INTO t DEFAULT VALUES``, and ``INSERT WITH SCHEMA EVOLUTION INTO …``.
    Behind a query may stand ``ON CONFLICT [(key)] DO NOTHING | DO UPDATE SET … [WHERE …]``.
    """
    named, first = ctes(cursor, "INSERT", "FROM"), cursor.start
    if _is_directory(cursor):
        return _directory(run, cursor, named, first)
    destination = _destination(cursor)
    table = run.names.written(destination.name)
    if table is None:
        return _by_spark(run, cursor, named, first)
    if destination.columns and cursor.sees("DEFAULT", "VALUES"):
        raise cursor.error("DEFAULT VALUES is of all columns: name none before it")
    if destination.source is not None:
        inserted, conflict = destination.source.query, None
    else:
        inserted, conflict = _inserted(cursor)
    if inserted.upper().split() == ["DEFAULT", "VALUES"]:
        inserted = f"VALUES ({', '.join(['DEFAULT'] * len(_positions(run, table, destination)))})"
    if has_default(inserted):
        inserted = with_defaults(table, inserted, _positions(run, table, destination))
    query = run.prepared(named.before(inserted))
    cursor.finish()
    if conflict is not None:
        return _unless_there(run, table, destination, conflict, named, query)
    rewriter = Rewriter(run.names, ctes=named.names)
    target = ChangedTable(table, destination.alias or destination.name.parts[-1])
    condition = destination.replaced if destination.on is None else destination.on
    where = rewriter.expression(condition, target) if condition is not None else None
    read = run.ctes_of(rewriter, named)

    def work() -> int:
        if destination.matched:
            return _replaced(run, table, destination, query.frame())
        if destination.on is not None:
            with run.subqueries(rewriter, read) as text:
                return _replaced_on(run, target, destination, query.frame(), text(where or "true"))
        if where is None:
            return _planned(run, table, destination, query.frame())()
        rows = _shaped(table, destination, PartitionClause(table, {}, ()), query.frame())
        with run.subqueries(rewriter, read) as text:
            return run.acid.overwrite(table, rows, where=text(where))

    others = (name for one in (query, *read.values()) for name in one.tables)
    return _affected(run, run.in_transaction(work, [table.full_name, *rewriter.tables, *others]))


@dataclass(frozen=True, slots=True)
class _OnConflict:
    """What becomes of a new row whose primary key a row of the table has: nothing, or that row is `changed`."""

    key: tuple[str, ...]
    changed: Cursor | None
    where: str | None


def _inserted(cursor: Cursor) -> tuple[str, _OnConflict | None]:
    """The query that comes next, and what stands behind it."""
    if "CONFLICT" not in cursor.text.upper():
        return cursor.rest(), None
    first = cursor.start
    while True:
        cursor.until("ON")
        query = cursor.text[first : cursor.start].strip()
        if not cursor.sees("ON"):
            return query, None
        if cursor.sees("ON", "CONFLICT") and cursor.peek(2) in ("(", "DO"):
            break
        cursor.skip()
    cursor.expect("ON", "CONFLICT")
    key = tuple(_column(item) for item in cursor.items("columns")) if cursor.sees("(") else ()
    cursor.expect("DO")
    if cursor.one_of("NOTHING", "UPDATE") == "NOTHING":
        return query, _OnConflict(key, None, None)
    cursor.expect("SET")
    changed = cursor.until("WHERE")
    return query, _OnConflict(key, changed, cursor.rest() if cursor.accept("WHERE") else None)


def _unless_there(
    run: Run, table: Table, destination: _Destination, conflict: _OnConflict, named: Ctes, query: Query
) -> DataFrame:
    """Insert rows whose primary key the table does not have, and do as `conflict` says with the others."""
    if destination.overwrite or destination.evolves or destination.replaced or destination.replaces_matched:
        raise SqlError(
            "ON CONFLICT is of INSERT INTO alone: rows are replaced, or columns added, by statements of their own"
        )
    key = [column.name for column in table.key]
    if sorted(conflict.key or key) != sorted(key) or not key:
        there = f"has the key ({', '.join(key)})" if key else "has none that is enforced"
        raise SqlError(f"ON CONFLICT is about a table's primary key, and {table.full_name} {there}")
    rewriter = Rewriter(run.names, ctes=named.names)
    target = ChangedTable(table, destination.name.parts[-1])
    given = {} if conflict.changed is None else assignments(run, conflict.changed, target)
    templates = {column: rewriter.expression(value, target) for column, value in given.items()}
    where = None if conflict.where is None else rewriter.expression(conflict.where, target)
    read = run.ctes_of(rewriter, named)

    def work() -> RowCounts:
        spec = PartitionClause(table, {}, ())
        if destination.partition:
            spec = partition_clause(run, table, destination.partition)
        rows = with_keys(table, _shaped(table, destination, spec, query.frame()), spec.static)
        with run.subqueries(rewriter, read) as text:
            return run.acid.upsert(
                table,
                rows,
                set={column: text(template) for column, template in templates.items()},
                where=None if where is None else text(where),
                target_alias=target.alias,
            )

    others = (name for one in (query, *read.values()) for name in one.tables)
    counts = run.in_transaction(work, [table.full_name, *rewriter.tables, *others])
    return run.counts(
        num_affected_rows=counts.inserted + counts.updated,
        num_updated_rows=counts.updated,
        num_inserted_rows=counts.inserted,
    )


def _is_directory(cursor: Cursor) -> bool:
    return cursor.sees("INSERT", "OVERWRITE", "DIRECTORY") or cursor.sees("INSERT", "OVERWRITE", "LOCAL", "DIRECTORY")


def _directory(run: Run, cursor: Cursor, named: Ctes, first: int) -> DataFrame:
    """``INSERT OVERWRITE [LOCAL] DIRECTORY 'path' [STORED AS format | USING format …] query``: Spark writes it.

    Raises SqlError for Hive's text, which only a Spark with Hive writes.
    """
    cursor.expect("INSERT", "OVERWRITE")
    local = cursor.accept("LOCAL")
    cursor.expect("DIRECTORY")
    at = cursor.start
    if cursor.sees_string() and word(run.spark, "spark.sql.catalogImplementation") != "HIVE":
        cursor.string("a path")
        path, storage = cursor.text[at : cursor.start].strip(), Storage()
        wrong = cursor.error(
            "INSERT OVERWRITE DIRECTORY writes Hive's text in a Spark with Hive only: say USING csv, json, parquet or "
            "orc, or STORED AS PARQUET, ORC, AVRO or JSONFILE"
        )
        while accept_storage(cursor, storage):
            pass
        if not cursor.sees("USING"):
            kind = _DIRECTORIES.get(str(storage.form).lower())
            if kind is None or storage.has_row_format:
                raise wrong
            before = f"INSERT OVERWRITE {'LOCAL ' * local}DIRECTORY {path} USING {kind} "
            return run.prepared(named.before(cursor.rest()), before=run.explains + before).frame()
    cursor.until(*_QUERY)
    return _by_spark(run, cursor, named, first)


def _replaced(run: Run, table: Table, destination: _Destination, frame: DataFrame) -> int:
    """Put rows in the place of those that have the same values in some columns; null is the same as nothing."""
    rows = _shaped(table, destination, PartitionClause(table, {}, ()), frame)
    if unknown := [key for key in destination.matched if key not in {one.name for one in table.all_columns}]:
        raise ColumnError(f"REPLACE USING names {', '.join(unknown)}, which {table.full_name} does not have")
    rows = rows if run.explains else kept_rows(rows)
    keys = list(map(quoted, destination.matched))
    same = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    return run.acid.replace_matched(table, rows, Join(rows.select(*keys).distinct(), same))


def _replaced_on(run: Run, target: ChangedTable, destination: _Destination, frame: DataFrame, on: str) -> int:
    """Put rows in the place of those for which a condition is true with any of them."""
    rows = frame if run.explains else kept_rows(frame)
    new = _shaped(target.table, destination, PartitionClause(target.table, {}, ()), rows)
    called = destination.source.alias if destination.source is not None else _UNNAMED
    return run.acid.replace_matched(target.table, new, Join(rows, on, target.alias, called))


def multi_insert(run: Run, cursor: Cursor) -> DataFrame:
    """``[WITH …] FROM source INSERT … SELECT … INSERT …``: the source is computed once, all is one transaction."""
    named = ctes(cursor, "INSERT", "FROM")
    cursor.expect("FROM")
    relation = cursor.until("INSERT").source
    branches: list[tuple[_Destination, Table, str]] = []
    while cursor.sees("INSERT"):
        if _is_directory(cursor):
            raise cursor.error("INSERT OVERWRITE DIRECTORY is a statement of its own, of one query")
        destination = _destination(cursor)
        if destination.replaced is not None or destination.replaces_matched:
            raise cursor.error("REPLACE is for an INSERT of its own, and ends here")
        if not cursor.sees("SELECT"):
            raise cursor.error("SELECT was expected")
        branches.append((destination, run.names.known(destination.name), cursor.until("INSERT").source))
    cursor.finish()
    aliases, view = _aliases(relation), new_name()
    run.names.expect_view(view)
    start = f"FROM {view}" if len(aliases) > 1 else f"FROM {view} AS {quoted(aliases[0])}"
    source = run.prepared(named.before(f"SELECT {_kept_columns(aliases)} FROM {relation}"))
    queries = [run.prepared(named.before(f"{start} {query}")) for _, _, query in branches]

    def work() -> int:
        rows = source.frame()
        with run.view(kept_rows(rows) if len(branches) > 1 and not run.explains else rows, view):
            # All are planned before one writes: what does not fit leaves nothing, in a longer transaction too.
            writes = [
                _planned(run, table, destination, query.frame())
                for (destination, table, _), query in zip(branches, queries, strict=True)
            ]
            return sum(write() for write in writes)

    tables = [
        *(table.full_name for _, table, _ in branches),
        *(name for one in (source, *queries) for name in one.tables),
    ]
    return _affected(run, run.in_transaction(work, tables))


def _kept_columns(aliases: list[str]) -> str:
    """What is kept of the source. Of a join also a struct for each side, so that ``side.column`` is found again."""
    if len(aliases) == 1:
        return "*"
    return ", ".join(["*", *(f"struct({quoted(alias)}.*) AS {quoted(alias)}" for alias in aliases)])


def _aliases(relation: str) -> list[str]:
    """The names by which the columns of a FROM are called, in their order."""
    select = parsed(f"SELECT * FROM {relation}", relation)
    if not isinstance(select, exp.Select):
        raise SqlError(f"FROM {relation} is not one source: put it in parentheses, with an alias")
    laterals = [lateral.alias for lateral in select.args.get("laterals") or ()]
    aliases = [*(source.alias_or_name for source in direct_sources(select)), *laterals]
    if not all(aliases):
        raise SqlError(f"each side of FROM {relation} needs an alias")
    return aliases


def _destination(cursor: Cursor) -> _Destination:
    cursor.expect("INSERT")
    evolves = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    if evolves and not cursor.sees("INTO"):
        raise cursor.error("INTO was expected: an overwrite does not change the columns")
    overwrite = cursor.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    cursor.accept("TABLE")
    name = cursor.name()
    alias = _alias(cursor)
    partition = parenthesized_partition(cursor)
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if if_not_exists and not (overwrite and partition):
        raise cursor.error("IF NOT EXISTS needs INSERT OVERWRITE and a PARTITION")
    by_name = cursor.accept("BY", "NAME")
    columns: tuple[str, ...] | None = None
    if cursor.sees("(") and cursor.peek(1) not in (*_QUERY, "("):
        columns = tuple(_column(item) for item in cursor.items("columns"))
        check_distinct(column.lower() for column in columns)
    replaced = None
    if not (overwrite or partition or columns or evolves) and cursor.accept("REPLACE", "WHERE"):
        replaced = cursor.until(*_QUERY).source
        if not replaced:
            raise cursor.error("a condition was expected")
    matched = () if replaced is not None or overwrite or partition or evolves else _matched(cursor)
    on = source = None
    if not (overwrite or partition or columns or evolves) and cursor.accept("REPLACE", "ON"):
        on, source = _replaced_by(cursor)
    if cursor.sees("SET"):
        raise cursor.error("INSERT … SET is another database's: say INSERT INTO t (columns) VALUES (values)")
    if alias is not None and on is None:
        raise cursor.error("a name for the table is of REPLACE ON, and REPLACE ON was expected")
    return _Destination(
        name,
        overwrite,
        partition,
        if_not_exists,
        columns,
        by_name,
        replaced,
        evolves,
        matched,
        alias,
        on,
        source,
    )


def _alias(cursor: Cursor) -> str | None:
    """``[AS] a`` before ``[BY NAME] REPLACE ON``."""
    at = int(cursor.sees("AS"))
    behind = cursor.peek(at + 1), cursor.peek(at + 2)
    if behind == ("BY", "NAME"):
        behind = cursor.peek(at + 3), cursor.peek(at + 4)
    if behind != ("REPLACE", "ON") or cursor.peek() == "BY":
        return None
    cursor.accept("AS")
    return cursor.identifier("a name for the table")


def _replaced_by(cursor: Cursor) -> tuple[str, Relation | None]:
    """The condition of REPLACE ON, and ``(query) [AS] b`` behind it, if that has a name; else the query comes next."""
    first = cursor.start
    while True:
        cursor.until("(", *_QUERY)
        condition = cursor.text[first : cursor.start].strip()
        if cursor.at_end:
            raise cursor.error("a query was expected behind the condition of REPLACE ON")
        if not cursor.sees("("):
            return _some(condition, cursor), None
        here = re.sub(r"\S", " ", cursor.text[: cursor.start]) + cursor.text[cursor.start :]
        ahead = Cursor(here)
        is_query = ahead.peek(1) in (*_QUERY, "(")
        ahead.parentheses("a query")
        if is_query and ahead.at_end:
            return _some(condition, cursor), None
        if is_query and (ahead.sees("AS") or (ahead.sees_identifier() and ahead.peek() not in _GOES_ON)):
            condition = _some(condition, cursor)
            cursor.rest()
            return condition, relation(Cursor(here))
        cursor.parentheses("a condition")


def _some(condition: str, cursor: Cursor) -> str:
    if not condition:
        raise cursor.error("a condition was expected")
    return condition


def _matched(cursor: Cursor) -> tuple[str, ...]:
    """The columns of ``REPLACE USING (columns)``, none without one."""
    if not cursor.accept("REPLACE", "USING"):
        return ()
    found = tuple(_column(item) for item in cursor.items("columns"))
    check_distinct(found)
    return found


def _column(item: Cursor) -> str:
    name = item.identifier("a column's name")
    item.finish()
    return name.lower()


def _by_spark(run: Run, cursor: Cursor, named: Ctes, first: int) -> DataFrame:
    """An INSERT into what is not the metastore's: Spark's own, out of whatever the query names."""
    before = run.explains + cursor.text[first : cursor.start]
    return run.query(named.before(cursor.rest()), before=before)


def _planned(run: Run, table: Table, destination: _Destination, frame: DataFrame) -> Callable[[], int]:
    """The insertion of the rows of `frame`, to be called; it returns their number. Raises ColumnError."""
    spec = (
        partition_clause(run, table, destination.partition) if destination.partition else PartitionClause(table, {}, ())
    )
    if destination.if_not_exists and not spec.is_whole:
        raise ColumnError(f"IF NOT EXISTS is of one partition: give each key of {table.full_name} a value")
    if destination.if_not_exists and spec.covered(run.acid.connection.partition_names(table)):
        return lambda: 0
    values = _shaped(table, destination, spec, frame)
    if destination.overwrite:
        only_new = destination.if_not_exists
        return lambda: run.acid.overwrite(table, values, partition=spec.static or None, if_not_exists=only_new)
    rows = with_keys(table, values, spec.static)
    return lambda: run.acid.insert(table, rows, schema_evolution=destination.evolves)


def _positions(run: Run, table: Table, destination: _Destination) -> list[str]:
    """The columns that the values of an INSERT are for, in their order; none if they meet by name."""
    if destination.by_name:
        return []
    static = partition_clause(run, table, destination.partition).static if destination.partition else {}
    names = (column.name for column in table.all_columns)
    return list(destination.columns or (name for name in names if name not in static))


def _shaped(table: Table, destination: _Destination, spec: PartitionClause, frame: DataFrame) -> DataFrame:
    """`frame` under the table's column names, without those of the static partition, and null for those left out."""
    columns = {column.name: column for column in table.all_columns}
    free = [name for name in columns if name not in spec.static]
    if destination.by_name:
        given = [name.lower() for name in frame.columns]
    else:
        given = list(destination.columns or free)
        if destination.evolves and not destination.columns:
            given += [name.lower() for name in frame.columns[len(given) :]]
        if len(given) != len(frame.columns):
            raise ColumnError(
                f"INSERT into {table.full_name} takes {len(given)} columns ({', '.join(given)}), and the query has "
                f"{len(frame.columns)} ({', '.join(frame.columns)})"
            )
    if twice := [name for name in given if name in spec.static]:
        raise ColumnError(f"{', '.join(twice)} of {table.full_name} is given by PARTITION and by the columns")
    if not destination.by_name:
        frame = _placed(frame, [spark_type(columns[name].type) if name in columns else None for name in given])
    others = [left_out(columns[name]) for name in free if name not in given]
    named = renamed(frame, given)
    return named.select("*", *others) if others else named


def _placed(frame: DataFrame, targets: Sequence[t.DataType | None]) -> DataFrame:
    """`frame` with the names of the table's fields in structs whose fields are given by their places."""
    fields = frame.schema.fields
    kinds = [one.dataType if to is None else placed(one.dataType, to) for one, to in zip(fields, targets, strict=True)]
    if kinds == [one.dataType for one in fields]:
        return frame
    # By places, as a query may give two columns one name.
    numbered = renamed(frame, [f"__acid_{at}" for at in range(len(fields))])
    return projected(
        numbered,
        *(
            f"__acid_{at}" if kind == one.dataType else f"CAST(__acid_{at} AS {sql_type(kind)}) AS __acid_{at}"
            for at, (one, kind) in enumerate(zip(fields, kinds, strict=True))
        ),
    )


def _affected(run: Run, rows: int) -> DataFrame:
    return run.counts(num_affected_rows=rows, num_inserted_rows=rows)
