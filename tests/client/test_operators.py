"""The operators' statements against a running metastore: Hive's columns, filters, order; and the commands."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import hive_acid
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError, CompactionFailedError, NoSuchObjectError, SqlError
from hive_acid.filesystem import files
from hive_acid.ids import CompactionId
from hive_acid.operators.execution import COMPACTION_COLUMNS, LOCK_COLUMNS, OWN_COMPACTION_COLUMNS, run_text
from hive_acid.transactions.states import TransactionKind
from hive_acid.wire import ttypes
from metastore.cli import main
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import Weight
from metastore.compaction.queue.service import CompactionService
from metastore.store.database import Database
from tests.waiting import until

STILL = {"metastore.housekeeping.threads.on": "false", "metastore.lock.poll.wait": "0ms"}
ACID = {"transactional": "true"}


@pytest.fixture
def connection(metastore: Callable[..., str]) -> Iterator[Any]:
    with hive_acid.connect(metastore(**STILL), user="ann") as connection:
        connection.create_database("d")
        connection.create_table(Table("d", "t", (Column("id", "int"),), parameters=ACID))
        keys = (Column("n", "int"), Column("day", "string"))
        connection.create_table(Table("d", "p", (Column("id", "int"),), keys, parameters=ACID))
        table = connection.table("d", "p")
        names = ("n=1/day=a", "n=2/day=a", "n=2/day=it%27s")
        connection.add_partitions(table, {name: f"{table.location}/{name}" for name in names})
        yield connection


def rows(connection: Connection, text: Any) -> Any:
    """The rows as dictionaries by column."""
    listing = run_text(connection, text)
    return [dict(zip(listing.columns, row, strict=True)) for row in listing.rows]


def column(connection: Connection, text: Any, name: Any) -> Any:
    return [row[name] for row in rows(connection, text)]


# --- columns -------------------------------------------------------------------------------------


def test_columns_are_hives(connection: Connection) -> None:
    """As HiveServer2 4 names them, in its order; ours come behind."""
    assert run_text(connection, "SHOW TRANSACTIONS").columns == (
        "txnid", "state", "startedtime", "lastheartbeattime", "user", "host",
    )  # fmt: skip
    assert run_text(connection, "SHOW LOCKS").columns == LOCK_COLUMNS
    assert run_text(connection, "SHOW COMPACTIONS").columns == (*COMPACTION_COLUMNS, *OWN_COMPACTION_COLUMNS)
    assert ",".join(LOCK_COLUMNS) == (
        "lockid,database,table,partition,lock_state,blocked_by,lock_type,transaction_id,last_heartbeat,acquired_at,user,"
        "hostname,agent_info"
    )
    assert ",".join(COMPACTION_COLUMNS) == (
        "compactionid,dbname,tabname,partname,type,state,workerhost,workerid,enqueuetime,starttime,duration,hadoopjobid,"
        "errormessage,initiatorhost,initiatorid,poolname,txnid,nexttxnid,committime,hightestwriteid"
    )


def test_transactions_and_locks(connection: Connection) -> None:
    transaction = connection.begin(TransactionKind.READ)
    (shown,) = rows(connection, "SHOW TRANSACTIONS")
    assert (shown["txnid"], shown["state"], shown["user"]) == (str(transaction.id), "OPEN", "ann")
    assert shown["startedtime"].isdigit()
    lock_on(connection, "t", transaction.id)
    lock_on(connection, "p", transaction.id, "n=1/day=a")
    assert column(connection, "SHOW LOCKS d.t", "table") == ["t"]
    (shown,) = rows(connection, "SHOW LOCKS d.p PARTITION (n = 01)")
    assert (shown["partition"], shown["lock_state"], shown["lock_type"]) == ("n=1/day=a", "ACQUIRED", "SHARED_READ")
    assert (shown["transaction_id"], shown["blocked_by"], shown["user"]) == (str(transaction.id), None, "bob")
    assert column(connection, "SHOW LOCKS d.p PARTITION (n = 2)", "table") == []
    assert len(rows(connection, "SHOW LOCKS DATABASE d EXTENDED")) == 2
    assert rows(connection, "SHOW LOCKS DATABASE default") == []
    assert run_text(connection, f"ABORT TRANSACTIONS {transaction.id}").columns == ()
    assert column(connection, "SHOW TRANSACTIONS", "state") == ["ABORTED"]


def lock_on(connection: Connection, table: Any, txn_id: Any, partition: Any = None) -> None:
    component = ttypes.LockComponent(
        type=ttypes.LockType.SHARED_READ,
        level=ttypes.LockLevel.TABLE,
        dbname="d",
        tablename=table,
        partitionname=partition,
        operationType=ttypes.DataOperationType.SELECT,
    )
    connection.call("lock", ttypes.LockRequest(component=[component], txnid=txn_id, user="bob", hostname="h"))


# --- compactions ---------------------------------------------------------------------------------


def test_compactions_with_filters_and_order(connection: Connection) -> None:
    (queued,) = rows(connection, "ALTER TABLE d.t COMPACT 'major' POOL 'etl'")
    assert queued == {"compactionid": "1", "partname": None, "state": "initiated", "errormessage": None}
    (refused,) = rows(connection, "ALTER TABLE d.t COMPACT 'minor'")
    assert (refused["compactionid"], refused["state"]) == (None, "refused")
    assert "already scheduled with state='initiated' and id=1" in refused["errormessage"]
    assert len(rows(connection, "ALTER TABLE d.p PARTITION (n=2) COMPACT 'minor'")) == 2
    assert len(rows(connection, "ALTER TABLE d.p PARTITION (day='it\\'s', n=2) COMPACT 'minor'")) == 1
    assert column(connection, "SHOW COMPACTIONS ORDER BY compactionid", "compactionid") == ["1", "2", "3"]
    assert column(connection, "SHOW COMPACTIONS ORDER BY dbname, partname DESC LIMIT 2", "partname") == [
        "n=2/day=it%27s", "n=2/day=a",
    ]  # fmt: skip
    for clause, ids in {
        "d.t": ["1"],
        "TABLE d.p": ["2", "3"],
        "DATABASE d": ["1", "2", "3"],
        "SCHEMA default": [],
        "COMPACTIONID = 2": ["2"],
        "POOL 'etl'": ["1"],
        "POOL 'default'": ["2", "3"],
        "TYPE 'MAJOR'": ["1"],
        "STATUS 'initiated'": ["1", "2", "3"],
        "STATUS 'failed'": [],
        "d.p PARTITION (n=2, day='a')": ["2"],
        "d.p PARTITION (n=2) LIMIT 1": ["3"],
        "d.p PARTITION (day='a') TYPE 'minor' STATUS 'initiated'": ["2"],
    }.items():
        found = column(connection, f"SHOW COMPACTIONS {clause}", "compactionid")
        assert sorted(found) == ids, clause
    (shown,) = rows(connection, "SHOW COMPACTIONS d.t")
    assert (shown["type"], shown["state"], shown["poolname"], shown["duration"]) == ("MAJOR", "initiated", "etl", None)
    assert (shown["workerhost"], shown["initiatorid"]) == (None, "manual")


def test_a_compaction_under_way_and_ended(connection: Connection, db: Database) -> None:
    run_text(connection, "ALTER TABLE d.t COMPACT 'major'")
    connection.call("find_next_compact2", ttypes.FindNextCompactRequest(workerId="host-1-12", workerVersion="v"))
    progress = {"phase": "merge", "rows": 10, "files": 2, "bytes_written": 300}
    service = CompactionService(db, CompactionConfig())
    service.set_progress(CompactionId(1), "host-1-12", job_id="app-3", progress=progress, before=Weight(5, 4000))
    (shown,) = rows(connection, "SHOW COMPACTIONS")
    assert (shown["workerhost"], shown["workerid"], shown["hadoopjobid"]) == ("host-1", "12", "app-3")
    assert shown["progress"] == "merge: 10 rows, 2 files, 300 bytes"
    assert (shown["filesbefore"], shown["bytesbefore"], shown["bytesafter"]) == ("5", "4000", None)
    connection.call("mark_failed", ttypes.CompactionInfoStruct(
        id=1, dbname="d", tablename="t", type=2, workerId="host-1-12", errorMessage="no memory",
    ))  # fmt: skip
    (shown,) = rows(connection, "SHOW COMPACTIONS d.t STATUS 'failed' ORDER BY duration DESC")
    assert (shown["state"], shown["errormessage"]) == ("failed", "no memory")
    assert int(shown["duration"]) >= 0
    with pytest.raises(CompactionFailedError, match="no memory"):
        hive_acid.operators.execution.wait(connection, [1], 1000)  # type: ignore[attr-defined]


def test_compactions_are_aborted(connection: Connection) -> None:
    run_text(connection, "ALTER TABLE d.t COMPACT 'major'")
    found = rows(connection, "ABORT COMPACTIONS 1, 77")
    assert [(row["compactionid"], row["status"]) for row in found] == [("1", "Success"), ("77", "Error")]
    assert "No Such Compaction" in found[1]["message"]
    assert column(connection, "SHOW COMPACTIONS", "state") == ["aborted"]


def test_a_whole_partitioned_table_goes_by_thresholds(connection: Connection) -> None:
    """Hive's client asks for those partitions that have passed the thresholds (transactions.md §4.2)."""
    table = connection.table("d", "p")
    with connection.begin() as transaction:
        write_id = transaction.write_id("d", "p")
        busy = f"{table.location}/n=1/day=a"
        for statement in range(3):
            name = f"delta_{write_id:07}_{write_id:07}_{statement:04}"
            files.make_directory(f"{busy}/{name}")
            files.write(f"{busy}/{name}/bucket_00000", b"rows")
    assert {row["state"] for row in rows(connection, "ALTER TABLE d.p COMPACT 'major'")} == {"not needed"}
    connection.call("alter_table", "d", "p", with_threshold(connection, "2"))
    found = {row["partname"]: row for row in rows(connection, "ALTER TABLE d.p COMPACT 'minor'")}
    assert {name: row["state"] for name, row in found.items()} == {
        "n=1/day=a": "initiated", "n=2/day=a": "not needed", "n=2/day=it%27s": "not needed",
    }  # fmt: skip
    assert "0 deltas of 0 bytes" in found["n=2/day=a"]["errormessage"]
    connection.call("alter_table", "d", "p", with_threshold(connection, "many"))
    with pytest.raises(ColumnError, match="unfit value"):
        run_text(connection, "ALTER TABLE d.p COMPACT 'minor'")


