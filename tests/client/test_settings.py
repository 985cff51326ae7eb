"""With transactions or without: what a client session's settings mean."""

from typing import Any

import pytest

from hive_acid.settings import CONCURRENCY, MANAGER, TransactionManager, transaction_manager

PACKAGE = "org.apache.hadoop.hive.ql.lockmgr."


@pytest.mark.parametrize(
    ("settings", "manager"),
    [
        ({}, TransactionManager.DB),
        ({MANAGER: "DbTxnManager"}, TransactionManager.DB),
        ({MANAGER: PACKAGE + "DbTxnManager", CONCURRENCY: "true"}, TransactionManager.DB),
        ({MANAGER: PACKAGE + "DummyTxnManager"}, TransactionManager.DUMMY),
        ({MANAGER: "DummyTxnManager", CONCURRENCY: "false"}, TransactionManager.DUMMY),
        ({CONCURRENCY: "TRUE"}, TransactionManager.DB),
        ({CONCURRENCY: "false"}, TransactionManager.DUMMY),
    ],
)
def test_the_manager(settings: Any, manager: Any) -> None:
    assert transaction_manager(settings) is manager


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({MANAGER: "ZooKeeper"}, "'ZooKeeper' is not one of DbTxnManager, DummyTxnManager"),
        ({CONCURRENCY: "yes"}, "'yes' is not true or false"),
        ({MANAGER: "DbTxnManager", CONCURRENCY: "false"}, "needs hive.support.concurrency=true"),
        ({"hive.txn.timeout": "5s"}, "unknown setting 'hive.txn.timeout'"),
    ],
)
def test_what_is_no_manager(settings: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace(".", r"\.")):
        transaction_manager(settings)
