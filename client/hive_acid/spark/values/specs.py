"""Values and names of partitions: static specifications such as ``{"year": 2020, "month": "1"}``, and keys' texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.partition_values import partition_text
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError, NoSuchObjectError
from hive_acid.format.partitions import DEFAULT_PARTITION, parse_partition_name
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.values.assign import assign, sql_type, text_value
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import declared, shown
from hive_acid.spark.values.types import check_distinct, spark_type
from hive_acid.spark.values.wall_clock import refuse_skipped, wall_clock
from hive_acid.write.same_partitions import values_of

PARTITION_NAME = "__acid_partition"
"""The column of `typed_partitions` that names them."""

PartitionSpec = Mapping[str, object]
"""Values of the first partition keys, or of all, by their names; None is the default partition."""


def spec_values(table: Table, partition: PartitionSpec) -> tuple[str | None, ...]:
    """The values of the specification as texts, in the order of the keys.

    Raises ColumnError unless it names the first partition keys of the table, each once, and nothing else.
    """
    check_distinct(key.lower() for key in partition)
    given = {key.lower(): value for key, value in partition.items()}
    keys = [key.name for key in table.partition_keys]
    if set(given) != set(keys[: len(given)]):
        raise ColumnError(
            f"partition ({', '.join(partition)}) of {table.full_name} must name its partition keys, the first of its "
            f"partition columns ({', '.join(keys) or 'it has none'}) first"
        )
    return tuple(partition_text(table, key, given[key.name]) for key in table.partition_keys[: len(given)])


def typed_partitions(spark: SparkSession, table: Table, names: Iterable[str]) -> DataFrame:
    """The partitions of these names, one in each row: `PARTITION_NAME`, and the values of its keys as rows show them.

    What is none of the key's type is null. A table without keys has one partition, "".
    """
    keys = table.partition_keys
    texts = [f"__acid_key_{place}" for place in range(len(keys))]
    schema = ", ".join(f"{name} string" for name in [PARTITION_NAME, *texts])
    found = [(name, *(value for _, value in parse_partition_name(name))) if name else ("",) for name in names]
    cast = [f"try_cast({text} AS {sql_type(spark_type(key.type))})" for text, key in zip(texts, keys, strict=True)]
    named = (f"{value} AS {quoted(key.name)}" for value, key in zip(cast, keys, strict=True))
    typed = projected(spark.createDataFrame(found, schema), PARTITION_NAME, *named)
    values = (f"{shown(key.type, quoted(key.name))} AS {quoted(key.name)}" for key in keys)
    return declared(projected(typed, PARTITION_NAME, *values), keys)


def with_constants(
    table: Table, frame: DataFrame, partition: PartitionSpec | None
) -> tuple[DataFrame, tuple[str | None, ...] | None]:
    """`frame` with the partition columns that the specification gives, and its values if they name one partition.

    So are none for an unpartitioned table. A row that has another value in such a column fails the statement. Raises
    ColumnError as `spec_values`, and for a time that clocks skip.
    """
    static = spec_values(table, partition or {})
    refuse_skipped(frame.sparkSession, table, zip(table.partition_keys, static, strict=False))
    named = [key.name for key in table.partition_keys[: len(static)]]
    check_distinct(name.lower() for name in frame.columns)
    columns = [quoted(name) for name in frame.columns if name.lower() not in named]
    given = {field.name.lower(): field for field in frame.schema.fields} if len(columns) < len(frame.columns) else {}
    for key, value in zip(table.partition_keys, static, strict=False):
        constant = "CAST(NULL AS string)" if value is None else text_value(value)
        if field := given.get(key.name):
            constant = _same(frame.sparkSession, table, key, field, constant)
        columns.append(f"{constant} AS {quoted(key.name)}")
    return projected(frame, *columns), static if len(static) == len(table.partition_keys) else None


def with_keys(table: Table, frame: DataFrame, given: PartitionSpec) -> DataFrame:
    """`frame` with a column for each of some partition keys, behind its own.

    Raises ColumnError for a value that is none of its key, for what is no key, and for a time that clocks skip.
    """
    keys = {key.name: key for key in table.partition_keys}
    if unknown := [name for name in given if name.lower() not in keys]:
        raise ColumnError(
            f"{', '.join(unknown)} is no partition key of {table.full_name} ({', '.join(keys) or 'it has none'})"
        )
    pairs = [(key, partition_text(table, key, value)) for name, value in given.items() for key in (keys[name.lower()],)]
    if not pairs:
        return frame
    refuse_skipped(frame.sparkSession, table, pairs)
    return frame.select(
        "*", *(F.lit(text).cast("string").alias(name) for name, (_, text) in zip(given, pairs, strict=True))
    )


def _same(spark: SparkSession, table: Table, key: Column, field: t.StructField, constant: str) -> str:
    """The SQL of a partition's value, for rows that have it as well; another one fails the statement."""
    kind = sql_type(spark_type(key.type))
    given = assign(spark, table, key, quoted(field.name), field.dataType)
    if kind == "string":
        given = f"nullif({given}, '')"  # which is null as a partition's value
    words = text_value(f"a row for a partition of {table.full_name} has another {key.name} than that: ")
    failure = f"raise_error(concat({words}, coalesce(cast({quoted(field.name)} AS string), 'null')))"
    return f"if({given} <=> cast({constant} AS {kind}), {constant}, {failure})"


