"""The bucket merge plan: which files of a compaction need no shuffle, and mostly no sort.

Each bucket is read and written file after file: its files are sorted, and those of different writes seldom overlap: the
base has older write ids than the deltas, and each delta has one of its own. So large files are read as they are, and
only the small ones between them are sorted. A file of which all rows stay need not even be read. What lies in a file is
told by the statistics in its tail.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from hive_acid.filesystem.footers import DataFilePath
from hive_acid.format.orc.tail import Tail
from hive_acid.format.rows import decode_bucket
from hive_acid.format.state import DataDirectory, DataFile, DirectoryState
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.compaction_plan import run_bytes, why_not_opened
from hive_acid.spark.read.listing import PartitionState, is_raw
from hive_acid.spark.read.skipping import key_ranges, tails_of

Key = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Files of `size` bytes that are read together, by their paths; sorted after that unless `in_order`.

    What is `kept` is one file that becomes part of the new one as it is. `rows` is how many are in all files; pyarrow
    reads and writes them if they are `plain`. The paths are in the order of the files' first keys; if files `overlap`
    some keys of one lie between those of another.
    """

    paths: tuple[str, ...]
    size: int
    rows: int
    in_order: bool
    overlap: bool
    plain: bool
    kept: bool = False


@dataclass(frozen=True, slots=True)
class BucketMergePlan:
    """The files of one bucket, in runs whose keys follow each other; `size` in bytes."""

    bucket: int
    runs: tuple[Run, ...]
    size: int

    @property
    def kept(self) -> list[str]:
        """The paths of files that are kept."""
        return [path for run in self.runs if run.kept for path in run.paths]

    @property
    def plain(self) -> bool:
        """Whether pyarrow reads and writes all rows, those of kept files as well."""
        return all(run.plain for run in self.runs)

    def written(self) -> list[list[Run]]:
        """The runs that are read and written, those together between which no file is kept."""
        return [list(runs) for kept, runs in groupby(self.runs, key=lambda run: run.kept) if not kept]

    def of_kept(self) -> BucketMergePlan:
        """What is kept, to be read and written all the same."""
        return replace(self, runs=tuple(replace(run, kept=False) for run in self.runs if run.kept))

    def keeping(self, paths: Collection[str] = ()) -> BucketMergePlan:
        """The same with no files kept but those of `paths`."""
        return replace(self, runs=tuple(replace(run, kept=run.kept and run.paths[0] in paths) for run in self.runs))


@dataclass(frozen=True, slots=True)
class _File:
    """A file with rows, and two keys between which its own lie, inclusive."""

    path: str
    size: int
    rows: int
    lowest: Key
    highest: Key
    kept: bool
    plain: bool


class Unfit(NamedTuple):
    """That files cannot be merged bucket by bucket, and why."""

    why: str


def bucket_merge_plans(
    partition: PartitionState,
    keeps: Callable[[DataDirectory, Tail], bool],
    is_plain: Callable[[Tail], bool],
    limits: Limits,
) -> list[BucketMergePlan] | Unfit:
    """The plans of a partition's buckets, none if its files do not say what lies in them, or are not where they belong.

    A file that one `keeps` may become part of the new one as it is; one that `is_plain` is read and written by pyarrow
    if it is not kept.
    """
    state = partition.state
    directories = [directory for directory in state.data for _ in directory.files]
    found = [file for directory in state.data for file in directory.files]
    if state.originals or any(map(is_raw, found)):
        return Unfit("there are files without ACID columns")
    if why := why_not_opened(len(found), limits):
        return Unfit(why)
    if any(file.bucket is None for file in found) or any(of.unfinished for of in state.data):
        return Unfit("a file is still written, or its name tells no bucket")
    tails = tails_of([DataFilePath.of(partition.location, file) for file in found])
    if tails is None:
        return Unfit("a footer cannot be read here")
    by_bucket: dict[int, list[_File]] = {}
    for directory, file, tail in zip(directories, found, tails, strict=True):
        if not tail.rows:
            continue
        bounds = bounds_in(tail)
        if bounds is None or bucket_of(bounds) != file.bucket:
            return Unfit("a footer does not say that its file has rows of one bucket")
        of = _File(file.path, file.size, tail.rows, *bounds, keeps(directory, tail), is_plain(tail))
        by_bucket.setdefault(file.bucket or 0, []).append(of)
    together = run_bytes(sum(file.size for of in by_bucket.values() for file in of), limits)
    return [
        BucketMergePlan(bucket, tuple(_runs(of, together)), sum(file.size for file in of))
        for bucket, of in sorted(by_bucket.items())
    ]


