"""What Spark's writers do to the metastore's tables, in the verbs of `AcidSession`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.errors import AlreadyExistsError, ColumnError, NoSuchObjectError, UnsupportedTableError
from hive_acid.spark.enabled.joined import EnabledSession, WriteTarget
from hive_acid.spark.tables.definition import new_table

_COLUMN = re.compile(r"Column<'(.*)'>")
_EVOLVES = "mergeschema"
_REDEFINES = "overwriteschema"
_PLACE = "path"
_COMPRESSION = "compression"


@dataclass
class NewTable:
    """What a writer has been told of a table that it may make."""

    keys: tuple[str, ...] = ()
    clustered_by: tuple[str, ...] = ()
    buckets: int | None = None
    is_sorted: bool = False
    properties: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """By names in lower case, as Spark has it."""

    def check(self) -> None:
        """Raise UnsupportedTableError for what tables here do not have."""
        if self.is_sorted:
            raise UnsupportedTableError("tables are not sorted: leave sortBy and clusterBy out")
        if unknown := sorted(self.options.keys() - {_EVOLVES, _REDEFINES, _PLACE, _COMPRESSION}):
            raise UnsupportedTableError(
                f"option {', '.join(unknown)} means nothing to a table of the metastore: path, mergeSchema, "
                "overwriteSchema and compression do, tableProperty of writeTo sets properties, and its "
                "overwrite(condition) and overwritePartitions() replace some rows"
            )

    @property
    def evolves(self) -> bool:
        """Whether columns are added that a table lacks."""
        return self._says(_EVOLVES)

    @property
    def redefines(self) -> bool:
        """Whether a table whose rows are all replaced gets the columns of the new ones."""
        return self._says(_REDEFINES)

    def _says(self, option: str) -> bool:
        return str(self.options.get(option, "false")).lower() == "true"

    def words(self) -> dict[str, Any]:
        """The arguments of `create_table_as`."""
        codec = self.options.get(_COMPRESSION)
        return {
            "partitioned_by": self.keys,
            "clustered_by": self.clustered_by,
            "buckets": self.buckets,
            "properties": {**({} if codec is None else {"orc.compress": str(codec).upper()}), **self.properties},
            "location": self.options.get(_PLACE),
        }


class Rows:
    """Rows of a frame on their way into one table of the metastore."""

    def __init__(self, acid: EnabledSession, target: WriteTarget, frame: DataFrame, new: NewTable) -> None:
        new.check()
        self._acid = acid
        self._target = target
        self._frame = frame
        self._new = new

    def table(self) -> Table:
        """The table. Raises NoSuchObjectError if it is not there, ColumnError if it is partitioned otherwise."""
        table = self._there()
        keys = [key.name for key in table.partition_keys]
        if self._new.keys and [key.lower() for key in self._new.keys] != keys:
            raise ColumnError(
                f"{table.full_name} is partitioned by {', '.join(keys) or 'nothing'}, and not by "
                f"{', '.join(self._new.keys)}: leave that out, or overwrite all of it with "
                'option("overwriteSchema", "true")'
            )
        return table

    def _there(self) -> Table:
        if self._target.table is None:
            raise NoSuchObjectError(f"the metastore has no table {self._target.full_name}")
        return self._target.table

    def append(self) -> None:
        """Insert the rows, by the names of their columns."""
        self._acid.insert(self.table(), self._frame, schema_evolution=self._new.evolves)

    def overwrite(self, condition: SparkColumn | str) -> None:
        """Replace the rows for which a condition is true."""
        self._acid.overwrite(self.table(), self._frame, where=condition)

    def overwrite_partitions(self) -> None:
        """Replace the partitions that the rows fall into, or all of a table without partitions."""
        self._acid.overwrite(self.table(), self._frame)

    def overwrite_all(self) -> None:
        """Replace all rows, also those of partitions that no new row falls into.

        Raises ColumnError for other columns, unless they are to be the table's.
        """
        if self._new.redefines:
            replaced = self._there()
            keys = self._new.keys or tuple(key.name for key in replaced.partition_keys)
            self._replace(replaced, replace(self._new, keys=keys))
            return
        table = self.table()
        there = [column.name for column in table.all_columns]
        if set(there) != {name.lower() for name in self._frame.columns}:
            raise ColumnError(
                f"{table.full_name} has columns {', '.join(there)}, and the rows have "
                f'{", ".join(self._frame.columns)}: option("overwriteSchema", "true") makes these the table\'s'
            )
        self._acid.replace_rows(table, self._frame)

    def create(self) -> None:
        """Make the table, with these columns and rows. Raises AlreadyExistsError."""
        if self._target.table is not None:
            raise AlreadyExistsError(f"table {self._target.full_name} exists already")
        self._acid.create_table_as(self._target.full_name, self._frame, **self._new.words())

    def replace(self) -> None:
        """Have these rows in the place of all that are there, in one transaction, in a table that is defined as they
        are; properties are set, too. Raises NoSuchObjectError, and what `replace_table_as` raises.
        """
        self._replace(self._there(), self._new)

    def _replace(self, table: Table, new: NewTable) -> None:
        wanted = new_table(table.full_name, self._frame.schema, **new.words())
        self._acid.replace_table_as(table, wanted, self._frame, properties=new.properties)


def names_of_columns(given: Sequence[object], frame: DataFrame) -> tuple[str, ...]:
    """The columns of `frame` that are meant by names or by Columns. Raises ColumnError for an expression."""
    found = []
    for one in given:
        shown = _COLUMN.fullmatch(str(one))
        name = one if isinstance(one, str) else shown[1].strip("`") if shown else str(one)
        if name.lower() not in (column.lower() for column in frame.columns):
            raise ColumnError(f"{name} is no column of the rows: tables are partitioned by columns, not by expressions")
        found.append(name)
    return tuple(found)


def flat(given: Sequence[Any]) -> list[Any]:
    """Names that are given one by one, or all in a list."""
    return list(given[0]) if len(given) == 1 and isinstance(given[0], list | tuple) else list(given)


def in_lower_case(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as Spark compares them; those that are None are not given."""
    return {key.lower(): value for key, value in options.items() if value is not None}
