"""How often a statement waits for the metastore: what it may ask together goes in one round trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.connection import Connection
from hive_acid.spark import AcidSession

BEGUN = "hive_acid_begin+get_table_req"
PUBLISHED = ["heartbeat", "get_table_req", "commit_txn"]
PUBLISHED_CHANGES = ["heartbeat", "get_table_req", "hive_acid_commit_rows"]

TRIPS: dict[str, tuple[Callable[[AcidSession, SparkSession], Any], list[str]]] = {
    "insert": (lambda acid, spark: acid.insert("d.t", spark.range(4, 6)), [BEGUN, *PUBLISHED]),
    "select": (lambda acid, spark: acid.table("d.t").collect(), [BEGUN, "get_table_req"]),
    "update": (
        lambda acid, spark: acid.update("d.t", {"id": "id + 10"}, "id = 1"),
        [BEGUN, *PUBLISHED_CHANGES],
    ),
    "update of nothing": (
        lambda acid, spark: acid.update("d.t", {"id": "id + 10"}, "id = 77"),
        [BEGUN, "get_table_req", "hive_acid_commit_rows"],
    ),
    "delete": (lambda acid, spark: acid.delete("d.t", "id = 2"), [BEGUN, *PUBLISHED_CHANGES]),
    "merge": (
        lambda acid, spark: (
            acid.merge("d.t", spark.range(2, 4).alias("s"), "t.id = s.id").whenMatchedDelete().execute()
        ),
        ["get_table_req", BEGUN, *PUBLISHED_CHANGES],
    ),
}


@pytest.mark.parametrize("verb", TRIPS)
def test_a_statement_asks_together_what_it_can(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(4))
    seen: list[str] = []
    ask = Connection.ask

    def watched(self: Connection, *questions: Any) -> list[Any]:
        seen.append("+".join(question.method for question in questions))
        return ask(self, *questions)

    statement, trips = TRIPS[verb]
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "ask", watched)
        found = statement(acid, spark)
    assert found is not None
    assert [trip for trip in seen if trip not in ("heartbeat_txn_range", "hive_acid_pressure")][: len(trips)] == trips
