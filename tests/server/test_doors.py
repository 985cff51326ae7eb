"""The commands at a guarded server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hive_acid import connect
from metastore import cli
from tests.authority import Authority
from tests.served import Served, served


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def guarded(
    authority: Authority, postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    pair = authority.issue("metastore", "IP:127.0.0.1")
    settings = {
        "metastore.use.SSL": "true",
        "metastore.keystore.path": str(pair.certificate),
        "metastore.tls.key": str(pair.key),
        "metastore.tls.client.ca": str(authority.ca),
    }
    with served(postgres_url, template, tmp_path_factory.mktemp("guarded") / "warehouse", settings) as running:
        yield running


@pytest.fixture
def keys(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    own = authority.issue("operator")
    monkeypatch.setenv("HIVE_ACID_TLS_CA", str(authority.ca))
    monkeypatch.setenv("HIVE_ACID_TLS_CERTIFICATE", str(own.certificate))
    monkeypatch.setenv("HIVE_ACID_TLS_KEY", str(own.key))


def test_operators_come_in(guarded: Served, keys: None, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["transactions"],
        ["locks"],
        ["compactions"],
        ["removals"],
        ["sql", "SHOW LOCKS"],
        ["orphans", "--all"],
    ):
        assert cli.main([*command, "--uri", guarded.uri]) == 0
    capsys.readouterr()
    assert cli.main(["transactions", "--uri", guarded.uri.replace("+tls", "")]) == 1
    assert "Then give thrift+tls://" in capsys.readouterr().err


def test_the_doctor_comes_in(
    guarded: Served, keys: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metastore.doctor._java", lambda options: "")
    place = ["--database-url", guarded.db_url, "--warehouse", str(tmp_path / "w")]
    assert cli.main(["doctor", "--uri", guarded.uri, *place]) == 0
    assert f"the metastore at {guarded.uri} is alive" in capsys.readouterr().out


def test_catalogues_move_out_and_in(
    guarded: Served, keys: None, db_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with connect(guarded.uri) as connection:
        connection.create_database("moved")
    file = tmp_path / "moved.json"
    assert cli.main(["export", str(file), "--from", guarded.uri, "--database", "moved"]) == 0
    assert '"moved"' in file.read_text()
    place = ["--database-url", db_url, "--warehouse", str(tmp_path / "w")]
    assert cli.main(["import", guarded.uri, "--database", "moved", *place]) == 0
