"""Insert-only tables that Hive has written, compacted by us: Hive's own readers find the same moments and days.

Hive notes in each file in whose time zone and by which calendar it was written; a compaction that loses it would shift
every timestamp by hours and old days by more than a week.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_acid.spark import AcidSession
from tests.hive_readers.insert_only import HiveFiles
from tests.hive_readers.readers import HiveReaders
from tests.spark.checker import location_of
from tests.spark.compaction import compact_table
from tests.spark.placed import commit_writes
from tests.spark.read.test_insert_only import create

COLUMNS = {"id": "int", "at": "timestamp", "day": "date", "name": "string"}
PROLEPTIC = {"hive.parquet.date.proleptic.gregorian": "true", "hive.avro.proleptic.gregorian": "true"}
ZONES = ("Asia/Tokyo", "America/New_York", "Asia/Tokyo")


def rows(first: int) -> list[tuple[object, ...]]:
    return [
        (first, "2024-06-01 12:00:00.123", "2024-06-01", "summer"),
        (first + 1, "2024-03-10 02:30:00", "2024-03-10", "an hour that New York has not"),
        (first + 2, "1500-03-01 01:02:03", "1500-02-27", "another calendar"),
        (first + 3, "1969-12-31 23:59:59.999", "1969-12-31", "before all"),
    ]


def of_table(files: HiveFiles, at: Path, zone: str) -> list[tuple[str, ...]]:
    found = [path for path in at.rglob("0*_0") if path.is_file()]
    return sorted(row for path in found for row in files.read(path, zone))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.maven
@pytest.mark.parametrize("form", ["parquet", "avro"])
def test_moments_and_days_stay(acid: AcidSession, hive: HiveReaders, form: str) -> None:
    at = create(acid, form, COLUMNS)
    files = HiveFiles(hive.java, form, COLUMNS)
    commit_writes(acid, "d.t", len(ZONES))
    for number, zone in enumerate(ZONES, 1):
        settings = PROLEPTIC if zone == "America/New_York" else {}
        files.write(at / f"delta_{number:07}_{number:07}_0000" / "000000_0", rows(10 * number), zone, **settings)
    before = of_table(files, at, "UTC")
    assert len(before) == 12
    require_same(acid, files, "minor", before)
    with acid.connection.begin() as transaction:
        number = transaction.write_id("d", "t")
        files.write(at / f"delta_{number:07}_{number:07}_0000" / "000000_0", rows(10 * number), ZONES[0])
    require_same(acid, files, "major", sorted([*before, *map(as_texts, rows(10 * number))]))


def require_same(acid: AcidSession, files: HiveFiles, kind: str, before: list[tuple[str, ...]]) -> None:
    """After a compaction, in a file for each kind of writer."""
    (result,) = compact_table(acid.spark, acid, "d.t", kind)
    made = location_of(acid, "d.t") / result.directories[0]
    assert result.rows == len(before)
    assert sorted(path.name for path in made.iterdir() if path.name[0] != ".") == ["000000_0", "000001_0"]
    for zone in ("UTC", "Europe/Paris"):
        assert of_table(files, made, zone) == before


def as_texts(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(map(str, row))
