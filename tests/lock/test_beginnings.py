"""Statements that begin in one call: the same as if they had made each call by itself (transactions.md §3.11)."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator, Sequence

import pytest

from hive_acid.errors import MetaError, NoSuchTxnError
from hive_acid.format.snapshot import ValidTxnList, encode_bits
from hive_acid.ids import TxnId, WriteId
from metastore.lock.beginning import Beginning, Beginnings, Begun, Seen, Written
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockType
from metastore.store.database import Database
from metastore.txn.calls import Opening
from metastore.txn.config import TxnConfig
from metastore.txn.models import Intent, TableWriteIds
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from metastore.txn.write_ids.service import WriteIdService
from tests.lock.conftest import OWNER, component
from tests.sampling import Sample
from tests.waiting import until

ACQUIRED, WAITING = LockAnswer.ACQUIRED, LockAnswer.WAITING
MOST_OPEN = 1_000
SERIALIZED = "SELECT pg_advisory_xact_lock(advisory_key(2, ''))"
"""What a request for locks waits for, when its transaction is open already."""


class World:
    """The services that a beginning stands for, over one database."""

    def __init__(self, db: Database, most_open: int = MOST_OPEN) -> None:
        self.db = db
        self.txns = TxnService(db, TxnConfig(max_open_txns=most_open))
        self.write_ids = WriteIdService(db)
        self.locks = LockService(db)
        self.beginnings = Beginnings(db, self.txns, most_open, self.write_ids.aborted_ids)

    def begin(self, *beginnings: Beginning) -> list[Begun | BaseException]:
        """The answers to what arrives in the same turn of the event loop."""

        async def ask() -> list[Begun | BaseException]:
            return await asyncio.gather(*map(self.beginnings.begin_soon, beginnings), return_exceptions=True)

        return self.db.wait(ask())

    def one(self, beginning: Beginning) -> Begun:
        (begun,) = self.begin(beginning)
        assert isinstance(begun, Begun), begun
        return begun

    def seen_later(self, begun: Begun, *tables: str) -> list[TableWriteIds]:
        """What get_valid_write_ids says for the snapshot of a statement."""
        return self.write_ids.get_valid(tables, snapshot_of(begun))

    def query(self, text: str) -> list[tuple[object, ...]]:
        with self.db.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(text)]


@pytest.fixture
def world(db: Database) -> World:
    return World(db)


def written_by(begun: Begun) -> dict[tuple[str, str], WriteId]:
    return {one.table: one.write_id for one in begun.written}


def snapshot_of(begun: Begun) -> ValidTxnList:
    """As its client makes it."""
    ids = sorted(begun.snapshot.open_ids + begun.snapshot.aborted_ids)
    aborted = set(begun.snapshot.aborted_ids)
    bits = encode_bits(one in aborted for one in ids)
    return ValidTxnList.from_open_txns(begun.snapshot.high_water_mark, ids, bits, begun.txn_id)


def asked(
    *wanted: str,
    seen: Sequence[str] = (),
    written: Sequence[str] = (),
    operation: Operation | None = None,
    txn_type: TxnType = TxnType.DEFAULT,
    may_begin_again: bool | None = None,
) -> Beginning:
    """Locks as in `component`; tables of `db`."""
    intent = Intent(tuple(("db", name) for name in seen), may_begin_again)
    return Beginning(
        Opening(1, OWNER, txn_type, intent),
        tuple(component(text)._replace(operation=operation) for text in wanted),
        tuple(("db", name) for name in seen),
        tuple(("db", name) for name in written),
    )


UPDATE = asked("w db/t/p=1", seen="t", written="t", operation=Operation.UPDATE, may_begin_again=True)


def test_all_of_it_is_one_trip(world: World) -> None:
    before = world.db.calls
    begun = world.one(UPDATE)
    assert world.db.calls - before == 1
    assert begun.lock is not None
    assert begun.lock.answer is ACQUIRED
    assert begun.lock.txn_id == begun.txn_id
    assert not begun.is_outdated
    assert begun.written == [Written(("db", "t"), WriteId(1), None)]
    assert begun.seen == [Seen(TableWriteIds("db", "t", WriteId(0), [], [], None), None)]
    assert begun.snapshot.open_ids == [begun.txn_id]
    assert world.query("SELECT txn_id, db, tbl, write_id FROM min_history_write_id") == [(begun.txn_id, "db", "t", 0)]
    assert world.query("SELECT txn_id, partition, operation FROM txn_component") == [(begun.txn_id, "p=1", "u")]
    assert [info.txn_id for info in world.locks.show_locks()] == [begun.txn_id]
    world.txns.commit_txn(begun.txn_id)
    assert world.write_ids.get_valid(["db.t"])[0].high_water_mark == 1


def test_what_is_not_asked_for_is_not_done(world: World) -> None:
    begun = world.one(asked())
    assert begun.lock is None
    assert begun.seen == []
    assert begun.written == []
    assert world.locks.show_locks() == []
    world.txns.commit_txn(begun.txn_id)


def test_those_that_come_together(world: World) -> None:
    before = world.db.calls
    found = world.begin(
        UPDATE,
        asked("r db/t", seen="t", txn_type=TxnType.READ_ONLY),
        asked("e db/t", seen="t", written="t", operation=Operation.DELETE),
        asked(written=["u", "t"]),
        asked("r db/t", seen="t"),
        asked("w db/u/p=2", seen="tu", written="u", operation=Operation.INSERT),
    )
    assert world.db.calls - before == 1
    begun = [one for one in found if isinstance(one, Begun)]
    assert len(begun) == len(found)
    assert [one.txn_id - begun[0].txn_id for one in begun] == list(range(6))
    assert [one.lock and one.lock.answer for one in begun] == [ACQUIRED, ACQUIRED, WAITING, None, WAITING, ACQUIRED]
    assert [written_by(one) for one in begun] == [
        {("db", "t"): 1}, {}, {}, {("db", "t"): 2, ("db", "u"): 1}, {}, {("db", "u"): 2},
    ]  # fmt: skip
    assert [one.seen is None for one in begun] == [False, False, True, False, True, False]
    # Whom the one without locks is in nobody's way of; what waits is granted later, and has its snapshot already.
    waiting = begun[2].lock
    assert waiting is not None
    assert begun[0].lock is not None
    for one in (begun[0], begun[1]):
        world.txns.commit_txn(one.txn_id)
    assert world.locks.check_lock(waiting.lock_id, begun[2].txn_id).answer is ACQUIRED
    (table,) = world.seen_later(begun[2], "db.t")
    assert table.invalid == [1]  # it was open in the snapshot, and is a conflict
    assert world.txns.get_latest_txnid_in_conflict(begun[2].txn_id) == begun[0].txn_id


def test_the_limit_of_open_transactions(db: Database) -> None:
    world = World(db, most_open=10)
    found = world.begin(*[UPDATE] * 14)
    begun = [one for one in found if isinstance(one, Begun)]
    assert len(begun) == 10
    assert all(isinstance(one, Begun) for one in found[:10])
    assert all(isinstance(one, MetaError) and "hive.max.open.txns, which is 10" in str(one) for one in found[10:])
    assert {info.txn_id for info in world.locks.show_locks()} == {one.txn_id for one in begun}
    assert [written_by(one)["db", "t"] for one in begun] == list(range(1, 11))
    (refused,) = world.begin(UPDATE)
    assert isinstance(refused, MetaError)


def test_what_makes_no_sense_opens_nothing(world: World) -> None:
    reader = TxnType.READ_ONLY
    wrong = [
        asked("w db/t", operation=Operation.UPDATE, txn_type=reader),
        asked(written="t", txn_type=reader),
        asked()._replace(opening=Opening(2, OWNER, TxnType.DEFAULT)),
        asked()._replace(components=(LockComponent(LockType.SHARED_READ, "db", None, "p=1"),)),
        asked()._replace(
            opening=Opening(1, OWNER, TxnType.DEFAULT, Intent(tuple(("db", f"t{n}") for n in range(10_001))))
        ),
    ]
    assert all(isinstance(one, MetaError) for one in world.begin(*wrong))
    assert world.query("SELECT count(*) FROM txn") == [(0,)]


def test_what_changed_between_the_opening_and_the_lock(world: World) -> None:
    """The look that its client would take behind the lock."""
    (rival,) = world.txns.open_txns(1, OWNER)
    world.write_ids.allocate("db", "t", [rival])
    world.locks.lock(LockRequest(UPDATE.components, OWNER, rival))
    found: list[Begun | BaseException] = []
    others = [asked("w db/t/p=2", operation=Operation.UPDATE, may_begin_again=True), UPDATE]
    others.append(UPDATE._replace(opening=Opening(1, OWNER, TxnType.DEFAULT)))
    dynamic = UPDATE.components[0]._replace(partition=None, dynamic=True)
    others.append(UPDATE._replace(components=(dynamic,)))
    with world.db.engine.connect() as connection:
        connection.exec_driver_sql(SERIALIZED)
        thread = threading.Thread(target=lambda: found.extend(world.begin(*others)))
        thread.start()
        until(lambda: world.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") != [])
        world.txns.commit_txn(rival)
        connection.rollback()
        thread.join()
    begun = [one for one in found if isinstance(one, Begun)]
    assert [one.is_outdated for one in begun] == [False, True, False, True]
    # All see it: the snapshot is of behind the locks.
    assert [snapshot_of(one).is_valid(rival) for one in begun] == [True] * 4
    assert begun[1].seen == [Seen(TableWriteIds("db", "t", WriteId(1), [], [], None), None)]
    in_conflict = [world.txns.get_latest_txnid_in_conflict(one.txn_id) for one in begun]
    assert in_conflict == [0, rival, rival, rival]


def test_which_table_it_is_told_of(world: World) -> None:
    """One that is dropped is forgotten, its name begins anew, and the id says which one was meant."""
    first = world.one(UPDATE)
    world.txns.commit_txn(first.txn_id)
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # without its database
        connection.exec_driver_sql("SELECT txn_forget_table('db', 't')")
        table_id = connection.exec_driver_sql(
            "INSERT INTO tbl (database, name, table_type, owner_type, created_s, columns, partition_keys, parameters,"
            " storage, details) VALUES ('db', 't', '', 1, 0, '[]', '[]', '{}', '{}', '{}') RETURNING id"
        ).scalar_one()
    begun = world.one(UPDATE)
    assert begun.seen == [Seen(TableWriteIds("db", "t", WriteId(0), [], [], None), table_id)]
    assert begun.written == [Written(("db", "t"), WriteId(1), table_id)]


def test_nobody_waits_for_who_drops_a_table(world: World) -> None:
    """Whose write id would have to is given none, and asks for it alone: the counter of transactions is everybody's."""
    world.txns.commit_txn(world.one(UPDATE).txn_id)
    with world.db.engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1 FROM write_id_counter FOR UPDATE")
        waited, other = world.begin(UPDATE, asked("r db/u", seen="u"))
        connection.rollback()
    assert isinstance(waited, Begun)
    assert isinstance(other, Begun)
    assert waited.lock is not None
    assert waited.lock.answer is ACQUIRED
    assert waited.written == []
    assert world.write_ids.allocate("db", "t", [waited.txn_id]) == [(waited.txn_id, 2)]
    for one in (waited, other):
        world.txns.commit_txn(one.txn_id)
    assert world.one(UPDATE).written[0].write_id == 3


