"""pyiceberg over its Hive catalogue, and one writer of several.

``python -m tests.clients.iceberg thrift://host:port WAREHOUSE NAME NUMBER`` appends NUMBER rows to
``lake.events``, each in a commit of its own, and repeats what another writer has overtaken.
"""

from __future__ import annotations

import sys
import time

import pyarrow as pa
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import CommitFailedException

TABLE = "lake.events"
SCHEMA = pa.schema([pa.field("writer", pa.string()), pa.field("number", pa.int64())])
PATIENCE_S = 60.0


def catalog_of(uri: str, warehouse: str) -> HiveCatalog:
    """A catalogue that waits shortly for a lock, many times."""
    waiting = {"lock-check-min-wait-time": "0.02", "lock-check-max-wait-time": "0.2", "lock-check-retries": "100"}
    return HiveCatalog("hive", uri=uri, warehouse=warehouse, **waiting)


def rows(writer: str, number: int) -> pa.Table:
    """One row."""
    return pa.table({"writer": [writer], "number": [number]}, schema=SCHEMA)


def append(catalog: HiveCatalog, writer: str, number: int) -> int:
    """Append one row; how often that had to be repeated."""
    end = time.monotonic() + PATIENCE_S
    attempts = 0
    while True:
        try:
            catalog.load_table(TABLE).append(rows(writer, number))
        except CommitFailedException:  # pyiceberg leaves the repetition to its user
            attempts += 1
            if time.monotonic() > end:
                raise
        else:
            return attempts


def main(uri: str, warehouse: str, writer: str, number: str) -> None:
    """Append, and say how many attempts were overtaken."""
    catalog = catalog_of(uri, warehouse)
    print(sum(append(catalog, writer, one) for one in range(int(number))))


if __name__ == "__main__":
    main(*sys.argv[1:])
