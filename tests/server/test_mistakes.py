"""Whatever is mistyped on the command line is answered by one sentence, and nothing is made by it."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from metastore import cli
from metastore.app import App
from metastore.cli import main
from metastore.observe import log
from tests.databases import administer

HOSTILE = (
    "",
    " ",
    "x",
    "-1",
    "9" * 30,
    "nan",
    "\udcff",
    "a" * 5000,
    "é[red]💥",
    "a=b",
    "*",
    "../x",
    "/proc/nix/x",
    "http://h",
)
NEEDED = {"import": ["thrift://127.0.0.1:1"], "export": ["x.json"], "hand-back": ["d.t", "thrift://127.0.0.1:1"]}
TABLES = {"undrop": ["d.t"], "orphans": ["d.t"], "sql": ["SHOW LOCKS"], "why": ["d.t"]}


def said(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    """Exit status, and what was said; nothing but an exit leaves the command."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = int(str(end.code))
    captured = capsys.readouterr()
    return status, captured.err + captured.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    status, words = said(capsys, *arguments)
    assert status == 1, words
    lines = words.strip().splitlines()
    assert len(lines) == 1, words
    assert lines[0].startswith("metastore: ")
    return lines[0]


def commands() -> Iterator[tuple[str, argparse.Action]]:
    """Each option, and each argument, of each command."""
    parser = cli._parser()
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in subparsers.choices.items():
        for action in command._actions:
            if not isinstance(action, argparse._HelpAction):
                yield name, action


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted({name for name, _ in commands()}))
def test_every_option_with_every_bad_value(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(App, "run", lambda app, announce: (announce(app.start()), app.stop()))
    monkeypatch.setattr("metastore.doctor._java", lambda options: "")
    monkeypatch.setattr("metastore.cli.default_data_dir", lambda: tmp_path / "none")
    sane = [*NEEDED.get(command, []), *TABLES.get(command, [])]
    here = [] if command not in ("serve", "doctor", *NEEDED) else ["--database-url", db_url, "--warehouse", "w"]
    for name, action in commands():
        if name != command or action.nargs == 0 or action.dest in ("data_dir",):
            continue
        for value in HOSTILE:
            given = [*here]
            if action.option_strings:
                if action.dest == "database_url":
                    given = given[2:]
                given += [*sane, f"{action.option_strings[0]}={value}"]
            else:
                given += ["--", value, *sane[1:]]
            if command == "serve" and action.dest != "port":
                given += ["--port", "0"]
            status, words = said(capsys, command, *given)
            assert status in (0, 1, 2), (given, words)
            assert "Traceback" not in words, (given, words)
            if status == 1 and command not in ("doctor", *NEEDED):
                assert words.strip().splitlines()[-1].startswith("metastore: "), (given, words)


def test_no_data_is_made_by_a_typo(capsys: pytest.CaptureFixture[str], tmp_path: Path, postgres_url: str) -> None:
    for arguments in (("export", tmp_path / "x.json"), ("hand-back", "d.t", "thrift://127.0.0.1:1")):
        words = refused(capsys, *arguments, "--data-dir", tmp_path / "typo")
        assert f"there is no metastore's data in {tmp_path / 'typo'}" in words
    _, words = said(capsys, "doctor", "--data-dir", tmp_path / "typo", "--warehouse", tmp_path / "w")
    assert f"there is no data in {tmp_path / 'typo'} yet" in words
    assert not (tmp_path / "typo").exists()
    assert not (tmp_path / "x.json").exists()
    administer(postgres_url, "CREATE DATABASE empty")
    url = postgres_url.replace("/metastore?", "/empty?")
    try:
        assert "no metastore has used it yet" in refused(capsys, "export", tmp_path / "x.json", "--database-url", url)
        with psycopg2.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_namespace WHERE nspname = 'hive_acid'")
            assert cursor.fetchone() == (0,)
        connection.close()
    finally:
        administer(postgres_url, "DROP DATABASE empty WITH (FORCE)")


@pytest.mark.parametrize(
    "uri",
    [
        "127.0.0.1:9083",
        "ftp://h:1",
        "thrift://",
        "thrift://h:port",
        "thrift://h:99999",
        "thrift://h:0",
        "thrift://[::1",
        "",
    ],
)
def test_addresses_of_metastores(uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"'{uri}' is not the address of a metastore: give thrift://host:port" in refused(
        capsys, "locks", "--uri", uri
    )


def test_doctor_asks_the_server_whose_data_were_taken_away(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "address").write_text("thrift://127.0.0.1:1\n")
    status, words = said(capsys, "doctor", "--data-dir", tmp_path, "--warehouse", tmp_path / "w")
    assert status == 1
    assert "no metastore answers at thrift://127.0.0.1:1" in words


def test_files_without_end_and_sources_without_a_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    url = ("--database-url", "postgresql://u@127.0.0.1:1/x")
    for option in ("--database-password-file", "--config", "--hive-site"):
        assert "cannot read /dev/zero: it has more than 16 million" in refused(
            capsys, "serve", *url, option, "/dev/zero"
        )
    # It exported this metastore instead.
    assert "'' is no source: give thrift://host:port" in refused(capsys, "export", tmp_path / "x.json", "--from", "")
    assert "'' is no source: give thrift://host:port" in refused(capsys, "import", "")
    status, words = said(capsys, "import", "x", "--wait=-1")
    assert (status, words.splitlines()[-1]) == (
        2,
        "metastore import: error: argument --wait: '-1' is not a number of seconds from 0 to 1e9",
    )


def test_ids_that_no_call_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (("why", "--txn"), ("why", "--lock"), ("compactions", "--id"), ("removals", "--forget")):
        for text in ("9223372036854775808", "-1", "x", "1" * 5000):
            status, words = said(capsys, *arguments[:1], f"{arguments[1]}={text}")
            assert (status, f"{text!r} is not a whole number from 0 to 9223372036854775807" in words) == (2, True)


def test_addresses_of_databases(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for url in ("mysql://ann:secret@h/d", "h:5432", "postgresql://u@h/d?nosuch=1"):
        words = refused(capsys, "serve", "--port", 0, "--warehouse", tmp_path, "--database-url", url)
        assert "is not the address of a Postgres" in words
        assert "secret" not in words


def test_a_warehouse_without_credentials(capsys: pytest.CaptureFixture[str], db_url: str, monkeypatch: Any) -> None:
    pytest.importorskip("s3fs")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    words = refused(capsys, "serve", "--port", 0, "--warehouse", "s3://bucket/w", "--database-url", db_url)
    assert "the warehouse s3://bucket/w is not writable: Unable to locate credentials" in words


@pytest.mark.parametrize(
    ("warehouse", "why"),
    [
        ("s3://", "followed by the name of a bucket"),
        ("s3a://b/?versionId=1", "versionId"),
        ("http://127.0.0.1:1/w", "none of the file systems"),
        ("data:,a", "none of the file systems"),
        ("memory://w", "none of the file systems"),
        ("zip::file:///w", "'::'"),
        ("file://host/w", "a local one has no host"),
        ("file:", "the root of the local file system"),
        ("/", "the root of the local file system"),
        ("file:///x/..", "the root of the local file system"),
        ("hdfs://user@host/w", "a host, or host:port"),
        ("w" * 5000, "longer than"),
    ],
)
def test_warehouses_that_cannot_be(
    warehouse: str,
    why: str,
    capsys: pytest.CaptureFixture[str],
    db_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert why in refused(capsys, "serve", "--port", 0, "--warehouse", warehouse, "--database-url", db_url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("state", "why", "remedy"),
    [
        ("sys.modules['rich'] = None", "is not installed (no module rich)", "hive-acid-metastore"),
        ("sys.modules['thriftpy2'] = None", "is not installed (no module thriftpy2)", "hive-acid-metastore"),
        ("sys.modules['hive_acid'] = None", "is not installed (no module hive_acid)", "hive-acid-metastore"),
        (
            "import hive_acid; hive_acid.__version__ = '0.0.9'",
            "and 0.0.9 is installed",
            "--upgrade hive-acid hive-acid-metastore",
        ),
    ],
)
def test_without_what_the_server_needs(state: str, why: str, remedy: str) -> None:
    code = f"import sys; {state}; from metastore.entry import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("metastore: ")
    assert why in done.stderr
    assert done.stderr.endswith(f": pip install {remedy}\n")
    assert len(done.stderr.splitlines()) == 1


def test_doctor_without_spark(
    capsys: pytest.CaptureFixture[str], db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    status, words = said(capsys, "doctor", "--database-url", db_url, "--warehouse", tmp_path / "w")
    assert status == 1
    wrong = [line for line in words.splitlines() if line.startswith("BAD")]
    assert [line.split()[1] for line in wrong] == ["spark:", "java:"]
    assert all("pip install 'hive-acid[spark]'" in line for line in wrong)


def test_doctor_swallows_nothing(capsys: pytest.CaptureFixture[str], db_url: str, tmp_path: Path) -> None:
    (tmp_path / "[red]file").write_text("")
    _, words = said(capsys, "doctor", "--database-url", db_url, "--warehouse", tmp_path / "[red]file" / "w")
    assert "/[red]file/w" in words


@pytest.mark.slow
def test_the_password_may_be_elsewhere(
    capsys: pytest.CaptureFixture[str], db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests' Postgres asks for none, so what libpq is given is looked at."""
    given: list[str] = []
    connect = psycopg2.connect
    monkeypatch.setattr(psycopg2, "connect", lambda dsn="", **kw: (given.append(dsn), connect(dsn, **kw))[1])
    (tmp_path / "password").write_text("s3cret word\n")
    place = ["--warehouse", tmp_path / "w"]
    file = ["--database-password-file", tmp_path / "password"]
    assert said(capsys, "doctor", "--database-url", db_url, *file, *place)[0] == 0
    assert "s3cret word" in given[0]
    monkeypatch.setenv("HIVE_ACID_DATABASE_URL", db_url)
    assert said(capsys, "doctor", *place)[0] == 0
    given.clear()
    assert said(capsys, "doctor", *file, *place)[0] == 0
    assert "s3cret word" in given[0]
    assert "cannot read" in refused(capsys, "serve", "--database-password-file", tmp_path / "none")
    monkeypatch.delenv("HIVE_ACID_DATABASE_URL")
    assert "give its --database-url" in refused(capsys, "serve", *file)


def test_lines_of_the_log_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", log.JSON)
    log.event(logging.getLogger("a.b"), logging.INFO, "it happened", what='a "word"', number=3, time="mine")
    logging.getLogger("a.b").warning("plain %s", "words")
    try:
        raise KeyError("x")
    except KeyError:
        logging.getLogger("a.b").exception("broken")
    first, second, third = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert {key: first[key] for key in ("level", "logger", "event", "what", "number")} == {
        "level": "INFO", "logger": "a.b", "event": "it happened", "what": 'a "word"', "number": 3,
    }  # fmt: skip
    assert second["message"] == "plain words"
    assert "KeyError: 'x'" in third["traceback"]
    log.configure("info")
    log.event(logging.getLogger("a.b"), logging.INFO, "it happened", what='a "word"')
    line = capsys.readouterr().err
    assert line.endswith(""" INFO a.b it happened what='a "word"'\n""")
    for time in (first["time"], line.split()[0]):
        assert len(time) == len("2026-11-26T16:00:00.000+00:00")


def test_a_server_says_when_it_has_stopped(db_url: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "metastore.cli", "serve", "--port", "0", "--database-url", db_url]
    command += ["--warehouse", str(tmp_path / "w"), "--set", "metastore.log.format=json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    assert server.stdout is not None
    assert server.stdout.readline().startswith("listening")
    server.send_signal(signal.SIGTERM)
    lines = [json.loads(line) for line in server.communicate(timeout=60)[1].splitlines()]
    assert [line["event"] for line in lines if line["logger"] == "metastore"] == ["started", "stopped"]


def test_a_process_in_which_no_server_began_ends_by_its_signals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is forked from it, too: a pool's workers would ignore that they are to end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    refused(capsys, "serve", "--database-url", "postgresql://127.0.0.1:1/nobody", "--warehouse", tmp_path)
    assert {number: signal.getsignal(number) for number in before} == before
