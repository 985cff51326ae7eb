"""Methods that are not served, with the exact text that clients look for (metastore-wire.md §3, point 1; tier 4)."""

import socket
import struct
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TApplicationException, TMessageType
from thriftpy2.transport import TCyMemoryBuffer

_NAMES = """
add_index add_package add_replication_metrics add_runtime_stats add_schema_version add_serde alter_dataconnector_req
alter_index alter_ischema alter_resource_plan alter_wm_pool alter_wm_trigger cache_file_metadata clear_file_metadata
create_dataconnector_req create_ischema create_or_drop_wm_trigger_to_pool_mapping create_or_update_wm_mapping
create_resource_plan create_stored_procedure create_type create_wm_pool create_wm_trigger drop_dataconnector_req
drop_index_by_name drop_ischema drop_package drop_resource_plan drop_schema_version drop_stored_procedure drop_type
drop_wm_mapping drop_wm_pool drop_wm_trigger find_package get_active_resource_plan get_all_packages
get_all_resource_plans get_all_stored_procedures get_file_metadata get_file_metadata_by_expr get_index_by_name
get_index_names get_indexes get_ischema get_properties get_replayed_txns_for_policy get_replication_metrics
get_resource_plan get_runtime_stats get_scheduled_query get_schema_all_versions get_schema_latest_version
get_schema_version get_schemas_by_cols get_serde get_stored_procedure get_triggers_for_resourceplan get_type
get_type_all isPartitionMarkedForEvent map_schema_version_to_serde markPartitionForEvent put_file_metadata
scheduled_query_maintenance scheduled_query_progress set_properties set_schema_version_state validate_resource_plan
"""
"""Resource plans, schema registry, types, indexes, file metadata, packages, replication metrics, data connectors."""
UNSERVED = _NAMES.split()
STRICT_CALL = 0x80010000 | TMessageType.CALL


@pytest.fixture
def connection(metastore: Callable[..., str]) -> Iterator[socket.socket]:
    address = urlsplit(metastore())
    with socket.create_connection((address.hostname or "", address.port or 0), timeout=30) as opened:
        yield opened


def call_without_arguments(connection: socket.socket, method: str, sequence: int) -> TCyBinaryProtocol:
    """A reader that stands at the beginning of the reply."""
    name = method.encode()
    connection.sendall(struct.pack(">Ii", STRICT_CALL, len(name)) + name + struct.pack(">ib", sequence, 0))
    return TCyBinaryProtocol(TCyMemoryBuffer(connection.recv(65_536)))


def test_each_of_them_is_an_unknown_method_on_a_connection_that_stays(connection: socket.socket) -> None:
    assert len(UNSERVED) == len(set(UNSERVED)) == 69
    for sequence, method in enumerate([*UNSERVED, "no_such_method"]):
        reply = call_without_arguments(connection, method, sequence)
        assert reply.read_message_begin() == (method, TMessageType.EXCEPTION, sequence)
        error = TApplicationException()
        reply.read_struct(error)
        assert (error.type, error.message) == (
            TApplicationException.UNKNOWN_METHOD,
            f"Invalid method name: '{method}'",
        )
    reply = call_without_arguments(connection, "getStatus", 1)
    assert reply.read_message_begin() == ("getStatus", TMessageType.REPLY, 1)
