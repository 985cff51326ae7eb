"""What a client stores comes back as it was, through Thrift, JSON and Postgres."""

import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thriftpy2.protocol import TCyBinaryProtocolFactory
from thriftpy2.utils import deserialize, serialize

from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.rpc.encoding.plain import from_plain, to_plain
from tests.catalog.conftest import Rpc

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=12)  # type: ignore[arg-type]
NAME = st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=12)
TYPE = st.sampled_from(["int", "string", "struct<a:int,b:array<string>>", "decimal(10,2)"])
MAP = st.dictionaries(
    TEXT.filter(lambda key: key.lower() not in ("external", "transactional_properties")), TEXT, max_size=4
)
I32 = st.integers(0, 2**31 - 1)

SERDE = st.builds(
    ttypes.SerDeInfo,
    name=st.none() | TEXT,
    serializationLib=TEXT,
    parameters=MAP,
    description=st.none() | TEXT,
    serdeType=st.none() | st.integers(1, 2),
)
SKEWED = st.builds(
    ttypes.SkewedInfo,
    skewedColNames=st.lists(NAME, max_size=2),
    skewedColValues=st.lists(st.lists(TEXT, max_size=2), max_size=2),
    skewedColValueLocationMaps=st.just({}),
)
STORAGE = st.builds(
    ttypes.StorageDescriptor,
    cols=st.lists(
        st.builds(ttypes.FieldSchema, name=NAME, type=TYPE, comment=st.none() | TEXT),
        max_size=4,
        unique_by=lambda found: found.name,
    ),
    location=st.just("file:/tmp/hive-acid-round-trip"),
    inputFormat=st.none() | TEXT,
    outputFormat=st.none() | TEXT,
    compressed=st.booleans(),
    numBuckets=st.integers(-1, 100),
    serdeInfo=SERDE,
    bucketCols=st.lists(NAME, max_size=2),
    sortCols=st.lists(st.builds(ttypes.Order, col=NAME, order=st.integers(0, 1)), max_size=2),
    parameters=MAP,
    skewedInfo=SKEWED,
    storedAsSubDirectories=st.booleans(),
)
KEYS = st.lists(
    st.builds(ttypes.FieldSchema, name=NAME.map("p_{}".format), type=TYPE, comment=st.none() | TEXT),
    max_size=2,
    unique_by=lambda found: found.name,
)
CREATION = st.builds(
    ttypes.CreationMetadata,
    catName=TEXT,
    dbName=TEXT,
    tblName=TEXT,
    tablesUsed=st.lists(TEXT, max_size=2),
    validTxnList=st.none() | TEXT,
    materializationTime=st.none() | st.integers(0, 2**40),
)
TABLE = st.builds(
    ttypes.Table,
    tableName=st.just("t"),
    dbName=st.just("default"),
    catName=st.just("hive"),
    owner=TEXT.filter(bool),
    ownerType=st.integers(1, 3),
    createTime=st.integers(1, 2**31 - 1),
    lastAccessTime=I32,
    retention=I32,
    sd=STORAGE,
    partitionKeys=KEYS,
    parameters=MAP.map(lambda given: {**given, "transient_lastDdlTime": "1"}),
    viewOriginalText=st.none() | TEXT,
    viewExpandedText=st.none() | TEXT,
    tableType=st.sampled_from(["MANAGED_TABLE", "INDEX_TABLE"]),
    temporary=st.booleans(),
    rewriteEnabled=st.booleans(),
    creationMetadata=st.none() | CREATION,
    writeId=st.integers(-1, 2**62),
)
PARTITION = st.builds(
    ttypes.Partition,
    values=st.lists(TEXT.filter(bool), min_size=1, max_size=1),
    dbName=st.just("default"),
    tableName=st.just("p"),
    catName=st.just("hive"),
    createTime=st.integers(1, 2**31 - 1),
    lastAccessTime=I32,
    sd=STORAGE.filter(lambda found: found.cols),
    parameters=MAP.map(lambda given: {**given, "transient_lastDdlTime": "1"}),
    writeId=st.integers(-1, 2**62),
)

MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def rpc(make_catalog: Callable[..., CatalogService]) -> Rpc:
    return Rpc(make_catalog(directories=False))


def over_the_wire(struct: Any) -> Any:
    factory = TCyBinaryProtocolFactory()
    return deserialize(type(struct)(), serialize(struct, factory), factory)


@MANY
@given(struct=TABLE)
def test_tables(rpc: Rpc, struct: Any) -> None:
    rpc.create_table(over_the_wire(struct))
    try:
        found = over_the_wire(rpc.get_table("default", "t"))
    finally:
        rpc.drop_table("default", "t", False)
    assert found.id > 0
    found.id, found.createTime = None, struct.createTime  # those of the server
    assert found == over_the_wire(struct)


@MANY
@given(struct=PARTITION)
def test_partitions(rpc: Rpc, struct: Any) -> None:
    if not rpc.get_tables("default", "p"):
        keys = [ttypes.FieldSchema(name="k", type="string")]
        columns = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema(name="c", type="int")], serdeInfo=ttypes.SerDeInfo()
        )
        rpc.create_table(ttypes.Table(tableName="p", dbName="default", sd=columns, partitionKeys=keys))
    rpc.add_partition(over_the_wire(struct))
    found = over_the_wire(rpc.get_partition("default", "p", struct.values))
    rpc.drop_partition("default", "p", struct.values, False)
    found.createTime = struct.createTime  # that of the server
    assert found == over_the_wire(struct)


@MANY
@given(
    struct=st.builds(
        ttypes.Database,
        name=st.just("d"),
        catalogName=st.just("hive"),
        description=TEXT,
        locationUri=st.just("file:/tmp/hive-acid-round-trip"),
        managedLocationUri=st.none() | st.just("file:/tmp/hive-acid-managed"),
        parameters=MAP,
        ownerName=TEXT.filter(bool),
        ownerType=st.integers(1, 3),
        type=st.just(1),
        connector_name=st.none() | TEXT,
        remote_dbname=st.none() | TEXT,
    )
)
def test_databases(rpc: Rpc, struct: Any) -> None:
    rpc.create_database(over_the_wire(struct))
    found = over_the_wire(rpc.get_database("d"))
    rpc.drop_database("d", False, False)
    found.createTime = None  # that of the server
    assert found == over_the_wire(struct)


@pytest.mark.parametrize("given", [None, ttypes.SkewedInfo(), ttypes.SkewedInfo(skewedColNames=["a"])])
def test_what_is_absent_of_skewed_columns_is_empty(rpc: Rpc, given: Any) -> None:
    """Hive's DESCRIBE FORMATTED stumbles over an absent list or map."""
    columns = [ttypes.FieldSchema(name="a", type="int")]
    sd = ttypes.StorageDescriptor(cols=columns, serdeInfo=ttypes.SerDeInfo(), skewedInfo=given)
    keys = [ttypes.FieldSchema(name="k", type="string")]
    rpc.create_table(over_the_wire(ttypes.Table(tableName="t", dbName="default", sd=sd, partitionKeys=keys)))
    rpc.add_partition(over_the_wire(ttypes.Partition(values=["1"], dbName="default", tableName="t", sd=sd)))
    for struct in (rpc.get_table("default", "t"), rpc.get_partition("default", "t", ["1"])):
        found = struct.sd.skewedInfo
        assert found.skewedColNames == (given.skewedColNames if given is not None and given.skewedColNames else [])
        assert (found.skewedColValues, found.skewedColValueLocationMaps) == ([], {})


def test_plain_values_keep_binary_and_odd_map_keys() -> None:
    skewed = ttypes.SkewedInfo(skewedColValueLocationMaps={("a", "b"): "somewhere"})
    statistics = ttypes.StringColumnStatsData(maxColLen=1, avgColLen=0.5, numNulls=0, numDVs=2, bitVectors=b"\x00\xff")
    for struct in (skewed, statistics):
        assert from_plain(type(struct), to_plain(struct)) == struct
