"""What ought to be: transactions, write ids, snapshots and locks in plain Python, after the rules of transactions.md.

Every verb takes what the call says and returns what the answer must be, or raises `Refusal`. There is no clock: each
open transaction knows its rivals, the changes that were committed since it was opened. So two models that have seen the
same calls in orders that make no difference are equal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hive_acid.format.snapshot import ValidTxnList
from metastore.lock.states import LockState, LockType
from metastore.txn.states import Operation, TxnState, TxnType, Verb, next_state
from tests.walk.records import Change, Component, Mismatch, Refusal, Request, Txn, Write, WriteIds

OPEN, ABORTED, COMMITTED = TxnState.OPEN, TxnState.ABORTED, TxnState.COMMITTED
NO_TXN, TXN_ABORTED, NO_LOCK = "NoSuchTxnException", "TxnAbortedException", "NoSuchLockException"
TXN_OPEN, META = "TxnOpenException", "MetaException"


@dataclass
class Model:
    """The whole state; `has_purged`: housekeeping has been there, and may have forgotten what is committed."""

    last_txn: int = 0
    txns: dict[int, Txn] = field(default_factory=dict)
    last_write_id: dict[str, int] = field(default_factory=dict)
    owners: dict[str, dict[int, int]] = field(default_factory=dict)
    last_lock: int = 0
    requests: dict[int, Request] = field(default_factory=dict)
    has_purged: bool = False

    def copy(self) -> Model:
        owners = {table: dict(ids) for table, ids in self.owners.items()}
        return replace(
            self, txns=dict(self.txns), last_write_id=dict(self.last_write_id), owners=owners,
            requests=dict(self.requests),
        )  # fmt: skip

    # --- transactions --------------------------------------------------------------------------

    def open(self, number: int, kind: TxnType) -> tuple[int, ...]:
        ids = tuple(range(self.last_txn + 1, self.last_txn + number + 1))
        self.last_txn += number
        self.txns |= dict.fromkeys(ids, Txn(kind))
        return ids

    def commit(self, txn_id: int, exclusive: bool | None) -> None:
        txn = self._known(txn_id)
        verb = Verb.COMMIT
        rivals = self._rivals(txn)
        if txn.state is OPEN and rivals and not exclusive:
            verb = Verb.COMMIT_IN_CONFLICT
        was_open = txn.state is OPEN
        target = self._walk(txn_id, verb)
        if verb is Verb.COMMIT_IN_CONFLICT:
            raise Refusal(TXN_ABORTED, words=("write conflict", f"txnid:{txn_id},"))
        assert target is COMMITTED
        if not was_open or txn.type is TxnType.READ_ONLY:
            return
        changes = frozenset(Change(txn_id, write) for write in txn.writes if write.operation.conflicts)
        if changes:
            for other_id, other in self.txns.items():
                if other.state is OPEN:
                    self.txns[other_id] = replace(other, rivals=other.rivals | changes)

    def abort(self, txn_id: int) -> None:
        self._known(txn_id)
        self._walk(txn_id, Verb.ABORT)

    def abort_all(self, txn_ids: Sequence[int]) -> None:
        for txn_id in txn_ids:
            if self._state(txn_id) is OPEN:
                self._walk(txn_id, Verb.ABORT)

    def time_out(self, txn_ids: Sequence[int]) -> None:
        for txn_id in txn_ids:
            if self._state(txn_id) is OPEN:
                self._walk(txn_id, Verb.TIME_OUT)

    def heartbeat(self, txn_id: int, lock_id: int) -> None:
        kinds = []
        if txn_id and self._state(txn_id) is not OPEN:
            kinds.append(TXN_ABORTED if self._state(txn_id) is ABORTED else NO_TXN)
        if lock_id and lock_id not in self.requests:
            kinds.append(NO_LOCK)
        if kinds:
            raise Refusal(*kinds)

    def heartbeat_range(self, first: int, last: int) -> tuple[frozenset[int], frozenset[int]]:
        ids = range(first, last + 1)
        aborted = frozenset(txn_id for txn_id in ids if self._state(txn_id) is ABORTED)
        return aborted, frozenset(txn_id for txn_id in ids if self._state(txn_id) is not OPEN) - aborted

    def conflict(self, txn_id: int) -> int:
        txn = self.txns.get(txn_id)
        return max(self._rivals(txn), default=0) if txn else 0

    def add_partitions(self, txn_id: int, table: str, partitions: Sequence[str], operation: Operation) -> None:
        txn = self._writer(txn_id)
        named = {Write(table, partition, operation) for partition in partitions}
        kept = {write for write in txn.writes if write.table != table or write.partition is not None}
        self.txns[txn_id] = replace(txn, writes=frozenset(kept | named))

    def keep_house(self) -> None:
        """Aborted transactions that wrote nothing go; of committed ones some."""
        self.has_purged = True
        owning = {owner for ids in self.owners.values() for owner in ids.values()}
        for txn_id, txn in list(self.txns.items()):
            if txn.state is ABORTED and not txn.writes and txn_id not in owning:
                del self.txns[txn_id]

    # --- snapshots -----------------------------------------------------------------------------

    def open_txns(self, excluded: Collection[TxnType]) -> tuple[int, tuple[int, ...], frozenset[int], int | None]:
        """High-water mark, open and aborted ones, the aborted ones among them, the smallest open one of any type."""
        listed = sorted(
            txn_id for txn_id, txn in self.txns.items() if txn.state is not COMMITTED and txn.type not in excluded
        )
        aborted = frozenset(txn_id for txn_id in listed if self.txns[txn_id].state is ABORTED)
        min_open = min((txn_id for txn_id, txn in self.txns.items() if txn.state is OPEN), default=None)
        return self.last_txn, tuple(listed), aborted, min_open

    def info(self) -> tuple[tuple[int, TxnState], ...]:
        return tuple(sorted((n, txn.state) for n, txn in self.txns.items() if txn.state is not COMMITTED))

    def snapshot(self, own: int = 0) -> ValidTxnList:
        high_water_mark, listed, aborted, _ = self.open_txns((TxnType.READ_ONLY,))
        mine = [txn_id for txn_id in listed if not own or txn_id < own]
        return ValidTxnList(
            min(own, high_water_mark) if own else high_water_mark,
            tuple(txn_id for txn_id in mine if txn_id not in aborted),
            tuple(txn_id for txn_id in mine if txn_id in aborted),
        )

    # --- write ids -----------------------------------------------------------------------------

    def allocate(self, table: str, txn_ids: Sequence[int], reallocate: bool) -> tuple[tuple[int, int], ...]:
        for txn_id in sorted(set(txn_ids)):
            self._writer(txn_id)
        owners = self.owners.setdefault(table, {})
        if reallocate:
            for write_id in [w for w, owner in sorted(owners.items()) if owner in txn_ids]:
                self.last_txn += 1  # a transaction that is aborted from the start has it now
                self.txns[self.last_txn] = Txn(state=ABORTED, writes=frozenset({Write(table, None, Operation.INSERT)}))
                owners[write_id] = self.last_txn
        given = {owner: write_id for write_id, owner in owners.items()}
        for txn_id in sorted(set(txn_ids)):
            if txn_id not in given:
                self.last_write_id[table] = given[txn_id] = self.last_write_id.get(table, 0) + 1
                owners[given[txn_id]] = txn_id
        return tuple((txn_id, given[txn_id]) for txn_id in sorted(set(txn_ids)))

    def max_write_id(self, table: str) -> int:
        return self.last_write_id.get(table, 0)

    def seed(self, table: str, last: int) -> None:
        if table in self.last_write_id:
            raise Refusal(META, words=(table,))
        self.last_write_id[table] = last

    def write_ids(
        self, tables: Sequence[str], snapshot: ValidTxnList | None, as_of: int | None
    ) -> tuple[WriteIds, ...]:
        """Of each table, as `snapshot` sees it; else as the owner of a write id of the first one; else as of now."""
        if snapshot is None:
            owner = 0
            if as_of is not None:
                owner = self.owners.get(tables[0], {}).get(as_of, 0)
                if not owner:
                    raise Refusal(META, words=(as_of, tables[0]))
            snapshot = self.snapshot(owner)
        return tuple(self._write_ids(table, snapshot) for table in tables)

    def _write_ids(self, table: str, snapshot: ValidTxnList) -> WriteIds:
        owners = self.owners.get(table, {})
        highest = max((w for w, owner in owners.items() if owner <= snapshot.high_water_mark), default=None)
        if highest is None:
            highest = self.max_write_id(table)
        seen = {w: owner for w, owner in owners.items() if w <= highest}
        invalid = sorted(w for w, owner in seen.items() if not snapshot.is_valid(owner))
        aborted = frozenset(w for w in invalid if snapshot.is_aborted(seen[w]))
        min_open = min((w for w in invalid if w not in aborted), default=None)
        if invalid and len(invalid) == len(seen):  # nothing valid: all but the lowest is left out
            return WriteIds(invalid[0], (invalid[0],), aborted & {invalid[0]}, min_open)
        return WriteIds(highest, tuple(invalid), aborted, min_open)

    # --- locks ---------------------------------------------------------------------------------

    def lock(
        self, components: Sequence[Component], txn_id: int, writes: Iterable[Write], refuses_reads: bool, ctas: bool,
        lock_id: int,
    ) -> str:  # fmt: skip
        """`lock_id` is the one of the answer, which must be larger than all before; or that of the same request, if the
        transaction has made it before: it has lost the answer then.
        """
        writes = frozenset(writes)
        if txn_id:
            txn = self._writer(txn_id) if writes else self._live(txn_id)
        asked = txn_id, tuple(components)
        same = [n for n, one in self.requests.items() if txn_id and (one.txn_id, one.components) == asked]
        if same:
            if lock_id != same[0]:
                raise Mismatch(f"the lock id {lock_id} is not {same[0]}, which the transaction has for the same")
            self.txns[txn_id] = replace(txn, writes=txn.writes | writes)
            return _letter(self.requests[lock_id])
        if lock_id <= self.last_lock:
            raise Mismatch(f"the lock id {lock_id} is not larger than {self.last_lock}")
        self.last_lock = lock_id
        request = self._looked_at(lock_id, Request(txn_id, tuple(components)))
        if request.state is LockState.WAITING and txn_id:
            first = next(one for one, found in zip(components, request.blockers, strict=True) if found)
            if ctas or (refuses_reads and first.type is LockType.SHARED_READ):
                return "N"
        self.requests[lock_id] = request
        if txn_id:
            self.txns[txn_id] = replace(txn, writes=txn.writes | writes)
        return _letter(request)

    def check(self, lock_id: int, txn_id: int) -> str:
        request = self.requests.get(lock_id)
        if request is None:
            raise Refusal(TXN_ABORTED if txn_id and self._state(txn_id) is ABORTED else NO_LOCK)
        if request.state is LockState.WAITING:
            request = self.requests[lock_id] = self._looked_at(lock_id, request)
        return _letter(request)

    def victims(self, lock_id: int) -> set[int]:
        """Who may be aborted when somebody looks for a deadlock of this request: of each circle of waiting
        transactions that its own one is part of, the youngest. It looks if it has asked for something before;
        locks without a transaction are only passed through."""
        request = self.requests.get(lock_id)
        if request is None or not request.txn_id or request.state is LockState.ACQUIRED:
            return set()
        if not any(n < lock_id and other.txn_id == request.txn_id for n, other in self.requests.items()):
            return set()
        ahead: dict[int, set[int]] = {}
        for other_id, other in self.requests.items():
            if other.state is LockState.WAITING:
                found = {self._holder(n) for one in self._looked_at(other_id, other).blockers for n, _ in one}
                ahead.setdefault(self._holder(other_id), set()).update(found)
        found_victims = set()
        paths = [(request.txn_id,)]
        while paths:
            path = paths.pop()
            for holder in ahead.get(path[-1], ()):
                if holder == path[0]:
                    found_victims.add(max(path))
                elif holder not in path:
                    paths.append((*path, holder))  # type: ignore[arg-type]
        return found_victims

    def break_deadlock(self, victim: int) -> None:
        self._walk(victim, Verb.ABORT)

    def unlock(self, lock_id: int) -> None:
        request = self.requests.get(lock_id)
        if request and request.txn_id and request.state is LockState.ACQUIRED:
            raise Refusal(TXN_OPEN, words=(request.txn_id,))
        self.requests.pop(lock_id, None)

    def expire_locks(self, lock_ids: Sequence[int]) -> None:
        for lock_id in lock_ids:
            if lock_id in self.requests and not self.requests[lock_id].txn_id:
                del self.requests[lock_id]

    def locks(self, db: str | None, table: str | None, partition: str | None, txn_id: int | None) -> list[Any]:
        """(lock, number, component, state, transaction, blockers) in the order of show_locks (transactions.md §3.7)."""
        found = [
            (lock_id, number, one, request.state, request.txn_id, blockers)
            for lock_id, request in self.requests.items()
            for number, (one, blockers) in enumerate(zip(request.components, request.blockers, strict=True), 1)
            if (db is None or one.db == db)
            and (table is None or one.table == table)
            and (partition is None or one.partition == partition)
            and (txn_id is None or request.txn_id == txn_id)
        ]
        return sorted(found, key=lambda one: (one[3].value, "rwxe".index(one[2].type.value), one[0], one[1]))

    def _holder(self, lock_id: int) -> int:
        """The transaction of a request, or the negated id of one without."""
        return self.requests[lock_id].txn_id or -lock_id

    def _looked_at(self, lock_id: int, request: Request) -> Request:
        blockers = tuple(
            frozenset(
                (other_id, number)
                for other_id, other in self.requests.items()
                if other_id < lock_id and (other.txn_id != request.txn_id or not request.txn_id)
                for number, held in enumerate(other.components, 1)
                if wanted.waits_for(held)
            )
            for wanted in request.components
        )
        return replace(request, blockers=blockers, state=LockState.WAITING if any(blockers) else LockState.ACQUIRED)

    # --- what verbs share ----------------------------------------------------------------------

    def _state(self, txn_id: int) -> TxnState | None:
        txn = self.txns.get(txn_id)
        return txn.state if txn else None

    def _known(self, txn_id: int) -> Txn:
        if txn_id not in self.txns:
            raise Refusal(NO_TXN, words=(txn_id,))
        return self.txns[txn_id]

    def _live(self, txn_id: int) -> Txn:
        txn = self._known(txn_id)
        if txn.state is not OPEN:
            raise Refusal(TXN_ABORTED if txn.state is ABORTED else NO_TXN, words=(txn_id,))
        return txn

    def _writer(self, txn_id: int) -> Txn:
        txn = self._live(txn_id)
        if txn.type is TxnType.READ_ONLY:
            raise Refusal(META, words=(txn_id,))
        return txn

    def _rivals(self, txn: Txn) -> list[int]:
        """The transactions whose changes collide with this one's."""
        return [rival.txn_id for rival in txn.rivals if any(write.meets(rival.write) for write in txn.writes)]

    def _walk(self, txn_id: int, verb: Verb) -> TxnState | None:
        """Go along the arrow of the table of states; what the transaction leaves behind goes."""
        txn = self.txns[txn_id]
        try:
            target = next_state(txn.state, verb)
        except KeyError:
            raise Refusal(TXN_ABORTED if txn.state is ABORTED else NO_TXN, words=(txn_id,)) from None
        assert target is not None
        if target is not txn.state:
            writes = frozenset() if target is COMMITTED else txn.writes
            self.txns[txn_id] = replace(txn, state=target, writes=writes, rivals=frozenset())
            self.requests = {n: request for n, request in self.requests.items() if request.txn_id != txn_id}
        return target


def _letter(request: Request) -> str:
    return "A" if request.state is LockState.ACQUIRED else "W"
