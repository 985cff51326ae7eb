"""Record writers: what a program has, bytes or Arrow, as Arrow columns of the table.

Bytes, tables and batches are taken as a whole or not at all, files and readers block by block. Texts become typed
values later, by `hive_acid.streaming.values`.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv

from hive_acid.errors import SerializationError
from hive_acid.streaming.defaults import Default, Defaults
from hive_acid.streaming.types import arrow_type

BLOCK_BYTES = 8 * 1024 * 1024
"""So much of a file is held in memory at a time."""

MOST_BYTES = 1024 * 1024 * 1024
"""What is given as bytes is taken as a whole, so there has to be an end to it."""

NULL_TEXT = r"\N"

_FINER_THAN_MICROS = re.compile(r"\.\d{6,}[1-9]")

Columns = Mapping[str, str]
"""Names and Hive types of the columns that a record has, in the table's order, dynamic partition columns at the end."""


class RecordWriter(ABC):
    """Makes columns of records."""

    @abstractmethod
    def parse(self, records: Any, columns: Columns, defaults: Defaults) -> Iterator[pa.Table]:
        """Tables with all of `columns`, by these names; one that a record does not name has that of `defaults`.

        Raises SerializationError for records that are none.
        """


class ArrowWriter(RecordWriter):
    """Takes Arrow tables, record batches and readers of them; columns meet by name, in any case and order.

    One that is not there has its DEFAULT.
    """

    def parse(self, records: Any, columns: Columns, defaults: Defaults) -> Iterator[pa.Table]:
        if isinstance(records, pa.RecordBatch):
            yield self._matched(pa.Table.from_batches([records]), columns, defaults)
        elif isinstance(records, pa.Table):
            yield self._matched(records, columns, defaults)
        elif isinstance(records, pa.RecordBatchReader):
            for batch in records:
                yield self._matched(pa.Table.from_batches([batch]), columns, defaults)
        else:
            raise SerializationError(
                f"an ArrowWriter takes a pyarrow Table, RecordBatch or RecordBatchReader, no {type(records).__name__}"
            )

    def _matched(self, table: pa.Table, columns: Columns, defaults: Defaults) -> pa.Table:
        given = [name.lower() for name in table.column_names]
        lacking = [name for name in columns if name not in given and name in defaults]
        if sorted([*given, *lacking]) != sorted(columns):
            raise SerializationError(
                f"the columns {', '.join(table.column_names)} are not those of the table: {', '.join(columns)}"
            )
        named = table.rename_columns(given)
        for name in lacking:
            values = [_constant(name, defaults[name])] * table.num_rows
            named = named.append_column(name, _json_column(values, name, columns[name]))
        return named.select(list(columns))


class _LineWriter(RecordWriter):
    """Takes lines of UTF-8: bytes or text of one line or many, or a file of them."""

    def parse(self, records: Any, columns: Columns, defaults: Defaults) -> Iterator[pa.Table]:
        for block in _blocks(records):
            yield self._table(block, columns, defaults)

    @abstractmethod
    def _table(self, block: bytes, columns: Columns, defaults: Defaults) -> pa.Table: ...


