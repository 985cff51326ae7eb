"""ACID tables of the catalogue with files on disk: writers that leave text in bucket files, readers, and the Cleaner.

Nothing in the server looks into bucket files of other writers, so text will do; empty bases are real ORC files.
"""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.filesystem import files
from hive_acid.format.names import VERSION_MARKER, bucket_file_name, delta_name
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.format.state import directory_state
from hive_acid.ids import TxnId
from metastore.catalog.service import CatalogService
from metastore.compaction.cleaner.cleaner import Cleaner, CleanerRun
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import CompactionAnswer, CompactionRequest
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionType
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.slices.compaction_catalogue import CatalogueOfCompaction
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from metastore.txn.write_ids.service import WriteIdService

OWNER = TxnOwner("ann", "host1", "test")
DEFAULT = "default"


@dataclass(frozen=True)
class Reader:
    """A transaction with its snapshot and the directory it has found; it reads when it likes."""

    world: AcidWorld
    txn_id: TxnId
    txns: ValidTxnList
    table: str
    location: str

    def rows(self) -> list[str]:
        """What the snapshot sees now, in order."""
        write_ids = self.world.snapshots.write_ids(DEFAULT, self.table, self.txns)
        state = directory_state(
            files.list_tree(self.location),
            write_ids,
            self.txns,
            lambda path: files.read(files.join(self.location, path)),
        )
        found = [file.path for directory in state.data for file in directory.files]
        texts = [files.read(files.join(self.location, path)) for path in found]
        return sorted(text.decode() for text in texts if not text.startswith(b"ORC"))

    def end(self) -> None:
        self.world.txns.commit_txn(self.txn_id)


class AcidWorld:
    """Clients of one catalogue."""

    def __init__(self, db: Database, catalog: CatalogService) -> None:
        self.db, self.catalog = db, catalog
        self.txns, self.write_ids, self.locks = TxnService(db, TxnConfig()), WriteIdService(db), LockService(db)
        self.snapshots = Snapshots(self.txns, self.write_ids)
        config = CompactionConfig(cleaner_retry_ms=0)
        self.compactions = CompactionService(db, config)
        self.cleaner = Cleaner(self.compactions, self.snapshots, CatalogueOfCompaction(catalog), config)

    def begin(self, kind: TxnType = TxnType.DEFAULT) -> TxnId:
        return self.txns.open_txns(1, OWNER, kind)[0]

    def write(
        self,
        table: str,
        text: str,
        partition: str | None = None,
        operation: Operation = Operation.INSERT,
        txn_id: TxnId | None = None,
    ) -> int:
        """Write one row; its write id. Committed, unless a transaction is given."""
        own = txn_id or self.begin()
        ((_, write_id),) = self.write_ids.allocate(DEFAULT, table, [own])
        location = self.location(table, partition)
        directory = files.join(location, delta_name(write_id, write_id, 0))
        files.make_directory(directory)
        files.write(files.join(directory, VERSION_MARKER), b"2")
        files.write(files.join(directory, bucket_file_name(0)), text.encode())
        component = LockComponent(LockType.SHARED_WRITE, DEFAULT, table, partition, operation)
        self.locks.lock(LockRequest((component,), OWNER, own))
        if txn_id is None:
            self.txns.commit_txn(own)
        return write_id

    def begin_alone(self, table: str, locked: LockComponent) -> TxnId:
        """A transaction that has a write id and an exclusive lock, as those in which Hive drops and truncates."""
        own = self.begin()
        self.write_ids.allocate(DEFAULT, table, [own])
        self.locks.lock(LockRequest((locked,), OWNER, own))
        return own

    def location(self, table: str, partition: str | None = None) -> str:
        if partition is None:
            return self.catalog.tables.get(DEFAULT, table).location or ""
        return self.catalog.partition(DEFAULT, table, partition) or ""

    def reader(self, table: str, partition: str | None = None) -> Reader:
        """A reader that begins now."""
        txn_id = self.begin(TxnType.READ_ONLY)
        return Reader(self, txn_id, self.snapshots.txns(txn_id), table, self.location(table, partition))

    def rows(self, table: str, partition: str | None = None) -> list[str]:
        """What a reader sees that begins now."""
        reader = self.reader(table, partition)
        try:
            return reader.rows()
        finally:
            reader.end()

    def compact(self, table: str, partition: str | None = None) -> CompactionAnswer:
        return self.compactions.compact(CompactionRequest(CompactionType.MAJOR, DEFAULT, table, partition))

    def clean(self) -> CleanerRun:
        return self.cleaner.run_once()

    def count(self, relation: str, table: str, condition: str = "true") -> int:
        """How many rows of a table of the database are about a table."""
        with self.db.engine.connect() as connection:
            query = f"SELECT count(*) FROM {relation} WHERE tbl = %s AND {condition}"
            return int(connection.exec_driver_sql(query, (table,)).scalar_one())
