"""What clients may do with tables: the guard per table, insert-only tables, access types (wire.md §5.8, §5.9)."""

from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from tests.caller import Caller, refused
from tests.catalog.conftest import ACID, Rpc, storage, table

INSERT_ONLY = ACID | {"transactional_properties": "insert_only"}
GUARD = "metastore.acid.guard"


def get(rpc: Rpc, name: str, **fields: Any) -> Any:
    return rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName=name, **fields)).table


# --- the guard ---


@pytest.mark.parametrize("server", ["refuse", "warn", "allow"])
@pytest.mark.parametrize("own", ["refuse", "warn", "ALLOW"])
def test_what_a_table_says_of_the_guard_counts_more(
    make_catalog: Callable[..., CatalogService], server: str, own: str, caplog: pytest.LogCaptureFixture
) -> None:
    rpc = Rpc(make_catalog(acid_guard=server))
    rpc.create_table(table("t", parameters=ACID | {GUARD: own}))
    if own == "refuse":
        with pytest.raises(MetaError, match=r"hive_acid\.connect .* table property metastore\.acid\.guard=allow"):
            rpc.get_table("default", "t")
    else:
        assert rpc.get_table("default", "t").tableName == "t"
    assert ("default.t" in caplog.text) is (own == "warn")
    assert [found.tableName for found in rpc.get_table_objects_by_name("default", ["t"])] == ["t"] * (own != "refuse")
    assert get(rpc, "t").tableName == "t"


def test_the_property_must_make_sense(rpc: Rpc) -> None:
    text = f"'{GUARD}' of default.t is 'maybe': it may be refuse, warn or allow"
    with pytest.raises(MetaError) as caught:
        rpc.create_table(table("t", parameters=ACID | {GUARD: "maybe"}))
    assert str(caught.value) == text
    rpc.create_table(table("t", parameters=ACID))
    with pytest.raises(MetaError) as caught:
        rpc.alter_table("default", "t", table("t", parameters=ACID | {GUARD: "maybe"}))
    assert str(caught.value) == text


def test_hive_2_drops_a_database_with_acid_tables(metastore: Callable[..., str]) -> None:
    """Its dropDatabase lists the tables, gets and drops each; whoever does not drop what it got is refused again."""
    with Caller(metastore()) as spark:
        spark.call("create_database", ttypes.Database(name="d"))
        for name in ("a", "b", "c"):
            spark.call("create_table", table(name, "d", parameters=ACID if name != "b" else {}))
        with refused("MetaException", "is an ACID table"):
            spark.call("get_table", "d", "a")
        spark.call("get_all_tables", "d")
        spark.call("get_all_databases")
        with refused("MetaException", "is an ACID table"):
            spark.call("get_table", "d", "a")
        assert spark.call("get_all_tables", "d") == ["a", "b", "c"]
        for name in ("a", "b", "c"):
            assert spark.call("get_table", "d", name).tableName == name
            spark.call("drop_table_with_environment_context", "d", name, True, None)
        spark.call("drop_database", "d", True, True)


def test_a_list_of_tables_is_no_pass(metastore: Callable[..., str]) -> None:
    with Caller(metastore()) as spark:
        spark.call("create_table", table("a", parameters=ACID))
        spark.call("create_table", table("b", parameters=ACID))
        spark.call("get_all_tables", "default")
        assert spark.call("get_table", "default", "a").tableName == "a"
        for name in ("a", "b"):
            with refused("MetaException", "is an ACID table"):
                spark.call("get_table", "default", name)


# --- insert-only tables and the capabilities of Hive 3 ---


def test_insert_only_tables_are_for_everybody_by_default(rpc: Rpc) -> None:
    rpc.create_table(table("i", parameters=INSERT_ONLY))
    assert rpc.get_table("default", "i").tableName == get(rpc, "i").tableName == "i"


