"""What the catalogue owes to ACID, over real sockets: the guard, truncation, the trash, Iceberg's pointer commits."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import hive_acid
from hive_acid.wire import ttypes
from metastore import cli
from tests.caller import Caller, Refused, refused
from tests.catalog.conftest import ACID, table

UNDROP = {"metastore.catalog.undrop.window": "1h"}


def test_the_guard_names_our_client(metastore: Callable[..., str]) -> None:
    uri = metastore()
    with Caller(uri) as ann:
        ann.call("create_table", table("t", parameters=ACID))
        with refused("MetaException", r"default\.t is an ACID table.*hive_acid\.connect"):
            ann.call("get_table", "default", "t")
        request = ttypes.GetTableRequest(dbName="default", tblName="t")
        assert ann.call("get_table_req", request).table.tableName == "t"
    with hive_acid.connect(uri) as connection:
        assert connection.table("default", "t").is_full_acid


def test_truncation(metastore: Callable[..., str], tmp_path: Path) -> None:
    with Caller(metastore()) as ann:
        ann.call("create_table", table("t", parameters=ACID))
        ann.call("truncate_table", "default", "t", None)
        assert (tmp_path / "warehouse/t/base_0000001/bucket_00000").exists()
        writing = ann.begin()
        ((_, write_id),) = ann.allocate("default.t", writing)
        ann.call("truncate_table_req", ttypes.TruncateTableRequest(dbName="default", tableName="t", writeId=write_id))
        ann.commit(writing)
        assert ann.max_write_id("default.t") == 2
        with refused("MetaException", "table not found"):
            ann.call("truncate_table", "default", "nix", None)


def test_undrop_by_the_command(
    metastore: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = metastore(**UNDROP)
    with Caller(uri) as ann:
        ann.call("create_table", table("t", parameters=ACID))
        ann.call("truncate_table", "default", "t", None)
        ann.call("drop_table", "default", "t", True)
        assert not (tmp_path / "warehouse/t").exists()
        assert cli.main(["undrop", "default.t", "--uri", uri]) == 0
        assert capsys.readouterr().out == "default.t is back\n"
        assert (tmp_path / "warehouse/t/base_0000001/bucket_00000").exists()
        assert ann.max_write_id("default.t") == 1
        assert cli.main(["undrop", "t", "--uri", uri]) == 1
        assert "table default.t exists" in capsys.readouterr().err


def test_concurrent_pointer_commits_lose_none(metastore: Callable[..., str]) -> None:
    """As Iceberg's committers without locks (wire.md §4.5): each reads the pointer, writes, and swaps it."""
    uri, committers, commits = metastore(), 16, 3
    with Caller(uri) as ann:
        ann.call("create_table", _iceberg("start", ""))
    lost: list[str] = []
    failures: list[BaseException] = []

    def commit_all(number: int) -> None:
        try:
            with Caller(uri, f"committer {number}") as caller:
                done = 0
                while done < commits:
                    seen = caller.call("get_table", "default", "t").parameters
                    new = _iceberg(f"{number}-{done}", f"{seen['history']} {seen['metadata_location']}")
                    try:
                        _swap(caller, number % 2 == 0, new, seen["metadata_location"])
                        done += 1
                    except Refused as error:
                        error.require("MetaException", "The table has been modified. The parameter value for key")
                        lost.append(seen["metadata_location"])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=commit_all, args=(number,)) for number in range(committers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    with Caller(uri) as ann:
        found = ann.call("get_table", "default", "t").parameters
    history = [*found["history"].split(), found["metadata_location"]]
    assert history[0] == "start"
    assert sorted(history[1:]) == sorted(f"{number}-{done}" for number in range(committers) for done in range(commits))
    assert lost, "the committers never met: the test shows nothing"


def _iceberg(pointer: str, history: str) -> ttypes.Table:
    parameters = {"table_type": "ICEBERG", "metadata_location": pointer, "history": history, "EXTERNAL": "TRUE"}
    return table("t", tableType="EXTERNAL_TABLE", parameters=parameters)


def _swap(caller: Caller, in_request: bool, new: ttypes.Table, expected: str) -> None:
    """Compare and set, in each of the two forms."""
    if in_request:
        request = ttypes.AlterTableRequest(
            dbName="default",
            tableName="t",
            table=new,
            expectedParameterKey="metadata_location",
            expectedParameterValue=expected,
        )
        caller.call("alter_table_req", request)
        return
    properties = {"expected_parameter_key": "metadata_location", "expected_parameter_value": expected}
    context = ttypes.EnvironmentContext(properties=properties)
    caller.call("alter_table_with_environment_context", "default", "t", new, context)
