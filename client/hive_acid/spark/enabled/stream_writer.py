"""`df.writeStream` of frames of a session that is joined: `toTable` is a sink, of which each batch is a transaction."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.enabled.joined import EnabledSession
from hive_acid.spark.enabled.rows import flat
from hive_acid.spark.enabled.told import ToldFormat
from hive_acid.spark.verbs.stream import Sink

if TYPE_CHECKING:
    from pyspark.sql.streaming.readwriter import DataStreamWriter as _StreamWriter
else:
    _StreamWriter = object

_PLACE = "checkpointlocation"
_ROOT = "spark.sql.streaming.checkpointLocation"


class JoinedStreamWriter(ToldFormat, _StreamWriter):
    """Spark's writer of streams, of which `toTable` knows the metastore's tables."""

    _hive_acid: EnabledSession
    _frame: DataFrame
    _query: str | None = None
    _mode: str = "append"

    def outputMode(self, outputMode: str) -> Any:  # noqa: N802, N803 - Spark's names
        super().outputMode(outputMode)
        self._mode = outputMode.lower()
        return self

    def queryName(self, queryName: str) -> Any:  # noqa: N802, N803
        super().queryName(queryName)
        self._query = queryName
        return self

    def foreachBatch(self, func: Any) -> Any:  # noqa: N802
        """As Spark has it; the session of each batch, a clone of this one, is joined while the function runs.

        Over Connect the function runs in a process of the server, in which nothing is joined.
        """
        acid = self._hive_acid
        if isinstance(func, Sink) or "_jsparkSession" not in vars(self._frame.sparkSession):
            return super().foreachBatch(func)

        def joined(frame: DataFrame, batch_id: int) -> None:
            of_batch = acid.joins(frame.sparkSession) if acid.is_enabled and acid.joins is not None else None
            try:
                func(frame, batch_id)
            finally:
                if of_batch is not None:
                    of_batch.disable()

        return super().foreachBatch(joined)

    def toTable(  # noqa: N802
        self,
        tableName: str,  # noqa: N803
        format: str | None = None,  # noqa: A002
        outputMode: str | None = None,  # noqa: N803
        partitionBy: Any = None,  # noqa: N803
        queryName: str | None = None,  # noqa: N803
        **options: Any,
    ) -> Any:
        target = self._hive_acid.target(tableName, self._form if format is None else format)
        if target is None:
            return super().toTable(tableName, format, outputMode, partitionBy, queryName, **options)
        self.options(**options)
        if outputMode is not None:
            self.outputMode(outputMode)
        if queryName is not None:
            self.queryName(queryName)
        keys = tuple(flat([partitionBy])) if partitionBy is not None else self._new.keys
        if self._mode != "append":
            raise UnsupportedTableError(
                f"a stream to {target.full_name} appends its rows, and does not write in mode {self._mode}: "
                "foreachBatch(acid.sink(…, mode='upsert')) updates by keys"
            )
        name = self._name()
        if target.table is None:
            self._hive_acid.create_table(target.full_name, self._frame.schema, partitioned_by=keys, if_not_exists=True)
        sink = self._hive_acid.sink(target.full_name, query=name, schema_evolution=self._new.evolves)
        return super().foreachBatch(sink).start()

    def _name(self) -> str:
        """What the stream is called in the table: as the query is, else by the place of its checkpoint."""
        if self._query is not None:
            return self._query
        place = self._new.options.get(_PLACE)
        if place is None:
            raise ValueError(
                "a stream is known by its checkpoint: give .option('checkpointLocation', '…'), or a queryName with "
                f"the setting {_ROOT}"
            )
        return "checkpoint-" + hashlib.sha256(str(place).rstrip("/").encode()).hexdigest()[:32]
