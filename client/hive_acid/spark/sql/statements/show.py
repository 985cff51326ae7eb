"""SHOW, DESCRIBE and USE."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from hive_acid.catalog.about import AboutTable
from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.storage_formats import name_of
from hive_acid.catalog.table import VIRTUAL_VIEW, Column, Skew, Table
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.format.properties import CREATED_BY, REPLACED, TRANSACTIONAL
from hive_acid.spark.sql.columns import property_key
from hive_acid.spark.sql.partitions import parenthesized_partition, partition_clause
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.definitions.constraints import stands_behind, told, told_of
from hive_acid.spark.sql.statements.operate import operate
from hive_acid.spark.sql.statements.privileges import show_privileges
from hive_acid.spark.sql.tokens import DATABASE_WORDS, Cursor
from hive_acid.spark.sql.views import is_out_column
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import column_type
from hive_acid.tokens import LARGEST_COUNT

_DESCRIPTION = ("col_name", "data_type", "comment")
_REFUSED: dict[tuple[str, ...], str] = {
    ("MATERIALIZED", "VIEWS"): "there are none here; SHOW VIEWS lists the others",
    ("INDEX",): "there are none: row groups are skipped by what files tell of their values",
    ("INDEXES",): "there are none: row groups are skipped by what files tell of their values",
    ("CONF",): "settings are Spark's: SET name",
    ("DATACONNECTORS",): "other systems are read by Spark's sources",
    ("CONNECTORS",): "other systems are read by Spark's sources",
    ("RESOURCE",): "resource plans are HiveServer2's",
    ("PROCESSLIST",): "SHOW TRANSACTIONS lists who is at work",
    ("EXTENDED", "TABLES"): "say SHOW TABLE EXTENDED LIKE 'pattern'",
    ("TABLES", "EXTENDED"): "say SHOW TABLE EXTENDED LIKE 'pattern'",
    ("SORTED", "COLUMNS"): "say SHOW COLUMNS, which are in the order of the table",
    ("CACHED",): "spark.catalog.isCached(name) tells of one",
    ("KEYS",): "DESCRIBE FORMATTED tells of a table",
}
"""What only others show, and what to say instead."""
_EVERY_SERDE = ("serialization.format", "1")
_ASSIGNED = frozenset({"transient_lastDdlTime", "bucketing_version", "comment", CREATED_BY, REPLACED})
"""Properties that a table's definition tells in another way, or that are given to it anew."""


def show(run: Run, cursor: Cursor) -> DataFrame | None:
    """``SHOW …``; None for what only Spark can show."""
    cursor.expect("SHOW")
    what = cursor.peek()
    if what in ("DATABASES", "SCHEMAS", "NAMESPACES"):
        cursor.one_of(what)
        return _names(run, cursor, "namespace", "get_databases")
    if what == "TABLES" and cursor.peek(1) != "EXTENDED":
        cursor.one_of(what)
        database = _asked_database(run, cursor)
        if run.beside_spark and not run.names.has_database(database):
            return None
        return _names(run, cursor, "tableName", "get_tables", database, beside=run.acid.temporary.names(database))
    if what == "VIEWS":
        return _views(run, cursor)
    if what in ("TRANSACTIONS", "LOCKS", "COMPACTIONS"):
        return operate(run, cursor)
    if what == "TABLE" and cursor.peek(1) == "EXTENDED":
        return _extended(run, cursor)
    if what in ("ROLES", "ROLE", "GRANT", "PRINCIPALS") or cursor.sees("CURRENT", "ROLES"):
        return show_privileges(run, cursor)
    if cursor.sees("CREATE") and cursor.peek(1) in DATABASE_WORDS:
        return _database_made(run, cursor)
    refused = next((words for words in _REFUSED if cursor.sees(*words)), None)
    if refused is not None:
        raise cursor.error(f"SHOW {' '.join(refused)}: {_REFUSED[refused]}")
    if cursor.accept("CURRENT"):
        cursor.one_of(*DATABASE_WORDS)
        cursor.finish()
        return run.rows(["catalog", "namespace"], [("hive", run.names.current_database)])
    if cursor.accept("CREATE", "TABLE"):
        return _of_table(run, cursor, "CREATE TABLE")
    if what in ("PARTITIONS", "COLUMNS", "TBLPROPERTIES"):
        cursor.one_of(what)
        return _of_table(run, cursor, what)
    return None


