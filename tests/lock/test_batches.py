"""Requests that go to the database together: each has the answer it would have had one by one."""

import asyncio
import random
from collections.abc import Callable, Sequence

from hive_acid.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import LockId, TxnId
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.service import LockService
from metastore.lock.states import BLOCKS, LockAnswer, LockType
from metastore.store.database import Database
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from tests.lock.conftest import OWNER, component

ACQUIRED, WAITING, NOT_ACQUIRED = LockAnswer.ACQUIRED, LockAnswer.WAITING, LockAnswer.NOT_ACQUIRED
Answer = LockResult | BaseException


def wanted(*components: str, txn: TxnId | None = None, **options: bool) -> LockRequest:
    return LockRequest(tuple(map(component, components)), OWNER, txn, **options)


def together(db: Database, locks: LockService, requests: Sequence[LockRequest]) -> list[Answer]:
    """The answers to requests that arrive in the same turn of the event loop."""

    async def ask() -> list[Answer]:
        return await asyncio.gather(*map(locks.lock_soon, requests), return_exceptions=True)

    return db.wait(ask())


def answers(results: Sequence[Answer]) -> list[LockAnswer]:
    return [result.answer for result in results if isinstance(result, LockResult)]


def test_a_queue_forms_in_one_trip(db: Database, txns: TxnService, locks: LockService) -> None:
    ids = txns.open_txns(6, OWNER)
    before = db.calls
    kinds = ("r db/t", "r db/t", "e db/t", "r db/t/p=1", "w db/u", "x db")
    results = together(db, locks, [wanted(kind, txn=txn_id) for kind, txn_id in zip(kinds, ids, strict=True)])
    assert db.calls - before == 1
    assert answers(results) == [ACQUIRED, ACQUIRED, WAITING, WAITING, ACQUIRED, WAITING]
    lock_ids = [result.lock_id for result in results if isinstance(result, LockResult)]
    assert lock_ids == sorted(lock_ids)
    blockers = [result.blocker for result in results if isinstance(result, LockResult)]
    assert blockers == [None, None, lock_ids[1], lock_ids[2], None, lock_ids[4]]
    shown = {info.lock_id: info.blocker_lock for info in locks.show_locks()}
    assert [shown[lock_id] for lock_id in lock_ids] == blockers


def test_a_refused_request_concerns_nobody_else(db: Database, txns: TxnService, locks: LockService) -> None:
    good, committed, aborted, reader = txns.open_txns(4, OWNER)
    (read_only,) = txns.open_txns(1, OWNER, TxnType.READ_ONLY)
    txns.commit_txn(committed)
    txns.abort_txn(aborted)
    write = LockComponent(LockType.SHARED_WRITE, "db", "t", None, Operation.UPDATE)
    requests = [
        wanted("e db/t", txn=aborted),
        wanted("e db/t", txn=committed),
        wanted("e db/t", txn=TxnId(999)),
        LockRequest((write,), OWNER, read_only),
        LockRequest((write,), OWNER, good),
        wanted("r db/t", txn=reader),
        wanted("r db/t", txn=read_only),
    ]
    results = together(db, locks, requests)
    errors = [TxnAbortedError, NoSuchTxnError, NoSuchTxnError, MetaError]
    assert [type(result) for result in results[:4]] == errors
    assert "read-only" in str(results[3])
    assert answers(results[4:]) == [ACQUIRED] * 3
    assert {info.txn_id for info in locks.show_locks()} == {good, reader, read_only}
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT txn_id FROM txn_component").scalars().all() == [good]


def test_who_will_not_wait_for_one_of_the_same_batch(db: Database, txns: TxnService, locks: LockService) -> None:
    ids = txns.open_txns(6, OWNER)
    requests = [
        wanted("x db/new", txn=ids[0], exclusive_ctas=True),
        wanted("x db/new", txn=ids[1], exclusive_ctas=True),
        wanted("e db/new", txn=ids[2]),
        wanted("r db/new", txn=ids[3], reader_waits=False),
        wanted("r db/new", txn=ids[4]),
        wanted("r db/old", txn=ids[5], reader_waits=False),
    ]
    results = together(db, locks, requests)
    assert answers(results) == [ACQUIRED, NOT_ACQUIRED, WAITING, NOT_ACQUIRED, WAITING, ACQUIRED]
    assert {info.txn_id for info in locks.show_locks()} == {ids[0], ids[2], ids[4], ids[5]}


def test_requests_of_one_transaction_never_meet(
    db: Database, locks: LockService, open_one: Callable[[], TxnId]
) -> None:
    txn_id = open_one()
    results = together(db, locks, [wanted("e db/t", txn=txn_id), wanted("x db", "r db/t", txn=txn_id)])
    assert answers(results) == [ACQUIRED, ACQUIRED]
    assert answers(together(db, locks, [wanted("e other"), wanted("e other")])) == [ACQUIRED, WAITING]


