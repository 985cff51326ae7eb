"""The contract between the worker, which plans, and the Spark program, which merges (acid-format.md §6.2).

A job and its result are one JSON object each. The program makes complete directories below `staging`, one file per
bucket and the version marker in each, and touches nothing else; the worker checks them and renames them into place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DataDirectory
from metastore.compaction.plan import CompactionInput, CompactionPlan
from metastore.compaction.states import CompactionType

_OURS = "hive_acid."
"""How those parameters of a table begin that say something of its files to the program."""


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What is to be merged. Directories are (path below `location`, ``all`` or ``some``): of ``some`` only the rows
    count whose current write id is valid in `write_ids`. `raw` are paths of files whose rows have no ids of their own,
    `parameters` those of the table that tell how its files are read.
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
    compression: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """The job as one line."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What the program reports: rows and delete events written, bytes of the files, how long it took."""

    rows: int
    deletes: int
    size_bytes: int
    seconds: float

    @classmethod
    def from_json(cls, text: str, job: CompactionJob) -> CompactionResult:
        """The result in the answer to `job`.

        Raises CompactionJobError if the program reports an error, or something else.
        """
        try:
            answer = json.loads(text)
            if answer["id"] != job.id:
                raise CompactionJobError(f"the compaction program answered job {answer['id']} instead of {job.id}")
            if not answer["ok"]:
                raise CompactionJobError(str(answer["error"]))
            return cls(int(answer["rows"]), int(answer["deletes"]), int(answer["bytes"]), float(answer["seconds"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CompactionJobError(f"the compaction program gave an answer without sense: {text[:200]}") from error


class CompactionJobError(Exception):
    """The program that merges has failed, died, or was stopped."""


class CompactionCancelledError(CompactionJobError):
    """The job was stopped because nobody wants its result any more."""


def compaction_job(
    compaction_id: int,
    kind: CompactionType,
    location: str,
    staging: str,
    schema: tuple[tuple[str, str], ...],
    found: CompactionInput,
    plan: CompactionPlan,
    compression: str,
    parameters: Mapping[str, str],
) -> CompactionJob:
    """The job that carries out `plan` for a table with `parameters`."""
    return CompactionJob(
        id=compaction_id,
        type=kind.name.lower(),
        location=location,
        staging=staging,
        schema=schema,
        write_ids=str(found.write_ids),
        data=_directories(plan.data),
        raw=tuple(file.path for file in plan.raw),
        deletes=_directories(plan.deletes),
        insert_output=plan.insert_output,
        delete_output=plan.delete_output,
        compression=compression,
        parameters={key: value for key, value in parameters.items() if key.lower().startswith(_OURS)},
    )


def _directories(directories: tuple[DataDirectory, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (directory.name, "all" if directory.validity is RangeValidity.ALL else "some") for directory in directories
    )