def test_what_is_flushed(world: World) -> None:
    """Ids are reserved on disk before they are given out; what young transactions do is not waited for."""

    def is_flushed(written: str) -> bool:
        opened = "'{0}', '{u}', '{h}', '{a}', '{f}', '{}', '{}', '{}', 1000"
        locked = "'{1}', '{1}', '{w}', '{db}', '{t}', '{\"\"}', '{u}', '{f}'"
        with world.db.engine.begin() as connection:
            connection.exec_driver_sql(
                f"SELECT begin_statements({opened}, {locked}, {written}, '{{}}', '{{}}', '{{}}', NULL)"
            )
            found: str = connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()
            return found != "off"

    one, two = "'{}', '{}', '{}'", "'{1}', '{db}', '{t}'"
    flushed = [is_flushed(one) for _ in range(3)]
    assert flushed == [True, False, False]  # 256 transaction ids are reserved
    assert [is_flushed(two) for _ in range(34)] == [True, *[False] * 32, True]  # and 32 write ids of the table


# --- beside the calls that it stands for -----------------------------------------------------------------------------

TABLES = ("t", "u", "v")


def history(world: World, random_: random.Random) -> Iterator[Begun]:
    """Statements that begin among others that write, commit and abort."""
    open_ids: list[TxnId] = []
    for _ in range(60):
        match random_.choice(("open", "write", "commit", "abort", "begin", "begin", "begin")):
            case "open":
                open_ids += world.txns.open_txns(random_.randint(1, 3), OWNER)
            case "write" if open_ids:
                world.write_ids.allocate("db", random_.choice(TABLES), [random_.choice(open_ids)])
            case "commit" if open_ids:
                world.txns.commit_txn(open_ids.pop(random_.randrange(len(open_ids))))
            case "abort" if open_ids:
                world.txns.abort_txn(open_ids.pop(random_.randrange(len(open_ids))))
            case "begin":
                wanted = [
                    asked(
                        *(f"r db/{table}" for table in random_.sample(TABLES, random_.randint(0, 2))),
                        seen=random_.sample(TABLES, random_.randint(0, 3)),
                        written=random_.sample(TABLES, random_.randint(0, 2)),
                    )
                    for _ in range(random_.randint(1, 5))
                ]
                found = world.begin(*wanted)
                for beginning, begun in zip(wanted, found, strict=True):
                    assert isinstance(begun, Begun), begun
                    assert begun.seen is not None
                    assert [(one.write_ids.db, one.write_ids.table) for one in begun.seen] == list(beginning.seen)
                    assert list(written_by(begun)) == list(beginning.written)
                    yield begun
                open_ids += [one.txn_id for one in found if isinstance(one, Begun)]


