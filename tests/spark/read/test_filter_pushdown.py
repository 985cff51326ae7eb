"""Frames that are filtered read less, and mean what they meant when they were made."""

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT
from tests.values.sessions.under import under

pytestmark = pytest.mark.spark


@pytest.mark.skipif(OVER_CONNECT, reason="Spark Connect analyses a frame anew, by the settings of when it is run")
def test_a_frame_keeps_the_settings_it_was_made_under(spark: SparkSession, acid: AcidSession) -> None:
    """As every frame of Spark's: else its times would be others once it is filtered."""
    acid.create_table("d.t", {"id": "int", "v": "string"}, partitioned_by={"q": "timestamp"})
    acid.insert("d.t", spark.sql("SELECT 1 AS id, 'a' AS v, timestamp'2024-01-01 00:00:00' AS q"))
    frame = acid.table("d.t")
    chosen = acid.table("d.t").where("q = '2024-01-01 00:00:00' AND id < 5")
    with under(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert [row[0] for row in frame.where("id = 1").selectExpr("unix_seconds(q)").collect()] == [1704067200]
        assert [row[0] for row in chosen.where("id = 1").selectExpr("unix_seconds(q)").collect()] == [1704067200]
        assert [row[0] for row in acid.table("d.t").selectExpr("unix_seconds(q)").collect()] == [1704067200 - 9 * 3600]
