"""Transactions, locks, write ids and compactions."""

from __future__ import annotations

from typing import Any

from tests.caller import refused
from tests.clients.walks.walk import Walk


def transactions(walk: Walk) -> None:
    client = walk.client
    first = client.openTxn("ann")
    second, third = client.openTxns("ann", 2).getTxn_ids()
    # The dual-typed open_txns: a set for 2.3, a list for 3.1; against every Java server since 3.0 2.3's fails.
    snapshot = client.getValidTxns()
    assert not snapshot.isTxnValid(first)
    assert not client.getValidTxns(first).isTxnValid(second)
    client.heartbeat(first, 0)
    answer = client.heartbeatTxnRange(first, third)
    assert answer.getAborted().size() == answer.getNosuch().size() == 0
    client.commitTxn(first)
    client.commitTxn(first)
    client.rollbackTxn(second)
    client.abortTxns(walk.hive.longs([third]))
    assert set(client.heartbeatTxnRange(second, third).getAborted()) == {second, third}
    assert client.getValidTxns().isTxnValid(first)
    states = {one.getId(): one.getState().toString() for one in client.showTxns().getOpen_txns()}
    assert states[second] == states[third] == "ABORTED"
    with refused("NoSuchTxnException"):
        client.commitTxn(99_999_999)
    with refused("TxnAbortedException"):
        client.commitTxn(second)


def _lock(walk: Walk, kind: str, txn_id: int = 0, table: str = "t") -> Any:
    api = walk.hive.api
    component = api.LockComponent(getattr(api.LockType, kind), api.LockLevel.TABLE, walk.db)
    component.setTablename(table)
    component.setOperationType(api.DataOperationType.UPDATE if txn_id else api.DataOperationType.NO_TXN)
    request = walk.new("LockRequest", component=[component], user="ann", hostname="host")
    if txn_id:
        request.setTxnid(txn_id)
    return request


def locks(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    walk.acid("t")
    held = client.lock(_lock(walk, "EXCLUSIVE"))
    assert held.getState() == api.LockState.ACQUIRED
    txn_id = client.openTxn("bob")
    waiting = client.lock(_lock(walk, "SHARED_WRITE", txn_id))
    assert waiting.getState() == api.LockState.WAITING
    request = walk.new("ShowLocksRequest", dbname=walk.db)
    shown = {one.getLockid(): one for one in client.showLocks(request).getLocks()}
    assert shown[held.getLockid()].getState() == api.LockState.ACQUIRED
    assert shown[held.getLockid()].getType() == api.LockType.EXCLUSIVE
    assert shown[waiting.getLockid()].getTxnid() == txn_id
    assert client.showLocks().getLocks().size() >= 2
    client.heartbeat(0, held.getLockid())
    client.unlock(held.getLockid())
    assert client.checkLock(waiting.getLockid()).getState() == api.LockState.ACQUIRED
    client.commitTxn(txn_id)
    with refused("NoSuchLockException"):
        client.checkLock(held.getLockid())


def dynamic_partitions(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    walk.acid("t", keys="year int")
    txn_id = client.openTxn("ann")
    write_id: list[int] = []
    if walk.catalog:
        write_id = [client.allocateTableWriteId(txn_id, walk.db, "t")]
    client.lock(_lock(walk, "SHARED_WRITE", txn_id))
    client.addDynamicPartitions(txn_id, *write_id, walk.db, "t", ["year=2024"])
    kind = api.DataOperationType.UPDATE
    client.addDynamicPartitions(txn_id, *write_id, walk.db, "t", ["year=2025"], kind)
    client.commitTxn(txn_id)


def compactions(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    for name in "abc":
        walk.acid(name)
    client.compact(walk.db, "a", None, api.CompactionType.MAJOR)
    client.compact(walk.db, "b", None, api.CompactionType.MINOR, {"k": "v"})
    answer = client.compact2(walk.db, "c", None, api.CompactionType.MAJOR, {})
    assert answer.isAccepted()
    assert client.compact2(walk.db, "c", None, api.CompactionType.MAJOR, {}).isAccepted() is False
    shown = {one.getTablename(): one for one in client.showCompactions().getCompacts() if one.getDbname() == walk.db}
    assert set(shown) == set("abc")
    assert shown["b"].getType() == api.CompactionType.MINOR
    assert shown["c"].getState() == "initiated"


STORIES = [transactions, locks, dynamic_partitions, compactions]
