"""Which table a name in a statement means: a CTE's, else a temporary view's, else the metastore's, else Spark's.

A name of one part is looked for in the database of `USE`; ``catalog.database.table`` in a catalog of the metastore,
unless Spark has a catalog of that name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.types import StringType

from hive_acid.catalog.about import COLUMNS, AboutTable
from hive_acid.catalog.calls import table_question
from hive_acid.catalog.table import Table, table_from_wire, table_parts
from hive_acid.errors import HiveAcidError, NoSuchObjectError, OtherDatabaseError, SqlError
from hive_acid.spark.jvm.session_settings import word
from hive_acid.spark.jvm.temporary_views import is_temporary_view
from hive_acid.spark.sql.tokens import Name
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import column_type
from hive_acid.spark.verbs.keys import KeyVerbs

DEFAULT_DATABASE = "default"

_SPARK_CATALOG = "spark_catalog"
_HIVE_CATALOG = "hive"
_MOST_AT_ONCE = 100
_DATABASE_OF_SPARKS = "view.catalogAndNamespace.part.1"
"""A view's property by which Spark keeps the database of `USE` in which it was made."""
_DEEPEST = 100
"""So many views may lie in one another, as in Spark."""
_TEMPORARY = ("global_temp", "session", "system")


class DatabaseOfThread(threading.local):
    """The database of `USE`, of each thread its own."""

    name: str = DEFAULT_DATABASE
    sparks: str | None = None
    """Spark's current database, where that is known to be another one than it seems."""

    def use(self, spark: SparkSession, name: str) -> None:
        """Look for names of one part in the metastore's database `name`."""
        self.name = name


