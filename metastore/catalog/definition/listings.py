"""Lists of tables: by pattern, type, name and filter. All are ordered by name, and may be long (`store.rows`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Text, and_, any_, cast, func, literal, not_, select
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from hive_acid.format.properties import SESSION_DATABASE, SUCCESSOR
from metastore.catalog import records
from metastore.catalog.definition.table_filters import table_condition
from metastore.catalog.models import Table, TableSummary
from metastore.catalog.names import database_key, database_regex, fold, is_plain_name, pattern_regex
from metastore.catalog.schema import TBL
from metastore.store.database import Database
from metastore.store.rows import Rows

STORAGE = frozenset({"columns", "partition_keys", "storage"})
PARAMETERS = frozenset({"parameters"})
DETAILS = frozenset({"details"})
"""The large columns of a table's row, which a list leaves empty where it is told that they are not needed."""

_EMPTY: dict[str, Any] = {"columns": [], "partition_keys": [], "storage": {}, "parameters": {}, "details": {}}


class Listings:
    """The tables and views of all databases; a database that does not exist has none."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def named(self, database: str, names: Sequence[str], needed: Collection[str] | None = None) -> Rows[Table]:
        """The tables of those names that exist."""
        wanted = cast(literal([fold(name) for name in names], ARRAY(Text)), ARRAY(Text))
        return self._tables(TBL.c.database == fold(database), TBL.c.name == any_(wanted), needed=needed)

    def matching(
        self,
        database: str,
        pattern: str | None = None,
        limit: int | None = None,
        needed: Collection[str] | None = None,
    ) -> Rows[Table]:
        """The tables of a database whose name matches a pattern (None: all)."""
        return self._tables(TBL.c.database == fold(database), *_listed(pattern), limit=limit, needed=needed)

    def everywhere(
        self, catalog: str, databases: str | None, pattern: str, needed: Collection[str] | None = None
    ) -> Rows[Table]:
        """The tables that match a pattern, of a catalog's databases that match one (None: all)."""
        return self._tables(_in_databases(catalog, databases), *_listed(pattern), needed=needed)

    def names(self, database: str, pattern: str | None = None, table_type: str | None = None) -> Rows[str]:
        """The names of the tables of a database, by pattern and type (None: all)."""
        conditions = [TBL.c.database == fold(database), *_listed(pattern)]
        if table_type:
            conditions.append(TBL.c.table_type == table_type.upper())
        return self._names(*conditions)

    def filtered(self, database: str, text: str, limit: int | None = None) -> Rows[str]:
        """The names of the tables for which a filter holds (`table_filters`). Raises MetaError for a malformed one."""
        return self._names(TBL.c.database == fold(database), table_condition(text), *_listed(None), limit=limit)

    def summaries(
        self, catalog: str, databases: str | None, tables: str | None, types: Sequence[str]
    ) -> Rows[TableSummary]:
        """What lists show of a catalog's tables that match the patterns (None: all) and, unless empty, the types."""
        columns = TBL.c
        query = select(
            columns.database,
            columns.name,
            columns.table_type,
            columns.parameters["comment"].astext,
            columns.owner,
            columns.owner_type,
        ).where(_in_databases(catalog, databases), *_listed(tables))
        if types:
            query = query.where(columns.table_type.in_(list(types)))
        return Rows(self._db, query.order_by(columns.database, columns.name), lambda row: TableSummary(*tuple(row)))

    def _tables(
        self, *conditions: ColumnElement[bool], limit: int | None = None, needed: Collection[str] | None = None
    ) -> Rows[Table]:
        unneeded = set(_EMPTY) - set(_EMPTY if needed is None else needed)
        columns = [
            literal(_EMPTY[column.name], JSONB).label(column.name) if column.name in unneeded else column
            for column in TBL.c
        ]
        query = select(*columns).where(*conditions).order_by(TBL.c.name)
        return Rows(self._db, query, lambda row: records.table_of(tuple(row)), limit)

    def _names(self, *conditions: ColumnElement[bool], limit: int | None = None) -> Rows[str]:
        return Rows(self._db, select(TBL.c.name).where(*conditions).order_by(TBL.c.name), _first, limit)


def _first(row: Row[Any]) -> str:
    return str(row[0])


def _in_databases(catalog: str, pattern: str | None) -> ColumnElement[bool]:
    if pattern is not None and is_plain_name(pattern):  # an index finds it; Trino asks for one database after the other
        return TBL.c.database == database_key(catalog, fold(pattern))
    of_session = TBL.c.database.startswith(SESSION_DATABASE, autoescape=True)
    return and_(TBL.c.database.regexp_match(database_regex(catalog, pattern)), not_(of_session))


def _listed(pattern: str | None) -> list[ColumnElement[bool]]:
    """That the name matches a pattern (None: all), and is none that will be another one."""
    is_told = not_(func.starts_with(TBL.c.name, SUCCESSOR))
    return [is_told] if pattern in (None, "*") else [TBL.c.name.regexp_match(pattern_regex(pattern)), is_told]
