"""ACID tables of the checklist, made and looked at over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.wire import ttypes
from tests.caller import Caller

_ORC = "org.apache.hadoop.hive.ql.io.orc"


def create_database(ann: Caller, name: str, **parameters: str) -> None:
    ann.call("create_database", ttypes.Database(name=name, parameters=parameters))


def create_table(
    ann: Caller, database: str, name: str = "t", parameters: dict[str, str] | None = None, keys: Sequence[str] = ()
) -> Any:
    """A table with one column, in its database, which must be there; as it came out."""
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name="a", type="int")],
        inputFormat=f"{_ORC}.OrcInputFormat",
        outputFormat=f"{_ORC}.OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib=f"{_ORC}.OrcSerde", parameters={}),
    )
    table = ttypes.Table(
        tableName=name,
        dbName=database,
        sd=storage,
        partitionKeys=[ttypes.FieldSchema(name=key, type="string") for key in keys],
        parameters={"transactional": "true", **(parameters or {})},
    )
    ann.call("create_table", table)
    return get_table(ann, database, name)


def get_table(ann: Caller, database: str, name: str = "t") -> Any:
    """The definition as a client gets it that understands ACID tables."""
    request = ttypes.GetTableRequest(
        dbName=database,
        tblName=name,
        capabilities=ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES]),
        processorCapabilities=["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD"],
    )
    return ann.call("get_table_req", request).table