def test_checks_of_many_in_one_trip(db: Database, txns: TxnService, locks: LockService) -> None:
    """The head of each queue is granted, the others learn whom they wait for now."""
    ids = txns.open_txns(30, OWNER)
    results = together(db, locks, [wanted(f"x db/t{n % 10}", txn=txn_id) for n, txn_id in enumerate(ids)])
    lock_ids = [result.lock_id for result in results if isinstance(result, LockResult)]
    txns.abort_txns(ids[:10])

    async def check_all() -> list[Answer]:
        checks = [locks.check_soon(lock_id, ids[0]) for lock_id in [*lock_ids, LockId(999)]]
        return await asyncio.gather(*checks, return_exceptions=True)

    before = db.calls
    checked = db.wait(check_all())
    assert db.calls - before == 1
    assert [type(result) for result in checked[:10]] == [TxnAbortedError] * 10
    assert answers(checked) == [ACQUIRED] * 10 + [WAITING] * 10
    assert [result.blocker for result in checked[20:30] if isinstance(result, LockResult)] == lock_ids[10:20]


def test_random_batches_like_one_by_one(db: Database, txns: TxnService, locks: LockService) -> None:
    """Each answer is that of the plain rule over everything that is on record before it."""
    chance = random.Random(4)
    targets = ("db", "db/t", "db/u", "db/t/p=1", "db/t/p=2", "other/t")
    record: list[tuple[LockId, TxnId, list[LockComponent]]] = []
    for _ in range(25):
        ids = txns.open_txns(chance.randint(1, 8), OWNER)
        requests = [
            wanted(
                *(f"{chance.choice('rrwwxe')} {chance.choice(targets)}" for _ in range(chance.randint(1, 3))),
                txn=chance.choice(ids),
                reader_waits=chance.random() < 0.8,
                exclusive_ctas=chance.random() < 0.1,
            )
            for _ in range(chance.randint(1, 8))
        ]
        results = [result for result in together(db, locks, requests) if isinstance(result, LockResult)]
        for result, request in sorted(zip(results, requests, strict=True), key=lambda pair: pair[0].lock_id):
            assert request.txn_id is not None
            blocked = [
                asked
                for asked in request.components
                if any(
                    txn_id != request.txn_id and collide(asked, held) for _, txn_id, parts in record for held in parts
                )
            ]
            if not blocked:
                expected = ACQUIRED
            elif request.exclusive_ctas or (not request.reader_waits and blocked[0].type is LockType.SHARED_READ):
                expected = NOT_ACQUIRED
            else:
                expected = WAITING
            assert result.answer is expected, (request, blocked)
            if expected is not NOT_ACQUIRED:
                record.append((result.lock_id, request.txn_id, list(request.components)))
        if len(record) > 20:
            ended = {txn_id for _, txn_id, _ in record if chance.random() < 0.8}
            txns.abort_txns(sorted(ended))
            record = [entry for entry in record if entry[1] not in ended]


def collide(asked: LockComponent, held: LockComponent) -> bool:
    """The rule in plain Python (transactions.md §3.3)."""
    if asked.db != held.db or (asked.table and held.table and asked.table != held.table):
        return False
    if asked.partition and held.partition and asked.partition != held.partition:
        return False
    if asked.type is LockType.SHARED_READ and not asked.table and held.table:
        return False
    if asked.type is LockType.EXCLUSIVE and asked.table and held.type is LockType.SHARED_READ and not held.table:
        return False
    return held.type in BLOCKS[asked.type]


def test_a_blocker_that_goes_while_it_is_looked_at_refuses_nobody(
    db: Database, txns: TxnService, locks: LockService
) -> None:
    """Between being found in the way and being described to who will not wait for it."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("CREATE SEQUENCE look")
        connection.exec_driver_sql(
            "CREATE OR REPLACE FUNCTION find_blockers(before bigint, requester bigint, asked_type text, asked_db text,"
            " asked_tbl text, asked_partition text)"
            " RETURNS TABLE (lock_id bigint, component integer, txn_id bigint, type text, state text)"
            " LANGUAGE sql AS 'SELECT 999999::bigint, 1, 5::bigint, ''e'', ''a'' WHERE nextval(''look'') = 1'"
        )
    request = wanted("x db/t", txn=txns.open_txns(1, OWNER)[0], exclusive_ctas=True)
    assert locks.lock(request).answer is ACQUIRED
    assert len(locks.show_locks()) == 1
