"""`spark.read` and `spark.readStream` of a session that is joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.enabled.joined import OURS, EnabledSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader as _Reader
    from pyspark.sql.streaming.readwriter import DataStreamReader as _StreamReader
else:
    _Reader = _StreamReader = object


class JoinedReader(_Reader):
    """Reads the metastore's tables by `table`, and by ``format("hive_acid").load("db.t")``."""

    _hive_acid: EnabledSession
    _form: str | None = None

    def format(self, source: str) -> DataFrameReader:
        self._form = source
        return super().format(source)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        found = self._hive_acid.rows_of(tableName, must_be=is_ours(self._form))
        return super().table(self._hive_acid.sparks(tableName)) if found is None else found

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        if not is_ours(self._form if format is None else format):
            return super().load(path, format, schema, **options)
        if not isinstance(path, str):
            raise ValueError('a table has a name: spark.read.format("hive_acid").load("database.table")')
        found = self._hive_acid.rows_of(path, must_be=True)
        assert found is not None
        return found


class JoinedStreamReader(_StreamReader):
    """Says of the metastore's tables that they cannot be followed yet."""

    _hive_acid: EnabledSession
    _form: str | None = None

    def format(self, source: str) -> DataStreamReader:
        self._form = source
        return super().format(source)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        self._refuse(tableName)
        return super().table(self._hive_acid.sparks(tableName))

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        if is_ours(self._form if format is None else format):
            raise UnsupportedTableError(_NOT_FOLLOWED.format(path))
        return super().load(path, format, schema, **options)

    def _refuse(self, name: str) -> None:
        if is_ours(self._form) or self._hive_acid.named(name) is not None:
            raise UnsupportedTableError(_NOT_FOLLOWED.format(name))


_NOT_FOLLOWED = (
    "{} cannot be read as a stream: read it as it is now, spark.table(…), each time that you want its rows. A stream "
    "can be written to it (writeStream.toTable)"
)


def is_ours(form: str | None) -> bool:
    """Whether a format is the name that the metastore's tables have as one."""
    return form is not None and form.lower() == OURS