def describe(run: Run, cursor: Cursor) -> DataFrame | None:
    """``DESCRIBE [TABLE] [EXTENDED | FORMATTED] t [PARTITION (…)] [column]`` and ``DESCRIBE DATABASE d``; None for what
    is not ours. Raises NoSuchObjectError for a partition that is not there.
    """
    cursor.one_of("DESCRIBE", "DESC")
    if cursor.peek() == "HISTORY" and cursor.peek(1) not in ("", ";", "."):
        return _history(run, cursor)
    if cursor.peek() in DATABASE_WORDS:
        cursor.one_of(cursor.peek())
        cursor.accept("EXTENDED")
        return _database(run, cursor)
    if cursor.sees("QUERY") or cursor.peek() in ("SELECT", "WITH", "VALUES", "FROM"):
        return _query(run, cursor)
    if cursor.sees("FUNCTION"):
        return None
    if cursor.sees("DETAIL") and cursor.peek(1) not in ("", ";", "."):
        raise cursor.error("DESCRIBE DETAIL is another format's: say DESCRIBE FORMATTED t, or SELECT * FROM t.files")
    cursor.accept("TABLE")
    in_full = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
    table = run.names.source(cursor.name().parts)
    if table is None:
        return None
    if isinstance(table, AboutTable):
        cursor.finish()
        return run.rows(_DESCRIPTION, [_described(column) for column in table.columns])
    partition = _partition(run, table, inside) if (inside := parenthesized_partition(cursor)) is not None else None
    if partition is None and not cursor.at_end and cursor.peek() != ";":
        name = cursor.identifier("a column").lower()
        cursor.finish()
        return _column(run, table, name)
    cursor.finish()
    rows = [_described(column) for column in table.all_columns]
    if table.partition_keys:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [_described(key) for key in table.partition_keys]
    if in_full:
        if partition is not None:
            rows += [("", "", ""), ("# Detailed Partition Information", "", ""), *partition]
        rows += [("", "", ""), ("# Detailed Table Information", "", ""), *_details(table)]
        if table.constraints:
            rows += [("", "", ""), ("# Constraints", "", "")]
            rows += [_constraint(one) for one in table.constraints]
    return run.rows(_DESCRIPTION, rows)


def _query(run: Run, cursor: Cursor) -> DataFrame | None:
    """``DESCRIBE [QUERY] query``: the columns that it would show; None if it reads nothing of ours."""
    cursor.accept("QUERY")
    query = cursor.rest()
    if not run.reads_ours(query):
        return None
    return run.rows(
        _DESCRIPTION, [(of.name, column_type(of), None) for of in run.prepared(query).frame().schema.fields]
    )


def _history(run: Run, cursor: Cursor) -> DataFrame:
    """``DESCRIBE HISTORY t [LIMIT n]``. Raises NoSuchObjectError."""
    cursor.expect("HISTORY")
    table = run.names.known(cursor.name("a table"))
    most = cursor.integer("a number of writes", most=LARGEST_COUNT) if cursor.accept("LIMIT") else None
    cursor.finish()
    found = run.acid.history(table)
    return found if most is None else found.limit(most)


def _column(run: Run, table: Table, name: str) -> DataFrame:
    """What is said of one column. Raises ColumnError."""
    found = next((column for column in table.all_columns if column.name == name), None)
    if found is None:
        raise ColumnError(f"{table.full_name} has no column '{name}'")
    rows = [("col_name", found.name), ("data_type", found.type), ("comment", found.comment or "NULL")]
    return run.rows(["info_name", "info_value"], rows)


def _partition(run: Run, table: Table, inside: Cursor) -> list[tuple[str, str, str]]:
    """What is said of one partition. Raises NoSuchObjectError."""
    spec = partition_clause(run, table, inside)
    found = run.acid.connection.call("get_partition_by_name", table.database, table.name, spec.name)
    pairs = ", ".join(f"{key}={value}" for key, value in sorted((found.parameters or {}).items()))
    details = {"Partition": spec.name, "Location": found.sd.location, "Partition Parameters": f"[{pairs}]"}
    return [(name, value, "") for name, value in details.items()]


