"""The entries of a Hive metastore's Postgres database: functions, roles, privileges, constraints and statistics."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator
from typing import Any

from hive_acid.wire import ConstraintKind
from metastore.catalog.column_statistics import DEFAULT_ENGINE
from metastore.catalog.constraint import Constraint, Parent
from metastore.catalog.models import USER, Table
from metastore.catalog.names import database_key, fold
from metastore.catalog.registry.privileges import ObjectType
from metastore.transfer.entries import constraint_entry, is_built_in, statistics_kind
from metastore.transfer.models import Entry
from metastore.transfer.sources.hive_database import PRINCIPALS, HiveDatabase, Row

_ENABLED, _VALIDATED, _RELIED_ON = 4, 2, 1
"""Bits of ENABLE_VALIDATE_RELY."""

_CONSTRAINTS = """
    SELECT k.*, coalesce(c."COLUMN_NAME", p."PKEY_NAME") AS own_column,
           coalesce(cc."COLUMN_NAME", cp."PKEY_NAME") AS child_column,
           d."CTLG_NAME" AS catalog, d."NAME" AS database, t."TBL_NAME" AS table_name,
           (SELECT min(o."CONSTRAINT_NAME") FROM "KEY_CONSTRAINTS" o
             WHERE o."PARENT_TBL_ID" = k."PARENT_TBL_ID" AND o."CONSTRAINT_TYPE" = 0) AS parent_key
      FROM "KEY_CONSTRAINTS" k
      JOIN "TBLS" t ON t."TBL_ID" = k."PARENT_TBL_ID" JOIN "DBS" d ON d."DB_ID" = t."DB_ID"
      LEFT JOIN "COLUMNS_V2" c ON c."CD_ID" = k."PARENT_CD_ID" AND c."INTEGER_IDX" = k."PARENT_INTEGER_IDX"
      LEFT JOIN "PARTITION_KEYS" p ON p."TBL_ID" = k."PARENT_TBL_ID" AND p."INTEGER_IDX" = k."PARENT_INTEGER_IDX"
      LEFT JOIN "COLUMNS_V2" cc ON cc."CD_ID" = k."CHILD_CD_ID" AND cc."INTEGER_IDX" = k."CHILD_INTEGER_IDX"
      LEFT JOIN "PARTITION_KEYS" cp ON cp."TBL_ID" = k."CHILD_TBL_ID" AND cp."INTEGER_IDX" = k."CHILD_INTEGER_IDX"
     WHERE CASE k."CONSTRAINT_TYPE" WHEN 1 THEN k."CHILD_TBL_ID" ELSE k."PARENT_TBL_ID" END = %s
     ORDER BY k."CONSTRAINT_TYPE", k."CONSTRAINT_NAME", k."POSITION"