def test_insert_only_tables_can_ask_for_a_capability(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(capability_check=True))
    rpc.create_table(table("i", parameters=INSERT_ONLY))
    rpc.create_table(table("a", parameters=ACID))
    rpc.create_table(table("t"))
    none, other, enough = (ttypes.ClientCapabilities(values=values) for values in ([], [1], [1, 2]))
    for capabilities in (None, none, other):
        with pytest.raises(MetaError, match="Your client does not appear to support insert-only tables"):
            get(rpc, "i", capabilities=capabilities)
    with pytest.raises(MetaError, match="insert-only"):
        rpc.get_table("default", "i")
    assert get(rpc, "i", capabilities=enough).tableName == "i"
    assert get(rpc, "a").tableName == "a"
    assert rpc.get_table("default", "t").tableName == "t"


# --- access types ---

NONE, READ, READ_WRITE = 1, 2, 8
HIVESERVER2 = [
    "EXTWRITE", "EXTREAD", "HIVEBUCKET2", "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVECACHEINVALIDATE",
    "HIVEMANAGESTATS", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE", "HIVESQL", "HIVEMQT", "HIVEONLYMQTWRITE",
    "ACCEPTS_UNMODIFIED_METADATA",
]  # fmt: skip
IMPALA = [
    "EXTREAD", "EXTWRITE", "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE", "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE",
    "HIVESQL", "HIVEMQT", "HIVEBUCKET2",
]  # fmt: skip
TABLES: dict[str, dict[str, Any]] = {
    "managed": {},
    "inserts": {"parameters": INSERT_ONLY},
    "acid": {"parameters": ACID},
    "external": {"tableType": "EXTERNAL_TABLE"},
    "bucketed": {"tableType": "EXTERNAL_TABLE", "sd": storage(numBuckets=4, bucketCols=["a"])},
    "view": {"tableType": "VIRTUAL_VIEW"},
    "materialised": {"tableType": "MATERIALIZED_VIEW"},
}


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        (HIVESERVER2, [READ_WRITE] * 5 + [READ, READ]),
        (IMPALA, [READ_WRITE] * 5 + [READ, READ]),
        (["MANAGERAWMETADATA"], [READ_WRITE] * 7),
        (["CONNECTORREAD"], [READ_WRITE, READ, READ, NONE, READ, READ, NONE]),
        (["CONNECTORWRITE"], [READ_WRITE, READ_WRITE, READ_WRITE, NONE, READ, NONE, NONE]),
        (["EXTREAD"], [READ_WRITE, NONE, NONE, READ, READ, NONE, NONE]),
        (["HIVEMQT", "CONNECTORREAD"], [READ_WRITE, READ, READ, NONE, READ, READ, READ]),
        (["HIVEMANAGEDINSERTREAD", "HIVESQL"], [READ_WRITE, READ, NONE, NONE, READ, READ, NONE]),
    ],
)
def test_access_types(rpc: Rpc, capabilities: list[str], expected: list[int]) -> None:
    found = []
    for name, more in TABLES.items():
        rpc.create_table(table(name, **more))
        found.append(get(rpc, name, processorCapabilities=capabilities).accessType)
    assert dict(zip(TABLES, found, strict=True)) == dict(zip(TABLES, expected, strict=True))


def test_what_a_client_lacks_is_named(rpc: Rpc) -> None:
    rpc.create_table(table("acid", parameters=ACID))
    found = get(rpc, "acid", processorCapabilities=["HIVEFULLACIDREAD"])
    assert (found.requiredReadCapabilities, found.requiredWriteCapabilities) == (
        [],
        ["CONNECTORWRITE", "HIVEFULLACIDWRITE"],
    )
    found = get(rpc, "acid", processorCapabilities=["EXTREAD"])
    assert found.requiredReadCapabilities == ["CONNECTORREAD", "HIVEFULLACIDREAD"]
    assert get(rpc, "acid").accessType is None


@pytest.mark.parametrize(
    ("capabilities", "buckets"),
    [(["EXTREAD"], -1), (["EXTREAD", "ACCEPTS_UNMODIFIED_METADATA"], 4), (["HIVEBUCKET2"], 4), (None, 4)],
)
def test_buckets_are_hidden_from_who_cannot_keep_them(rpc: Rpc, capabilities: list[str] | None, buckets: int) -> None:
    rpc.create_table(table("b", **TABLES["bucketed"]))
    assert get(rpc, "b", processorCapabilities=capabilities).sd.numBuckets == buckets
