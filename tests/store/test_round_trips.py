"""One round trip to the database per hot call, counted by Postgres, whose log has a line for each statement."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from tests.caller import Caller, refused
from tests.databases import administer, url_of
from tests.served import Served, served
from tests.waiting import until

TEMPLATE = "template_trips"
BACKGROUND = ("heartbeat_txns", "pg_is_in_recovery")
"""Puts heartbeats down a while after they were answered; asks now and then whether the database is ready."""


@dataclass
class Counted:
    """A server whose statements are counted."""

    server: Served
    ann: Caller
    log: Path

    def statements(self, act: Callable[[], object]) -> list[str]:
        """What Postgres was sent while something was done."""
        start = self.log.stat().st_size
        act()
        with open(self.log, "rb") as log:
            log.seek(start)
            written = log.read().decode(errors="replace")
        found = re.findall(r"(?:statement|execute [^:]*): (.*)", written)
        return [statement for statement in found if not any(of in statement for of in BACKGROUND)]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    place = tmp_path_factory.mktemp("counted")
    with ExitStack() as stack:
        url = stack.enter_context(EmbeddedPostgres(place, settings={"fsync": "off", "log_statement": "all"}))
        administer(url, f"CREATE DATABASE {TEMPLATE}")
        db = Database(url_of(url, TEMPLATE))
        upgrade(db)
        db.close()
        server = stack.enter_context(served(url, TEMPLATE, place / "warehouse"))
        ann = stack.enter_context(server.caller())
        _warm(ann)
        yield Counted(server, ann, place / "postgres.log")


def _warm(ann: Caller) -> None:
    """The first call of a kind connects."""
    txn_id = ann.begin()
    ann.write(txn_id, "warm/t")
    lock_id = ann.lock("r warm/u").lockid
    ann.check(lock_id)
    ann.heartbeat(txn_id)
    ann.heartbeat_range(txn_id, txn_id)
    ann.write_ids("warm.t", snapshot=ann.snapshot())
    ann.write_ids("warm.t", snapshot=ann.snapshot(txn_id))
    ann.unlock(lock_id)
    ann.commit(txn_id)
    ann.abort(ann.begin())
    ann.abort(ann.begin_statement("r warm/u").txnid)


@pytest.mark.parametrize("width", [3, 500], ids=["short", "long"])
def test_a_table_is_one_trip(counted: Counted, width: int) -> None:
    """Also one whose reply is made on a thread, and one whose reply is kept."""
    columns = [ttypes.FieldSchema(name=f"c{number}", type="int") for number in range(width)]
    storage = ttypes.StorageDescriptor(cols=columns, serdeInfo=ttypes.SerDeInfo())
    counted.ann.call("create_table", ttypes.Table(dbName="default", tableName=f"t{width}", sd=storage))
    request = ttypes.GetTableRequest(dbName="default", tblName=f"t{width}")
    for method, arguments in (("get_table_req", (request,)), ("get_table", ("default", f"t{width}"))):
        for _ in range(2):
            trips = counted.statements(lambda: counted.ann.call(method, *arguments))  # noqa: B023
            assert len(trips) == 1, trips


def test_each_call_of_a_write_cycle_is_one_trip(counted: Counted) -> None:
    ann = counted.ann
    opened: list[int] = []
    for _ in range(3):
        trips = {"open_txns": counted.statements(lambda: opened.append(ann.begin()))}
        txn_id = opened[-1]
        snapshot = ann.snapshot(txn_id)
        trips["get_open_txns"] = counted.statements(lambda: ann.call("get_open_txns"))
        trips["get_valid_write_ids"] = counted.statements(
            lambda snapshot=snapshot: ann.write_ids("db.t", snapshot=snapshot)
        )
        trips["allocate_table_write_ids"] = counted.statements(lambda txn_id=txn_id: ann.allocate("db.t", txn_id))
        trips["lock"] = counted.statements(lambda txn_id=txn_id: ann.lock("w db/t/p=1 u", "r db/u s", txn=txn_id))
        trips["heartbeat"] = counted.statements(lambda txn_id=txn_id: ann.heartbeat(txn_id))
        trips["heartbeat_txn_range"] = counted.statements(lambda txn_id=txn_id: ann.heartbeat_range(txn_id, txn_id + 1))
        trips["add_dynamic_partitions"] = counted.statements(
            lambda txn_id=txn_id: ann.add_partitions(txn_id, 1, "db.t", "p=1", "p=2")
        )
        trips["commit_txn"] = counted.statements(lambda txn_id=txn_id: ann.commit(txn_id, exclWriteEnabled=False))
        trips["commit_txn again"] = counted.statements(lambda txn_id=txn_id: ann.commit(txn_id))
        _assert_single(trips)


def test_the_beginning_of_a_statement_is_one_trip(counted: Counted) -> None:
    ann = counted.ann
    for _ in range(3):
        begun: list[Any] = []
        trips = counted.statements(
            lambda begun=begun: begun.append(
                ann.begin_statement(
                    "w db/t/p=1 u",
                    "r db/u s",
                    seen=["db.t", "db.u"],
                    written=["db.t"],
                    tables=["db.t", "db.u"],
                    mayBeginAgain=True,
                )
            )
        )
        _assert_single({"hive_acid_begin": trips})
        ann.commit(begun[0].txnid)


def test_each_call_of_other_cycles_is_one_trip(counted: Counted) -> None:
    ann = counted.ann
    reader = ann.begin(txn_type=ttypes.TxnType.READ_ONLY)
    lost, *others = ann.open(4)
    held = ann.lock("e db/v", txn=others[2])
    waiting = ann.lock("r db/v", txn=others[1])
    outside = ann.lock("r db/w")
    trips = {
        "lock of a reader": counted.statements(lambda: ann.lock("r db/t s", txn=reader)),
        "commit_txn of a reader": counted.statements(lambda: ann.commit(reader)),
        "abort_txn": counted.statements(lambda: ann.abort(lost)),
        "abort_txns": counted.statements(lambda: ann.abort_all(lost, others[0])),
        "check_lock, acquired": counted.statements(lambda: ann.check(held.lockid, others[2])),
        "heartbeat of a lock": counted.statements(lambda: ann.heartbeat(0, outside.lockid)),
        "unlock": counted.statements(lambda: ann.unlock(outside.lockid)),
        "unlock of a waiting one": counted.statements(lambda: ann.unlock(waiting.lockid)),
        "lock that waits": counted.statements(lambda: ann.lock("r db/v", txn=others[1])),
        "get_latest_txnid_in_conflict": counted.statements(lambda: ann.call("get_latest_txnid_in_conflict", others[1])),
        "show_locks": counted.statements(lambda: ann.locks(dbname="db")),
    }
    ann.abort_all(*others)
    _assert_single(trips)


def test_a_conflict_is_one_trip(counted: Counted) -> None:
    """The check, the abort, and the end of the transaction's locks."""
    ann = counted.ann
    one, two = ann.open(2)
    ann.write(one, "db/c")
    ann.write(two, "db/c")
    ann.commit(one, exclWriteEnabled=False)

    def lose() -> None:
        with refused("TxnAbortedException", "write conflict"):
            ann.commit(two, exclWriteEnabled=False)

    _assert_single({"commit_txn": counted.statements(lose)})


