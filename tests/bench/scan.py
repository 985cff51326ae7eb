"""A full scan of ``flights`` after its DML, beside the same rows as plain ORC, in one session and run."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import Any

import hive_acid.spark
from hive_acid.demo import data, spark
from hive_acid.demo.data import FLIGHT_COLUMNS, MONTH
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION

ROUNDS = 7


def run(uri: str, work: Path) -> list[str]:
    """The lines to print."""
    session = spark.start("hive-acid bench", work)
    acid = hive_acid.spark.session(session, metastore=uri)
    try:
        flights = data.load().flights
        acid.create_database("bench")
        acid.create_table("bench.flights", FLIGHT_COLUMNS, partitioned_by=MONTH)
        frame = session.createDataFrame(flights)
        acid.table("bench.flights").insert(frame)
        acid.table("bench.flights").update({"dep_delay": "dep_delay - 15"}, where="dep_delay >= 60 AND day % 3 = 0")
        acid.table("bench.flights").delete("dep_time IS NULL")
        table = acid.table("bench.flights")
        plain_path = str(work / "plain")
        table.write.option("compression", DEFAULT_COMPRESSION).partitionBy("month").orc(plain_path)
        plain = session.read.orc(plain_path)
        times: dict[str, list[float]] = {"acid": [], "plain": []}
        for _ in range(ROUNDS):
            times["acid"].append(_scan(table))
            times["plain"].append(_scan(plain))
        acid_s, plain_s = (statistics.median(times[name][2:]) for name in ("acid", "plain"))
        planning_s = _seconds(lambda: acid.table("bench.flights"))
        return [
            f"Full scan of flights after UPDATE and DELETE, median of {ROUNDS - 2}: ACID {acid_s:.2f} s, plain ORC "
            f"{plain_s:.2f} s, ratio {acid_s / plain_s:.2f}; taking a snapshot {planning_s:.2f} s"
        ]
    finally:
        acid.close()
        session.stop()


def _scan(frame: Any) -> float:
    """Every column of every row is read, nothing is kept."""
    return _seconds(lambda: frame.write.format("noop").mode("overwrite").save())


def _seconds(work: Any) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started
