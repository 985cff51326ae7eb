"""A table's stream as a frame: of a source that a classic session's JVM calls, or of one in the server of Connect."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.jvm.stream_sources import check_calls_back, is_active, streaming_frame
from hive_acid.spark.read.listing import TableState, check_transactional
from hive_acid.spark.stream_source.batch_limit import BatchLimit
from hive_acid.spark.stream_source.connect_source import OpenSession, frame_over_connect
from hive_acid.spark.stream_source.fresh_rows import fresh_rows
from hive_acid.spark.stream_source.position import Fresh
from hive_acid.spark.stream_source.start import Start
from hive_acid.spark.stream_source.table_source import Place, TableSource
from hive_acid.spark.values.types import row_type


def read_stream(place: Place, table: Table, start: Start, limit: BatchLimit, open_session: OpenSession) -> DataFrame:
    """The stream of a table's new rows; `open_session` is how the server of Connect joins a session of its own.

    Raises TableNotAcidError, UnsupportedTableError where the stream cannot be asked for new rows.
    """
    check_transactional(table)
    context = place.context
    spark = context.spark
    is_classic = vars(spark).get("_sc") is not None
    if is_classic:
        check_calls_back(spark, table.full_name)
    context.zones.check(row_type(table.columns))
    nothing = TableState(table, ValidWriteIdList(table.full_name, 0), (), limits=context.limits)
    empty = fresh_rows(spark, nothing, Fresh(()))
    if is_classic:
        source = TableSource(place, table, start, limit, partial(is_active, spark))
        return streaming_frame(spark, source, table.full_name, empty)
    return frame_over_connect(context, table, start, limit, open_session, empty.schema)