def use(run: Run, cursor: Cursor) -> DataFrame:
    """``USE [DATABASE] d``: names of one part are looked for there, by this thread. Raises NoSuchObjectError."""
    cursor.expect("USE")
    if cursor.peek() in DATABASE_WORDS:
        cursor.one_of(cursor.peek())
    name = run.names.database(cursor.name("a database's name"))
    cursor.finish()
    run.acid.connection.call("get_database", name)
    if not run.explains:
        run.current.use(run.spark, name)
    return run.nothing()


# --- lists ---------------------------------------------------------------------------------------


def _asked_database(run: Run, cursor: Cursor) -> str:
    """The database behind ``IN`` or ``FROM``, else the current one."""
    if cursor.accept("IN") or cursor.accept("FROM"):
        return run.names.database(cursor.name("a database's name"))
    return run.names.current_database


def _last_pattern(cursor: Cursor) -> str:
    """The pattern with which a statement ends, ``*`` without one."""
    cursor.accept("LIKE")
    pattern = cursor.string("a pattern") if cursor.sees_string() else "*"
    cursor.finish()
    return pattern


def fits(pattern: str) -> Callable[[str], bool]:
    """Whether a name fits a pattern of ``*`` and ``|``, as the metastore has them, in any case."""
    parts = (re.escape(part.strip()).replace(r"\*", ".*") for part in pattern.split("|"))
    found = re.compile("|".join(parts), re.IGNORECASE)
    return lambda name: found.fullmatch(name) is not None


def _names(
    run: Run, cursor: Cursor, column: str, method: str, *arguments: str, beside: Iterable[str] = ()
) -> DataFrame:
    """Names that a pattern of ``*`` and ``|`` fits, all without one; `beside` those that `method` tells."""
    pattern = _last_pattern(cursor)
    found = {*run.acid.connection.call(method, *arguments, pattern), *filter(fits(pattern), beside)}
    return run.rows([column], [(name,) for name in sorted(found)])


def _views(run: Run, cursor: Cursor) -> DataFrame | None:
    """``SHOW VIEWS [IN d] [LIKE 'pattern']``: the metastore's, and the temporary ones of Spark's session."""
    cursor.expect("VIEWS")
    database = _asked_database(run, cursor)
    if run.beside_spark and not run.names.has_database(database):
        return None
    pattern = _last_pattern(cursor)
    found = run.acid.connection.call("get_tables_by_type", database, pattern, VIRTUAL_VIEW)
    temporary = [row for row in run.spark.sql(f"SHOW VIEWS LIKE {_literal(pattern)}").collect() if row.isTemporary]
    rows = [(database, name, "false") for name in sorted(found)]
    rows += [(row.namespace, row.viewName, "true") for row in temporary]
    return run.rows(["namespace", "viewName", "isTemporary"], rows)


def _database_made(run: Run, cursor: Cursor) -> DataFrame | None:
    """``SHOW CREATE DATABASE d``; None if the metastore has none of that name."""
    cursor.expect("CREATE")
    cursor.one_of(*DATABASE_WORDS)
    name = run.names.database(cursor.name("a database's name"))
    cursor.finish()
    if run.beside_spark and not run.names.has_database(name):
        return None
    found = run.acid.connection.call("get_database", name)
    lines = [f"CREATE DATABASE {quoted(found.name)}"]
    lines += [f"COMMENT {_literal(found.description)}"] if found.description else []
    lines += [f"LOCATION {_literal(found.locationUri)}"] if found.locationUri else []
    lines += [f"MANAGEDLOCATION {_literal(found.managedLocationUri)}"] if found.managedLocationUri else []
    lines += [f"WITH DBPROPERTIES ({_pairs(found.parameters)})"] if found.parameters else []
    return run.rows(["createdb_stmt"], [("\n".join(lines),)])


