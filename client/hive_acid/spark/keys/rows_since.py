"""The rows of some writes of a table, as they are by now: of who came between a snapshot and a commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.table import Table
from hive_acid.format.state import DataDirectory
from hive_acid.spark.limits import Limits
from hive_acid.spark.read.listing import table_state
from hive_acid.spark.read.table_frame import KEY_COLUMNS, read_rows
from hive_acid.transactions.changed_rows import Since

MOST_WRITES = 1_000
"""More writes than these are not looked through before a commit."""


def rows_since(
    spark: SparkSession,
    table: Table,
    since: Since,
    writes: Collection[int],
    places: Mapping[str, str],
    *,
    skipping: bool,
    limits: Limits,
) -> DataFrame:
    """The rows of `writes` that nobody has deleted by now, in the partitions at `places`, by their names.

    An unpartitioned table has one, "". The frame has the hidden columns of `read_rows`. Raises what `table_state`
    raises.
    """
    named = places if table.partition_keys else {}
    first = min(writes)

    def may_have_some(found: DataDirectory) -> bool:
        return found.directory.max_write_id >= first

    state = table_state(table, named, since.now, since.snapshot, only_these=bool(named))
    state = replace(
        state,
        partitions=tuple(of.with_data(may_have_some, originals=False) for of in state.partitions),
        skipping=skipping,
        limits=limits,
    )
    return read_rows(spark, state).where(f"{KEY_COLUMNS[0]} IN ({', '.join(map(str, sorted(writes)))})")
