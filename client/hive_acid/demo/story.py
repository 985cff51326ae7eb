"""The walk-through: seven chapters on one lake, each ending in checks that must hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.markup import escape

import hive_acid.spark
from hive_acid.demo import expected
from hive_acid.demo.checks import Checks
from hive_acid.demo.data import AIRLINE_COLUMNS, FLIGHT_COLUMNS, MONTH, PLANE_COLUMNS, Flights2013
from hive_acid.demo.screen import Screen
from hive_acid.demo.second_writer import SecondWriter
from hive_acid.operators import show

FOG = "dep_delay >= 60 AND (origin, month, day, hour) IN (SELECT origin, month, day, hour FROM fog)"
JULY_JFK = f"month = {expected.BUSY_MONTH} AND origin = 'JFK'"
WAIT_S = 120.0

T = TypeVar("T")


class Story:
    """One run of the walk-through."""

    def __init__(
        self, spark: SparkSession, uri: str, warehouse: Path, data: Flights2013, screen: Screen, checks: Checks
    ) -> None:
        self._spark = spark
        self._uri = uri
        self._acid = hive_acid.spark.session(spark, metastore=uri)
        self._connection = self._acid.connection
        self._work = warehouse.parent
        self._july = warehouse / "nyc.db" / "flights" / f"month={expected.BUSY_MONTH}"
        self._data = data
        self._screen = screen
        self._checks = checks
        self._second: SecondWriter | None = None

    def tell(self) -> None:
        """All chapters."""
        self._second = SecondWriter(self._uri, self._work)
        try:
            self._load()
            before = self._acid.table("nyc.flights")  # its snapshot is of now, and stays so
            self._restate()
            self._isolation(before)
            self._crash()
            self._second = SecondWriter(self._uri, self._work)
            self._conflict()
            self._compact(before)
            del before
            self._clean()
            self._small_deltas()
            self._operators_view()
            self._final_content()
        finally:
            self._second.kill()
            self._acid.close()

    # --- chapters ------------------------------------------------------------------------------

    def _load(self) -> None:
        screen, acid, data = self._screen, self._acid, self._data
        screen.chapter(1, "Load: twelve months, twelve transactions")
        with screen.step("Create the tables"):
            acid.create_database("nyc")
            acid.create_table("nyc.flights", FLIGHT_COLUMNS, partitioned_by=MONTH)
            acid.create_table("nyc.planes", PLANE_COLUMNS)
            acid.create_table("nyc.airlines", AIRLINE_COLUMNS)
        with screen.step("Load airlines and planes") as details:
            acid.table("nyc.airlines").insert(self._frame(data.airlines))
            acid.table("nyc.planes").insert(self._frame(data.planes))
            details.append(f"{len(data.airlines)} and {len(data.planes):,} rows")
        for month, flights in data.flights.groupby("month"):
            with screen.step(f"Load flights of 2013-{month:02d}") as details:
                acid.table("nyc.flights").insert(self._frame(flights))
                details.append(f"{len(flights):,} rows")
        self._checks.holds("all flights are loaded", acid.table("nyc.flights").count() == len(data.flights))

    def _restate(self) -> None:
        screen, acid, data = self._screen, self._acid, self._data
        screen.chapter(2, "Restate: UPDATE, DELETE and MERGE")
        self._spark.createDataFrame(expected.foggy_hours(data.weather)).createOrReplaceTempView("fog")
        with screen.step(
            f"UPDATE: departures an hour late in fog lose {expected.FOG_MINUTES} minutes of delay"
        ) as details:
            corrected = acid.table("nyc.flights").update(
                {"dep_delay": f"dep_delay - {expected.FOG_MINUTES}"}, where=FOG
            )
            details.append(f"{corrected:,} rows")
        with screen.step("DELETE: cancelled flights") as details:
            deleted = acid.table("nyc.flights").delete("dep_time IS NULL")
            details.append(f"{deleted:,} rows")
        self._checks.holds("every cancelled flight was deleted", deleted == int(data.flights["dep_time"].isna().sum()))
        with screen.step("MERGE: planes retired, renamed and newly seen") as details:
            update = self._frame(expected.planes_update(data))
            columns = {name: f"s.{name}" for name in PLANE_COLUMNS}
            merged = (
                acid.table("nyc.planes")
                .merge(update, "t.tailnum = s.tailnum", target_alias="t", source_alias="s")
                .whenMatchedDelete(condition="s.action = 'retired'")
                .whenMatchedUpdate(set={"manufacturer": "s.manufacturer"}, condition="s.action = 'renamed'")
                .whenNotMatchedInsert(values=columns)
                .execute()
            )
            details.append(f"{merged.deleted} deleted, {merged.updated} updated, {merged.inserted} inserted")

    def _isolation(self, before: Any) -> None:
        screen, checks = self._screen, self._checks
        screen.chapter(3, "Isolation: an old reader and a new one")
        total = F.sum("dep_delay")
        with screen.step("Read with the snapshot taken before the restatement, and with a new one") as details:
            old = before.agg(F.count("*"), total).collect()[0]
            now = self._acid.table("nyc.flights").agg(F.count("*"), total).collect()[0]
            details.append(f"{old[0]:,} rows before, {now[0]:,} now; delays {old[1]:,} and {now[1]:,} minutes")
        original = self._data.flights
        checks.holds("the old reader sees the old rows", old[0] == len(original), old)
        checks.holds("the old reader sees the old values", old[1] == int(original["dep_delay"].sum()), old)
        checks.holds(
            "the new reader sees the new rows", now[0] == len(original) - int(original["dep_time"].isna().sum())
        )

    def _crash(self) -> None:
        screen, second = self._screen, self._second
        assert second is not None
        with screen.step("Wait for a second process and its Spark"):
            second.answer()
        with screen.step("It writes into July; its files are in place, nothing is committed"):
            row = [2013, 31, 1, 1, 1, 1, 1, 1, "XX", 1, "N0", "JFK", "JFK", 1, 1, 1, 1, None, expected.BUSY_MONTH]
            second.tell(do="insert", row=row)
            txn_id = second.answer()["written"]
        written = [path.name for path in self._july.iterdir()]
        with screen.step("It is killed"):
            second.kill()
        ghosts = self._acid.table("nyc.flights").where("carrier = 'XX'").count()
        self._checks.holds("a killed writer's rows are seen by nobody", ghosts == 0, ghosts)
        with screen.step(f"The metastore gives transaction {txn_id} up, and the Cleaner removes its files") as details:
            self._wait(lambda: len(list(self._july.iterdir())) < len(written), "the killed writer's files to go")
            gone = sorted(set(written) - {path.name for path in self._july.iterdir()})
            details.append(", ".join(gone))
        self._checks.holds("a killed writer's files are removed", len(gone) == 1, gone)

    def _conflict(self) -> None:
        screen, second = self._screen, self._second
        assert second is not None
        screen.chapter(4, "Two writers, one partition: the first to commit wins")
        with screen.step("Wait for another second process"):
            second.answer()
        with screen.step("The second process updates July's flights from JFK, without committing yet"):
            second.tell(do="update", set={"dep_delay": "dep_delay + 1000"}, where=JULY_JFK)
            second.answer()
        with screen.step("This process updates the same rows and commits first") as details:
            correction = {"dep_delay": f"dep_delay + {expected.JFK_CORRECTION}"}
            details.append(f"{self._acid.table('nyc.flights').update(correction, where=JULY_JFK):,} rows")
        with screen.step("The second process commits"):
            second.tell(do="commit")
            answer = second.answer()
        screen.say(f"It is told: [yellow]{answer.get('error')}[/]: {escape(str(answer.get('words')))}")
        self._checks.holds(
            "the later committer got a write conflict", answer.get("error") == "WriteConflictError", answer
        )

    def _compact(self, before: Any) -> None:
        screen = self._screen
        screen.chapter(5, "Compaction: the Initiator finds work, the Worker does it, the Cleaner waits for readers")
        screen.tree("July before", self._july)
        with screen.step("Wait until July is compacted (major: there is no base yet)"):
            self._wait(lambda: self._compacted("ready for cleaning", "major"), "a major compaction")
        screen.tree("July compacted; the old reader still holds its files", self._july)
        count = before.where(f"month = {expected.BUSY_MONTH}").count()
        original = int((self._data.flights["month"] == expected.BUSY_MONTH).sum())
        self._checks.holds("the old reader still reads July as it was", count == original, count)
        state = self._compacted("ready for cleaning", "major")
        self._checks.holds("the Cleaner waits for the old reader", bool(state), show.compactions(self._connection))

    def _clean(self) -> None:
        screen = self._screen
        with screen.step("The old reader ends; wait for the Cleaner"):
            self._wait(lambda: self._compacted("succeeded", "major"), "the Cleaner")
        screen.tree("July cleaned", self._july)
        names = [path.name for path in self._july.iterdir() if path.is_dir()]
        self._checks.holds("only the new base is left", len(names) == 1 and names[0].startswith("base_"), names)

    def _small_deltas(self) -> None:
        screen = self._screen
        for carrier in expected.SMALL_FIXES:
            with screen.step(f"A small UPDATE of July's {carrier} flights") as details:
                where = f"month = {expected.BUSY_MONTH} AND carrier = '{carrier}'"
                fixed = self._acid.table("nyc.flights").update({"arr_delay": "arr_delay - 1"}, where=where)
                details.append(f"{fixed} rows")
        screen.tree("July with small deltas", self._july)
        with screen.step("Wait for a minor compaction (the deltas are small beside the base) and for the Cleaner"):
            self._wait(lambda: self._compacted("succeeded", "minor"), "a minor compaction")
        screen.tree("July after the minor compaction", self._july)

    def _operators_view(self) -> None:
        screen, acid = self._screen, self._acid
        screen.chapter(6, "What an operator sees")
        with acid.transaction():
            acid.table("nyc.airlines").update({"name": "upper(name)"}, where="carrier = 'HA'")
            reader = acid.table("nyc.planes")
            screen.listing(show.transactions(self._connection))
            screen.listing(show.locks(self._connection))
            del reader
        acid.table("nyc.airlines").update({"name": "'Hawaiian Airlines Inc.'"}, where="carrier = 'HA'")
        screen.listing(show.compactions(self._connection))

    def _final_content(self) -> None:
        screen, checks, data = self._screen, self._checks, self._data
        screen.chapter(7, "Every row of every table, against pandas")
        for name, frame in (
            ("flights", expected.flights(data)),
            ("planes", expected.planes(data)),
            ("airlines", data.airlines),
        ):
            with screen.step(f"Compare nyc.{name}") as details:
                rows = checks.same_rows(
                    f"nyc.{name} equals pandas' result", self._acid.table(f"nyc.{name}").toArrow(), frame
                )
                details.append(f"{rows:,} rows equal")

    # --- helpers -------------------------------------------------------------------------------

    def _frame(self, frame: Any) -> Any:
        return self._spark.createDataFrame(frame)

    def _compacted(self, state: str, kind: str) -> bool:
        listing = show.compactions(self._connection, "nyc", "flights")
        on, kinds, states = (listing.columns.index(name) for name in ("on", "type", "state"))
        july = f"nyc.flights.month={expected.BUSY_MONTH}"
        failed = [row for row in listing.rows if row[states] == "failed"]
        if failed:
            raise AssertionError(f"a compaction failed: {failed[0][-1]}")
        return any((row[on], row[kinds], row[states]) == (july, kind, state) for row in listing.rows)

    @staticmethod
    def _wait(condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {WAIT_S:.0f} s for {what} in vain")
            time.sleep(0.25)
