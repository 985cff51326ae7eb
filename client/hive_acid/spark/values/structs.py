"""How the fields of structs meet those of a table's column: by name, in any case and order, at every depth.

As for Spark's own INSERT, fields without names of their own (``struct(1, 'x')`` calls them col1, col2) meet them by
their places. With schema evolution a column's struct gets the fields that it lacks, at its end
(`hive_acid.spark.values.completion` has those that a value lacks).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import types as t

from hive_acid.format.hashing import type_parts
from hive_acid.spark.values.types import check_fields, hive_type, spark_type


def matched(source: t.StructType, target: t.StructType) -> list[int] | None:
    """For each field of `target` the place of the one in `source` that is stored in it; None if they do not fit."""
    names, wanted = _names(source), _names(target)
    if len(names) != len(wanted) or len({*names}) < len(names):
        return None
    if {*names} == {*wanted}:
        return [names.index(name) for name in wanted]
    return list(range(len(wanted))) if _are_by_place(names, wanted) else None


def widened(column: str, kind: str, given: t.DataType) -> str:
    """The Hive type `kind` with the fields that values of type `given` have and it lacks.

    Raises ColumnError for a field whose type the table cannot have, or whose name is given twice. `column` is what
    errors call it.
    """
    name, parts = type_parts(kind)
    if name == "array" and isinstance(given, t.ArrayType):
        made = [widened(column, parts[0], given.elementType)]
    elif name == "map" and isinstance(given, t.MapType):
        made = [parts[0], widened(column, parts[1], given.valueType)]
    elif name == "struct" and isinstance(given, t.StructType):
        check_fields(column, given)
        fields = {field.name.lower(): field.dataType for field in given.fields}
        pairs = [(field.strip(), of) for field, _, of in (part.partition(":") for part in parts)]
        wanted = [field for field, _ in pairs]
        if _are_by_place(list(fields), wanted):
            fields = dict(zip(wanted, fields.values(), strict=True))
        elif not fields.keys() & {*wanted}:
            return kind
        made = [
            f"{field}:{widened(f'{column}.{field}', of, fields[field]) if field in fields else of}"
            for field, of in pairs
        ]
        made += [f"{field}:{hive_type(of)}" for field, of in fields.items() if field not in wanted]
    else:
        return kind
    found = f"{name}<{','.join(made)}>"
    return kind if spark_type(found) == spark_type(kind) else found


def placed(source: t.DataType, target: t.DataType) -> t.DataType:
    """`source` with the names of `target` for structs of as many fields, none of which has a name of `target`.

    That is for values that are given by their places, as to Spark's INSERT: a name that fits none says nothing there.
    """
    if isinstance(source, t.ArrayType) and isinstance(target, t.ArrayType):
        return t.ArrayType(placed(source.elementType, target.elementType), source.containsNull)
    if isinstance(source, t.MapType) and isinstance(target, t.MapType):
        key, value = placed(source.keyType, target.keyType), placed(source.valueType, target.valueType)
        return t.MapType(key, value, source.valueContainsNull)
    if not isinstance(source, t.StructType) or not isinstance(target, t.StructType):
        return source
    order: Sequence[int] | None = matched(source, target)
    names = source.names
    if order is None and len(source) == len(target) and not {*_names(source)} & {*_names(target)}:
        order, names = range(len(source)), target.names
    if order is None:
        return source
    kinds = dict(zip(order, (field.dataType for field in target.fields), strict=True))
    return t.StructType(
        [t.StructField(names[at], placed(field.dataType, kinds[at])) for at, field in enumerate(source.fields)]
    )


def lacks(source: t.DataType, target: t.DataType) -> bool:
    """Whether a struct within `target` has a field that the one of `source` at its place has not."""
    if isinstance(source, t.ArrayType) and isinstance(target, t.ArrayType):
        return lacks(source.elementType, target.elementType)
    if isinstance(source, t.MapType) and isinstance(target, t.MapType):
        return lacks(source.valueType, target.valueType)
    if not isinstance(source, t.StructType) or not isinstance(target, t.StructType):
        return False
    names, wanted = _names(source), _names(target)
    if _are_by_place(names, wanted) or not {*names} & {*wanted}:
        return False
    given = dict(zip(names, source.fields, strict=True))
    return any(name not in given or lacks(given[name].dataType, target[name].dataType) for name in wanted)


def _names(of: t.StructType) -> list[str]:
    return [name.lower() for name in of.names]


def _are_by_place(names: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether fields have no names of their own, but what Spark calls them by their places; some may have the right."""
    return len(names) == len(wanted) and all(
        name in (of, f"col{place}") for place, (name, of) in enumerate(zip(names, wanted, strict=True), 1)
    )
