"""Where compactions run: Spark, outside of the server, which never loads it."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Sequence
from typing import Protocol

from hive_acid.compaction_job import CompactionJob, CompactionResult, TellProgress, unheard
from metastore.compaction.config import CompactionConfig
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError, result_in
from metastore.compaction.worker.process import JobProcess
from metastore.compaction.worker.submit import SparkSubmitExecutor, SubmitCommand
from metastore.settings import SettingError

_PROGRAM = "hive_acid.spark.compact.compactor"
_CANCEL_WITHIN_S = 60.0
"""More than a Spark session takes to start, since a process that is just starting ends nothing."""


class CompactionExecutor(Protocol):
    """Runs jobs, as many at a time as there are threads that ask."""

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        """Run the job to its end; `report` takes what it tells of itself meanwhile.

        Raises CompactionJobError if it fails, BackendLostError if Spark is not there or dies, and
        CompactionCancelledError if `cancelled` is set meanwhile. Nothing of the job runs on afterwards; only the driver
        of a submitted job that is inside a cluster may take a moment longer, and touches no more than its staging
        directory.
        """

    def close(self) -> None:
        """Stop what is kept running, and with it the jobs."""


def executor_for(config: CompactionConfig) -> CompactionExecutor:
    """The executor that the settings ask for: a Spark Connect server, spark-submit, or a warm Spark on this machine.

    Raises SettingError for two at a time, and for a command that cannot run a Python program.
    """
    if config.spark_remote and config.spark_submit:
        raise SettingError(
            "metastore.compactor.spark.remote and metastore.compactor.spark.submit name two places for the same work: "
            "give one of them"
        )
    if config.spark_submit:
        return SparkSubmitExecutor(SubmitCommand(tuple(shlex.split(config.spark_submit))))
    command = [sys.executable, "-m", _PROGRAM]
    if config.spark_remote:
        return WarmSparkExecutor([*command, "--remote", config.spark_remote])
    return WarmSparkExecutor([*command, "--master", config.spark_master, "--driver-memory", config.spark_memory])


class WarmSparkExecutor:
    """A child process that stays from job to job, with a Spark session or a connection to a Spark Connect server; it is
    started with the first job, and runs as many as it is given at the same time.

    It ends when its standard input does, so it does not outlive the server, however that ends. A child that has died is
    replaced with the next job.
    """

    def __init__(
        self, command: Sequence[str] = (sys.executable, "-m", _PROGRAM), cancel_within_s: float = _CANCEL_WITHIN_S
    ) -> None:
        self._command = list(command)
        self._cancel_within_s = cancel_within_s
        self._starting = threading.Lock()
        self._process: JobProcess | None = None

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        if cancelled.is_set():
            raise CompactionCancelledError("the compaction was cancelled")
        process = self._running()
        answer = process.ask(json.loads(job.to_json()), cancelled, report)
        if answer.get("lost"):
            self._replace(process)
            raise BackendLostError(f"Spark is gone: {answer.get('error')}")
        return result_in(json.dumps(answer), job)

    def close(self) -> None:
        with self._starting:
            process, self._process = self._process, None
        if process is not None:
            process.stop()

    def _running(self) -> JobProcess:
        with self._starting:
            if self._process is None or not self._process.is_alive:
                self._process = JobProcess(self._command, self._cancel_within_s)
            return self._process

    def _replace(self, process: JobProcess) -> None:
        """Have the next job begin with a process of its own; jobs that `process` still has end with it."""
        with self._starting:
            if self._process is process:
                self._process = None
        process.stop()
