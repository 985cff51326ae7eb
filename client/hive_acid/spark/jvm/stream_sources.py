"""A source of Spark's streams written in Python: the JVM of a classic session calls it back, as it does foreachBatch.

What is handed to Spark are its own rows, read by its own readers; PySpark's sources of data have only values that
Python has read.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from py4j.clientserver import ClientServer
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import HiveAcidError, UnsupportedTableError
from hive_acid.spark.jvm.frames.scala import frame_of, none

LOG = logging.getLogger(__name__)

_STREAMING = "org.apache.spark.sql.execution.streaming"
_READ = "org.apache.spark.sql.connector.read.streaming"
_QUERY, _RUN = "sql.streaming.queryId", "spark.jobGroup.id"
_LONGEST_CAUSE = 2_000

Result = TypeVar("Result")


class RowSource(Protocol):
    """Rows that come batch by batch, between offsets that are texts. `query` is the id of the query that asks."""

    def latest(self, query: str) -> str:
        """The offset of this moment."""
        ...

    def end_of_batch(self, query: str, start: str | None, newest: str) -> str:
        """Where the batch behind `start` ends: at `newest`, or before it."""
        ...

    def batch(self, query: str, start: str | None, end: str) -> DataFrame:
        """The rows behind `start`, or all, up to `end`; the same columns each time."""
        ...

    def is_over(self, query: str) -> None:
        """The batch that the query has had last is read."""
        ...

    def stopped(self, query: str) -> None:
        """The query has ended, and asks for nothing more until it is begun again."""
        ...


def check_calls_back(spark: SparkSession, what: str) -> None:
    """Raise UnsupportedTableError where a callback of the JVM does not tell its query: `what` is refused there."""
    context: Any = spark.sparkContext
    if not isinstance(context._gateway, ClientServer):
        raise UnsupportedTableError(
            f"{what} is not read as a stream where PYSPARK_PIN_THREAD is false: which query asks cannot be told"
        )


def streaming_frame(spark: SparkSession, source: RowSource, name: str, empty: DataFrame) -> DataFrame:
    """The stream of a source's rows, which have the columns of `empty`, which is none; `name` is what plans show."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]
    _let_errors_through(context._gateway)
    of_jvm: Any = empty._jdf
    relation = getattr(jvm, f"{_STREAMING}.runtime.StreamingExecutionRelation")
    arguments = [
        _JavaSource(spark, source, name, empty),
        of_jvm.queryExecution().analyzed().output(),
        none(spark),
    ]
    if "apply$default$4" in dir(relation):  # since 4.2 a source may have a name
        arguments.append(getattr(relation, "apply$default$4")())
    session: Any = spark._jsparkSession
    plan = relation(*arguments, session)
    return frame_of(spark, plan)


def is_active(spark: SparkSession, query: str) -> bool | None:
    """Whether a query is in the middle of a batch, or about to begin it; None if there is no such query."""
    session: Any = spark._jsparkSession
    found = session.streams().get(query)
    return None if found is None else bool(found.status().isTriggerActive())


