"""Values that lack fields of a column's structs, as schema evolution takes them: the fields are null, or stay."""

from __future__ import annotations

from pyspark.sql import types as t

from hive_acid.spark.values.assign import sql_type
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.structs import lacks


def completed(value: str, source: t.DataType, target: t.DataType, old: str | None = None, depth: int = 0) -> str:
    """The SQL of `value`, SQL of type `source`, with the fields of `target` that it lacks.

    They are null, or those of `old`, the SQL of a value of type `target`; within arrays and maps they are null.
    """
    if not lacks(source, target):
        return value
    one, two = f"__acid_full_{depth}", f"__acid_full_{depth}_of"
    if isinstance(source, t.ArrayType) and isinstance(target, t.ArrayType):
        return f"transform({value}, {one} -> {completed(one, source.elementType, target.elementType, None, depth + 1)})"
    if isinstance(source, t.MapType) and isinstance(target, t.MapType):
        held = completed(two, source.valueType, target.valueType, None, depth + 1)
        return f"transform_values({value}, ({one}, {two}) -> {held})"
    assert isinstance(source, t.StructType)
    assert isinstance(target, t.StructType)
    given = {field.name.lower(): field for field in source.fields}
    fields = []
    for field in target.fields:
        before = None if old is None else f"({old}).{quoted(field.name)}"
        have = given.get(field.name.lower())
        if have is None:
            made = before or f"CAST(NULL AS {sql_type(field.dataType)})"
        else:
            made = completed(f"({value}).{quoted(have.name)}", have.dataType, field.dataType, before, depth + 1)
        fields.append(f"{made} AS {quoted(field.name)}")
    wanted = {field.name.lower() for field in target.fields}
    others = [field.name for field in source.fields if field.name.lower() not in wanted]
    fields += [f"({value}).{quoted(name)} AS {quoted(name)}" for name in others]
    return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(fields)}) END"
