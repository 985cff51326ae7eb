"""What Spark's jobs have counted, where Spark loses the event that tells of it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, Observation, SparkSession

import hive_acid.spark
from hive_acid.errors import NotCountedError
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.frames import observed
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import location_of
from tests.spark.conftest import OVER_CONNECT
from tests.values.rows.tables import DUMMY

pytestmark = pytest.mark.skipif(
    OVER_CONNECT, reason="over Connect an answer tells what a job has counted, and no event"
)

ROWS = "SELECT CAST(id AS int) AS id, id * 2 AS v FROM range(7)"
_ON = Observation._on
AGAIN = "Spark has not told how many rows .* nothing was changed; run the statement again"


@pytest.fixture
def deaf(acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[AcidSession]:
    """A session whose Spark tells nobody what its jobs have counted; tables of all kinds are there."""
    monkeypatch.setattr(observed, "PATIENCE_S", 0.3)
    acid.create_table("d.t", {"id": "int", "v": "bigint"})
    acid.create_table("d.i", {"id": "int", "v": "bigint"}, properties={"transactional_properties": "insert_only"})
    acid.create_table("d.e", {"id": "int", "v": "bigint"}, properties={"transactional": "false"})
    with limited(acid, **WRITTEN):
        acid.insert("d.t", spark.sql(ROWS))
        monkeypatch.setattr(Observation, "_on", _counted_by_nobody)
        yield acid


def _counted_by_nobody(observation: Observation, frame: DataFrame, *of: Column) -> DataFrame:
    """Some versions of Spark tell it by an event that they may drop; others do so as soon as a job has ended."""
    made = _ON(observation, frame, *of)
    vars(observation)["_jo"] = frame.sparkSession._jvm.org.apache.spark.sql.Observation()  # type: ignore[union-attr]
    return made


def test_rows_are_counted_in_the_files(deaf: AcidSession, acid: AcidSession) -> None:
    assert deaf.insert("d.t", deaf.spark.sql(ROWS)) == 7
    assert deaf.update("d.t", {"v": "v + 1"}, "id > 2") == 8
    assert deaf.delete("d.t", "id > 4") == 4
    assert sorted(map(tuple, acid.table("d.t").collect())) == [
        row for of in range(5) for row in [(of, 2 * of + (of > 2))] * 2
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda acid: (
            acid.merge("d.t", acid.spark.sql(ROWS), "t.id = s.id")
            .whenMatchedUpdateAll()
            .whenNotMatchedInsertAll()
            .execute()
        ),
        lambda acid: acid.insert("d.i", acid.spark.sql(ROWS)),
    ],
    ids=["merge", "insert-only"],
)
def test_changes_that_nobody_has_counted_are_not_made(
    deaf: AcidSession, acid: AcidSession, change: Callable[[AcidSession], object]
) -> None:
    with pytest.raises(NotCountedError, match=AGAIN):
        change(deaf)
    assert (acid.table("d.t").count(), acid.table("d.i").count()) == (7, 0)


def test_an_export_and_rows_of_a_plain_table_say_what_has_become_of_them(deaf: AcidSession, tmp_path: Path) -> None:
    with pytest.raises(NotCountedError, match="the export is not complete; run it again"):
        deaf.export_table("d.t", str(tmp_path / "out"))
    assert not (tmp_path / "out" / "_export.json").exists()
    with pytest.raises(NotCountedError, match="nothing was changed; run the statement again"):
        hive_acid.spark.session(deaf.spark, deaf.connection, settings=DUMMY).insert("d.e", deaf.spark.sql(ROWS))
    assert [path for path in location_of(deaf, "d.e").rglob("*") if path.is_file()] == []