class DelimitedWriter(_LineWriter):
    r"""Takes lines of values between delimiters, in the order of the table's columns, partition columns at the end.

    A null is ``\N``, in columns of other types than text an empty value too. Elements of arrays and fields of structs
    stand between `collection_delimiter`, key and value of a map around `map_delimiter`, as Hive has them. Nothing is
    quoted or escaped.
    """

    def __init__(
        self, delimiter: str = "\x01", *, collection_delimiter: str = "\x02", map_delimiter: str = "\x03"
    ) -> None:
        if len({delimiter, collection_delimiter, map_delimiter}) < 3 or not (
            len(delimiter.encode()) == len(collection_delimiter) == len(map_delimiter) == 1
        ):
            raise ValueError("the three delimiters are one character each, and no two alike")
        self.delimiter = delimiter
        self._inner = (collection_delimiter, map_delimiter)

    def _table(self, block: bytes, columns: Columns, defaults: Defaults) -> pa.Table:
        try:
            table = pa.csv.read_csv(
                io.BytesIO(block),
                read_options=pa.csv.ReadOptions(column_names=list(columns), block_size=max(len(block), 1)),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.delimiter, quote_char=False, escape_char=False, ignore_empty_lines=False
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types={name: pa.string() for name in columns},
                    null_values=[NULL_TEXT],
                    strings_can_be_null=True,
                ),
            )
        except pa.ArrowInvalid as error:
            raise SerializationError(f"lines of {len(columns)} values are expected: {error}") from None
        typed = [self._shaped(table.column(name), arrow_type(kind)) for name, kind in columns.items()]
        return pa.table(dict(zip(columns, typed, strict=True)))

    def _shaped(self, texts: pa.ChunkedArray, type_: Any) -> Any:
        if pa.types.is_string(type_) or pa.types.is_binary(type_):
            return texts
        if pa.types.is_nested(type_):
            return pa.array([self._nested(text, type_, 0) for text in texts.to_pylist()], _text_shape(type_))
        return pa.compute.if_else(pa.compute.equal(texts, ""), pa.scalar(None, pa.string()), texts)

    def _nested(self, text: str | None, type_: Any, depth: int) -> Any:
        """A value of nested type out of its text; what is nested deeper than Hive's two delimiters is refused."""
        if text is None or text == NULL_TEXT:
            return None
        if not pa.types.is_nested(type_):
            return None if text == "" and not pa.types.is_string(type_) else text
        if depth > 1 or (depth and pa.types.is_map(type_)):
            raise SerializationError(f"{type_} is nested too deeply for delimited text: send JSON or Arrow")
        parts = text.split(self._inner[depth]) if text else []
        if pa.types.is_map(type_):
            pairs = [part.partition(self._inner[1]) for part in parts]
            return [(key, self._nested(value, type_.item_type, 2)) for key, _, value in pairs]
        if pa.types.is_list(type_):
            return [self._nested(part, type_.value_type, depth + 1) for part in parts]
        if len(parts) != type_.num_fields:
            raise SerializationError(f"{text!r} has {len(parts)} fields, {type_} has {type_.num_fields}")
        fields = zip(type_, parts, strict=True)
        return {field.name: self._nested(part, field.type, depth + 1) for field, part in fields}


class JsonWriter(_LineWriter):
    """Takes JSON, one object per line; names meet columns in any case.

    A column that an object does not name has its DEFAULT, null without one; a name that is no column's is an error.
    Dates and timestamps are texts (``2024-02-29``, ``2024-02-29 12:30:00.5``), binary is base64, a map is an object.
    """

    def _table(self, block: bytes, columns: Columns, defaults: Defaults) -> pa.Table:
        rows = [_json_object(number, line) for number, line in enumerate(block.splitlines(), 1) if line.strip()]
        for number, row in enumerate(rows, 1):
            if not row.keys() <= columns.keys():
                unknown = ", ".join(sorted(row.keys() - columns.keys()))
                raise SerializationError(f"record {number} names {unknown}, which the table does not have")
        found = {}
        for name in columns:
            default = None
            if name in defaults and not all(name in row for row in rows):
                default = _constant(name, defaults[name])
            found[name] = _json_column([row.get(name, default) for row in rows], name, columns[name])
        return pa.table(found)


def _constant(name: str, default: Default) -> Any:
    """The value of a DEFAULT, as JSON has it. Raises SerializationError for one that is no constant."""
    if not default.is_constant:
        raise SerializationError(
            f"a record does not name {name}, whose DEFAULT {default.text} only Spark computes: give it a value"
        )
    return default.value


def _blocks(records: Any) -> Iterator[bytes]:
    """The records as blocks of whole lines."""
    if isinstance(records, str):
        records = records.encode()
    if isinstance(records, bytes | bytearray | memoryview):
        if len(records) > MOST_BYTES:
            raise SerializationError(f"{len(records)} bytes are too many for one call: give a file of them")
        if len(records):
            yield bytes(records)
    elif hasattr(records, "read"):
        yield from _file_blocks(records)
    else:
        raise SerializationError(f"records are bytes, text or a file of lines, no {type(records).__name__}")


