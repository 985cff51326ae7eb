"""A connection to a metastore: Thrift calls over a small pool of sockets, safe to share between threads.

One call is in flight per socket, as every Hive client does (wire.md §2.2), so a lock that waits on one thread
does not delay the heartbeats of another. A process that was forked has sockets, heartbeats and transactions of its own.
"""

from __future__ import annotations

import getpass
import os
import select
import socket
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit
from weakref import WeakSet

from thriftpy2.thrift import TApplicationException, TClient, TDecodeException, TException
from thriftpy2.transport import TCyBufferedTransport, TSocket, TTransportException

from hive_acid.catalog import Table, table_from_wire
from hive_acid.errors import (
    THRIFT_ERRORS,
    AddressError,
    AnswersMixedError,
    HiveAcidError,
    MetastoreError,
    MetastoreInternalError,
    MetastoreUnreachableError,
    UnknownMethodError,
)
from hive_acid.forks import renew_in_children
from hive_acid.lease import Heartbeats
from hive_acid.opening import open_transactions
from hive_acid.pressure import Pressure
from hive_acid.protocol import NumberedProtocol
from hive_acid.transaction import Transaction, TransactionKind
from hive_acid.wire import service, ttypes

DEFAULT_PORT = 9083
POOL_SIZE = 8
LONGEST_NAME_LIST = 32_767
"""``max_parts`` travels as i16; -1 asks for all (wire.md §4.2)."""

UNREPEATABLE = frozenset({"lock", "open_txns", "create_table", "create_database", "compact", "compact2"})
"""Calls whose repetition after a lost answer could act twice (transactions.md §6)."""


