"""Plain tables, without transactions: what a session with DummyTxnManager can read and append to.

Spark's own reader and writer do the work, by the table's location and format; other formats than ORC and Parquet are
read as those of insert-only tables, and all are written so. Nothing keeps readers and writers apart, and a write that
fails may leave rows: that is what transactions are for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from hive_acid.catalog.table import Table
from hive_acid.errors import TransactionsOffError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.settings import CONCURRENCY, MANAGER, TransactionManager
from hive_acid.spark.conditions.predicates import Predicate
from hive_acid.spark.conditions.sarg import search_options
from hive_acid.spark.conditions.unfit_settings import refuse_unfit_settings
from hive_acid.spark.jvm.frames.observed import count_of
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.jvm.sources import exact_times, reader_of
from hive_acid.spark.read import insert_only
from hive_acid.spark.read.legacy.capitals import refuse_capitals
from hive_acid.spark.read.listing import directory_of
from hive_acid.spark.read.scan import literal_path
from hive_acid.spark.read.unpushed import unpushed
from hive_acid.spark.values.assign import assigned, match_columns
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import key_text
from hive_acid.spark.values.texts import declared, shown
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write import insert_only as insert_only_files
from hive_acid.spark.write.constraints import checked, filled
from hive_acid.spark.write.statement import Context, column_errors

TURN_ON = f"make it with settings={{'{CONCURRENCY}': 'true', '{MANAGER}': '{TransactionManager.DB.value}'}}"
"""What to do about a session without transactions."""

_FORMATS = {"OrcInputFormat": "orc", "MapredParquetInputFormat": "parquet"}


def refuse_acid(table: Table) -> None:
    """Raise TransactionsOffError for a transactional table: its files mean nothing without a snapshot."""
    if table.is_transactional:
        raise TransactionsOffError(
            f"{table.full_name} is an ACID table, and this session has no transactions"
            f" ({TransactionManager.DUMMY.value}): {TURN_ON}"
        )


def reader(context: Context, table: Table) -> Callable[[Predicate | None], DataFrame]:
    """What gives the rows of a plain table: its columns, then its partition columns.

    Of ORC files it leaves out row groups in which no row meets the predicate that it is given. Raises
    UnsupportedTableError for a format that is not read here and for partitions outside the table's directory,
    TimeZoneMismatchError.
    """
    kind = _kind(table)
    refuse_unfit_settings(context.spark, table)
    schema = row_type(table.all_columns)
    context.zones.check(row_type(table.columns))
    if not table.partition_keys:
        if kind is None:
            return lambda wanted: insert_only.read_plain(context.spark, table, [""])
        return lambda wanted: _frame(context, table, kind, [table.location], wanted)
    depth = len(table.partition_keys)
    there = {entry.path.rstrip("/") for entry in files.list_tree(table.location, max_depth=depth) if entry.is_directory}
    named = [directory_of(table, name, at) for name, at in context.connection.partitions(table).items()]
    if kind is None:
        here = [directory for directory in named if directory in there]
        return lambda wanted: insert_only.read_plain(context.spark, table, here)
    found = [files.join(table.location, directory) for directory in named if directory in there]
    if not found:
        return lambda wanted: _shown(context.spark.createDataFrame([], schema), table)
    return lambda wanted: _frame(context, table, kind, found, wanted)


def _frame(context: Context, table: Table, kind: str, paths: Sequence[str], wanted: Predicate | None) -> DataFrame:
    source = reader_of(context.spark, kind).schema(row_type(table.all_columns)).option("basePath", table.location)
    literal = list(map(literal_path, paths))
    refuse_capitals(context.spark, table, kind, literal)
    if kind != "orc":
        return _shown(source.load(literal), table)
    names = [column.name for column in table.columns]
    search = search_options(wanted, names) if wanted is not None and context.skipping else {}
    frame = source.options(**search).load(literal)
    return _shown(frame.select(*unpushed(table.columns), *(quoted(key.name) for key in table.partition_keys)), table)


def _shown(frame: DataFrame, table: Table) -> DataFrame:
    columns = table.all_columns
    values = {column.name: shown(column.type, quoted(column.name)) for column in columns}
    if all(value == quoted(name) for name, value in values.items()):
        return frame
    return declared(projected(frame, *(f"{values[name]} AS {quoted(name)}" for name in frame.columns)), columns)


def insert(context: Context, table: Table, frame: DataFrame) -> int:
    """Append the rows of `frame`, whose columns meet the table's by name; returns their number.

    New partitions are registered. Raises ColumnError for columns or values that do not fit, UnsupportedTableError as
    `read_table` and for a CLUSTERED table.
    """
    _refuse_unwritten(table)
    refuse_unfit_settings(context.spark, table)
    context.zones.check(row_type(table.columns))
    given = filled(table, frame)
    names = match_columns(table, given.columns)
    columns = table.all_columns
    counts = Observation()
    # As texts, since rows are sorted by them: both zeros of a double are equal, and have directories of their own.
    stored = (
        f"{key_text(one, quoted(one.name)) if one in table.partition_keys else quoted(one.name)} AS {quoted(one.name)}"
        for one in columns
    )
    values = projected(checked(table, assigned(table, columns, given, names)), *stored).observe(
        counts, F.count(F.lit(1)).alias("rows")
    )
    before = _data_files(table)
    keys = [key.name for key in table.partition_keys]
    output = insert_only_files.writer_for(context, table, values, list(map(quoted, keys))).mode("append")
    with column_errors(table), exact_times(context.spark):
        output.partitionBy(*keys).save(table.location)
    if table.partition_keys:
        written = {path.rpartition("/")[0] for path in _data_files(table) - before}
        if written:
            context.connection.add_partitions(table, {name: files.join(table.location, name) for name in written})
    return count_of(counts, "rows", f"the rows are in {table.full_name}, which needs no second statement")


def create_filled(context: Context, definition: Table, frame: DataFrame) -> int:
    """Make a plain table with the rows of `frame`; returns their number. If that fails there is no table.

    It is seen without rows before, and stays so if the client dies. What Spark's job leaves below an EXTERNAL table's
    place when it fails stays there. Raises AlreadyExistsError, UnsupportedTableError
    for a place with files in it and as `insert`, and what that raises.
    """
    _refuse_unwritten(definition)
    if definition.location:
        _refuse_files(definition, definition.location)
    connection = context.connection
    connection.create_table(definition)
    made = connection.table(definition.database, definition.name)
    is_ours = False
    try:
        _refuse_files(made, made.location)
        is_ours = True
        return insert(context, made, frame)
    except BaseException:
        # The metastore removes the files of a managed table, if nobody else's lie among them.
        if connection.table(made.database, made.name).id == made.id:
            connection.call("drop_table", made.database, made.name, is_ours)
        raise


def _refuse_files(table: Table, location: str) -> None:
    if any(not entry.is_directory for entry in files.list_tree(location)):
        raise UnsupportedTableError(
            f"{location} has files in it, among which the rows of {table.full_name} would be: give another LOCATION, "
            "or CREATE the table without AS SELECT"
        )


def _refuse_unwritten(table: Table) -> None:
    """Raise UnsupportedTableError for a table that `insert` does not write."""
    _kind(table)
    insert_only_files.refuse_unwritten(table)
    if table.bucket_columns:
        raise UnsupportedTableError(f"{table.full_name} is CLUSTERED BY: Spark would not write its buckets")


def _kind(table: Table) -> str | None:
    """Spark's name of the format, if it is ORC or Parquet. Raises UnsupportedTableError for one of Hive's alone."""
    if table.skew is not None and table.skew.in_directories:
        raise UnsupportedTableError(
            f"{table.full_name} is STORED AS DIRECTORIES: its skewed values have directories, which Hive "
            "alone reads and writes"
        )
    return _FORMATS.get(table.input_format.rpartition(".")[2])


def _data_files(table: Table) -> set[str]:
    """Paths below the table's directory of the files in partitions."""
    depth = len(table.partition_keys)
    found = (entry.path for entry in files.list_tree(table.location) if not entry.is_directory) if depth else ()
    return {path for path in found if path.count("/") == depth and not path.rpartition("/")[2].startswith(("_", "."))}
