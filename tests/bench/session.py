"""A session of Spark and of ours, with a server of their own, for a benchmark that needs no more."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.demo import spark as sparks
from hive_acid.spark import AcidSession
from tests.bench.calls.servers import Machine


class Bench(NamedTuple):
    """What a benchmark works with; `work` is a directory that goes with it."""

    acid: AcidSession
    spark: SparkSession
    work: Path


@contextmanager
def bench() -> Iterator[Bench]:
    """Within the block there is an empty database, ``bench``."""
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    try:
        with Machine(work) as machine, machine.server() as server:
            session = sparks.start("hive-acid bench", work)
            with hive_acid.spark.session(session, metastore=server.uri) as acid:
                acid.create_database("bench")
                yield Bench(acid, session, work)
            session.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)
