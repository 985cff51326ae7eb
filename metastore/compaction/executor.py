"""Where compactions run: Spark, outside of the server, which never loads it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import hive_acid
from metastore.compaction.config import CompactionConfig
from metastore.compaction.job import (
    CompactionCancelledError,
    CompactionJob,
    CompactionJobError,
    CompactionResult,
)
from metastore.compaction.process import JobProcess, end_process

_PROGRAM = "hive_acid.spark.compactor"
_POLL_S = 0.2
_IN_UTC = [f"--conf=spark.{role}.extraJavaOptions=-Duser.timezone=UTC" for role in ("driver", "executor")]
"""A zone without gaps: the wall clocks that ORC keeps of timestamps pass through it unchanged."""


class CompactionExecutor(Protocol):
    """Runs one job at a time, and can be asked from several threads."""

    def run(self, job: CompactionJob, cancelled: threading.Event) -> CompactionResult:
        """Run the job to its end.

        Raises CompactionJobError if it fails, dies or takes too long, CompactionCancelledError if `cancelled` is set
        meanwhile. In any case nothing of the job runs on afterwards.
        """

    def close(self) -> None:
        """Stop what is kept running."""


def executor_for(config: CompactionConfig) -> CompactionExecutor:
    """The executor that the settings ask for."""
    timeout_s = config.worker_timeout_ms / 1000
    if config.spark_submit:
        return SparkSubmitExecutor(shlex.split(config.spark_submit), timeout_s)
    return WarmSparkExecutor(timeout_s=timeout_s)


class WarmSparkExecutor:
    """A child process with a Spark session that stays from job to job; started with the first.

    It is told its jobs on its standard input, one JSON object per line, and answers on its standard output. It ends
    when its input does, so it does not outlive the server, however that ends. A child that has died is replaced with
    the next job.
    """

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", _PROGRAM), timeout_s: float = 86_400.0) -> None:
        self._command = list(command)
        self._timeout_s = timeout_s
        self._one_job = threading.Lock()
        self._process: JobProcess | None = None

    def run(self, job: CompactionJob, cancelled: threading.Event) -> CompactionResult:
        while not self._one_job.acquire(timeout=_POLL_S):
            if cancelled.is_set():
                raise CompactionCancelledError("the compaction was cancelled")
        try:
            if self._process is None or not self._process.is_alive:
                self.close()
                self._process = JobProcess(self._command)
            try:
                answer = self._process.ask(job.to_json(), cancelled, self._timeout_s)
            except CompactionJobError:
                # Whatever it is doing, it would be in the way of the next job.
                self.close()
                raise
            return CompactionResult.from_json(answer, job)
        finally:
            self._one_job.release()

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()


class SparkSubmitExecutor:
    """A Spark application per job, started by a command such as ``spark-submit --master yarn``.

    Options in the command win over ours; one that sets ``extraJavaOptions`` should keep ``-Duser.timezone=UTC``.
    """

    def __init__(self, submit: Sequence[str], timeout_s: float = 86_400.0) -> None:
        self._submit = list(submit)
        self._timeout_s = timeout_s

    def run(self, job: CompactionJob, cancelled: threading.Event) -> CompactionResult:
        program = Path(hive_acid.__file__).parent / "spark" / "compactor.py"
        with tempfile.TemporaryDirectory(prefix="hive-acid-compaction-") as directory:
            job_file, result_file = Path(directory, "job.json"), Path(directory, "result.json")
            job_file.write_text(job.to_json())
            files = ["--job", str(job_file), "--result", str(result_file)]
            with Path(directory, "log").open("w+b") as log:
                status = self._wait(
                    [self._submit[0], *_IN_UTC, *self._submit[1:], str(program), *files], log.fileno(), cancelled
                )
                if result_file.exists():
                    return CompactionResult.from_json(result_file.read_text(), job)
                log.seek(0)
                said = log.read()[-2000:].decode(errors="replace").strip()
        raise CompactionJobError(f"{self._submit[0]} ended with status {status} and without a result: {said}")

    def _wait(self, command: list[str], log: int, cancelled: threading.Event) -> int:
        """The exit status of `command`, which has ended for sure when this returns or raises."""
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # The Python that has hive_acid, unless the operator names another; Spark would take any python3.
                env={"PYSPARK_PYTHON": sys.executable, **os.environ},
                start_new_session=True,
            )
        except OSError as error:
            raise CompactionJobError(f"cannot start {command[0]}: {error}") from error
        waited_s = 0.0
        try:
            while True:
                try:
                    return process.wait(_POLL_S)
                except subprocess.TimeoutExpired:
                    waited_s += _POLL_S
                if cancelled.is_set():
                    raise CompactionCancelledError("the compaction was cancelled")
                if waited_s > self._timeout_s:
                    raise CompactionJobError(f"the compaction took more than {self._timeout_s:.0f} s")
        finally:
            end_process(process)

    def close(self) -> None:
        """Nothing is kept running between jobs."""
