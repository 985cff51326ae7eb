"""Our own clients as users with few rights: what they need beside their verb they have."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hive_acid import connect
from hive_acid.connection import Connection
from hive_acid.errors import HiveAcidError
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from metastore import cli
from tests.authorization.world import SETTINGS, acid, bag, target
from tests.caller import Caller

ME = getpass.getuser()


@pytest.fixture
def uri(metastore: Callable[..., str]) -> str:
    settings = {**SETTINGS, "hive.users.in.admin.role": "boss", "metastore.filesystem.directories": "true"}
    return metastore(**settings)


@pytest.fixture
def boss(uri: str) -> Iterator[Connection]:
    with connect(uri, user="boss") as connection:
        connection.create_database("d")
        connection.call("create_table", acid("t", owner="boss", ownerType=1))
        yield connection


def test_a_stream_takes_insert(uri: str, boss: Connection) -> None:
    def write(row: str) -> None:
        with StreamingConnection(uri, "d.t", DelimitedWriter(",")) as stream, stream.transaction():
            stream.write(row)

    with pytest.raises(HiveAcidError, match=f"{ME} may not call"):
        write("1,a")
    boss.call("grant_privileges", bag("SELECT", target("d", "t"), ME))
    with pytest.raises(HiveAcidError, match=f"{ME} may not call hive_acid_begin: it takes .*INSERT"):
        write("1,a")
    boss.call("revoke_privileges", bag("SELECT", target("d", "t"), ME))
    boss.call("grant_privileges", bag("INSERT", target("d", "t"), ME))
    for row in ("1,a", "2,b", "3,a"):
        write(row)
    assert boss.call("get_partition_names", "d", "t", -1) == ["p=a", "p=b"]
    with pytest.raises(HiveAcidError, match="it takes DROP"):
        connect(uri).call("drop_table", "d", "t", True)


def test_commands_show_what_is_ones_own(
    uri: str, boss: Connection, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with Caller(uri, "boss") as other:
        other.call("set_ugi", "boss", [])
        txn = other.begin()
        other.lock("w d/t i", txn=txn)
        for command in (["transactions"], ["locks"], ["compactions"], ["sql", "SHOW TRANSACTIONS"]):
            assert cli.main([*command, "--uri", uri]) == 0
            assert str(txn) not in capsys.readouterr().out.split()
        assert cli.main(["sql", f"ABORT TRANSACTIONS {txn}", "--uri", uri]) == 1
        assert "another user's" in capsys.readouterr().err
        assert cli.main(["removals", "--uri", uri]) == 1
        assert "it takes ADMIN on the server" in capsys.readouterr().err
