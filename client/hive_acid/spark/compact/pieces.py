"""The files of which a compaction makes one for each bucket: whose they are, their order, and that one file.

Files are joined by their stripes (`hive_acid.format.orc.join`), so nothing is uncompressed for it. They are what tasks
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
from hive_acid.spark.compact.file_order import out_of_order
from hive_acid.spark.compact.lanes import Key, bounds_in, bucket_of

_THREADS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A file with rows, and two keys between which its own lie, inclusive; None if it does not say."""

    path: DataFilePath
    part: OrcPart
    bounds: tuple[Key, Key] | None

    @property
    def bucket(self) -> int | None:
        """The bucket of all rows, None if that is not known."""
        return None if self.bounds is None else bucket_of(self.bounds)


def pieces_of(paths: Sequence[DataFilePath]) -> list[Piece]:
    """The files at `paths`, without those that have no rows. Raises FormatError for a file that cannot be joined."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="piece") as pool:
        return [piece for piece in pool.map(_piece, paths) if piece.part.rows]


def by_bucket(pieces: Iterable[Piece]) -> dict[int, list[Piece]] | None:
    """The pieces of each bucket, in the order of their keys.

    None unless each has rows of one bucket, and all rows of a bucket stand in order.
    """
    placed: dict[int, list[tuple[Key, Key, Piece]]] = {}
    for piece in pieces:
        bucket = piece.bucket
        if piece.bounds is None or bucket is None:
            return None
        placed.setdefault(bucket, []).append((*piece.bounds, piece))
    for of_bucket in placed.values():
        of_bucket.sort(key=lambda one: one[0])
        # Bounds of three columns, each for itself: what lies behind another by them does so by its keys.
        if any(highest >= lowest for (_, highest, _), (lowest, _, _) in pairwise(of_bucket)):
            return None
    found = {bucket: [piece for *_, piece in of_bucket] for bucket, of_bucket in placed.items()}
    if out_of_order([piece.path.path for of_bucket in found.values() for piece in of_bucket]):
        return None
    return found


def mixed(pieces: Iterable[Piece]) -> set[int | None]:
    """The buckets whose pieces are not all of one kind, and cannot be joined."""
    kinds: dict[int | None, set[object]] = {}
    for piece in pieces:
        kinds.setdefault(piece.bucket, set()).add(piece.part.kind)
    return {bucket for bucket, of_bucket in kinds.items() if len(of_bucket) > 1}


def join(pieces: Sequence[Piece], target: str) -> Iterator[int]:
    """Make one file of several; the bytes of each, once they are written.

    Raises FormatError if they are not of one kind.
    """
    tail = joined_tail([piece.part for piece in pieces])
    with files.create(target) as made:
        made.write(MAGIC)
        for piece in pieces:
            files.copy_range(piece.path.path, piece.part.begin, piece.part.end, made)
            yield piece.part.end - piece.part.begin
        made.write(tail)


def _piece(path: DataFilePath) -> Piece:
    end = end_of(path)
    part = orc_part(end, uncompressed)
    return Piece(path, part, bounds_in(read_tail(end, uncompressed)) if part.rows else None)