def test_the_most_frequent_questions_are_one_trip(counted: Counted) -> None:
    ann = counted.ann
    storage = ttypes.StorageDescriptor(cols=[ttypes.FieldSchema(name="a", type="int")], serdeInfo=ttypes.SerDeInfo())
    ann.call("create_table", ttypes.Table(dbName="default", tableName="often", sd=storage, parameters={}))
    asks: dict[str, Callable[[], object]] = {
        "get_table": lambda: ann.call("get_table", "default", "often"),
        "get_table_req": lambda: ann.call("get_table_req", ttypes.GetTableRequest(dbName="default", tblName="often")),
        "get_database": lambda: ann.call("get_database", "default"),
    }
    for ask in asks.values():
        ask()
    _assert_single({name: counted.statements(ask) for name, ask in asks.items()})


def test_what_arrives_together_goes_together(counted: Counted) -> None:
    with ExitStack() as stack:
        callers = [stack.enter_context(counted.server.caller(f"client{number}")) for number in range(32)]
        txns = counted.ann.open(len(callers))
        for number, txn_id in enumerate(txns):
            counted.ann.write(txn_id, f"db/g{number}")

        def commit_all() -> None:
            for caller, txn_id in zip(callers, txns, strict=True):
                caller.send("commit_txn", ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=False))
            for caller in callers:
                caller.receive()

        found = counted.statements(commit_all)
    assert len(found) <= len(callers) // 2, found


def test_nothing_is_held_across_trips(counted: Counted) -> None:
    """Neither a database transaction nor a lock of any kind is left between two calls of a client."""
    ann = counted.ann
    txn_id = ann.begin()
    steps: list[Callable[[], object]] = [
        lambda: ann.allocate("db.h", txn_id),
        lambda: ann.lock("w db/h u", txn=txn_id),
        lambda: ann.heartbeat(txn_id),
        lambda: ann.commit(txn_id, exclWriteEnabled=False),
    ]
    look = """
        SELECT a.state, a.query, l.locktype, l.mode FROM pg_stat_activity a
          LEFT JOIN pg_locks l ON l.pid = a.pid
         WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
           AND (a.state LIKE 'idle in transaction%%' OR l.locktype IS NOT NULL)"""
    for step in steps:
        step()
        with counted.server.db.engine.connect() as connection:
            # A heartbeat may just be put down.
            until(lambda: not connection.exec_driver_sql(look).all(), 5, lambda: connection.exec_driver_sql(look).all())


def _assert_single(trips: dict[str, list[str]]) -> None:
    for call, statements in trips.items():
        assert len(statements) == 1, (call, statements)
        assert re.match(r"SELECT \* FROM \w+\(", statements[0]), (call, statements)
