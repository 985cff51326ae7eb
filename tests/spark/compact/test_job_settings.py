"""How a compaction is carried out: settings of one job, properties of its request, rounds of many deltas."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.job_settings import configured
from tests.spark.checker import check_table, location_of
from tests.spark.compact.rows import COLUMNS, insert
from tests.spark.compaction import compact_table


def test_settings_are_those_of_one_job(spark: SparkSession) -> None:
    key = "spark.sql.shuffle.partitions"
    before, ansi = spark.conf.get(key), spark.conf.get("spark.sql.ansi.enabled")
    with configured(spark, {key: "7", "spark.executor.memory": "9g", "spark.no.such": "x"}):
        assert spark.conf.get(key) == "7"
    assert spark.conf.get(key) == before
    unfit = {"spark.sql.ansi.enabled": "false", key: "many"}
    with (
        pytest.raises(UnsupportedTableError, match=r"compactor\.spark\.sql\.shuffle\.partitions cannot be 'many'"),
        configured(spark, unfit),
    ):
        pass
    assert spark.conf.get("spark.sql.ansi.enabled") == ansi
    assert spark.conf.get(key) == before


def test_a_setting_stays_until_the_last_job_ends(spark: SparkSession) -> None:
    key = "spark.sql.shuffle.partitions"
    before = spark.conf.get(key)
    first, second = configured(spark, {key: "7"}), configured(type(spark).active(), {key: "7"})
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert spark.conf.get(key) == "7"
    second.__exit__(None, None, None)
    assert spark.conf.get(key) == before


def test_a_request_has_properties_for_what_is_written(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS)
    for first in (0, 100):
        insert(acid, spark, first, 100)
    compact_table(spark, acid, "d.t", "major", properties={"tblprops.orc.compress": "SNAPPY"})
    (base,) = location_of(acid, "d.t").glob("base_*")
    assert orc.ORCFile(base / "bucket_00000").compression == "SNAPPY"


@pytest.mark.slow
def test_more_deltas_than_anybody_holds_open(acid: AcidSession, spark: SparkSession) -> None:
    """They go by rounds of 500; in each they are read one after the other."""
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(1).selectExpr("int(id) id"))
    location = location_of(acid, "d.t")
    first = orc.ORCFile(location / "delta_0000001_0000001_0000" / "bucket_00000").read()
    wanted = 520
    for number in range(2, wanted + 1):
        with acid.connection.begin() as transaction:
            assert transaction.write_id("d", "t") == number
        columns = {name: first.column(name) for name in first.schema.names}
        columns["originalTransaction"] = columns["currentTransaction"] = pa.array([number], pa.int64())
        directory = location / f"delta_{number:07}_{number:07}_0000"
        directory.mkdir()
        orc.write_table(pa.table(columns), directory / "bucket_00000", compression="zlib")
        (directory / "_orc_acid_version").write_text("2")
    results = compact_table(spark, acid, "d.t", "minor")
    merged = [(result.rows, name.partition("_v")[0]) for result in results for name in result.directories]
    assert merged == [(500, "delta_0000001_0000500"), (20, "delta_0000501_0000520")]
    check_table(location)
    assert acid.table("d.t").count() == wanted
