"""Values on their way into a table: each column cast to its type, and nothing lost on the way.

The rules are those of ANSI store assignment, whatever the session's ``spark.sql.ansi.enabled`` says: a value that does
not fit fails the statement. Fractions are rounded as SQL does. Columns meet by name, in any case.

Expressions are SQL, since a call to the JVM for each part of each expression takes long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column as DataFrameColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.structs import matched, widened
from hive_acid.spark.values.texts import fitted
from hive_acid.spark.values.types import check_distinct, check_fields, has_timestamp, hive_columns, spark_type
from hive_acid.spark.values.unstorable import holds_unstorable, put_forward

_LEFT_OUT = "__acid_left_out"


def match_columns(table: Table, given: Sequence[str]) -> dict[str, str]:
    """Table column to the given name that stands for it, for all columns and partition keys.

    Raises ColumnError that names what is missing, unknown, or given twice.
    """
    check_distinct([name.lower() for name in given])
    by_name = {name.lower(): name for name in given}
    wanted = [column.name for column in table.all_columns]
    missing = [name for name in wanted if name not in by_name]
    unknown = [by_name[name] for name in by_name if name not in wanted]
    if missing or unknown:
        said = [f"{what} {', '.join(names)}" for what, names in (("missing:", missing), ("unknown:", unknown)) if names]
        raise ColumnError(
            f"the columns do not match those of {table.full_name} ({', '.join(wanted)}); {'; '.join(said)}"
        )
    return {name: by_name[name] for name in wanted}


def wider(table: Table, fields: Iterable[t.StructField]) -> tuple[Column, ...]:
    """The columns of the table of whose structs a frame's fields have more fields, with those.

    Raises ColumnError for a type that the table cannot have, and a name that is given twice.
    """
    given = {field.name.lower(): field.dataType for field in fields}
    found = ((one, widened(one.name, one.type, given[one.name])) for one in table.columns if one.name in given)
    return tuple(Column(one.name, to) for one, to in found if to != one.type)


def lacking(table: Table, fields: Iterable[t.StructField]) -> tuple[Column, ...]:
    """Those of a frame's fields that are no columns of the table, as it would have them.

    Raises ColumnError for a type or a name that it cannot have, and one that is given twice.
    """
    known = {column.name for column in table.all_columns}
    return hive_columns(t.StructType([field for field in fields if field.name.lower() not in known]))


def assign(spark: SparkSession, table: Table, column: Column, value: str, source: t.DataType) -> str:
    """The SQL of `value`, SQL of type `source`, as it is stored in `column`.

    Raises ColumnError if such values can never be stored there. A single value that cannot fails the Spark job.
    """
    target = spark_type(column.type)
    where = f"{table.full_name}.{column.name}"
    check_fields(f"the value of {where}", source)
    if not _is_castable(source, target):
        what = "give its fields the names that they have there" if isinstance(source, t.StructType) else "cast it first"
        raise ColumnError(
            f"{where} is {column.type}: a value of type {source.simpleString()} cannot be stored in it; {what}"
        )
    stored = _converted(value, source, target, f"{where} {column.type}")
    stored = fitted(column.type, stored, lambda text: _failure(f"a text is longer than {where} {column.type}: ", text))
    forward = put_forward(spark) if has_timestamp(target) and _is_in_orc(table, column) else 0
    if (unstorable := _unstorable(table, column, stored, forward)) is not None:
        failure = _failure(f"an ORC file cannot hold this day or time, for {where} {column.type}: ", stored)
        stored = f"CASE WHEN {unstorable} THEN {failure} ELSE {stored} END"
    return stored


def _unstorable(table: Table, column: Column, value: str, forward: int | None) -> str | None:
    """The SQL of whether the table's files would hold another value; None if they never do."""
    return holds_unstorable(value, spark_type(column.type), forward) if _is_in_orc(table, column) else None


def _is_in_orc(table: Table, column: Column) -> bool:
    return table.is_orc and column in table.columns


def is_stored_as_is(table: Table, column: Column, source: t.DataType) -> bool:
    """Whether `assign` leaves all values of type `source` as they are, and refuses none."""
    return (
        _is_same(source, spark_type(column.type))
        and fitted(column.type, "", str) == ""
        and _unstorable(table, column, "", 0) is None
    )


def assigned(table: Table, columns: Sequence[Column], frame: DataFrame, names: Mapping[str, str]) -> DataFrame:
    """`columns` of the table out of `frame`, in whose terms `names` gives each one, ready to be stored."""
    fields = {field.name: field for field in frame.schema.fields}
    spark, values = frame.sparkSession, []
    for of in columns:
        field = fields[names[of.name]]
        # Not by its name: the mark would go along.
        value = quoted(field.name) if not is_left_out(field) else f"CAST(NULL AS {sql_type(field.dataType)})"
        values.append(f"{assign(spark, table, of, value, field.dataType)} AS {quoted(of.name)}")
    return projected(frame, *values)


