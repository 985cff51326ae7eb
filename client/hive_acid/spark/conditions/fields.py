"""Fields of structs that are assigned: ``SET s.a = 1`` is an assignment to the whole column, of a struct like the old
one with another value in the field.

As in other formats a struct that is null becomes one in which all other fields are null.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError
from hive_acid.spark.conditions.expressions import Expression, expression
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import spark_type

_PATH = re.compile(r"(?:`(?:[^`]|``)+`|[^`.]+)(?:\.(?:`(?:[^`]|``)+`|[^`.]+))*")
_PART = re.compile(r"`((?:[^`]|``)+)`|([^`.]+)")


class _Assigned(dict[str, Any]):
    """Values by the names of fields, or again such a dictionary for what is assigned within a field.

    A caller's own dictionary is none, but a value.
    """


def assigns_to(columns: Iterable[catalog.Column], given: Iterable[str]) -> bool:
    """Whether an assignment to one of the names that are `given` is to one of `columns`, or to a field of it."""
    named = {of for name in given for of in names_meant(name)}
    return any(column.name in named for column in columns)


def whole_columns(table: Table, given: Mapping[str, Expression], alias: str) -> dict[str, Expression]:
    """Assignments to columns and to fields of structs as those to columns, by their names in lower case.

    A name with dots that is no column's is a path, whose parts may be quoted. `alias` is what the old row is called.
    Raises ColumnError for a name that is unknown, or assigned twice.
    """
    kinds = {column.name: column.type for column in table.all_columns}
    assigned = _Assigned()
    for name, value in given.items():
        path = (name.lower(),) if name.lower() in kinds else _path(name)
        if path[0] not in kinds:
            raise ColumnError(f"{table.full_name} has no column {name}")
        kind, at = spark_type(kinds[path[0]]), assigned
        for part, field in pairwise(path):
            kind = _field(table, name, kind, field)
            at = at.setdefault(part, _Assigned())
            if not isinstance(at, _Assigned):
                raise _twice(table, name)
        if path[-1] in at:
            raise _twice(table, name)
        at[path[-1]] = value
    return {
        name: _struct(spark_type(kinds[name]), value, F.col(f"{quoted(alias)}.{quoted(name)}"))
        if isinstance(value, _Assigned)
        else value
        for name, value in assigned.items()
    }


def names_meant(name: str) -> set[str]:
    """The names, in lower case, of the one column that an assignment by `name` may be to: as it is, or in quotes."""
    path = _path(name) if _PATH.fullmatch(name) else ()
    return {name.lower(), *(path if len(path) == 1 else ())}


def _path(name: str) -> tuple[str, ...]:
    if not _PATH.fullmatch(name):
        raise ColumnError(f"'{name}' is no name of a column, or of a field in one: a.b, or `a b`.c")
    return tuple((part[2] or part[1].replace("``", "`")).lower() for part in _PART.finditer(name))


def _field(table: Table, name: str, kind: t.DataType, field: str) -> t.DataType:
    """The type of a field that is assigned by `name`, in a column or field of type `kind`."""
    if isinstance(kind, t.StructType) and field in kind.names:
        return kind[field].dataType
    raise ColumnError(f"{table.full_name} has no {name}: there is no field {field} in {kind.simpleString()}")


def _twice(table: Table, name: str) -> ColumnError:
    return ColumnError(f"{table.full_name}: {name} is given twice, or is a part of what is given as a whole")


def _struct(kind: t.DataType, assigned: _Assigned, old: Column) -> Column:
    """The struct `old` with other values in the fields that are assigned."""
    assert isinstance(kind, t.StructType)
    fields = []
    for field in kind.fields:
        value = assigned.get(field.name)
        if isinstance(value, _Assigned):
            new = _struct(field.dataType, value, old.getField(field.name))
        else:
            new = expression(value) if field.name in assigned else old.getField(field.name)
        fields.append(new.alias(field.name))
    return F.struct(*fields)
