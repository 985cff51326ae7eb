"""Stripe concatenation: the files of which a compaction makes one for each bucket, their order, and that one file.

Their stripes are copied (`hive_acid.format.orc.join`), so nothing is uncompressed for it. They are what tasks
have written, several for one bucket, and files of the table that stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath, end_of, uncompressed
from hive_acid.format.orc.join import OrcPart, joined_tail, orc_part
from hive_acid.format.orc.tail import MAGIC, read_tail
from hive_acid.spark.compact.bucket_merge_plan import Key, bounds_in, bucket_of
from hive_acid.spark.compact.file_order import out_of_order

_THREADS = 8


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with rows, and two keys between which its own lie, inclusive; None if it does not say."""

    path: DataFilePath
    part: OrcPart
    bounds: tuple[Key, Key] | None

    @property
    def bucket(self) -> int | None:
        """The bucket of all rows, None if that is not known."""
        return None if self.bounds is None else bucket_of(self.bounds)


def segments_of(paths: Sequence[DataFilePath]) -> list[Segment]:
    """The files at `paths`, without those that have no rows. Raises FormatError for a file that cannot be joined."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="segment") as pool:
        return [segment for segment in pool.map(_segment, paths) if segment.part.rows]


def by_bucket(segments: Iterable[Segment]) -> dict[int, list[Segment]] | None:
    """The segments of each bucket, in the order of their keys.

    None unless each has rows of one bucket, and all rows of a bucket stand in order.
    """
    placed: dict[int, list[tuple[Key, Key, Segment]]] = {}
    for segment in segments:
        bucket = segment.bucket
        if segment.bounds is None or bucket is None:
            return None
        placed.setdefault(bucket, []).append((*segment.bounds, segment))
    for of_bucket in placed.values():
        of_bucket.sort(key=lambda one: one[0])
        # Bounds of three columns, each for itself: what lies behind another by them does so by its keys.
        if any(highest >= lowest for (_, highest, _), (lowest, _, _) in pairwise(of_bucket)):
            return None
    found = {bucket: [segment for *_, segment in of_bucket] for bucket, of_bucket in placed.items()}
    if out_of_order([segment.path.path for of_bucket in found.values() for segment in of_bucket]):
        return None
    return found


def mixed(segments: Iterable[Segment]) -> set[int | None]:
    """The buckets whose segments are not all of one kind, and cannot be concatenated."""
    kinds: dict[int | None, set[object]] = {}
    for segment in segments:
        kinds.setdefault(segment.bucket, set()).add(segment.part.kind)
    return {bucket for bucket, of_bucket in kinds.items() if len(of_bucket) > 1}


def concatenate(segments: Sequence[Segment], target: str) -> Iterator[int]:
    """Make one file of several; the bytes of each, once they are written.

    Raises FormatError if they are not of one kind.
    """
    tail = joined_tail([segment.part for segment in segments])
    with files.create(target) as made:
        made.write(MAGIC)
        for segment in segments:
            files.copy_range(segment.path.path, segment.part.begin, segment.part.end, made)
            yield segment.part.end - segment.part.begin
        made.write(tail)


def _segment(path: DataFilePath) -> Segment:
    end = end_of(path)
    part = orc_part(end, uncompressed)
    return Segment(path, part, bounds_in(read_tail(end, uncompressed)) if part.rows else None)
