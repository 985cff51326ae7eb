"""What stands in Spark's place: merges files of lines, fails, or is gone, as a scenario wants it.

As a program it is what spark-submit would start: ``merging.py … --directory PLACE``.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hive_acid.compaction_job import CompactionJob, CompactionResult, TellProgress, unheard
from hive_acid.filesystem import files
from hive_acid.format.rows import INSERT, RowEvent, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidWriteIdList
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError
from metastore.compaction.worker.submit import SparkSubmitExecutor, SubmitCommand
from metastore.slices import Slices
from tests.compaction.world import MergingExecutor, fail, write_directory

RAW_FILE = "000000_0"
"""The file of a table without ACID columns."""


@dataclass
class Merger(MergingExecutor):
    """Knows the server that it works for, and all kinds of jobs."""

    server: Slices | None = None

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        self.jobs.append(job)
        self.before(job, cancelled)
        write_ids = ValidWriteIdList.parse(job.write_ids)
        data, deletes = (
            [event for name, kept in chosen for event in self._events(job, name, kept, write_ids)]
            for chosen in (job.data, job.deletes)
        )
        data += [event for path in job.raw for event in read_lines(files.join(job.location, path))]
        if job.type != "minor":
            data = visible_rows((), deletes, write_ids, data)
        if job.type == "rebalance":
            data = _renumbered(data, max(event.original_write_id for event in data))
        for output, events in ((job.insert_output, data), (job.delete_output, deletes)):
            if output is not None:
                write = write_raw if job.insert_only else write_directory
                write(files.join(job.staging, output), events)
        self.after(job)
        return CompactionResult(len(data), len(deletes), 1, 0.1)

    def _events(self, job: CompactionJob, name: str, kept: str, write_ids: ValidWriteIdList) -> list[RowEvent]:
        if not job.insert_only:
            return super()._events(job, name, kept, write_ids)
        place = files.join(job.location, name)
        return [event for entry in files.list_tree(place) for event in read_lines(files.join(place, entry.path))]


def write_raw(location: str, events: Iterable[RowEvent]) -> None:
    """The directory of an insert-only table; rows have no ids there but for those who test."""
    files.make_directory(location)
    files.write(files.join(location, RAW_FILE), "".join(json.dumps(event) + "\n" for event in sorted(events)).encode())


def read_lines(location: str) -> list[RowEvent]:
    """The events of one file; bases that the server makes have none, in ORC."""
    content = files.read(location)
    lines = [] if content.startswith(b"ORC") else content.decode().splitlines()
    return [RowEvent(*json.loads(line)) for line in lines if line.startswith("[")]


def identity(event: RowEvent) -> Any:
    """By what a row is known whatever number it has by now."""
    return event.row if isinstance(event.row, list) else list(event.key)


def _renumbered(events: list[RowEvent], write_id: int) -> list[RowEvent]:
    bucket = encode_bucket(0)
    return [
        RowEvent(INSERT, write_id, bucket, number, write_id, identity(event))
        for number, event in enumerate(sorted(events))
    ]


def _merges() -> Merger:
    return Merger()


def _fails() -> Merger:
    return Merger(after=fail)


def _is_interrupted() -> Merger:
    """The server stops while the first job runs."""
    merger = Merger()

    def stop(job: CompactionJob, cancelled: threading.Event) -> None:
        if len(merger.jobs) == 1:
            assert merger.server is not None
            merger.server.interrupt()
            raise CompactionCancelledError("the compaction was cancelled")

    merger.before = stop
    return merger


def _is_gone() -> Merger:
    """Spark cannot be had."""

    def gone(job: CompactionJob, cancelled: threading.Event) -> None:
        raise BackendLostError("Spark is gone")

    return Merger(before=gone)


class _Submitter(SparkSubmitExecutor):
    """The real one; in spark-submit's place is this module."""

    server: Slices | None = None

    def __init__(self) -> None:
        launcher = Path(tempfile.mkdtemp(prefix="hive-acid-crash-"), "submit")
        launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {__name__} "$@"\n')
        launcher.chmod(0o700)
        super().__init__(SubmitCommand((str(launcher),)))


EXECUTORS: Mapping[str, Callable[[], Any]] = {
    "merges": _merges,
    "fails": _fails,
    "is interrupted": _is_interrupted,
    "is gone": _is_gone,
    "is submitted": _Submitter,
}


def main() -> None:
    """Carry out the job in the directory that the last argument names."""
    directory = sys.argv[-1]
    job = CompactionJob(**json.loads(files.read(files.join(directory, "job.json"))))
    result = asdict(Merger().run(job, threading.Event()))
    answer = {"id": job.id, "ok": True, **result, "bytes": result["size_bytes"]}
    unfinished, finished = (files.join(directory, name).removeprefix("file:") for name in ("part", "result.json"))
    Path(unfinished).write_text(json.dumps(answer))
    os.rename(unfinished, finished)


if __name__ == "__main__":
    main()