class Connection:
    """Calls to one metastore; begin transactions with `begin`, look tables up with `table`.

    Threads may share it, and so may a process and the children that it forks: each child connects anew. What was begun
    before the fork, transactions and streams, stays the parent's, and in the child raises OtherProcessError.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_ms: int = 60_000,
        user: str | None = None,
        application: str | None = None,
    ) -> None:
        """`application` is what `metastore why` names when we are in somebody's way; by default program and process."""
        self.host = host
        self.port = port
        self.user = user or _login_name()
        self._application = application
        self._timeout_ms = timeout_ms
        self._closed = False
        self._begin_anew()
        self.heartbeats = Heartbeats(self)
        self.pressure = Pressure(self)
        renew_in_children(self)

    def _begin_anew(self) -> None:
        self._idle: list[tuple[socket.socket, TClient]] = []
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._guard = threading.Lock()

    def renew_in_child(self) -> None:
        """Close the parent's sockets here, which sends nothing on them, and begin with none."""
        for sock in list(self._sockets):
            _discard(sock)
        self._begin_anew()
        self.heartbeats.renew_in_child()
        self.pressure = Pressure(self)

    def __reduce__(self) -> Any:
        raise TypeError(f"a connection stays in its process: send its address, {self.uri}, and connect there")

    @property
    def application(self) -> str:
        """What the metastore calls the program that we are."""
        return self._application or f"{Path(sys.argv[0]).name or 'python'}, process {os.getpid()}"

    @property
    def uri(self) -> str:
        """The address in the form that Hive's clients use."""
        return f"thrift://{self.host}:{self.port}"

    # --- calls ---------------------------------------------------------------------------------

    def call(self, method: str, *args: Any) -> Any:
        """Call an RPC by its name and return its result.

        Raises the error of `hive_acid.errors` that stands for the Thrift exception; MetastoreUnreachableError when no
        answer came. A call that may be repeated is tried once more on a fresh socket before that.
        """
        attempts = 1 if method in UNREPEATABLE else 2
        for attempt in range(1, attempts + 1):
            sock, client = self._take()
            try:
                result = getattr(client, method)(*args)
            except AnswersMixedError as error:
                _discard(sock)
                self._discard_idle()
                if attempt == attempts:
                    raise AnswersMixedError(
                        f"what came from the metastore at {self.uri} is no answer to {method}: {error}. Whether it was "
                        "done is not known; somebody else uses the socket, or a proxy mixes calls"
                    ) from None
            except (TTransportException, OSError, EOFError) as error:
                _discard(sock)
                if attempt == attempts:
                    raise MetastoreUnreachableError(
                        f"the metastore at {self.uri} did not answer {method}: {error}. Is it running there?"
                    ) from error
            except TApplicationException as error:
                self._put_back(sock, client)
                raise _application_error(method, error) from None
            except TDecodeException as error:  # an argument that cannot be sent, of which a part may have been
                _discard(sock)
                raise _thrift_error(error) from None
            except TException as error:
                self._put_back(sock, client)
                raise _thrift_error(error) from None
            except BaseException:
                _discard(sock)
                raise
            else:
                self._put_back(sock, client)
                return result
        raise AssertionError("the loop above returns or raises")

    def _take(self) -> tuple[socket.socket, TClient]:
        while True:
            with self._guard:
                if self._closed:
                    raise HiveAcidError(f"the connection to {self.uri} is closed: connect again")
                if not self._idle:
                    break
                sock, client = self._idle.pop()
            if _closed_by_peer(sock):
                _discard(sock)
                continue
            return sock, client
        return self._connect()

    def _connect(self) -> tuple[socket.socket, TClient]:
        transport = TSocket(self.host, self.port, socket_timeout=self._timeout_ms, connect_timeout=10_000)
        try:
            transport.open()
            transport.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets.add(transport.sock)
            client = TClient(service, NumberedProtocol(TCyBufferedTransport(transport)))
            client.set_ugi(self.user, [])
        except (TException, AnswersMixedError, OSError, EOFError, ValueError) as error:  # of a name that is none
            words = getattr(error, "message", None) or str(error)
            raise MetastoreUnreachableError(
                f"no metastore answers at {self.uri}: {words}. Start one with `metastore serve`, or check the address."
            ) from error
        return transport.sock, client

    def _put_back(self, sock: socket.socket, client: TClient) -> None:
        with self._guard:
            if not self._closed and len(self._idle) < POOL_SIZE:
                self._idle.append((sock, client))
                return
        _discard(sock)

    def _discard_idle(self) -> None:
        with self._guard:
            idle, self._idle = self._idle, []
        for sock, _ in idle:
            _discard(sock)

    # --- transactions --------------------------------------------------------------------------

    def begin(
        self,
        kind: TransactionKind = TransactionKind.WRITE,
        *,
        lock_timeout_ms: int = 300_000,
        tables: Iterable[str] = (),
        may_begin_again: bool = False,
    ) -> Transaction:
        """One transaction of `open_transactions`: its snapshot is taken, and its heartbeats are running."""
        return open_transactions(
            self, 1, kind, lock_timeout_ms=lock_timeout_ms, tables=tables, may_begin_again=may_begin_again
        )[0]

    # --- catalogue -----------------------------------------------------------------------------

    def table(self, database: str, name: str) -> Table:
        """The table's definition. Raises NoSuchObjectError."""
        return table_from_wire(self.wire_table(database, name))

    def wire_table(self, database: str, name: str) -> Any:
        """As `table`, with all that the metastore says of it, as a Thrift struct."""
        request = ttypes.GetTableRequest(
            dbName=database,
            tblName=name,
            capabilities=ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD"],
            processorIdentifier="hive-acid",
        )
        return self.call("get_table_req", request).table

    def partitions(self, table: Table) -> dict[str, str]:
        """Partition name to location, of all partitions of a table."""
        return self.partitions_named(table, self.partition_names(table))

    def partition_names(self, table: Table) -> list[str]:
        """The names of all partitions of a table, ``k=v/…``. Raises NoSuchObjectError if it is not there any more."""
        if not table.partition_keys:
            return []
        # By a pattern for all: get_partition_names answers for a table that is gone as for an empty one, as in Hive.
        names: list[str] = self.call("get_partition_names_ps", table.database, table.name, [""], -1)
        return names

    def partitions_named(self, table: Table, names: Sequence[str]) -> dict[str, str]:
        """Partition name to location, of those of the named partitions that there are."""
        found: dict[str, str] = {}
        for first in range(0, len(names), 1000):
            some = list(names[first : first + 1000])
            for partition in self.call("get_partitions_by_names", table.database, table.name, some):
                found[table.partition_name(partition.values)] = partition.sd.location
        return found

    def add_partitions(self, table: Table, locations: Mapping[str, str], *, wire: Any = None) -> None:
        """Register partitions (name to location); those that exist already are left as they are.

        `wire` is what `wire_table` has just told of the table, if it has been asked.
        """
        wire_table = wire or self.wire_table(table.database, table.name)
        parts = []
        for name, location in locations.items():
            descriptor = ttypes.StorageDescriptor(**vars(wire_table.sd))
            descriptor.location = location
            values = table.partition_values(name)
            parts.append(
                ttypes.Partition(
                    dbName=table.database, tableName=table.name, values=values, sd=descriptor, parameters={}
                )
            )
        for first in range(0, len(parts), 1000):
            request = ttypes.AddPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=parts[first : first + 1000],
                ifNotExists=True,
                needResult=False,
            )
            self.call("add_partitions_req", request)

    def create_database(
        self,
        name: str,
        *,
        location: str | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a database; its directory is made by the metastore."""
        database = ttypes.Database(
            name=name, locationUri=location, description=comment, parameters=dict(properties or {})
        )
        try:
            self.call("create_database", database)
        except THRIFT_ERRORS["AlreadyExistsException"]:
            if not if_not_exists:
                raise

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Drop a database, with `cascade` its tables too. Raises InvalidOperationError if it has some without."""
        try:
            self.call("drop_database", name, True, cascade)
        except THRIFT_ERRORS["NoSuchObjectException"]:
            if not if_exists:
                raise

    def create_table(self, table: Table, *, if_not_exists: bool = False) -> None:
        """Create a table; its directory is made by the metastore."""
        try:
            self.call("create_table", table.to_wire(self.user))
        except THRIFT_ERRORS["AlreadyExistsException"]:
            if not if_not_exists:
                raise

    def drop_table(self, database: str, name: str, *, purge: bool = False, if_exists: bool = False) -> None:
        """Drop a table with its data, with `purge` past the metastore's trash."""
        context = ttypes.EnvironmentContext(properties={"ifPurge": str(purge).lower()})
        try:
            self.call("drop_table_with_environment_context", database, name, True, context)
        except THRIFT_ERRORS["NoSuchObjectException"]:
            if not if_exists:
                raise

    def drop_partitions(self, table: Table, names: Sequence[str]) -> None:
        """Drop partitions (``k=v/…``) with their data, all or none. Raises NoSuchObjectError if one is not there."""
        if names:
            request = ttypes.DropPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=ttypes.RequestPartsSpec(names=list(names)),
                deleteData=True,
                ifExists=False,
                needResult=False,
            )
            self.call("drop_partitions_req", request)

    def abort_transactions(self, ids: Sequence[int]) -> None:
        """Abort transactions, whoever has opened them; those that have ended are passed by."""
        self.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=list(ids)))

    def undrop_table(self, database: str, name: str) -> None:
        """Bring back the table of this name that was dropped last, with its partitions and data.

        Raises NoSuchObjectError if it is not in the metastore's trash (``metastore.catalog.undrop.window``),
        AlreadyExistsError if there is a table of that name.
        """
        table = ttypes.Table(dbName=database, tableName=name)
        context = ttypes.EnvironmentContext(properties={"metastore.catalog.undrop": "true"})
        self.call("create_table_with_environment_context", table, context)

    def compact(self, database: str, name: str, kind: str, partitions: Sequence[str] = ()) -> list[int]:
        """Queue compactions (``minor``, ``major`` or ``rebalance``), one per partition; the ids of those accepted."""
        answers = [self.request_compaction(database, name, kind, one) for one in partitions or (None,)]
        return [answer.id for answer in answers if answer.accepted]

    def request_compaction(
        self,
        database: str,
        name: str,
        kind: str,
        partition: str | None = None,
        *,
        pool: str | None = None,
        buckets: int | None = None,
        order_by: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Any:
        """Queue one compaction; the metastore's ``CompactionResponse``, which says if and why it was not accepted.

        `buckets` and `order_by` (``ORDER BY a DESC``) are a rebalance's, `pool` names the workers that are to do it;
        `properties` are ``compactor.*`` of the job and ``tblprops.*`` of what it writes.
        """
        request = ttypes.CompactionRequest(
            dbname=database,
            tablename=name,
            partitionname=partition,
            type=getattr(ttypes.CompactionType, kind.upper()),
            poolName=pool,
            numberOfBuckets=buckets,
            orderByClause=order_by,
            properties=dict(properties or {}),
        )
        return self.call("compact2", request)

    # --- life ----------------------------------------------------------------------------------

    def close(self) -> None:
        """End the transactions that are open still, stop the heartbeats and close the sockets.

        Snapshots end, writes are aborted. If the metastore does not answer, they end by its time-out.
        """
        self.heartbeats.stop()
        with self._guard:
            self._closed = True
        self._discard_idle()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    uri: str = "thrift://localhost:9083",
    *,
    timeout_ms: int = 60_000,
    user: str | None = None,
    application: str | None = None,
) -> Connection:
    """Connect to a metastore, which will know us as `user` and as `application` (the program, if nothing is said).

    `uri` is ``thrift://host:port`` (port 9083 by default); several, with commas between, are tried in order.
    Raises MetastoreUnreachableError when none answers, AddressError for an address of another form.
    """
    failure: MetastoreUnreachableError | None = None
    for one in uri.split(","):
        host, port = _address(one)
        connection = Connection(host, port, timeout_ms=timeout_ms, user=user, application=application)
        try:
            connection.call("getStatus")
        except MetastoreUnreachableError as error:
            connection.close()
            failure = error
            continue
        return connection
    assert failure is not None
    raise failure


def _address(text: str) -> tuple[str, int]:
    parts = urlsplit(text.strip())
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = None
    if parts.scheme != "thrift" or not parts.hostname or port is None:
        raise AddressError(f"'{text}' is not the address of a metastore: give thrift://host:port")
    return parts.hostname, port


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _discard(sock: socket.socket) -> None:
    sock.close()


def _closed_by_peer(sock: socket.socket) -> bool:
    """An idle socket has nothing to read, unless its peer has closed it."""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _application_error(method: str, error: TApplicationException) -> HiveAcidError:
    if error.type == TApplicationException.UNKNOWN_METHOD:
        return UnknownMethodError(f"the metastore does not serve {method}")
    return MetastoreInternalError(error.message or f"the metastore failed in {method}")


def _thrift_error(error: TException) -> MetastoreError:
    kind = THRIFT_ERRORS.get(type(error).__name__, MetastoreError)
    return kind(getattr(error, "message", None) or str(error))
