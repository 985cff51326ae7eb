"""A table as a source of streams over Spark Connect: PySpark's source in Python, which the server runs.

A process beside the server answers for each query. It asks `TableSource`, as the JVM of a classic session does, and
has a batch's rows read by Spark, in a session of its own; these are staged, and PySpark's tasks take them from there.
So a source in Python reads no files of tables. What is staged belongs to a transaction that is open until the batch is
over: whatever ends it, the Cleaner knows what is nobody's any more.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from hive_acid import __version__
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import HiveAcidError, UnsupportedTableError
from hive_acid.spark.stream_source.batch_limit import BYTES, FILES, BatchLimit
from hive_acid.spark.stream_source.position import Position
from hive_acid.spark.stream_source.server_session import ServerSession, is_known
from hive_acid.spark.stream_source.start import OPTION, Start
from hive_acid.spark.stream_source.table_source import Place, TableSource
from hive_acid.spark.write.statement import Context
from hive_acid.tls import Tls
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.staging import Staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # PySpark 4.1 has none
        SupportsTriggerAvailableNow = object

LOG = logging.getLogger(__name__)

_NAME = "hive_acid_stream"
_VERSION = "version"
_STREAM = "token"
"""Spark shows no option of such a name: the token of the client may be in it."""
_QUERY = "the one"
"""Each query has a process of its own."""

_BEGINNING: dict[str, Any] = {}
"""The offset of a query without a checkpoint."""

Result = TypeVar("Result")


class Joined(Protocol):
    """A session that is joined to the metastore."""

    @property
    def place(self) -> Place: ...


OpenSession = Callable[[SparkSession, Connection], Joined]


@dataclass(frozen=True, slots=True)
class ServedStream:
    """What the server is told of a stream. No password is: there, a file has it, as for sinks."""

    table: Table
    start: Start
    limit: BatchLimit
    schema: StructType
    server: ServerSession
    open_session: OpenSession
    uri: str
    user: str
    tls: Tls | None
    application: str

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """That of the options of a source. Raises UnsupportedTableError for those of another release."""
        if options[_VERSION] != __version__:
            raise UnsupportedTableError(
                f"the Python of the Spark Connect server has hive-acid {__version__}, and its client "
                f"{options[_VERSION]}: install the same there, or have PYSPARK_PYTHON name a Python that has it"
            )
        found: Self = pickle.loads(base64.b64decode(options[_STREAM]))
        return found

    def options(self) -> dict[str, str]:
        """Its text, as options of a source."""
        return {_VERSION: __version__, _STREAM: base64.b64encode(pickle.dumps(self)).decode()}

    def connection(self) -> Connection:
        """A connection to the metastore."""
        return connect(self.uri, user=self.user, tls=self.tls, application=self.application)


def frame_over_connect(
    context: Context, table: Table, start: Start, limit: BatchLimit, open_session: OpenSession, schema: StructType
) -> DataFrame:
    """The stream of a table whose rows have the columns of `schema`.

    Raises UnsupportedTableError for a server whose Python has no hive-acid, or another one, or that PySpark's version
    lets do less.
    """
    spark, connection = context.spark, context.connection
    if limit and not _is_told_where_it_is(spark):
        raise UnsupportedTableError(
            f"{table.full_name} is not read with {FILES} or {BYTES} over Spark Connect by a server of Spark "
            f"{spark.version}, which does not tell a source in Python where its stream is: from 4.2 on it does"
        )
    served = ServedStream(
        *(table, start, limit, schema, ServerSession.of(spark), open_session),
        uri=connection.uri,
        user=connection.user,
        tls=connection.tls,
        application=connection.application,
    )
    spark.dataSource.register(TableStream)
    try:
        frame = spark.readStream.format(_NAME).options(**served.options()).load()
        _ = frame.schema  # only now the server makes the source
    except PySparkException as error:
        raise _refused(table, error) from error
    return frame


def _is_told_where_it_is(spark: SparkSession) -> bool:
    major, minor = spark.version.split(".")[:2]
    return (int(major), int(minor)) >= (4, 2)


def _refused(table: Table, error: PySparkException) -> Exception:
    """What has kept the server from making the source, in words for its user, as far as we have any."""
    said = str(error)
    for missing in ("hive_acid", "pyarrow"):
        if f"No module named '{missing}" in said:
            return UnsupportedTableError(
                f"{table.full_name} is not read as a stream, since the Python of the Spark Connect server has no "
                f"{missing}, or an older one: there and on its executors, pip install 'hive-acid[spark,connect]' "
                f"{__version__}"
            )
    ours = next((line for line in said.splitlines() if UnsupportedTableError.__name__ in line), None)
    if ours is None:
        return error
    return UnsupportedTableError(ours.partition(f"{UnsupportedTableError.__name__}: ")[2])


class TableStream(DataSource):
    """The source of one stream, as the server makes it."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self._served = ServedStream.parse(options)

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        """Asked for, though the client knows it: so the server makes the source at once, and says if it cannot."""
        return self._served.schema

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - PySpark's names
        return TableReader(self._served)


class TableReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What PySpark asks: of where the stream is on the server, and of rows on the executors."""

    def __init__(self, served: ServedStream) -> None:
        self._served = served
        self._query: _Query | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's names
        return _BEGINNING

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._told(lambda query: query.end_with_now())

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """`start` is None where PySpark does not tell it, as before 4.2."""
        return self._told(lambda query: _offset(query.latest(_text(start))))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start == end:
            return []
        paths = self._told(lambda query: query.staged(_text(start), str(_text(end))))
        return [InputPartition(path) for path in paths]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from hive_acid.spark.stream_source.staged_rows import rows_of

        return rows_of(partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        self._told(lambda query: query.is_over())

    def stop(self) -> None:
        query, self._query = self._query, None
        if query is not None:
            query.end()

    def _told(self, ask: Callable[[_Query], Result]) -> Result:
        """What the query answers. An error of ours is told as what has ended it, in a line."""
        try:
            if self._query is None:
                _stop_by_signal()
                self._query = _Query(self._served)
            return ask(self._query)
        except HiveAcidError:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # PySpark's word, of this process, which ends now
            raise


def _text(offset: dict[str, Any] | None) -> str | None:
    """An offset as sources have it: None for that of the beginning."""
    return str(Position.parse(json.dumps(offset))) if offset else None


def _offset(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def _stop_by_signal() -> None:
    """Have the signal by which Spark ends the process of a query that stops let it put away what it has."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _exit)


def _exit(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


class _Query:
    """The query of this process: its source, its session of Spark, and what is staged of its batch."""

    def __init__(self, served: ServedStream) -> None:
        self._served = served
        self._connection = served.connection()
        self._session = served.server.clone()
        self._end: str | None = None
        self._batch: _Batch | None = None
        self._source = TableSource(self._place(), served.table, served.start, served.limit)

    def end_with_now(self) -> None:
        """Go no further than to what is there now."""
        self._end = self._source.latest(_QUERY)

    def latest(self, start: str | None) -> str:
        """Where the batch behind `start` ends."""
        newest = self._end or self._source.latest(_QUERY)
        if self._served.limit and newest != start:
            self._have_session()
        return self._source.end_of_batch(_QUERY, start, newest)

    def staged(self, start: str | None, end: str) -> list[str]:
        """The files that have the rows of a batch, the same as long as it is not over."""
        if self._batch is None or self._batch.offsets != (start, end):
            self.is_over()
            self._check_same_beginning(start, end)
            self._have_session()
            self._batch = self._made(start, end)
        return self._batch.paths

    def is_over(self) -> None:
        """The batch that is staged is read."""
        batch, self._batch = self._batch, None
        if batch is not None:
            batch.remove()

    def end(self) -> None:
        """Put away whatever there is."""
        _stop(self._session)
        try:
            self.is_over()
            self._source.stopped(_QUERY)
        finally:
            self._connection.close()

    def _made(self, start: str | None, end: str) -> _Batch:
        try:
            rows = self._source.batch(_QUERY, start, end)
            batch = _Batch((start, end), self._connection, self._served.table, self._source.location())
            try:
                batch.fill(rows)
            except BaseException:
                _stop(self._session)  # first: its tasks may be at work there
                batch.remove()
                raise
            return batch
        finally:
            self._source.is_over(_QUERY)

    def _check_same_beginning(self, start: str | None, end: str) -> None:
        """Raise UnsupportedTableError where a checkpoint has begun elsewhere, and PySpark has not told it in time."""
        if start is None or (since := Position.parse(start).since) == Position.parse(end).since:
            return
        raise UnsupportedTableError(
            f"the checkpoint of the stream of {self._served.table.full_name} has begun at write {since}, which a "
            f"server of Spark before 4.2 does not tell: begin it again with {OPTION} {since}, and the same checkpoint"
        )

    def _have_session(self) -> None:
        """Read in another session if the server has forgotten this one, which nobody may have used for an hour.

        Not in one for each batch, whose settings would be those of that moment: for each Spark keeps processes.
        """
        if not is_known(self._session):
            self._session = self._served.server.clone()
            self._source.move_to(self._place())

    def _place(self) -> Place:
        return self._served.open_session(self._session, self._connection).place


class _Batch:
    """The rows of one batch in a hidden directory of the table, which is kept by a transaction that reads no table."""

    def __init__(self, offsets: tuple[str | None, str], connection: Connection, table: Table, location: str) -> None:
        self.offsets = offsets
        self.paths: list[str] = []
        name = f"{table.database}.{_NAME}_{uuid.uuid4().hex[:12]}"  # no table's: nothing else is kept
        self._lease: Transaction = connection.begin(TransactionKind.READ, tables=[name])
        self._staging = Staging.below(location, self._lease.id)

    def fill(self, rows: DataFrame) -> None:
        """Have Spark read the rows."""
        from hive_acid.spark.stream_source.staged_rows import staged

        self.paths = staged(rows, self._staging.location)

    def remove(self) -> None:
        """Remove them."""
        self._staging.remove()
        self._lease.end_later()


def _stop(session: SparkSession) -> None:
    """End a session with its jobs, whether or not its server is there still."""
    client: Any = session.client
    client.set_retry_policies([])
    session.stop()
