"""The same story under all settings: the table has what it has without any, and each setting is as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import TimeZoneMismatchError, UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.checker import location_of
from tests.spark.compaction import compact_table
from tests.values.settings import SETTINGS, TOGETHER
from tests.values.story import told
from tests.values.tables import DUMMY, FORMS, stored_as
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


HIDES = {
    "names": {"spark.sql.files.ignoredPathSegmentRegex": "^[._]|bucket|part|delta|0"},
    "paths": {"mapreduce.input.pathFilter.class": "org.apache.hadoop.hive.ql.io.AcidUtils$2"},
    "lines": {"mapreduce.input.linerecordreader.line.maxlength": "3"},
}
"""Settings by which Spark leaves out files by their names, those that are called no ``delta_``, or longer lines."""


@pytest.mark.parametrize("hides", HIDES)
def test_no_filter_of_the_session_hides_rows(
    spark: SparkSession, acid: AcidSession, tmp_path: Path, hides: str
) -> None:
    plain = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    rows = spark.range(0, 9, 1, 2).selectExpr("cast(id AS int) AS id", "concat('row ', id) AS s")
    for number, (form, properties) in enumerate({"full": {}, **FORMS}.items()):
        session, name = plain if form.startswith("plain") else acid, f"d.t{number}"
        acid.create_table(
            name,
            {"id": "int", "s": "string"},
            stored_as=stored_as(form),
            properties=properties,
        )
        session.insert(name, rows)
        with under(spark, HIDES[hides]):
            session.insert(name, rows)
            assert session.table(name).count() == 18, form
            assert len(session.table(name).where("id >= 0").collect()) == 18, form
            if form == "full":
                assert session.update(name, {"s": "'new'"}, "id = 3") == session.delete(name, "id = 4") == 2
                merging = session.merge(name, rows, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
                assert tuple(merging.execute()) == (1, 16, 0)
            if not form.startswith("plain") and not form.endswith("json"):
                compact_table(spark, acid, name, "minor")
                compact_table(spark, acid, name, "major")
            if form in ("full", "insert only"):
                acid.export_table(name, str(tmp_path / name))
                acid.import_table(str(tmp_path / name), f"{name}_back")
                assert acid.table(f"{name}_back").count() == session.table(name).count(), form
        assert len(session.table(name).where("id >= 0").collect()) == (17 if form == "full" else 18), form


def test_what_is_counted_by_groups_has_their_keys(spark: SparkSession, acid: AcidSession) -> None:
    acid.create_table("d.keyed", {"id": "int"}, partitioned_by={"p": "string"})
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.keyed", spark.sql("SELECT * FROM VALUES (1, 'x'), (2, 'y'), (3, 'y') AS v(id, p)"))
    acid.insert("d.t", spark.range(0, 9, 1, 3).selectExpr("cast(id AS int) AS id"))
    with under(spark, {"spark.sql.retainGroupColumns": "false"}):
        acid.analyze("d.keyed", columns=["id"])
        compact_table(spark, acid, "d.t", "rebalance", buckets=3)
    partitions = acid.connection.call("get_partitions", "d", "keyed", -1)
    assert sorted(of.parameters["numRows"] for of in partitions) == ["1", "2"]
    assert acid.table("d.t").count() == 9


def test_together_are_all_settings() -> None:
    assert sorted(name for names in TOGETHER for name in names) == sorted({*SETTINGS} - {"another zone"})
