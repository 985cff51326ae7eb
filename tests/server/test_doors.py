"""The commands at a guarded server."""

from __future__ import annotations

import io
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from hive_acid import connect
from metastore import cli
from metastore.rpc.doors.users.passwords import Passwords, read_users
from tests.authority import Authority
from tests.served import Served, served


@pytest.fixture(scope="module")
def guarded(
    authority: Authority, postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    pair = authority.issue("metastore", "IP:127.0.0.1")
    settings = {**pair.shown_by_a_server, "metastore.tls.client.ca": str(authority.ca)}
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


def test_the_doctor_looks_at_the_files(
    authority: Authority,
    db_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("metastore.doctor._java", lambda options: "")
    place = ["--database-url", db_url, "--warehouse", str(tmp_path / "w"), "--set", "metastore.use.SSL=true"]
    pair = authority.issue("metastore")
    given = [*place, "--set", f"metastore.keystore.path={pair.certificate}"]
    main = [*given, "--set", f"metastore.tls.key={pair.key}"]
    cli.main(["doctor", *main])
    assert "ok   doors: the files for TLS can be used" in capsys.readouterr().out
    assert cli.main(["doctor", *given]) == 1
    assert "BAD  doors: the certificate in" in capsys.readouterr().out


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


# --- passwords ------------------------------------------------------------------------------------


def given(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(words))


def test_passwords_are_given_and_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "users"
    for user, words in (("ann", "geheim\n"), ("bob", "x\n"), ("ann", "neu\r\n")):
        given(words, monkeypatch)
        assert cli.main(["passwd", str(file), user]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    known = Passwords(str(file))
    assert known.admits("ann", b"neu")
    assert known.admits("bob", b"x")
    assert not known.admits("ann", b"geheim")
    assert "geheim" not in file.read_text()
    file.chmod(0o640)
    assert cli.main(["passwd", str(file), "bob", "--delete"]) == 0
    assert list(read_users(file)) == ["ann"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    for user, words in (("a:b", "x"), ("", "x"), ("eve", ""), ("#eve", "x"), ("e\nve", "x")):
        given(words, monkeypatch)
        assert cli.main(["passwd", str(file), user]) == 1
    assert cli.main(["passwd", str(file), "bob", "--delete"]) == 1
    assert f"there is no user bob in {file}" in capsys.readouterr().err
    assert list(read_users(file)) == ["ann"]


def test_operators_log_in(
    postgres_url: str,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "users"
    given("geheim", monkeypatch)
    assert cli.main(["passwd", str(file), "ann"]) == 0
    settings = {"metastore.authentication": "password", "metastore.authentication.password.file": str(file)}
    (tmp_path / "password").write_text("geheim\n")
    with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
        uri = running.uri.replace("://", "://ann@")
        assert cli.main(["transactions", "--uri", uri]) == 1
        assert "HIVE_ACID_PASSWORD_FILE" in capsys.readouterr().err
        monkeypatch.setenv("HIVE_ACID_PASSWORD_FILE", str(tmp_path / "password"))
        assert cli.main(["transactions", "--uri", uri]) == 0
        assert cli.main(["transactions", "--uri", uri.replace("ann", "eve")]) == 1
        assert "does not let eve in" in capsys.readouterr().err
        file = tmp_path / "all.json"
        assert cli.main(["export", str(file), "--from", uri]) == 0
