"""ANALYZE TABLE: rows, files and bytes of a table and its partitions, and statistics of columns, told to the metastore.

All figures are of one snapshot, and are stored with it and with a write id of their own: by these the metastore proves,
for each reader, whether they describe exactly what it sees (docs/decisions: "Statistics are proved, not believed").
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Column, Table
from hive_acid.spark.jvm.job_settings import grouped
from hive_acid.spark.read import insert_only
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.table_frame import partition_columns, read_rows
from hive_acid.spark.tables.statistics.columns import aggregates, analyzed_columns, statistics_objects
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import PartitionSpec, matching_names
from hive_acid.spark.write.figures import COMPUTED, Figures, with_figures
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes

_PARTITIONS_PER_CALL = 500


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """What an analysis has found; `partitions` by their names, empty for an unpartitioned table."""

    rows: int
    files: int
    size_bytes: int
    partitions: dict[str, Figures]


def analyze(
    context: Context,
    transaction: Transaction,
    meant: TableReference,
    columns: Sequence[str] = (),
    partition: PartitionSpec | None = None,
) -> TableStatistics:
    """Count what the transaction sees of the table, or of the partitions that `partition` covers, in one Spark job.

    Of `columns` minima, maxima, nulls and numbers of distinct values (estimated within some 5 %) are stored as well.
    Raises ColumnError for columns that have no statistics, NoSuchObjectError for an unknown partition.
    """
    table = context.locked_for_reading(transaction, meant)
    chosen = analyzed_columns(table, columns)
    state = context.state(transaction, table)
    if partition is not None:
        names = set(matching_names(table, partition, [found.name for found in state.partitions]))
        state = replace(state, partitions=tuple(found for found in state.partitions if found.name in names))
    by_name = _computed(context, state, chosen)
    figures = {
        found.name: Figures(int(by_name[found.name]["rows"]) if found.name in by_name else 0, *_on_disk(found.state))
        for found in state.partitions
    }
    _store(context, transaction, state, chosen, figures, by_name)
    return TableStatistics(
        rows=sum(one.rows for one in figures.values()),
        files=sum(one.files for one in figures.values()),
        size_bytes=sum(one.size_bytes for one in figures.values()),
        partitions=figures if table.partition_keys else {},
    )


def _computed(context: Context, state: TableState, chosen: Sequence[tuple[Column, str]]) -> dict[str, Row]:
    """The aggregates by partition name; of partitions without rows there are none."""
    wanted = [F.count(F.lit(1)).alias("rows"), *aggregates(chosen)]
    if not state.table.is_full_acid:
        found = {one.name: replace(state, partitions=(one,)) for one in state.partitions}
        return {name: insert_only.read_table(context.spark, of).agg(*wanted).collect()[0] for name, of in found.items()}
    rows: DataFrame = read_rows(context.spark, state, with_ids=False)
    keys = partition_columns(state.table)
    if not keys:
        return {"": rows.agg(*wanted).collect()[0]}
    return {
        state.table.partition_name([row[key] for key in keys]): row
        for row in grouped(rows, [F.col(quoted(key)) for key in keys], wanted).collect()
    }


def _on_disk(state: Any) -> tuple[int, int]:
    """Number and bytes of the files that the snapshot reads, delete events among them."""
    found = [*state.originals, *(file for directory in (*state.data, *state.delete_deltas) for file in directory.files)]
    return len(found), sum(file.size for file in found)


def _store(
    context: Context,
    transaction: Transaction,
    state: TableState,
    chosen: Sequence[tuple[Column, str]],
    figures: Mapping[str, Figures],
    by_name: Mapping[str, Row],
) -> None:
    """Tell the metastore. Basic figures first: those of columns are accurate beside them, not before."""
    table, connection = state.table, context.connection
    written = {"writeId": transaction.write_id(table.database, table.name), "validWriteIdList": str(state.write_ids)}
    if not table.partition_keys:
        wire = connection.wire_table(table.database, table.name)
        wire.parameters = with_figures(wire.parameters, figures[""])
        connection.call(
            "alter_table_req",
            ttypes.AlterTableRequest(
                dbName=table.database, tableName=table.name, table=wire, environmentContext=COMPUTED, **written
            ),
        )
    names = list(figures) if table.partition_keys else []
    for first in range(0, len(names), _PARTITIONS_PER_CALL):
        some = names[first : first + _PARTITIONS_PER_CALL]
        wires = connection.call("get_partitions_by_names", table.database, table.name, some)
        for wire in wires:
            wire.parameters = with_figures(wire.parameters, figures[table.partition_name(wire.values)])
        connection.call(
            "alter_partitions_req",
            ttypes.AlterPartitionsRequest(
                dbName=table.database, tableName=table.name, partitions=wires, environmentContext=COMPUTED, **written
            ),
        )
    if chosen:
        _store_columns(context, table, chosen, by_name, written)


def _store_columns(
    context: Context,
    table: Table,
    chosen: Sequence[tuple[Column, str]],
    by_name: Mapping[str, Row],
    written: Mapping[str, Any],
) -> None:
    found = []
    for name, row in by_name.items():
        description = ttypes.ColumnStatisticsDesc(
            isTblLevel=not table.partition_keys,
            dbName=table.database,
            tableName=table.name,
            partName=name or None,
            lastAnalyzed=int(time.time()),
        )
        objects = statistics_objects(chosen, row, int(row["rows"]))
        found.append(ttypes.ColumnStatistics(statsDesc=description, statsObj=objects, engine="hive"))
    for first in range(0, len(found), _PARTITIONS_PER_CALL):
        context.connection.call(
            "set_aggr_stats_for",
            ttypes.SetPartitionsStatsRequest(
                colStats=found[first : first + _PARTITIONS_PER_CALL], needMerge=False, engine="hive", **written
            ),
        )
