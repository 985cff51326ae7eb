"""How a table is read: what is left out, and how the rows that are deleted are kept out of the rest."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice, counted, size

UNKNOWN = -1
"""A number that was looked for and cannot be known here."""


class Deletes(enum.Enum):
    """How deleted rows are kept out."""

    NONE = "none"
    LOOK_UP = "look-up"
    BROADCAST_JOIN = "broadcast join"
    SHUFFLED_JOIN = "shuffled join"
    CALLER = "left to the statement"


class Scans(enum.Enum):
    """How many scans read the files that deletes reach, and those that they do not."""

    ONE = "one"
    APART = "one for each kind of files"


class Reach(enum.Enum):
    """How it is found out which files deletes reach."""

    WRITES = "by write ids"
    KEYS = "by the ids in footers"


class Analysis(enum.Enum):
    """Where Spark's analysed plan of the table comes from."""

    KEPT = "kept"
    ANEW = "made anew"


class Counting(enum.Enum):
    """Where the number of a table's rows comes from."""

    FOOTERS = "footers"
    ROWS = "rows"


# --- deletes -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeleteFacts:
    """What is known of delete files: nobody has looked at what is None.

    `unread` are those that this process has not read yet, `events` is what footers say, or `UNKNOWN`, `told` of how
    many of these footers also say which rows they delete. `placed` says
    that the partition of each row can be told, `finished` that nobody still writes, `readable` that all could be read
    here, `visible` that all of their writes are in the snapshot, `fits` that a bitmap of limited size holds them.
    """

    files: int = 0
    size_bytes: int = 0
    placed: bool = True
    finished: bool = True
    unread: int | None = None
    events: int | None = None
    told: int = 0
    readable: bool | None = None
    visible: bool | None = None
    fits: bool | None = None


def why_not_looked_up(known: DeleteFacts, limits: Limits) -> str | None:
    """Why deletes are not looked up, by what is known so far; None if nothing speaks against it."""
    if not known.placed:
        return "the path of a partition has characters that Spark may write in another way"
    if not known.finished:
        return "a delete file is still written, or its time of change is not known"
    if known.unread is not None and known.unread > limits.delete_files:
        return f"{counted(known.unread, 'delete file')} would have to be read, more than {limits.delete_files:,}"
    if known.events == UNKNOWN:
        return "the footer of a delete file cannot be read here"
    if known.events is not None and known.events - known.told > limits.delete_events:
        return f"{counted(known.events - known.told, 'delete event')}, more than {limits.delete_events:,}"
    if known.readable is False:
        return "a delete file cannot be read here"
    if known.visible is False:
        return "some of the writes in a delete file are not in the snapshot"
    if known.fits is False:
        return f"the bitmap would have more than {limits.delete_words:,} words, or ids that it cannot hold"
    return None


def deletes_by(known: DeleteFacts | None, limits: Limits) -> Choice[Deletes]:
    """How the rows are kept out that delete files name, of which all is known; None if none reach what is read."""
    if known is None:
        return Choice(Deletes.NONE, "no delete event reaches what is read")
    why = why_not_looked_up(known, limits)
    if why is None:
        return Choice(
            Deletes.LOOK_UP, f"{counted(known.events or 0, 'delete event')} in {counted(known.files, 'file')}"
        )
    if known.size_bytes <= limits.broadcast_bytes:
        return Choice(Deletes.BROADCAST_JOIN, why)
    return Choice(
        Deletes.SHUFFLED_JOIN,
        f"{why}; {size(known.size_bytes)} of delete files, more than {size(limits.broadcast_bytes)}",
    )


LEFT_TO_CALLER = Choice(Deletes.CALLER, "the client knows the deleted rows, and leaves them out of what it has found")


def scans_for(*, keeps_few: bool, can_join: bool, looked_up: bool | None) -> Choice[Scans] | None:
    """How many scans read files that deletes reach and others; None if that takes to know whether they are looked up.

    `keeps_few` is of a statement that keeps few rows, and `can_join` says that rows of all partitions can be joined
    with the deletes.
    """
    if keeps_few and can_join:
        return Choice(Scans.ONE, "few rows are kept: to ask each whether it is deleted costs less than a scan more")
    if looked_up is None:
        return None
    if looked_up:
        return Choice(Scans.ONE, "to look up each row costs less than a scan more")
    return Choice(Scans.APART, "only what deletes reach is joined with them")


def reach_by(*, skips: bool, raw: bool, unopened: int | None, limits: Limits) -> Choice[Reach]:
    """How it is found out which files of a partition deletes reach.

    `skips` says that statistics are asked at all, `raw` that there are files without ACID columns, `unopened` how many
    footers would have to be opened: while that is None, nobody has looked, and nothing else speaks against footers.
    """
    if not skips:
        return Choice(Reach.WRITES, "the session does not ask statistics")
    if raw:
        return Choice(Reach.WRITES, "there are files without ACID columns")
    if unopened == UNKNOWN:
        return Choice(Reach.WRITES, "a footer cannot be read here")
    if unopened is not None and unopened > limits.deletes_reach_files:
        return Choice(
            Reach.WRITES,
            f"{counted(unopened, 'footer')} would have to be opened, more than {limits.deletes_reach_files:,}",
        )
    return Choice(Reach.KEYS, "few footers have to be opened")


# --- files, plans and counts ---------------------------------------------------------------------


