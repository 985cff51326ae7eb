"""Streams into ACID tables without Spark, in the spirit of Hive's Streaming API V2.

    from hive_acid.streaming import DelimitedWriter, StreamingConnection

    with StreamingConnection("thrift://localhost:9083", "d.clicks", DelimitedWriter(",")) as stream:
        stream.begin_transaction()
        stream.write("1,ann")
        stream.commit_transaction()

Needs pyarrow: ``pip install hive-acid[streaming]``.
"""

from hive_acid.streaming.connection import StreamingConnection, StreamStatistics
from hive_acid.streaming.memory import keep_freed_memory
from hive_acid.streaming.records import ArrowWriter, DelimitedWriter, JsonWriter, RecordWriter

__all__ = [
    "ArrowWriter",
    "DelimitedWriter",
    "JsonWriter",
    "RecordWriter",
    "StreamStatistics",
    "StreamingConnection",
    "keep_freed_memory",
]
