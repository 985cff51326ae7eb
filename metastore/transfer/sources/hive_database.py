"""The Postgres database of a Hive metastore 3 or 4: rows of its tables, and storage descriptors put together.

All is read in one snapshot of the database. Columns that a version lacks are absent in rows, not errors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import psycopg2.extras

from metastore.catalog.models import Column
from metastore.store.connections.address import conninfo_of
from metastore.store.connections.failures import first_line
from metastore.transfer.models import TransferError

_ROWS_PER_FETCH = 1000
PRINCIPALS = {"USER": 1, "ROLE": 2, "GROUP": 3}

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Storage:
    """A storage descriptor: columns, location, and the rest under its IDL names."""

    columns: list[Column]
    location: str | None
    storage: dict[str, Any]


def _name_of(url: str) -> str:
    """What an import that is run again knows the source by."""
    parts = urlsplit(url)
    try:
        return f"postgresql://{parts.hostname or 'localhost'}:{parts.port or 5432}{parts.path}"
    except ValueError:  # several hosts
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"


class HiveDatabase:
    """Reads a Hive metastore's tables. `name` is its address without user and password."""

    def __init__(self, url: str) -> None:
        """Raises MetaError for what is no address, TransferError if it cannot be reached or holds no Hive metastore."""
        conninfo = conninfo_of(url)
        self.name = _name_of(url)
        try:
            self._connection = psycopg2.connect(conninfo)
            self._connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            self._numbers = 0
            if not self.rows("""SELECT 1 FROM pg_class WHERE relname = 'TBLS' AND pg_table_is_visible(oid)"""):
                raise TransferError(f"{self.name} is not the database of a Hive metastore: it has no table TBLS")
        except psycopg2.Error as error:
            raise TransferError(f"the database {self.name} cannot be used: {first_line(error)}") from error

    def close(self) -> None:
        self._connection.close()

    def refresh(self) -> None:
        """Look at the database as it is now."""
        self._connection.rollback()

    def rows(self, query: str, *values: object) -> list[Row]:
        """The rows of a query, by the names of its columns. Raises TransferError."""
        try:
            with self._connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor) as cursor:
                cursor.execute(query, values)
                return list(cursor.fetchall())
        except psycopg2.Error as error:
            raise TransferError(f"the database {self.name} cannot be read: {first_line(error)}") from error

    def stream(self, query: str, *values: object) -> Iterator[Row]:
        """The rows of a query of many rows, some in memory at a time. Raises TransferError."""
        self._numbers += 1
        try:
            with self._connection.cursor(
                f"rows_{self._numbers}", cursor_factory=psycopg2.extras.RealDictCursor
            ) as cursor:
                cursor.itersize = _ROWS_PER_FETCH
                cursor.execute(query, values)
                yield from cursor
        except psycopg2.Error as error:
            raise TransferError(f"the database {self.name} cannot be read: {first_line(error)}") from error

    def has(self, table: str) -> bool:
        """Whether this version has a table."""
        query = "SELECT 1 FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"
        return bool(self.rows(query, table))

    def parameters(self, table: str, owner: str, ids: Sequence[int]) -> dict[int, dict[str, str]]:
        """The parameters of objects by their ids."""
        found: dict[int, dict[str, str]] = defaultdict(dict)
        for row in self.rows(f'SELECT * FROM "{table}" WHERE "{owner}" = ANY (%s)', list(ids)):
            if row["PARAM_VALUE"] is not None:
                found[row[owner]][row["PARAM_KEY"]] = row["PARAM_VALUE"]
        return found

    def listed(self, table: str, owner: str, ids: Sequence[int]) -> dict[int, list[Row]]:
        """The rows of objects by their ids, in the order of INTEGER_IDX."""
        found: dict[int, list[Row]] = defaultdict(list)
        for row in self.rows(f'SELECT * FROM "{table}" WHERE "{owner}" = ANY (%s) ORDER BY "INTEGER_IDX"', list(ids)):
            found[row[owner]].append(row)
        return found

    def storages(self, ids: Iterable[int | None]) -> dict[int, Storage]:
        """Storage descriptors by their ids."""
        chosen = [one for one in ids if one is not None]
        descriptors = self.rows('SELECT * FROM "SDS" WHERE "SD_ID" = ANY (%s)', chosen)
        columns = self.listed("COLUMNS_V2", "CD_ID", list({row["CD_ID"] for row in descriptors if row["CD_ID"]}))
        serdes = self._serdes([row["SERDE_ID"] for row in descriptors if row["SERDE_ID"]])
        parameters = self.parameters("SD_PARAMS", "SD_ID", chosen)
        buckets = self.listed("BUCKETING_COLS", "SD_ID", chosen)
        sorts = self.listed("SORT_COLS", "SD_ID", chosen)
        skews = self._skews(chosen)
        found = {}
        for row in descriptors:
            sd_id = row["SD_ID"]
            storage = {
                "inputFormat": row["INPUT_FORMAT"],
                "outputFormat": row["OUTPUT_FORMAT"],
                "compressed": row["IS_COMPRESSED"],
                "numBuckets": row["NUM_BUCKETS"],
                "serdeInfo": serdes.get(row["SERDE_ID"], {}),
                "bucketCols": [one["BUCKET_COL_NAME"] for one in buckets[sd_id]],
                "sortCols": [{"col": one["COLUMN_NAME"], "order": one["ORDER"]} for one in sorts[sd_id]],
                "parameters": parameters[sd_id],
                "skewedInfo": skews[sd_id],
                "storedAsSubDirectories": row["IS_STOREDASSUBDIRECTORIES"],
            }
            own = [Column(one["COLUMN_NAME"], one["TYPE_NAME"], one["COMMENT"]) for one in columns[row["CD_ID"]]]
            found[sd_id] = Storage(own, row["LOCATION"], _present(storage))
        return found

    def _serdes(self, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        parameters = self.parameters("SERDE_PARAMS", "SERDE_ID", ids)
        return {
            row["SERDE_ID"]: _present(
                {
                    "name": row["NAME"],
                    "serializationLib": row["SLIB"],
                    "parameters": parameters[row["SERDE_ID"]],
                    "description": row.get("DESCRIPTION"),
                    "serializerClass": row.get("SERIALIZER_CLASS"),
                    "deserializerClass": row.get("DESERIALIZER_CLASS"),
                    "serdeType": row.get("SERDE_TYPE") or None,
                }
            )
            for row in self.rows('SELECT * FROM "SERDES" WHERE "SERDE_ID" = ANY (%s)', list(ids))
        }

    def _skews(self, ids: Sequence[int]) -> dict[int, dict[str, Any]]:
        """Of each descriptor its skewed columns, their values, and where these are."""
        found: dict[int, dict[str, Any]] = {
            sd_id: {"skewedColNames": [], "skewedColValues": [], "skewedColValueLocationMaps": []} for sd_id in ids
        }
        for sd_id, rows in self.listed("SKEWED_COL_NAMES", "SD_ID", ids).items():
            found[sd_id]["skewedColNames"] = [row["SKEWED_COL_NAME"] for row in rows]
        values = self.listed("SKEWED_VALUES", "SD_ID_OID", ids)
        places = self.rows('SELECT * FROM "SKEWED_COL_VALUE_LOC_MAP" WHERE "SD_ID" = ANY (%s)', list(ids))
        lists = {row["STRING_LIST_ID_EID"] for rows in values.values() for row in rows}
        lists |= {row["STRING_LIST_ID_KID"] for row in places}
        texts = self.listed("SKEWED_STRING_LIST_VALUES", "STRING_LIST_ID", list(lists))

        def text(list_id: int) -> list[str]:
            return [row["STRING_LIST_VALUE"] for row in texts[list_id]]

        for sd_id, rows in values.items():
            found[sd_id]["skewedColValues"] = [text(row["STRING_LIST_ID_EID"]) for row in rows]
        for row in places:
            pair = [text(row["STRING_LIST_ID_KID"]), row["LOCATION"]]
            found[row["SD_ID"]]["skewedColValueLocationMaps"].append(pair)
        return found


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
