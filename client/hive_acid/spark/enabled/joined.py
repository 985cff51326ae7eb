"""The session of hive-acid that is joined to a Spark session: what names mean there, and both ends of the join."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import NoSuchObjectError, SqlError
from hive_acid.spark.session import AcidSession
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.names import DatabaseOfSession
from hive_acid.spark.sql.statements.dispatch import Sql
from hive_acid.spark.sql.tokens import Cursor, Name
from hive_acid.spark.verbs.reading import Frame

OURS = "hive_acid"
"""What ``format`` and ``using`` call a table of the metastore."""

_FORMATS = frozenset({None, OURS, "orc"})
"""Of new tables: those that are the metastore's."""

ATTRIBUTE = "_hive_acid"
"""Where a Spark session that is joined keeps the session of hive-acid."""


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """What a name means to which rows are written: a table, or one of the metastore that is not there yet."""

    table: Table | None
    full_name: str
    called: str
    """The last part of the name, as it was written."""


class EnabledSession(AcidSession):
    """An `AcidSession` whose tables are also there by Spark's own words, until `disable`.

    Inside, hive-acid works on a twin of the Spark session, to which nothing is joined: what it gives Spark to run is
    not looked through once more.
    """

    def __init__(self, spark: SparkSession, connection: Connection, **options: Any) -> None:
        twin = _twin(spark)
        super().__init__(twin, connection, **options)
        self._current = DatabaseOfSession(twin)
        self._sql = Sql(self, self._blocks, self._current, beside_spark=True)
        self._joined_to = spark
        self.options = options
        """What the session was made with, for others like it."""
        self.joins: Callable[[SparkSession], EnabledSession] | None = None
        """How a clone of the Spark session is joined to the same metastore."""
        self._undo: Callable[[], None] | None = None
        self._is_clone = False
        self.owns_connection = True
        """Whether the connection is of this session alone, and is closed when Spark stops."""
        setattr(twin, ATTRIBUTE, self)

    # --- the join ------------------------------------------------------------------------------

    @property
    def is_enabled(self) -> bool:
        """Whether the Spark session is joined still."""
        return self._undo is not None

    def begin_join(self, undo: Callable[[], None]) -> None:
        """Note that the session is joined, by what `undo` takes back."""
        self._undo = undo

    def disable(self) -> None:
        """Leave the Spark session as it was before `hive_acid.spark.enable`; this session stays open, and so do its
        frames, but for temporary tables, which go. A second call does nothing.
        """
        undo, self._undo = self._undo, None
        if undo is not None:
            self.kept.clear()
            self._end_temporary()
            undo()

    def share_temporary(self, acid: EnabledSession) -> None:
        """Have the temporary tables of `acid`, of which this session is a clone: they stay when this one ends."""
        self._definitions.temporary = acid.temporary
        self._is_clone = True

    def _end_temporary(self) -> None:
        if not self._is_clone:
            super()._end_temporary()

    def close(self) -> None:
        """Disable, and close the connection; snapshots that are still held end with it."""
        self.disable()
        super().close()

    # --- as AcidSession has it, with frames of the Spark session that is joined ----------------------

    def sql(self, text: str, args: Arguments = None, **frames: Any) -> DataFrame:
        """As `AcidSession.sql`. A statement that names nothing of the metastore, and is not understood, is Spark's."""
        return self._handed_out(super().sql(text, args, **frames))

    def _handed_out(self, frame: Frame) -> Frame:
        vars(frame)["_session"] = self._joined_to
        return frame

    # --- names ---------------------------------------------------------------------------------

    @property
    def current(self) -> DatabaseOfSession:
        """The database in which names of one part are looked for."""
        return self._current

    def named(self, name: str) -> Table | None:
        """The metastore's table that is read by a name; None if that is a temporary view's, or Spark's."""
        written = self._written(name)
        return None if written is None else self._sql.names().read(written.parts)

    def rows_of(self, name: str, *, must_be: bool = False) -> DataFrame | None:
        """The table of that name as it is now; None if it is not the metastore's, unless it `must_be`.

        Raises NoSuchObjectError.
        """
        written = self._written(name)
        table = None if written is None else self._sql.names().source(written.parts)
        if table is None and must_be:
            raise NoSuchObjectError(f"the metastore has no table {name}")
        return None if table is None else self.table(table)

    def sparks(self, name: str) -> str:
        """What Spark is to be given for a name that is not ours, which it may look for in another database."""
        written = self._written(name)
        return (written and self._sql.names().qualified(written.parts)) or name

    def target(self, name: str, form: str | None = None, *, must_be: bool = False) -> WriteTarget | None:
        """What is written to under a name: a table of the metastore, or one that would be made in it by `form`.

        None for what is Spark's. Raises NoSuchObjectError if it `must_be` there.
        """
        written = self._written(name)
        if written is None:
            return None
        names = self._sql.names()
        table = names.written(written)
        if table is not None:
            return WriteTarget(table, table.full_name, written.parts[-1])
        if names.defined(written) is not None:  # a plain one, which is Spark's
            return None
        if (None if form is None else form.lower()) not in _FORMATS or not names.is_ours(written):
            return None
        if must_be:
            raise NoSuchObjectError(f"the metastore has no table {name}")
        return WriteTarget(None, names.full(written), written.parts[-1])

    def database(self, name: str) -> str | None:
        """The metastore's database of that name, None if it has none."""
        written = self._written(name)
        names = self._sql.names()
        try:
            found = None if written is None else names.database(written)
        except SqlError:
            return None
        return found if found is not None and names.has_database(found) else None

    def _written(self, name: object) -> Name | None:
        """A name's parts; None for what is none, of which Spark says what is wrong."""
        if not self.is_enabled or not isinstance(name, str):
            return None
        try:
            cursor = Cursor(name)
            found = cursor.name()
        except SqlError:
            return None
        return found if cursor.at_end else None


def joined_to(spark: object) -> EnabledSession | None:
    """The session of hive-acid that is joined to a Spark session, if one is."""
    found: EnabledSession | None = vars(spark).get(ATTRIBUTE)
    return found if found is not None and found.is_enabled else None


class _Twin:
    """A Spark session over Connect that is another's twin: it closes nothing when it goes."""

    def __del__(self) -> None:
        pass


def _twin(spark: SparkSession) -> SparkSession:
    """Another object for the same session of Spark."""
    if "_jsparkSession" in vars(spark):
        return copy.copy(spark)
    kind = type(spark)
    twin: SparkSession = object.__new__(type(kind.__name__, (_Twin, kind), {"__module__": kind.__module__}))
    vars(twin).update(vars(spark))
    return twin
