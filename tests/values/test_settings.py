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
from tests.values.rows.tables import DUMMY, FORMS, stored_as
from tests.values.sessions.settings import SETTINGS, TOGETHER
from tests.values.sessions.story import told
from tests.values.sessions.under import under, wrong_under

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(len(TOGETHER)))
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
    "lines": {"mapreduce.input.linerecordreader.line.maxlength": "3"},
    "other names": {"mapreduce.output.basename": "bucket"},
    "hidden names": {"mapreduce.output.basename": "_part"},
}
"""Settings by which Spark leaves out files by their names, or longer lines, or gives its own files other names."""


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


def test_a_class_that_leaves_out_files_is_refused(spark: SparkSession, acid: AcidSession) -> None:
    """None that Spark has could stand in its place: they fail where many paths are listed by a job."""
    acid.create_table("d.t", {"id": "int"})
    rows = spark.range(3).selectExpr("int(id) id")
    acid.insert("d.t", rows)
    frame = acid.table("d.t")
    with under(spark, {"mapreduce.input.pathFilter.class": "org.apache.hadoop.hive.ql.io.AcidUtils$2"}):
        for verb in (
            lambda: acid.table("d.t").collect(),
            lambda: acid.delete("d.t", "id = 1"),
            lambda: acid.export_table("d.t", "/x"),
        ):
            with pytest.raises(UnsupportedTableError, match=r"mapreduce\.input\.pathFilter\.class: unset it"):
                verb()
    assert frame.count() == acid.table("d.t").count() == 3


OF_ORC = {
    "orc.force.positional.evolution": "true",
    "orc.force.positional.evolution.level": "3",
    "orc.write.variable.length.blocks": "true",
    "orc.sarg.to.filter": "true",
    "orc.filter.use.selected": "true",
    "orc.filter.plugin": "true",
    "orc.schema.evolution.case.sensitive": "false",
    "orc.tolerate.missing.schema": "false",
    "orc.skip.corrupt.data": "true",
}
"""What a session may have told ORC's own reader and writer, for other tables."""


@pytest.mark.parametrize("setting", OF_ORC)
def test_what_a_session_tells_orc_changes_no_row(spark: SparkSession, acid: AcidSession, setting: str) -> None:
    columns = {"id": "int", "v": "double", "st": "struct<x:int,y:string>", "a": "array<struct<z:int>>"}
    acid.create_table("d.t", {**columns, "n": "int", "text": "string", "price": "decimal(9,2)"})
    rows = (
        "SELECT int(id) id, if(id % 2 = 0, -0.0d, id / 4) v, struct(int(id % 5) x, string(id) y) st, "
        "array(struct(int(id) z)) a, if(id % 3 = 0, null, int(id)) n, if(id % 4 = 1, null, 'same') text, "
        "CAST(id * 1.25 AS decimal(9,2)) price FROM range(20)"
    )
    conditions = (
        "v = 0",
        "st.x = 3 AND id > 5",
        "st.y = '7'",
        "a[0].z >= 15 AND v > 0",
        "id IN (3, 4) OR st IS NULL",
        "n > 12",
        "n < 4 AND id >= 1",
        "n IS NOT NULL AND price > 20",
        "text = 'same' AND id > 16",
    )

    def found() -> list[list[tuple[object, ...]]]:
        return [sorted(map(tuple, acid.table("d.t").where(of).collect()), key=str) for of in conditions]

    with under(spark, {setting: OF_ORC[setting]}):
        acid.insert("d.t", spark.sql(rows))
        with_setting = found()
    assert with_setting == found()
    assert [len(of) for of in with_setting] == [10, 3, 1, 3, 2, 5, 2, 2, 2]
    acid.add_columns("d.t", {"w": "string"})
    with under(spark, {setting: OF_ORC[setting]}):
        assert acid.update("d.t", {"w": "'new'"}, "v = 0 AND st.x = 3") == 2
        assert acid.delete("d.t", "st.y = '7'") == 1
        compact_table(spark, acid, "d.t", "major")
        assert [len(of) for of in found()] == [10, 3, 0, 3, 2, 5, 2, 2, 2]
    assert sorted(row.id for row in acid.table("d.t").where("w = 'new'").collect()) == [8, 18]