class DatabaseOfSession:
    """The database of `USE` of a Spark session, for all its threads: Spark's own goes with it where it has one.

    `name` is empty while another catalog of Spark is the current one.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.name = DEFAULT_DATABASE
        self.sparks: str | None = None
        self._of_spark: tuple[str, str] | None = None
        self.follow_if_moved(spark)

    def use(self, spark: SparkSession, name: str) -> None:
        """As `DatabaseOfThread.use`; of a database that Spark has, too, it is the current one in both."""
        if spark.catalog.currentCatalog() == _SPARK_CATALOG and spark.catalog.databaseExists(quoted(name)):
            spark.catalog.setCurrentDatabase(quoted(name))
            self.follow_if_moved(spark)
        self.name = name

    def follow_if_moved(self, spark: SparkSession) -> None:
        """Take the one that Spark has by now, if that is another one than before."""
        catalog, database = spark.catalog.currentCatalog(), spark.catalog.currentDatabase()
        if self._of_spark != (catalog, database):
            self._of_spark = catalog, database
            self.name = self.sparks = database if catalog == _SPARK_CATALOG else ""


CurrentDatabase = DatabaseOfThread | DatabaseOfSession


class Names:
    """The tables that the names of one statement mean; each is looked up once.

    `beside_spark` is of statements that are given to Spark's own `sql`: what Spark calls its session catalog has the
    metastore's tables, too, and of those in a Spark that reads Hive's plain tables only the transactional ones.
    """

    def __init__(
        self,
        acid: KeyVerbs,
        current: CurrentDatabase,
        *,
        beside_spark: bool = False,
        within: tuple[str, ...] = (),
    ) -> None:
        """`within` are the views around, ``db.view``, in whose text the names stand: none is of a temporary view."""
        self._acid = acid
        self._current = current
        self._beside_spark = beside_spark
        self._within = within
        self._found: dict[tuple[str, ...], Table | None] = {}
        self._looked_up: dict[tuple[str, ...], Table | None] = {}
        self._about: dict[tuple[str, ...], AboutTable | None] = {}
        self._views: dict[tuple[str, ...], Mapping[str, str | None] | None] = {}
        self._to_come: set[str] = set()
        self.makes_ours = False
        """Whether the statement makes something in the metastore, be it there or not."""
        self.missing: Name | None = None
        """The table that the statement is about, which the metastore does not have."""

    def of_view(self, view: Table) -> Names:
        """What names mean in the text of a view. Raises SqlError for one that shows itself, or lies too deep."""
        if view.full_name in self._within or len(self._within) == _DEEPEST:
            raise SqlError(f"the view {view.full_name} shows itself, by {' and '.join(self._within[-3:])}")
        current = DatabaseOfThread()
        current.name = view.parameters.get(_DATABASE_OF_SPARKS, view.database)
        within = (*self._within, view.full_name)
        return Names(self._acid, current, beside_spark=self._beside_spark, within=within)

    @property
    def current_database(self) -> str:
        """The database in which names of one part are looked for."""
        return self._current.name

    def read(self, parts: Sequence[str]) -> Table | None:
        """The metastore's table that is read under a name; None for a temporary view and for what Spark knows."""
        key = tuple(part.lower() for part in parts)
        if key not in self._found:
            table = self._transactional(self._found_or_asked(key))
            self._found[key] = None if table is not None and self._is_temporary_view(key) else table
        return self._found[key]

    def plain(self, parts: Sequence[str]) -> Table | None:
        """The metastore's plain table that Spark reads itself under a name; None for all others."""
        key = tuple(part.lower() for part in parts)
        if self.read(parts) is not None or self._is_temporary_view(key):
            return None
        return self._found_or_asked(key)

    def source(self, parts: Sequence[str]) -> Table | None:
        """As `read`, or what is told about a table of the metastore (`hive_acid.catalog.about`)."""
        table = self.read(parts)
        return self.about(parts) if table is None else table

    def about(self, parts: Sequence[str]) -> AboutTable | None:
        """What a name tells about a table, if no table has that name."""
        key = tuple(part.lower() for part in parts)
        if len(key) < 2 or key[-1] not in COLUMNS:
            return None
        if key not in self._about:
            self._about[key] = self._told(key)
        return self._about[key]

    def _told(self, key: tuple[str, ...]) -> AboutTable | None:
        if self._is_temporary_view(key) or (len(key) == 3 and self._database(key[:-1]) is None):
            return None
        table = self._transactional(self._table(key[:-1]))
        if table is None or table.is_view or (len(key) == 2 and self._is_of_spark(Name(key, 0, 0))):
            return None
        return AboutTable.of(table, key[-1])

    def look_up(self, names: Iterable[Sequence[str]]) -> None:
        """Ask for the tables that `read` will be asked for, all in one round trip."""
        asked = {}
        for parts in names:
            key = tuple(part.lower() for part in parts)
            database = self._database(key[:-1])
            if database is not None and key not in self._found:
                asked[key] = table_question(*self._stored_as(database, key[-1]))
        if len(asked) < 2:
            return
        keys, questions = list(asked), list(asked.values())
        answers = [
            answer
            for first in range(0, len(questions), _MOST_AT_ONCE)
            for answer in self._acid.connection.ask(*questions[first : first + _MOST_AT_ONCE])
        ]
        for key, answer in zip(keys, answers, strict=True):
            if isinstance(answer, NoSuchObjectError):
                self._refuse_gone(key)
                self._looked_up[key] = None
            elif isinstance(answer, HiveAcidError):
                raise answer
            else:
                self._looked_up[key] = self._as_said(key, table_from_wire(answer.table))

    def qualified(self, parts: Sequence[str]) -> str | None:
        """What Spark is to be given for a name that is not ours: it may look in another database than that of `USE`.

        None where it looks in the same.
        """
        key = tuple(part.lower() for part in parts)
        if (
            len(key) > 1
            or key[0] in self._to_come
            or self._is_shared
            or self.read(key) is not None
            or self._is_temporary_view(key)
        ):
            return None
        return f"{quoted(self._current.name)}.{quoted(parts[0])}"

    def expect_view(self, name: str) -> None:
        """Note that there will be a temporary view of this name when Spark looks for it."""
        self._to_come.add(name.lower())

    @property
    def _is_shared(self) -> bool:
        return self._current.sparks in (None, self._current.name)

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
        """The metastore's table whose rows are changed under a name, or None: a temporary view cannot be changed.

        Raises OtherDatabaseError for a name that Spark would look for in another database, SqlError for a view.
        """
        return self._transactional(self.defined_table(name))

    def defined_table(self, name: Name) -> Table | None:
        """As `defined`. Raises SqlError for a view."""
        table = self.defined(name)
        if table is not None and table.is_view:
            raise SqlError(
                f"{table.full_name} is a view, which has no rows of its own: change the tables that it shows, "
                "or the view by ALTER VIEW and DROP VIEW"
            )
        return table

    def defined(self, name: Name) -> Table | None:
        """The metastore's table that is altered under a name, or None, as `written`; plain ones are the metastore's."""
        table = self._table(tuple(part.lower() for part in name.parts))
        if table is None:
            if (about := self.about(name.parts)) is not None:
                raise about.not_written(name)
            self.refuse_hidden(name)
            self.missing = name
        return table

    def refuse_hidden(self, name: Name) -> None:
        """Raise OtherDatabaseError for a name, not of ours, that Spark would look for in another database than ours."""
        if len(name.parts) == 1 and not self._is_shared:
            raise OtherDatabaseError(
                f"the metastore has no table {name} in {self._current.name}, the current database, which Spark does "
                f"not have: of Spark's own tables give the database, too, as {self._current.sparks}.{name}"
            )

    def any_of_metastore(self, names: Sequence[Sequence[str]]) -> bool:
        """Whether the metastore has a table of one of these names which is not Spark's to read."""
        self.look_up(names)
        keys = (tuple(part.lower() for part in parts) for parts in names)
        return any(self._transactional(self._found_or_asked(key)) is not None for key in keys)

    def _found_or_asked(self, key: tuple[str, ...]) -> Table | None:
        return self._looked_up[key] if key in self._looked_up else self._table(key)

    def known(self, name: Name) -> Table:
        """As `defined`. Raises NoSuchObjectError if the metastore has no such table."""
        table = self.defined(name)
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
        if "." in name.parts[-1]:
            raise SqlError(f"`{name.parts[-1]}` is no table's name: it has a dot in it, which stands between names")
        return f"{database}.{name.parts[-1].lower()}"

    def is_ours(self, name: Name) -> bool:
        """Whether a name, of a table that need not exist, belongs to the metastore and not to a catalog of Spark."""
        database = self._database(tuple(part.lower() for part in name.parts[:-1]))
        if database is None or not self._beside_spark:
            return database is not None
        if not self.has_database(database):
            return False
        if self._table(tuple(part.lower() for part in name.parts)) is not None:
            return True
        return not self._is_of_spark(name)

    def has_database(self, name: str) -> bool:
        """Whether the metastore has a database."""
        try:
            self._acid.connection.call("get_database", name)
        except NoSuchObjectError:
            return False
        return True

    def _is_of_spark(self, name: Name) -> bool:
        """Whether Spark has a table of a name that the metastore does not have."""
        if len(name.parts) == 1 and not self._is_shared:
            return False
        text, catalog = ".".join(map(quoted, name.parts)), self._acid.spark.catalog
        return catalog.tableExists(text) and not catalog.getTable(text).isTemporary

    def database(self, name: Name) -> str:
        """A database's name for the metastore's calls. Raises SqlError if it is in a catalog of Spark."""
        database = self._database(tuple(part.lower() for part in name.parts))
        if database is None:
            raise SqlError(f"{name} is no database of the metastore")
        return database

    def _transactional(self, table: Table | None) -> Table | None:
        """A table, unless it is a plain one that Spark reads and writes itself."""
        if table is None or table.is_transactional or table.is_view or not self._beside_spark or table.is_temporary:
            return table
        return None if word(self._acid.spark, "spark.sql.catalogImplementation") == "HIVE" else table

    def _table(self, key: tuple[str, ...]) -> Table | None:
        database = self._database(key[:-1])
        if database is None:
            return None
        try:
            return self._as_said(key, self._acid.connection.table(*self._stored_as(database, key[-1])))
        except NoSuchObjectError:
            self._refuse_gone(key)
            return None

    def _stored_as(self, database: str, name: str) -> tuple[str, str]:
        """Where the metastore has what the session calls ``database.name``; a view's text names no temporary table."""
        place = None if self._within else self._acid.temporary.place(f"{database}.{name}")
        return (database, name) if place is None else table_parts(place)

    def _as_said(self, key: tuple[str, ...], table: Table) -> Table:
        return replace(table, hides_in=self._database(key[:-1])) if table.is_temporary else table

    def _refuse_gone(self, key: tuple[str, ...]) -> None:
        """Raise NoSuchObjectError if a temporary table is not there any more: a stored one is not meant by its name."""
        place = None if self._within else self._acid.temporary.place(f"{self._database(key[:-1])}.{key[-1]}")
        if place is not None:
            raise self._acid.temporary.gone(place)

    def _database(self, qualifier: tuple[str, ...]) -> str | None:
        match qualifier:
            case ():
                return self._current.name or None
            case (database,):
                return None if database in _TEMPORARY else database
            case (catalog, database):
                if catalog == _HIVE_CATALOG or (self._beside_spark and catalog == _SPARK_CATALOG):
                    return database
                # Names of Spark's settings keep their case, and those of catalogs are lower case by custom.
                its_own = self._acid.spark.conf.get(f"spark.sql.catalog.{catalog}", "")
                return None if catalog == _SPARK_CATALOG or its_own else f"@{catalog}#{database}"
            case _:
                return None

    def temporary(self, name: Name) -> str | None:
        """Where the temporary table of that name is stored, be it there still or not; None if there is none."""
        *qualifier, table = (part.lower() for part in name.parts)
        return self._acid.temporary.place(f"{self._database(tuple(qualifier))}.{table}")

    def is_temporary_view(self, name: Name) -> bool:
        """Whether a name is a temporary view's."""
        return self._is_temporary_view(tuple(part.lower() for part in name.parts))

    def _is_temporary_view(self, key: tuple[str, ...]) -> bool:
        if len(key) > 1:
            return key[0] in _TEMPORARY
        if self._within:
            return False
        return is_temporary_view(self._acid.spark, key[0])
