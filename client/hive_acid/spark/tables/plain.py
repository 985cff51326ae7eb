"""Plain tables: how their rows are read, and written where there is no transaction around.

Spark's own reader and writer do the work, by the table's location and format; other formats than ORC and Parquet are
read as those of insert-only tables, and all are written so. Nothing keeps readers and writers apart: that is what
snapshots are for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import TransactionsOffError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.partitions import parse_partition_name
from hive_acid.settings import CONCURRENCY, MANAGER, TransactionManager
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.expressions import Expression, expression
from hive_acid.spark.conditions.literals import type_name
from hive_acid.spark.conditions.orc.sarg import search_options
from hive_acid.spark.conditions.predicates import Predicate
from hive_acid.spark.conditions.unfit_settings import refuse_unfit_settings
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.jvm.sources import loaded, reader_of
from hive_acid.spark.read import insert_only
from hive_acid.spark.read.legacy.capitals import refuse_capitals
from hive_acid.spark.read.listing import directory_of
from hive_acid.spark.read.scan import literal_path
from hive_acid.spark.read.unpushed import unpushed
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import PARTITION_NAME, PartitionSpec, typed_partitions
from hive_acid.spark.values.texts import declared, shown
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write import insert_only as insert_only_writes
from hive_acid.spark.write.statement import Context, analysed
from hive_acid.transactions.locks import Operation
from hive_acid.write.staging import Values
from hive_acid.write.table_write import Intent, TableWrite
from hive_acid.write.untransacted import untransacted

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
        insert_only.refuse_within(table, table.location, files.list_tree(table.location, max_depth=1))
        return lambda wanted: _frame(context, table, kind, [table.location], wanted)
    depth = len(table.partition_keys)
    levels = depth if kind is None else depth + 1
    entries = [entry for entry in files.list_tree(table.location, max_depth=levels) if entry.is_directory]
    there = {path for entry in entries if (path := entry.path.rstrip("/")).count("/") == depth - 1}
    named = [directory_of(table, name, at) for name, at in context.connection.partitions(table).items()]
    if kind is None:
        here = [directory for directory in named if directory in there]
        return lambda wanted: insert_only.read_plain(context.spark, table, here)
    found = [files.join(table.location, directory) for directory in named if directory in there]
    if not found:
        return lambda wanted: _shown(context.spark.createDataFrame([], schema), table)
    own = {directory for directory in named if directory in there}
    for entry in entries:
        above, _, name = entry.path.rstrip("/").rpartition("/")
        if above in own:
            insert_only.refuse_within(table, files.join(table.location, above), [replace(entry, path=f"{name}/")])
    return lambda wanted: _frame(context, table, kind, found, wanted)


def _frame(context: Context, table: Table, kind: str, paths: Sequence[str], wanted: Predicate | None) -> DataFrame:
    source = reader_of(context.spark, kind).schema(_schema(table)).option("basePath", table.location)
    literal = list(map(literal_path, paths))
    refuse_capitals(context.spark, table, kind, literal)
    if kind != "orc":
        return _shown(loaded(source, literal), table)
    names = [column.name for column in table.columns]
    search = search_options(wanted, names) if wanted is not None and context.skipping else {}
    frame = loaded(source.options(**search), literal)
    keys = [quoted(key.name) for key in table.partition_keys]
    return _shown(unpushed(frame, table.columns, *keys, prunes=bool(keys)), table)


def _schema(table: Table) -> t.StructType:
    """What Spark reads: binary partition keys as texts, since of those alone it leaves the escapes of a path."""
    fields = row_type(table.all_columns).fields
    binary = _binary_keys(table)
    return t.StructType([t.StructField(of.name, t.StringType()) if of.name in binary else of for of in fields])


def _binary_keys(table: Table) -> list[str]:
    return [key.name for key in table.partition_keys if type_name(key) == "binary"]


def _shown(frame: DataFrame, table: Table) -> DataFrame:
    columns = table.all_columns
    if keys := _binary_keys(table):
        frame = frame.withColumns({key: F.col(quoted(key)).cast("binary") for key in keys})
    values = {column.name: shown(column.type, quoted(column.name)) for column in columns}
    if all(value == quoted(name) for name, value in values.items()):
        return frame
    return declared(projected(frame, *(f"{values[name]} AS {quoted(name)}" for name in frame.columns)), columns)


def insert(context: Context, table: Table, frame: DataFrame) -> int:
    """Append the rows of `frame`, without a transaction; returns their number. See `insert_only.insert`."""
    with _begun(context, table, Intent(Operation.INSERT)) as begun:
        return insert_only_writes.insert(context, begun, frame).run()


def overwrite(context: Context, table: Table, frame: DataFrame, partition: PartitionSpec | None = None) -> int:
    """Replace rows by those of `frame`, without a transaction; returns their number. See `insert_only.overwrite`."""
    with _begun(context, table, Intent(Operation.UPDATE, overwrites=True)) as begun:
        return insert_only_writes.overwrite(context, begun, frame, partition).run()


@contextmanager
def _begun(context: Context, table: Table, intent: Intent) -> Iterator[TableWrite]:
    with untransacted() as transaction:
        yield TableWrite(context.connection, context.definitions, transaction, table, intent)


def partitions_where(context: Context, table: Table, condition: Expression) -> list[Values]:
    """The partitions of which a condition is true, or the one of no partition of a table without.

    Raises UnsupportedTableError for a condition that is about other columns than the keys.
    """
    keys = table.partition_keys
    names = context.connection.partition_names(table) if keys else [""]
    partitions = typed_partitions(context.spark, table, names).alias(table.name)
    try:
        chosen = analysed(partitions.filter(expression(without_blanks(condition, table)))).select(PARTITION_NAME)
    except AnalysisException as error:
        named = (
            f"names its partition columns ({', '.join(key.name for key in keys)}) alone" if keys else "is true or false"
        )
        raise UnsupportedTableError(
            f"{table.full_name} is a plain table, of which whole partitions are replaced, and no rows among others: "
            f"the condition of such an overwrite {named}. Make it an ACID table with acid.convert_table for others"
        ) from error
    return [tuple(value for _, value in parse_partition_name(name)) if name else () for (name,) in chosen.collect()]


def create_filled(context: Context, definition: Table, frame: DataFrame) -> int:
    """Make a plain table with the rows of `frame`; returns their number. If that fails there is no table.

    It is seen without rows before, and stays so if the client dies. Raises AlreadyExistsError, UnsupportedTableError
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
    insert_only_writes.refuse_unwritten(table)
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
