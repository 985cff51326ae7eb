"""The same story under all settings: the table has what it has without any, and each setting is as it was."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import TimeZoneMismatchError, UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.checker import location_of
from tests.values.settings import SETTINGS, TOGETHER
from tests.values.story import told
from tests.values.tables import DUMMY
from tests.values.under import under, wrong_under

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(len(TOGETHER)))
@pytest.mark.sampled
def test_story(spark: SparkSession, acid: AcidSession, number: int) -> None:
    """Settings that do not exclude each other together; ``make walk-values ARGS=--settings`` takes each alone."""
    settings = {key: value for name in TOGETHER[number] for key, value in SETTINGS[name].items()}
    assert not wrong_under(spark, acid.connection, settings, "d.t"), TOGETHER[number]


def test_another_zone_is_refused_in_words(spark: SparkSession, acid: AcidSession) -> None:
    with under(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        story = told(spark, acid, "d.t", keys=False, nested=False)
        with pytest.raises(TimeZoneMismatchError, match=r"Europe/Berlin.*spark\.sql\.session\.timeZone"):
            list(story)


def test_names_that_are_taken_for_patterns_are_refused_in_words(spark: SparkSession, acid: AcidSession) -> None:
    acid.create_table("d.plain", {"id": "int"})
    acid.create_table("d.odd", {"id": "int", "a b": "int"})
    row = spark.sql("SELECT 1 AS id")
    odd = row.withColumn("a b", row.id)
    acid.insert("d.odd", odd)
    with under(spark, {"spark.sql.parser.quotedRegexColumnNames": "true"}):
        assert acid.insert("d.plain", row) == acid.table("d.plain").count() == acid.delete("d.plain", "id = 1") == 1
        for verb in (lambda: acid.table("d.odd"), lambda: acid.insert("d.odd", odd), lambda: acid.delete("d.odd")):
            with pytest.raises(UnsupportedTableError, match=r"d\.odd.*'a b'.*quotedRegexColumnNames to false"):
                verb()


@pytest.mark.parametrize("setting", ["charVarcharAsString", "noCharPaddingInPredicate"])
def test_char_with_blanks_is_refused_in_words(spark: SparkSession, acid: AcidSession, setting: str) -> None:
    acid.create_table("d.t", {"id": "int", "c": "char(4)"})
    acid.create_table("d.keyed", {"id": "int"}, partitioned_by={"c": "char(4)"})
    row = spark.sql("SELECT 1 AS id, 'ab' AS c")
    assert acid.insert("d.t", row) == acid.insert("d.keyed", row) == 1
    plain = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    plain.create_table("d.plain", {"id": "int", "c": "char(4)"}, properties={"transactional": "false"})
    with under(spark, {f"spark.sql.legacy.{setting}": "true"}):
        for verb in (lambda: plain.table("d.plain"), lambda: plain.insert("d.plain", row)):
            with pytest.raises(UnsupportedTableError, match=rf"column 'c'.*{setting} to false"):
                verb()
        for name in ("d.t", "d.keyed"):
            for verb in (lambda of=name: acid.table(of), lambda of=name: acid.delete(of, "c = 'ab'")):
                with pytest.raises(UnsupportedTableError, match=rf"column 'c'.*{setting} to false"):
                    verb()
    assert acid.delete("d.t", "c = 'ab'") == 1


@pytest.mark.parametrize("kind", ["full", "insert_only"])
def test_no_file_is_left_out(spark: SparkSession, acid: AcidSession, kind: str) -> None:
    """Rows of files that are gone or broken are not just missing, also where the session says so."""
    properties = {"transactional_properties": "insert_only"} if kind == "insert_only" else {}
    with under(spark, SETTINGS["files may be missing"]):
        for number, harm in enumerate((lambda file: file.unlink(), lambda file: file.write_bytes(b"no ORC" * 100))):
            name = f"d.t{number}"
            acid.create_table(name, {"id": "int"}, properties=properties)
            acid.insert(name, spark.range(0, 3, 1, 1).selectExpr("cast(id AS int) AS id"))
            frame = acid.table(name).where("id >= 0")
            (file,) = (
                path for path in location_of(acid, name).rglob("*") if path.is_file() and path.name[0] not in "._"
            )
            assert len(frame.collect()) == 3
            harm(file)
            with pytest.raises(Exception, match=r"is gone: the snapshot|FAILED_READ_FILE|ORC"):
                acid.table(name).where("id >= 0").unionAll(frame).collect()


def test_together_are_all_settings() -> None:
    assert sorted(name for names in TOGETHER for name in names) == sorted({*SETTINGS} - {"another zone"})
