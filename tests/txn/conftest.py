"""Services over a fresh database, and short ways to open and write; a server for what is seen over Thrift."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.service import CatalogService
from metastore.compaction.cleaner.cleaner import Cleaner
from metastore.compaction.config import CompactionConfig
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
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
from tests.caller import Caller
from tests.served import Served, served

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


@pytest.fixture
def server(postgres_url: str, template: str, tmp_path: Path) -> Iterator[Served]:
    """A metastore of the test's own, which does nothing by itself."""
    with served(postgres_url, template, tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def ann(server: Served) -> Iterator[Caller]:
    """A client of the server."""
    with server.caller() as caller:
        yield caller


@pytest.fixture
def cleaner(server: Served, tmp_path: Path) -> Cleaner:
    """The Cleaner on the server's database; it is off in the server itself."""
    db, config = server.db, CompactionConfig(cleaner_retry_ms=0)
    catalog = CatalogService(db, str(tmp_path / "warehouse"), CatalogConfig())
    snapshots = Snapshots(TxnService(db, TxnConfig()), WriteIdService(db))
    return Cleaner(CompactionService(db, config), snapshots, CatalogueOfCompaction(catalog), config)


def shown(ann: Caller) -> list[Any]:
    """The compactions waiting, under way and ended."""
    return list(ann.call("show_compact", ttypes.ShowCompactRequest()).compacts)
