"""The Postgres database of a Hive metastore 3 or 4 as a source: nothing needs to run but its Postgres."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hive_acid.wire import ttypes
from metastore.catalog.models import USER, CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.catalog.names import database_key, split_key
from metastore.transfer.models import (
    PARTITIONS_PER_BATCH,
    AbortedWrite,
    Entry,
    OpenTxn,
    Selection,
    SourceTable,
    TableWrites,
    TxnState,
)
from metastore.transfer.sources.hive_database import PRINCIPALS, HiveDatabase, Row, Storage
from metastore.transfer.sources.postgres_entries import global_entries, table_entries

TABLES_PER_BATCH = 100
_COMPACTION_STATES = {
    "i": "initiated", "w": "working", "r": "ready for cleaning", "s": "succeeded", "f": "failed",
    "a": "did not initiate", "c": "refused", "x": "aborted",
}  # fmt: skip
_OPERATIONS = ("i", "u", "d", "c")
_DATABASES = 'SELECT * FROM "DBS" ORDER BY "CTLG_NAME", "NAME"'
_WRITES = """
    SELECT w."T2W_WRITEID" AS write_id, t."TXN_ID" AS txn_id, t."TXN_STATE" AS state,
           coalesce(c."TC_PARTITION", '') AS partition, coalesce(c."TC_OPERATION_TYPE", 'i') AS operation
      FROM "TXN_TO_WRITE_ID" w
      JOIN "TXNS" t ON t."TXN_ID" = w."T2W_TXNID" AND t."TXN_STATE" IN ('a', 'o')
      LEFT JOIN "TXN_COMPONENTS" c ON c."TC_TXNID" = t."TXN_ID" AND c."TC_DATABASE" = w."T2W_DATABASE"
            AND c."TC_TABLE" = w."T2W_TABLE" AND c."TC_OPERATION_TYPE" <> 'c'
     WHERE w."T2W_DATABASE" = %s AND w."T2W_TABLE" = %s
    UNION
    SELECT 0, t."TXN_ID", t."TXN_STATE", coalesce(c."TC_PARTITION", ''), 'c'
      FROM "TXN_COMPONENTS" c JOIN "TXNS" t ON t."TXN_ID" = c."TC_TXNID" AND t."TXN_STATE" IN ('a', 'o')
     WHERE c."TC_DATABASE" = %s AND c."TC_TABLE" = %s AND c."TC_OPERATION_TYPE" = 'c'
