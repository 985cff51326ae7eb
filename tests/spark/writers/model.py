"""What tables hold, in plain Python: rows by the names of their columns, tables by the names that they have now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from tests.spark.reading import Row, canonical

COLUMNS = ("id", "v")
"""The columns of all tables, as they are made."""

KEY = "p"
"""The partition column of those tables that have one."""


class RefusedError(Exception):
    """What a statement asks for cannot be done on this table."""


@dataclass(frozen=True)
class TableModel:
    """One table; `identity` stays with it whatever its name is."""

    identity: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...] = ()
    by_name: bool = False
    """Whether its files have the names of columns, as those of insert-only tables: then values do not follow a new name
    of their column.
    """

    @property
    def is_keyed(self) -> bool:
        return KEY in self.columns

    def having(self, *names: str) -> TableModel:
        """The table itself. Raises RefusedError if it has not these columns."""
        if lacking := [name for name in names if name not in self.columns]:
            raise RefusedError(f"no column {lacking}")
        return self

    def with_rows(self, rows: Iterable[Row]) -> TableModel:
        return replace(self, rows=tuple(rows))

    def with_column(self, name: str) -> TableModel:
        """It with a column more, or as it is if it has it."""
        return self if name in self.columns else replace(self, columns=(*self.columns, name))

    def renamed(self, old: str, new: str) -> TableModel:
        """It with another name for a column, whose values stay."""
        columns = tuple(new if column == old else column for column in self.columns)
        if self.by_name:
            return replace(self, columns=columns)
        rows = ({new if name == old else name: value for name, value in row.items()} for row in self.rows)
        return replace(self, columns=columns, rows=tuple(rows))


World = Mapping[str, TableModel]
"""Name to table."""

Change = Callable[[World], World]


def on(name: str, change: Callable[[TableModel], TableModel]) -> Change:
    """The change of one table as one of all of them, which has to be there. Raises RefusedError if it is not."""

    def changed(world: World) -> World:
        if name not in world:
            raise RefusedError(f"no table {name}")
        return {**world, name: change(world[name])}

    return changed


def content(world: World) -> dict[str, list[str]]:
    """What is compared: the rows of each table, in order."""
    return {
        name: canonical({column: row.get(column) for column in table.columns} for row in table.rows)
        for name, table in world.items()
    }
