"""Timestamps are refused while Spark's session and its JVM disagree about the zone, and only then."""

import datetime
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.catalog.table import Column
from hive_acid.errors import ColumnError, TimeZoneMismatchError, UnsupportedTableError
from hive_acid.spark import AcidSession
from hive_acid.spark.values.timezone import ZoneGuard, has_one_offset, jvm_zone, refuse_zone_with_gaps
from hive_acid.spark.values.types import row_type
from tests.spark.checker import check_table, location_of


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[Any]:
    """Sets the session's zone; the JVM of these tests is in UTC."""

    def set_zone(name: Any) -> None:
        spark.conf.set("spark.sql.session.timeZone", name)

    yield set_zone
    spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_tables_with_timestamps_are_refused(acid: AcidSession, spark: SparkSession, zone: Any) -> None:
    acid.create_table("d.t", {"id": "int", "seen": "array<struct<at:timestamp>>"})
    frame = spark.sql("SELECT 1 id, array(named_struct('at', timestamp'2020-06-01 12:00:00')) seen")
    acid.insert("d.t", frame)
    zone("America/New_York")
    for change in (
        lambda: acid.table("d.t"),
        lambda: acid.insert("d.t", frame),
        lambda: acid.delete("d.t"),
        lambda: acid.update("d.t", {"id": "2"}),
    ):
        with pytest.raises(TimeZoneMismatchError, match=r"America/New_York.* UTC.*spark\.sql\.session\.timeZone"):
            change()
    zone("UTC")
    assert acid.table("d.t").count() == 1
    assert len(check_table(location_of(acid, "d.t"))) == 1


@pytest.mark.parametrize("name", ["Etc/UTC", "GMT", "Z", "+00:00", "Etc/Zulu"])
def test_other_names_of_the_same_zone_pass(acid: AcidSession, spark: SparkSession, zone: Any, name: Any) -> None:
    acid.create_table("d.t", {"at": "timestamp"})
    zone(name)
    acid.insert("d.t", spark.sql("SELECT timestamp'2020-06-01 12:00:00' at"))
    zone("UTC")
    assert acid.table("d.t").selectExpr("string(at)").collect()[0][0] == "2020-06-01 12:00:00"


def test_tables_without_timestamps_do_not_care(acid: AcidSession, spark: SparkSession, zone: Any) -> None:
    acid.create_table("d.t", {"day": "date"})
    zone("America/New_York")
    acid.insert("d.t", spark.sql("SELECT date'2020-06-01' day"))
    assert acid.table("d.t").collect()[0].day == datetime.date(2020, 6, 1)


def test_zones_that_differ_in_old_times_only_are_two(spark: SparkSession, zone: Any) -> None:
    """Clocks of both show the same since 1890, and showed local mean time before."""
    differ = 0
    for one, other in (("Europe/London", "Europe/Isle_of_Man"), ("Africa/Addis_Ababa", "Africa/Asmara")):
        offsets = [f"from_utc_timestamp(timestamp'1850-01-01 00:00:00', '{of}')" for of in (one, other)]
        is_known = spark.sql(f"SELECT {offsets[0]} <> {offsets[1]}").collect()[0][0]
        guard = ZoneGuard(spark)
        guard._jvm_zone = one
        zone(other)
        differ += is_known
        if is_known:  # to this Java
            with pytest.raises(TimeZoneMismatchError, match=f"{other}.*{one}"):
                guard.check(row_type([Column("t", "timestamp")]))
        zone("UTC")
    if not differ:
        pytest.skip("this Java knows no such zones")


