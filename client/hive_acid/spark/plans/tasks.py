"""In how many tasks, hence files, rows are read and written, and whether they are shuffled for it.

A shuffle costs as much as the writing itself, so rows are written where they are if that makes files of a good size.
What is asked only if it matters, since to answer it takes a job or a call, is given as a function.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hive_acid.spark.plans.choice import Choice, counted, size

SMALLEST_PART_BYTES = 16 * 1024 * 1024
"""Below this much input a task of its own does not pay: small inserts are one file, in bucket 0."""

FILES_PER_PARTITION = 4
"""Up to so many tasks write to partitions without a shuffle: each of them may write a file to each partition."""

_MORE_FILES = 2
"""So many times the files that are wanted are as well, if their rows come in so many parts."""

_SCANNED_BYTES, _OPENED_BYTES = 128 * 1024 * 1024, 4 * 1024 * 1024
"""By Spark's defaults, the most that a task reads, and what each file counts on top of its size."""

_MOST_IN_PLACE = 16
"""Up to so many tasks write their rows without a shuffle if each has `_OPENED_BYTES`, in the mean, before a query drops
some of them: if it drops nearly all, there are so many small files. Where they have more than Spark's tasks do, files
cannot be divided between tasks, and a shuffle divides the rows.
"""


class Tasks(enum.Enum):
    """In how many tasks a table is read for a change."""

    FEW = "few"
    MANY = "many"


class Placing(enum.Enum):
    """Where rows are written."""

    IN_PLACE = "where they are"
    SHUFFLED = "after a shuffle"


class Estimate(NamedTuple):
    """What is known of a frame before it runs.

    `size_bytes` is the most that it can have, None if unknown; `is_exact` says that no row is dropped on the way;
    `is_placed` that the user has chosen the number of parts; `is_given` that all rows stand in the plan; `is_shuffled`
    that each row comes out of a shuffle of the query's own, whose parts Spark makes as large as it likes. `read_bytes`
    is what its sources have, None if unknown, and `leaves` says of each whether it is read in the tasks in which the
    rows come.
    """

    size_bytes: int | None
    is_exact: bool
    is_placed: bool
    is_given: bool = False
    is_shuffled: bool = False
    read_bytes: int | None = None
    leaves: tuple[bool, ...] = ()

    @property
    def known_bytes(self) -> int | None:
        """How much there is at some stage, at most: in the end, or else in the sources."""
        return self.read_bytes if self.size_bytes is None else self.size_bytes


class Distribution(NamedTuple):
    """How rows are written: by at most `tasks` tasks (None: as many as there are), with or without a shuffle."""

    tasks: int | None
    shuffled: bool


def distribution_of(
    found: Estimate,
    *,
    divided: bool,
    target_bytes: int,
    cores: Callable[[], int],
    parts: Callable[[], int | None] = lambda: None,
) -> tuple[Distribution, Choice[Placing]]:
    """How a frame is to be written; `divided` says that its rows go to several partitions.

    It comes in so many `parts`, None if that is not known. They are put together only where that pays: Spark makes rows
    anew for it, which is a twentieth of a load.
    """
    if found.is_placed:
        return Distribution(None, shuffled=False), Choice(Placing.IN_PLACE, "the query has placed them")
    if found.is_shuffled and not divided:
        why = "they come out of a shuffle of the query, in parts that Spark chooses by what they hold"
        return Distribution(None, shuffled=False), Choice(Placing.IN_PLACE, why)
    tasks = None if found.size_bytes is None else _tasks(found.size_bytes, target_bytes, cores)
    most = 0 if divided else _most_in_place(found, tasks)
    known = parts() if most else None
    of = found.known_bytes
    if known is not None and known <= most and (found.is_exact or (of or 0) <= known * 2 * _SCANNED_BYTES):
        about = f"{'' if of is None else f'{size(of)} '}in {counted(known, 'task')}, as they come"
        return Distribution(None, shuffled=False), Choice(Placing.IN_PLACE, about)
    if tasks is None or found.size_bytes is None:
        why = "Spark knows no size of the query's result, and chooses by what the shuffle holds"
        return Distribution(None, shuffled=True), Choice(Placing.SHUFFLED, why)
    about = f"{size(found.size_bytes)}{'' if found.is_exact else ' at most'} in {counted(tasks, 'task')}"
    if tasks > 1 and not found.is_exact:
        return Distribution(tasks, shuffled=True), Choice(Placing.SHUFFLED, about)
    if tasks > FILES_PER_PARTITION and divided:
        why = f"{about}, of which each has all partitions"
        return Distribution(tasks, shuffled=True), Choice(Placing.SHUFFLED, why)
    return Distribution(tasks, shuffled=False), Choice(Placing.IN_PLACE, about)


def _most_in_place(found: Estimate, tasks: int | None) -> int:
    """In how many tasks rows may come that are written there; `tasks` is how many are wanted, if that is known."""
    if found.is_exact and tasks is not None and tasks > 1:
        return tasks * _MORE_FILES  # to put them together is no shuffle
    large = min(_MOST_IN_PLACE, (found.known_bytes or 0) // _OPENED_BYTES)
    # One task takes no shuffle, of any size; where one is wanted anyway nobody has to count.
    return max(1, large) if tasks is None else large if large > 1 else 0


def _tasks(size_bytes: int, target_bytes: int, cores: Callable[[], int]) -> int:
    """Files of the target size, but smaller ones where cores would be idle."""
    wanted = -(-size_bytes // target_bytes)
    most = -(-size_bytes // SMALLEST_PART_BYTES)
    return max(1, wanted, min(most, cores()) if most > wanted else wanted)


def tasks_of(sizes: Sequence[int], cores: Callable[[], int]) -> Choice[Tasks]:
    """Whether files of these sizes are read in so few tasks, at no loss, that each may write files of its own.

    Many small files are more tasks for Spark; on few cores they are as well read in few.
    """
    total = sum(sizes)
    about = f"{counted(len(sizes), 'file')}, {size(total)}"
    in_all = total + len(sizes) * _OPENED_BYTES
    if in_all <= FILES_PER_PARTITION * _OPENED_BYTES:
        return Choice(Tasks.FEW, about)
    if total > FILES_PER_PARTITION * _SCANNED_BYTES:
        return Choice(Tasks.MANY, f"{about}, more than {size(FILES_PER_PARTITION * _SCANNED_BYTES)}")
    if cores() <= FILES_PER_PARTITION:
        return Choice(Tasks.FEW, f"{about}, on {counted(cores(), 'core')}")
    if in_all <= FILES_PER_PARTITION * min(_SCANNED_BYTES, max(_OPENED_BYTES, in_all // cores())):
        return Choice(Tasks.FEW, f"{about}, on {counted(cores(), 'core')}")
    return Choice(Tasks.MANY, f"{about}, on {counted(cores(), 'core')}")
