"""The same story under all settings: the table has what it has without any, and each setting is as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

import hive_acid.spark
from hive_acid.errors import TimeZoneMismatchError, UnsupportedTableError
from tests.spark.checker import location_of
from tests.values.settings import SETTINGS, TOGETHER
from tests.values.story import told

pytestmark = pytest.mark.spark


KNOWN = {"where c = 'ab'", "where x = 0"}
"""What is not right yet under any settings."""


@contextmanager
def under(spark, settings: Mapping[str, str]) -> Iterator[None]:
    """Within the block the session has the settings, and at its end has to have them still."""
    own = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
        assert {key: spark.conf.get(key) for key in settings} == dict(settings)
    finally:
        for key, value in own.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(len(TOGETHER)))
def test_story(spark, acid, number):
    """Settings that do not exclude each other together, on two tables; ``make walk-values`` takes each by itself."""
    settings = {key: value for name in TOGETHER[number] for key, value in SETTINGS[name].items()}
    with under(spark, settings), hive_acid.spark.session(spark, acid.connection) as session:
        for name, has_all in (("d.all", True), ("d.flat", False)):
            verbs = told(spark, session, name, keys=has_all, nested=has_all)
            wrong = [verb for verb, is_right in verbs if not is_right and verb not in KNOWN]
            assert not wrong, (TOGETHER[number], name, wrong)


def test_another_zone_is_refused_in_words(spark, acid):
    with under(spark, {"spark.sql.session.timeZone": "Europe/Berlin"}):
        story = told(spark, acid, "d.t", keys=False, nested=False)
        with pytest.raises(TimeZoneMismatchError, match=r"Europe/Berlin.*spark\.sql\.session\.timeZone"):
            list(story)


def test_names_that_are_taken_for_patterns_are_refused_in_words(spark, acid):
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


@pytest.mark.parametrize("kind", ["full", "insert_only"])
def test_no_file_is_left_out(spark, acid, kind):
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
            with pytest.raises(Exception, match=r"FAILED_READ_FILE|ORC"):
                acid.table(name).where("id >= 0").unionAll(frame).collect()


def test_together_are_all_settings():
    assert sorted(name for names in TOGETHER for name in names) == sorted({*SETTINGS} - {"another zone"})
