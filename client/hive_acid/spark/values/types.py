"""Hive's type names and Spark's types, each to the other (acid-format.md §3.5).

Char and varchar are strings to Spark: their length is enforced when values are assigned, by
`hive_acid.spark.values.assign`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import UnionType

from pyspark.sql import types as t

from hive_acid.catalog.table import Column, folded
from hive_acid.errors import ColumnError

_PRIMITIVES: dict[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "tinyint": t.ByteType(),
    "smallint": t.ShortType(),
    "int": t.IntegerType(),
    "integer": t.IntegerType(),
    "bigint": t.LongType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "double precision": t.DoubleType(),
    "string": t.StringType(),
    "binary": t.BinaryType(),
    "date": t.DateType(),
    "timestamp": t.TimestampType(),
    "timestamp with local time zone": t.TimestampType(),
}
_INSTANT = re.compile(r"timestamp\s+with\s+local\s+time\s+zone", re.IGNORECASE)
_NAMES: dict[type[t.DataType], str] = {
    t.BooleanType: "boolean",
    t.ByteType: "tinyint",
    t.ShortType: "smallint",
    t.IntegerType: "int",
    t.LongType: "bigint",
    t.FloatType: "float",
    t.DoubleType: "double",
    t.BinaryType: "binary",
    t.DateType: "date",
    t.TimestampType: "timestamp",
    t.TimestampNTZType: "timestamp",
}
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)(?:\((\d+)(?:,(-?\d+))?\))?")
_TEXT = re.compile(r"(char|varchar)\((\d+)\)")
_MAX_DECIMAL_PRECISION = 38

DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark's analyser looks for the length of a column that is a string to it, in the metadata of its field."""

SIGNS_OF_TYPES = re.compile(r"[(),<>:`]")
"""What no name of a struct's field may have, since it stands in Hive's type without quotes."""


_OUR_NAMES = "__acid_"
"""How names of columns begin that stand beside the user's while a statement runs."""


def spark_type(hive_type: str) -> t.DataType:
    """The Spark type that reads and writes a Hive type.

    A timestamp with local time zone is an instant, as Spark's are, and can only be read (`refuse_instants`). Raises
    ColumnError for types that Spark cannot read: unions and intervals.
    """
    text = re.sub(r"\s+", " ", hive_type.strip())
    kind, _, inner = text.partition("<")
    kind = kind.strip().lower()
    if inner:
        if not inner.endswith(">"):
            raise ColumnError(f"'{hive_type}' is not a type: a '>' is missing")
        return _nested_type(hive_type, kind, _split(inner[:-1], ","))
    compact = re.sub(r"\s*([(),])\s*", r"\1", kind)
    if compact in _PRIMITIVES:
        return _PRIMITIVES[compact]
    if match := _DECIMAL.fullmatch(compact):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        if not (1 <= precision <= _MAX_DECIMAL_PRECISION and 0 <= scale <= precision):
            raise ColumnError(f"'{hive_type}' is not a type: precision is 1 to 38, scale 0 to the precision")
        return t.DecimalType(precision, scale)
    if _TEXT.fullmatch(compact):
        return t.StringType()
    raise ColumnError(f"type '{hive_type}' is not supported on ACID tables")


def _nested_type(hive_type: str, kind: str, parts: list[str]) -> t.DataType:
    if kind == "array" and len(parts) == 1:
        return t.ArrayType(spark_type(parts[0]))
    if kind == "map" and len(parts) == 2:
        return t.MapType(spark_type(parts[0]), spark_type(parts[1]))
    if kind == "struct":
        fields = [part.partition(":") for part in parts]
        if all(name.strip() and colon for name, colon, _ in fields):
            return t.StructType([t.StructField(name.strip().lower(), spark_type(of)) for name, _, of in fields])
    raise ColumnError(f"type '{hive_type}' is not supported on ACID tables")


def _split(text: str, separator: str) -> list[str]:
    """`text` cut at separators that stand outside all brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == separator and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def hive_type(spark: t.DataType) -> str:
    """Hive's name of a Spark type, in lower case.

    Raises ColumnError for a type that Hive has not, or that an ACID file cannot hold, and a name of a field that would
    be taken for a part of the type.
    """
    if isinstance(spark, t.DecimalType):
        return f"decimal({spark.precision},{spark.scale})"
    if isinstance(spark, t.ArrayType):
        return f"array<{hive_type(spark.elementType)}>"
    if isinstance(spark, t.MapType):
        return f"map<{hive_type(spark.keyType)},{hive_type(spark.valueType)}>"
    if isinstance(spark, t.StructType):
        if odd := no_fields(spark.names):
            raise ColumnError(f"Hive's types have no quotes, so a field cannot be called {odd[0]}: rename it first")
        return f"struct<{','.join(f'{field.name.lower()}:{hive_type(field.dataType)}' for field in spark.fields)}>"
    if isinstance(spark, t.VarcharType):
        return f"varchar({spark.length})"
    if isinstance(spark, t.CharType):
        return f"char({spark.length})"
    if spark == t.StringType():
        return "string"
    if name := _NAMES.get(type(spark)):
        return name
    raise ColumnError(f"Spark's type {spark.simpleString()} has no counterpart on ACID tables: cast it first")


def no_fields(names: Sequence[str]) -> list[str]:
    """Those of some names of fields that would be others in Hive's type, or the type another one; blanks are shown."""
    odd = [name for name in names if SIGNS_OF_TYPES.search(name)]
    return odd or [repr(name) for name in names if " ".join(name.split()) != name]


