"""A compaction job as Spark takes it: the table that it is to merge."""

from __future__ import annotations

from hive_acid.catalog.table import Column, Table
from hive_acid.compaction_job import CompactionJob
from hive_acid.filesystem import files
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import directory_state
from hive_acid.spark.limits import Limits
from hive_acid.spark.read.listing import UNPARTITIONED, PartitionState, TableState

_ALL_TXNS = ValidTxnList.parse(f"{2**63 - 1}:{2**63 - 1}::")
"""A job names directories that its compaction sees: whose transactions they are of has been looked at."""


def state_of(job: CompactionJob, limits: Limits) -> TableState:
    """What the job is to merge, as the state of a table of which that is all: the reader makes rows of it."""
    chosen = {directory for directory, _ in (*job.data, *job.deletes)}
    write_ids = ValidWriteIdList.parse(job.write_ids)
    entries = [
        entry
        for entry in files.list_tree(job.location)
        if entry.path in job.raw or entry.path.partition("/")[0] in chosen
    ]
    found = directory_state(entries, write_ids, _ALL_TXNS, lambda path: files.read(files.join(job.location, path)))
    table = Table(
        "",
        job.location,
        columns_of(job),
        parameters=dict(job.parameters),
        location=job.location,
        input_format=job.input_format,
        serde=job.serde,
        serde_parameters=dict(job.serde_parameters),
    )
    return TableState(table, write_ids, (PartitionState(UNPARTITIONED, job.location, found),), limits=limits)


def columns_of(job: CompactionJob) -> tuple[Column, ...]:
    """The columns in the files that the job is to merge."""
    return tuple(Column(name, type_) for name, type_ in job.schema)