def left_out(column: Column) -> DataFrameColumn:
    """Null for a column that a statement does not name, with a mark: it may have a default once it is locked."""
    return F.lit(None).cast(spark_type(column.type)).alias(column.name, metadata={_LEFT_OUT: True})


def is_left_out(field: t.StructField) -> bool:
    """Whether a column is one of those that `left_out` makes."""
    return _LEFT_OUT in field.metadata


def row_struct(table: Table, values: Sequence[str]) -> str:
    """The SQL of a row of the table out of that of its columns."""
    return (
        f"struct({', '.join(f'{value} AS {quoted(of.name)}' for value, of in zip(values, table.columns, strict=True))})"
    )


def total(terms: Sequence[str]) -> str:
    """The SQL of a sum of whole numbers below 2 ** 53, of one term at least, as a double.

    Of many it is a tree as flat as can be, since Spark descends into it. Doubles keep it so: a sum of integers with a
    literal among them is made a chain by Spark's ReorderAssociativeOperator. Its parts stand in calls: Spark's parser
    reads parentheses twice.
    """
    if len(terms) == 1:
        return f"double({terms[0]})"
    half = len(terms) // 2
    return f"double({total(terms[:half])} + {total(terms[half:])})"


def text_value(text: str) -> str:
    """The SQL of a text, whatever it contains."""
    if any(sign in text for sign in ("\\", "'", "${")):
        # What a backslash means in a literal is a setting of the session, and ``${name}`` stands for one.
        return f"CAST(X'{text.encode().hex()}' AS STRING)"
    return f"'{text}'"


def sql_type(of: t.DataType) -> str:
    """A type as Spark's parser takes it, whatever the names of its fields contain."""
    if isinstance(of, t.ArrayType):
        return f"array<{sql_type(of.elementType)}>"
    if isinstance(of, t.MapType):
        return f"map<{sql_type(of.keyType)}, {sql_type(of.valueType)}>"
    if isinstance(of, t.StructType):
        return f"struct<{', '.join(f'{quoted(field.name)}: {sql_type(field.dataType)}' for field in of.fields)}>"
    # What a timestamp without more words is, is a setting of the session.
    return "timestamp_ltz" if isinstance(of, t.TimestampType) else of.simpleString()


def _converted(value: str, source: t.DataType, target: t.DataType, where: str, depth: int = 0) -> str:
    """`value` as `target`; nested values one by one, as a cast of the whole would make null of what does not fit."""
    if _is_same(source, target):
        return value

    def nested(of: str, have: t.DataType, want: t.DataType) -> str:
        return _converted(of, have, want, where, depth + 1)

    one, two = f"__acid_{depth}", f"__acid_{depth}_of"
    if isinstance(source, t.ArrayType) and isinstance(target, t.ArrayType):
        return f"transform({value}, {one} -> {nested(one, source.elementType, target.elementType)})"
    if isinstance(source, t.MapType) and isinstance(target, t.MapType):
        key, held = nested(one, source.keyType, target.keyType), nested(two, source.valueType, target.valueType)
        return f"transform_values(transform_keys({value}, ({one}, {two}) -> {key}), ({one}, {two}) -> {held})"
    if isinstance(source, t.StructType) and isinstance(target, t.StructType):
        given = (source.fields[at] for at in matched(source, target) or ())
        fields = (
            f"{nested(f'({value}).{quoted(have.name)}', have.dataType, want.dataType)} AS {quoted(want.name)}"
            for have, want in zip(given, target.fields, strict=True)
        )
        return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(fields)}) END"
    cast = f"try_cast({value} AS {sql_type(target)})"
    failure = _failure(f"a value of {source.simpleString()} does not fit into {where}: ", value)
    skipped = ""
    if isinstance(target, t.TimestampType) and isinstance(source, t.TimestampNTZType | t.DateType):
        # Spark would take a later time, for which the clocks go forward.
        words = _failure(f"clocks are put forward past this time in the session's zone, for {where}: ", value)
        skipped = f"WHEN NOT cast({cast} AS timestamp_ntz) <=> cast({value} AS timestamp_ntz) THEN {words} "
    return f"CASE WHEN {value} IS NOT NULL AND {cast} IS NULL THEN {failure} {skipped}ELSE {cast} END"


def _failure(message: str, value: str) -> str:
    return f"raise_error(concat({text_value(message)}, coalesce(cast({value} AS string), '?')))"


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
        # Spark casts structs by position: fields meet by name, or they would be mixed up in silence.
        if not isinstance(source, t.StructType) or (places := matched(source, target)) is None:
            return False
        given = (source.fields[at] for at in places)
        return all(_is_castable(s.dataType, d.dataType) for s, d in zip(given, target.fields, strict=True))
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