"""
_PRIVILEGES_OF_TABLE = (
    ('SELECT g.*, NULL AS partition FROM "TBL_PRIVS" g WHERE g."TBL_ID" = %s', ObjectType.TABLE, "TBL_PRIV"),
    (
        'SELECT g.*, NULL AS partition FROM "TBL_COL_PRIVS" g WHERE g."TBL_ID" = %s',
        ObjectType.COLUMN,
        "TBL_COL_PRIV",
    ),
    (
        'SELECT g.*, p."PART_NAME" AS partition FROM "PART_PRIVS" g JOIN "PARTITIONS" p USING ("PART_ID")'
        ' WHERE p."TBL_ID" = %s',
        ObjectType.PARTITION,
        "PART_PRIV",
    ),
    (
        'SELECT g.*, p."PART_NAME" AS partition FROM "PART_COL_PRIVS" g JOIN "PARTITIONS" p USING ("PART_ID")'
        ' WHERE p."TBL_ID" = %s',
        ObjectType.COLUMN,
        "PART_COL_PRIV",
    ),
)


def global_entries(hive: HiveDatabase) -> Iterator[Entry]:
    """Functions, roles and who has them, global privileges and those on databases."""
    yield from _functions(hive)
    for row in hive.rows('SELECT * FROM "ROLES" ORDER BY "ROLE_NAME"'):
        role = {"name": row["ROLE_NAME"], "owner": row["OWNER_NAME"], "created_s": row["CREATE_TIME"]}
        if not is_built_in("role", role):
            yield Entry("role", row["ROLE_NAME"], role)
    grants = 'SELECT m.*, r."ROLE_NAME" FROM "ROLE_MAP" m JOIN "ROLES" r USING ("ROLE_ID") ORDER BY m."ROLE_GRANT_ID"'
    for row in hive.rows(grants):
        yield _role_grant(row)
    for row in hive.rows('SELECT * FROM "GLOBAL_PRIVS" ORDER BY "USER_GRANT_ID"'):
        value = _privilege(row, ObjectType.GLOBAL, "USER_PRIV")
        if not is_built_in("privilege", value):
            yield Entry("privilege", f"{row['USER_PRIV']} to {row['PRINCIPAL_NAME']}", value)
    databases = 'SELECT g.*, d."NAME", d."CTLG_NAME" FROM "DB_PRIVS" g JOIN "DBS" d USING ("DB_ID") ORDER BY 1'
    for row in hive.rows(databases):
        value = _privilege(row, ObjectType.DATABASE, "DB_PRIV", database_key(row["CTLG_NAME"], row["NAME"]))
        yield Entry("privilege", f"{row['DB_PRIV']} on {row['NAME']} to {row['PRINCIPAL_NAME']}", value)


def table_entries(hive: HiveDatabase, table: Table, table_id: int) -> Iterator[Entry]:
    """Privileges, constraints and statistics of a table."""
    for query, object_type, column in _PRIVILEGES_OF_TABLE:
        for row in hive.stream(query, table_id):
            yield Entry("privilege", f"{row[column]} to {row['PRINCIPAL_NAME']}", _privilege(row, object_type, column))
    rows = hive.rows(_CONSTRAINTS, table_id)
    for _, group in itertools.groupby(rows, key=lambda row: (row["CONSTRAINT_TYPE"], row["CONSTRAINT_NAME"])):
        yield constraint_entry(_constraint(table, list(group)))
    yield from _statistics(hive, 'SELECT s.*, NULL AS partition FROM "TAB_COL_STATS" s WHERE s."TBL_ID" = %s', table_id)
    if table.partition_keys:
        query = (
            'SELECT s.*, p."PART_NAME" AS partition FROM "PART_COL_STATS" s JOIN "PARTITIONS" p USING ("PART_ID")'
            ' WHERE p."TBL_ID" = %s'
        )
        yield from _statistics(hive, query, table_id)


def _functions(hive: HiveDatabase) -> Iterator[Entry]:
    query = """SELECT f.*, d."NAME", d."CTLG_NAME" FROM "FUNCS" f JOIN "DBS" d USING ("DB_ID")
                ORDER BY d."CTLG_NAME", d."NAME", f."FUNC_NAME" """
    rows = hive.rows(query)
    resources = hive.listed("FUNC_RU", "FUNC_ID", [row["FUNC_ID"] for row in rows])
    for row in rows:
        database, name = database_key(row["CTLG_NAME"], row["NAME"]), fold(row["FUNC_NAME"])
        value = {
            "database": database,
            "name": name,
            "class_name": row["CLASS_NAME"],
            "owner": row["OWNER_NAME"],
            "owner_type": PRINCIPALS.get(row["OWNER_TYPE"] or "", USER),
            "type": row["FUNC_TYPE"],
            "created_s": row["CREATE_TIME"],
            "resources": [[one["RESOURCE_TYPE"], one["RESOURCE_URI"]] for one in resources[row["FUNC_ID"]]],
        }
        yield Entry("function", f"{database} {name}", value)


def _role_grant(row: Row) -> Entry:
    value = {
        "principal": row["PRINCIPAL_NAME"],
        "principal_type": PRINCIPALS[row["PRINCIPAL_TYPE"]],
        "role": row["ROLE_NAME"],
        "grantor": row["GRANTOR"],
        "grantor_type": PRINCIPALS.get(row["GRANTOR_TYPE"] or ""),
        "grant_option": bool(row["GRANT_OPTION"]),
        "granted_s": row["ADD_TIME"],
    }
    return Entry("role_grant", f"{row['ROLE_NAME']} to {row['PRINCIPAL_NAME']}", value)


def _privilege(row: Row, object_type: ObjectType, column: str, database: str | None = None) -> dict[str, Any]:
    return {
        "object_type": int(object_type),
        "database": database,
        "partition": row.get("partition"),
        "column_name": row.get("COLUMN_NAME"),
        "principal": row["PRINCIPAL_NAME"],
        "principal_type": PRINCIPALS[row["PRINCIPAL_TYPE"]],
        "privilege": row[column],
        "grantor": row["GRANTOR"],
        "grantor_type": PRINCIPALS.get(row["GRANTOR_TYPE"] or ""),
        "grant_option": bool(row["GRANT_OPTION"]),
        "granted_s": row["CREATE_TIME"],
        "authorizer": row.get("AUTHORIZER"),
    }


def _constraint(table: Table, rows: list[Row]) -> Constraint:
    first = rows[0]
    kind = ConstraintKind(first["CONSTRAINT_TYPE"])
    bits = first["ENABLE_VALIDATE_RELY"]
    parent = None
    if kind is ConstraintKind.FOREIGN_KEY:
        parent = Parent(
            database_key(first["catalog"], first["database"]),
            first["table_name"],
            [row["own_column"] for row in rows],
            first["parent_key"],
            first["UPDATE_RULE"] or 0,
            first["DELETE_RULE"] or 0,
        )
    column = "child_column" if parent else "own_column"
    return Constraint(
        kind,
        table.database,
        table.name,
        [row[column] for row in rows if row[column]],
        first["CONSTRAINT_NAME"],
        bool(bits & _ENABLED),
        bool(bits & _VALIDATED),
        bool(bits & _RELIED_ON),
        first.get("DEFAULT_VALUE"),
        parent,
    )


def _statistics(hive: HiveDatabase, query: str, table_id: int) -> Iterator[Entry]:
    for row in hive.stream(query, table_id):
        kind = statistics_kind(row["COLUMN_TYPE"])
        exact = "BIG_DECIMAL" if kind == "decimal" else "LONG"
        low, high = row[f"{exact}_LOW_VALUE"], row[f"{exact}_HIGH_VALUE"]
        value = {
            "partition": row["partition"],
            "column_name": row["COLUMN_NAME"],
            "engine": row.get("ENGINE") or DEFAULT_ENGINE,
            "column_type": row["COLUMN_TYPE"],
            "kind": kind,
            "analyzed_s": row["LAST_ANALYZED"],
            "nulls": row["NUM_NULLS"],
            "distinct_values": row["NUM_DISTINCTS"],
            "trues": row["NUM_TRUES"],
            "falses": row["NUM_FALSES"],
            "max_length": row["MAX_COL_LEN"],
            "avg_length": row["AVG_COL_LEN"],
            "low": None if low is None else str(low),
            "high": None if high is None else str(high),
            "low_double": row["DOUBLE_LOW_VALUE"],
            "high_double": row["DOUBLE_HIGH_VALUE"],
            "bit_vector": _bytes(row.get("BIT_VECTOR")),
            "histogram": _bytes(row.get("HISTOGRAM")),
        }
        named = " ".join(part for part in (row["partition"], row["COLUMN_NAME"]) if part)
        yield Entry("statistics", named, value)


def _bytes(value: memoryview | None) -> str | None:
    """A sketch; one of two bytes says only that there is none."""
    return None if value is None or len(value) <= len(b"HL") else base64.b64encode(bytes(value)).decode()
