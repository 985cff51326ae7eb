"""How the rows of a table are changed: who writes, and whether rows are moved for it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice, counted, size
from hive_acid.spark.plans.read_plan import DeleteFacts, why_not_looked_up
from hive_acid.spark.plans.tasks import Distribution, Estimate, Placing, Tasks, distribution_of


class SourceJoin(enum.Enum):
    """How a table is joined with the source of a statement."""

    BROADCAST = "broadcast"
    SHUFFLED = "joined by Spark's choice"
    BY_SIZE = "broadcast or joined by Spark's choice"


class Writer(enum.Enum):
    """Who writes the files of a change."""

    CLIENT = "the client"
    JOB = "a Spark job"


class DeletedBy(enum.Enum):
    """Who leaves out the rows that are deleted already."""

    CLIENT = "the client, of those that it gets"
    SCAN = "the scan"


# --- decisions -----------------------------------------------------------------------------------


def source_by(rows: int, size_bytes: int, limits: Limits) -> Choice[SourceJoin]:
    """How the source is joined, which has been computed: so many rows, of so many bytes in memory."""
    about = f"{counted(rows, 'row')}, {size(size_bytes)} in memory"
    if size_bytes <= limits.broadcast_bytes:
        return Choice(SourceJoin.BROADCAST, about)
    return Choice(SourceJoin.SHUFFLED, f"{about}, more than {size(limits.broadcast_bytes)}")


def source_of_any_size(limits: Limits) -> Choice[SourceJoin]:
    """How a source would be joined that is not computed: EXPLAIN shows the way of a small one."""
    about = f"the statement computes it first; up to {size(limits.broadcast_bytes)} in memory are broadcast"
    return Choice(SourceJoin.BY_SIZE, f"{about}, as is taken for granted here")


def deleted_by(
    *,
    may_fail: bool,
    tasks: Choice[Tasks] | None = None,
    pre_hive_3: bool = False,
    known: DeleteFacts | None = None,
    limits: Limits,
) -> Choice[DeletedBy]:
    """Who leaves out rows of a DELETE that are deleted already; what is None nobody has looked at yet.

    `may_fail` says that it has no condition, or one that may fail for rows that are gone.
    """
    if may_fail:
        return Choice(DeletedBy.SCAN, "the statement has no condition that can be asked of rows that are gone")
    if tasks is not None and tasks.way is Tasks.MANY:
        return Choice(DeletedBy.SCAN, "the table is read in many tasks")
    if pre_hive_3:
        return Choice(DeletedBy.SCAN, "a partition has updates among its inserts")
    why = why_not_looked_up(known, limits) if known is not None else None
    if why is not None:
        return Choice(DeletedBy.SCAN, why)
    return Choice(DeletedBy.CLIENT, "it knows them")


@dataclass(frozen=True, slots=True)
class ChangeFacts:
    """What is known of a change before its rows are looked for.

    `tasks` is None where rows leave them anyway, for the join with a source that is not broadcast. `of_all_rows` says
    that nothing limits the rows that are changed. `unwritable` finds out why the client cannot write new rows of the
    table. `once` says that rows are to be found that are changed twice. What a MERGE finds may be new rows, even if
    none of its clauses inserts any (`merges`); with `inserts` one does. `only_inserts` says that all rows are new, and
    of one directory. `whole_files` are those of which a DELETE takes all rows, which need not be read; then
    `tasks` are of the others, of which there may be none (`reads_nothing`).
    """

    tasks: Choice[Tasks] | None
    source: Choice[SourceJoin] | None = None
    source_rows: int = 0
    of_all_rows: bool = False
    deletes_only: bool = False
    unwritable: Callable[[], str | None] = lambda: None
    merges: bool = False
    inserts: bool = False
    only_inserts: bool = False
    clustered: bool = False
    file_is_statement: bool = False
    once: bool = False
    whole_files: int = 0
    reads_nothing: bool = False


def _why_moved(facts: ChangeFacts) -> str | None:
    """Why the rows are not in the few tasks that have read them; None if they are."""
    if facts.source is not None and facts.source.way is SourceJoin.SHUFFLED:
        return "the source is not broadcast"
    if facts.tasks is None or facts.tasks.way is Tasks.MANY:
        return "the table is read in many tasks"
    return None


def _whole(files: int) -> str:
    return f"all rows of {counted(files, 'file')}, which footers tell"


def writer_of(facts: ChangeFacts, limits: Limits) -> Choice[Writer]:
    """Who writes. Of what the client is to write it may find too much; then a job does, after all."""
    if why := _why_moved(facts):
        return Choice(Writer.JOB, why)
    if facts.whole_files and facts.reads_nothing:
        return Choice(Writer.CLIENT, f"{_whole(facts.whole_files)}: nothing else is read")
    if facts.whole_files:
        return Choice(
            Writer.CLIENT,
            f"{_whole(facts.whole_files)}, and up to {counted(limits.driver_deletes, 'row')} of others; "
            "a Spark job, which reads all, if there are more",
        )
    if facts.deletes_only and not facts.merges:
        return Choice(Writer.CLIENT, f"up to {counted(limits.driver_deletes, 'row')}; a Spark job if there are more")
    if facts.of_all_rows:
        return Choice(Writer.JOB, "nothing says that few rows are changed")
    # Which rows of the source are new is found out here: they come beside the rows that they may match.
    most = limits.driver_rows // 2 if facts.inserts else limits.driver_rows
    if facts.source_rows > most:
        return Choice(Writer.JOB, f"the source has {counted(facts.source_rows, 'row')}, more than {most:,}")
    if why := facts.unwritable():
        return Choice(Writer.JOB, why)
    return Choice(Writer.CLIENT, _few(limits))


def placing_of(facts: ChangeFacts) -> Choice[Placing]:
    """Where a Spark job writes events: each task those that it has, or after a shuffle by bucket."""
    if facts.only_inserts and not facts.file_is_statement:
        return Choice(Placing.IN_PLACE, "rows that are new need not meet others")
    if why := _why_moved(facts):
        return Choice(Placing.SHUFFLED, why)
    if facts.clustered and not facts.deletes_only:
        return Choice(Placing.SHUFFLED, "new rows of a CLUSTERED table meet by bucket")
    if facts.once:
        return Choice(Placing.SHUFFLED, "the source may match a row twice, which is found where its events meet")
    if facts.file_is_statement:
        return Choice(Placing.SHUFFLED, "each file is a statement of its own")
    return Choice(Placing.IN_PLACE, "few tasks read the table")


# --- the plans -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """How an UPDATE, DELETE or MERGE changes a table.

    `placing` is how a job writes, also one that does so instead of the client; `deleted` is of a DELETE.
    """

    verb: str
    table: str
    tasks: Choice[Tasks] | None
    source: Choice[SourceJoin] | None
    writer: Choice[Writer]
    placing: Choice[Placing]
    deleted: Choice[DeletedBy] | None = None

    @property
    def by_client(self) -> bool:
        """Whether the client writes, if it finds few enough rows."""
        return self.writer.way is Writer.CLIENT

    @property
    def in_place(self) -> bool:
        """Whether a job writes events in the tasks that read the table."""
        return self.placing.way is Placing.IN_PLACE

    def lines(self) -> list[str]:
        """As it is shown."""
        return [
            f"{self.verb} {self.table}",
            *([f"  source: {self.source}"] if self.source is not None else []),
            *([f"  tasks that read the table: {self.tasks}"] if self.tasks is not None else []),
            *([f"  rows deleted already are left out by: {self.deleted}"] if self.deleted is not None else []),
            f"  written by: {self.writer}",
            f"  events of a Spark job: {self.placing}",
        ]


def change_plan(
    verb: str,
    table: str,
    facts: ChangeFacts,
    limits: Limits,
    *,
    deleted: Choice[DeletedBy] | None = None,
) -> ChangePlan:
    """The plan of a change."""
    writer, placing = writer_of(facts, limits), placing_of(facts)
    return ChangePlan(verb, table, facts.tasks, facts.source, writer, placing, deleted)


@dataclass(frozen=True, slots=True)
class InsteadPlan:
    """That a Spark job writes what the client was to write."""

    verb: str
    table: str
    why: str

    def lines(self) -> list[str]:
        """As it is shown."""
        return [f"{self.verb} {self.table}", f"  written by: {Writer.JOB.value} after all: {self.why}"]


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """How new rows are written.

    The rest is how a job writes, also one that does so instead of the client: `distribution` is None where each bucket
    of a CLUSTERED table is a file.
    """

    verb: str
    table: str
    writer: Choice[Writer]
    placing: Choice[Placing]
    distribution: Distribution | None

    @property
    def by_client(self) -> bool:
        """Whether the client writes, if it can."""
        return self.writer.way is Writer.CLIENT

    def lines(self) -> list[str]:
        """As it is shown."""
        return [f"{self.verb} {self.table}", f"  written by: {self.writer}", f"  rows of a Spark job: {self.placing}"]


def insert_plan(
    verb: str,
    table: str,
    *,
    clustered: bool,
    one_file: bool,
    divided: bool,
    columns: int,
    estimate: Callable[[], Estimate],
    target_bytes: int,
    cores: Callable[[], int],
    parts: Callable[[], int | None] = lambda: None,
    unwritable: Callable[[], str | None],
    limits: Limits,
) -> InsertPlan:
    """The plan of an INSERT into so many `columns`.

    `one_file` says that there is no room for several files in a partition, `divided` that rows go to several, `parts`
    in how many they come.
    `unwritable` is as in `ChangeFacts`.
    """
    if clustered:
        why = "rows of a CLUSTERED table meet by bucket"
        return InsertPlan(verb, table, Choice(Writer.JOB, why), Choice(Placing.SHUFFLED, why), None)
    if one_file:
        why = "each file is a statement of its own, and a base has one"
        distribution = Distribution(1, shuffled=True)
        return InsertPlan(verb, table, Choice(Writer.JOB, why), Choice(Placing.SHUFFLED, why), distribution)
    known = estimate()
    distribution, placing = distribution_of(known, divided=divided, target_bytes=target_bytes, cores=cores, parts=parts)
    return InsertPlan(verb, table, _writer_of_rows(known, columns, unwritable, limits), placing, distribution)


def _writer_of_rows(
    known: Estimate, columns: int, unwritable: Callable[[], str | None], limits: Limits
) -> Choice[Writer]:
    """Who writes new rows: the client those that stand in the statement, and others that surely are few."""
    if known.size_bytes is None:
        return Choice(Writer.JOB, "Spark knows no size of the query's result")
    if known.is_placed:
        return Choice(Writer.JOB, "the query has placed its rows")
    if not known.is_given and columns > limits.driver_columns:
        return Choice(Writer.JOB, f"the table has {counted(columns, 'column')}, more than {limits.driver_columns}")
    of_query = min(limits.driver_query_bytes, columns * limits.driver_column_bytes)
    most = limits.driver_given_bytes if known.is_given else of_query
    if known.size_bytes > most:
        return Choice(Writer.JOB, f"{size(known.size_bytes)} of rows, more than {size(most)}")
    if why := unwritable():
        return Choice(Writer.JOB, why)
    if known.is_given:
        return Choice(Writer.CLIENT, f"the rows stand in the statement, {size(known.size_bytes)}")
    return Choice(
        Writer.CLIENT, f"{size(known.size_bytes)} of rows{'' if known.is_exact else ' at most'}; {_few(limits)}"
    )


def _few(limits: Limits) -> str:
    """What the client writes without knowing their number before."""
    return (
        f"up to {counted(limits.driver_rows, 'row')}, each with up to {size(limits.driver_row_bytes)} of texts; "
        "a Spark job if there are more"
    )


@dataclass(frozen=True, slots=True)
class DirectoryInsertPlan:
    """How new rows of an insert-only table, or of a plain one, are written."""

    verb: str
    table: str
    kind: str = "insert-only"

    def lines(self) -> list[str]:
        """As it is shown."""
        return [
            f"{self.verb} {self.table}",
            f"  written by: a Spark job, Spark's own writer of the table's format, since the table is {self.kind}",
            "  rows: where they are",
        ]
