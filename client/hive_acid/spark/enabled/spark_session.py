"""A Spark session that is joined: `sql`, `table`, `read` and `catalog` know the metastore's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark.enabled.catalog import JoinedCatalog
from hive_acid.spark.enabled.joined import EnabledSession
from hive_acid.spark.enabled.kinds import as_kind
from hive_acid.spark.enabled.reader import JoinedReader, JoinedStreamReader
from hive_acid.spark.jvm.unjoined import unjoined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as _Base
else:
    _Base = object


class JoinedSession(_Base):
    """What a Spark session has in the place of its own methods while it is joined."""

    _hive_acid: EnabledSession
    _joined_catalog: JoinedCatalog

    def sql(self, sqlQuery: str, args: Any = None, **kwargs: Any) -> DataFrame:  # noqa: N803 - Spark's name
        return self._hive_acid.sql(sqlQuery, args, **kwargs)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        found = self._hive_acid.rows_of(tableName)
        return super().table(self._hive_acid.sparks(tableName)) if found is None else found

    @property
    def read(self) -> JoinedReader:
        return as_kind(JoinedReader, super().read, _hive_acid=self._hive_acid)

    @property
    def readStream(self) -> JoinedStreamReader:  # noqa: N802 - Spark's name
        return as_kind(JoinedStreamReader, super().readStream, _hive_acid=self._hive_acid)

    @property
    def catalog(self) -> JoinedCatalog:
        return self._joined_catalog

    def newSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        """Another session of Spark, to which nothing is joined."""
        return unjoined(self).newSession()

    def stop(self) -> None:
        """As Spark has it; the join ends before."""
        stop, acid = super().stop, self._hive_acid
        acid.disable()
        acid.roll_back_open()
        if acid.owns_connection:
            acid.close()
        stop()
