"""Static partition specifications: ``{"year": 2020, "month": "1"}`` to the values and names of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import Table
from hive_acid.errors import ColumnError, NoSuchObjectError
from hive_acid.format.partitions import parse_partition_name

PartitionSpec = Mapping[str, object]
"""Values of the first partition keys, or of all, by their names; None is the default partition."""


def spec_values(table: Table, partition: PartitionSpec) -> tuple[str | None, ...]:
    """The values of the specification as texts, in the order of the keys.

    Raises ColumnError unless it names the first partition keys of the table, and nothing else.
    """
    given = {key.lower(): value for key, value in partition.items()}
    keys = [key.name for key in table.partition_keys]
    if set(given) != set(keys[: len(given)]):
        raise ColumnError(
            f"partition ({', '.join(partition)}) of {table.full_name} must name its partition keys, the first of its "
            f"partition columns ({', '.join(keys) or 'it has none'}) first"
        )
    return tuple(_text(given[key]) for key in keys[: len(given)])


def with_constants(
    table: Table, frame: DataFrame, partition: PartitionSpec | None
) -> tuple[DataFrame, tuple[str | None, ...] | None]:
    """`frame` with the partition columns that the specification gives, and its values if they name one partition.

    So are none for an unpartitioned table. Raises ColumnError for a column that is given by both, and as `spec_values`.
    """
    static = spec_values(table, partition or {})
    named = [key.name for key in table.partition_keys[: len(static)]]
    if doubled := {name.lower() for name in frame.columns} & set(named):
        raise ColumnError(f"{min(doubled)} of {table.full_name} is given by the partition and by the frame, too")
    constants = [F.lit(value).cast("string").alias(name) for name, value in zip(named, static, strict=True)]
    return frame.select("*", *constants), static if len(static) == len(table.partition_keys) else None


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
    found = [name for name in names if tuple(value for _, value in parse_partition_name(name))[: len(values)] == values]
    if not found:
        raise NoSuchObjectError(f"{table.full_name} has no partition ({_words(partition)})")
    return found


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None or value == "" else str(value)


def _words(partition: PartitionSpec) -> str:
    return ", ".join(f"{key}={value}" for key, value in partition.items())
