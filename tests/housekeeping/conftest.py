"""Clients that write, and the service that forgets what they did."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from hive_acid.ids import TxnId, WriteId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TableWriteIds, TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from metastore.txn.write_ids.service import WriteIdService

OWNER = TxnOwner("ann", "host1")


@dataclass
class Clients:
    """Short ways to do what clients do."""

    db: Database
    txns: TxnService
    write_ids: WriteIdService
    locks: LockService

    def open(self, txn_type: TxnType = TxnType.DEFAULT) -> TxnId:
        return self.txns.open_txns(1, OWNER, txn_type)[0]

    def write(
        self,
        txn_id: TxnId | None = None,
        table: str = "t",
        operation: Operation = Operation.UPDATE,
        partition: str | None = None,
    ) -> TxnId:
        """Allocate a write id and lock the table for a write, in a transaction that is left open."""
        txn_id = txn_id or self.open()
        self.write_ids.allocate("db", table, [txn_id])
        component = LockComponent(LockType.SHARED_WRITE, "db", table, partition, operation)
        self.locks.lock(LockRequest((component,), OWNER, txn_id))
        return txn_id

    def commit(self, *txn_ids: TxnId) -> None:
        for txn_id in txn_ids:
            self.txns.commit_txn(txn_id)

    def cycle(self, table: str = "t", operation: Operation = Operation.UPDATE, partition: str | None = None) -> TxnId:
        """Open, write, commit."""
        txn_id = self.write(None, table, operation, partition)
        self.commit(txn_id)
        return txn_id

    def sees(self, table: str = "t") -> TableWriteIds:
        return self.write_ids.get_valid([f"db.{table}"])[0]

    def last_write_id(self, table: str = "t") -> WriteId:
        return self.write_ids.get_max_allocated("db", table)


@pytest.fixture
def clients(db: Database) -> Clients:
    return Clients(db, TxnService(db, TxnConfig()), WriteIdService(db), LockService(db))


@pytest.fixture
def cleaner(db: Database) -> AcidTxnCleaner:
    """Forgets finished transactions at once."""
    return AcidTxnCleaner(db, HousekeepingConfig(finished_retention_ms=0))


@pytest.fixture
def count(db: Database) -> Callable[[str], int]:
    """Rows of a table."""

    def rows(table: str) -> int:
        with db.engine.connect() as connection:
            return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() or 0)

    return rows
