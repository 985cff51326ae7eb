"""A query of Structured Streaming into a table, as a process runs it that may be killed."""

from __future__ import annotations

from hive_acid.spark import AcidSession

COLUMNS = "id int, v int, n int, p int"


def run_query(acid: AcidSession, table: str, arriving: str, checkpoint: str, mode: str, to_the_end: bool) -> None:
    """Write the JSON files of a directory to a table, as they come or those that are there."""
    sink = acid.sink(table, query="q", mode=mode, keys=["id"] if mode == "upsert" else [])
    rows = acid.spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 3).json(arriving)
    writer = rows.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
    writer = writer.trigger(availableNow=True) if to_the_end else writer.trigger(processingTime="0 seconds")
    writer.start().awaitTermination()
