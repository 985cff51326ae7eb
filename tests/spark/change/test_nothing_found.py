"""Statements that surely find no row: they end without a query, and are otherwise what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.write.stage import SparkStaging
from tests.spark.by_spark import WRITTEN, limited

ROWS = [(n, n % 3, f"t{n}") for n in range(10)]


@pytest.fixture(params=["client", "job"])
def filled(request: Any, acid: AcidSession, spark: SparkSession) -> Any:
    """A session with the table ``d.t`` of `ROWS`, whose changes the client or a job writes."""
    acid.create_table("d.t", {"id": "int", "n": "int", "s": "string"})
    acid.insert("d.t", spark.createDataFrame(ROWS, "id int, n int, s string"))
    with limited(acid, **(WRITTEN if request.param == "job" else {})):
        yield acid


def rows(acid: AcidSession) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, acid.table("d.t").collect()))


def source(acid: AcidSession, condition: str = "false") -> Any:
    return acid.spark.createDataFrame(ROWS, "id int, n int, s string").where(condition).selectExpr("id", "n + 1 n", "s")


def beyond(acid: AcidSession) -> Any:
    return acid.spark.sql("SELECT int(700 + id) id, int(0) n, 'x' s FROM range(3)")


NOTHING: dict[str, Callable[[AcidSession], object]] = {
    "update": lambda acid: acid.update("d.t", {"n": "1"}, "id > 700"),
    "update by sql": lambda acid: acid.sql("UPDATE d.t SET n = n + 1 WHERE id = -5").collect()[0][0],
    "delete": lambda acid: acid.delete("d.t", "s >= 'z'"),
    "delete using none": lambda acid: acid.delete("d.t", source=source(acid), on="t.id = s.id"),
    "delete using others": lambda acid: acid.delete("d.t", source=beyond(acid), on="t.id = s.id"),
    "update from none": lambda acid: acid.update("d.t", {"n": "s.n"}, source=source(acid), on="t.id = s.id"),
    "update from others": lambda acid: acid.update("d.t", {"n": "s.n"}, source=beyond(acid), on="t.id = s.id"),
    "merge of none": lambda acid: sum(
        acid.merge("d.t", source(acid), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    ),
    "merge of none without keys": lambda acid: sum(
        acid.merge("d.t", source(acid), "t.id < s.id").whenMatchedDelete().whenNotMatchedInsertAll().execute()
    ),
    "merge of others": lambda acid: sum(
        acid.merge("d.t", beyond(acid), "t.id = s.id").whenMatchedDelete("t.n = 1").whenMatchedUpdateAll().execute()
    ),
}


@pytest.mark.parametrize("kind", NOTHING)
def test_no_query_looks_for_rows_that_cannot_be(
    kind: str, filled: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a query looked for rows")

    for name in ("driver_changes", "driver_deletes"):
        monkeypatch.setattr(f"hive_acid.spark.change.dml.{name}", never)
    monkeypatch.setattr("hive_acid.spark.change.merge_job.driver_changes", never)
    monkeypatch.setattr(SparkStaging, "write", never)
    assert NOTHING[kind](filled) == 0
    assert rows(filled) == ROWS


def test_rows_that_need_no_match_are_found(filled: AcidSession) -> None:
    acid = filled
    by_source = acid.merge("d.t", source(acid), "t.id = s.id").whenMatchedDelete()
    assert by_source.whenNotMatchedBySourceUpdate("t.id < 4", {"n": "n + 10"}).execute() == (0, 4, 0)
    assert [row[1] for row in rows(acid)][:5] == [10, 11, 12, 10, 1]
    new = acid.merge("d.t", beyond(acid), "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    assert new.execute() == (3, 0, 0)
    assert [row[0] for row in rows(acid)][-3:] == [700, 701, 702]
    assert acid.update("d.t", {"n": "0"}, "id >= 700") == 3
    acid.delete("d.t")
    assert acid.merge("d.t", source(acid, "true"), "t.id = s.id").whenNotMatchedInsertAll().execute() == (10, 0, 0)


def test_what_is_wrong_is_told_where_no_row_is(filled: AcidSession) -> None:
    with pytest.raises(ColumnError, match="nowhere"):
        filled.update("d.t", {"nowhere": "1"}, "id > 700")
    with pytest.raises(ColumnError, match="nowhere"):
        filled.merge("d.t", source(filled), "t.id = s.id").whenMatchedUpdate(set={"n": "s.nowhere"}).execute()
    with pytest.raises(ColumnError, match="nowhere"):
        filled.delete("d.t", "nowhere = 1")
