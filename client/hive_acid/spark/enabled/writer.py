"""`df.write` and `df.writeTo` of frames of a session that is joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.errors import AlreadyExistsError, ColumnError
from hive_acid.spark.enabled.joined import EnabledSession, WriteTarget
from hive_acid.spark.enabled.reader import is_ours
from hive_acid.spark.enabled.rows import Rows, flat, names_of_columns
from hive_acid.spark.enabled.told import ToldFormat, ToldOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrameWriter as _Writer
    from pyspark.sql import DataFrameWriterV2 as _WriterV2
else:
    _Writer = _WriterV2 = object


_MODES = frozenset({"append", "overwrite", "ignore", "error", "errorifexists", "default"})


class JoinedWriter(ToldFormat, _Writer):
    """Spark's writer, of which `saveAsTable` and `insertInto` know the metastore's tables."""

    _hive_acid: EnabledSession
    _frame: DataFrame
    _mode: str = "error"

    def mode(self, saveMode: str | None) -> Any:  # noqa: N803 - Spark's name
        super().mode(saveMode)
        if saveMode is not None:
            self._mode = saveMode.lower()
        return self

    def bucketBy(self, numBuckets: int, col: Any, *cols: Any) -> Any:  # noqa: N802, N803
        super().bucketBy(numBuckets, col, *cols)
        self._new.buckets, self._new.clustered_by = numBuckets, tuple(flat([col, *cols]))
        return self

    def sortBy(self, col: Any, *cols: Any) -> Any:  # noqa: N802
        super().sortBy(col, *cols)
        self._new.is_sorted = True
        return self

    def clusterBy(self, *cols: Any) -> Any:  # noqa: N802
        super().clusterBy(*cols)
        self._new.is_sorted = True
        return self

    def save(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - Spark's names
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        if is_ours(self._form if format is None else format):
            if not isinstance(path, str):
                raise ValueError('a table has a name: df.write.format("hive_acid").save("database.table")')
            self.saveAsTable(path, format, mode, partitionBy, **options)
        else:
            super().save(path, format, mode, partitionBy, **options)

    def saveAsTable(  # noqa: N802
        self,
        name: str,
        format: str | None = None,  # noqa: A002 - Spark's names
        mode: str | None = None,
        partitionBy: Any = None,  # noqa: N803
        **options: Any,
    ) -> None:
        self.mode(mode).options(**options)
        if partitionBy is not None:
            self.partitionBy(partitionBy)
        if format is not None:
            self.format(format)
        target = self._hive_acid.target(name, self._form)
        if target is None:
            super().saveAsTable(name)
            return
        if self._mode not in _MODES:  # over Connect, Spark would say so
            raise ValueError(f"mode '{self._mode}' is none of {', '.join(sorted(_MODES))}")
        rows = Rows(self._hive_acid, target, self._frame, self._new)
        if target.table is None:
            rows.create()
        elif self._mode == "append":
            rows.append()
        elif self._mode == "overwrite":
            rows.overwrite_all()
        elif self._mode != "ignore":
            raise AlreadyExistsError(
                f'table {target.full_name} exists already: mode("append") adds to its rows, mode("overwrite") '
                "replaces them"
            )

    def insertInto(self, tableName: str, overwrite: bool | None = None) -> None:  # noqa: N802, N803
        if overwrite is not None:
            self.mode("overwrite" if overwrite else "append")
        target = self._hive_acid.target(tableName)
        if target is None or target.table is None:
            super().insertInto(tableName)
            return
        self._new.check()
        if self._new.keys:
            raise ColumnError(f"insertInto takes {target.full_name} as it is partitioned: leave partitionBy out")
        words = "OVERWRITE" if self._mode == "overwrite" else "INTO"
        self._hive_acid.sql(f"INSERT {words} TABLE {tableName} SELECT * FROM {{rows}}", rows=self._frame)


class JoinedWriterV2(ToldOptions, _WriterV2):
    """Spark's `DataFrameWriterV2`, for a table of the metastore or for one of Spark's."""

    _hive_acid: EnabledSession
    _frame: DataFrame
    _name: str

    def using(self, provider: str) -> Any:
        super().using(provider)
        self._form = provider
        return self

    def tableProperty(self, property: str, value: str) -> Any:  # noqa: A002, N802
        super().tableProperty(property, value)
        self._new.properties[property] = value
        return self

    def partitionedBy(self, col: Any, *cols: Any) -> Any:  # noqa: N802
        super().partitionedBy(*(F.col(one) if isinstance(one, str) else one for one in (col, *cols)))
        self._new.keys = (col, *cols)
        return self

    def clusterBy(self, col: str, *cols: str) -> Any:  # noqa: N802
        super().clusterBy(col, *cols)
        self._new.is_sorted = True
        return self

    def append(self) -> None:
        rows = self._rows()
        if rows is None:
            super().append()
        else:
            rows.append()

    def overwrite(self, condition: Any) -> None:
        rows = self._rows()
        if rows is None:
            super().overwrite(condition)
        else:
            rows.overwrite(condition)

    def overwritePartitions(self) -> None:  # noqa: N802
        rows = self._rows()
        if rows is None:
            super().overwritePartitions()
        else:
            rows.overwrite_partitions()

    def create(self) -> None:
        rows = self._rows(makes=True)
        if rows is None:
            super().create()
        else:
            rows.create()

    def replace(self) -> None:
        rows = self._rows(makes=True)
        if rows is None:
            super().replace()
        else:
            rows.replace()

    def createOrReplace(self) -> None:  # noqa: N802
        target = self._target(makes=True)
        rows = self._rows(makes=True)
        if target is None or rows is None:
            super().createOrReplace()
        elif target.table is None:
            rows.create()
        else:
            rows.replace()

    def _target(self, *, makes: bool) -> WriteTarget | None:
        target = self._hive_acid.target(self._name, self._form)
        return None if target is None or (target.table is None and not makes) else target

    def _rows(self, *, makes: bool = False) -> Rows | None:
        """The rows on their way into a table of ours; None if it is not, or is none yet and is not to be made."""
        target = self._target(makes=makes)
        if target is None:
            return None
        self._new.keys = names_of_columns(self._new.keys, self._frame)
        return Rows(self._hive_acid, target, self._frame, self._new)