def with_threshold(connection: Connection, value: Any) -> Any:
    wire = connection.wire_table("d", "p")
    wire.parameters["compactorthreshold.hive.compactor.delta.num.threshold"] = value
    return wire


def test_and_wait(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()
    call = connection.call

    def watched(method: str, *arguments: Any) -> Any:
        answer = call(method, *arguments)
        if method == "show_compact":
            looked.set()
        return answer

    def refuse() -> None:
        """A worker that finds nothing to do, after the statement has looked at it."""
        with hive_acid.connect(connection.uri) as worker:
            request = ttypes.FindNextCompactRequest(workerId="w")
            found = until(lambda: worker.call("find_next_compact2", request).ci)
            assert looked.wait(10)
            found.workerId, found.errorMessage = "w", "nothing to do: there is only a base"
            worker.call("mark_refused", found)

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(connection, "call", watched)
        done = pool.submit(refuse)
        assert column(connection, "ALTER TABLE d.t COMPACT 'major' AND WAIT", "compactionid") == ["1"]
        assert column(connection, "SHOW COMPACTIONS", "state") == ["refused"]
        done.result()
    monkeypatch.setattr("hive_acid.operators.execution.WAIT_TIMEOUT_MS", 200)
    with pytest.raises(CompactionFailedError, match="compaction 2 did not end within 200 ms; it goes on"):
        run_text(connection, "ALTER TABLE d.t COMPACT 'major' AND WAIT")


def test_all_of_a_request_is_sent(connection: Connection) -> None:
    run_text(
        connection,
        "ALTER TABLE d.t COMPACT 'rebalance' CLUSTERED INTO 4 BUCKETS ORDER BY id DESC POOL 'p' "
        "WITH OVERWRITE TBLPROPERTIES ('compactor.x'='1', 'tblprops.y'='2')",
    )
    request = ttypes.FindNextCompactRequest(workerId="w", poolName="p")
    found = connection.call("find_next_compact2", request).ci
    assert (found.type, found.numberOfBuckets, found.orderByClause) == (3, 4, "ORDER BY id DESC")
    assert sorted(found.properties.split("\n")) == ["compactor.x=1", "tblprops.y=2"]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("SHOW LOCKS d.absent", NoSuchObjectError, "absent"),
        ("SHOW COMPACTIONS d.p PARTITION (x=1)", ColumnError, r"x is no partition key of d\.p \(n, day\)"),
        ("SHOW COMPACTIONS d.t PARTITION (x=1)", ColumnError, "it has none"),
        ("ALTER TABLE d.p PARTITION (n=9) COMPACT 'major'", NoSuchObjectError, r"d\.p has no partition \(n=9\)"),
        ("SHOW COMPACTIONS ORDER BY secret", SqlError, "compactions have no column 'secret'"),
        ("SHOW LOCKS a.b.c.d", SqlError, "no database's name"),
    ],
)
def test_what_there_is_not(connection: Connection, text: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        run_text(connection, text)


# --- the commands --------------------------------------------------------------------------------


def said(capsys: pytest.CaptureFixture[str], connection: Connection, *arguments: Any) -> Any:
    assert main([*arguments, "--uri", connection.uri]) == 0
    return capsys.readouterr().out


def test_commands(connection: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, connection, "sql", "ALTER TABLE d.p PARTITION (n=2) COMPACT 'minor'").count("initiated") == 2
    table = said(capsys, connection, "sql", "SHOW COMPACTIONS d.p ORDER BY partname")
    assert all(name in table for name in (*COMPACTION_COLUMNS, "n=2/day=it%27s"))
    assert said(capsys, connection, "compactions", "--table", "d.p", "--partition", "n=2/day=it%27s").count("d.p.") == 1
    narrowed = ("--database", "d", "--type", "minor", "--status", "initiated", "--pool", "default")
    shown = said(capsys, connection, "compactions", *narrowed, "--order-by", "partname DESC", "--limit", "1")
    assert "it%27s" in shown
    assert "n=2/day=a" not in shown
    assert "d.p.n=2/day=a" in said(capsys, connection, "compactions", "--id", "1")
    assert "Locks" in said(capsys, connection, "locks", "--table", "d.t")
    assert said(capsys, connection, "sql", "ABORT TRANSACTIONS 99") == ""
    assert main(["sql", "SELECT 1", "--uri", connection.uri]) == 1
    assert "SHOW TRANSACTIONS" in capsys.readouterr().err
    assert main(["compactions", "--partition", "n=2", "--uri", connection.uri]) == 1
    assert "needs the --table" in capsys.readouterr().err


def test_why(connection: Connection, capsys: pytest.CaptureFixture[str]) -> None:
    run_text(connection, "ALTER TABLE d.t COMPACT 'major' POOL 'idle'")
    told = said(capsys, connection, "why", "d.t")
    assert "d.t [no_worker]\n  the major compaction 1 waits in pool idle" in told
    assert "next: start a worker of pool idle" in told
    assert said(capsys, connection, "why", "--compaction", "1") == told
    assert "[not_looked_at]" in said(capsys, connection, "why", "d.p", "n=1/day=a")
    with connection.begin() as transaction:
        assert f"ABORT TRANSACTIONS {transaction.id}" in said(capsys, connection, "why", "--txn", str(transaction.id))
        assert "ann@" in said(capsys, connection, "why", "--txn", str(transaction.id))
    for wrong in (["why"], ["why", "d.t", "--txn", "1"], ["why", "d.absent"], ["why", "--lock", "99"]):
        assert main([*wrong, "--uri", connection.uri]) == 1
        assert capsys.readouterr().err.startswith("metastore: ")


def test_wide_tables_come_one_below_the_other_on_a_terminal(
    connection: Connection, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_text(connection, "ALTER TABLE d.t COMPACT 'major'")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    lines = said(capsys, connection, "sql", "SHOW COMPACTIONS").splitlines()
    assert "   compactionid  1" in lines
    assert "hightestwriteid  -" in lines
    monkeypatch.delenv("FORCE_COLOR")
    assert "┃ hightestwriteid ┃" in said(capsys, connection, "sql", "SHOW COMPACTIONS")
