"""``python -m tests.values.sessions.zones URI ZONE SEED CONDITIONS``: times of a zone, by a Spark that is in it.

Clocks of most zones had odd offsets before there were time zones, and some change them twice a year: instants share a
wall clock, and wall clocks are none. Conditions on times and days, as columns, partition keys and keys of a MERGE, are
compared with plain Spark on a copy in Parquet. What disagrees is printed, a line each.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from tests.jvm import IN_UTC
from tests.spark.compaction import compact_table
from tests.spark.conftest import started
from tests.values.rows.hostile import MICROS_PER_DAY, day, is_storable, micros

ZONES = (
    "America/Caracas", "Asia/Kolkata", "Europe/Amsterdam", "Australia/Lord_Howe", "Africa/Monrovia", "Pacific/Apia",
    "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Asia/Manila", "Asia/Tehran",
    "Pacific/Kwajalein", "Africa/Casablanca", "Antarctica/Troll", "Asia/Kathmandu", "Europe/Dublin", "Etc/GMT+12",
    "Europe/London", "Asia/Shanghai", "America/Los_Angeles", "Africa/Cairo", "Pacific/Kiritimati",
)  # fmt: skip

TABLES: Mapping[str, tuple[str, ...]] = {
    "one": (), "many": (), "by_time": ("t",), "by_day": ("d",), "as_text": (), "as_json": (),
}  # fmt: skip
"""The partition keys of tables, by their kind."""

_WORDS = {"as_text": "TEXTFILE", "as_json": "JSONFILE"}
"""Insert-only tables whose files have times in words."""

_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_WALLS = (
    "0001-01-01 00:00:00", "0001-01-02 12:00:00.000001", "0099-12-31 23:59:59.999999", "1500-02-28 01:02:03",
    "1582-10-04 23:59:59", "1582-10-15 00:00:00", "1599-12-31 12:00:00", "1844-12-30 12:00:00", "1847-12-01 00:00:30",
    "1883-11-18 12:00:00.5", "1899-12-31 23:59:59.999999", "1900-01-01 00:00:00", "1937-06-30 23:59:45",
    "1940-05-16 00:30:00", "1969-12-30 12:00:00.25", "1970-01-01 00:00:00", "1972-01-07 00:10:00",
    "2000-02-29 23:59:59.999999", "2038-01-19 03:14:08", "9999-12-30 00:00:00", "9999-12-31 00:00:00.000001",
)  # fmt: skip


def edges(zone: str) -> Iterator[int]:
    """Microseconds since 1970 of moments at which clocks of the zone are changed, and beside them."""
    of, at, step = ZoneInfo(zone), datetime(1800, 1, 1), timedelta(days=5)
    found: list[datetime] = []
    while at.year < 2030:
        if _offset(of, at) != _offset(of, at + step):
            low, high = at, at + step
            while high - low > timedelta(seconds=1):
                middle = low + (high - low) / 2
                low, high = (middle, high) if _offset(of, middle) == _offset(of, at) else (low, middle)
            found.append(high.replace(microsecond=0))
        at += step
    for change in (*found[:6], *found[-3:]):
        since = (change - datetime(1970, 1, 1)) // timedelta(microseconds=1)
        yield from (since + by for by in (-_HOUR, -_SECOND, -1, 0, 1, 1800 * _SECOND, _HOUR))


def _offset(zone: ZoneInfo, utc: datetime) -> timedelta:
    return zone.utcoffset(utc.replace(tzinfo=ZoneInfo("UTC")).astimezone(zone)) or timedelta()


def is_shown_again(zone: str, moment: int) -> bool:
    """Whether clocks of the zone show a time before 1900 for the second time, once they have been put back."""
    of, at = ZoneInfo(zone), datetime(1970, 1, 1) + timedelta(microseconds=moment)
    if at.year >= 1900 or at.year < 2:
        return False
    back = _offset(of, at) - _offset(of, at + timedelta(days=1))
    return back > timedelta() and _offset(of, at + back) == _offset(of, at) - back


def is_kept(spark: SparkSession, moment: int) -> bool:
    """Whether Spark's way to Java's older calendar and back, in the zone of its JVM, leads a time before 1900 back."""
    jvm: Any = spark._jvm
    calendars = jvm.org.apache.spark.sql.catalyst.util.RebaseDateTime
    if moment >= -2_208_988_800_000_000 or not is_storable("timestamp", moment):
        return True
    return bool(calendars.rebaseJulianToGregorianMicros(calendars.rebaseGregorianToJulianMicros(moment)) == moment)


class _Zone:
    """The tables of one zone: rows with a time and its day, by number."""

    def __init__(self, spark: SparkSession, acid: AcidSession, zone: str, directory: Path) -> None:
        self.spark, self.acid, self.zone = spark, acid, zone
        self.compared = 0
        self.found: list[str] = []
        walls = (wall for wall in map(micros, _WALLS))
        given = sorted({*edges(zone), *walls})
        again = [of for of in given if is_shown_again(zone, of) or not is_kept(spark, of)]
        moments = [
            of for of in given if of not in again and is_storable("timestamp", of) and _is_far_from_lost_days(of)
        ]
        self.again = again
        self.moments = dict(enumerate(moments, 1))
        rows = ", ".join(f"({number}, {moment}L)" for number, moment in self.moments.items())
        self.frame = spark.sql(
            f"SELECT id, cast(0 AS int) AS hit, timestamp_micros(m) AS t, cast(timestamp_micros(m) AS date) AS d "
            f"FROM VALUES {rows} AS v(id, m)"
        )
        path = str(directory / "copy")
        self.frame.write.parquet(path)
        self.copy = spark.read.parquet(path)

    def tables(self, kinds: Collection[str]) -> Mapping[str, set[int]]:
        """Tables by name, and the rows that they have; in partitions are no times that clocks show twice."""
        of_text = "try_cast(cast(t AS string) AS timestamp) <=> t"
        plain = {row[0] for row in self.copy.where(of_text).select("id").collect()}
        every = set(self.moments)
        name = _name(self.zone)
        columns = {"id": "int", "hit": "int", "t": "timestamp", "d": "date"}
        made: dict[str, set[int]] = {}
        for what in kinds:
            keys = TABLES[what]
            full = f"d.{name}_{what}"
            self.acid.create_table(
                full,
                {of: kind for of, kind in columns.items() if of not in keys},
                partitioned_by={of: columns[of] for of in keys},
                stored_as=_WORDS.get(what, "ORC"),
                properties={"transactional_properties": "insert_only"} if what in _WORDS else {},
            )
            ids = plain if keys == ("t",) or what in _WORDS else every
            rows = self.frame.where(F.col("id").isin(sorted(ids)))
            self.acid.insert(full, rows.repartitionByRange(40, "id") if what == "many" else rows)
            made[full] = ids
        for moment in self.again:
            try:
                values = f"0 AS id, 0 AS hit, timestamp_micros({moment}L) AS t, date'2000-01-01' AS d"
                self.acid.insert(next(iter(made)), self.spark.sql(f"SELECT {values}"))
                self.tell("again", f"a time of {moment}, which no file holds", "not refused")
            except ColumnError:
                pass
        for what in {"by_time", *_WORDS} & {*kinds}:
            for number in sorted(every - plain)[:3]:
                try:
                    self.acid.insert(f"d.{name}_{what}", self.frame.where(f"id = {number}"))
                    self.tell(what, f"a time that clocks show twice: {self.moments[number]}", "not refused")
                except ColumnError:
                    pass
        return made

    def tell(self, table: str, what: str, words: str) -> None:
        self.found.append(f"{self.zone}: {table}: {what}: {words}")

    def judge(self, table: str, what: str, ought: set[int], got: set[int]) -> None:
        self.compared += len(self.moments)
        if ought != got:
            words = ", ".join(
                f"{said} {[(of, self.moments.get(of)) for of in sorted(ids)[:3]]}"
                for said, ids in (("missing", ought - got), ("too many", got - ought))
                if ids
            )
            self.tell(table, what, words)

    def exact(self, table: str, ids: set[int], what: str) -> None:
        """All rows are there with the times and days that they had."""
        rows = self.acid.table(table).selectExpr("id", "unix_micros(t)", "unix_date(d)").toArrow()
        got = {one: (moment, day_) for one, moment, day_ in zip(*(of.to_pylist() for of in rows.columns), strict=True)}
        known = self.copy.selectExpr("id", "unix_micros(t)", "unix_date(d)").toArrow()
        right = {one: (moment, of) for one, moment, of in zip(*(of.to_pylist() for of in known.columns), strict=True)}
        wrong = [(of, right[of], got.get(of)) for of in sorted(ids) if got.get(of) != right[of]]
        self.compared += len(ids)
        if wrong or got.keys() != ids:
            self.tell(table, what, f"rows are {wrong[:3]}, and {len(got)} of {len(ids)} are there")

    def conditions(self, chance: random.Random, count: int) -> list[str]:
        """Conditions in words of the zone."""
        texts = {
            row[0]: (row[1], row[2])
            for row in self.copy.selectExpr("id", "cast(t AS string)", "cast(d AS string)").collect()
        }

        def one() -> str:
            of = chance.choice(list(self.moments))
            moment, (time, date) = self.moments[of], texts[of]
            operator, beside = chance.choice(_OPERATORS), moment + chance.choice((-1, 0, 0, 0, 1))
            times = (f"timestamp'{time}'", f"timestamp_micros({beside}L)", f"'{time}'", f"timestamp_ntz'{time}'",
                     f"CAST('{time}' AS timestamp)", f"date'{date}'", f"to_timestamp('{time}')")  # fmt: skip
            days = (f"date'{date}'", f"'{date}'", f"timestamp'{time}'", f"CAST('{time}' AS date)")
            other, (later, _) = chance.choice(list(texts.items()))
            return chance.choice(
                (
                    f"t {operator} {chance.choice(times)}",
                    f"t {operator} {chance.choice(times)}",
                    f"t {operator} {chance.choice(times)}",
                    f"d {operator} {chance.choice(days)}",
                    f"d {operator} {chance.choice(days)}",
                    f"t IN ({chance.choice(times[:3])}, timestamp_micros({self.moments[other]}L))",
                    f"t BETWEEN timestamp'{time}' AND timestamp'{later}'",
                    f"d IN (date'{date}', date'1500-01-01')",
                    f"CAST(t AS date) = date'{date}'",
                    f"CAST(t AS string) {operator} '{time}'",
                    f"CAST(t AS timestamp_ntz) {operator} timestamp_ntz'{time}'",
                    f"date_trunc('day', t) = timestamp'{date} 00:00:00'",
                    f"hour(t) = {chance.randrange(24)}",
                    f"NOT (t {operator} timestamp'{time}') OR d = date'{date}'",
                )
            )

        return [one() for _ in range(count)]

    def asked(self, table: str, ids: set[int], conditions: list[str]) -> None:
        """A SELECT by each, and a column of each."""
        right = _true_ids(self.copy, conditions)
        columns = _true_ids(self.acid.table(table), conditions)
        for condition in conditions:
            if condition in right:
                self.judge(table, f"column {condition}", right[condition] & ids, columns.get(condition, set()))
        known = [condition for condition in conditions if condition in right]
        parts = [
            self.acid.table(table, where=condition).select(F.lit(at).alias("at"), "id")
            for at, condition in enumerate(known)
        ]
        rows = reduce(DataFrame.unionAll, parts).collect() if parts else []
        for at, condition in enumerate(known):
            self.judge(table, f"where {condition}", right[condition] & ids, {row.id for row in rows if row.at == at})

    def specified(self, chance: random.Random, table: str, ids: set[int], key: str) -> None:
        """Rows that go to partitions by what PARTITION says of a time or a day, and leave them again."""
        known = self.copy.selectExpr("id", "cast(t AS string) AS time", "cast(d AS string) AS day").collect()
        # A day of year 0, as west of Greenwich the first of year 1 begins, is none that PARTITION can say.
        for row in chance.sample([row for row in known if row.id in ids and row.day >= "0001"], 4):
            moment = self.moments[row.id]
            text, other = (row.time, f"date'{row.day}'") if key == "t" else (row.day, f"timestamp_micros({moment}L)")
            kind = "timestamp" if key == "t" else "date"
            value = chance.choice((f"{kind}'{text}'", f"'{text}'", f"CAST('{text}' AS {kind})"))
            verb = chance.choice(("INTO", "OVERWRITE TABLE"))
            there = f"{key} = {kind}'{text}'"
            statement = f"INSERT {verb} {table} PARTITION ({key} = {value})"
            before = self.acid.table(table).where(there).count()
            self.acid.sql(f"{statement} SELECT {-row.id}, 0, {other}")
            frame = self.acid.table(table).where(f"{there} AND id = {-row.id}")
            found = [tuple(one) for one in frame.selectExpr("unix_micros(t)", "unix_date(d)").collect()]
            ought = (moment, self.copy.where(f"id = {row.id}").selectExpr("unix_date(d)").collect()[0][0])
            if found != [ought]:
                self.tell(table, statement, f"{found}, not {ought}")
            left = self.acid.table(table).where(there).count()
            if left != (1 + before if verb == "INTO" else 1):
                self.tell(table, statement, f"{left} rows after {before}")
            if verb != "INTO":
                rows = self.frame.where(F.col("id").isin(sorted(ids)) & (F.col(key).cast("string") == text))
                self.acid.overwrite(table, rows)
            elif (gone := self.acid.delete(table, f"{there} AND id = {-row.id}")) != 1:
                self.tell(table, f"DELETE {there}", f"{gone} rows")
            self.compared += 3
        self.exact(table, ids, "after PARTITION")

    def tidied(self, table: str, ids: set[int], conditions: list[str]) -> None:
        """Compacted, counted, and asked again."""
        compact_table(self.spark, self.acid, table, "minor")
        self.exact(table, ids, "after a minor compaction")
        compact_table(self.spark, self.acid, table, "major")
        self.exact(table, ids, "after a major compaction")
        keys = TABLES[table.removeprefix(f"d.{_name(self.zone)}_")]
        self.acid.analyze(table, columns=[of for of in ("t", "d") if of not in keys])
        self.asked(table, ids, conditions)

    def changed(self, table: str, ids: set[int], conditions: list[str]) -> None:
        """UPDATE by each, and a MERGE by times, by days, and by wall clocks."""
        right = _true_ids(self.copy, conditions)
        for number, condition in enumerate(conditions, 1):
            if condition not in right:
                continue
            self.acid.update(table, {"hit": str(number)}, condition)
            got = {row[0] for row in self.acid.table(table).where(f"hit = {number}").select("id").collect()}
            self.judge(table, f"update {condition}", right[condition] & ids, got)
        self.exact(table, ids, "after updates")
        keys = (("t.t = s.v", "t"), ("t.d = s.v", "d"), ("t.t = s.v", "cast(t AS timestamp_ntz)"))
        for number, (on, value) in enumerate(keys, 1000):
            source = self.copy.where("id % 3 = 0").selectExpr(f"{value} AS v").distinct()
            matched = self.copy.alias("t").join(source.alias("s"), F.expr(on)).groupBy("t.id").count().collect()
            twice = {row[0] for row in matched if row[1] > 1}
            if twice & ids:
                continue
            self.acid.merge(table, source, on).whenMatchedUpdate(set={"hit": str(number)}).execute()
            got = {row[0] for row in self.acid.table(table).where(f"hit = {number}").select("id").collect()}
            self.judge(table, f"merge on {on}, {value}", {row[0] for row in matched} & ids, got)
        self.exact(table, ids, "after merges")


def _name(zone: str) -> str:
    return "z" + "".join(sign if sign.isalnum() else "_" for sign in zone.lower())


def _is_far_from_lost_days(moment: int) -> bool:
    """Whether neither the day nor its neighbours are such as no ORC file holds, in whatever zone."""
    of = moment // MICROS_PER_DAY
    return all(is_storable("date", of + by) for by in (-1, 0, 1)) or of in (day("1582-10-03"), day("1582-10-16"))


def _true_ids(frame: DataFrame, conditions: list[str]) -> dict[str, set[int]]:
    """The ids for which each condition is true; those that Spark refuses are left out."""
    try:
        table = frame.selectExpr("id", *(f"({of}) AS is_{at}" for at, of in enumerate(conditions))).toArrow()
    except Exception:
        if len(conditions) == 1:
            return {}
        half = len(conditions) // 2
        return _true_ids(frame, conditions[:half]) | _true_ids(frame, conditions[half:])
    ids, *columns = (of.to_pylist() for of in table.columns)
    return {
        condition: {of for of, is_true in zip(ids, column, strict=True) if is_true}
        for condition, column in zip(conditions, columns, strict=True)
    }


def walked(uri: str, zone: str, seed: int, count: int, kinds: Collection[str]) -> tuple[int, list[str]]:
    """How much has been compared, and what disagrees, with a Spark that is started in a zone."""
    spark = started(IN_UTC.replace("-Duser.timezone=UTC", f"-Duser.timezone={zone}"), zone)
    chance = random.Random(f"{seed} {zone}")
    with tempfile.TemporaryDirectory() as directory, hive_acid.spark.session(spark, uri) as acid:
        acid.create_database("d", if_not_exists=True)
        of = _Zone(spark, acid, zone, Path(directory))
        for table, ids in of.tables(kinds).items():
            of.exact(table, ids, "as inserted")
            of.asked(table, ids, of.conditions(chance, count))
            if not table.endswith(tuple(_WORDS)):
                of.changed(table, ids, of.conditions(chance, 2 + count // 10))
            if keys := TABLES[table.removeprefix(f"d.{_name(zone)}_")]:
                of.specified(chance, table, ids, keys[0])
            of.tidied(table, ids, of.conditions(chance, 2 + count // 4))
    spark.stop()
    return of.compared, of.found


def main() -> None:
    """Walk one zone; print each finding, and at the end how much was compared."""
    uri, zone, seed, count, *kinds = sys.argv[1:]
    compared, found = walked(uri, zone, int(seed), int(count), kinds or [*TABLES])
    for line in found:
        print(f"FINDING {line}", flush=True)
    print(f"{zone}: {compared:,} comparisons, {len(found)} findings", flush=True)


if __name__ == "__main__":
    main()
