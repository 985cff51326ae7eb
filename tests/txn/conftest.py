"""Services over a fresh database, and short ways to open and write."""

from collections.abc import Callable

import pytest

from hive_acid.ids import TxnId
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from metastore.txn.write_ids import WriteIdService

OWNER = TxnOwner("ann", "host1", "query 7")


@pytest.fixture
def txns(db: Database) -> TxnService:
    return TxnService(db, TxnConfig())


@pytest.fixture
def write_ids(db: Database) -> WriteIdService:
    return WriteIdService(db)


@pytest.fixture
def locks(db: Database) -> LockService:
    return LockService(db)


@pytest.fixture
def open_one(txns: TxnService) -> Callable[..., TxnId]:
    def open_txn(txn_type: TxnType = TxnType.DEFAULT) -> TxnId:
        return txns.open_txns(1, OWNER, txn_type)[0]

    return open_txn


@pytest.fixture
def write(locks: LockService, write_ids: WriteIdService) -> Callable[..., None]:
    """Declare a write of a transaction, by a shared-write lock as a client does."""

    def declare(
        txn_id: TxnId, operation: Operation, table: str = "t", partition: str | None = None, dynamic: bool = False
    ) -> None:
        write_ids.allocate("db", table, [txn_id])
        component = LockComponent(LockType.SHARED_WRITE, "db", table, partition, operation, dynamic)
        locks.lock(LockRequest((component,), OWNER, txn_id))

    return declare
