"""The audit log: what a server writes down, what it does not, and how its file behaves."""

from __future__ import annotations

import datetime
import errno
import json
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid import Login, connect
from hive_acid.errors import LoginError
from hive_acid.wire import service, ttypes
from metastore.app import App, ServeOptions, StartError
from metastore.config import Config
from metastore.observe.calls import Outcome
from metastore.rpc.audit import audit as audit_module
from metastore.rpc.audit.audit import Audit
from metastore.rpc.audit.changes import CHANGES
from metastore.rpc.audit.config import AuditConfig
from metastore.rpc.audit.file import RotatedFile
from metastore.rpc.audit.subjects import MOST_OBJECTS, subjects_of
from metastore.rpc.call import Session
from metastore.rpc.doors.users.passwords import change
from metastore.rpc.request import Request
from tests.caller import Caller, Refused
from tests.repository.methods import methods
from tests.served import served
from tests.waiting import until

READERS = re.compile(
    r"(get|list|show|fetch|is|flush)[A-Z_]|find_columns|partition_name|heartbeat|translate_|scheduled_query"
)
PASSED_BY = {
    "aliveSince", "add_write_ids_to_min_history", "check_lock", "hive_acid_moved", "hive_acid_partitions",
    "hive_acid_pressure", "hive_acid_why", "lock", "open_txns", "reinitialize", "set_ugi", "setMetaConf", "shutdown",
    "unlock",
}  # fmt: skip


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


# --- which calls ----------------------------------------------------------------------------------


def test_each_method_is_a_change_or_is_none() -> None:
    names = {method.name for method in methods() if method.is_served}
    assert names >= CHANGES
    assert {name for name in names - CHANGES if not READERS.match(name)} == PASSED_BY
    assert {name for name in CHANGES if READERS.match(name)} == {"get_delegation_token"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.json"


@pytest.fixture
def caller(postgres_url: str, template: str, tmp_path: Path, file: Path) -> Iterator[Caller]:
    with (
        served(postgres_url, template, tmp_path / "warehouse", {"metastore.audit.file": str(file)}) as running,
        running.caller() as one,
    ):
        one.call("set_ugi", "ann", [])
        yield one


def test_changes_and_refusals_are_written_down(caller: Caller, file: Path) -> None:
    columns = [ttypes.FieldSchema(name="id", type="int", comment="")]
    storage = ttypes.StorageDescriptor(
        cols=columns,
        parameters={},
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={}),
    )
    table = ttypes.Table(
        dbName="d",
        tableName="t",
        sd=storage,
        partitionKeys=[],
        parameters={"password": "geheim", "transactional": "true"},
    )
    caller.call("create_database", ttypes.Database(name="d", parameters={"secret": "geheim"}))
    caller.call("create_table", table)
    caller.call("get_database", "d")
    with pytest.raises(Refused):  # by the guard, since this client would read it wrongly
        caller.call("get_table", "d", "t")
    txn = caller.begin()
    caller.allocate("d.t", txn)
    caller.commit(txn)
    caller.commit(caller.begin_statement("r d/t s", seen=["d.t"]).txnid)  # it reads, and its end is told
    begun = caller.begin_statement("w d/t u", written=["d.t"]).txnid
    caller.commit(begun)
    with pytest.raises(Refused):
        caller.call("get_table", "d", "not_there")
    with pytest.raises(Refused):
        caller.commit(10_000)
    with pytest.raises(Refused):
        caller.call("drop_database", "@hive#nowhere", True, False)
    caller.call("drop_table", "d", "t", True)
    until(lambda: len(lines(file)) == 11)
    found = lines(file)
    assert [(one["method"], one["outcome"], one.get("objects"), one.get("transactions")) for one in found] == [
        ("create_database", "fine", ["d"], None),
        ("create_table", "fine", ["d.t"], None),
        ("get_table", "refused", ["d.t"], None),
        ("allocate_table_write_ids", "fine", ["d.t"], [txn]),
        ("commit_txn", "fine", None, [txn]),
        ("commit_txn", "fine", None, [begun - 1]),
        ("hive_acid_begin", "fine", ["d.t"], [begun]),
        ("commit_txn", "fine", None, [begun]),
        ("commit_txn", "refused", None, [10_000]),
        ("drop_database", "refused", ["nowhere"], None),
        ("drop_table", "fine", ["d.t"], None),
    ]
    for one in found:
        assert one["user"] == "ann"
        assert one["peer"].startswith("127.0.0.1:")
        assert datetime.datetime.fromisoformat(one["time"]).tzinfo is not None
    errors = [None, None, "MetaException", *[None] * 5, "NoSuchTxnException", "NoSuchObjectException", None]
    assert [one.get("error") for one in found] == errors
    assert "geheim" not in file.read_text()


