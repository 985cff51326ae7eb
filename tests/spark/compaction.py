"""Compactions as the Worker does them, but in the test's own Spark session: plan, merge, check, rename, commit."""

from __future__ import annotations

import json
import uuid
from typing import Any

from pyspark.sql import SparkSession

from hive_acid import files
from hive_acid.format.names import staging_name
from hive_acid.spark.compact import CompactionJob, CompactionResult, compact
from metastore.compaction.job import compaction_job
from metastore.compaction.output import check_output, publish_output
from metastore.compaction.plan import compaction_input, plan_compaction
from metastore.compaction.states import CompactionType


def compact_table(spark: SparkSession, acid: Any, name: str, kind: str) -> list[CompactionResult]:
    """Compact all partitions of a table that have something to compact."""
    table = acid.connection.table(*name.split("."))
    locations = acid.connection.partitions(table).values() if table.partition_keys else [table.location]
    results = []
    for location in locations:
        with acid.connection.begin() as transaction:
            job = plan(transaction, table, location, kind)
            if job is None:
                continue
            results.append(compact(spark, CompactionJob.from_json(json.loads(job))))
            outputs = results[-1].directories
            staging = json.loads(job)["staging"]
            check_output(staging, outputs)
            publish_output(staging, location, outputs)
            files.remove(staging)
    return results


def plan(transaction: Any, table: Any, location: str, kind: str) -> str | None:
    """The job for one directory, None if there is nothing to do."""
    found = compaction_input(
        files.list_tree(location),
        transaction.write_ids(table.database, table.name),
        transaction.snapshot,
        lambda _: b"",
    )
    compaction_type = CompactionType[kind.upper()]
    planned = plan_compaction(found, compaction_type, transaction.id)
    if planned is None:
        return None
    schema = tuple((column.name, column.type) for column in table.columns)
    staging = files.join(location, staging_name(transaction.id, uuid.uuid4().hex[:8]))
    job = compaction_job(7, compaction_type, location, staging, schema, found, planned, "zlib", table.parameters)
    return job.to_json()