@pytest.mark.parametrize("kind", ["acid", "insert_only"])
def test_a_partition_of_the_hour_that_comes_twice_is_refused(
    acid: AcidSession, spark: SparkSession, zone: Any, kind: Any
) -> None:
    """Its name would be that of the first time. (A partition's value is a wall clock of the session's zone.)"""
    zone("America/New_York")
    properties = {} if kind == "acid" else {"transactional_properties": "insert_only"}
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"at": "timestamp"}, properties=properties)
    first, second, between = 1730611800, 1730615400, 1730613600
    good = [(0, first - 3600), (1, first), (2, second + 3600)]

    def frame(rows: Any) -> Any:
        return spark.createDataFrame(rows, "id int, s bigint").selectExpr("id", "timestamp_seconds(s) at")

    def read() -> Any:
        return sorted(map(tuple, acid.table("d.t").selectExpr("id", "unix_seconds(at)").collect()))

    changes: list[Callable[[], object]] = [
        lambda: acid.insert("d.t", frame([*good, (3, second)])),
        lambda: acid.overwrite("d.t", frame([(3, second)])),
    ]
    if kind == "acid":
        changes += [
            lambda: acid.update("d.t", {"at": f"timestamp_seconds({second})"}),
            lambda: acid.update("d.t", {"at": f"timestamp_seconds({second})"}, "id = 2"),
            lambda: acid.merge("d.t", frame([(3, second)]), "t.id = s.id").whenNotMatchedInsertAll().execute(),
            lambda: acid.merge("d.t", frame([(1, second)]), "t.id = s.id").whenMatchedUpdateAll().execute(),
        ]
    acid.insert("d.t", frame(good))
    for change in changes:
        with pytest.raises(ColumnError, match=r"clocks go back then, for partition key at: 2024-11-03 01:30:00"):
            change()
        assert read() == good
    acid.insert("d.t", frame([(4, None), (5, between - 3600)]))
    assert read() == [*good, (4, None), (5, between - 3600)]


@pytest.mark.parametrize(
    ("name", "value", "later"),
    [
        ("America/New_York", "TIMESTAMP_NTZ'2024-03-10 02:30:00'", "TIMESTAMP_NTZ'2024-03-10 03:00:00'"),
        ("America/Sao_Paulo", "DATE'2018-11-04'", "DATE'2018-11-05'"),
    ],
)
def test_a_time_that_clocks_skip_is_refused(
    acid: AcidSession, spark: SparkSession, zone: Any, name: Any, value: Any, later: Any
) -> None:
    """As a partition's value; the JVM of these tests is in UTC, so that a column cannot have it at all."""
    zone(name)
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"at": "timestamp"})
    acid.insert("d.t", spark.sql(f"SELECT 1 id, {later} at UNION ALL SELECT 2, NULL"))
    before = acid.table("d.t").collect()
    for change in (
        lambda: acid.insert("d.t", spark.sql(f"SELECT 1 id, {value} at")),
        lambda: acid.update("d.t", {"at": value}, "id = 1"),
    ):
        with pytest.raises(ColumnError, match=r"clocks are put forward past this time .*, for d\.t\.at timestamp: 20"):
            change()
    assert acid.table("d.t").collect() == before
    assert spark.sql(f"SELECT {later} = at FROM {{t}} WHERE id = 1", t=acid.table("d.t")).collect()[0][0]


def test_zones_that_differ_in_history_only(acid: AcidSession, spark: SparkSession, zone: Any) -> None:
    """London and UTC agree half of each year."""
    acid.create_table("d.t", {"at": "timestamp"})
    zone("Europe/London")
    with pytest.raises(TimeZoneMismatchError):
        acid.table("d.t")


@pytest.mark.parametrize(
    ("zone", "has_one"),
    [
        *((name, True) for name in ("UTC", "Etc/UTC", "GMT", "Z", "+05:00", "GMT-3", "UTC+01:00", "Etc/GMT+5")),
        *((name, False) for name in ("Europe/Berlin", "America/New_York", "Asia/Tokyo", "No/Where")),
    ],
)
def test_zones_in_which_every_wall_clock_exists(zone: Any, has_one: Any) -> None:
    assert has_one_offset(zone) == has_one


def test_rows_with_timestamps_are_not_rewritten_where_clocks_are_changed(spark: SparkSession, zone: Any) -> None:
    with_timestamp = (Column("id", "int"), Column("seen", "map<string,timestamp>"))
    refuse_zone_with_gaps(spark, with_timestamp)
    zone("Europe/Berlin")
    refuse_zone_with_gaps(spark, with_timestamp[:1])
    with pytest.raises(UnsupportedTableError, match=r"Europe/Berlin.*-Duser\.timezone=UTC"):
        refuse_zone_with_gaps(spark, with_timestamp)


def test_a_driver_that_runs_the_tasks_says_what_these_would(spark: SparkSession) -> None:
    def of_a_task() -> str:
        return str(spark.range(1).selectExpr("java_method('java.time.ZoneId', 'systemDefault')").collect()[0][0])

    jvm: Any = vars(spark).get("_jvm")
    if jvm is None:
        assert jvm_zone(spark) == of_a_task()
        return
    zones = jvm.java.util.TimeZone
    before = zones.getDefault()
    try:
        for name in ("Asia/Kolkata", "UTC"):
            zones.setDefault(zones.getTimeZone(name))
            assert jvm_zone(spark) == of_a_task() == name
    finally:
        zones.setDefault(before)
