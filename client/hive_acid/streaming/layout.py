"""Which partition and which bucket each row belongs to, and its row as a file has it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hive_acid.catalog.constraints import IS_BROKEN
from hive_acid.catalog.partition_values import has_blanks, known_text, partition_text, refuse_reserved
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError, SerializationError, StreamingConnectionError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.files import LONGEST_NAME
from hive_acid.format.hashing import bucket_number, type_parts
from hive_acid.streaming.defaults import defaults_of
from hive_acid.streaming.orc_values import writable
from hive_acid.streaming.types import arrow_type
from hive_acid.streaming.values import stored
from hive_acid.wire import ConstraintKind
from hive_acid.write.staging import Values
from hive_acid.write.table_write import refuse_long_values

_MOST_BYTES = 4
"""Of a letter."""

_KEY_TYPES = frozenset(
    {"boolean", "tinyint", "smallint", "int", "integer", "bigint", "decimal", "numeric", "dec"}
    | {"string", "varchar", "char", "date", "timestamp"}
)


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows of one partition and bucket, in the order they came in; `rows` is an Arrow array of structs."""

    values: Values
    bucket: int
    rows: Any


class Layout:
    """Places the rows of one table; `static` gives the partition keys that records do not have."""

    def __init__(self, table: Table, static: Mapping[str, object]) -> None:
        """Raises StreamingConnectionError for unknown keys, ColumnError for values that do not fit them,
        UnsupportedTableError for types that are not written.
        """
        unknown = sorted({name.lower() for name in static} - {key.name for key in table.partition_keys})
        if unknown:
            raise StreamingConnectionError(f"{table.full_name} has no partition key {', '.join(unknown)}")
        for column in table.columns:
            arrow_type(column.type)
        if odd := [key for key in table.partition_keys if type_parts(key.type)[0] not in _KEY_TYPES]:
            raise UnsupportedTableError(f"{table.full_name} is partitioned by {odd[0].name} of type {odd[0].type}")
        given = {name.lower(): value for name, value in static.items()}
        if len(given) < len(static):
            raise StreamingConnectionError(f"{table.full_name}: a partition key is given twice: {', '.join(static)}")
        self._table = table
        self._static = {
            key.name: partition_text(table, key, given[key.name]) for key in table.partition_keys if key.name in given
        }
        self.dynamic_keys = tuple(key for key in table.partition_keys if key.name not in given)
        if checks := [one for one in table.enforced if one.kind is ConstraintKind.CHECK]:
            raise UnsupportedTableError(
                f"{table.full_name} has CHECK constraint {checks[0].name}, which only Spark asks: insert the rows with "
                "Spark"
            )
        self.defaults = defaults_of(table)
        self._not_null = {one.columns[0]: one for one in table.enforced}
        for name in self._static:
            self._refuse_null(name, 0 if self._static[name] else 1)
        self._types = {column.name: column.type for column in table.all_columns}
        if self.static_values is not None:
            self._refuse_long(self.static_values)
        if table.bucket_columns and table.bucketing_version != 2:
            raise UnsupportedTableError(
                f"{table.full_name} places its rows by the older one of Hive's hashes (bucketing_version=1), by which "
                "hive-acid does not write"
            )

    @property
    def columns(self) -> dict[str, str]:
        """Names and Hive types of a record's columns: the table's, then the dynamic partition keys."""
        return {column.name: column.type for column in (*self._table.columns, *self.dynamic_keys)}

    @property
    def static_values(self) -> Values | None:
        """The one partition of all rows; None if there are no partitions, or rows decide."""
        if self.dynamic_keys or not self._table.partition_keys:
            return None
        return tuple(self._static.values())

    def place(self, given: Any) -> list[Placed]:
        """The rows of an Arrow table that has `columns`. Raises SerializationError for a value that cannot be stored.

        Bucket 0 is the only one of a table that is not CLUSTERED.
        """
        if not given.num_rows:
            return []
        table = self._table
        typed = {
            column.name: stored(given.column(column.name), column.type, f"{table.full_name}.{column.name}")
            for column in table.columns
        }
        for name, array in typed.items():
            self._refuse_null(name, array.null_count)
        marks: list[Sequence[Any]] = [_partition_texts(given.column(key.name), table, key) for key in self.dynamic_keys]
        for key, texts in zip(self.dynamic_keys, marks, strict=True):
            self._refuse_null(key.name, sum(text is None for text in texts))
        if table.bucket_columns:
            marks.append(self._buckets(typed))
        rows = row_array(table, typed)
        if not marks:
            return [self._placed((), rows)]
        placed = [self._placed(mark, of) for mark, of in divided(rows, marks).items()]
        try:
            for one in placed if self.dynamic_keys else ():
                self._refuse_long(one.values)
        except ColumnError as error:
            raise SerializationError(str(error)) from None
        return placed

    def _refuse_null(self, name: str, nulls: int) -> None:
        """Raise SerializationError for nulls in a column that is NOT NULL."""
        if nulls and (one := self._not_null.get(name)):
            raise SerializationError(
                f"{IS_BROKEN}{one.name} of {self._table.full_name}: column {name} is NOT NULL, and {nulls} "
                "records have no value there"
            )

    def _refuse_long(self, values: Values) -> None:
        """Raise ColumnError for values for whose names the file system has no room."""
        name = self._table.partition_name(values)
        if len(name) > LONGEST_NAME // _MOST_BYTES:
            refuse_long_values(self._table, [files.join(self._table.location, name)])

    def _placed(self, mark: tuple[Any, ...], rows: Any) -> Placed:
        texts = dict(zip((key.name for key in self.dynamic_keys), mark, strict=False))
        values = tuple({**self._static, **texts}[key.name] for key in self._table.partition_keys)
        return Placed(values, mark[-1] if self._table.bucket_columns else 0, rows)

    def _buckets(self, typed: Mapping[str, Any]) -> list[int]:
        names = self._table.bucket_columns
        types = [self._types[name] for name in names]
        columns = [typed[name].to_pylist() for name in names]
        return [bucket_number(types, values, self._table.buckets) for values in zip(*columns, strict=True)]


