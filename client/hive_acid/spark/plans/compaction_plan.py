"""How the files of a partition are merged: who reads and writes rows and delete events, and what is copied."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice, counted, size
from hive_acid.spark.plans.read_plan import UNKNOWN, DeleteFacts

ROWS, DELETE_EVENTS = "rows", "delete events"
"""What is merged."""


class MergedBy(enum.Enum):
    """How rows, or delete events, become one file for each bucket."""

    REBALANCED = "Spark, divided anew"
    ARROW = "pyarrow, bucket by bucket"
    BUCKETS = "Spark, bucket by bucket"
    ONE_TASK = "Spark, in one task"
    SHUFFLED = "Spark, after a shuffle by bucket"
    CLIENT = "without Spark"
    JOINED = "files joined by their bytes"
    REWRITTEN = "Spark's own reader and writer"


# --- rows ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergeFacts:
    """What is known of the data files that are to be merged: nobody has looked at what is None.

    They have `size_bytes` in all, and their delete files `delete_bytes`. `checkable` says that the order of new files
    can be looked at. `unfit` is why the files do not say what lies in them. Of so many `buckets`, `kept` files become
    part of the new ones as they are; `plain` says that pyarrow can write the others, which have `written_bytes`, of
    which so many as `sorted_bytes` are sorted at a time.
    """

    size_bytes: int
    delete_bytes: int
    checkable: bool = True
    pre_hive_3: bool = False
    unfit: str | None = None
    buckets: int | None = None
    kept: int = 0
    plain: bool = False
    written_bytes: int = 0
    sorted_bytes: int = 0


def why_not_opened(footers: int, limits: Limits) -> str | None:
    """Why the footers of so many files are not read to find out what lies in each; None if they are."""
    if footers > limits.skipping_files:
        return f"{counted(footers, 'footer')} would have to be read, more than {limits.skipping_files:,}"
    return None


def rows_fit_arrow(columns: int, text_bytes: int, rows: int, limits: Limits) -> bool:
    """Whether pyarrow has the memory for `rows` of a file with so many columns, and so many bytes of texts in all."""
    return columns <= limits.arrow_columns and text_bytes <= limits.arrow_row_bytes * rows


def stripes_stay(stripes: int, size_bytes: int, limits: Limits) -> bool:
    """Whether stripes, which have so many bytes in all, are large enough to be copied as they are."""
    return size_bytes >= stripes * limits.kept_stripe_bytes


def is_taken_over(size_bytes: int, limits: Limits) -> bool:
    """Whether pyarrow writes a bucket of so much as a whole, rather than to have files of another writer copied."""
    return size_bytes <= limits.taken_over_bytes


def run_bytes(size_bytes: int, limits: Limits) -> int:
    """Up to which size files are read, and sorted, together, where all have so many bytes."""
    return max(limits.run_bytes, size_bytes // limits.runs)


def why_not_by_arrow(facts: MergeFacts, limits: Limits) -> str | None:
    """Why pyarrow does not write what is not kept; None if it does."""
    if not facts.plain:
        return "pyarrow could not write some of it without a loss"
    if facts.written_bytes > limits.arrow_bytes:
        return f"{size(facts.written_bytes)} to write, more than {size(limits.arrow_bytes)}"
    if facts.sorted_bytes > limits.arrow_sorted_bytes:
        return f"{size(facts.sorted_bytes)} to sort at a time, more than {size(limits.arrow_sorted_bytes)}"
    return None


def why_not_by_bucket(facts: MergeFacts, limits: Limits) -> str | None:
    """Why rows are not merged bucket by bucket, by what is known so far; None if nothing speaks against it."""
    if facts.delete_bytes > limits.broadcast_bytes:
        return f"{size(facts.delete_bytes)} of delete files are not broadcast, and their join leaves no order"
    if not facts.checkable:
        return "pyarrow is not here, which looks whether new files are in order"
    if facts.pre_hive_3:
        return "there are updates among the inserts, as Hive before version 3 wrote them"
    if facts.unfit is not None:
        return facts.unfit
    if facts.buckets == 0:
        return "no file has rows"
    if facts.buckets is None or why_not_by_arrow(facts, limits) is None:
        return None
    if facts.buckets > limits.few_buckets and facts.size_bytes < facts.buckets * limits.bucket_bytes:
        return f"{size(facts.size_bytes)} in {counted(facts.buckets, 'bucket')}: each has too little for a task"
    if facts.size_bytes <= limits.by_bucket_bytes:
        return f"{size(facts.size_bytes)}, for which one task is enough"
    return None


def sorted_by(size_bytes: int, names: int, limits: Limits, *, raw: bool = False) -> Choice[MergedBy]:
    """How Spark sorts and writes files of so many bytes, with so many names, each of a bucket.

    `raw` says that there are files without ACID columns, whose rows get their buckets as they are read.
    """
    if raw:
        return Choice(MergedBy.SHUFFLED, "there are files without ACID columns")
    if size_bytes <= limits.one_task_bytes:
        return Choice(MergedBy.ONE_TASK, f"{size(size_bytes)}, not more than {size(limits.one_task_bytes)}")
    if names <= 1:
        return Choice(MergedBy.ONE_TASK, "there is one bucket only")
    return Choice(MergedBy.SHUFFLED, f"{size(size_bytes)}, more than {size(limits.one_task_bytes)}")


def rows_by(facts: MergeFacts, otherwise: Choice[MergedBy], limits: Limits) -> Choice[MergedBy]:
    """How rows are merged of which all is known; `otherwise` is how with a sort of them all."""
    why = why_not_by_bucket(facts, limits)
    if why is not None:
        return Choice(otherwise.way, f"{otherwise.why}; not bucket by bucket: {why}")
    why = why_not_by_arrow(facts, limits)
    about = f"{counted(facts.buckets or 0, 'bucket')}, {size(facts.written_bytes)} to write"
    if why is None:
        return Choice(MergedBy.ARROW, about)
    return Choice(MergedBy.BUCKETS, f"{about}; not by pyarrow: {why}")


def rebalanced_into(buckets: int) -> Choice[MergedBy]:
    """How a rebalance writes."""
    return Choice(MergedBy.REBALANCED, f"into {counted(buckets, 'file')}")


def directories_by(kind: str, *, has_times: bool) -> Choice[MergedBy]:
    """How files of an insert-only table are made few; `has_times`: there are dates or timestamps."""
    if kind == "avro":
        return Choice(MergedBy.JOINED, "blocks of Avro are small anyway")
    if kind == "parquet" and has_times:
        return Choice(MergedBy.JOINED, "what a date or timestamp means, properties of the file tell, which stay so")
    return Choice(MergedBy.REWRITTEN, f"files of {kind}")


# --- delete events -------------------------------------------------------------------------------


def why_not_merged_here(known: DeleteFacts, limits: Limits) -> str | None:
    """Why delete events are not merged without Spark, by what is known so far; None if nothing speaks against it."""
    if not known.finished:
        return "a delete file is still written, or its time of change is not known"
    if known.events == UNKNOWN:
        return "the footer of a delete file cannot be read here"
    if known.events is not None and known.events > limits.merged_delete_events:
        return f"{counted(known.events, 'event')}, more than {limits.merged_delete_events:,}"
    if known.readable is False:
        return "a delete file cannot be read here"
    if known.visible is False:
        return "no event is visible"
    return None


def deletes_by(known: DeleteFacts, otherwise: Choice[MergedBy], limits: Limits) -> Choice[MergedBy]:
    """How delete events are merged of which all is known; `otherwise` is how Spark does it."""
    why = why_not_merged_here(known, limits)
    if why is None:
        return Choice(MergedBy.CLIENT, f"{counted(known.events or 0, 'event')} in {counted(known.files, 'file')}")
    return Choice(otherwise.way, f"{otherwise.why}; not without it: {why}")


# --- the plan ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """How `what` a directory has, `ROWS` or `DELETE_EVENTS`, is merged; bucket by bucket `kept` files are copied."""

    kind: str
    location: str
    what: str
    by: Choice[MergedBy]
    kept: int = 0

    @property
    def by_bucket(self) -> bool:
        """Whether each bucket is read and written file after file."""
        return self.by.way in (MergedBy.ARROW, MergedBy.BUCKETS)

    @property
    def phase(self) -> str:
        """In the few words of a job's progress, which SHOW COMPACTIONS shows."""
        return f"{self.what} ({self.by.way.value})"

    def lines(self) -> list[str]:
        """As it is shown."""
        copied = [f"  copied as they are: {counted(self.kept, 'file')}"] if self.kept and self.by_bucket else []
        return [f"{self.kind} compaction of {self.location}", f"  {self.what}: {self.by}", *copied]


@dataclass(frozen=True, slots=True)
class MergedInsteadPlan:
    """That rows are merged in another way than was planned."""

    kind: str
    location: str
    by: Choice[MergedBy]

    def lines(self) -> list[str]:
        """As it is shown."""
        return [f"{self.kind} compaction of {self.location}", f"  rows after all: {self.by}"]
