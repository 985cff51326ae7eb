"""What becomes of a statement: the tables and views that it reads, and templates with places for their frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from hive_acid.catalog.table import Table
from hive_acid.spark.read.totals.extremes import Extreme


class KeyWords(NamedTuple):
    """A condition on partition keys of a source: its part of a query's template, and itself with bare names."""

    source: str
    text: str
    bare: str


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that a statement reads, whether with ROW__ID, and what is surely true of the rows that matter.

    `is_undivided` says that a subquery may ask for its rows (`hive_acid.spark.read.undivided`), `totals_of` that only
    their number and these extremes are asked for.
    """

    table: Table
    row_id: bool
    where: str | None
    is_undivided: bool = False
    totals_of: tuple[Extreme, ...] | None = None
    view: ViewQuery | None = None
    """What a view shows; None for a table."""

    @property
    def tables(self) -> list[str]:
        """The tables that are read, ``db.table``: a view's are those of its query."""
        return [self.table.full_name] if self.view is None else tables_of(self.view.sources)


def tables_of(sources: Mapping[str, TableRead]) -> list[str]:
    """The tables that are read at these places, ``db.table``."""
    return [name for source in sources.values() for name in source.tables]


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """The template of a view's query, what stands at its places, and whether it has joins, or names a moment."""

    template: str
    sources: Mapping[str, TableRead]
    joins: bool = False
    names_moment: bool = False


@dataclass(frozen=True, slots=True)
class OtherNames:
    """A template in which names that are not ours have places, too, and what Spark calls them there."""

    template: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """The text of a view, in which each table of the metastore has its database.

    `is_ours` says whether there is one that Spark does not read itself; `plain` are those that it does, and `foreign`
    the names of what is not the metastore's.
    """

    text: str
    is_ours: bool
    plain: tuple[str, ...]
    foreign: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """The table whose rows an expression is about, and the one name by which the verb that takes it knows them."""

    table: Table
    alias: str
    source: tuple[str, ...] = ()
    """By which name, in small letters, columns of the other rows may be called as well, ``database.table``."""

    @property
    def hides_database(self) -> bool:
        """Whether ``database.…`` means a column of that name: by it nobody calls a table that has an alias."""
        columns = self.table.all_columns
        return self.alias.lower() != self.table.name and any(one.name == self.table.called_in for one in columns)