def row_array(table: Table, typed: Mapping[str, Any]) -> Any:
    """The array of structs that is written, out of the arrays of a table's columns as `stored` gives them.

    Raises SerializationError for a value that pyarrow's writer cannot write.
    """
    where = f"{table.full_name}.{{0.name}} {{0.type}}".format
    arrays = [writable(typed[column.name], where(column)) for column in table.columns]
    fields = pa.schema([(column.name, arrow_type(column.type)) for column in table.columns])
    return pa.StructArray.from_arrays(arrays, fields=list(fields))


def divided(rows: Any, marks: Sequence[Sequence[Any]]) -> dict[tuple[Any, ...], Any]:
    """An array by what each of `marks` says of its places, in the order in which they come."""
    members: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
    for position, mark in enumerate(zip(*marks, strict=True)):
        members[mark].append(position)
    if len(members) == 1:
        return dict.fromkeys(members, rows)
    return {mark: pc.take(rows, pa.array(positions)) for mark, positions in members.items()}


def _partition_texts(given: Any, table: Table, key: Column) -> list[str | None]:
    """Values of a partition key as the texts that name partitions; an empty one is null, as in Hive, but of a CHAR.

    Raises SerializationError for a value that cannot be stored, and for the text that stands for null there.
    """
    values = stored(given, key.type, f"{table.full_name}.{key.name}").to_pylist()
    if has_blanks(key.type):
        values = [None if value is None else known_text(key.type, value) for value in values]
    texts = {value: _text(value) for value in set(values)}
    try:
        for text in texts.values():
            refuse_reserved(table, key, text)
    except ColumnError as error:
        raise SerializationError(str(error)) from None
    return [texts[value] for value in values]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = value.isoformat(" ")
        return text.rstrip("0") if value.microsecond else text
    return format(value, "f") if isinstance(value, Decimal) else str(value)
