"""What tells elder clients from newer ones, and structs whose field numbers mean something else to Hive 2.3's.

What such a struct means shows in the wire type alone. The decoder skips a field whose type is not the declared one. So
a struct that may be of the elder kind is read a second time by its elder field table (wire.md §1.2).
"""

from __future__ import annotations

from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TPayload, TPayloadMeta, TType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import ttypes


def _struct(name: str, **fields: tuple[int, int, Any]) -> Any:
    """A struct of optional fields, each with its id, its type and what that is made of."""
    spec = {number: (kind, field, inner, False) for field, (number, kind, inner) in fields.items()}
    return TPayloadMeta(name, (TPayload,), {"thrift_spec": spec, "default_spec": [(field, None) for field in fields]})


# InsertEventRequestData of 2.3 begins with the files, where `replace` is now; and what contains it.
_ElderInsert = _struct(
    "InsertEventRequestData",
    filesAdded=(1, TType.LIST, TType.STRING),
    filesAddedChecksum=(2, TType.LIST, TType.STRING),
)
_ElderData = _struct("FireEventRequestData", insertData=(1, TType.STRUCT, _ElderInsert))
_ElderRequest = _struct("FireEventRequest", data=(2, TType.STRUCT, _ElderData))
_ElderArguments = _struct("fire_listener_event_args", rqst=(1, TType.STRUCT, _ElderRequest))


# AddDynamicPartitions of 2.3 has no write id: the name of the database is where the write id is now.
_ElderPartitions = _struct(
    "AddDynamicPartitions",
    txnid=(1, TType.I64, None),
    dbname=(2, TType.STRING, None),
    tablename=(3, TType.STRING, None),
    partitionnames=(4, TType.LIST, TType.STRING),
    operationType=(5, TType.I32, None),
)
_ElderPartitionsArguments = _struct("add_dynamic_partitions_args", rqst=(1, TType.STRUCT, _ElderPartitions))

NO_WRITE_ID = 0
"""Of a writer that knows no write ids."""

_ELDER_REQUESTS = frozenset(
    {
        *("get_table_req", "get_table_objects_by_name_req", "get_table_statistics_req"),
        *("add_partitions_req", "drop_partitions_req", "get_partitions_statistics_req"),
    }
)


def is_since_hive_4(method: str) -> bool:
    """Whether only clients of Hive 4 and later call this method; they all soon call one of these."""
    return method.endswith("_req") and method not in _ELDER_REQUESTS


def amend(method: str, message: bytes, arguments: Any) -> None:
    """Put into the decoded arguments of a call what a client of the elder generation meant."""
    if method == "fire_listener_event":
        _amend_insert(message, arguments)
    elif method == "add_dynamic_partitions":
        _amend_partitions(message, arguments)


def _amend_insert(message: bytes, arguments: Any) -> None:
    if arguments.rqst is None or arguments.rqst.data is None:
        return
    insert = arguments.rqst.data.insertData
    if insert is None or insert.replace is not None:
        return
    meant = _read(message, _ElderArguments()).rqst.data.insertData
    if meant.filesAdded is not None:
        arguments.rqst.data.insertData = ttypes.InsertEventRequestData(
            filesAdded=meant.filesAdded, filesAddedChecksum=meant.filesAddedChecksum
        )


def _amend_partitions(message: bytes, arguments: Any) -> None:
    if arguments.rqst is None or arguments.rqst.writeid is not None:
        return
    meant = _read(message, _ElderPartitionsArguments()).rqst
    if meant.dbname is not None:
        arguments.rqst = ttypes.AddDynamicPartitions(writeid=NO_WRITE_ID, **vars(meant))


def _read(message: bytes, arguments: Any) -> Any:
    """The arguments of a message by the field table of `arguments`."""
    protocol = TCyBinaryProtocol(TCyMemoryBuffer(message))
    protocol.read_message_begin()
    protocol.read_struct(arguments)
    return arguments