def _file_blocks(file: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while read := file.read(BLOCK_BYTES):
        whole, newline, rest = (rest + read).rpartition(b"\n")
        if newline:
            yield whole + newline
    if rest:
        yield rest


def _text_shape(type_: Any) -> Any:
    """The type with texts for all that is not nested."""
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _text_shape(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(pa.string(), _text_shape(type_.item_type))
    return pa.list_(_text_shape(type_.value_type)) if pa.types.is_list(type_) else pa.string()


def _json_object(number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_float=Decimal, object_pairs_hook=_once)
    except ValueError as error:
        raise SerializationError(f"record {number} is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise SerializationError(f"record {number} is no JSON object: {line[:80]!r}")
    lowered = {name.lower(): value for name, value in row.items()}
    if len(lowered) < len(row):
        raise SerializationError(f"record {number} gives a column twice: {', '.join(row)}")
    return lowered


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs. Raises ValueError for a name that it has twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"a name is given twice: {', '.join(name for name, _ in pairs)}")
    return found


def _json_column(values: Sequence[Any], name: str, hive_type: str) -> pa.Array:
    type_ = arrow_type(hive_type)
    convert = _from_json(type_)
    converted = []
    for number, value in enumerate(values, 1):
        try:
            converted.append(None if value is None else convert(value))
        except (ValueError, TypeError, ArithmeticError, AttributeError, binascii.Error) as error:
            raise SerializationError(f"record {number}: {value!r} is no {hive_type} for {name} ({error})") from None
    try:
        return pa.array(converted, type_)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise SerializationError(f"{name} {hive_type}: {error}") from None


def _from_json(type_: Any) -> Callable[[Any], Any]:
    """What makes a Python value for a column of `type_` of a JSON value that is not null."""
    if pa.types.is_struct(type_):
        fields = {field.name: _from_json(field.type) for field in type_}
        return lambda value: _json_struct(value, fields)
    if pa.types.is_map(type_):
        key, item = _map_key(type_.key_type), _from_json(type_.item_type)
        return lambda value: [(key(name), None if held is None else item(held)) for name, held in value.items()]
    if pa.types.is_list(type_):
        element = _from_json(type_.value_type)
        return lambda value: [None if held is None else element(held) for held in _expected(list, value)]
    if pa.types.is_boolean(type_):
        return lambda value: _expected(bool, value)
    if pa.types.is_string(type_):
        return lambda value: _expected(str, value)
    if pa.types.is_integer(type_):
        return _json_int
    if pa.types.is_floating(type_):
        return lambda value: float(_number(value))
    if pa.types.is_decimal(type_):
        return lambda value: _exact(Decimal(value if isinstance(value, str) else _number(value)), type_.scale)
    if pa.types.is_binary(type_):
        return lambda value: base64.b64decode(value, validate=True)
    if pa.types.is_date(type_):
        return date.fromisoformat
    assert pa.types.is_timestamp(type_), type_
    return lambda value: _json_timestamp(value, has_zone=type_.tz is not None)


def _map_key(type_: Any) -> Callable[[str], Any]:
    """JSON has texts for keys only."""
    convert = _from_json(type_)
    if pa.types.is_integer(type_) or pa.types.is_floating(type_):
        return lambda text: convert(Decimal(text))
    return convert


def _json_struct(value: Any, fields: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    given = {name.lower(): held for name, held in value.items()}
    if len(given) < len(value):
        raise ValueError("a field is given twice")
    if unknown := sorted(given.keys() - fields.keys()):
        raise ValueError(f"unknown field {', '.join(unknown)}")
    found = {name: given.get(name) for name in fields}
    return {name: None if held is None else fields[name](held) for name, held in found.items()}


def _json_int(value: Any) -> int:
    number = _number(value)
    if number != int(number):
        raise ValueError("it has a fraction")
    return int(number)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError("it is not a number")
    return value


def _expected(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"it is not a {kind.__name__}")
    return value


def _exact(value: Decimal, scale: int) -> Decimal:
    if not value.is_finite() or value != round(value, scale):
        raise ValueError(f"it has more than {scale} digits behind the point")
    return value


def _json_timestamp(text: str, *, has_zone: bool) -> datetime:
    if _FINER_THAN_MICROS.search(text):
        raise ValueError("it has more than six digits behind the point")
    moment = datetime.fromisoformat(text)
    if (moment.tzinfo is not None) != has_zone:
        raise ValueError("it lacks a time zone" if has_zone else "the column holds wall clocks, without a time zone")
    return moment
