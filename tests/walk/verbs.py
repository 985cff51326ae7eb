"""The verbs of the walk: how each is said over Thrift, what its answer is in plain values, and how the model does it.

Arguments are plain values, ready to be printed in a story. What another step will only bring to light is a reference
such as ``"$t3"``: `resolved` puts the id in its place.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from hive_acid.format.snapshot import ValidTxnList, decode_bits
from hive_acid.wire import ttypes
from metastore.lock.states import LockState, LockType
from metastore.txn.states import Operation, TxnState, TxnType
from tests.caller import LOCK_TYPES, OPERATIONS, STATES, Refused, component
from tests.walk.model import Model
from tests.walk.records import Component, Mismatch, Write, WriteIds

DB = "db"


class Unbound(Exception):  # noqa: N818 - no error
    """A reference to what has not come to light."""


class Verb(NamedTuple):
    """One verb: the Thrift call of its arguments, the plain form of its answer, and the model's answer."""

    method: str
    request: Callable[..., tuple[Any, ...]]
    answer: Callable[[Any], Any]
    expect: Callable[..., Any]


@dataclass(frozen=True)
class Step:
    """One call of one client; `binds` are the references that its answer brings to light."""

    client: str
    verb: str
    arguments: Mapping[str, Any]
    binds: tuple[str, ...] = ()

    def resolved(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments with values for references. Raises Unbound."""
        return {name: _resolved(value, known) for name, value in self.arguments.items()}

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={told(value)}" for name, value in self.arguments.items())
        bound = f"{', '.join(self.binds)} = " if self.binds else ""
        return f"{self.client}: {bound}{self.verb}({arguments})"


def told(value: Any) -> str:
    """An argument or an answer as a story tells it."""
    if isinstance(value, (Component, WriteIds, Refused)):
        return str(value)
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, frozenset):
        return "{" + ", ".join(map(told, sorted(value))) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(told, value)) + "]"
    return value if isinstance(value, str) else repr(value)


def _resolved(value: Any, known: Mapping[str, Any]) -> Any:
    if isinstance(value, str) and value.startswith("$"):
        if value not in known:
            raise Unbound(value)
        return known[value]
    if isinstance(value, tuple):
        return tuple(_resolved(one, known) for one in value)
    return value


# --- transactions --------------------------------------------------------------------------------


def _open(number: int, kind: str) -> tuple[Any, ...]:
    return (ttypes.OpenTxnRequest(num_txns=number, user="u", hostname="h", txn_type=TxnType[kind].value),)


def _commit(txn: int, exclusive: bool | None) -> tuple[Any, ...]:
    return (ttypes.CommitTxnRequest(txnid=txn, exclWriteEnabled=exclusive),)


def _add_partitions(txn: int, table: str, partitions: tuple[str, ...], operation: str) -> tuple[Any, ...]:
    return (
        ttypes.AddDynamicPartitions(
            txnid=txn, writeid=1, dbname=DB, tablename=table, partitionnames=list(partitions),
            operationType=OPERATIONS[operation],
        ),
    )  # fmt: skip


def _open_txns_answer(found: Any) -> Any:
    bits = decode_bits(found.abortedBits or b"", len(found.open_txns))
    aborted = frozenset(txn_id for txn_id, bit in zip(found.open_txns, bits, strict=True) if bit)
    return found.txn_high_water_mark, tuple(found.open_txns), aborted, found.min_open_txn


_STATES = {ttypes.TxnState.OPEN: TxnState.OPEN, ttypes.TxnState.ABORTED: TxnState.ABORTED}


# --- write ids -----------------------------------------------------------------------------------


def _allocate(table: str, txns: tuple[int, ...], reallocate: bool) -> tuple[Any, ...]:
    return (
        ttypes.AllocateTableWriteIdsRequest(
            dbName=DB, tableName=table, txnIds=list(txns), reallocate=reallocate or None
        ),
    )


def _write_ids(tables: tuple[str, ...], snapshot: str | None, as_of: int | None) -> tuple[Any, ...]:
    names = [f"{DB}.{table}" for table in tables]
    return (ttypes.GetValidWriteIdsRequest(fullTableNames=names, validTxnList=snapshot, writeId=as_of),)


def _write_ids_answer(found: Any) -> tuple[WriteIds, ...]:
    return tuple(
        WriteIds(
            one.writeIdHighWaterMark,
            tuple(one.invalidWriteIds),
            frozenset(
                write_id
                for write_id, bit in zip(
                    one.invalidWriteIds, decode_bits(one.abortedBits or b"", len(one.invalidWriteIds)), strict=True
                )
                if bit
            ),
            one.minOpenWriteId,
        )
        for one in found.tblValidWriteIds
    )


def _expect_write_ids(model: Model, tables: tuple[str, ...], snapshot: str | None, as_of: int | None) -> Any:
    names = [table.lower() for table in tables]
    return model.write_ids(names, None if snapshot is None else ValidTxnList.parse(snapshot), as_of)


# --- locks ---------------------------------------------------------------------------------------


def _lock(wanted: tuple[str, ...], txn: int, options: tuple[str, ...]) -> tuple[Any, ...]:
    dynamic = {"isDynamicPartitionWrite": True} if "dynamic" in options else {}
    plain = {"isTransactional": False} if "not transactional" in options else {}
    return (
        ttypes.LockRequest(
            component=[component(text, **dynamic, **plain) for text in wanted],
            txnid=txn,
            user="u",
            hostname="h",
            zeroWaitReadEnabled="zero wait" in options or None,
            exclusiveCTAS="ctas" in options or None,
        ),
    )


def _expect_lock(model: Model, wanted: tuple[str, ...], txn: int, options: tuple[str, ...], answered: Any) -> Any:
    """The id is the server's choice; without one (an error reply) the model takes the next."""
    lock_id = answered[0] if isinstance(answered, tuple) else model.last_lock + 1
    components, letters = zip(*(_component(text) for text in wanted), strict=True)
    writes = []
    if "not transactional" not in options:
        pairs = [(one, Operation(letter)) for one, letter in zip(components, letters, strict=True) if letter in "iud"]
        writes = [Write(one.table, one.partition, operation) for one, operation in pairs if one.table]
    if "dynamic" in options:
        changed = {write.table for write in writes if write.operation.conflicts}
        writes = [
            Write(table, None, Operation.UPDATE if table in changed else Operation.INSERT)
            for table in {write.table for write in writes}
        ]
    return lock_id, model.lock(components, txn, writes, "zero wait" in options, "ctas" in options, lock_id)


def _component(text: str) -> tuple[Component, str]:
    letter, target, operation = text.split()
    db, table, partition = [*target.lower().split("/", 2), None, None][:3]
    return Component(LockType(letter), db or "", table, partition), operation


def _lock_answer(found: Any) -> tuple[int, str]:
    return found.lockid, STATES[found.state]


_LETTERS = {wire: letter for letter, wire in LOCK_TYPES.items()}


def _locks_answer(found: Any) -> list[Any]:
    return [
        (
            one.lockid,
            one.lockIdInternal,
            Component(LockType(_LETTERS[one.type]), one.dbname, one.tablename, one.partname),
            LockState.ACQUIRED if one.state == ttypes.LockState.ACQUIRED else LockState.WAITING,
            one.txnid or 0,
            (one.blockedByExtId, one.blockedByIntId) if one.blockedByExtId else None,
        )
        for one in found.locks or []
    ]


VERBS: dict[str, Verb] = {
    "open": Verb(
        "open_txns", _open, lambda found: tuple(found.txn_ids),
        lambda model, number, kind: model.open(number, TxnType[kind]),
    ),
    "commit": Verb("commit_txn", _commit, lambda _: None, lambda model, txn, exclusive: model.commit(txn, exclusive)),
    "abort": Verb(
        "abort_txn", lambda txn: (ttypes.AbortTxnRequest(txnid=txn),), lambda _: None,
        lambda model, txn: model.abort(txn),
    ),
    "abort_all": Verb(
        "abort_txns", lambda txns: (ttypes.AbortTxnsRequest(txn_ids=list(txns)),), lambda _: None,
        lambda model, txns: model.abort_all(txns),
    ),
    "heartbeat": Verb(
        "heartbeat", lambda txn, lock: (ttypes.HeartbeatRequest(txnid=txn, lockid=lock),), lambda _: None,
        lambda model, txn, lock: model.heartbeat(txn, lock),
    ),
    "heartbeat_range": Verb(
        "heartbeat_txn_range", lambda first, last: (ttypes.HeartbeatTxnRangeRequest(min=first, max=last),),
        lambda found: (frozenset(found.aborted), frozenset(found.nosuch)),
        lambda model, first, last: model.heartbeat_range(first, last),
    ),
    "conflict": Verb(
        "get_latest_txnid_in_conflict", lambda txn: (txn,), lambda found: found, lambda model, txn: model.conflict(txn)
    ),
    "add_partitions": Verb(
        "add_dynamic_partitions", _add_partitions, lambda _: None,
        lambda model, txn, table, partitions, operation: model.add_partitions(
            txn, table.lower(), [name.lower() for name in partitions], Operation(operation)
        ),
    ),
    "open_txns": Verb(
        "get_open_txns", lambda: (), _open_txns_answer, lambda model: model.open_txns((TxnType.READ_ONLY,))
    ),
    "open_txns_but": Verb(
        "get_open_txns_req",
        lambda kinds: (ttypes.GetOpenTxnsRequest(excludeTxnTypes=[TxnType[kind].value for kind in kinds]),),
        _open_txns_answer, lambda model, kinds: model.open_txns([TxnType[kind] for kind in kinds]),
    ),
    "snapshot": Verb(  # what a client remembers of get_open_txns
        "get_open_txns", lambda txn: (), _open_txns_answer, lambda model, txn: model.open_txns((TxnType.READ_ONLY,))
    ),
    "info": Verb(
        "get_open_txns_info", lambda: (),
        lambda found: tuple((one.id, _STATES[one.state]) for one in found.open_txns), lambda model: model.info(),
    ),
    "allocate": Verb(
        "allocate_table_write_ids", _allocate,
        lambda found: tuple((one.txnId, one.writeId) for one in found.txnToWriteIds),
        lambda model, table, txns, reallocate: model.allocate(table.lower(), txns, reallocate),
    ),
    "max_write_id": Verb(
        "get_max_allocated_table_write_id",
        lambda table: (ttypes.MaxAllocatedTableWriteIdRequest(dbName=DB, tableName=table),),
        lambda found: found.maxWriteId, lambda model, table: model.max_write_id(table.lower()),
    ),
    "seed": Verb(
        "seed_write_id",
        lambda table, last: (ttypes.SeedTableWriteIdsRequest(dbName=DB, tableName=table, seedWriteId=last),),
        lambda _: None, lambda model, table, last: model.seed(table.lower(), last),
    ),
    "write_ids": Verb("get_valid_write_ids", _write_ids, _write_ids_answer, _expect_write_ids),
    "lock": Verb("lock", _lock, _lock_answer, _expect_lock),
    "check": Verb(
        "check_lock", lambda lock, txn: (ttypes.CheckLockRequest(lockid=lock, txnid=txn or None),),
        lambda found: STATES[found.state], lambda model, lock, txn: model.check(lock, txn),
    ),
    "unlock": Verb(
        "unlock", lambda lock: (ttypes.UnlockRequest(lockid=lock),), lambda _: None,
        lambda model, lock: model.unlock(lock),
    ),
    "locks": Verb(
        "show_locks",
        lambda db, table, partition, txn: (
            # 0 is no transaction, said by a client of Hive 4: to elder ones EXCL_WRITE is shown as EXCLUSIVE.
            ttypes.ShowLocksRequest(dbname=db, tablename=table, partname=partition, txnid=txn or 0),
        ),
        _locks_answer,
        lambda model, db, table, partition, txn: model.locks(db, table and table.lower(), partition, txn),
    ),
}  # fmt: skip
"""Everything a client can say."""


def compare(verb: str, model: Model, expected: Any, answered: Any) -> None:
    """Raises Mismatch unless the answer is what the model says."""
    if verb == "locks":
        _compare_locks(model, expected, answered)
    elif verb == "write_ids" and model.has_purged:
        _compare_loosely(model, expected, answered)
    elif expected != answered:
        raise Mismatch(f"{told(answered)} instead of {told(expected)}")


def _compare_locks(model: Model, expected: list[Any], answered: list[Any]) -> None:
    if [one[:5] for one in expected] != [one[:5] for one in answered]:
        raise Mismatch(f"{told(answered)} instead of {told(expected)}")
    numbers = Counter(one[0] for one in answered)
    named = {one[0] for one in answered if one[5]}
    for wanted, found in zip(expected, answered, strict=True):
        if found[5] and found[5] not in wanted[5]:
            raise Mismatch(f"{told(found)} is not blocked by that but by {told(sorted(wanted[5]))}")
        is_shown_whole = numbers[found[0]] == len(model.requests[found[0]].components)
        if wanted[3] is LockState.WAITING and is_shown_whole and found[0] not in named:
            raise Mismatch(f"{told(found)} waits and names no blocker")


def _compare_loosely(model: Model, expected: tuple[WriteIds, ...], answered: tuple[WriteIds, ...]) -> None:
    """Mappings of committed writes may be gone: what counts is who is valid."""
    for wanted, found in zip(expected, answered, strict=True):
        most = max(model.last_write_id.values(), default=0)
        for write_id in range(1, most + 2):
            if wanted.is_valid(write_id) != found.is_valid(write_id):
                raise Mismatch(f"{found} instead of {wanted}: write id {write_id}")
        if not found.aborted <= wanted.aborted | set(range(wanted.high_water_mark + 1, most + 1)):
            raise Mismatch(f"{found} instead of {wanted}: aborted ones")
