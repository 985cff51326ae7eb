"""A table on S3 or HDFS from its creation to its compaction, in a process of its own: Spark's class path is set at its
start.

``python -m tests.remote.story DATABASE_URL WAREHOUSE`` prints what a reader saw after each step, a line of JSON each.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.filesystem import files
from hive_acid.spark.compact import stripe_concatenation
from hive_acid.spark.compact.file_order import out_of_order
from hive_acid.spark.write.stage import SparkStaging
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from metastore.app import App, ServeOptions
from metastore.config import Config
from tests.crash.steps import ALL_STEPS
from tests.spark.by_spark import MERGED, WRITTEN, limited
from tests.spark.compaction import compact_table
from tests.spark.house import SessionExecutor
from tests.waiting import until

SETTINGS = [
    "hive.compactor.cleaner.run.interval=1s",
    "metastore.compactor.initiator.on=false",
    "hive.compactor.worker.sleep.time=500ms",
]
COMPACTED_WITHIN_S = 180


def main(db_url: str, warehouse: str) -> None:
    spark = SparkSession.builder.master("local[2]").getOrCreate()
    # The worker's own Spark would take half of all the time to start.
    executor = None if ALL_STEPS else SessionExecutor(spark)
    app = App(ServeOptions("127.0.0.1", 0, None, db_url, warehouse, Config.parse(SETTINGS)), executor)
    try:
        uri = app.start()
        with hive_acid.spark.session(spark, uri) as acid:
            Story(spark, acid, uri).run()
    finally:
        spark.stop()
        app.stop()


class Story:
    def __init__(self, spark: SparkSession, acid: hive_acid.spark.AcidSession, uri: str) -> None:
        self.spark = spark
        self.acid = acid
        self.uri = uri

    def run(self) -> None:
        acid = self.acid
        acid.create_database("d")
        acid.create_table("d.t", {"id": "int", "v": "string"}, partitioned_by={"p": "string"})
        acid.insert("d.t", self.frame((1, "a", "x"), (2, "b", "x"), (3, "c", "y z")))
        self.tell("inserted")
        acid.update("d.t", {"v": "upper(v)"}, "id >= 2")
        acid.delete("d.t", "id = 1")
        self.tell("changed")
        merge = acid.merge("d.t", self.frame((2, "m", "x"), (4, "n", "x")), "t.id = s.id")
        with limited(acid, **WRITTEN):  # as it is with many rows
            merge.whenMatchedUpdate(set={"v": "s.v"}).whenNotMatchedInsertAll().execute()
        self.tell("merged")
        try:
            with acid.transaction():
                acid.insert("d.t", self.frame((9, "lost", "x")))
                raise RuntimeError("changed my mind")
        except RuntimeError:
            self.tell("aborted")
        print(json.dumps(["files by bucket", self.compact_by_bucket()]))
        self.tell("compacted by bucket")
        acid.insert("d.t", self.frame((7, "kept", "x")))
        print(json.dumps(["written by Spark", self.compact_what_is_kept()]))
        self.tell("compacted as it is")
        acid.insert("d.t", self.frame((6, "later", "x")))
        before = acid.table("d.t")
        accepted = acid.compact("d.t", "major", ["p=x"])
        self.wait_for(accepted)
        self.tell("compacted")
        print(json.dumps(["older snapshot", self.rows(before)]))
        acid.overwrite("d.t", self.frame((5, "o", "x")))
        self.tell("overwritten")
        with StreamingConnection(self.uri, "d.t", DelimitedWriter(",")) as stream, stream.transaction():
            stream.write(b"8,streamed,x\n")
        self.tell("streamed")
        beside = files.join(files.parent(acid.connection.table("d", "t").location), "raw")
        with tempfile.TemporaryDirectory() as here:
            for number, place in enumerate((beside, here)):
                rows = self.spark.createDataFrame([(10 + number, "loaded")], "id int, v string")
                rows.coalesce(1).write.mode("overwrite").orc(place)
                acid.load_data("d.t", place, partition={"p": "z"})
        self.tell("loaded")
        acid.drop_table("d.t")

    def compact_by_bucket(self) -> int:
        """Without shuffle and sort, here and not by the worker, so that files are small; how many that made."""
        looked: list[str] = []

        def look(paths: Sequence[str]) -> list[str]:
            looked.extend(paths)
            return out_of_order(paths)

        with pytest.MonkeyPatch.context() as patch, limited(self.acid, **MERGED, by_bucket_bytes=-1):
            patch.setattr(stripe_concatenation, "out_of_order", look)
            compact_table(self.spark, self.acid, "d.t", "minor")
        return len(looked)

    def compact_what_is_kept(self) -> int:
        """Files become parts of new ones as they are; how many others that took."""
        written: list[str] = []
        write = SparkStaging.write

        def told(staging: SparkStaging, *args: Any, **kwargs: Any) -> Any:
            written.append(staging.location)
            return write(staging, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patch, limited(self.acid, by_bucket_bytes=-1, kept_stripe_bytes=0):
            patch.setattr(SparkStaging, "write", told)
            compact_table(self.spark, self.acid, "d.t", "minor")
        return len(written)

    def frame(self, *rows: tuple[int, str, str]) -> Any:
        return self.spark.createDataFrame(list(rows), "id int, v string, p string")

    def rows(self, frame: Any) -> list[list[object]]:
        return sorted([row.id, row.v, row.p] for row in frame.collect())

    def tell(self, step: str) -> None:
        table = self.acid.connection.table("d", "t")
        left = [entry.path for entry in files.list_tree(table.location) if entry.path.startswith("_")]
        print(json.dumps([step, self.rows(self.acid.table("d.t")), left]), flush=True)

    def wait_for(self, compactions: list[int]) -> None:
        location = files.join(self.acid.connection.table("d", "t").location, "p=x")

        def names() -> set[str]:
            return {entry.path.partition("/")[0] for entry in files.list_tree(location)}

        until(
            lambda: any(name.startswith("base_") for name in names()),
            COMPACTED_WITHIN_S,
            lambda: f"compactions {compactions} did not end: {sorted(names())}",
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
