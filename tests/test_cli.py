"""The commands beside ``serve``."""

import re

import pytest

from metastore.cli import main
from metastore.config import Config
from metastore.settings import SettingError, build, duration, integer, parse_duration_ms, spelling


def test_doctor_finds_a_sound_place_sound(db_url, tmp_path, capsys):
    assert main(["doctor", "--database-url", db_url, "--warehouse", str(tmp_path / "w")]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^ok +(\w+):", said, re.MULTILINE) == ["database", "warehouse", "spark", "java"]
    assert not list((tmp_path / "w").iterdir())


def test_doctor_names_what_is_wrong(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    url = "postgresql://nobody@127.0.0.1:1/none"
    assert main(["doctor", "--database-url", url, "--warehouse", str(tmp_path / "file" / "w")]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^BAD +database: .*cannot be used", said, re.MULTILINE)
    assert re.search(r"^BAD +warehouse: ", said, re.MULTILINE)


def test_config_lists_every_setting(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["config", "--set", "metastore.txn.timeout=7s"]) == 0
    said = capsys.readouterr().out
    for key in Config().values():
        assert key in said
    assert re.search(r"hive\.txn\.timeout\s+│ 7000ms\s+│ 300s", said)


def test_listings_of_a_running_metastore(metastore, capsys):
    uri = metastore()
    for name in ("transactions", "locks", "compactions"):
        assert main([name, "--uri", uri]) == 0
        assert name.capitalize() in capsys.readouterr().out


def test_an_absent_metastore_is_one_sentence(capsys):
    assert main(["locks", "--uri", "thrift://127.0.0.1:1"]) == 1
    assert "no metastore answers at thrift://127.0.0.1:1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected_ms"), [("300s", 300_000), ("5", 5_000), ("10 ms", 10), ("2m", 120_000), ("12h", 43_200_000)]
)
def test_durations(text, expected_ms):
    assert parse_duration_ms(text) == expected_ms


def test_both_spellings_of_a_key_are_one():
    assert spelling("metastore.txn.timeout") == spelling("hive.metastore.txn.timeout") == spelling("HIVE.txn.timeout")


def test_a_value_that_does_not_fit_is_named():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Some:
        pause_ms: int = duration("hive.pause", "5s", "A pause.")
        many: int = integer("hive.many", "3", "How many.")

    assert build(Some, {"hive.pause": "20"}).pause_ms == 20_000
    assert build(Some, {"hive.other": "x"}).many == 3
    with pytest.raises(SettingError, match=r"hive\.many.*'few' is not a whole number"):
        build(Some, {"hive.many": "few"})
