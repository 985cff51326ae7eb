"""Hive's settings of a client session: with transactions or without (transactions.md §7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

CONCURRENCY = "hive.support.concurrency"
MANAGER = "hive.txn.manager"
_PACKAGE = "org.apache.hadoop.hive.ql.lockmgr."


class TransactionManager(Enum):
    """Hive's two, by the names of their classes: the one has ACID tables, the other only plain ones."""

    DB = "DbTxnManager"
    DUMMY = "DummyTxnManager"


def transaction_manager(settings: Mapping[str, str]) -> TransactionManager:
    """The manager that the settings ask for; with none of them given, DbTxnManager.

    ``hive.txn.manager`` takes the name of the class with or without its package. Without concurrency there are no
    transactions: ``hive.support.concurrency=false`` alone means DummyTxnManager. Raises ValueError for any other key or
    value, and for DbTxnManager without concurrency, as Hive does.
    """
    unknown = sorted(set(settings) - {CONCURRENCY, MANAGER})
    if unknown:
        raise ValueError(f"unknown setting '{unknown[0]}': a session takes {CONCURRENCY} and {MANAGER}")
    concurrency = settings.get(CONCURRENCY, "true").strip().lower()
    if concurrency not in ("true", "false"):
        raise ValueError(f"setting {CONCURRENCY}: '{settings[CONCURRENCY]}' is not true or false")
    if MANAGER not in settings:
        return TransactionManager.DB if concurrency == "true" else TransactionManager.DUMMY
    names = [manager.value for manager in TransactionManager]
    name = settings[MANAGER].strip().removeprefix(_PACKAGE)
    if name not in names:
        raise ValueError(f"setting {MANAGER}: '{settings[MANAGER]}' is not one of {', '.join(names)}")
    if name == TransactionManager.DB.value and concurrency == "false":
        raise ValueError(f"{MANAGER}={name} needs {CONCURRENCY}=true")
    return TransactionManager(name)