def test_who_comes_in_and_who_does_not(postgres_url: str, template: str, tmp_path: Path, file: Path) -> None:
    change(tmp_path / "users", "ann", "geheim")
    settings = {
        "metastore.audit.file": str(file),
        "metastore.authentication": "password",
        "metastore.authentication.password.file": str(tmp_path / "users"),
    }
    with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
        with connect(running.uri, login=Login("ann", "geheim")) as connection:
            connection.create_database("d")
        with pytest.raises(LoginError):
            connect(running.uri, login=Login("eve", "guessed"))
        with Caller(running.uri) as stranger, pytest.raises(Exception):  # noqa: B017, PT011 - cut off somehow
            stranger.call("getStatus")
    assert [(one["method"], one["outcome"], one.get("user"), one.get("authenticated")) for one in lines(file)] == [
        ("login", "fine", "ann", "ann"),
        ("create_database", "fine", "ann", "ann"),
        ("login", "refused", "eve", None),
        ("connect", "refused", None, None),
    ]
    assert "geheim" not in file.read_text()
    assert "guessed" not in file.read_text()


def test_a_file_that_cannot_be_written_stops_the_start(tmp_path: Path, db_url: str) -> None:
    config = Config.parse([f"metastore.audit.file={tmp_path / 'no' / 'audit.json'}"])
    with pytest.raises(StartError, match=r"metastore\.audit\.file .* cannot be written: No such file"):
        App(ServeOptions("127.0.0.1", 0, None, db_url, str(tmp_path / "w"), config)).start()


# --- what they are about --------------------------------------------------------------------------


def ref(name: str) -> Any:
    return ttypes.HiveObjectRef(objectType=2, dbName="d", objectName=name)


@pytest.mark.parametrize(
    ("method", "arguments", "objects", "transactions"),
    [
        ("alter_table", ["d", "t", ttypes.Table(dbName="d2", tableName="t2")], ["d.t", "d2.t2"], []),
        ("drop_database", ["@spark_cat#d!", True, True], ["spark_cat.d"], []),
        ("drop_database_req", [ttypes.DropDatabaseRequest(name="d", catalogName="c", txnId=7)], ["c.d"], [7]),
        ("create_role", [ttypes.Role(roleName="readers")], ["readers"], []),
        ("create_function", [ttypes.Function(functionName="f", dbName="d")], ["d.f"], []),
        ("add_partitions", [[ttypes.Partition(dbName="d", tableName="t")] * 3], ["d.t"], []),
        (
            "grant_privileges",
            [ttypes.PrivilegeBag(privileges=[ttypes.HiveObjectPrivilege(hiveObject=ref(n)) for n in "ab"])],
            ["d.a", "d.b"],
            [],
        ),
        ("abort_txns", [ttypes.AbortTxnsRequest(txn_ids=[3, 4])], [], [3, 4]),
        ("truncate_table", [None, "t", None], ["t"], []),
        ("create_database", [None], [], []),
        ("create_table", [], [], []),
    ],
)
def test_subjects(method: str, arguments: list[Any], objects: list[str], transactions: list[int]) -> None:
    assert subjects_of(method, arguments) == (objects, transactions)


def test_of_many_some_are_named() -> None:
    many = [ttypes.Partition(dbName="d", tableName=f"t{number}") for number in range(100_000)]
    objects, _ = subjects_of("add_partitions", [many])
    assert objects == [*(f"d.t{number}" for number in range(MOST_OBJECTS)), "…"]
    (long,), _ = subjects_of("drop_table", ["d", "x" * 1_000_000, True])
    assert len(long) < 400


