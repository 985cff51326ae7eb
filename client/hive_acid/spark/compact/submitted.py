"""One compaction as a Spark application of its own, started by spark-submit, perhaps far from the metastore.

Both sides know a directory: there lies ``job.json``; there the program puts ``progress.json`` while it works and
``result.json`` in the end. A job whose file is gone is not wanted any more: the program ends itself, as nobody can
reach a driver inside a cluster otherwise.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.compaction_job import JOB_FILE, PROGRESS_FILE, RESULT_FILE, JobProgress, TellProgress
from hive_acid.filesystem import files
from hive_acid.spark.values.timezone import jvm_zone

_LOOK_EVERY_S = 2.0
_TELL_EVERY_S = 1.0
_MOST_FAILED_LOOKS = 30


def run_submitted(directory: str, run: Callable[[SparkSession, Mapping[str, Any], TellProgress], Any]) -> int:
    """Run the job in `directory`; 0 if it succeeded, for spark-submit's status."""
    job = json.loads(files.read(files.join(directory, JOB_FILE)))
    ended = threading.Event()
    threading.Thread(target=_watch, args=(directory, ended), name="wanted", daemon=True).start()
    spark = SparkSession.builder.getOrCreate()
    try:
        spark.conf.set("spark.sql.session.timeZone", jvm_zone(spark))
        progress = _Progress(directory, str(spark.conf.get("spark.app.id")))
        progress.tell(None)
        answer = run(spark, job, progress.tell)
        # The result is there whole, or not: whoever looks for it may look in the middle of a write.
        aside = files.join(directory, f"{RESULT_FILE}.new")
        files.write(aside, json.dumps(answer).encode())
        files.rename(aside, files.join(directory, RESULT_FILE))
        return 0 if answer["ok"] else 1
    finally:
        ended.set()
        spark.stop()


class _Progress:
    """Writes what a job tells, at most once a second."""

    def __init__(self, directory: str, application: str) -> None:
        self._place = files.join(directory, PROGRESS_FILE)
        self._application = application
        self._told_at = 0.0

    def tell(self, progress: JobProgress | None) -> None:
        """Write it; nobody's work depends on whether that is possible."""
        now = time.monotonic()
        if progress is not None and now < self._told_at + _TELL_EVERY_S:
            return
        self._told_at = now
        told = JobProgress(self._application, progress.figures if progress is not None else None)
        with contextlib.suppress(OSError):
            files.write(self._place, json.dumps(told.to_message()).encode())


def _watch(directory: str, ended: threading.Event) -> None:
    """End this process, and with it the JVM and the application, when the job is not wanted any more."""
    failed = 0
    while not ended.wait(_LOOK_EVERY_S):
        try:
            wanted = files.exists(files.join(directory, JOB_FILE))
            failed = 0
        except OSError:  # perhaps the file system is away for a moment
            failed += 1
            wanted = failed < _MOST_FAILED_LOOKS
        if not wanted:
            os._exit(1)
