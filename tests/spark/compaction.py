"""Compactions as the Worker does them, but in the test's own Spark session: plan, merge, check, rename, commit."""

from __future__ import annotations

import json
import uuid
from functools import partial
from types import SimpleNamespace
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.compaction_job import CompactionJob, CompactionResult
from hive_acid.filesystem import files
from hive_acid.format.names import staging_name
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.ids import WriteId
from hive_acid.spark.compact.compaction import compact
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import Storage, TableInfo
from metastore.compaction.plan import compaction_input, plan_compaction
from metastore.compaction.states import CompactionType
from metastore.compaction.worker.job import compaction_job
from metastore.compaction.worker.output import check_output, publish_output
from metastore.compaction.worker.rounds import Round, next_round


def compact_table(spark: SparkSession, acid: Any, name: str, kind: str, **request: Any) -> list[CompactionResult]:
    """Compact all partitions of a table that have something to compact, by as many rounds as it takes.

    `request` are fields of a compaction: order_by, buckets, properties.
    """
    table = acid.connection.table(*name.split("."))
    locations = acid.connection.partitions(table).values() if table.partition_keys else [table.location]
    results = []
    for location in locations:
        after, has_more = WriteId(0), True
        while has_more:
            with acid.connection.begin() as transaction:
                this, job = plan_round(transaction, table, location, kind, after, **request)
                after, has_more = this.found.highest_write_id, this.has_more
                if job is None:
                    continue
                results.append(compact(spark, CompactionJob.from_json(json.loads(job)), limits=acid.limits))
                outputs = results[-1].directories
                staging = json.loads(job)["staging"]
                check_output(staging, outputs, insert_only=json.loads(job)["insert_only"])
                publish_output(staging, location, outputs)
                files.remove(staging)
    return results


def plan(transaction: Any, table: Any, location: str, kind: str, **request: Any) -> str | None:
    """The job for one directory, None if there is nothing to do."""
    return plan_round(transaction, table, location, kind, WriteId(0), **request)[1]


def plan_round(
    transaction: Any, table: Any, location: str, kind: str, after: WriteId, **request: Any
) -> tuple[Round, str | None]:
    """The round for one directory that follows on one that ended at `after`, and its job."""
    look = partial(
        compaction_input,
        files.list_tree(location),
        transaction.write_ids(table.database, table.name),
        transaction.snapshot,
        lambda path: files.read(files.join(location, path)),
    )
    columns = tuple((column.name, column.type) for column in table.columns)
    storage = Storage(table.input_format, table.serde, table.serde_parameters, tuple(table.bucket_columns))
    info = TableInfo(location, columns, (), table.parameters, {}, storage)
    asked = SimpleNamespace(**{"id": 7, "properties": {}, "order_by": None, "buckets": None, **request})
    of = CompactionType[kind.upper()]
    this = next_round(look, of, info.kind, after=after, at_most=CompactionConfig().max_deltas)
    planned = plan_compaction(this.found, this.kind, transaction.id, info.kind, buckets=asked.buckets)
    if planned is None:
        return this, None
    staging = files.join(location, staging_name(transaction.id, uuid.uuid4().hex[:8]))
    key = [column.name for column in table.key]
    job = compaction_job(asked, info, location, staging, this.found, planned, DEFAULT_COMPRESSION, key=key)  # type: ignore[arg-type]
    return this, job.to_json()
