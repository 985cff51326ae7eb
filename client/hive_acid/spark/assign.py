"""Values on their way into a table: each column cast to its type, and nothing lost on the way.

The rules are those of ANSI store assignment, whatever the session's ``spark.sql.ansi.enabled`` says: a value that does
not fit fails the statement. Fractions are rounded as SQL does. Columns meet by name, in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.spark.types import check_distinct, spark_type, text_length


def match_columns(table: Table, given: Sequence[str]) -> dict[str, str]:
    """Table column to the given name that stands for it, for all columns and partition keys.

    Raises ColumnError that names what is missing, unknown, or given twice.
    """
    check_distinct([name.lower() for name in given])
    by_name = {name.lower(): name for name in given}
    wanted = [column.name for column in (*table.columns, *table.partition_keys)]
    missing = [name for name in wanted if name not in by_name]
    unknown = [by_name[name] for name in by_name if name not in wanted]
    if missing or unknown:
        said = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("unknown:", unknown)) if names]
        raise ColumnError(
            f"the columns do not match those of {table.full_name} ({', '.join(wanted)}); {'; '.join(said)}"
        )
    return {name: by_name[name] for name in wanted}


def assign(table: Table, column: Column, value: SparkColumn, source: t.DataType) -> SparkColumn:
    """`value`, of type `source`, as it is stored in `column`.

    Raises ColumnError if such values can never be stored there. A single value that cannot fails the Spark job.
    """
    target = spark_type(column.type)
    where = f"{table.full_name}.{column.name}"
    if not _is_castable(source, target):
        raise ColumnError(
            f"{where} is {column.type}: a value of type {source.simpleString()} cannot be stored in it; cast it first"
        )
    stored = _converted(value, source, target, f"{where} {column.type}")
    if (text := text_length(column.type)) is not None:
        kind, length = text
        stored = F.when(
            F.char_length(F.rtrim(stored)) > length,
            _failure(f"a text is longer than {where} {column.type}: ", stored),
        ).otherwise(F.rpad(stored, length, " ") if kind == "char" else F.substring(stored, 1, length))
    return stored


def is_stored_as_is(column: Column, source: t.DataType) -> bool:
    """Whether `assign` leaves all values of type `source` as they are."""
    return _is_same(source, spark_type(column.type)) and text_length(column.type) is None


def assigned(table: Table, columns: Sequence[Column], frame: DataFrame, names: Mapping[str, str]) -> list[SparkColumn]:
    """`columns` of the table out of `frame`, in whose terms `names` gives each one, ready to be stored."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    return [
        assign(table, column, F.col(quoted(names[column.name])), types[names[column.name]]).alias(column.name)
        for column in columns
    ]


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"


def _converted(value: SparkColumn, source: t.DataType, target: t.DataType, where: str) -> SparkColumn:
    """`value` as `target`; nested values one by one, as a cast of the whole would make null of what does not fit."""
    if _is_same(source, target):
        return value
    if isinstance(source, t.ArrayType) and isinstance(target, t.ArrayType):
        of = source.elementType, target.elementType
        return F.transform(value, lambda element: _converted(element, *of, where))
    if isinstance(source, t.MapType) and isinstance(target, t.MapType):
        keys, values = (source.keyType, target.keyType), (source.valueType, target.valueType)
        by_key = F.transform_keys(value, lambda key, _: _converted(key, *keys, where))
        return F.transform_values(by_key, lambda _, held: _converted(held, *values, where))
    if isinstance(source, t.StructType) and isinstance(target, t.StructType):
        fields = [
            _converted(value.getField(have.name), have.dataType, want.dataType, where).alias(want.name)
            for have, want in zip(source.fields, target.fields, strict=True)
        ]
        return F.when(value.isNotNull(), F.struct(*fields))
    cast = value.try_cast(target)
    lost = value.isNotNull() & cast.isNull()
    message = f"a value of {source.simpleString()} does not fit into {where}: "
    return F.when(lost, _failure(message, value)).otherwise(cast)


def _failure(message: str, value: SparkColumn) -> SparkColumn:
    return F.raise_error(F.concat(F.lit(message), F.coalesce(value.cast("string"), F.lit("?"))))


def _is_same(source: t.DataType, target: t.DataType) -> bool:
    """Whether values need no cast: the types are equal but for nullability, names' case and char lengths."""
    if isinstance(target, t.StringType):
        # A collation is Spark's alone and may not get into the file.
        return source == target or isinstance(source, t.VarcharType | t.CharType)
    if isinstance(target, t.StructType):
        return (
            isinstance(source, t.StructType)
            and source.names == target.names
            and all(_is_same(s.dataType, d.dataType) for s, d in zip(source, target, strict=True))
        )
    if isinstance(target, t.ArrayType):
        return isinstance(source, t.ArrayType) and _is_same(source.elementType, target.elementType)
    if isinstance(target, t.MapType):
        return (
            isinstance(source, t.MapType)
            and _is_same(source.keyType, target.keyType)
            and _is_same(source.valueType, target.valueType)
        )
    return source == target


def _is_castable(source: t.DataType, target: t.DataType) -> bool:
    if isinstance(source, t.NullType) or _is_same(source, target):
        return True
    if isinstance(target, t.StructType):
        # Spark casts structs by position: equal names at equal places, or fields would be mixed up in silence.
        return (
            isinstance(source, t.StructType)
            and [name.lower() for name in source.names] == target.names
            and all(_is_castable(s.dataType, d.dataType) for s, d in zip(source, target, strict=True))
        )
    if isinstance(target, t.ArrayType):
        return isinstance(source, t.ArrayType) and _is_castable(source.elementType, target.elementType)
    if isinstance(target, t.MapType):
        return (
            isinstance(source, t.MapType)
            and _is_castable(source.keyType, target.keyType)
            and _is_castable(source.valueType, target.valueType)
        )
    if isinstance(source, t.StringType | t.VarcharType | t.CharType):
        return True
    if isinstance(target, t.StringType):
        return isinstance(source, t.NumericType | t.BooleanType | t.DateType | t.TimestampType | t.TimestampNTZType)
    if isinstance(target, t.NumericType):
        return isinstance(source, t.NumericType)
    times = t.DateType | t.TimestampType | t.TimestampNTZType
    return isinstance(target, times) and isinstance(source, times)
