"""What the hot functions read at 50,000 finished and 50,000 open transactions: no table as a whole, few rows of each.

Postgres explains every statement inside of the functions into its log, with the rows that each node really read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from tests.caller import Caller, Refused
from tests.databases import administer, url_of
from tests.served import served

TEMPLATE = "template_plans"
FINISHED = OPEN = 50_000
TABLES = 100
"""Each transaction has written to one of them, in one of a hundred partitions, and holds a lock there."""
WATCHED = {
    *("txn", "write_id", "unresolved_write_id", "write_id_counter", "lock_component", "txn_component"),
    *("write_set", "completed_component"),
}
MOST_ROWS = 1_500
"""A table has 500 open writers with as many locks: no call needs to read more than all of one table's, twice."""
SETTINGS = {
    "fsync": "off",
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
}
FILL = f"""
INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at, opened_snapshot,
                 ended_at, ended_xid)
SELECT n, CASE WHEN n <= {FINISHED} THEN 'c' ELSE 'o' END, 0, 'u', 'h', 'a', clock_timestamp(), clock_timestamp(),
       pg_current_snapshot(), CASE WHEN n <= {FINISHED} THEN clock_timestamp() END,
       CASE WHEN n <= {FINISHED} THEN '10'::xid8 END
  FROM generate_series(1, {FINISHED} + {OPEN}) AS n;
UPDATE txn_counter SET last_id = {FINISHED} + {OPEN}, counted_open = {OPEN}, counted_at = {FINISHED} + {OPEN};
CREATE TEMPORARY TABLE written AS
SELECT n AS txn_id, 'db' AS db, 't' || n % {TABLES} AS tbl, 'p=' || n % 9973 % 100 AS partition, n / {TABLES} + 1 AS w
  FROM generate_series(1, {FINISHED} + {OPEN}) AS n;
INSERT INTO write_id_counter (db, tbl, last_write_id) SELECT db, tbl, max(w) FROM written GROUP BY db, tbl;
INSERT INTO write_id_counter (db, tbl, last_write_id) SELECT 'others', 't' || n, 1 FROM generate_series(1, 20000) AS n;
INSERT INTO write_id (db, tbl, write_id, txn_id) SELECT db, tbl, w, txn_id FROM written;
INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id)
SELECT txn_id, db, tbl, w FROM written WHERE txn_id > {FINISHED};
INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
SELECT txn_id, db, tbl, partition, 'u', w FROM written WHERE txn_id > {FINISHED};
INSERT INTO completed_component (db, tbl, partition, txn_id, write_id, update_delete, committed_at)
SELECT db, tbl, partition, txn_id, w, true, clock_timestamp() FROM written WHERE txn_id <= {FINISHED};
INSERT INTO write_set (db, tbl, partition, operation, txn_id, commit_id, committed_xid)
SELECT db, tbl, partition, 'u', txn_id, txn_id, '10' FROM written WHERE txn_id <= {FINISHED};
INSERT INTO lock_component (lock_id, component, txn_id, db, tbl, partition, type, state, user_name, host_name,
                            agent_info, acquired_at)
SELECT nextval('lock_id'), 1, txn_id, db, tbl, partition, 'w', 'a', 'u', 'h', 'a', clock_timestamp()
  FROM written WHERE txn_id > {FINISHED};
ANALYZE;
"""


@dataclass
class Explained:
    """A server whose every statement is explained."""

    ann: Caller
    log: Path

    def plans(self, act: Callable[[], object]) -> list[dict[str, Any]]:
        """How each statement was carried out while something was done."""
        start = self.log.stat().st_size
        act()
        with open(self.log, "rb") as log:
            log.seek(start)
            written = log.read().decode(errors="replace").replace("\n\t", "\n")
        decoder = json.JSONDecoder()
        plans = [decoder.raw_decode(written, match.end())[0] for match in re.finditer(r"plan:\n(?=\{)", written)]
        assert plans, "nothing was explained"
        return plans

    def reads(self, act: Callable[[], object], most_rows: int = MOST_ROWS) -> list[str]:
        """What was read too much of while something was done."""
        return [
            f"{rows:.0f} rows of {node['Relation Name']} by {node['Node Type']}: {' '.join(plan['Query Text'].split())}"
            for plan in self.plans(act)
            for node in _nodes(plan["Plan"])
            if node.get("Relation Name") in WATCHED
            and ((rows := _rows(node)) > most_rows or node["Node Type"] == "Seq Scan")
        ]


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def _rows(node: dict[str, Any]) -> float:
    """Rows that a node read, those it threw away again too."""
    kinds = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return float(sum(node.get(kind, 0) for kind in kinds) * node.get("Actual Loops", 1))


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Explained]:
    with _explained(tmp_path_factory.mktemp("explained"), FILL) as made:
        yield made


