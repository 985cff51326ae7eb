"""The tables of measured figures, held against the files that they are made of."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.bench.data.pages import BLOCK, MEASURED, PAGES, made
from tests.bench.data.record import sections

FILES = sorted(MEASURED.glob("*.json"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_are_those_of_the_files(page: Path) -> None:
    text = page.read_text()
    assert made(text) == text, "run: python -m tests.bench.data --pages"


def test_every_file_is_shown() -> None:
    shown = {found[2] for page in PAGES for found in BLOCK.finditer(page.read_text())}
    assert shown == {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_all_contestants_had_the_same_rows(file: Path) -> None:
    for section in sections(json.loads(file.read_text())):
        assert section.unequal() == []
        assert len(section.contestants) > 1


def test_a_table_has_medians_and_ratios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of made-up figures: the median of CPU s, JVM and client together, beside plain ORC's and Iceberg's."""
    once = {"jvm_peak_mb": [100, 300, 200], "client_peak_mb": [9, 9, 9], "client_cpu_s": [0.5, 0.5, 0.5]}
    slow = once | {"wall_s": [9, 1, 2], "jvm_cpu_s": [1.5, 3.5, 0.5]}
    quick = once | {"wall_s": [1, 1, 1], "jvm_cpu_s": [0.5, 0.5, 0.5]}
    state = {"rows": 7, "checksum": "1", "files": [1_000_000, 500_000]}
    measured = {
        "date": "2026-01-02",
        "options": {
            "tuned": False,
            "rows": 7_000,
            "partitioned": False,
            "warm_ups": 1,
            "lives": 2,
            "contestants": "orc,hive-acid,iceberg",
        },
        "sections": [
            {
                "versions": {"PySpark": "4.1.4"},
                "costs": {
                    "clean: count": {"orc": quick, "hive-acid": slow},
                    "changed: count": {"hive-acid": quick},
                    "UPDATE 1 %": {"hive-acid": slow, "iceberg": quick},
                    "small: SELECT": {"hive-acid": quick},
                    "of no kind": {"orc": quick},
                },
                "states": {"loaded": {"orc": state, "hive-acid": state}},
                "others": [],
            }
        ],
    }
    (tmp_path / "m.json").write_text(json.dumps(measured))
    monkeypatch.setattr("tests.bench.data.pages.MEASURED", tmp_path)
    tables = {
        name: re.sub(r"<!--.*?-->\n?", "", made(f"<!-- measured: m.json 4.1 {name} -->\nold\n<!-- end -->\n")).strip()
        for name in ("title", "life", "memory", "files")
    }
    assert tables["title"].startswith("*2026-01-02, PySpark 4.1.4, 7,000 rows, zstd, the JVM's defaults, 1 life ")
    assert tables["life"].splitlines() == [
        "| step | orc | hive-acid | iceberg |",
        "|---|---|---|---|",
        "| clean: count | 1.00 / 1.00 | 2.00 / 2.00 (2.00 / 2.00) | – |",
        "| UPDATE 1 % | – | 2.00 / 2.00 (2.00 / 2.00) | 1.00 / 1.00 |",
        "| changed: count | – | 1.00 / 1.00 (1.00 / 1.00) | – |",
    ]
    assert tables["memory"].splitlines()[2] == "| clean: count | 300 + 9 | 300 + 9 | – |"
    assert tables["memory"].splitlines()[-1] == "| of no kind | 300 + 9 | – | – |"
    assert tables["files"].splitlines()[2] == "| loaded | 2 / 1.5 | 2 / 1.5 | – |"