def footers_asked(unknown: Iterable[int], limits: Limits) -> int:
    """Of how many files, the largest first, the footers are asked whether rows may meet a condition.

    `unknown` says of each whether it would have to be opened for it, 1 or 0.
    """
    opened = asked = 0
    for new in unknown:
        opened += new
        if opened > limits.skipping_files:
            break
        asked += 1
    return asked


def why_not_cached(*, over_connect: bool, files: int, limits: Limits) -> str | None:
    """Why the analysed plan of a table is not cached; None if it is."""
    if over_connect:
        return "over Connect a plan is words until it runs"
    if files > limits.cached_plan_files:
        return f"{counted(files, 'file')}, more than {limits.cached_plan_files:,}"
    return None


def analysis_of(*, unchanged: bool) -> Choice[Analysis]:
    """Where the analysed plan of a table comes from; `unchanged` says that one of this state is cached."""
    if unchanged:
        return Choice(Analysis.KEPT, "table, snapshot and settings are those of the read before")
    return Choice(Analysis.ANEW, "no plan of this state of the table is kept")


OF_CONDITION = Choice(Analysis.ANEW, "plans of some of a table's rows are not kept")


def counting_by(
    *,
    written: bool,
    unopened: int | None = None,
    deletes: DeleteFacts | None = None,
    numbered: bool | None = None,
    limits: Limits,
) -> Choice[Counting]:
    """Where the number of rows comes from.

    `written` says that each event in the files is a row that is seen, or one that is deleted, and that statistics are
    asked; `unopened` is as in `reach_by`. `deletes` are of what deletes reach, and `numbered` says that each row that
    these name is surely in some file: files without gaps between their row ids tell that.
    """
    if not written:
        return Choice(Counting.ROWS, "rows are not seen, or statistics are not asked")
    if unopened == UNKNOWN:
        return Choice(Counting.ROWS, "a footer cannot be read here")
    if deletes is not None and (why := why_not_looked_up(deletes, limits)) is not None:
        return Choice(Counting.ROWS, why)
    if numbered is False:
        return Choice(Counting.ROWS, "footers do not tell whether all rows that are deleted were there")
    if unopened is not None and unopened > limits.counted_files:
        return Choice(
            Counting.ROWS, f"{counted(unopened, 'footer')} would have to be opened, more than {limits.counted_files:,}"
        )
    if deletes is not None:
        return Choice(Counting.FOOTERS, "it is known which rows are deleted, and few footers have to be opened")
    return Choice(Counting.FOOTERS, "nothing is deleted, and few footers have to be opened")


# --- the plans -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CountPlan:
    """How the rows of a table are counted."""

    table: str
    counting: Choice[Counting]

    def lines(self) -> list[str]:
        """As it is shown."""
        return [f"Count {self.table}", f"  rows: {self.counting}"]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a condition has left out; `unasked` are files whose footers were too many to be asked."""

    partitions: int = 0
    files: int = 0
    unasked: int = 0


@dataclass(frozen=True, slots=True)
class PlacePlan:
    """How partitions are read that are read together: those whose paths tell their values, or one other one.

    `reached` and `unreached` are numbers of files by whether deletes may name their rows, `gone` of those that are not
    read, since footers say that all of their rows are deleted; with `latest` the newest
    version of each row is looked for, as Hive before version 3 wrote updates.
    """

    name: str
    partitions: int
    reached: int
    unreached: int
    deletes: Choice[Deletes]
    scans: Choice[Scans] | None = None
    reach: tuple[Choice[Reach], ...] = ()
    latest: bool = False
    gone: int = 0

    def lines(self) -> list[str]:
        """As it is shown."""
        parts = [f"{counted(self.reached, 'file')} that deletes may reach, {self.unreached:,} others"]
        if self.gone:
            parts.append(f"{counted(self.gone, 'file')} of deleted rows alone left out")
        if self.latest:
            parts.append("updates among its inserts, of Hive before version 3: the latest version of each row")
        return [
            f"  {self.name}: {'; '.join(parts)}",
            *(f"    reach: {choice}" for choice in self.reach),
            f"    deletes: {self.deletes}",
            *([f"    scans: {self.scans}"] if self.scans is not None else []),
        ]


@dataclass(frozen=True, slots=True)
class DirectoriesPlan:
    """How partitions of an insert-only table are read."""

    partitions: int

    def lines(self) -> list[str]:
        """As it is shown."""
        return ["  insert-only: by Spark's own reader, since the snapshot chooses whole directories"]


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How a table is read. `skips_groups` says that row groups are left out by a condition, too."""

    table: str
    partitions: int
    files: int
    size_bytes: int
    left_out: LeftOut
    skips_groups: bool
    places: tuple[PlacePlan | DirectoriesPlan, ...]
    analysis: Choice[Analysis] | None = None

    def lines(self) -> list[str]:
        """As it is shown."""
        out = self.left_out
        asked = f", {out.unasked:,} of them unasked: too many footers" if out.unasked else ""
        return [
            f"Read {self.table}",
            f"  partitions: {self.partitions:,} of {self.partitions + out.partitions:,}",
            f"  files: {self.files:,} of {self.files + out.files:,} in them, {size(self.size_bytes)}{asked}",
            f"  row groups: {'those in which a row may meet the condition' if self.skips_groups else 'all'}",
            *([f"  analysed plan: {self.analysis}"] if self.analysis is not None else []),
            *(line for place in self.places for line in place.lines()),
        ]
