"""The contract between the metastore's Worker, which plans a compaction, and the Spark program that merges files.

A job and its result are one JSON object each (acid-format.md §6.2). The program makes complete directories below
`staging`, one file per bucket and the version marker in each, and touches nothing else; the Worker checks them and
renames them into place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from hive_acid.errors import FormatError
from hive_acid.format.names import parse_directory
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.format.snapshot import ValidWriteIdList

MINOR, MAJOR, REBALANCE = "minor", "major", "rebalance"
TYPES = (MINOR, MAJOR, REBALANCE)
ALL, SOME = "all", "some"
"""Whether all rows of a directory count, or those only whose current write id is valid in the job's snapshot."""

JOB_FILE, PROGRESS_FILE, RESULT_FILE = "job.json", "progress.json", "result.json"
"""The files of a job that is handed over in a directory, as spark-submit's are."""

_SEQUENCES = frozenset({"schema", "data", "raw", "deletes"})
_MAPPINGS = frozenset({"parameters", "options", "serde_parameters", "settings"})


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What to compact.

    `type` is minor, major or rebalance; `location` the table's or partition's directory; `staging` a hidden directory
    for the output; `schema` the columns in the files as (name, Hive type); `write_ids` the snapshot's text. `data` and
    `deletes` are the directories to read, as (path below `location`, `ALL` or `SOME`). `raw` are paths of files whose
    rows have no ids of their own. `insert_output` and `delete_output` name the directories to make, or are None.
    `compression` is that of ORC files; `parameters` are those of the table that tell how its files are read, `options`
    what else is said of ORC files to be written.

    A rebalance has `buckets`, the number of files to make, and may have `order_by`, a clause of SQL over the table's
    columns. Files of an `insert_only` table are told by Hive's `input_format`, `serde` and `serde_parameters`.
    `settings` are Spark's, for this job alone. `name` is what it is called where it runs
    (``<host>-compactor-<db>.<table>.<partition>``), `queue` the queue or scheduler pool, empty for none in particular.
    """

    id: int
    type: str
    location: str
    staging: str
    schema: tuple[tuple[str, str], ...]
    write_ids: str
    data: tuple[tuple[str, str], ...]
    raw: tuple[str, ...]
    deletes: tuple[tuple[str, str], ...]
    insert_output: str | None
    delete_output: str | None
    compression: str = DEFAULT_COMPRESSION
    parameters: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    queue: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    buckets: int | None = None
    order_by: str | None = None
    insert_only: bool = False
    input_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The job as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, job: Mapping[str, Any]) -> CompactionJob:
        """The job of a JSON object; of what it leaves out, as older servers do, the default holds.

        Raises FormatError for a job that cannot be understood.
        """
        try:
            given = {one.name: job[one.name] for one in fields(cls) if job.get(one.name) is not None}
            parsed = cls(**{"raw": (), "insert_output": None, "delete_output": None, **_as_values(given)})
            _check(parsed)
        except (TypeError, ValueError) as error:
            raise FormatError(f"the compaction job lacks or misstates {error}") from error
        return parsed


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction has made: rows and delete events, files and their bytes, those read, how long it took.

    `directories` are the names of those that it made below the job's staging directory.
    """

    rows: int
    deletes: int
    size_bytes: int
    seconds: float
    files: int = 0
    input_bytes: int = 0
    directories: tuple[str, ...] = ()

    def to_answer(self, job_id: int) -> dict[str, Any]:
        """The result as the answer to a job."""
        answer = asdict(self)
        return {"id": job_id, "ok": True, "bytes": answer.pop("size_bytes"), **answer}

    @classmethod
    def from_answer(cls, answer: Mapping[str, Any]) -> CompactionResult:
        """The result in an answer that is ok. Raises KeyError, TypeError or ValueError for one without sense."""
        return cls(
            int(answer["rows"]),
            int(answer["deletes"]),
            int(answer["bytes"]),
            float(answer["seconds"]),
            int(answer.get("files", 0)),
            int(answer.get("input_bytes", 0)),
            tuple(answer.get("directories", ())),
        )


@dataclass(frozen=True, slots=True)
class JobProgress:
    """What a job says while it runs; `job_id` names it where it runs, `figures` say how far it is: rows, files and
    bytes_written until now, and the phase, which is what it does. Either may be absent.
    """

    job_id: str | None = None
    figures: Mapping[str, Any] | None = None

    @classmethod
    def at(cls, rows: int, files: int, bytes_written: int, phase: str) -> JobProgress:
        """How far a job is."""
        return cls(figures={"rows": rows, "files": files, "bytes_written": bytes_written, "phase": phase})

    def to_message(self) -> dict[str, Any]:
        """The progress as it travels."""
        told = {"job_id": self.job_id, "progress": self.figures}
        return {name: value for name, value in told.items() if value is not None}

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> JobProgress:
        """The progress in a message."""
        return cls(message.get("job_id"), message.get("progress"))


TellProgress = Callable[[JobProgress], None]
"""What takes the progress of a job. In the program that merges it raises if the job is not wanted any more; in the
server it neither raises nor takes long.
"""


def unheard(progress: JobProgress) -> None:
    """A `TellProgress` for whoever does not want to know."""


def _as_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """JSON's arrays and objects as the tuples and mappings of a job."""
    values = dict(given)
    for name in _SEQUENCES & values.keys():
        values[name] = tuple(tuple(one) if isinstance(one, list) else one for one in values[name])
    for name in _MAPPINGS & values.keys():
        values[name] = dict(values[name])
    return values


def _check(job: CompactionJob) -> None:
    for directory, visible in (*job.data, *job.deletes):
        if parse_directory(directory) is None or visible not in (ALL, SOME):
            raise ValueError(f"directory {directory} ({visible})")
    if any(len(column) != 2 for column in job.schema):
        raise ValueError(f"schema: {job.schema}")
    ValidWriteIdList.parse(job.write_ids)
    if job.type not in TYPES:
        raise FormatError(f"a compaction is {' or '.join(TYPES)}, not '{job.type}'")
    if job.type != MINOR and (job.delete_output or not job.insert_output):
        raise FormatError(f"a {job.type} compaction makes one base, and no delete delta")
    if (job.type == REBALANCE) != (job.buckets is not None):
        raise FormatError("a rebalance has a number of buckets, and no other compaction has")
