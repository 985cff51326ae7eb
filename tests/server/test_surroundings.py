"""A server whose surroundings are not what they are elsewhere: it runs all the same, or says one sentence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from hive_acid import connect
from hive_acid.spark.jvm import java
from metastore import cli
from metastore.store.embedded.server import EmbeddedPostgres, EmbeddedPostgresError
from tests.server.test_mistakes import refused

ANOTHER_POSTGRES = {
    "PGHOST": "h",
    "PGHOSTADDR": "192.0.2.1",
    "PGPORT": "6000",
    "PGUSER": "u",
    "PGDATABASE": "d",
    "PGSERVICE": "none",
    "PGSSLMODE": "verify-full",
    "PGCHANNELBINDING": "require",
    "PGREQUIREAUTH": "scram-sha-256",
    "PGTARGETSESSIONATTRS": "standby",
    "PGOPTIONS": "-c search_path=none -c statement_timeout=1",
    "PGTZ": "none",
    "PGDATESTYLE": "German",
    "PGCLIENTENCODING": "latin1",
}


def served(
    *arguments: object, environment: Mapping[str, str] | None = None, before: Callable[[], object] | None = None
) -> tuple[int, str]:
    """Start a server, make a database in it, and stop it: the exit status and what it said."""
    command = [sys.executable, "-m", "metastore.cli", "serve", "--port", "0", *map(str, arguments)]
    with_ours = {**os.environ, "PYTHONPATH": os.getcwd(), **(environment or {})}
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=with_ours, preexec_fn=before
    )
    assert running.stdout is not None
    line = running.stdout.readline().strip()
    if line.startswith("listening on "):
        with connect(line.removeprefix("listening on ")) as connection:
            connection.create_database("made")
            assert "made" in connection.call("get_all_databases")
        running.send_signal(signal.SIGTERM)
    words = running.communicate(timeout=60)[1]
    assert "Traceback" not in words
    return running.returncode, words


@pytest.mark.slow
def test_the_variables_of_another_postgres(tmp_path: Path) -> None:
    status, words = served("--data-dir", tmp_path / "d", environment=ANOTHER_POSTGRES)
    assert status == 0, words


@pytest.mark.parametrize("closed", [(0,), (0, 2)])
def test_without_the_standard_streams(closed: tuple[int, ...], tmp_path: Path, db_url: str) -> None:
    """As some supervisors start their servers."""

    def close() -> None:
        for number in closed:
            with suppress(OSError):
                os.close(number)

    status, words = served("--database-url", db_url, "--warehouse", tmp_path / "w", before=close)
    assert status == 0, words


def test_a_warehouse_in_the_own_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for place in ("d/cluster", "d/cluster/w", "link/d/cluster", "d/owner.lock"):
        words = refused(capsys, "serve", "--port", 0, "--data-dir", tmp_path / "d", "--warehouse", tmp_path / place)
        assert "which is the metastore's own: give another" in words
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("option", ["--database-url", "--data-dir", "--warehouse"])
def test_an_empty_place_is_not_the_one_that_is_meant_without(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As of ``--database-url "$VARIABLE"``, which would start another metastore than the one that is meant."""
    for command in (["serve"], ["doctor"], ["export", "x.json"], ["import", "x.json"]):
        assert f"{option} is empty" in refused(capsys, *command, option, "")


def test_an_empty_address_to_listen_on_is_not_that_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--host is empty" in refused(capsys, "serve", "--host", "")


def _homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> object:
        raise KeyError(number)

    for name in ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


def test_a_user_without_home_and_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, db_url: str
) -> None:
    _homeless(monkeypatch)
    monkeypatch.setattr("metastore.doctor._java", lambda options: "")
    with pytest.raises(EmbeddedPostgresError, match=r"a user without a name .*--database-url"):
        EmbeddedPostgres(tmp_path / "d").start()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert "there is no home directory: set HOME, or give --data-dir" in refused(capsys, "serve")
    assert "--warehouse" in refused(capsys, "serve", "--database-url", db_url)
    assert cli.main(["config"]) == 0
    assert cli.main(["doctor", "--database-url", db_url, "--warehouse", str(tmp_path / "w")]) == 0


def test_javas_shim_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _homeless(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert java._shim(Path("/java")).is_relative_to(tmp_path)
    assert not (tmp_path / "~").exists()


def test_an_import_of_what_is_not_there_makes_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for source in (
        "thrift://127.0.0.1:1",
        "postgresql://u:se/cret@h/d",
        "postgresql://u:secret@h:x/d",
        "postgresql://u:secret@127.0.0.1:1/d",
        "postgresql://u:secret@[::1/d",
        "mysql://u:secret@h/d",
        "host=h password=secret",
        tmp_path / "none.json",
    ):
        words = refused(capsys, "import", source, "--data-dir", tmp_path / "d")
        assert "cret" not in words
    assert not (tmp_path / "d").exists()
