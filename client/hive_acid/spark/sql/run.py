"""One statement under way: its names, its arguments, the snapshot or transaction it runs in, and its result."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.about import AboutTable
from hive_acid.catalog.table import Table
from hive_acid.errors import NoSuchObjectError, SqlError
from hive_acid.operators.show import Listing
from hive_acid.settings import TransactionManager
from hive_acid.spark.conditions.predicates import Predicate
from hive_acid.spark.jvm.frames.narrowing import names_moment
from hive_acid.spark.jvm.session_settings import word
from hive_acid.spark.read.filter_pushdown import PushdownFrame
from hive_acid.spark.read.partitions.reach import JoinedTable, pinned_if_small, reached, standing_for
from hive_acid.spark.read.table_frame import columns_of_rows
from hive_acid.spark.read.totals.extremes import Extreme, Totals, rows_with
from hive_acid.spark.read.undivided import undivided
from hive_acid.spark.snapshots.blocks import Blocks
from hive_acid.spark.sql.arguments import Arguments, bound, for_query, has_texts, with_texts
from hive_acid.spark.sql.frames import in_braces
from hive_acid.spark.sql.names import CurrentDatabase, Names
from hive_acid.spark.sql.relations import Ctes
from hive_acid.spark.sql.rewriting.edits import escaped
from hive_acid.spark.sql.rewriting.reads import KeyWords, OtherNames, TableRead, tables_of
from hive_acid.spark.sql.rewriting.rewriter import Rewriter
from hive_acid.spark.sql.tokens import Name
from hive_acid.spark.sql.views import shown_by
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.verbs.explaining import Explaining, NotedLocks, told_only
from hive_acid.spark.verbs.frame import AcidTable
from hive_acid.spark.verbs.keys import KeyVerbs

Result = TypeVar("Result")
_PLACE = re.compile(r"\s*(SQLSTATE: \w+)?\s*(\(line \d+, pos \d+\))?\s*$")
"""Where Spark's parser has found an error, in its own text."""


def _is_missed(name: Name, error: AnalysisException) -> bool:
    """Whether Spark says of a table, and not of another one, that it is not there, or its database."""
    told = error.getMessageParameters() or {}
    of = {"TABLE_OR_VIEW_NOT_FOUND": ("relationName", 1), "SCHEMA_NOT_FOUND": ("schemaName", 2)}
    what, last = of.get(error.getCondition() or "", ("", 1))
    said = told.get(what, "").replace("`", "").lower().rpartition(".")[2]
    return len(name.parts) >= last and said == name.parts[-last].lower()


def new_name() -> str:
    """A name for a view that nobody else has."""
    return f"acid_{uuid.uuid4().hex}"


@contextmanager
def _named_errors(*, is_ours: bool = False) -> Iterator[None]:
    """Errors of Java that PySpark has no name for, as of a source that is not there, are said in a line.

    So are those of a text that `is_ours`, in which Spark's parser would show names and places that nobody has written.
    """
    try:
        yield
    except ParseException as error:
        if not is_ours:
            raise
        words = _PLACE.sub("", next(iter(str(error).strip().splitlines()), ""))
        raise SqlError(f"Spark does not understand the statement: {words}") from error
    except Py4JJavaError as error:
        said = str(error.java_exception.getMessage() or error.java_exception.getClass().getName())
        raise SqlError(f"Spark says: {next(iter(said.strip().splitlines()), '')}") from error


@dataclass(frozen=True, slots=True)
class Query:
    """A query of which it is known what it reads; `frame` makes its frame."""

    run: Run
    text: str
    template: str
    before: str
    sources: Mapping[str, TableRead]
    others: OtherNames
    conditions: Mapping[str, KeyWords]
    """By their places."""

    joins: bool = False
    """Whether its joins may tell what of its tables is to be read."""

    is_qualified: bool = False
    """Whether names in it that are not ours are other ones in the template."""

    is_part: bool = False
    """Whether it is a part of a statement of ours, in which Spark's parser would show other places."""

    @property
    def is_of_view(self) -> bool:
        """Whether it is part of a statement by which Spark may keep it."""
        return bool(self.before.strip()) and not self.before.lstrip().upper().startswith("EXPLAIN")

    @property
    def tables(self) -> list[str]:
        """The metastore's tables that it reads, ``db.table``."""
        return tables_of(self.sources)

    def frame(self, *, of_view: bool = False) -> DataFrame:
        """See `Run.query`. That `of_view` shows what tables that are not ours have whenever it is read."""
        return self.run.read_together(self, of_view=of_view)