def column_type(field: t.StructField) -> str:
    """The Hive type of a frame's column; a text is a CHAR or VARCHAR where Spark knows that it is one."""
    known = field.metadata.get(DECLARED) if field.dataType == t.StringType() else None
    return known if isinstance(known, str) and _TEXT.fullmatch(known) else hive_type(field.dataType)


def text_length(hive_type: str) -> tuple[str, int] | None:
    """("char" or "varchar", length in characters) of such a type, None for any other."""
    match = _TEXT.fullmatch(re.sub(r"\s+", "", hive_type).lower())
    return (match[1], int(match[2])) if match else None


def row_type(columns: Iterable[Column]) -> t.StructType:
    """The struct of a table's columns as Spark reads it, names in lower case.

    Raises ColumnError for names that Spark would not find in a file, and for those of our own columns.
    """
    columns = tuple(columns)
    refuse_our_names(column.name for column in columns)
    if odd := [column.name for column in columns if "`" in column.name or "`" in column.type]:
        raise ColumnError(f"column {odd[0]} has a backquote in its name, and Spark does not find such in ORC files")
    return t.StructType([t.StructField(column.name.lower(), spark_type(column.type)) for column in columns])


def refuse_instants(columns: Iterable[Column]) -> None:
    """Raise ColumnError if rows of such columns cannot be written: Spark stores every timestamp without its zone."""
    for column in columns:
        if _INSTANT.search(column.type):
            raise ColumnError(
                f"column '{column.name}' is a {column.type}: Spark's ORC files cannot hold instants, so the table can"
                " be read and its rows deleted, but no row written. Use timestamp, or write it with Hive"
            )


def hive_columns(given: Mapping[str, str] | t.StructType | Sequence[Column]) -> tuple[Column, ...]:
    """The columns of a table, from names with Hive's types, from columns or from a frame's schema; names in lower case.

    Raises ColumnError for a type that is not supported, for two names of columns, or of fields in one struct, that
    differ in case only, and for a name that is one of our own columns, or that Spark's parser would not leave alone.
    """
    if isinstance(given, t.StructType):
        columns = tuple(Column(field.name.lower(), column_type(field)) for field in given.fields)
    else:
        if isinstance(given, Mapping):
            given = [Column(name, type_) for name, type_ in given.items()]
        columns = tuple(Column(one.name.lower(), one.type.strip().lower(), one.comment) for one in given)
    check_distinct(column.name for column in columns)
    refuse_our_names(column.name for column in columns)
    for column in columns:
        check_fields(column.name, spark_type(column.type))
    if odd := [column.name for column in columns if "`" in column.name]:
        raise ColumnError(f"column name {odd[0]} has a backquote, which Spark's ORC files cannot hold")
    if odd := [f"{column.name} {column.type}" for column in columns if "`" in column.type]:
        raise ColumnError(
            f"{odd[0]}: Hive's types have no quotes around names, and Spark's files no backquotes in them"
        )
    if odd := [column.name for column in columns if "${" in column.name or "${" in column.type]:
        raise ColumnError(f"column {odd[0]}: in names, Spark takes ${{…}} for one of its settings")
    return columns


def refuse_our_names(names: Iterable[str]) -> None:
    """Raise ColumnError for a name, in whatever case, that may be one of our own columns."""
    for name in names:
        if name.lower().startswith(_OUR_NAMES):
            raise ColumnError(f"column '{name}': names that begin with {_OUR_NAMES} are hive-acid's own; rename it")


def check_distinct(names: Iterable[str]) -> None:
    """Raise ColumnError if a name occurs twice, in whatever case."""
    seen: set[str] = set()
    for name in names:
        if folded(name) in seen:
            raise ColumnError(f"column '{name}' is given twice (names are compared without regard to case)")
        seen.add(folded(name))


def check_fields(where: str, of: t.DataType) -> None:
    """Raise ColumnError if a struct within a column has two fields of one name."""
    if isinstance(of, t.StructType):
        names = [folded(name) for name in of.names]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            raise ColumnError(f"{where} has the field '{twice[0]}' twice (names are compared without regard to case)")
        for field in of.fields:
            check_fields(f"{where}.{field.name}", field.dataType)
    elif isinstance(of, t.ArrayType):
        check_fields(where, of.elementType)
    elif isinstance(of, t.MapType):
        check_fields(where, of.keyType)
        check_fields(where, of.valueType)


def has_timestamp(spark: t.DataType) -> bool:
    """Whether values of the type hold timestamps at any depth."""
    return _holds(spark, t.TimestampType)


def has_date_or_timestamp(spark: t.DataType) -> bool:
    """Whether values of the type hold dates or timestamps at any depth."""
    return _holds(spark, t.DateType | t.TimestampType)


def _holds(spark: t.DataType, wanted: type[t.DataType] | UnionType) -> bool:
    if isinstance(spark, t.StructType):
        return any(_holds(field.dataType, wanted) for field in spark.fields)
    if isinstance(spark, t.ArrayType):
        return _holds(spark.elementType, wanted)
    if isinstance(spark, t.MapType):
        return _holds(spark.keyType, wanted) or _holds(spark.valueType, wanted)
    return isinstance(spark, wanted)
