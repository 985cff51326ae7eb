"""The commands beside ``serve``."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from metastore.cli import main
from metastore.config import Config
from metastore.known_settings import KNOWN


def test_doctor_finds_a_sound_place_sound(db_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--database-url", db_url, "--warehouse", str(tmp_path / "w")]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^ok +(\w+):", said, re.MULTILINE) == ["database", "warehouse", "doors", "spark", "java"]
    assert "its schema is up to date; 0 transactions open, 0 aborted, 0 locks, 0 write ids on record" in said
    assert not list((tmp_path / "w").iterdir())


def test_doctor_asks_a_running_metastore(
    metastore: Callable[..., str], db_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    uri = metastore()
    arguments = ["doctor", "--database-url", db_url, "--warehouse", str(tmp_path / "w")]
    assert main([*arguments, "--uri", uri]) == 0
    assert f"ok   metastore: the metastore at {uri} is alive, its database answers" in capsys.readouterr().out
    assert main([*arguments, "--uri", "thrift://127.0.0.1:1"]) == 1
    assert "BAD  metastore: no metastore answers at thrift://127.0.0.1:1" in capsys.readouterr().out


def test_doctor_names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    url = "postgresql://nobody@127.0.0.1:1/none"
    assert main(["doctor", "--database-url", url, "--warehouse", str(tmp_path / "file" / "w")]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^BAD +database: .*cannot be used", said, re.MULTILINE)
    assert re.search(r"^BAD +warehouse: ", said, re.MULTILINE)


def test_config_lists_every_setting(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["config", "--set", "metastore.txn.timeout=7s"]) == 0
    said = capsys.readouterr().out
    for key in [*Config().values(), *(known.key for known in KNOWN.values())]:
        assert f" {key} " in said
    assert re.search(r"hive\.txn\.timeout\s+│ 7000ms\s+│ 300s\s+│ --set", said)


def test_config_is_readable_by_the_next_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["config"]) == 0
    for line in capsys.readouterr().out.splitlines():
        if "hive.compactor.initiator.failed.compacts.threshold" in line:
            assert "After so many failures in a row" in line
            break
    else:
        pytest.fail("a long key was folded")


def test_config_shows_what_wins_over_what(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site, toml = tmp_path / "hive-site.xml", tmp_path / "metastore.toml"
    site.write_text(
        "<configuration><property><name>hive.txn.timeout</name><value>1m</value></property>"
        "<property><name>hive.txn.xlock.iow</name><value>false</value></property></configuration>"
    )
    toml.write_text('hive.txn.timeout = "2m"')
    monkeypatch.setenv("COLUMNS", "2000")
    monkeypatch.setenv("HIVE_ACID__METASTORE_TXN_TIMEOUT", "3m")
    monkeypatch.setenv("HIVE_ACID__HIVE_MAX_OPEN_TXNS", "7")
    assert main(["config", "--hive-site", str(site), "--config", str(toml), "--set", "hive.txn.timeout=4m"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"hive\.txn\.timeout\s+│ 240000ms\s+│ 300s\s+│ --set, "
        rf"over 3m of environment HIVE_ACID__METASTORE_TXN_TIMEOUT, over 2m of {toml}, over 1m of {site}\s+│ same",
        said,
    )
    assert re.search(r"hive\.max\.open\.txns\s+│ 7\s+│ 100000\s+│ environment HIVE_ACID__HIVE_MAX_OPEN_TXNS", said)
    assert re.search(rf"hive\.txn\.xlock\.iow\s+│ false\s+│ {site}\s+│ client", said)


def test_a_setting_that_cannot_be_read_is_one_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["config", "--config", str(tmp_path / "absent.toml")]) == 1
    assert capsys.readouterr().err == f"metastore: cannot read {tmp_path / 'absent.toml'}: No such file or directory\n"


def test_listings_of_a_running_metastore(metastore: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    uri = metastore()
    for name in ("transactions", "locks", "compactions"):
        assert main([name, "--uri", uri]) == 0
        assert name.capitalize() in capsys.readouterr().out


def test_an_absent_metastore_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["locks", "--uri", "thrift://127.0.0.1:1"]) == 1
    assert "no metastore answers at thrift://127.0.0.1:1" in capsys.readouterr().err
