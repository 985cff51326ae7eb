"""Services over a fresh database, and a short way to ask for locks."""

from collections.abc import Callable

import pytest

from hive_acid.ids import TxnId
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService

OWNER = TxnOwner("ann", "host1", "query 7")


@pytest.fixture
def txns(db: Database) -> TxnService:
    return TxnService(db, TxnConfig())


@pytest.fixture
def locks(db: Database) -> LockService:
    return LockService(db)


@pytest.fixture
def open_one(txns: TxnService) -> Callable[[], TxnId]:
    return lambda: txns.open_txns(1, OWNER)[0]


@pytest.fixture
def ask(locks: LockService) -> Callable[..., LockResult]:
    """Ask for locks like ``"r db/t/p=1"``, in a transaction or without."""

    def request(*wanted: str, txn: TxnId | None = None, **options: bool) -> LockResult:
        return locks.lock(LockRequest(tuple(map(component, wanted)), OWNER, txn, **options))

    return request


def component(text: str) -> LockComponent:
    letter, target = text.split(" ", 1)
    names = [*target.split("/", 2), None, None]
    assert names[0]
    return LockComponent(LockType(letter), names[0], names[1], names[2])