@contextmanager
def _explained(place: Path, fill: str) -> Iterator[Explained]:
    with ExitStack() as stack:
        url = stack.enter_context(EmbeddedPostgres(place, settings=SETTINGS))
        administer(url, f"CREATE DATABASE {TEMPLATE}")
        db = Database(url_of(url, TEMPLATE))
        upgrade(db)
        connection = db.dedicated_connection()
        connection.cursor().execute("SET auto_explain.log_min_duration = -1;" + fill)
        connection.close()
        db.close()
        server = stack.enter_context(served(url, TEMPLATE, place / "warehouse"))
        yield Explained(stack.enter_context(server.caller()), place / "postgres.log")


@pytest.mark.slow
def test_transactions(explained: Explained) -> None:
    ann = explained.ann
    opened: list[int] = []
    calls = {
        "open_txns": lambda: opened.extend(ann.open(5)),
        "heartbeat": lambda: ann.heartbeat(opened[0]),
        "heartbeat_txn_range": lambda: ann.heartbeat_range(opened[0], opened[0] + 10),
        "heartbeat of a finished one": lambda: _lose(lambda: ann.heartbeat(1)),
        "abort_txn": lambda: ann.abort(opened[1]),
        "abort_txns": lambda: ann.abort_all(opened[2], FINISHED + 7),
        "commit of nothing": lambda: ann.commit(opened[3]),
        "commit again": lambda: ann.commit(opened[3]),
    }
    _assert_little(explained, calls)  # type: ignore[arg-type]


def test_write_ids(explained: Explained) -> None:
    ann = explained.ann
    txn_id, aborted = ann.open(2)
    calls = {
        "allocate_table_write_ids": lambda: ann.allocate("db.t3", txn_id),
        "allocate again": lambda: ann.allocate("db.t3", txn_id),
        "allocate on a new table": lambda: ann.allocate("db.new", txn_id),
        "reallocate": lambda: ann.allocate("db.t3", txn_id, reallocate=True),
        "abort of a writer": lambda: (ann.allocate("db.t4", aborted), ann.abort(aborted)),
        "get_max_allocated_table_write_id": lambda: ann.max_write_id("db.t3"),
    }
    _assert_little(explained, calls)
    ann.abort(txn_id)


def test_beginnings(explained: Explained) -> None:
    ann = explained.ann
    begun: list[int] = []
    every = {"seen": ["db.t3", "db.t5"], "written": ["db.t5"], "tables": ["db.t3", "db.t5"], "mayBeginAgain": True}

    def begin(*wanted: str, **fields: Any) -> None:
        begun.append(ann.begin_statement(*wanted, **fields).txnid)

    calls: dict[str, Callable[[], object]] = {
        "nothing locked": lambda: begin(),
        "shared": lambda: begin("w db/t5/p=1 u", "r db/t6 s", **every),
        "of a whole table": lambda: begin("w db/t5 u", **every),
        "exclusive of a busy partition": lambda: begin("x db/t5/p=1 u", **every),
        "behind it": lambda: begin("w db/t5/p=1 u", **every),
        "on a new table": lambda: begin("w db/new u", seen=["db.new"], written=["db.new"]),
        "a reader": lambda: begin("r db/t7 s", seen=["db.t7"], txn_type=ttypes.TxnType.READ_ONLY),
    }
    wrong = {
        name: [
            words for words in explained.reads(call) if "rows of txn by Index" not in words or "snapshot" not in words
        ]
        for name, call in calls.items()
    }  # the snapshot itself is of all that are open
    assert not any(wrong.values()), wrong
    ann.abort_all(*begun)