def restricted(state: DirectoryState, paths: Iterable[str]) -> DirectoryState:
    """`state` with no data files but those of `paths`."""
    wanted = set(paths)

    def left(directory: DataDirectory) -> DataDirectory:
        kept: tuple[DataFile, ...] = tuple(file for file in directory.files if file.path in wanted)
        return directory if len(kept) == len(directory.files) else replace(directory, files=kept, is_whole=False)

    base = left(state.base) if state.base else None
    deltas = tuple(found for found in map(left, state.insert_deltas) if found.files)
    return replace(state, base=base if base and base.files else None, insert_deltas=deltas, originals=())


def bounds_in(tail: Tail) -> tuple[Key, Key] | None:
    """Two keys between which those of a file's rows lie, inclusive; None if that is not known."""
    lowest: list[int] = []
    highest: list[int] = []
    for low, high in key_ranges(tail):
        if not isinstance(low, int) or not isinstance(high, int):
            return None
        lowest.append(low)
        highest.append(high)
    return tuple(lowest), tuple(highest)


def has_rows_of(tail: Tail, sources: Iterable[tuple[int, int]]) -> bool:
    """Whether a file may have rows of some (write id, bucket property)."""
    bounds = bounds_in(tail)
    if bounds is None:
        return True
    (write_id, bucket, _), (last_write_id, last_bucket, _) = bounds
    return any(write_id <= of <= last_write_id and bucket <= by <= last_bucket for of, by in sources)


def bucket_of(bounds: Iterable[Key]) -> int | None:
    """The bucket to which all rows between two keys belong, None if that is not known."""
    buckets = {decode_bucket(key[1])[0] for key in bounds}
    return buckets.pop() if len(buckets) == 1 else None


def _runs(of_bucket: Sequence[_File], together: int) -> list[Run]:
    """Files with the keys of a bucket in turn, about `together` bytes in each run, those that overlap in the same.

    A file is kept if it overlaps with none.
    """
    runs: list[list[list[_File]]] = []
    left = 0
    for group in _groups(of_bucket):
        size = sum(file.size for file in group)
        kept = len(group) == 1 and group[0].kept
        if size <= left and not kept:
            runs[-1].append(group)
            left -= size
        else:
            runs.append([group])
            left = 0 if kept else together - size
    return list(map(_run, runs))


def _run(groups: Sequence[Sequence[_File]]) -> Run:
    found = [file for group in groups for file in group]
    return Run(
        tuple(file.path for file in found),
        sum(file.size for file in found),
        sum(file.rows for file in found),
        in_order=len(found) == 1,
        overlap=len(groups) < len(found),
        plain=all(file.plain for file in found),
        kept=len(found) == 1 and found[0].kept,
    )


def _groups(of_bucket: Iterable[_File]) -> list[list[_File]]:
    """Files whose keys may lie between each other's, in the order of the groups' keys."""
    groups: list[list[_File]] = []
    highest: Key = ()
    for file in sorted(of_bucket, key=lambda file: file.lowest):
        if groups and file.lowest <= highest:
            groups[-1].append(file)
        else:
            groups.append([file])
        highest = max(highest, file.highest)
    return groups
