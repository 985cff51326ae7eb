"""What a table must be to be created or altered: the transactional rules of wire.md §5.10, and our own.

Pure functions from the definition a client sent (and the one that stands) to the definition that is stored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from hive_acid.format.evolution import RENAMED, is_marked_renamed
from hive_acid.format.progress import kept_progress
from hive_acid.format.properties import INSERT_ONLY, TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, property_of, word_of
from metastore.catalog.accuracy import storable
from metastore.catalog.config import ALLOW, GUARD_PROPERTY, REFUSE, WARN
from metastore.catalog.models import (
    EXTERNAL_TABLE,
    LAST_DDL_TIME,
    MANAGED_TABLE,
    USER,
    Column,
    Table,
)
from metastore.catalog.names import DEFAULT_CATALOG, MAX_TABLE_NAME, check_object_name, fold, split_key
from metastore.catalog.rules.column_changes import check_acid_columns, check_column_types, is_known_type

ACID_FORMATS = {
    ("inputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat"),
    ("outputFormat", "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat"),
}
DEFAULT = "default"


def new_table(table: Table) -> Table:
    """`table` as it is created.

    Raises InvalidObjectError for names and columns that cannot be, MetaError for a broken transactional rule.
    """
    check_object_name("table", table.name, MAX_TABLE_NAME)
    _check_columns(table)
    table = _typed(replace(table, owner_type=table.owner_type or USER))
    table = _transactional(table, None)
    _check_guard(table)
    now_s = int(time.time())
    parameters = {LAST_DDL_TIME: str(now_s), **storable(table.parameters)}
    return replace(table, created_s=now_s, parameters=parameters)


def altered_table(old: Table, new: Table, check_types: bool = True, *, has_new_rows: bool = False) -> Table:
    """`new` as it replaces `old`; what a client left out stays as it was.

    `check_types` refuses column types by which the files of a plain table cannot be read; one that `has_new_rows` and
    no others has no files of before. Raises InvalidOperationError
    for a change that is not allowed, MetaError for a broken transactional rule.
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
            created_s=old.created_s,
            location=new.location or old.location,
            details=new.details | _made_of(old),
        )
    )
    _check_partition_keys(old, new)
    new = _transactional(new, old)
    _check_guard(new)
    parameters = kept_progress(old.parameters, new.parameters)
    if has_new_rows:
        pass
    elif old.is_full_acid:
        if check_acid_columns(old, new) or is_marked_renamed(old.parameters):
            parameters[RENAMED] = "true"
    elif check_types:
        check_column_types(old, new)
    if parameters.get(LAST_DDL_TIME) in (None, "0"):  # as Hive: a client that gives the time has reason to
        parameters[LAST_DDL_TIME] = str(int(time.time()))
    return replace(new, parameters=parameters)


def _made_of(table: Table) -> dict[str, Any]:
    """What a materialised view was made of: only `views.update_creation_metadata` changes that, as in Hive."""
    name = "creationMetadata"
    return {name: table.details[name]} if name in table.details else {}


def becomes_transactional(old: Table, new: Table) -> bool:
    """Whether an alteration turns a plain table into a transactional one."""
    return new.is_transactional and not old.is_transactional


def becomes_full_acid(old: Table, new: Table) -> bool:
    """Whether an alteration turns a plain or insert-only table into a full-ACID one."""
    return new.is_full_acid and not old.is_full_acid


def is_acid_storage(table: Table) -> bool:
    """Whether the files of a table can have Hive's ACID row format: ORC."""
    return all(table.storage.get(key) == wanted for key, wanted in ACID_FORMATS)


def _check_columns(table: Table) -> None:
    seen: set[str] = set()
    for column in [*table.columns, *table.partition_keys]:
        if not column.name or not column.type:
            raise InvalidObjectError(f"a column of {table.full_name} has no name or no type: {column}")
        if not is_known_type(column.type):
            raise InvalidObjectError(f"Invalid column type: {column.type}, of {column.name} of {table.full_name}")
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
    """The two transactional parameters checked, completed and in lower case; in the catalog hive only, as Hive does."""
    if split_key(table.database)[0] != DEFAULT_CATALOG:
        return table
    keys = {TRANSACTIONAL, TRANSACTIONAL_PROPERTIES}
    rest = {key: value for key, value in table.parameters.items() if key.lower() not in keys}
    flag = word_of(table.parameters, TRANSACTIONAL, default="false")
    if flag not in ("true", "false"):
        raise MetaError(f"'{TRANSACTIONAL}' property of TBLPROPERTIES may only have value 'true'")
    was = old is not None and old.is_transactional
    if flag == "false":
        if was:
            raise MetaError(f"TBLPROPERTIES with '{TRANSACTIONAL}'='true' cannot be unset")
        return replace(table, parameters=rest)
    kind = property_of(table.parameters, TRANSACTIONAL_PROPERTIES)
    if old is not None and was:
        stands = old.parameters.get(TRANSACTIONAL_PROPERTIES, DEFAULT)
        if (kind or stands).lower() != stands and (stands, (kind or "").lower()) != (INSERT_ONLY, DEFAULT):
            raise MetaError(
                f"TBLPROPERTIES with '{TRANSACTIONAL_PROPERTIES}' cannot be altered after the table is created"
            )
        kind = kind or stands
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
    if not is_acid_storage(table):
        raise MetaError(f"The table must be stored using an ACID compliant format (such as ORC): {table.full_name}")
    if table.storage.get("sortCols"):
        raise MetaError(f"{table.full_name} is sorted: an ACID table keeps its rows in the order of their row ids")


def _check_guard(table: Table) -> None:
    guard = table.parameter(GUARD_PROPERTY)
    if guard is not None and guard.lower() not in (REFUSE, WARN, ALLOW):
        raise MetaError(f"'{GUARD_PROPERTY}' of {table.full_name} is '{guard}': it may be {REFUSE}, {WARN} or {ALLOW}")


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


def partition_columns(columns: Sequence[Column] | None) -> list[Column] | None:
    """A partition's own columns, names in lower case; an empty list means those of the table."""
    return lowered(columns) if columns else None


def with_lowered_names(table: Table) -> Table:
    """A table by the names that are stored: its own, its database's and its columns' in lower case."""
    return replace(
        table,
        database=fold(table.database),
        name=fold(table.name),
        columns=lowered(table.columns),
        partition_keys=lowered(table.partition_keys),
    )


def lowered(columns: Sequence[Column]) -> list[Column]:
    """Columns with their names in lower case."""
    return [column._replace(name=fold(column.name)) for column in columns]
