"""Compactions as Spark applications of their own, by ``spark-submit``: to a standalone cluster, YARN or Kubernetes.

The server and the program meet in a hidden directory beside the output's, on the table's file system, wherever the
driver runs (`hive_acid.spark.compact.submitted`).
"""

from __future__ import annotations

import contextlib
import importlib.resources
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import hive_acid
from hive_acid.compaction_job import (
    JOB_FILE,
    PROGRESS_FILE,
    RESULT_FILE,
    CompactionJob,
    CompactionResult,
    JobProgress,
    TellProgress,
    unheard,
)
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError, result_in
from metastore.compaction.worker.process import end_process
from metastore.filework import files
from metastore.settings import SettingError

_POLL_S = 0.2
_LOOK_EVERY_S = 2.0
_LONGEST_NAME = 200
_SAID_BYTES = 2000
_IN_UTC = [f"--conf=spark.{role}.extraJavaOptions=-Duser.timezone=UTC" for role in ("driver", "executor")]
"""A zone without gaps: the wall clocks that ORC keeps of timestamps pass through it unchanged."""
_KUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_SIZE_OPTIONS = {
    "spark.driver.cores": "--driver-cores",
    "spark.driver.memory": "--driver-memory",
    "spark.executor.cores": "--executor-cores",
    "spark.executor.instances": "--num-executors",
    "spark.executor.memory": "--executor-memory",
}
"""Settings for which spark-submit has options of their own; these win over properties."""
_SIZES = (
    "spark.executor.memory",
    "spark.memory.",
    "spark.task.",
    "spark.dynamicAllocation.",
    "spark.default.parallelism",
)
"""What else a table may say of an application as it starts. Not what runs in it: a table's owner is no operator."""
_NO_VALUE = frozenset({"--verbose", "-v", "--supervise"})
_SHORT = {"-c": "--conf"}


@dataclass(frozen=True)
class SubmitCommand:
    """The operator's command, such as ``spark-submit --master yarn --deploy-mode cluster``.

    Its options win over ours, but for the job's name, its queue, and how large it is to be, which a table or a request
    may say (``compactor.spark.executor.memory`` …). A command that sets ``extraJavaOptions`` should keep
    ``-Duser.timezone=UTC``.
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.words:
            raise SettingError("metastore.compactor.spark.submit names no command")
        if self.is_in_cluster and self.master.startswith("spark://"):
            raise SettingError(
                "metastore.compactor.spark.submit: Spark's standalone cluster runs no Python driver; leave out "
                "--deploy-mode cluster"
            )

    @property
    def master(self) -> str:
        """Spark's master, empty if the command leaves it to spark-defaults.conf."""
        return self._given("--master", "spark.master")

    @property
    def is_in_cluster(self) -> bool:
        """Whether the driver runs somewhere in the cluster instead of on this machine."""
        return self._given("--deploy-mode", "spark.submit.deployMode") == "cluster"

    @property
    def has_files_of_its_own(self) -> bool:
        """Whether the operator sees to it that the driver finds hive_acid."""
        return any(
            self._given(option, key)
            for option, key in (
                ("--py-files", "spark.submit.pyFiles"),
                ("--archives", "spark.archives"),
            )
        )

    def line(self, job: CompactionJob, program: str, archive: str | None, directory: str) -> list[str]:
        """The whole command for a job; `archive` holds hive_acid for a driver that has none of the same version."""
        packages = ["--py-files", archive] if archive else []
        named = ["--name", job.name[:_LONGEST_NAME]] if job.name else []
        command, *options = self.words
        before = [*_IN_UTC, *packages]
        after = [*_sizes(job.settings), *named, *self._queue(job.queue)]
        return [command, *before, *options, *after, program, "--directory", directory]

    def _queue(self, queue: str) -> list[str]:
        """The options for a queue: YARN's own, the label by which Kueue knows it on Kubernetes; others have none."""
        if not queue:
            return []
        if self.master.startswith("yarn"):
            return ["--queue", queue]
        if self.master.startswith("k8s://"):
            return [f"--conf=spark.kubernetes.{role}.label.{_KUEUE_LABEL}={queue}" for role in ("driver", "executor")]
        return []

    def _given(self, option: str, key: str) -> str:
        """The last value that the command gives to an option, or to the Spark property of the same meaning."""
        value = ""
        for name, given in _options(self.words[1:]):
            if name == option:
                value = given
            elif name == "--conf" and given.partition("=")[0] == key:
                value = given.partition("=")[2]
        return value