def full_values(table: Table, partition: PartitionSpec | None) -> tuple[str | None, ...]:
    """As `spec_values`, of exactly one partition; of no specification for an unpartitioned table.

    Raises ColumnError for a specification of several partitions.
    """
    values = spec_values(table, partition or {})
    if len(values) != len(table.partition_keys):
        keys = ", ".join(key.name for key in table.partition_keys)
        raise ColumnError(f"{table.full_name} is partitioned by ({keys}): give a value of each in `partition`")
    return values


def matching_names(table: Table, partition: PartitionSpec, names: Iterable[str]) -> list[str]:
    """Those of the partitions `names` that the specification covers.

    Raises NoSuchObjectError if there is none, ColumnError as `spec_values`.
    """
    values = spec_values(table, partition)
    found = [name for name in names if values_of(table, name)[: len(values)] == values]
    if not found:
        raise NoSuchObjectError(f"{table.full_name} has no partition ({_words(partition)})")
    return found


def _words(partition: PartitionSpec) -> str:
    return ", ".join(f"{key}={value}" for key, value in partition.items())


def key_text(key: Column, value: str) -> str:
    """The SQL of the text that names a partition of `value`, SQL for a partition key; null for the default one.

    A value that would be read as another one fails the statement: the text that stands for null in names, which Hive
    refuses as well, bytes that are no UTF-8 or have a zero among them, which no name of a directory holds, and a time
    in the hour that clocks go back to.
    """
    kind = spark_type(key.type)
    if isinstance(kind, t.TimestampType):
        return wall_clock(value, f"partition key {key.name}")
    text = f"cast({value} AS string)"
    if not isinstance(kind, t.StringType | t.BinaryType):
        return text
    no_name = text_value(f"bytes that are no UTF-8, or 0 among them, cannot be a value of partition key {key.name}")
    words = f"{DEFAULT_PARTITION} is no value of partition key {key.name}: it stands for null there, so write null"
    failure = f"raise_error({text_value(words)})"
    # A char stands here with its whole length.
    return (
        f"CASE WHEN rtrim({text}) = {text_value(DEFAULT_PARTITION)} THEN {failure} "
        f"WHEN NOT is_valid_utf8({text}) OR instr({text}, CAST(X'00' AS string)) > 0 THEN raise_error({no_name}) "
        f"ELSE {text} END"
    )