@pytest.mark.parametrize("seed", range(6))
def test_write_ids_are_those_of_the_snapshot(world: World, seed: int) -> None:
    """What is told with the beginning is what get_valid_write_ids says of its snapshot, then and later.

    Of a transaction with a write id by now the two differ by that: what it writes itself it sees.
    """
    for begun in history(world, random.Random(seed)):
        assert begun.seen is not None
        own = written_by(begun)
        for told, _ in begun.seen:
            (later,) = world.seen_later(begun, f"db.{told.table}")
            if ("db", told.table) in own:
                assert later.high_water_mark == own["db", told.table]
                assert seen_of(told) == seen_of(later) - {own["db", told.table]}
                assert max(seen_of(told), default=0) < own["db", told.table]
            else:
                assert seen_of(told) == seen_of(later)
                if told.high_water_mark == later.high_water_mark:  # else it had none, and got some since
                    assert (told.invalid, told.aborted) == (later.invalid, later.aborted)


def seen_of(table: TableWriteIds) -> set[int]:
    return set(range(1, table.high_water_mark + 1)) - set(table.invalid)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(8))
def test_locks_are_those_of_one_after_the_other(world: World, seed: int, sample: Sample) -> None:
    """Locks of statements that begin together are what they would have been one by one."""
    random_ = random.Random(seed)
    other = World(world.db)
    for round_ in range(6):
        wanted = [
            asked(f"{random_.choice('rwxe')} d{round_}/{random_.choice(('t', 'u', 't/p=1'))}")
            for _ in range(random_.randint(2, 6))
        ]
        together = [one.lock.answer for one in world.begin(*wanted) if isinstance(one, Begun) and one.lock]
        alone = []
        for one in wanted:
            elsewhere = tuple(part._replace(db=f"{part.db}_alone") for part in one.components)
            (txn_id,) = other.txns.open_txns(1, OWNER)
            alone.append(other.locks.lock(LockRequest(elsewhere, OWNER, txn_id)).answer)
        assert together == alone


def test_a_lost_answer_is_not_asked_for_again(world: World) -> None:
    """Whoever holds the locks then ends by its time-out; what locks nothing is asked for again."""
    call = world.beginnings._call
    assert not call.is_repeatable(UPDATE)
    assert call.is_repeatable(asked(seen="t"))
    begun = world.one(UPDATE)
    world.txns.abort_txn(begun.txn_id)
    with pytest.raises(NoSuchTxnError):
        world.txns.commit_txn(TxnId(begun.txn_id + 1))