@pytest.mark.parametrize("form", [form for form in FORMS if form != "plain"])
def test_days_are_stored_as_they_are(spark: SparkSession, acid: AcidSession, form: str) -> None:
    """Also where the session would write them for readers that count by the older calendar, which lacks ten of them."""
    properties = FORMS[form]
    plain = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    session = plain if form.startswith("plain") else acid
    acid.create_table("d.t", {"d": "date", "t": "timestamp"}, stored_as=stored_as(form), properties=properties)
    days: tuple[str, ...] = ("0001-01-01", "1500-02-28", "1582-10-04", "1582-10-15", "1900-01-01", "9999-12-31")
    if stored_as(form) != "ORC":
        days = (*days, "1582-10-10")
    given = " UNION ALL ".join(f"SELECT DATE'{day}' d, TIMESTAMP'{day} 12:00:00' t" for day in days)
    rebased = {
        f"spark.sql.{of}InWrite": "LEGACY"
        for of in ("parquet.datetimeRebaseMode", "parquet.int96RebaseMode", "avro.datetimeRebaseMode")
    }
    texts = ("string(d) d", "string(t) t")
    right = sorted(map(tuple, spark.sql(given).selectExpr(*texts).collect()))
    with under(spark, rebased):
        session.insert("d.t", spark.sql(given))
        assert sorted(map(tuple, session.table("d.t").selectExpr(*texts).collect())) == right
    assert sorted(map(tuple, session.table("d.t").selectExpr(*texts).collect())) == right


@pytest.mark.parametrize("setting", ["orc.proleptic.gregorian", "orc.proleptic.gregorian.default"])
@pytest.mark.parametrize("form", ["full", "insert only"])
def test_old_days_are_what_they_are_whatever_calendar_orc_is_told(
    spark: SparkSession, acid: AcidSession, form: str, setting: str
) -> None:
    properties = {} if form == "full" else FORMS[form]
    acid.create_table("d.t", {"id": "int", "d": "date", "t": "timestamp"}, properties=properties)
    days = ("0001-01-01", "0200-03-01", "1000-05-05", "1500-02-28", "1582-10-04", "1582-10-15", "2024-02-29")
    given = " UNION ALL ".join(
        f"SELECT {number} id, DATE'{day}' d, TIMESTAMP'{day} 12:00:00' t" for number, day in enumerate(days)
    )
    texts = ("string(d) d", "string(t) t")
    right = sorted(map(tuple, spark.sql(given).selectExpr(*texts).collect()))

    def read() -> list[tuple[object, ...]]:
        return sorted(map(tuple, acid.table("d.t").selectExpr(*texts).collect()))

    acid.insert("d.t", spark.sql(given))
    with under(spark, {setting: "true"}):
        assert read() == right
        acid.insert("d.t", spark.sql(given))
        for day in days:
            where = f"d = DATE'{day}' AND t >= TIMESTAMP'{day} 12:00:00'"
            assert acid.table("d.t", where=where).count() == acid.table("d.t").where(where).count() == 2, day
        if form == "full":
            assert acid.update("d.t", {"id": "id + 10"}, "d <= DATE'1000-05-05'") == 6
            assert acid.delete("d.t", "t < TIMESTAMP'0100-01-01 00:00:00'") == 2
            acid.insert("d.t", spark.sql(given).where("id = 0").unionAll(spark.sql(given).where("id = 0")))
        compact_table(spark, acid, "d.t", "major")
        assert read() == sorted(right * 2)
    assert read() == sorted(right * 2)
