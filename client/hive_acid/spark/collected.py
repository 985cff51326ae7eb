"""The keys of a few rows, brought to the client: a small DELETE then needs no write by Spark.

To find a hundredth of a table's rows costs less than to have Spark write down what was found: files in directories of
their own, code that is compiled for them, a process of Hadoop's for each local file. So the keys come back as columns
of Arrow, and the client writes the delete files (`hive_acid.format.orc_deletes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat

from pyspark.sql import DataFrame

from hive_acid.format.deleted import Blocks, Source, holds
from hive_acid.format.orc_deletes import Event
from hive_acid.spark.read import KEY_COLUMNS
from hive_acid.spark.spread import FILES_PER_PARTITION
from hive_acid.spark.stage import Values

MOST_KEYS = 200_000
"""So many rows, in all partitions, are brought to the client at most: some 20 MB there."""

_TURN = "__acid_turn"
_NUMBER_IN_TASK = f"monotonically_increasing_id() & {(1 << 33) - 1}"


def collected(
    rows: DataFrame,
    partition_keys: Sequence[str],
    write_id: int,
    deleted: Mapping[Values, Mapping[Source, Blocks]] | None = None,
) -> Mapping[Values, list[Event]] | None:
    """The events by which `write_id` deletes `rows`, a frame with the hidden columns of `read_rows`.

    They are in order, by the values of their partition. Rows that are `deleted` already, if that is known of each
    partition, are left out.

    `partition_keys` are the columns with the texts of these values. None if there are more than `MOST_KEYS`, of which
    no task brings many more, or rows of a partition that `deleted` does not know.
    """
    texts = [f"coalesce({key}, '') AS {key}" for key in partition_keys]
    numbered = rows.coalesce(FILES_PER_PARTITION).selectExpr(*KEY_COLUMNS, *texts, f"{_NUMBER_IN_TASK} AS {_TURN}")
    table = numbered.where(f"{_TURN} <= {MOST_KEYS}").toArrow()
    if table.num_rows > MOST_KEYS:
        return None
    write_ids, buckets, row_ids, *values = (table.column(name).to_pylist() for name in (*KEY_COLUMNS, *partition_keys))
    found: dict[Values, list[Event]] = {}
    keys = zip(write_ids, buckets, row_ids, repeat(write_id, len(row_ids)), strict=True)
    if values:
        for event, of in zip(keys, zip(*values, strict=True), strict=True):
            found.setdefault(tuple(text or None for text in of), []).append(event)
    else:
        found[()] = list(keys)
    if deleted is not None:
        if not found.keys() <= deleted.keys():
            return None
        found = {of: [event for event in events if not holds(deleted[of], *event[:3])] for of, events in found.items()}
    return {of: sorted(events) for of, events in found.items() if events}
