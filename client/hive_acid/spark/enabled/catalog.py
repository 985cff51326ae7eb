"""`spark.catalog` of a session that is joined: the metastore's databases and tables, beside Spark's."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.catalog import Column, Database, Table
from pyspark.sql.types import StructType

from hive_acid.catalog import table as tables
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.spark.enabled.joined import EnabledSession
from hive_acid.spark.sql.statements.show import definition_of, fits
from hive_acid.spark.values.quoting import quoted

if TYPE_CHECKING:
    from pyspark.sql.catalog import Catalog as _Base
else:
    _Base = object

_CATALOG = "spark_catalog"
_TYPES = {"MANAGED_TABLE": "MANAGED", "EXTERNAL_TABLE": "EXTERNAL", "VIRTUAL_VIEW": "VIEW"}


class JoinedCatalog(_Base):
    """What `spark.catalog` says of the metastore's databases and tables is ours, all else is Spark's."""

    _hive_acid: EnabledSession

    # --- databases -----------------------------------------------------------------------------

    def setCurrentCatalog(self, catalogName: str) -> None:  # noqa: N802, N803 - Spark's names
        super().setCurrentCatalog(catalogName)
        self._hive_acid.current.follow_if_moved(self._hive_acid.spark)

    def currentDatabase(self) -> str:  # noqa: N802
        acid = self._hive_acid
        return (acid.is_enabled and acid.current.name) or super().currentDatabase()

    def setCurrentDatabase(self, dbName: str) -> None:  # noqa: N802, N803
        acid = self._hive_acid
        database = acid.database(dbName)
        if database is not None:
            acid.current.use(acid.spark, database)
            return
        super().setCurrentDatabase(dbName)
        acid.current.follow_if_moved(acid.spark)

    def listDatabases(self, pattern: str | None = None) -> list[Database]:  # noqa: N802
        acid = self._hive_acid
        sparks = super().listDatabases(pattern)
        if not acid.is_enabled or super().currentCatalog() != _CATALOG:
            return sparks
        names = acid.connection.call("get_databases", pattern or "*")
        ours = [_database(acid, name) for name in names]
        return sorted([*ours, *(one for one in sparks if one.name not in set(names))], key=lambda one: one.name)

    def getDatabase(self, dbName: str) -> Database:  # noqa: N802, N803
        database = self._hive_acid.database(dbName)
        return super().getDatabase(dbName) if database is None else _database(self._hive_acid, database)

    def databaseExists(self, dbName: str) -> bool:  # noqa: N802, N803
        return self._hive_acid.database(dbName) is not None or super().databaseExists(dbName)

    # --- tables --------------------------------------------------------------------------------

    def listTables(self, dbName: str | None = None, pattern: str | None = None) -> list[Table]:  # noqa: N802, N803
        acid = self._hive_acid
        database = acid.database(quoted(self.currentDatabase()) if dbName is None else dbName)
        if database is None:
            return super().listTables(dbName, pattern)
        found = acid.connection.call("get_table_meta", database, pattern or "*", [])
        ours = [_listed(database, one.tableName, one.tableType, one.comments) for one in found]
        temporary = {name for name in acid.temporary.names(database) if fits(pattern or "*")(name)}
        ours = [one for one in ours if one.name not in temporary]
        ours += [_listed(database, name, None, None, is_temporary=True) for name in temporary]
        names = {one.name for one in ours}
        in_spark = super().databaseExists(quoted(database))
        place = quoted(database if in_spark else super().currentDatabase())
        try:
            sparks = super().listTables(place, pattern)
        except AnalysisException:  # before 4.2 a table that Spark's Hive client may not read spoils the list of all
            sparks = self._listed_by_name(place, pattern or "*", names)
        kept = [one for one in sparks if one.isTemporary or (in_spark and one.name not in names)]
        return sorted([*ours, *kept], key=lambda one: one.name)

    def _listed_by_name(self, place: str, pattern: str, ours: Collection[str]) -> list[Table]:
        """Spark's temporary views, and the tables that it has in a database but for `ours`, each asked for alone."""
        if "'" in pattern or "\\" in pattern:  # no name has them
            return []
        found = self._hive_acid.spark.sql(f"SHOW TABLES IN {place} LIKE '{pattern}'").collect()
        named = [("" if one.isTemporary else f"{place}.") + quoted(one.tableName) for one in found]
        return [
            super(JoinedCatalog, self).getTable(name)
            for name, one in zip(named, found, strict=True)
            if one.isTemporary or one.tableName not in ours
        ]

    def getTable(self, tableName: str) -> Table:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        if table is None:
            return super().getTable(self._hive_acid.sparks(tableName))
        comment = table.parameters.get("comment")
        return _listed(table.called_in, table.name, table.table_type, comment, is_temporary=table.is_temporary)

    def tableExists(self, tableName: str, dbName: str | None = None) -> bool:  # noqa: N802, N803
        name = _within(tableName, dbName)
        if self._hive_acid.named(name) is not None:
            return True
        return (
            super().tableExists(self._hive_acid.sparks(tableName))
            if dbName is None
            else super().tableExists(tableName, dbName)
        )

    def listColumns(self, tableName: str, dbName: str | None = None) -> list[Column]:  # noqa: N802, N803
        table = self._hive_acid.named(_within(tableName, dbName))
        if table is None:
            return (
                super().listColumns(self._hive_acid.sparks(tableName))
                if dbName is None
                else super().listColumns(tableName, dbName)
            )
        return [_column(table, column) for column in table.all_columns]

    def createTable(  # noqa: N802
        self,
        tableName: str,  # noqa: N803
        path: str | None = None,
        source: str | None = None,
        schema: StructType | None = None,
        description: str | None = None,
        **options: str,
    ) -> DataFrame:
        acid = self._hive_acid
        target = acid.target(tableName, source)
        if target is None or (path is not None and schema is None):
            return super().createTable(tableName, path, source, schema, description, **options)
        if schema is None:
            raise ColumnError(f"{target.full_name} needs columns: give a schema")
        comment = {} if description is None else {"comment": description}
        acid.create_table(target.full_name, schema, location=path, properties={**comment, **options})
        return acid.table(target.full_name)

    # Those that PySpark has from 4.3 on.

    def dropTable(self, tableName: str, ifExists: bool = False, purge: bool = False) -> None:  # noqa: N802, N803
        target = self._existing(tableName)
        if target is None:
            super().dropTable(tableName, ifExists, purge)
        else:
            self._hive_acid.drop_table(target.full_name, purge=purge)

    def createDatabase(self, dbName: str, ifNotExists: bool = False, properties: Any = None) -> None:  # noqa: N802, N803
        if not self._hive_acid.is_enabled:
            super().createDatabase(dbName, ifNotExists, properties)
            return
        words = dict(properties or {})
        self._hive_acid.create_database(
            dbName.strip("`"),
            location=words.pop("location", None),
            comment=words.pop("comment", None),
            properties=words,
            if_not_exists=ifNotExists,
        )

    def dropDatabase(self, dbName: str, ifExists: bool = False, cascade: bool = False) -> None:  # noqa: N802, N803
        database = self._hive_acid.database(dbName)
        if database is None:
            super().dropDatabase(dbName, ifExists, cascade)
        else:
            self._hive_acid.drop_database(database, cascade=cascade)

    def listPartitions(self, tableName: str) -> Any:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        if table is None:
            return super().listPartitions(self._hive_acid.sparks(tableName))
        from pyspark.sql.catalog import TablePartition

        return [TablePartition(name) for name in sorted(self._hive_acid.connection.partition_names(table))]

    def getTableProperties(self, tableName: str) -> dict[str, str]:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        return (
            super().getTableProperties(self._hive_acid.sparks(tableName)) if table is None else dict(table.parameters)
        )

    def getCreateTableString(self, tableName: str, asSerde: bool = False) -> str:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        return (
            super().getCreateTableString(self._hive_acid.sparks(tableName), asSerde)
            if table is None
            else definition_of(table)
        )

    def truncateTable(self, tableName: str) -> None:  # noqa: N802, N803
        table = self._existing(tableName)
        if table is None:
            super().truncateTable(tableName)
        else:
            self._hive_acid.truncate(table)

    def analyzeTable(self, tableName: str, noScan: bool = False) -> None:  # noqa: N802, N803
        table = self._existing(tableName)
        if table is None:
            super().analyzeTable(tableName, noScan)
        else:
            self._hive_acid.analyze(table)

    # --- what is kept --------------------------------------------------------------------------

    def cacheTable(self, tableName: str, storageLevel: Any = None) -> None:  # noqa: N802, N803
        kept = self._hive_acid.kept
        frame = self._hive_acid.rows_of(tableName)
        if frame is None:
            given = () if storageLevel is None else (storageLevel,)
            super().cacheTable(self._hive_acid.sparks(tableName), *given)
            return
        table = self._hive_acid.named(tableName)
        if table is None:
            raise UnsupportedTableError(f"{tableName} tells about a table: keep its frame, spark.table(…).cache()")
        kept.keep(table, frame, storageLevel)

    def uncacheTable(self, tableName: str) -> None:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        if table is None:
            super().uncacheTable(self._hive_acid.sparks(tableName))
        else:
            self._hive_acid.kept.drop(table)

    def isCached(self, tableName: str) -> bool:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        return super().isCached(self._hive_acid.sparks(tableName)) if table is None else self._hive_acid.kept.has(table)

    def clearCache(self) -> None:  # noqa: N802
        self._hive_acid.kept.clear()
        super().clearCache()

    def refreshTable(self, tableName: str) -> None:  # noqa: N802, N803
        table = self._hive_acid.named(tableName)
        if table is None:
            super().refreshTable(self._hive_acid.sparks(tableName))
        elif self._hive_acid.kept.has(table):
            self._hive_acid.kept.drop(table)
            self._hive_acid.kept.keep(table, self._hive_acid.table(table), None)

    def recoverPartitions(self, tableName: str) -> None:  # noqa: N802, N803
        if self._hive_acid.named(tableName) is None:
            super().recoverPartitions(self._hive_acid.sparks(tableName))
        else:
            self._hive_acid.sql(f"MSCK REPAIR TABLE {tableName}")

    def _existing(self, name: str) -> tables.Table | None:
        target = self._hive_acid.target(name, None)
        return None if target is None else target.table


def _within(name: str, database: str | None) -> str:
    if database is None:
        return name
    warnings.warn("`dbName` has been deprecated since Spark 3.4: give `database.table`", FutureWarning, stacklevel=3)
    return f"{quoted(database)}.{quoted(name)}"


def _database(acid: EnabledSession, name: str) -> Database:
    found = acid.connection.call("get_database", name)
    return Database(found.name, _CATALOG, found.description, found.locationUri or "")


def _listed(database: str, name: str, kind: str | None, comment: str | None, *, is_temporary: bool = False) -> Table:
    told = "TEMPORARY" if is_temporary else _TYPES.get(kind or "", kind or "MANAGED")
    return Table(name, _CATALOG, [database], comment or None, told, is_temporary)


def _column(table: tables.Table, column: tables.Column) -> Column:
    key, bucket = column in table.partition_keys, column.name in table.bucket_columns
    return Column(column.name, column.comment, column.type, True, key, bucket, False)