def test_every_method_can_be_asked_with_anything() -> None:
    """Arguments of the wrong kinds and none: the log must not be what fails a call."""
    for method in methods():
        kind = getattr(service, f"{method.name}_args", None)
        for value in (None, "x", 1, b"\xff", [], [None, 1, "x"], {"a": "b"}, [[ttypes.Table()]], ttypes.Table()):
            subjects_of(method.name, [value] * (len(kind.thrift_spec) if kind else 1))


# --- the file -------------------------------------------------------------------------------------


def noted(audit: Audit, number: int, method: str = "drop_table") -> None:
    request = Request(method, 1, b"")
    request.arguments = ["d", f"t{number}", True]
    audit.note(request, Session("h:1", "h", "ann"), Outcome.FINE, {})


def test_it_is_rotated(file: Path) -> None:
    audit = Audit(AuditConfig(file=str(file), most_bytes=2000, files=3))
    for number in range(200):
        noted(audit, number)
        if number % 7 == 0:
            until(lambda: audit._queue.empty())
    audit.close()
    kept = [Path(f"{file}.{number}") for number in (3, 2, 1)] + [file]
    assert not Path(f"{file}.4").exists()
    found = [int(one["objects"][0][3:]) for path in kept for one in lines(path)]
    assert found == list(range(found[0], 200))
    assert all(0 < path.stat().st_size <= 2000 for path in kept)
    assert file.stat().st_mode & 0o007 == 0


def test_one_that_somebody_renames_is_followed_by_another(file: Path) -> None:
    written = RotatedFile(str(file), 1 << 20, 3)
    written.write(b"a\n")
    file.rename(file.with_suffix(".old"))
    written.write(b"b\n")
    written.close()
    assert (file.with_suffix(".old").read_bytes(), file.read_bytes()) == (b"a\n", b"b\n")


def test_a_full_disk_loses_lines_and_tells_how_many(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    audit = Audit(AuditConfig(file=str(file)))
    noted(audit, 0)
    until(lambda: file.stat().st_size)
    write, is_full = os.write, threading.Event()

    def full(number: int, data: Any) -> int:
        if not is_full.is_set():
            return write(number, data)
        if len(data) > 10:
            return write(number, data[:10])  # a part of it fits still
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    is_full.set()
    for number in range(1, 4):
        noted(audit, number)
        until(lambda: audit._queue.empty())
    until(lambda: audit._unwritten == 3)
    is_full.clear()
    noted(audit, 4)
    audit.close()
    assert [one.get("objects", [one.get("lost")])[0] for one in lines(file)] == ["d.t0", "d.t4", 3]
    assert [one.getMessage() for one in caplog.records if "audit log not written" in one.getMessage()] == [
        "audit log not written reason='No space left on device' lines=1"
    ]


def test_a_disk_that_is_too_slow_holds_no_call_up(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_module, "MOST_WAITING", 10)
    is_writing, goes_on = threading.Event(), threading.Event()
    write = RotatedFile.write

    def slow(rotated: RotatedFile, text: bytes) -> None:
        is_writing.set()
        assert goes_on.wait(30)
        write(rotated, text)

    monkeypatch.setattr(RotatedFile, "write", slow)
    audit = Audit(AuditConfig(file=str(file)))
    noted(audit, 0)
    assert is_writing.wait(30)
    for number in range(1, 100):
        noted(audit, number)
    goes_on.set()
    audit.close()
    found = lines(file)
    assert [one["objects"] for one in found if "method" in one] == [[f"d.t{number}"] for number in range(11)]
    assert [one["lost"] for one in found if "lost" in one] == [89]


def test_a_text_that_is_none_is_written_all_the_same(file: Path) -> None:
    audit = Audit(AuditConfig(file=str(file)))
    audit.note_door("login", "h:1", '\udcff\n"', "because\n{")
    audit.close()
    (line,) = file.read_bytes().splitlines()
    assert json.loads(line)["reason"] == "because\n{"


def test_a_large_request_is_written_down(caller: Caller, file: Path) -> None:
    """Its arguments are let go before its line is made."""
    caller.call("create_database", ttypes.Database(name="d", description="x" * 3_000_000))
    until(lambda: lines(file))
    assert lines(file)[0]["objects"] == ["d"]
