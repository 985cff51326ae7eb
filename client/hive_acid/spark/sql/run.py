"""One statement under way: its names, its arguments, the snapshot or transaction it runs in, and its result."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.settings import TransactionManager
from hive_acid.show import Listing
from hive_acid.spark.blocks import Blocks
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.names import CurrentDatabase, Names
from hive_acid.spark.sql.rewrite import Rewriter, Source, escaped
from hive_acid.transaction import Transaction, TransactionKind

if TYPE_CHECKING:
    from hive_acid.spark.session import AcidSession


class Run:
    """What the statements of all kinds need to run; made anew for each one."""

    def __init__(self, acid: AcidSession, blocks: Blocks, current: CurrentDatabase, arguments: Arguments) -> None:
        self.acid = acid
        self.current = current
        self.names = Names(acid, current)
        self.arguments = arguments
        self._blocks = blocks

    @property
    def spark(self) -> SparkSession:
        """The session in which everything runs that reads no table of the metastore."""
        return self.acid.spark

    def with_literals(self) -> Run:
        """The same statement, its arguments already in its text; the names that it knows are kept."""
        changed = Run(self.acid, self._blocks, self.current, None)
        changed.names = self.names
        return changed

    def in_transaction(self) -> AbstractContextManager[object]:
        """The thread's transaction, or one for this statement: what is read inside is of its snapshot."""
        return self._joined(TransactionKind.WRITE)

    # --- reading -------------------------------------------------------------------------------

    def query(self, text: str, *, before: str = "") -> DataFrame:
        """The frame of a query; `before` is what stands before it in a statement of Spark's that is given to Spark.

        All tables of the metastore are read in one snapshot, which the frame holds. Text without any goes to Spark as
        it is.
        """
        rewriter = Rewriter(self.names, self.arguments)
        template = rewriter.query(text)
        if not rewriter.sources:
            return self.untouched(before + text)
        arguments: Any = self.arguments
        with self._joined(TransactionKind.READ):
            frames = {key: self._frame(source) for key, source in rewriter.sources.items()}
            session = next(iter(frames.values())).sparkSession
            return session.sql(escaped(before) + template, arguments, **frames)

    def untouched(self, text: str) -> DataFrame:
        """What Spark makes of a statement in which nothing is the metastore's."""
        arguments: Any = self.arguments
        return self.spark.sql(text, arguments)

    def reads_ours(self, query: str) -> bool:
        """Whether a query reads a table of the metastore. Raises SqlError if it cannot be understood."""
        rewriter = Rewriter(self.names)
        rewriter.query(query)
        return bool(rewriter.sources)

    @contextmanager
    def subqueries(self, rewriter: Rewriter) -> Iterator[Callable[[str], str]]:
        """A function that makes SQL text of the templates of `rewriter`, valid inside the block.

        Expressions are not given frames, so their tables are temporary views meanwhile, under names of their own.
        """
        with ExitStack() as stack:
            views = {
                key: stack.enter_context(self.view(self._frame(source))) for key, source in rewriter.sources.items()
            }
            yield lambda template: template.format(**views)

    @contextmanager
    def view(self, frame: DataFrame) -> Iterator[str]:
        """A name for a frame, which nobody else has, inside the block."""
        name = f"acid_{uuid.uuid4().hex}"
        frame.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def _frame(self, source: Source) -> DataFrame:
        return self.acid.table(source.table, row_id=source.row_id, where=source.where)

    def _joined(self, kind: TransactionKind) -> AbstractContextManager[Transaction | None]:
        if self.acid.manager is TransactionManager.DUMMY:
            return nullcontext()
        return self._blocks.joined(kind)

    # --- results -------------------------------------------------------------------------------

    def counts(self, **numbers: int) -> DataFrame:
        """The result of a change: one row of numbers of rows."""
        columns = [F.lit(number).cast("bigint").alias(name) for name, number in numbers.items()]
        return self.spark.range(1).select(*columns)

    def nothing(self) -> DataFrame:
        """The result of a statement that has none: no column, no row."""
        return self.spark.range(0).select()

    def rows(self, columns: Sequence[str], rows: Sequence[Sequence[str | None]]) -> DataFrame:
        """A table of text."""
        schema = ", ".join(f"`{name}` string" for name in columns)
        return self.spark.createDataFrame([tuple(row) for row in rows], schema)

    def listing(self, listing: Listing) -> DataFrame:
        """A listing of `hive_acid.show` as a frame."""
        return self.rows(listing.columns, listing.rows) if listing.columns else self.nothing()