def test_locks(explained: Explained) -> None:
    ann = explained.ann
    one, two, three = ann.open(3)
    found: dict[str, Any] = {}
    calls = {
        "shared": lambda: ann.lock("w db/t5/p=1 u", "r db/t6 s", txn=one),
        "shared on the database": lambda: ann.lock("r db n", txn=one),
        "exclusive of a free table": lambda: ann.lock("e db/free n", txn=two),
        "exclusive of a busy partition": lambda: found.update(x=ann.lock("x db/t5/p=1 u", txn=two)),
        "exclusive of a busy table": lambda: found.update(e=ann.lock("e db/t6 u", txn=three)),
        "check_lock, waiting": lambda: ann.check(found["x"].lockid, two),
        "check_lock, behind a queue": lambda: ann.check(found["e"].lockid, three),
        "outside of transactions": lambda: found.update(outside=ann.lock("r db/t7 s")),
        "heartbeat of a lock": lambda: ann.heartbeat(0, found["outside"].lockid),
        "unlock": lambda: ann.unlock(found["outside"].lockid),
        "unlock of a waiting one": lambda: ann.unlock(found["x"].lockid),
        "a reader that does not wait": lambda: ann.lock("r db/t6 s", txn=one, zeroWaitReadEnabled=True),
    }
    _assert_little(explained, calls)
    ann.abort_all(one, two, three)


def test_commits(explained: Explained) -> None:
    ann = explained.ann
    inserter, updater, rival, dynamic = ann.open(4)
    reader = ann.begin(txn_type=ttypes.TxnType.READ_ONLY)
    ann.write(inserter, "db/t10/p=1", "i")
    ann.write(updater, "db/t11/p=1", "u")
    ann.write(rival, "db/t11", "u")
    write_id = ann.write(dynamic, "db/t12", "u", isDynamicPartitionWrite=True)
    ann.lock("r db/t13 s", txn=reader)
    calls = {
        "add_dynamic_partitions": lambda: ann.add_partitions(dynamic, write_id, "db.t12", "p=1", "p=2"),
        "insert": lambda: ann.commit(inserter, exclWriteEnabled=False),
        "update": lambda: ann.commit(updater, exclWriteEnabled=False),
        "update of partitions": lambda: ann.commit(dynamic, exclWriteEnabled=False),
        "get_latest_txnid_in_conflict": lambda: ann.call("get_latest_txnid_in_conflict", rival),
        "conflict": lambda: _lose(lambda: ann.commit(rival)),
        "read only": lambda: ann.commit(reader),
    }
    _assert_little(explained, calls)


def test_snapshots(explained: Explained) -> None:
    """Of transactions the open ones are read, all of them; of a table's write ids the open ones."""
    ann = explained.ann
    snapshots: list[Any] = []
    found = explained.reads(lambda: snapshots.append(ann.snapshot()))
    assert [line for line in found if "Seq Scan" in line] == []
    assert all(float(line.split()[0]) <= OPEN + 100 for line in found), found
    calls = {
        "of now": lambda: ann.write_ids("db.t20", snapshot=str(snapshots[0])),
        "of now again": lambda: ann.write_ids("db.t20", snapshot=str(snapshots[0])),
        "of a table never written": lambda: ann.write_ids("db.none", snapshot=str(snapshots[0])),
    }
    _assert_little(explained, calls)


def _lose(act: Callable[[], object]) -> None:
    with pytest.raises(Refused):
        act()


def test_plans_that_were_made_on_an_empty_database(tmp_path: Path) -> None:
    """They are kept as the tables grow, so no statistics may be needed to choose the index."""
    with _explained(tmp_path, "SELECT 1") as fresh:
        ann = fresh.ann

        def write() -> None:
            begun = ann.begin_statement("w db/t/p=1 u", seen=["db.t"], written=["db.t"])
            ann.commit(begun.txnid, exclWriteEnabled=False)

        def read() -> None:
            ann.write_ids("db.t")
            ann.write_ids("db.t", snapshot=ann.snapshot())

        for _ in range(100):
            write()
            read()
        wrong = {act.__name__: fresh.reads(act, most_rows=50) for act in (write, read)}
        scans = {name: [one for one in found if "rows of write_id " in one] for name, found in wrong.items()}
        assert not any(scans.values()), json.dumps(scans, indent=2)
        # A bitmap looks at entries of dead rows again and again, until a vacuum.
        kinds = {
            node["Node Type"] for act in (write, read) for plan in fresh.plans(act) for node in _nodes(plan["Plan"])
        }
        assert not [kind for kind in kinds if "Bitmap" in kind]


def _assert_little(explained: Explained, calls: dict[str, Callable[[], object]]) -> None:
    wrong = {name: found for name, call in calls.items() if (found := explained.reads(call))}
    assert not wrong, json.dumps(wrong, indent=2)