"""


class PostgresSource:
    """See `Source`."""

    def __init__(self, hive: HiveDatabase) -> None:
        self._hive = hive

    @property
    def name(self) -> str:
        return self._hive.name

    @property
    def identity(self) -> str:
        query = """SELECT "PROPERTY_VALUE" AS uuid FROM "METASTORE_DB_PROPERTIES" WHERE "PROPERTY_KEY" = 'guid'"""
        found = self._hive.rows(query) if self._hive.has("METASTORE_DB_PROPERTIES") else []
        return str(found[0]["uuid"]) if found else self.name

    def txns(self) -> TxnState:
        self._hive.refresh()
        open_txns = self._hive.rows('SELECT * FROM "TXNS" WHERE "TXN_STATE" = %s ORDER BY "TXN_ID"', "o")
        compactions = self._hive.rows(
            """SELECT state, count(*) AS number
                 FROM (SELECT "CQ_STATE" AS state FROM "COMPACTION_QUEUE"
                       UNION ALL SELECT "CC_STATE" FROM "COMPLETED_COMPACTIONS") AS s
                GROUP BY state ORDER BY state"""
        )
        return TxnState(
            self._high_water_mark(),
            tuple(OpenTxn(row["TXN_ID"], row["TXN_USER"], row["TXN_HOST"]) for row in open_txns),
            {_COMPACTION_STATES.get(str(row["state"]), "other"): row["number"] for row in compactions},
        )

    def catalogs(self) -> Iterator[CatalogInfo]:
        for row in self._hive.rows('SELECT * FROM "CTLGS" ORDER BY "NAME"'):
            yield CatalogInfo(row["NAME"], row["DESC"], row["LOCATION_URI"], row.get("CREATE_TIME") or 0)

    def databases(self, selection: Selection) -> Iterator[DatabaseInfo]:
        rows = [row for row in self._hive.rows(_DATABASES) if selection.has_database(_key(row))]
        parameters = self._hive.parameters("DATABASE_PARAMS", "DB_ID", [row["DB_ID"] for row in rows])
        for row in rows:
            kind = getattr(ttypes.DatabaseType, row.get("TYPE") or "NATIVE")
            details = {
                "type": kind,
                "connector_name": row.get("DATACONNECTOR_NAME"),
                "remote_dbname": row.get("REMOTE_DBNAME"),
            }
            yield DatabaseInfo(
                name=_key(row),
                location=row["DB_LOCATION_URI"],
                managed_location=row.get("DB_MANAGED_LOCATION_URI"),
                description=row["DESC"],
                owner=row["OWNER_NAME"],
                owner_type=PRINCIPALS.get(row["OWNER_TYPE"] or "", USER),
                created_s=row.get("CREATE_TIME") or 0,
                parameters=parameters[row["DB_ID"]],
                details={name: value for name, value in details.items() if value is not None},
            )

    def entries(self) -> Iterator[Entry]:
        return global_entries(self._hive)

    def tables(self, selection: Selection) -> Iterator[SourceTable]:
        for database in self._hive.rows(_DATABASES):
            key = _key(database)
            if not selection.has_database(key):
                continue
            query = 'SELECT "TBL_ID", "TBL_NAME" FROM "TBLS" WHERE "DB_ID" = %s ORDER BY "TBL_NAME" COLLATE "C"'
            rows = self._hive.rows(query, database["DB_ID"])
            ids = [row["TBL_ID"] for row in rows if selection.has_table(key, row["TBL_NAME"])]
            for first in range(0, len(ids), TABLES_PER_BATCH):
                yield from self._tables(key, ids[first : first + TABLES_PER_BATCH])

    def changed(self, known: Mapping[str, TableWrites]) -> Iterator[SourceTable]:
        self._hive.refresh()
        for full_name, writes in known.items():
            database, _, name = full_name.rpartition(".")
            if _writes(self._hive, database, name).with_open_as_aborted() != writes.with_open_as_aborted():
                yield from self.tables(Selection(tables=(full_name,)))

    def _tables(self, database: str, ids: list[int]) -> Iterator[SourceTable]:
        rows = self._hive.rows('SELECT * FROM "TBLS" WHERE "TBL_ID" = ANY (%s) ORDER BY "TBL_NAME" COLLATE "C"', ids)
        storages = self._hive.storages(row["SD_ID"] for row in rows)
        parameters = self._hive.parameters("TABLE_PARAMS", "TBL_ID", ids)
        keys = self._hive.listed("PARTITION_KEYS", "TBL_ID", ids)
        for row in rows:
            table_id = row["TBL_ID"]
            storage = storages.get(row["SD_ID"]) or Storage([], None, {})
            table = Table(
                database=database,
                name=row["TBL_NAME"],
                table_type=row["TBL_TYPE"],
                owner=row["OWNER"],
                owner_type=PRINCIPALS.get(row.get("OWNER_TYPE") or "", USER),
                created_s=row["CREATE_TIME"],
                location=storage.location,
                columns=storage.columns,
                partition_keys=[
                    Column(key["PKEY_NAME"], key["PKEY_TYPE"], key["PKEY_COMMENT"]) for key in keys[table_id]
                ],
                parameters=parameters[table_id],
                storage=storage.storage,
                details=self._details(row, database),
            )
            yield PostgresTable(self._hive, table, table_id)

    def _details(self, row: Row, database: str) -> dict[str, Any]:
        details = {
            "lastAccessTime": row["LAST_ACCESS_TIME"],
            "retention": row["RETENTION"],
            "viewOriginalText": row["VIEW_ORIGINAL_TEXT"],
            "viewExpandedText": row["VIEW_EXPANDED_TEXT"],
            "rewriteEnabled": row["IS_REWRITE_ENABLED"],
            "writeId": row.get("WRITE_ID"),
        }
        if row["TBL_TYPE"] == "MATERIALIZED_VIEW":
            details["creationMetadata"] = self._creation(database, row["TBL_NAME"])
        return {name: value for name, value in details.items() if value is not None}

    def _creation(self, database: str, name: str) -> dict[str, Any] | None:
        catalog, database = split_key(database)
        rows = self._hive.rows(
            'SELECT * FROM "MV_CREATION_METADATA" WHERE "CAT_NAME" = %s AND "DB_NAME" = %s AND "TBL_NAME" = %s',
            catalog,
            database,
            name,
        )
        if not rows:
            return None
        used = self._hive.rows(
            """SELECT d."NAME" || '.' || t."TBL_NAME" AS name
                 FROM "MV_TABLES_USED" u JOIN "TBLS" t ON t."TBL_ID" = u."TBL_ID" JOIN "DBS" d ON d."DB_ID" = t."DB_ID"
                WHERE u."MV_CREATION_METADATA_ID" = %s ORDER BY name""",
            rows[0]["MV_CREATION_METADATA_ID"],
        )
        creation = {
            "catName": catalog,
            "dbName": database,
            "tblName": name,
            "tablesUsed": [row["name"] for row in used],
            "validTxnList": rows[0]["TXN_LIST"],
            "materializationTime": rows[0].get("MATERIALIZATION_TIME"),
        }
        return {key: value for key, value in creation.items() if value is not None}

    def _high_water_mark(self) -> int:
        if self._hive.has("NEXT_TXN_ID"):  # Hive 3
            return int(self._hive.rows('SELECT max("NTXN_NEXT") - 1 AS last FROM "NEXT_TXN_ID"')[0]["last"] or 0)
        # The sequence may be ahead of what is left in the table.
        query = """SELECT greatest(max("TXN_ID"), pg_sequence_last_value(pg_get_serial_sequence('"TXNS"', 'TXN_ID')))
                       AS last FROM "TXNS" """
        return int(self._hive.rows(query)[0]["last"] or 0)


class PostgresTable:
    """See `SourceTable`."""

    def __init__(self, hive: HiveDatabase, table: Table, table_id: int) -> None:
        self._hive = hive
        self.table = table
        self._id = table_id

    def writes(self) -> TableWrites | None:
        if not self.table.is_transactional:
            return None
        return _writes(self._hive, self.table.database, self.table.name)

    def partitions(self) -> Iterator[Sequence[Partition]]:
        last = -1
        while True:
            query = 'SELECT * FROM "PARTITIONS" WHERE "TBL_ID" = %s AND "PART_ID" > %s ORDER BY "PART_ID" LIMIT %s'
            rows = self._hive.rows(query, self._id, last, PARTITIONS_PER_BATCH)
            if not rows:
                return
            yield self._partitions(rows)
            last = rows[-1]["PART_ID"]

    def entries(self) -> Iterator[Entry]:
        return table_entries(self._hive, self.table, self._id)

    def _partitions(self, rows: Sequence[Row]) -> list[Partition]:
        ids = [row["PART_ID"] for row in rows]
        storages = self._hive.storages(row["SD_ID"] for row in rows)
        parameters = self._hive.parameters("PARTITION_PARAMS", "PART_ID", ids)
        values = self._hive.listed("PARTITION_KEY_VALS", "PART_ID", ids)
        found = []
        for row in rows:
            storage = storages.get(row["SD_ID"]) or Storage([], None, {})
            details = {"lastAccessTime": row["LAST_ACCESS_TIME"], "writeId": row.get("WRITE_ID")}
            found.append(
                Partition(
                    values=[value["PART_KEY_VAL"] for value in values[row["PART_ID"]]],
                    location=storage.location,
                    created_s=row["CREATE_TIME"],
                    columns=storage.columns,
                    parameters=parameters[row["PART_ID"]],
                    storage=storage.storage,
                    details={name: value for name, value in details.items() if value is not None},
                )
            )
        return found


def _key(database: Row) -> str:
    return database_key(database.get("CTLG_NAME") or "hive", database["NAME"])


def _writes(hive: HiveDatabase, database: str, table: str) -> TableWrites:
    names = (split_key(database)[1], table)
    query = 'SELECT "NWI_NEXT" - 1 AS last FROM "NEXT_WRITE_ID" WHERE "NWI_DATABASE" = %s AND "NWI_TABLE" = %s'
    last = hive.rows(query, *names)
    left: dict[str, list[AbortedWrite]] = {"a": [], "o": []}
    for row in hive.rows(_WRITES, *names, *names):
        operation = row["operation"] if row["operation"] in _OPERATIONS else "i"
        left[row["state"]].append(AbortedWrite(row["write_id"], row["txn_id"], row["partition"], operation))
    return TableWrites(last[0]["last"] if last else 0, tuple(sorted(left["a"])), tuple(sorted(left["o"])))