def _extended(run: Run, cursor: Cursor) -> DataFrame:
    """``SHOW TABLE EXTENDED [IN d] LIKE 'pattern' [PARTITION (…)]``: a text of what is said of each table."""
    cursor.expect("TABLE", "EXTENDED")
    database = _asked_database(run, cursor)
    cursor.expect("LIKE")
    pattern = cursor.identifier() if cursor.sees_identifier() else cursor.string("a pattern")
    inside = parenthesized_partition(cursor)
    cursor.finish()
    rows = []
    for name in sorted(run.acid.connection.call("get_tables", database, pattern)):
        table = run.acid.connection.table(database, name)
        said = _details(table) if inside is None else _partition(run, table, Cursor(inside.source))
        rows.append((database, name, "false", "".join(f"{key}: {value}\n" for key, value, _ in said)))
    return run.rows(["namespace", "tableName", "isTemporary", "information"], rows)


def _of_table(run: Run, cursor: Cursor, what: str) -> DataFrame | None:
    if what == "COLUMNS":
        cursor.one_of("IN", "FROM")
    parts = cursor.name().parts
    if what == "COLUMNS" and len(parts) == 1 and (cursor.accept("IN") or cursor.accept("FROM")):
        parts = (*cursor.name("a database's name").parts, *parts)
    table = run.names.source(parts) if what == "COLUMNS" else run.names.read(parts)
    if table is None:
        return None
    if what == "PARTITIONS":
        spec = None
        if cursor.accept("PARTITION"):
            spec = partition_clause(run, table, cursor.parentheses("a partition"))
        names = sorted(run.acid.connection.partitions(table)) if table.partition_keys else []
        cursor.finish()
        return run.rows(["partition"], [(name,) for name in (names if spec is None else spec.covered(names))])
    if what == "TBLPROPERTIES" and cursor.sees("("):
        (item,) = cursor.items("a property")[:1]
        key = property_key(item)
        cursor.finish()
        value = table.parameters.get(key, f"Table {table.full_name} does not have property: {key}")
        return run.rows(["key", "value"], [(key, value)])
    if what == "CREATE TABLE":
        cursor.accept("AS", "SERDE")
    if what == "COLUMNS":
        fit = fits(_last_pattern(cursor))
        return run.rows(["col_name"], [(column.name,) for column in table.all_columns if fit(column.name)])
    cursor.finish()
    if what == "TBLPROPERTIES":
        return run.rows(["key", "value"], sorted(table.parameters.items()))
    return run.rows(["createtab_stmt"], [(definition_of(table),)])


# --- descriptions --------------------------------------------------------------------------------


def definition_of(table: Table) -> str:
    """The CREATE TABLE that makes a table like this one, at its place."""
    properties = {key: value for key, value in table.parameters.items() if key not in _ASSIGNED}
    if table.is_view:
        return _view_definition(table, {key: value for key, value in properties.items() if not is_out_column(key)})
    is_external = table.table_type == "EXTERNAL_TABLE"
    if is_external:
        properties = {key: value for key, value in properties.items() if key.upper() != "EXTERNAL"}
    elif not table.is_transactional:  # else it would be made as one
        properties[TRANSACTIONAL] = "false"
    name = ".".join(map(quoted, (table.called_in, table.name)))
    kinds = f"{'TEMPORARY ' * table.is_temporary}{'EXTERNAL ' * is_external}"
    lines = [f"CREATE {kinds}TABLE {name} ({_elements(table)})"]
    if text := table.parameters.get("comment"):
        lines.append(f"COMMENT {_literal(text)}")
    if table.partition_keys:
        lines.append(f"PARTITIONED BY ({_columns(table.partition_keys, table.constraints)})")
    if table.bucket_columns:
        order = ", ".join(f"{quoted(name)} {'ASC' if least_first else 'DESC'}" for name, least_first in table.sorted_by)
        lines.append(
            f"CLUSTERED BY ({', '.join(map(quoted, table.bucket_columns))}) "
            f"{f'SORTED BY ({order}) ' if order else ''}INTO {table.buckets} BUCKETS"
        )
    if table.skew is not None:
        lines.append(_skewed(table.skew))
    lines += _storage(table)
    if is_external or not table.is_temporary:
        lines.append(f"LOCATION {_literal(table.location)}")
    if properties:
        lines.append(f"TBLPROPERTIES ({_pairs(properties)})")
    return "\n".join(lines)


