"""Writers, readers, compactions and the Cleaner at the same time, through the real service: nothing lost or doubled."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import WriteConflictError
from hive_acid.operators import show
from hive_acid.spark import AcidSession
from hive_acid.transactions.locks import overwrite_component
from tests.waiting import until

WRITERS, ROUNDS, ATTEMPTS = 3, 5, 40
BUSY = {
    "hive.compactor.check.interval": "500ms",
    "hive.compactor.worker.sleep.time": "200ms",
    "hive.compactor.cleaner.run.interval": "200ms",
    "hive.compactor.delta.num.threshold": "3",
    "hive.compactor.abortedtxn.threshold": "0",
}


@pytest.mark.slow
def test_counters_and_tokens(spark: SparkSession, metastore: Any) -> None:
    with hive_acid.spark.session(spark, metastore(**BUSY)) as acid:
        acid.create_database("d")
        acid.create_table("d.counter", {"id": "int", "n": "int"}, partitioned_by={"p": "int"})
        acid.create_table("d.token", {"writer": "int", "round": "int"})
        acid.insert("d.counter", spark.sql("SELECT id, 0 AS n, p FROM VALUES (0), (1) a(id), VALUES (0), (1) b(p)"))
        ended = threading.Event()

        def write(writer: Any) -> None:
            for number in range(ROUNDS):
                for _ in range(ATTEMPTS):
                    try:
                        with acid.transaction():
                            acid.update("d.counter", {"n": "n + 1"}, where=f"p = {number % 2}")
                            acid.insert("d.token", spark.sql(f"SELECT {writer} AS writer, {number} AS round"))
                    except WriteConflictError:
                        continue
                    break
                else:
                    raise AssertionError(f"writer {writer} never got through")

        def read() -> Any:
            last: dict[Any, Any] = {}
            reads = 0
            while not ended.wait(0.2):  # without a rest the reader took as much of the machine as all writers
                with acid.snapshot():
                    counters = [(row.p, row.id, row.n) for row in acid.table("d.counter").collect()]
                    tokens = acid.table("d.token").count()
                    again = sorted((row.p, row.id, row.n) for row in acid.table("d.counter").collect())
                assert sorted(counters) == again
                assert len(counters) == 4
                # One snapshot of both tables: each token came with one step of each counter of its partition.
                assert sum(n for _, row_id, n in counters if row_id == 0) == tokens
                assert all(n >= last.get((p, row_id), 0) for p, row_id, n in counters)
                last = {(p, row_id): n for p, row_id, n in counters}
                reads += 1
            return reads

        with ThreadPoolExecutor(WRITERS + 1) as pool:
            reader = pool.submit(read)
            writers = [pool.submit(write, writer) for writer in range(WRITERS)]
            try:
                for one in writers:
                    one.result()
            finally:
                ended.set()
            assert reader.result() > 0
        steps = {p: WRITERS * len([number for number in range(ROUNDS) if number % 2 == p]) for p in (0, 1)}
        found = {(row.p, row.id): row.n for row in acid.table("d.counter").collect()}
        assert found == {(p, row_id): steps[p] for p in (0, 1) for row_id in (0, 1)}
        tokens = sorted((row.writer, row.round) for row in acid.table("d.token").collect())
        assert tokens == [(writer, number) for writer in range(WRITERS) for number in range(ROUNDS)]
        # The writers may be through before the first compaction, which begins by starting a Spark of its own.
        merged = {"succeeded", "ready for cleaning"}
        until(lambda: states_of_compactions(acid) & merged, 120, lambda: states_of_compactions(acid))
        assert "failed" not in states_of_compactions(acid)
        assert {(row.p, row.id): row.n for row in acid.table("d.counter").collect()} == found
        assert sorted((row.writer, row.round) for row in acid.table("d.token").collect()) == tokens


def states_of_compactions(acid: AcidSession) -> Any:
    listing = show.compactions(acid.connection)
    return {row[listing.columns.index("state")] for row in listing.rows}


def test_an_update_that_waited_for_a_change_begins_anew(acid: AcidSession, spark: SparkSession) -> None:
    """It has read nothing yet: so a rebalance, or an overwrite, makes it wait and not fail."""
    acid.create_table("d.t", {"id": "int", "n": "int"})
    acid.insert("d.t", spark.sql("SELECT id, 0 AS n FROM VALUES (1), (2) AS v(id)"))
    overwriter = acid.connection.begin()
    overwriter.lock(overwrite_component("d", "t", beside_readers=True))
    with ThreadPoolExecutor() as pool:
        updating = pool.submit(acid.update, "d.t", {"n": "n + 1"})
        until(lambda: any("waiting" in str(row).lower() for row in show.locks(acid.connection).rows))
        overwriter.commit()
        updating.result(60)
    assert sorted(row.n for row in acid.table("d.t").collect()) == [1, 1]
