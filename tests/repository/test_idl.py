"""The IDL as a whole: what clients of every generation find in it."""

import importlib.resources
import re
from typing import Any

from hive_acid.wire import service, ttypes


def text() -> Any:
    return (importlib.resources.files("hive_acid.idl") / "hive_metastore.thrift").read_text()


def test_the_union_of_all_releases_is_there() -> None:
    methods = {name for name in service.thrift_services if not name.startswith("hive_acid_")}
    assert len(methods) == 305
    # Removed in 4.0, called by Spark's bundled client and pyiceberg; new in 4.x; new in 4.2; of fb303.
    assert {"get_table", "get_table_objects_by_name", "get_table_req", "get_replayed_txns_for_policy"} <= methods
    assert {"getStatus", "aliveSince", "shutdown"} <= methods


def test_no_field_has_a_default() -> None:
    assert not re.search(r"^\s+\d+: .*=", text(), re.MULTILINE)
    request = ttypes.CommitTxnRequest(txnid=1)
    assert request.exclWriteEnabled is None
    assert ttypes.LockComponent().operationType is None
    assert ttypes.LockComponent().isTransactional is None
    assert ttypes.OpenTxnRequest().txn_type is None


def test_ids_of_the_transactional_structs() -> None:
    def ids(struct: Any) -> Any:
        return {field[1]: number for number, field in struct.thrift_spec.items()}

    assert ids(ttypes.CommitTxnRequest)["exclWriteEnabled"] == 6
    assert ids(ttypes.LockRequest) == {
        "component": 1, "txnid": 2, "user": 3, "hostname": 4, "agentInfo": 5,
        "zeroWaitReadEnabled": 6, "exclusiveCTAS": 7, "locklessReadsEnabled": 8,
    }  # fmt: skip
    assert ids(ttypes.AddDynamicPartitions)["operationType"] == 6
    assert ids(ttypes.Table)["catName"] == 17
    assert ids(ttypes.ShowLocksResponseElement)["lockIdInternal"] == 16


def test_only_shutdown_and_reinitialize_are_oneway() -> None:
    assert re.findall(r"oneway void (\w+)", text()) == ["reinitialize", "shutdown"]
