"""What hostile calls find on the server: databases, tables of all kinds, partitions, functions, transactions."""

from __future__ import annotations

import contextlib
from typing import Any

from hive_acid.wire import ttypes
from tests.caller import Caller, Refused

ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
}


def _table(name: str, kind: str = "MANAGED_TABLE", **parameters: str) -> Any:
    columns = [ttypes.FieldSchema(name=name, type="int") for name in "abc"]
    keys = [ttypes.FieldSchema(name="p", type="int"), ttypes.FieldSchema(name="q", type="string")]
    is_view = kind == "VIRTUAL_VIEW"
    return ttypes.Table(
        dbName="d",
        tableName=name,
        owner="ann",
        tableType=kind,
        sd=ttypes.StorageDescriptor(cols=columns, serdeInfo=ttypes.SerDeInfo(parameters={}), parameters={}, **ORC),
        partitionKeys=[] if is_view or name == "plain" else keys,
        parameters=parameters,
        viewOriginalText="select 1" if is_view else None,
        viewExpandedText="select 1" if is_view else None,
    )


def _partition(table: str, *values: str) -> Any:
    columns = [ttypes.FieldSchema(name=name, type="int") for name in "abc"]
    storage = ttypes.StorageDescriptor(cols=columns, serdeInfo=ttypes.SerDeInfo(parameters={}), parameters={}, **ORC)
    return ttypes.Partition(dbName="d", tableName=table, values=list(values), sd=storage, parameters={})


def furnish(caller: Caller) -> list[int]:
    """Make what is not there (any more); returns the ids of transactions that are open."""
    calls: list[tuple[str, tuple[Any, ...]]] = [
        ("create_database", (ttypes.Database(name="d"),)),
        ("create_database", (ttypes.Database(name="e"),)),
        ("create_table", (_table("t"),)),
        ("create_table", (_table("plain"),)),
        ("create_table", (_table("acid", transactional="true"),)),
        ("create_table", (_table("view", "VIRTUAL_VIEW"),)),
        *(("add_partition", (_partition(name, "1", "a"),)) for name in ("t", "acid")),
        *(("add_partition", (_partition(name, "2", "b"),)) for name in ("t", "acid")),
        ("create_role", (ttypes.Role(roleName="ann", ownerName="ann"),)),
        (
            "create_function",
            (
                ttypes.Function(
                    functionName="a", dbName="d", className="c", ownerName="ann", ownerType=1, functionType=1
                ),
            ),
        ),
    ]
    for method, arguments in calls:
        with contextlib.suppress(Refused):
            caller.call(method, *arguments)
    txn_ids = caller.open(3)
    with contextlib.suppress(Refused, AssertionError):  # a hostile call may have locked the table
        caller.write(txn_ids[0], "d/acid/p=1/q=a")
    return txn_ids
