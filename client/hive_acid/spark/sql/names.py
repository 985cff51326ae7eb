"""Which table a name in a statement means: a CTE's, else a temporary view's, else the metastore's, else Spark's.

A name of one part is looked for in the database of `USE`; ``catalog.database.table`` in a catalog of the metastore,
unless Spark has a catalog of that name.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pyspark.sql.types import StringType

from hive_acid.catalog.table import Table
from hive_acid.errors import NoSuchObjectError, SqlError
from hive_acid.spark.sql.tokens import Name
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import column_type
from hive_acid.spark.verbs.reading import ReadVerbs

DEFAULT_DATABASE = "default"

_SPARK_CATALOG = "spark_catalog"
_HIVE_CATALOG = "hive"
_TEMPORARY = ("global_temp", "session", "system")


class CurrentDatabase(threading.local):
    """The database of `USE`, of each thread its own."""

    name: str = DEFAULT_DATABASE


class Names:
    """The tables that the names of one statement mean; each is looked up once."""

    def __init__(self, acid: ReadVerbs, current: CurrentDatabase) -> None:
        self._acid = acid
        self._current = current
        self._found: dict[tuple[str, ...], Table | None] = {}
        self._views: dict[tuple[str, ...], Mapping[str, str | None] | None] = {}

    @property
    def current_database(self) -> str:
        """The database in which names of one part are looked for."""
        return self._current.name

    def read(self, parts: Sequence[str]) -> Table | None:
        """The metastore's table that is read under a name; None for a temporary view and for what Spark knows."""
        key = tuple(part.lower() for part in parts)
        if key not in self._found:
            self._found[key] = None if self._is_temporary_view(key) else self._table(key)
        return self._found[key]

    def types_of_view(self, parts: Sequence[str]) -> Mapping[str, str | None] | None:
        """The types of the columns with texts in a temporary view, in which the others have none; None for no view."""
        key = tuple(part.lower() for part in parts)
        if key not in self._views:
            self._views[key] = self._types(key) if self.read(key) is None and self._is_temporary_view(key) else None
        return self._views[key]

    def _types(self, view: tuple[str, ...]) -> dict[str, str | None]:
        fields = self._acid.spark.table(".".join(map(quoted, view))).schema.fields
        return {of.name.lower(): column_type(of) if of.dataType == StringType() else None for of in fields}

    def written(self, name: Name) -> Table | None:
        """The metastore's table that is changed under a name, or None: a temporary view cannot be changed."""
        return self._table(tuple(part.lower() for part in name.parts))

    def known(self, name: Name) -> Table:
        """As `written`. Raises NoSuchObjectError if the metastore has no such table."""
        table = self.written(name)
        if table is None:
            raise NoSuchObjectError(f"the metastore has no table {self.full(name)}")
        return table

    def table_of(self, parts: Sequence[str]) -> Table:
        """As `known`, for statements that are no SQL of Spark (`hive_acid.operators.lookups`)."""
        return self.known(Name(tuple(parts), 0, 0))

    def database_of(self, parts: Sequence[str]) -> str:
        """As `database`, for the same."""
        return self.database(Name(tuple(parts), 0, 0))

    def full(self, name: Name) -> str:
        """``database.table`` for a table of the metastore, as the session's verbs take it. Raises SqlError."""
        database = self._database(tuple(part.lower() for part in name.parts[:-1]))
        if database is None:
            raise SqlError(f"{name} is no table of the metastore: give database.table")
        return f"{database}.{name.parts[-1].lower()}"

    def is_ours(self, name: Name) -> bool:
        """Whether a name, of a table that need not exist, belongs to the metastore and not to a catalog of Spark."""
        return self._database(tuple(part.lower() for part in name.parts[:-1])) is not None

    def database(self, name: Name) -> str:
        """A database's name for the metastore's calls. Raises SqlError if it is in a catalog of Spark."""
        database = self._database(tuple(part.lower() for part in name.parts))
        if database is None:
            raise SqlError(f"{name} is no database of the metastore")
        return database

    def _table(self, key: tuple[str, ...]) -> Table | None:
        database = self._database(key[:-1])
        if database is None:
            return None
        try:
            return self._acid.connection.table(database, key[-1])
        except NoSuchObjectError:
            return None

    def _database(self, qualifier: tuple[str, ...]) -> str | None:
        match qualifier:
            case ():
                return self._current.name
            case (database,):
                return None if database in _TEMPORARY else database
            case (catalog, database):
                if catalog == _HIVE_CATALOG:
                    return database
                # Names of Spark's settings keep their case, and those of catalogs are lower case by custom.
                its_own = self._acid.spark.conf.get(f"spark.sql.catalog.{catalog}", "")
                return None if catalog == _SPARK_CATALOG or its_own else f"@{catalog}#{database}"
            case _:
                return None

    def _is_temporary_view(self, key: tuple[str, ...]) -> bool:
        if len(key) > 1:
            return key[0] in _TEMPORARY
        name, catalog = quoted(key[0]), self._acid.spark.catalog
        return catalog.tableExists(name) and catalog.getTable(name).isTemporary
