"""A call repeated after its answer was lost: the same answer, and no harm to others, whoever came in between."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.isolation.clients.caller import Caller

ACQUIRED, WAITING = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING


@pytest.fixture
def caller(metastore: Callable[..., str]) -> Iterator[Any]:
    uri = metastore(**{"metastore.lock.poll.wait": "200ms"})
    host, port = uri.removeprefix("thrift://").split(":")
    made = Caller([(host, int(port))], random.Random(1), patience_s=10)
    yield made
    made.close()


def open_one(caller: Any) -> Any:
    request = ttypes.OpenTxnRequest(num_txns=1, user="u", hostname="h", agentInfo="query 7")
    return caller.call("open_txns", request).txn_ids[0]


def allocate(caller: Any, txn_id: Any) -> Any:
    request = ttypes.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[txn_id])
    return caller.call("allocate_table_write_ids", request).txnToWriteIds[0].writeId


def lock(caller: Any, txn_id: Any, *partitions: Any, kind: Any = ttypes.LockType.EXCL_WRITE) -> Any:
    components = [
        ttypes.LockComponent(
            type=kind,
            level=ttypes.LockLevel.PARTITION,
            dbname="d",
            tablename="t",
            partitionname=partition,
            operationType=ttypes.DataOperationType.UPDATE,
            isTransactional=True,
        )
        for partition in partitions or ("p=1",)
    ]
    request = ttypes.LockRequest(component=components, txnid=txn_id, user="u", hostname="h", agentInfo="query 7")
    answer = caller.call("lock", request)
    return answer.lockid, answer.state


def commit(caller: Any, txn_id: Any) -> None:
    caller.call("commit_txn", ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=False))


def test_a_held_lock_asked_for_again_does_not_queue_behind_who_waits_for_it(caller: Any) -> None:
    holder, waiter = open_one(caller), open_one(caller)
    held = lock(caller, holder)
    assert held[1] == ACQUIRED
    assert lock(caller, waiter)[1] == WAITING
    assert lock(caller, holder) == held


def test_a_lock_waited_for_keeps_its_place_when_asked_for_again(caller: Any) -> None:
    holder, first, second = open_one(caller), open_one(caller), open_one(caller)
    lock(caller, holder)
    place = lock(caller, first)
    assert lock(caller, second)[1] == WAITING
    assert lock(caller, first) == place
    commit(caller, holder)
    assert lock(caller, first) == (place[0], ACQUIRED)


def test_another_request_of_the_transaction_is_another_lock(caller: Any) -> None:
    txn_id = open_one(caller)
    first = lock(caller, txn_id, "p=1")
    second = lock(caller, txn_id, "p=1", "p=2")
    assert first[0] != second[0]
    assert second[1] == ACQUIRED
    assert lock(caller, txn_id, "p=1") == first


def test_a_write_id_is_given_once(caller: Any) -> None:
    first, second = open_one(caller), open_one(caller)
    given = allocate(caller, first)
    assert allocate(caller, second) == given + 1
    assert allocate(caller, first) == given


def test_a_commit_is_answered_as_before(caller: Any) -> None:
    winner, loser = open_one(caller), open_one(caller)
    for txn_id in (winner, loser):
        allocate(caller, txn_id)
        lock(caller, txn_id, kind=ttypes.LockType.SHARED_WRITE)
    for _ in range(3):
        commit(caller, winner)
    for _ in range(3):
        with pytest.raises(ttypes.TxnAbortedException):
            commit(caller, loser)


def test_an_abort_and_an_unlock_are_answered_as_before(caller: Any) -> None:
    txn_id = open_one(caller)
    lock_id = lock(caller, txn_id)[0]
    for _ in range(3):
        caller.call("abort_txn", ttypes.AbortTxnRequest(txnid=txn_id))
        caller.call("unlock", ttypes.UnlockRequest(lockid=lock_id))


def test_partitions_are_named_as_before(caller: Any) -> None:
    writer, other = open_one(caller), open_one(caller)
    request = ttypes.AddDynamicPartitions(
        txnid=writer,
        writeid=allocate(caller, writer),
        dbname="d",
        tablename="t",
        partitionnames=["p=1"],
        operationType=ttypes.DataOperationType.UPDATE,
    )
    for _ in range(3):
        caller.call("add_dynamic_partitions", request)
    allocate(caller, other)
    lock(caller, other, "p=2", kind=ttypes.LockType.SHARED_WRITE)
    commit(caller, writer)
    commit(caller, other)
