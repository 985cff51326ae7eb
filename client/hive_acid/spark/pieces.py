"""What a compaction has written in pieces, several tasks for one bucket: whose they are, their order, one file of them.

Pieces are joined by their stripes (`hive_acid.format.orc_join`), so one bucket is merged by as many tasks as a whole
table, and nothing is uncompressed twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hive_acid import files
from hive_acid.footers import DataFilePath, Footers, end_of, uncompressed
from hive_acid.format.orc_join import joined_tail, orc_part
from hive_acid.format.orc_tail import MAGIC
from hive_acid.spark.file_order import out_of_order
from hive_acid.spark.lanes import bounds_in, bucket_of


def by_bucket(pieces: Sequence[DataFilePath]) -> dict[int, list[DataFilePath]] | None:
    """The pieces with rows of each bucket, in the order of their keys.

    None unless each has rows of one bucket, and all rows of a bucket stand in order.
    """
    tails = Footers().read(pieces)
    found = [(bounds_in(tail), piece) for piece, tail in zip(pieces, tails, strict=True) if tail.rows]
    placed: dict[int, list[tuple[tuple[int, ...], tuple[int, ...], DataFilePath]]] = {}
    for bounds, piece in found:
        bucket = None if bounds is None else bucket_of(bounds)
        if bounds is None or bucket is None:
            return None
        placed.setdefault(bucket, []).append((*bounds, piece))
    for of_bucket in placed.values():
        of_bucket.sort(key=lambda one: one[0])
        # Bounds of three columns, each for itself: what lies behind another by them does so by its keys.
        if any(highest >= lowest for (_, highest, _), (lowest, _, _) in pairwise(of_bucket)):
            return None
    if out_of_order([piece.path for _, piece in found]):
        return None
    return {bucket: [piece for *_, piece in of_bucket] for bucket, of_bucket in placed.items()}


def join(pieces: Sequence[DataFilePath], target: str) -> None:
    """Make one file of several. Raises FormatError if they are not of one kind."""
    parts = [orc_part(end_of(piece), uncompressed) for piece in pieces]
    tail = joined_tail(parts)
    with files.create(target) as made:
        made.write(MAGIC)
        for piece, part in zip(pieces, parts, strict=True):
            files.copy_range(piece.path, part.begin, part.end, made)
        made.write(tail)
