"""The job of a planned compaction, and how it can fail."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hive_acid.compaction_job import ALL, SOME, CompactionJob, CompactionResult
from hive_acid.format.orc.compression import compression_of
from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DataDirectory
from metastore.compaction.models import Compaction, TableInfo
from metastore.compaction.plan import CompactionInput, CompactionPlan, CompactionRefusedError
from metastore.compaction.worker import overrides

_OF_FILES = ("hive_acid.", "skip.")
"""How those parameters of a table begin that say something of its files to the program."""


class CompactionJobError(Exception):
    """The program that merges has failed, died, or was stopped."""


class BackendLostError(CompactionJobError):
    """Spark was not there, or died: the job may be as good as any, and is worth another attempt."""


class CompactionCancelledError(CompactionJobError):
    """The job was stopped because nobody wants its result any more."""


def result_in(text: str, job: CompactionJob) -> CompactionResult:
    """The result in the answer to `job`.

    Raises CompactionRefusedError if the program says that it never can, CompactionJobError if it reports an error or
    something else.
    """
    try:
        answer = json.loads(text)
        if answer["id"] != job.id:
            raise CompactionJobError(f"the compaction program answered job {answer['id']} instead of {job.id}")
        if not answer["ok"]:
            raise (CompactionRefusedError if answer.get("refused") else CompactionJobError)(str(answer["error"]))
        return CompactionResult.from_answer(answer)
    except (ValueError, KeyError, TypeError) as error:
        raise CompactionJobError(f"the compaction program gave an answer without sense: {text[:200]}") from error


def compaction_job(
    compaction: Compaction,
    table: TableInfo,
    location: str,
    staging: str,
    found: CompactionInput,
    plan: CompactionPlan,
    default_compression: str,
    *,
    name: str = "",
    queue: str = "",
    key: Sequence[str] = (),
) -> CompactionJob:
    """The job that carries out `plan` for `compaction`, of a partition of `table` or of all of it.

    Files are compressed by `default_compression` unless table or request name another. `name` and `queue` are for
    where it runs. A rebalance sorts by the primary `key` unless the request says otherwise.
    """
    properties = overrides.table_properties(table.parameters, compaction.properties)
    return CompactionJob(
        id=compaction.id,
        type=plan.kind.name.lower(),
        location=location,
        staging=staging,
        schema=table.columns,
        write_ids=str(found.write_ids),
        data=_directories(plan.data),
        raw=tuple(file.path for file in plan.raw),
        deletes=_directories(plan.deletes),
        insert_output=plan.insert_output,
        delete_output=plan.delete_output,
        compression=compression_of(properties, default_compression),
        parameters={key: value for key, value in properties.items() if key.lower().startswith(_OF_FILES)},
        name=name,
        queue=queue,
        options=overrides.written_options(properties),
        buckets=plan.buckets,
        order_by=(compaction.order_by or _by_key(table, key)) if plan.exclusive_write else None,
        insert_only=plan.insert_only,
        input_format=table.storage.input_format,
        serde=table.storage.serde,
        serde_parameters=dict(table.storage.serde_parameters),
        settings=overrides.spark_settings(overrides.job_properties(table.parameters, compaction.properties)),
    )


def _by_key(table: TableInfo, key: Sequence[str]) -> str | None:
    """The clause that sorts by those columns of a key that the files have; None without any."""
    there = {name for name, _ in table.columns}
    names = ["`" + name.replace("`", "``") + "`" for name in key if name in there]
    return f"ORDER BY {', '.join(names)}" if names else None


def _directories(directories: tuple[DataDirectory, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (directory.name, ALL if directory.validity is RangeValidity.ALL else SOME) for directory in directories
    )
