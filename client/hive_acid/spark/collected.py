"""The keys of a few rows, brought to the client: a small DELETE then needs no write by Spark.

To find a hundredth of a table's rows costs less than to have Spark write down what was found: files in directories of
their own, code that is compiled for them, a process of Hadoop's for each local file. So the keys come back as columns
of Arrow, and the client writes the delete files (`hive_acid.format.orc_deletes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat

from pyspark.sql import DataFrame

from hive_acid.format.orc_deletes import Event
from hive_acid.spark.read import KEY_COLUMNS
from hive_acid.spark.spread import FILES_PER_PARTITION
from hive_acid.spark.stage import Values

MOST_KEYS = 200_000
"""So many rows, in all partitions, are brought to the client at most: some 20 MB there."""

_TURN = "__acid_turn"
_NUMBER_IN_TASK = f"monotonically_increasing_id() & {(1 << 33) - 1}"


def collected(rows: DataFrame, partition_keys: Sequence[str], write_id: int) -> Mapping[Values, list[Event]] | None:
    """The events by which `write_id` deletes `rows`, a frame with the hidden columns of `read_rows`.

    They are in order, by the values of their partition.

    `partition_keys` are the columns with the texts of these values. None if there are more than `MOST_KEYS`; no task
    brings many more than that.
    """
    texts = [f"coalesce({key}, '') AS {key}" for key in partition_keys]
    numbered = rows.coalesce(FILES_PER_PARTITION).selectExpr(*KEY_COLUMNS, *texts, f"{_NUMBER_IN_TASK} AS {_TURN}")
    table = numbered.where(f"{_TURN} <= {MOST_KEYS}").toArrow()
    if table.num_rows > MOST_KEYS:
        return None
    write_ids, buckets, row_ids, *values = (table.column(name).to_pylist() for name in (*KEY_COLUMNS, *partition_keys))
    found: dict[Values, list[Event]] = {}
    events = zip(write_ids, buckets, row_ids, repeat(write_id, len(row_ids)), strict=True)
    if not values:
        return {(): sorted(events)} if write_ids else {}
    for event, of in zip(events, zip(*values, strict=True), strict=True):
        found.setdefault(of, []).append(event)
    return {tuple(text or None for text in of): sorted(of_partition) for of, of_partition in found.items()}
