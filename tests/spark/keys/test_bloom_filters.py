"""Bloom filters that a table's properties ask for: look-ups of values read the row groups that may have them."""

from __future__ import annotations

from typing import Any

import pytest

from hive_acid.spark import AcidSession
from hive_acid.spark.read import scan
from tests.spark.compaction import compact_table
from tests.spark.plans import scans

pytestmark = pytest.mark.spark

GROUP = 10_000
"""Rows of a row group."""
ROWS = 5 * GROUP


def scattered(acid: AcidSession) -> Any:
    """One file of rows in no order: each row group has values from near both ends, and every second one is nowhere."""
    rows = acid.spark.range(ROWS).selectExpr("2 * (id * 7919 % 50021) AS id")
    return rows.selectExpr("id", "concat('s', id) AS s").coalesce(1)


def read(acid: AcidSession, where: str) -> int:
    """The rows that a scan reads."""
    return sum(found.rows for found in scans(acid.sql(f"SELECT * FROM d.t WHERE {where}")))


@pytest.mark.parametrize("kind", ["full", "insert-only"])
def test_a_look_up_reads_the_row_groups_that_may_have_it(acid: AcidSession, kind: str) -> None:
    more = {"transactional_properties": "insert_only"} if kind == "insert-only" else {}
    asked = {"orc.bloom.filter.columns": "S, id , gone", "ORC.bloom.filter.FPP": "0.001"}
    acid.create_table("d.t", {"id": "bigint", "s": "string"}, properties={**more, **asked})
    rows = scattered(acid)
    found = rows.first()
    acid.insert("d.t", rows)
    for compaction in (None, "minor", "major"):
        if compaction is not None:
            acid.insert("d.t", acid.spark.sql("SELECT -1L AS id, 'x' AS s"))
            compact_table(acid.spark, acid, "d.t", compaction)
        assert read(acid, f"id = {found.id}") <= GROUP + 2
        assert read(acid, f"id IN ({found.id + 1}, {found.id + 3})") <= 2
        assert read(acid, f"s = '{found.s}'") <= GROUP + 2
        assert acid.table("d.t").where(f"s = '{found.s}' AND id = {found.id}").count() == 1
    assert acid.table("d.t").count() == ROWS + 2


def test_changed_rows_have_them_and_others_have_not(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    # Asked row by row, ORC would show no row at all, whatever groups it has read.
    monkeypatch.setattr(scan, "row_filter", lambda *_: None)
    acid.sql("CREATE TABLE d.t (id bigint, s string)")
    acid.insert("d.t", scattered(acid))
    assert read(acid, "id = 20001") == ROWS
    acid.sql("ALTER TABLE d.t SET TBLPROPERTIES ('orc.bloom.filter.columns' = 'id')")
    acid.sql("UPDATE d.t SET s = concat(s, '!')")
    assert read(acid, "id = 20001") == ROWS  # those that are replaced
    compact_table(acid.spark, acid, "d.t", "major")
    assert read(acid, "id = 20001") == 0
    acid.sql("ALTER TABLE d.t CHANGE COLUMN id number bigint")
    acid.insert("d.t", scattered(acid).toDF("number", "s"))  # the property names a column that is not there
    assert read(acid, "number = 20001") == 2 * ROWS  # nor are files from before a rename asked by the new name


@pytest.mark.parametrize("wrong", ["", "no number", "0", "1", "-1"])
def test_a_share_that_cannot_be_is_passed_over(acid: AcidSession, wrong: str) -> None:
    properties = {"orc.bloom.filter.columns": "*", "orc.bloom.filter.fpp": wrong}
    acid.create_table("d.t", {"id": "bigint", "s": "string"}, properties=properties)
    acid.insert("d.t", scattered(acid))
    assert read(acid, "id = 20001") <= GROUP
