"""The commands import, export and hand-back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metastore.cli import main
from tests.served import Served
from tests.transfer.world import snapshots


def test_import_export_and_import_again(
    old: Served, new: Served, db_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", old.uri, "--database-url", new.db_url, "--dry-run", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["dry_run"], said["complete"], said["counts"]["table"]) == (True, True, {"added": 4})
    assert main(["import", old.uri, "--database-url", new.db_url]) == 0
    assert "table: 4 added" in capsys.readouterr().out
    file = tmp_path / "all.json.gz"
    assert main(["export", str(file), "--database-url", new.db_url, "--table", "sales.o*"]) == 0
    capsys.readouterr()
    assert main(["import", f"file:{file}", "--database-url", db_url]) == 0
    assert "table: 1 added" in capsys.readouterr().out


def test_what_differs_is_the_exit_status(old: Served, new: Served, capsys: pytest.CaptureFixture[str]) -> None:
    main(["import", old.uri, "--database-url", new.db_url])
    with new.caller() as caller:
        caller.call("drop_table", "sales", "plain", False)
        changed = caller.call("get_database", "sales")
        changed.description = "mine"
        caller.call("alter_database", "sales", changed)
    capsys.readouterr()
    assert main(["import", old.uri, "--database-url", new.db_url]) == 1
    said = capsys.readouterr().out
    assert "database sales: description: 'mine' here, 'of goods' there" in said
    assert main(["import", old.uri, "--database-url", new.db_url, "--update"]) == 0


def test_another_metastore_is_exported_without_a_database_of_our_own(old: Served, tmp_path: Path) -> None:
    assert main(["export", str(tmp_path / "x.json"), "--from", old.uri, "--data-dir", str(tmp_path / "none")]) == 0
    assert (tmp_path / "x.json").read_text().count('"kind":"table"') == 4
    assert not (tmp_path / "none").exists()


def test_hand_back_and_forget(old: Served, new: Served, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["hand-back", "sales.orders", new.uri, "--database-url", old.db_url]
    before = snapshots(old.uri, "sales.orders")
    assert main(command) == 0
    assert "run it again with --forget" in capsys.readouterr().out
    assert main([*command, "--forget"]) == 0
    assert snapshots(new.uri, "sales.orders") == before
    with old.caller() as caller:
        assert "orders" not in caller.call("get_all_tables", "sales")


def test_errors_are_one_sentence(new: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--database-url", new.db_url]
    for source, words in (
        (str(tmp_path / "none.json"), "there is no file"),
        ("ftp://x", "is no source"),
        ("thrift://127.0.0.1:1", "no metastore answers"),
        ("postgresql://nobody@127.0.0.1:1/x", "cannot be used"),
    ):
        assert main(["import", source, *place]) == 1
        said = capsys.readouterr().err
        assert words in said
        assert said.startswith("metastore: ")
