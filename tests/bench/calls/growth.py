"""A metastore with a past: many finished transactions that cannot be purged, or many open ones."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from hive_acid.wire import ttypes
from tests.bench.calls.cycles import (
    COMMIT,
    COMMIT_CHECKED,
    LOCK,
    PARTITIONS,
    TABLES,
    TXN_AT,
    lock_request,
    open_request,
)
from tests.bench.calls.driver import Call, Driver, Scenario, Script, ask, connect
from tests.bench.calls.messages import ID_BYTES, encode, success_header

CONNECTIONS = 50
_BATCH = PARTITIONS * TABLES // CONNECTIONS
"""Each connection has so many partitions of its own, and one transaction for each in a batch: none conflicts."""
SETTLE_S = 30.0
"""The state is measured, not the making of it: Postgres and the housekeeping have tidied up by then."""
_OPEN_BATCH = Call("open_txns", success_header("open_txns"))
_ALLOCATE_BATCH = Call("allocate_table_write_ids", success_header("allocate_table_write_ids"), b"\0\0\0")


@contextlib.contextmanager
def finished(uri: str, txns: int) -> Iterator[None]:
    """So many committed updates, and one open transaction that is older, so that they still matter and stay."""
    with contextlib.closing(connect(uri)) as sock:
        (oldest,) = ask(sock, "open_txns", ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="bench"))[1]
        committed = 0

        def scripts(number: int) -> Callable[[], Script]:
            table, first = f"t{number % TABLES}", number // TABLES * _BATCH
            locks = [
                lock_request(table, f"p={p}", ttypes.LockType.SHARED_WRITE, ttypes.DataOperationType.UPDATE)
                for p in range(first, first + _BATCH)
            ]

            def script() -> Script:
                nonlocal committed
                answer = yield _OPEN_BATCH, open_request(txns=_BATCH)
                ids = [answer[TXN_AT + n * ID_BYTES : TXN_AT + (n + 1) * ID_BYTES] for n in range(_BATCH)]
                allocation = ttypes.AllocateTableWriteIdsRequest(
                    dbName="bench", tableName=table, txnIds=[int.from_bytes(txn, "big") for txn in ids]
                )
                yield _ALLOCATE_BATCH, encode("allocate_table_write_ids", allocation)
                for txn, lock in zip(ids, locks, strict=True):
                    yield LOCK, txn.join(lock)
                    yield COMMIT, txn.join(COMMIT_CHECKED)
                committed += _BATCH

            return script

        scenario = Scenario("finish", (_OPEN_BATCH, _ALLOCATE_BATCH, LOCK, COMMIT), scripts)
        with Driver(uri, CONNECTIONS) as driver:
            while committed < txns:
                figures = driver.run(scenario, 0.5, 0.0)
                if figures.failures:
                    raise RuntimeError(f"transactions could not be committed: {figures.failures}")
                ask(sock, "heartbeat", ttypes.HeartbeatRequest(txnid=oldest))
        time.sleep(SETTLE_S)
        yield
        ask(sock, "abort_txn", ttypes.AbortTxnRequest(txnid=oldest))
