"""What a table must be to be created or altered: the transactional rules of metastore-wire.md §5, and our own.

Pure functions from the definition a client sent (and the one that stands) to the definition that is stored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from metastore.catalog.models import (
    EXTERNAL_TABLE,
    INSERT_ONLY,
    LAST_DDL_TIME,
    MANAGED_TABLE,
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    USER,
    Column,
    Table,
)
from metastore.catalog.names import MAX_TABLE_NAME, check_object_name, fold

ACID_FORMATS = {
    ("inputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"),
    ("outputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"),
}
DEFAULT = "default"

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_TEXT = re.compile(r"(?:var)?char\((\d+)\)")


def new_table(table: Table) -> Table:
    """`table` as it is created.

    Raises InvalidObjectError for names and columns that cannot be, MetaError for a broken transactional rule.
    """
    check_object_name("table", table.name, MAX_TABLE_NAME)
    _check_columns(table)
    table = _typed(replace(table, owner_type=table.owner_type or USER))
    table = _transactional(table, None)
    now_s = int(time.time())
    parameters = {LAST_DDL_TIME: str(now_s), **table.parameters}
    return replace(table, created_s=table.created_s or now_s, parameters=parameters)


def altered_table(old: Table, new: Table) -> Table:
    """`new` as it replaces `old`; what a client left out stays as it was.

    Raises InvalidOperationError for a change that is not allowed, MetaError for a broken transactional rule.
    """
    if new.name != old.name:
        check_object_name("table", new.name, MAX_TABLE_NAME)
    _check_columns(new)
    new = _typed(
        replace(
            new,
            id=old.id,
            table_type=new.table_type or old.table_type,
            owner=new.owner or old.owner,
            owner_type=new.owner_type or old.owner_type,
            created_s=new.created_s or old.created_s,
            location=new.location or old.location,
        )
    )
    _check_partition_keys(old, new)
    new = _transactional(new, old)
    if old.is_full_acid:
        _check_acid_columns(old, new)
    parameters = dict(new.parameters)
    if parameters.get(LAST_DDL_TIME) in (None, old.parameters.get(LAST_DDL_TIME)):
        parameters[LAST_DDL_TIME] = str(int(time.time()))
    return replace(new, parameters=parameters)


def becomes_transactional(old: Table, new: Table) -> bool:
    """Whether an alteration turns a plain table into a transactional one."""
    return new.is_transactional and not old.is_transactional


def _check_columns(table: Table) -> None:
    seen: set[str] = set()
    for column in [*table.columns, *table.partition_keys]:
        if not column.name or not column.type:
            raise InvalidObjectError(f"a column of {table.full_name} has no name or no type: {column}")
        if fold(column.name) in seen:
            raise InvalidObjectError(f"column {column.name} of {table.full_name} is defined twice")
        seen.add(fold(column.name))


def _typed(table: Table) -> Table:
    """Table type and the parameter EXTERNAL agree; the parameter wins where it is given."""
    external = (table.parameter("EXTERNAL") or "").upper()
    table_type = table.table_type or MANAGED_TABLE
    if external == "TRUE" and table_type == MANAGED_TABLE:
        table_type = EXTERNAL_TABLE
    elif external == "FALSE" and table_type == EXTERNAL_TABLE:
        table_type = MANAGED_TABLE
    elif not external and table_type == EXTERNAL_TABLE:
        return replace(table, table_type=table_type, parameters={**table.parameters, "EXTERNAL": "TRUE"})
    return replace(table, table_type=table_type)


def _transactional(table: Table, old: Table | None) -> Table:
    """The two transactional parameters checked, completed and in lower case."""
    keys = {TRANSACTIONAL, TRANSACTIONAL_PROPERTIES}
    given = {key.lower(): value for key, value in table.parameters.items() if key.lower() in keys}
    rest = {key: value for key, value in table.parameters.items() if key.lower() not in keys}
    flag = given.get(TRANSACTIONAL, "false").strip().lower()
    if flag not in ("true", "false"):
        raise MetaError(f"'{TRANSACTIONAL}' property of TBLPROPERTIES may only have value 'true'")
    was = old is not None and old.is_transactional
    if flag == "false":
        if was:
            raise MetaError(f"TBLPROPERTIES with '{TRANSACTIONAL}'='true' cannot be unset")
        return replace(table, parameters=rest)
    kind = given.get(TRANSACTIONAL_PROPERTIES)
    if old is not None and was:
        stands = old.parameters.get(TRANSACTIONAL_PROPERTIES, DEFAULT)
        if (kind or stands).lower() != stands:
            # Hive lets insert_only become full ACID; its files then lack the ACID row format, and ours must have it.
            raise MetaError(
                f"TBLPROPERTIES with '{TRANSACTIONAL_PROPERTIES}' cannot be altered after the table is created"
            )
        kind = stands
    kind = (kind or DEFAULT).lower()
    if kind not in (DEFAULT, INSERT_ONLY):
        raise MetaError(
            f"'{TRANSACTIONAL_PROPERTIES}' of {table.full_name} is '{kind}': it may be '{DEFAULT}' or '{INSERT_ONLY}'"
        )
    _check_acid_storage(table, kind)
    return replace(table, parameters={**rest, TRANSACTIONAL: "true", TRANSACTIONAL_PROPERTIES: kind})


def _check_acid_storage(table: Table, kind: str) -> None:
    if table.is_external:
        raise MetaError(f"{table.full_name} cannot be declared transactional because it's an external table")
    if table.is_view:
        raise MetaError(f"{table.full_name} cannot be declared transactional because it's a view")
    if kind == INSERT_ONLY:
        return
    if any(table.storage.get(key) != wanted for key, wanted in ACID_FORMATS):
        raise MetaError(f"The table must be stored using an ACID compliant format (such as ORC): {table.full_name}")
    if table.storage.get("sortCols"):
        raise MetaError(f"{table.full_name} is sorted: an ACID table keeps its rows in the order of their row ids")


def _check_partition_keys(old: Table, new: Table) -> None:
    before, after = ([fold(key.name) for key in table.partition_keys] for table in (old, new))
    if before != after:
        raise InvalidOperationError(
            f"the partition columns of {old.full_name} cannot change: they are ({', '.join(before)}),"
            f" not ({', '.join(after)})"
        )
    if old.is_full_acid and [key.type for key in old.partition_keys] != [key.type for key in new.partition_keys]:
        raise InvalidOperationError(
            f"the types of the partition columns of the ACID table {old.full_name} cannot change"
        )


def _check_acid_columns(old: Table, new: Table) -> None:
    """Files of an ACID table are read by column position: what stands may only widen, new columns come at the end."""
    refused = f"cannot alter the columns of the ACID table {old.full_name}: its files hold them by position"
    if len(new.columns) < len(old.columns):
        raise InvalidOperationError(f"{refused}, so none can be dropped")
    for before, after in zip(old.columns, new.columns, strict=False):
        if fold(before.name) != fold(after.name):
            raise InvalidOperationError(
                f"{refused}, so {before.name} cannot be renamed, moved or replaced by {after.name};"
                " new columns go to the end"
            )
        if not _widens(before.type.lower(), after.type.lower()):
            raise InvalidOperationError(
                f"{refused}, so the type of {before.name} cannot change from {before.type} to {after.type}"
            )


def _widens(old: str, new: str) -> bool:
    """Whether every value of type `old` is one of type `new`, and ORC readers convert it."""
    if old == new:
        return True
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


def _numbers(match: re.Match[str] | None) -> Sequence[int]:
    return [int(number) for number in match.groups()] if match else []


def partition_columns(columns: Sequence[Column] | None) -> list[Column] | None:
    """A partition's own columns, names in lower case; an empty list means those of the table."""
    return lowered(columns) if columns else None


def lowered(columns: Sequence[Column]) -> list[Column]:
    """Columns with their names in lower case."""
    return [column._replace(name=fold(column.name)) for column in columns]