class SparkSubmitExecutor:
    """A Spark application per job."""

    def __init__(self, command: SubmitCommand) -> None:
        self._command = command
        self._stopping = threading.Event()

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        directory = f"{job.staging}-job"
        program = str(Path(hive_acid.__file__).parent / "spark" / "compact" / "compactor.py")
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(tempfile.TemporaryFile(prefix="hive-acid-compaction-"))
            archive = None
            if self._command.is_in_cluster and not self._command.has_files_of_its_own:
                archive = stack.enter_context(_archive())
            # A driver that is out of reach ends when its job is gone.
            stack.callback(files.remove, directory)
            files.make_directory(directory)
            files.write(files.join(directory, JOB_FILE), job.to_json().encode())
            line = self._command.line(job, program, archive, directory)
            told = _Told(directory, report)
            status = self._wait(line, log.fileno(), told, cancelled)
            told.hear()  # a quick one may have ended between two looks
            result = _read(files.join(directory, RESULT_FILE))
            if result is not None:
                return result_in(result, job)
            log.seek(max(0, log.seek(0, os.SEEK_END) - _SAID_BYTES))
            said = log.read().decode(errors="replace").strip()
        raise BackendLostError(f"{line[0]} ended with status {status} and without a result: {said}")

    def close(self) -> None:
        """End the commands under way."""
        self._stopping.set()

    def _wait(self, command: list[str], log: int, told: _Told, cancelled: threading.Event) -> int:
        """The exit status of `command`, which has ended for sure when this returns or raises."""
        environment = dict(os.environ)
        if not self._command.is_in_cluster:
            # The Python that has hive_acid, unless the operator names another; Spark would take any python3.
            environment.setdefault("PYSPARK_PYTHON", sys.executable)
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        except OSError as error:
            raise BackendLostError(f"cannot start {command[0]}: {error}") from error
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    return process.wait(_POLL_S)
                if cancelled.is_set() or self._stopping.is_set():
                    raise CompactionCancelledError("the compaction was cancelled")
                told.look()
        finally:
            end_process(process)


class _Told:
    """What a submitted job has told last."""

    def __init__(self, directory: str, report: TellProgress) -> None:
        self._place = files.join(directory, PROGRESS_FILE)
        self._report = report
        self._last = ""
        self._look_at = 0.0

    def look(self) -> None:
        """Pass on what is new, looking now and then."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + _LOOK_EVERY_S
            self.hear()

    def hear(self) -> None:
        """Pass on what is new."""
        # Half written, or the file system is away for a moment: the next look sees it whole.
        with contextlib.suppress(ValueError, OSError):
            text = _read(self._place)
            if text is None or text == self._last:
                return
            told = json.loads(text)
            self._last = text
            self._report(JobProgress.from_message(told))


def _sizes(settings: Mapping[str, str]) -> list[str]:
    found = []
    for key, value in settings.items():
        if key in _SIZE_OPTIONS:
            found += [_SIZE_OPTIONS[key], value]
        elif key.startswith(_SIZES):
            found.append(f"--conf={key}={value}")
    return found


def _options(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(option, value) of a spark-submit command line, which takes ``--option value`` and ``--option=value``."""
    rest = iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if not name.startswith("-"):
            continue
        if not has_value and name not in _NO_VALUE:
            value = next(rest, "")
        yield _SHORT.get(name, name), value


@contextlib.contextmanager
def _archive() -> Iterator[str]:
    """The package hive_acid as a file that Python imports from; what it imports in turn is the cluster's to have."""
    root = Path(hive_acid.__file__).parent
    with tempfile.TemporaryDirectory(prefix="hive-acid-archive-") as directory:
        path = Path(directory, "hive_acid.zip")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for package, below in (
                ("hive_acid", root),
                ("hive_acid/idl", Path(str(importlib.resources.files("hive_acid.idl")))),
            ):
                for file in sorted(below.rglob("*")):
                    # In an installed package the second is a part of the first.
                    if file.suffix in (".py", ".thrift") and (below != root or root / "idl" not in file.parents):
                        archive.write(file, f"{package}/{file.relative_to(below).as_posix()}")
        yield str(path)


def _read(location: str) -> str | None:
    try:
        return files.read(location).decode()
    except FileNotFoundError:
        return None
