"""Filters of tables, such as ``hive_filter_field_owner__ = "ann" and hive_filter_field_params__k like "v.*"``.

Their grammar is that of partition filters (`filters`), their keys are fields of the table (wire.md §5.5):
owner, last access, a parameter, name or type. A table without the parameter meets no comparison with it.
"""

from __future__ import annotations

import re

from sqlalchemy import BigInteger, ColumnElement, Text, and_, cast, false, func, literal, not_, null, or_, true

from hive_acid.errors import MetaError
from metastore.catalog.partition.conditions import (
    OPERATORS,
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    IsNull,
    Literal,
    Membership,
    Negation,
    like_regex,
)
from metastore.catalog.partition.filters import parsed
from metastore.catalog.schema import TBL

_OWNER = "hive_filter_field_owner__"
_LAST_ACCESS = "hive_filter_field_last_access__"
_NAME = "hive_filter_field_tablename__"
_TYPE = "hive_filter_field_tabletype__"
_PARAMETER = "hive_filter_field_params__"
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)

_FIELDS: dict[str, ColumnElement[str]] = {
    _OWNER: TBL.c.owner,
    _NAME: TBL.c.name,
    _TYPE: TBL.c.table_type,
}
"""The fields that compare as text."""


def table_condition(text: str) -> ColumnElement[bool]:
    """The condition on a row of `tbl` that the filter states; no text is no condition.

    Raises MetaError for text that is not of the grammar, or names something that is not such a field.
    """
    return _sql(parsed(text, _field))


def _field(name: str) -> str:
    """The name of a field as `_sql` knows it; the case counts in the key of a parameter only."""
    lower = name.lower()
    if lower.startswith(_PARAMETER) and len(lower) > len(_PARAMETER):
        return _PARAMETER + name[len(_PARAMETER) :]
    if lower in _FIELDS or lower == _LAST_ACCESS:
        return lower
    known = ", ".join([*_FIELDS, _LAST_ACCESS, f"{_PARAMETER}KEY"])
    raise MetaError(f"'{name}' in the table filter is no field of a table: those are {known}")


def _sql(condition: Condition) -> ColumnElement[bool]:
    match condition:
        case Literal(value):
            return null() if value is None else true() if value else false()  # type: ignore[return-value]
        case Comparison(field, sign, constant):
            return _compared(field, sign, constant)
        case Membership(fields, rows):
            pairs = [[_compared(*pair) for pair in zip(fields, "=" * len(fields), row, strict=True)] for row in rows]
            return or_(false(), *(and_(*row) for row in pairs))
        case IsNull(field):
            return _value(field).is_(None)
        case Negation(part):
            return not_(_sql(part))
        case AllOf(parts):
            return and_(true(), *map(_sql, parts))
        case AnyOf(parts):
            return or_(false(), *map(_sql, parts))


def _value(field: str) -> ColumnElement[str]:
    if field in _FIELDS:
        return _FIELDS[field].collate("C")
    if field == _LAST_ACCESS:
        return func.coalesce(TBL.c.details["lastAccessTime"].astext, "0", type_=Text)
    parameter: ColumnElement[str] = TBL.c.parameters[field.removeprefix(_PARAMETER)].astext.collate("C")
    return parameter


def _compared(field: str, sign: str, constant: str) -> ColumnElement[bool]:
    value = _value(field)
    if sign == "like":
        return value.regexp_match(like_regex(constant))
    if field != _LAST_ACCESS:
        return OPERATORS[sign](value, constant.lower() if field == _NAME else constant)
    if not _INTEGER.fullmatch(constant):
        raise MetaError(f"the time of the last access is a number of seconds: it does not compare with '{constant}'")
    return OPERATORS[sign](cast(value, BigInteger), literal(int(constant), BigInteger))
