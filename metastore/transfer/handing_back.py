"""Tables go to another metastore with their write ids, so that leaving is as safe as coming.

The files stay where they are, and so must what their names mean. At the other metastore, before the table exists there,
its write ids begin where they stand here, the aborted ones aborted (`remote_writes`), and transaction ids go on above
ours (seed_txn_id), since directories of compactions carry them. Then the table is created, then its partitions. An
exclusive lock keeps writers away meanwhile; whoever is open on the table first is in the way. All of it may be
repeated: what is there already and equal is passed by.

Afterwards two metastores know the table, and only one may write. A DROP here would remove the files: `forget` takes the
table out of our catalogue and leaves them.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from hive_acid.connection import Connection
from hive_acid.errors import (
    AlreadyExistsError,
    HiveAcidError,
    MetastoreUnreachableError,
    NoSuchObjectError,
    UnknownMethodError,
)
from hive_acid.ids import LockId
from hive_acid.wire import ttypes
from metastore.catalog.models import Table
from metastore.catalog.names import split_key
from metastore.catalog.records import table_row
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockType
from metastore.rpc.structs import catalog as catalog_structs
from metastore.store.database import Database
from metastore.transfer.comparison import differences, in_words, ranges
from metastore.transfer.models import Selection, SourceTable, TableWrites, TransferError
from metastore.transfer.remote_writes import RemoteWrites
from metastore.transfer.report import ADDED, EQUAL, NOTE, REFUSED, Report
from metastore.transfer.sources.own import OwnSource
from metastore.transfer.sources.places import own_source
from metastore.transfer.sources.thrift import Peer
from metastore.transfer.target import as_stored
from metastore.txn.models import TxnOwner

_CAPABILITIES = [
    "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE", "HIVEMANAGESTATS",
    "EXTREAD", "EXTWRITE", "HIVECACHEINVALIDATE", "CONNECTORREADBUCKET", "CONNECTORWRITE",
]  # fmt: skip
_US = "hive-acid"


@dataclass(frozen=True, slots=True)
class HandBackOptions:
    """Which tables; `forgets` takes them out of our catalogue when they are there, without their files."""

    selection: Selection
    dry_run: bool = False
    forgets: bool = False


class HandBack:
    """One run; `run` once."""

    def __init__(
        self,
        db: Database,
        connection: Connection,
        options: HandBackOptions,
        forget: Callable[[str, str], None],
        progress: Callable[[str], None],
    ) -> None:
        """`forget` drops a table here and keeps its files; `progress` is told the name of each table that is done."""
        self._locks = LockService(db)
        self._snapshot = partial(own_source, db)
        self._peer = Peer(connection)
        self._writes = RemoteWrites(self._peer)
        self._options = options
        self._forget = forget
        self._progress = progress
        self._txn_ids_are_safe = False
        self.report = Report(f"this metastore to {connection.uri}", options.dry_run)

    def run(self) -> Report:
        """Hand back everything that is selected; what cannot be is in the report."""
        with self._snapshot() as source:
            chosen = [found.table for found in source.tables(self._options.selection)]
        if not chosen:
            self.report.find(REFUSED, "table", "", "none here has such a name")
        for table in chosen:
            try:
                if self._options.dry_run:
                    self._check(table)
                    self.report.count("table", ADDED)
                else:
                    with self._locked(table) as lock_id:
                        self._table(table, lock_id)
                    if self._options.forgets:
                        self._forget(table.database, table.name)
            except MetastoreUnreachableError:
                raise  # nothing else can be handed back either
            except HiveAcidError as error:
                self.report.find(REFUSED, "table", table.full_name, str(error))
            self._progress(table.full_name)
        if chosen and not self._options.dry_run and not self._options.forgets:
            words = (
                "both metastores know these now, and only one may write: run it again with --forget to take them out of"
                " this one, since DROP TABLE would remove the files"
            )
            self.report.find(NOTE, "tables", "handed back", words)
        return self.report

    # --- one table ---

    @contextmanager
    def _locked(self, table: Table) -> Iterator[LockId]:
        component = LockComponent(LockType.EXCLUSIVE, table.database, table.name)
        result = self._locks.lock(LockRequest((component,), TxnOwner(_US, socket.gethostname(), "hand-back")))
        try:
            if result.answer is not LockAnswer.ACQUIRED:
                raise TransferError("is in use: somebody holds a lock on it. Wait for the end of that and try again")
            yield result.lock_id
        finally:
            self._locks.unlock(result.lock_id)

    def _check(self, table: Table) -> None:
        with self._snapshot() as source:
            self._state(source, table)

    def _table(self, table: Table, lock_id: LockId) -> None:
        with self._snapshot() as source:
            found, writes = self._state(source, table)
            if writes is not None:
                self._take_txn_ids(source)
            self._database(source, table)
            there = self._existing(table)
            if writes is not None and self._writes.bring(table, writes):
                self.report.count("write ids", ADDED)
            if there is None:
                self._create(table)
                self.report.count("table", ADDED)
            else:
                self._compare(table, there)
            names = self._add_partitions(table, found, lock_id)
        with self._snapshot() as source:
            found, again = self._state(source, table)
            ours = sum(len(batch) for batch in found.partitions())
        if again != writes:
            raise TransferError("was written to here without a lock while it was handed back: its state there is old")
        if names != ours:
            raise TransferError(f"has {names} partitions there and {ours} here")

    def _add_partitions(self, table: Table, found: SourceTable, lock_id: LockId) -> int:
        """Add those that are not there; how many are there then."""
        if not table.partition_keys:
            return 0
        catalog, database = split_key(table.database)
        there = set(self._peer.call("get_partition_names", table.database, table.name, -1))
        for batch in found.partitions():
            self._locks.check_lock(lock_id)  # a sign of life
            missing = [one for one in batch if one.name not in there]
            self.report.count("partition", EQUAL, len(batch) - len(missing))
            self.report.count("partition", ADDED, len(missing))
            if missing:
                request = ttypes.AddPartitionsRequest(
                    catName=catalog,
                    dbName=database,
                    tblName=table.name,
                    parts=[catalog_structs.partition_struct(table.database, table.name, one) for one in missing],
                    ifNotExists=True,
                    needResult=False,
                )
                self._peer.call("add_partitions_req", request)
        return len(self._peer.call("get_partition_names", table.database, table.name, -1))

    def _state(self, source: OwnSource, table: Table) -> tuple[SourceTable, TableWrites | None]:
        """The table as it is now, with its write ids. Raises TransferError if they cannot be handed over."""
        for found in source.tables(Selection(tables=(table.full_name,))):
            writes = found.writes()
            if writes is None:
                return found, None
            if writes.unfinished:
                txns = ranges({one.txn_id for one in writes.unfinished})
                raise TransferError(f"transactions {txns} are open on it: wait for their end and try again")
            if any(not one.write_id for one in writes.aborted):
                raise TransferError(
                    "an aborted compaction may have left directories in it: let the Cleaner remove them first"
                )
            return found, writes
        raise NoSuchObjectError(f"{table.full_name} is gone")

    def _take_txn_ids(self, source: OwnSource) -> None:
        """Let the other's transaction ids go on above ours; once is enough, nobody here opens a compaction on a table
        that is locked.
        """
        if self._txn_ids_are_safe:
            return
        ours, theirs = source.txns().high_water_mark, self._peer.txns()
        shared = source.shared_txn_ids(str(self._peer.knows("get_metastore_db_uuid") or self._peer.name))
        unfinished = (*theirs.open_ids, *theirs.aborted_ids)
        in_the_way = [one for one in unfinished if one <= ours and not any(one in each for each in shared)]
        if in_the_way:
            raise TransferError(
                f"transactions {ranges(in_the_way)} are open or aborted at {self._peer.name}, and we have given out ids"
                f" up to {ours}: what our compactions wrote under these ids would be invisible there. Wait until they"
                " have ended and its Cleaner has run"
            )
        if theirs.high_water_mark < ours:
            try:
                self._peer.call("seed_txn_id", ttypes.SeedTxnIdRequest(seedTxnId=ours + 1))
            except UnknownMethodError:
                words = "it is older than Hive 4: what was compacted here (directories with _v) cannot be read there"
                self.report.find(NOTE, "transactions", f"of {self._peer.name}", words)
        self._txn_ids_are_safe = True

    def _database(self, source: OwnSource, table: Table) -> None:
        try:
            self._peer.call("get_database", table.database)
            return
        except NoSuchObjectError:
            pass
        for database in source.databases(Selection(databases=(table.database,))):
            self._peer.call("create_database", catalog_structs.database_struct(database))
            self.report.count("database", ADDED)

    def _existing(self, table: Table) -> Table | None:
        try:
            return catalog_structs.table_of(self._peer.table(table.database, table.name))
        except NoSuchObjectError:
            return None

    def _create(self, table: Table) -> None:
        struct = catalog_structs.table_struct(table)
        struct.id = None
        request = ttypes.CreateTableRequest(table=struct, processorCapabilities=_CAPABILITIES, processorIdentifier=_US)
        try:
            self._peer.first_of(
                lambda: self._peer.call("create_table_req", request), lambda: self._peer.call("create_table", struct)
            )
        except AlreadyExistsError as error:
            raise TransferError(f"somebody else creates it there now: {error}") from None

    def _compare(self, table: Table, there: Table) -> None:
        """Whether what is there is the same table, whatever the other has put into its parameters."""
        found = differences(_essentials(table), _essentials(there))
        if found:
            raise TransferError(f"is there already, and different: {in_words(found)}")
        self.report.count("table", EQUAL)


def _essentials(table: Table) -> dict[str, Any]:
    row = table_row(as_stored(table))
    essential = {name: row[name] for name in ("table_type", "location", "columns", "partition_keys")}
    return {**essential, "transactional": table.is_transactional, "full ACID": table.is_full_acid}