def with_conditions(template: str, query: Query, frames: Mapping[str, DataFrame] | None = None) -> str:
    """A template of a query with its conditions on partition keys, but for those that all rows of its `frames` meet."""
    for place, (source, text, bare) in query.conditions.items():
        frame = (frames or {}).get(source)
        pushdown = frame._pushdown if isinstance(frame, PushdownFrame) else None
        holds = pushdown is not None and pushdown.holds(bare)
        template = template.replace(f"{{{place}}}", "true" if holds else text)
    return template


def _placed(sources: Mapping[str, TableRead], around: str = "") -> Iterator[tuple[str, TableRead]]:
    """The tables of snapshots, those in views as well, with their places."""
    for key, source in sources.items():
        if source.view is not None:
            yield from _placed(source.view.sources, f"{around}{key}.")
        elif source.table.is_transactional and not isinstance(source.table, AboutTable):
            yield f"{around}{key}", source


class Run:
    """What the statements of all kinds need to run; made anew for each one."""

    def __init__(
        self,
        acid: KeyVerbs,
        blocks: Blocks,
        current: CurrentDatabase,
        arguments: Arguments,
        explains: str = "",
        *,
        frames: Mapping[str, DataFrame] | None = None,
        beside_spark: bool = False,
    ) -> None:
        self.acid = acid
        self.explains = explains
        """EXPLAIN as it stands before the statement, which is not to happen then; else empty."""
        self.current = current
        self.names = Names(acid, current, beside_spark=beside_spark)
        self.arguments = arguments
        self.frames = dict(frames or {})
        """Frames that the statement names; meanwhile they are temporary views."""
        self.beside_spark = beside_spark
        """Whether the statement was given to Spark's own `sql`: what the metastore does not have is Spark's."""
        self._blocks = blocks
        self.locks = NotedLocks(blocks.isolation)
        """Those that the statement would ask for, if it is explained."""

    @property
    def spark(self) -> SparkSession:
        """The session in which everything runs that reads no table of the metastore."""
        return self.acid.spark

    def with_literals(self) -> Run:
        """The same statement, its arguments already in its text; the names that it knows are kept."""
        return self._changed(self.acid)

    def explaining(self, explains: str, *, changes_rows: bool) -> Run:
        """The same statement behind the words `explains`, its arguments in its text: nothing of it happens.

        One that `changes_rows` is planned, what another would do is told. Raises TransactionsOffError.
        """
        locks = NotedLocks(self._blocks.isolation)
        acid = Explaining(self.acid, locks) if changes_rows else told_only(self.acid, locks)
        changed = self._changed(acid, explains)
        changed.locks = locks
        return changed

    def _changed(self, acid: KeyVerbs, explains: str = "") -> Run:
        changed = Run(
            acid, self._blocks, self.current, None, explains, frames=self.frames, beside_spark=self.beside_spark
        )
        changed.names = self.names
        return changed

    def in_transaction(self, work: Callable[[], Result], tables: Iterable[str]) -> Result:
        """`work` in the thread's transaction, or in one for this statement: what is read inside is of its snapshot.

        `tables` (``db.table``) are all that it reads and changes. It may be called again, if somebody was faster.
        """
        if self.acid.manager is TransactionManager.DUMMY:
            return work()
        if self.explains:
            used = list(tables)
            self.locks.use(used)
            with self._blocks.joined(used):
                return work()
        return self._blocks.together(work, tables)

    # --- reading -------------------------------------------------------------------------------

    def query(self, text: str, *, before: str = "") -> DataFrame:
        """The frame of a query; `before` is what stands before it in a statement of Spark's that is given to Spark.

        All tables of the metastore are read in one snapshot, which the frame holds. Text without any goes to Spark as
        it is.
        """
        return self.prepared(text, before=before, is_whole=True).frame()

    def prepared(self, text: str, *, before: str = "", is_whole: bool = False) -> Query:
        """A query that is understood and not run yet: the `is_whole` statement, or a part of one of ours.

        Raises SqlError and UnsupportedTableError.
        """
        rewriter = Rewriter(self.names, self.arguments)
        template = rewriter.query(text, places_conditions=True)
        if rewriter.compares_chars and has_texts(self.arguments):
            text, self.arguments = with_texts(text, self.arguments)
            return self.prepared(text, before=before, is_whole=is_whole)
        return Query(
            self,
            rewriter.for_spark,
            template,
            before,
            rewriter.sources,
            rewriter.others,
            rewriter.conditions,
            rewriter.joins and not rewriter.names_moment and not names_moment(repr(self.arguments)),
            rewriter.has_qualified,
            is_part=not is_whole,
        )

    def read_together(self, query: Query, *, of_view: bool = False) -> DataFrame:
        """See `Query.frame`."""
        if not query.sources:
            if query.is_qualified:
                return self._by_spark(escaped(query.before) + query.template, is_part=query.is_part)
            return self.untouched(query.before + query.text, is_part=query.is_part)
        dummy = self.acid.manager is TransactionManager.DUMMY
        with nullcontext() if dummy else self._blocks.joined(query.tables):
            template, frames = self._reached(query, of_view=of_view or query.is_of_view)
            return self._by_spark(escaped(query.before) + with_conditions(template, query, frames), frames)

    def untouched(self, text: str, *, is_part: bool = False) -> DataFrame:
        """What Spark makes of a statement, or of a part of one of ours, in which nothing is the metastore's."""
        if self.frames:
            return self._by_spark(escaped(text), is_part=is_part)
        with _named_errors(is_ours=is_part):
            return self.spark.sql(text, self._given())

    def of_spark(self, text: str) -> DataFrame:
        """As `untouched`, of a statement that is none of ours. Raises SqlError if it is none of Spark's, either, and
        NoSuchObjectError if neither has the table that it is about.
        """
        try:
            return self.untouched(text)
        except ParseException as error:
            words = next(iter(str(error).strip().splitlines()), "")
            missing = self.names.missing
            said = "neither hive-acid nor Spark understands the statement"
            if missing is not None:
                said = f"the metastore has no table {missing}, and Spark does not understand the statement"
            raise SqlError(f"{said}. Spark says: {words}") from error
        except AnalysisException as error:
            missing = self.names.missing
            if missing is None or not _is_missed(missing, error):
                raise
            raise NoSuchObjectError(f"neither the metastore nor Spark has a table {missing}") from error

    def _by_spark(
        self, template: str, frames: Mapping[str, DataFrame] | None = None, *, is_part: bool = False
    ) -> DataFrame:
        """What Spark makes of a template, in which the frames of the statement have places again, beside `frames`.

        A query keeps them so, when their views are dropped.
        """
        with _named_errors(is_ours=is_part or bool(frames)):
            return self.spark.sql(in_braces(template, self.frames), self._given(), **(frames or {}), **self.frames)

    def bound(self, text: str) -> str:
        """`text` with literals for its arguments. Raises SqlError as `arguments.bound`."""
        return bound(text, self.arguments, wall_clocks=self._has_wall_clocks)

    def _given(self) -> Any:
        return for_query(self.arguments, wall_clocks=self._has_wall_clocks)

    def _has_wall_clocks(self) -> bool:
        """Whether times are without zone, to Spark, if nothing else is said."""
        return word(self.spark, "spark.sql.timestampType") == "TIMESTAMP_NTZ"

    def reads_ours(self, query: str) -> bool:
        """Whether a query reads a table of the metastore. Raises SqlError if it cannot be understood."""
        rewriter = Rewriter(self.names)
        rewriter.query(query)
        return bool(rewriter.sources)

    @contextmanager
    def subqueries(self, rewriter: Rewriter, ctes: Mapping[str, Query]) -> Iterator[Callable[[str], str]]:
        """A function that makes SQL text of the templates of `rewriter`, valid inside the block.

        Expressions are not given frames, so their tables, and the CTEs of the statement that they name, are temporary
        views meanwhile, under names of their own; `ctes` are the queries of `ctes_of`.
        """
        with ExitStack() as stack:
            views = {
                key: stack.enter_context(self.view(self._frame(source))) for key, source in rewriter.sources.items()
            }
            views |= {key: stack.enter_context(self.view(query.frame())) for key, query in ctes.items()}
            yield lambda template: template.format(**views)

    def ctes_of(self, rewriter: Rewriter, ctes: Ctes) -> dict[str, Query]:
        """Queries for the CTEs of the statement that the templates of `rewriter` name, by their places there."""
        named = rewriter.read_ctes.items()
        return {key: self.prepared(ctes.before(f"SELECT * FROM {quoted(name)}")) for key, name in named}

    @contextmanager
    def view(self, frame: DataFrame, name: str | None = None) -> Iterator[str]:
        """A name for a frame, by default of `new_name`, inside the block."""
        name = name or new_name()
        frame.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def _frame(self, source: TableRead, place: str = "", given: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """The frame of what is read; of tables in views those that are `given`, by their places."""
        if isinstance(source.table, AboutTable):
            return self.acid.table(source.table, where=None)
        if source.view is not None:
            query = source.view
            frames: dict[str, Any] = {
                key: (given or {}).get(f"{place}.{key}") or self._frame(of, f"{place}.{key}", given)
                for key, of in query.sources.items()
            }
            # Without frames Spark takes a text as it is, braces and all.
            return shown_by(
                source.table, self.spark.sql(query.template if frames else query.template.format(), **frames)
            )
        return self._rows(source, None)

    def _rows(self, source: TableRead, reach: Predicate | None) -> DataFrame:
        frame = self.acid._table_within(source.table, reach, row_id=source.row_id, where=source.where)
        if source.totals_of is not None and (totals := self._lasting_totals(frame, source.totals_of)) is not None:
            return rows_with(self.spark, totals, source.table)
        return undivided(frame) if source.is_undivided else frame

    def _reached(self, query: Query, *, of_view: bool) -> tuple[str, Mapping[str, DataFrame]]:
        """The template of a query and its frames, without the partitions that its joins do not reach."""
        joined = self._joined(query.sources) if query.joins else {}
        own = {
            key: self._frame(source)
            for key, source in query.sources.items()
            if not any(place.split(".")[0] == key for place in joined)
        }
        pinned: dict[str, DataFrame] = {}

        def frames(given: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
            views = {place.split(".")[0] for place in given if "." in place}
            tables = {place: frame for place, frame in given.items() if "." not in place}
            made = own | tables | {key: self._frame(query.sources[key], key, given) for key in views}
            return {key: made[key] for key in query.sources} | pinned

        if not joined:
            return query.template, own

        def with_pinned() -> Callable[[Mapping[str, DataFrame]], DataFrame] | None:
            found = {} if of_view else self._pinned(query, own)
            pinned.update(found)
            template = with_conditions(query.others.template, query)
            return (lambda given: self._by_spark(template, frames(given))) if found else None

        template = with_conditions(query.template, query)
        found = reached(joined, lambda given: self._by_spark(template, frames(given)), with_pinned, self.acid.limits)
        if found.is_pinned:
            return query.others.template, frames(found.frames)
        pinned.clear()
        return query.template, frames(found.frames)

    def _joined(self, sources: Mapping[str, TableRead]) -> dict[str, JoinedTable]:
        """The tables of snapshots, by their places, if one of them has many partitions."""
        found: dict[str, JoinedTable] = {}
        placed = dict(_placed(sources))
        many = {place for place, source in placed.items() if self._has_many_partitions(source.table)}
        for place, source in placed.items() if many else ():
            columns = columns_of_rows(source.table, row_id=source.row_id)
            standing = standing_for(self.spark, place, source.table, columns)
            if standing is None:
                return {}
            found[place] = JoinedTable(source.table, standing, partial(self._rows, source), place in many)
        return found

    def _has_many_partitions(self, table: Table) -> bool:
        if not table.partition_keys:
            return False
        many = self.acid.limits.joined_partitions
        return len(self.acid.connection.partition_names(table, most=many)) >= many

    def _pinned(self, query: Query, own: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Small tables that may change while the query's frame lives, with the rows that they have now."""
        tables = {key: source.table for key, source in query.sources.items() if key in own}
        frames = {key: own[key] for key, of in tables.items() if of.is_plain and not isinstance(of, AboutTable)}
        frames |= {place: self.spark.table(name) for place, name in query.others.names.items()}
        found = {place: pinned_if_small(frame, self.acid.limits) for place, frame in frames.items()}
        if all(rows is None for rows in found.values()):
            return {}
        return {place: frame if (rows := found[place]) is None else rows for place, frame in frames.items()}

    def _lasting_totals(self, frame: DataFrame, asked: Sequence[Extreme]) -> Totals | None:
        """What is known of all rows of a frame without reading them, if it stays true as long as it is asked.

        In a transaction that may write it does not: rows of its own are none if it ends by an abort.
        """
        block = self._blocks.current()
        if not isinstance(frame, AcidTable) or (block is not None and block.writable):
            return None
        return frame.known_totals(asked)

    # --- results -------------------------------------------------------------------------------

    def counts(self, **numbers: int) -> DataFrame:
        """The result of a change: one row of numbers of rows."""
        values = ", ".join(f"{number}L" for number in numbers.values())
        return self.spark.sql(f"SELECT * FROM VALUES ({values}) AS t({', '.join(numbers)})")

    def nothing(self) -> DataFrame:
        """The result of a statement that has none: no column, no row."""
        return self.spark.range(0).select()

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> DataFrame:
        """A table of text."""
        schema = ", ".join(f"`{name}` string" for name in columns)
        return self.spark.createDataFrame([tuple(row) for row in rows], schema)

    def listing(self, listing: Listing) -> DataFrame:
        """A listing of `hive_acid.operators.show` as a frame."""
        return self.rows(listing.columns, listing.rows) if listing.columns else self.nothing()