def _skewed(skew: Skew) -> str:
    values = ", ".join(f"({', '.join(map(_literal, one))})" for one in skew.values)
    columns = ", ".join(map(quoted, skew.columns))
    return f"SKEWED BY ({columns}) ON ({values}){' STORED AS DIRECTORIES' * skew.in_directories}"


def _storage(table: Table) -> list[str]:
    told = {key: value for key, value in table.serde_parameters.items() if (key, value) != _EVERY_SERDE}
    try:
        stored_as = name_of(table.input_format, table.serde)
    except UnsupportedTableError:
        classes = f"INPUTFORMAT {_literal(table.input_format)} OUTPUTFORMAT {_literal(table.output_format)}"
        return [_row_format(table, told), f"STORED AS {classes}"]
    return [*([_row_format(table, told)] if told else []), f"STORED AS {stored_as}"]


def _row_format(table: Table, told: Mapping[str, str]) -> str:
    return f"ROW FORMAT SERDE {_literal(table.serde)}{f' WITH SERDEPROPERTIES ({_pairs(told)})' if told else ''}"


def _view_definition(view: Table, properties: Mapping[str, str]) -> str:
    lines = [f"CREATE VIEW {'.'.join(map(quoted, (view.database, view.name)))} ({_columns(view.columns, typed=False)})"]
    if text := view.parameters.get("comment"):
        lines.append(f"COMMENT {_literal(text)}")
    if properties:
        lines.append(f"TBLPROPERTIES ({_pairs(properties)})")
    return "\n".join([*lines, f"AS {view.view_text}"])


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in sorted(properties.items()))


def _elements(table: Table) -> str:
    """Columns with their constraints, and behind them those of the table."""
    others = [told(one) for one in table.constraints if stands_behind(one) is None]
    return ", ".join([_columns(table.columns, table.constraints), *others])


def _columns(columns: tuple[Column, ...], constraints: Sequence[Constraint] = (), *, typed: bool = True) -> str:
    return ", ".join(
        quoted(column.name)
        + (f" {column.type}{told_of(constraints, column.name)}" if typed else "")
        + (f" COMMENT {_literal(column.comment)}" if column.comment else "")
        for column in columns
    )


def _literal(text: str) -> str:
    """A text within quotes, for a session in which a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _described(column: Column) -> tuple[str, str, str | None]:
    return column.name, column.type, column.comment


def _constraint(one: Constraint) -> tuple[str, str, str]:
    """Its name, what it says, and of which columns."""
    return one.name or "", told(replace(one, name=None)), ", ".join(one.columns)


def _details(table: Table) -> list[tuple[str, str, str]]:
    buckets = f"{', '.join(table.bucket_columns)} into {table.buckets}" if table.bucket_columns else ""
    pairs = ", ".join(f"{key}={value}" for key, value in sorted(table.parameters.items()))
    details = {
        "Database": table.called_in,
        "Table": table.name,
        "Type": "VIEW" if table.is_view else "TEMPORARY " * table.is_temporary + table.table_type,
        "View Text": table.view_text,
        "Location": table.location,
        "InputFormat": table.input_format,
        "Clustered by": buckets,
        "Sorted by": ", ".join(f"{name}{'' if least_first else ' DESC'}" for name, least_first in table.sorted_by),
        "Skewed by": _skewed(table.skew).removeprefix("SKEWED BY ") if table.skew is not None else "",
        "Table Properties": f"[{pairs}]",
    }
    return [(name, value, "") for name, value in details.items() if value]


def _database(run: Run, cursor: Cursor) -> DataFrame:
    name = run.names.database(cursor.name("a database's name"))
    cursor.finish()
    found = run.acid.connection.call("get_database", name)
    pairs = ", ".join(f"{key}={value}" for key, value in sorted((found.parameters or {}).items()))
    details = {
        "Namespace Name": found.name,
        "Comment": found.description or "",
        "Location": found.locationUri or "",
        "Owner": found.ownerName or "",
        "Properties": f"({pairs})" if pairs else "",
    }
    return run.rows(["info_name", "info_value"], list(details.items()))
