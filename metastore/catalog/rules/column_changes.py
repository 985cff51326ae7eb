"""Which changes of columns the files that exist allow (acid-format.md §3.5, wire.md §5.15)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hive_acid.errors import InvalidOperationError
from hive_acid.format.hashing import type_parts
from metastore.catalog.models import Table
from metastore.catalog.names import fold

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_NUMBERS = (*_INTEGERS, "decimal", "float", "double")
_TEXTS = ("string", "varchar", "char")
_PRIMITIVES = (*_NUMBERS, *_TEXTS, "boolean", "date", "timestamp", "binary", "timestamp with local time zone")
_KNOWN = frozenset(
    {
        *(name for name in _PRIMITIVES if " " not in name),
        *("void", "datetime", "interval_year_month", "interval_day_time", "array", "map", "struct", "uniontype"),
    }
)
_OF_THE_SERDE = "<derived from deserializer>"
_NAME = re.compile(r"\w*")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_TEXT = re.compile(r"(?:var)?char\((\d+)\)")


def is_known_type(text: str) -> bool:
    """Whether a column can have this type. As in Hive the outermost name of it counts, whatever is in its brackets."""
    return text == _OF_THE_SERDE or _NAME.match(text.lower())[0] in _KNOWN  # type: ignore[index] # it may be empty


def check_acid_columns(old: Table, new: Table) -> bool:
    """Files of an ACID table are read by column position: what stands may get another name and a wider type, new
    columns come at the end. Returns whether a column was renamed.

    Raises InvalidOperationError.
    """
    refused = f"cannot alter the columns of the ACID table {old.full_name}: its files hold them by position"
    if len(new.columns) < len(old.columns):
        raise InvalidOperationError(f"{refused}, so none can be dropped")
    old_names, new_names = ([fold(column.name) for column in table.columns] for table in (old, new))
    renamed = False
    for before, after in zip(old.columns, new.columns, strict=False):
        if fold(before.name) != fold(after.name):
            # A name that stands elsewhere before or after: somebody wants to move columns, not to rename one.
            if fold(after.name) in old_names or fold(before.name) in new_names:
                raise InvalidOperationError(
                    f"{refused}, so {before.name} cannot be moved or replaced by {after.name};"
                    " new columns go to the end"
                )
            renamed = True
        if not _widens(before.type.lower(), after.type.lower()):
            raise InvalidOperationError(
                f"{refused}, so the type of {before.name} cannot change from {before.type} to {after.type}"
            )
    return renamed


def _widens(old: str, new: str) -> bool:
    """Whether every value of type `old` is one of type `new`, and ORC readers convert it."""
    if old == new:
        return True
    if "<" in old:
        return _widens_inside(old, new)
    if old in _INTEGERS and new in _INTEGERS:
        return _INTEGERS.index(old) < _INTEGERS.index(new)
    if (old, new) == ("float", "double"):
        return True
    decimals = _DECIMAL.fullmatch(old), _DECIMAL.fullmatch(new)
    if decimals[0] and decimals[1]:
        (old_digits, old_scale), (new_digits, new_scale) = _numbers(decimals[0]), _numbers(decimals[1])
        return new_scale >= old_scale and new_digits - new_scale >= old_digits - old_scale
    before, after = _TEXT.fullmatch(old), _TEXT.fullmatch(new)
    if before and new == "string":
        return old.startswith("varchar")
    return bool(before and after) and old[0] == new[0] and _numbers(before)[0] <= _numbers(after)[0]


def _widens_inside(old: str, new: str) -> bool:
    """As `_widens`, of a nested type: fields of structs stay in their places under their names, new ones follow.

    A map's keys stay as they are, since two that differ might become one.
    """
    (kind, before), (other, after) = type_parts(old), type_parts(new)
    if kind != other or len(before) > len(after) or (kind != "struct" and len(before) != len(after)):
        return False
    if kind == "map":
        return before[0] == after[0] and _widens(before[1].strip(), after[1].strip())
    if kind == "array":
        return _widens(before[0].strip(), after[0].strip())
    if kind != "struct":
        return False
    names = [part.partition(":")[0].strip() for part in after]
    return len({*names}) == len(names) and all(
        field.strip() == to.strip() and _widens(one.strip(), other.strip())
        for (field, _, one), (to, _, other) in zip(
            (part.partition(":") for part in before), (part.partition(":") for part in after), strict=False
        )
    )


def _numbers(match: re.Match[str] | None) -> Sequence[int]:
    return [int(number) for number in match.groups()] if match else []


def check_column_types(old: Table, new: Table) -> None:
    """Columns of a plain table, by their positions, may take types that the values so far convert to.

    That is Hive's rule: to text from any other, from text to the wide numbers, among numbers to a wider one; nested
    types stay. Views and Iceberg tables, whose columns are kept elsewhere, may change as they like. Raises
    InvalidOperationError.
    """
    if old.is_view or (old.parameter("table_type") or "").lower() == "iceberg":
        return
    unfit = [
        after.name
        for before, after in zip(old.columns, new.columns, strict=False)
        if not _converts(before.type.lower(), after.type.lower())
    ]
    if unfit:
        raise InvalidOperationError(
            "The following columns have types incompatible with the existing columns in their respective positions :"
            f" {', '.join(unfit)}"
        )


def _converts(old: str, new: str) -> bool:
    if old == new:
        return True
    before, after = old.partition("(")[0].strip(), new.partition("(")[0].strip()
    if before not in _PRIMITIVES or after not in _PRIMITIVES:
        return False
    if before == after or after in _TEXTS:
        return True
    if before in _TEXTS:
        return after in ("decimal", "double")
    return before in _NUMBERS and after in _NUMBERS and _NUMBERS.index(before) < _NUMBERS.index(after)
