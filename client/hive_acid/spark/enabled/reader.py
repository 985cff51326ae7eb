"""`spark.read` and `spark.readStream` of a session that is joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from hive_acid.errors import NoSuchObjectError, UnsupportedTableError
from hive_acid.spark.enabled.joined import OURS, EnabledSession
from hive_acid.spark.stream_source.batch_limit import BYTES, FILES
from hive_acid.spark.stream_source.start import OPTION

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader as _Reader
    from pyspark.sql.streaming.readwriter import DataStreamReader as _StreamReader
else:
    _Reader = _StreamReader = object


_OF_STREAMS = {OPTION.lower(): "start", FILES.lower(): "max_files", BYTES.lower(): "max_bytes"}
"""Options of streams, and the arguments of `read_stream` that they are."""


class JoinedReader(_Reader):
    """Reads the metastore's tables by `table`, and by ``format("hive_acid").load("db.t")``."""

    _hive_acid: EnabledSession
    _form: str | None = None
    _told: tuple[str, ...] = ()
    """What the reader has been told beside a table's name."""

    def format(self, source: str) -> DataFrameReader:
        self._form = source
        return super().format(source)

    def schema(self, schema: Any) -> DataFrameReader:
        self._told += ("a schema",)
        return super().schema(schema)

    def option(self, key: str, value: Any) -> DataFrameReader:
        self._told += (f"option {key}",)
        return super().option(key, value)

    def options(self, **options: Any) -> DataFrameReader:
        self._told += tuple(f"option {key}" for key in options)
        return super().options(**options)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        found = self._hive_acid.rows_of(tableName, must_be=is_ours(self._form))
        if found is None:
            return super().table(self._hive_acid.sparks(tableName))
        self._refuse_told(tableName)
        return found

    def _refuse_told(self, name: str) -> None:
        """Raise UnsupportedTableError for options: one that is passed by might have asked for other rows."""
        if self._told:
            raise UnsupportedTableError(
                f"{name} is read without {', '.join(dict.fromkeys(self._told))}: its rows are those of now, with its "
                "own columns. `with acid.snapshot():` holds a state for several reads, and select, where and cast "
                "change what is seen"
            )

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        if not is_ours(self._form if format is None else format):
            return super().load(path, format, schema, **options)
        if not isinstance(path, str):
            raise ValueError('a table has a name: spark.read.format("hive_acid").load("database.table")')
        found = self._hive_acid.rows_of(path, must_be=True)
        assert found is not None
        self._told += (*(f"option {key}" for key in options), *(() if schema is None else ("a schema",)))
        self._refuse_told(path)
        return found


class JoinedStreamReader(_StreamReader):
    """Follows the metastore's tables by `table`, and by ``format("hive_acid").load("db.t")``."""

    _hive_acid: EnabledSession
    _form: str | None = None
    _has_schema: bool = False

    def format(self, source: str) -> DataStreamReader:
        self._form = source
        return super().format(source)

    def schema(self, schema: Any) -> DataStreamReader:
        self._has_schema = True
        return super().schema(schema)

    def option(self, key: str, value: Any) -> DataStreamReader:
        self._given()[key] = value
        return super().option(key, value)

    def options(self, **options: Any) -> DataStreamReader:
        self._given().update(options)
        return super().options(**options)

    def table(self, tableName: str) -> DataFrame:  # noqa: N803 - Spark's name
        found = self._followed(tableName, must_be=is_ours(self._form))
        return super().table(self._hive_acid.sparks(tableName)) if found is None else found

    def load(self, path: Any = None, format: str | None = None, schema: Any = None, **options: Any) -> DataFrame:  # noqa: A002
        if not is_ours(self._form if format is None else format):
            return super().load(path, format, schema, **options)
        if not isinstance(path, str):
            raise ValueError('a table has a name: spark.readStream.format("hive_acid").load("database.table")')
        self._given().update(options)
        self._has_schema |= schema is not None
        found = self._followed(path, must_be=True)
        assert found is not None
        return found

    def _followed(self, name: str, *, must_be: bool) -> DataFrame | None:
        table = self._hive_acid.named(name)
        if table is None:
            if must_be:
                raise NoSuchObjectError(f"the metastore has no table {name}")
            return None
        if self._has_schema:
            raise ValueError(f"{name} has its own columns: leave out the schema")
        words: dict[str, Any] = {}
        for key, value in self._given().items():
            argument = _OF_STREAMS.get(key.lower())
            if argument is None:
                raise ValueError(f"the stream of a table takes no option {key}, only {OPTION}, {FILES} and {BYTES}")
            words[argument] = value
        return self._hive_acid.read_stream(table, **words)

    def _given(self) -> dict[str, Any]:
        """The options by their names, as far as they have been told to this reader."""
        found: dict[str, Any] = vars(self).setdefault("_options_of_stream", {})
        return found


def is_ours(form: str | None) -> bool:
    """Whether a format is the name that the metastore's tables have as one."""
    return form is not None and form.lower() == OURS