class _JavaSource:
    """Spark's `Source`, as its JVM sees it: its methods have Spark's names, and are called on the query's thread."""

    def __init__(self, spark: SparkSession, source: RowSource, name: str, empty: DataFrame) -> None:
        self._spark = spark
        self._source = source
        self._name = name
        self._empty = empty
        self._ends_at: dict[str, tuple[str, str]] = {}
        """Where the run of a query ends, if it does by itself."""
        self._given: dict[str, DataFrame] = {}
        """What each query reads: py4j forgets an object of which Python has no reference."""

    def schema(self) -> Any:
        return self._empty._jdf.schema()

    def getOffset(self) -> Any:  # noqa: N802 - Spark's names
        raise NotImplementedError("Spark asks for latestOffset")

    def getBatch(self, start: Any, end: Any) -> Any:  # noqa: N802
        """A batch. Before its first one, a query that begins again asks for its last, which it does not read."""

        def make(query: str) -> Any:
            self._forget(query)
            if is_active(self._spark, query) is False:
                rows = self._not_read()
            else:
                rows = self._source.batch(query, start.get().json() if start.isDefined() else None, end.json())
            self._given[query] = streamed = _as_stream(self._spark, rows)
            return streamed._jdf

        return self._told(make)

    def initialOffset(self) -> Any:  # noqa: N802
        raise NotImplementedError("a Source of the first kind has none")

    def deserializeOffset(self, json: str) -> Any:  # noqa: N802
        return self._offset(json)

    def commit(self, end: Any) -> None:
        self._told(self._forget)

    def stop(self) -> None:
        def end(query: str) -> None:
            self._forget(query)
            self._source.stopped(query)

        self._told(end)

    def hashCode(self) -> int:  # noqa: N802
        return id(self) & 0x7FFFFFFF

    def equals(self, other: Any) -> bool:
        return other is self

    def toString(self) -> str:  # noqa: N802
        return self._name

    # --- a trigger that ends with what was there at its beginning, however many batches that takes ---

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        def prepare(query: str) -> None:
            self._ends_at[query] = self._run(), self._source.latest(query)

        self._told(prepare)

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        jvm: Any = self._spark._jvm
        return getattr(jvm, f"{_READ}.ReadLimit").allAvailable()

    def latestOffset(self, start: Any, limit: Any) -> Any:  # noqa: N802
        def ask(query: str) -> Any:
            self._forget(query)
            run, end = self._ends_at.get(query, ("", ""))
            newest = end if end and run == self._run() else self._source.latest(query)
            return self._offset(self._source.end_of_batch(query, None if start is None else start.json(), newest))

        return self._told(ask)

    def reportLatestOffset(self) -> Any:  # noqa: N802
        return None

    class Java:
        implements = (f"{_STREAMING}.Source", f"{_READ}.SupportsTriggerAvailableNow")

    def _run(self) -> str:
        """The run of the query that asks: when it begins again it has another one."""
        return str(self._spark.sparkContext.getLocalProperty(_RUN))

    def _offset(self, text: str) -> Any:
        jvm: Any = self._spark._jvm
        return getattr(jvm, f"{_STREAMING}.runtime.SerializedOffset")(text)

    def _not_read(self) -> DataFrame:
        """What stands for a batch that is over, and fails whoever reads it."""
        column, *others = self._empty.schema.fields
        said = F.raise_error(F.lit(f"a batch of {self._name} was to be over"))
        first = said.cast(column.dataType).alias(column.name)
        return self._spark.range(1).select(first, *(F.lit(None).cast(of.dataType).alias(of.name) for of in others))

    def _forget(self, query: str) -> None:
        self._given.pop(query, None)
        self._source.is_over(query)

    def _told(self, run: Callable[[str], Result]) -> Result:
        """What `run` makes for the query that asks. An error is told as what has ended the query, in a line."""
        try:
            return run(str(self._spark.sparkContext.getLocalProperty(_QUERY)))
        except Exception as error:
            words = f"{type(error).__name__}: {error}"[:_LONGEST_CAUSE]
            LOG.info("a query of %s ends by %s", self._name, words, exc_info=not isinstance(error, HiveAcidError))
            jvm: Any = self._spark._jvm
            # Of one that Java has to be told of before, a proxy would make another, without words.
            thrown = jvm.java.lang.RuntimeException(words)
            _THROWN.is_next = True
            raise Py4JJavaError(words, thrown) from None


def _as_stream(spark: SparkSession, rows: DataFrame) -> DataFrame:
    """A frame's rows as a batch of a stream: it is planned here, under the settings of its own session.

    Within the query it is one leaf, so that what Spark does with streams sees none of its joins.
    """
    of_jvm: Any = rows._jdf
    session: Any = spark._jsparkSession
    rdd = of_jvm.queryExecution().toRdd()
    return DataFrame(session.internalCreateDataFrame(rdd, of_jvm.schema(), True), spark)


class _Thrown(threading.local):
    """Whether what Python raises next is thrown in the JVM as it is, which py4j asks on the thread that has raised it.

    Else it would be a text, the traceback. Other callbacks' errors are told as they were before.
    """

    is_next = False
    always = False

    def __bool__(self) -> bool:
        found, self.is_next = self.is_next or self.always, False
        return found


_THROWN = _Thrown()


def _let_errors_through(gateway: Any) -> None:
    parameters = gateway.python_parameters
    if parameters.propagate_java_exceptions is False:
        parameters.propagate_java_exceptions = _THROWN
