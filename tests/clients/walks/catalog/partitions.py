"""Partitions in all forms of the calls."""

from __future__ import annotations

from typing import Any

from tests.caller import refused
from tests.clients.walks.walk import Walk


def values(partitions: Any) -> list[str]:
    return sorted("/".join(partition.getValues()) for partition in partitions)


def adds(walk: Walk) -> None:
    client, hive = walk.client, walk.hive
    table = walk.partitioned("t")
    added = client.add_partition(walk.partition(table, "2024", "jan"))
    assert list(added.getValues()) == ["2024", "jan"]
    assert added.getSd().getLocation().endswith("/t/year=2024/month=jan")
    with refused("AlreadyExistsException"):
        client.add_partition(walk.partition(table, "2024", "jan"))
    some = hive.list_of(walk.partition(table, "2024", "feb"), walk.partition(table, "2024", "mar"))
    assert client.add_partitions(some) == 2
    with refused("AlreadyExistsException"):
        client.add_partitions(some, False, True)
    more = hive.list_of(walk.partition(table, "2024", "feb"), walk.partition(table, "2024", "apr"))
    assert values(client.add_partitions(more, True, True)) == ["2024/apr"]
    assert client.add_partitions(hive.list_of(walk.partition(table, "2024", "may")), True, False) is None
    with refused("MetaException"):
        client.add_partition(walk.partition(table, "2024"))
    assert client.listPartitionNames(walk.db, "t", 100).size() == 5


def appends(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t")
    assert list(client.appendPartition(walk.db, "t", ["2024", "a b"]).getValues()) == ["2024", "a b"]
    assert list(client.appendPartition(walk.db, "t", "year=2025/month=c%2Fd").getValues()) == ["2025", "c/d"]
    assert list(client.appendPartitionByName(walk.db, "t", "year=2026/month=e").getValues()) == ["2026", "e"]
    context = walk.new("EnvironmentContext", properties={})
    client.appendPartition(walk.db, "t", ["2027", "x"], context)
    client.appendPartitionByName(walk.db, "t", "year=2028/month=x", context)
    if walk.hive.generation == 2:
        client.add_partition(walk.partition(client.getTable(walk.db, "t"), "2029", "x"), context)
        client.appendPartition(walk.db, "t", "year=2030/month=x", context)
    else:
        client.appendPartition("hive", walk.db, "t", ["2029", "x"])
        client.appendPartition("hive", walk.db, "t", "year=2030/month=x")
        client.add_partition(walk.partition(client.getTable(walk.db, "t"), "2031", "x"), context)
    with refused("AlreadyExistsException"):
        client.appendPartition(walk.db, "t", ["2024", "a b"])
    names = list(client.listPartitionNames(walk.db, "t", -1))
    assert names[:2] == ["year=2024/month=a b", "year=2025/month=c%2Fd"]


def reads(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb", "2025/jan")
    assert list(client.both("getPartition", walk.db, "t", ["2024", "jan"]).getValues()) == ["2024", "jan"]
    assert list(client.both("getPartition", walk.db, "t", "year=2025/month=jan").getValues()) == ["2025", "jan"]
    with refused("NoSuchObjectException"):
        client.getPartition(walk.db, "t", ["2030", "jan"])
    assert len(client.both("listPartitions", walk.db, "t", -1)) == 3
    assert len(client.listPartitions(walk.db, "t", 2)) == 2
    assert values(client.both("listPartitions", walk.db, "t", ["2024"], -1)) == ["2024/feb", "2024/jan"]
    assert values(client.listPartitions(walk.db, "t", ["", "jan"], 10)) == ["2024/jan", "2025/jan"]
    names = ["year=2024/month=feb", "year=2024/month=jan", "year=2025/month=jan"]
    assert list(client.both("listPartitionNames", walk.db, "t", -1)) == names
    assert list(client.both("listPartitionNames", walk.db, "t", ["2024"], -1)) == names[:2]
    found = client.both("getPartitionsByNames", walk.db, "t", ["year=2025/month=jan", "year=2040/month=jan"])
    assert values(found) == ["2025/jan"]
    with refused("NoSuchObjectException"):
        client.listPartitions(walk.db, "nothing", -1)


def reads_with_privileges(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb", "2025/jan")
    assert len(client.both("listPartitionsWithAuthInfo", walk.db, "t", -1, "ann", [])) == 3
    found = client.both("listPartitionsWithAuthInfo", walk.db, "t", ["2024"], -1, "ann", ["g"])
    assert values(found) == ["2024/feb", "2024/jan"]
    one = client.both("getPartitionWithAuthInfo", walk.db, "t", ["2024", "jan"], "ann", ["g"])
    assert list(one.getValues()) == ["2024", "jan"]


def filters(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb", "2025/jan", "110/mar")
    for text, wanted in [
        ('year = 2024 and month = "feb"', ["2024/feb"]),
        ("year > 500", ["2024/feb", "2024/jan", "2025/jan"]),
        ('month like ".*a.*"', ["110/mar", "2024/jan", "2025/jan"]),
        ('year = 2025 or month = "mar"', ["110/mar", "2025/jan"]),
        ("(year) in (110, 2025)", ["110/mar", "2025/jan"]),
        ("year between 2025 and 2030", ["2025/jan"]),
        ('month != "jan"', ["110/mar", "2024/feb"]),
    ]:
        assert values(client.both("listPartitionsByFilter", walk.db, "t", text, -1)) == wanted, text
        assert client.both("getNumPartitionsByFilter", walk.db, "t", text) == len(wanted), text
    assert len(client.listPartitionsByFilter(walk.db, "t", "year > 0", 2)) == 2
    with refused("MetaException"):
        client.listPartitionsByFilter(walk.db, "t", "year = ", -1)
    with refused("MetaException"):
        client.listPartitionsByFilter(walk.db, "t", 'nothing = "x"', -1)


def specs(walk: Walk) -> None:
    client = walk.client
    table = walk.partitioned("t", "2024/jan", "2024/feb")
    walk.partitioned("u")
    found = client.listPartitionSpecs(walk.db, "t", -1)
    assert found.size() == 2
    assert client.listPartitionSpecsByFilter(walk.db, "t", 'month = "jan"', -1).size() == 1
    if walk.catalog:
        assert client.listPartitionSpecs("hive", walk.db, "t", -1).size() == 2
        assert client.listPartitionSpecsByFilter("hive", walk.db, "t", "year > 0", -1).size() == 2
    proxies = walk.hive.jvm.org.apache.hadoop.hive.metastore.partition.spec
    composite = walk.new("PartitionListComposingSpec", partitions=[walk.partition(table, "2030", "jan")])
    composite.getPartitions()[0].setTableName("u")
    spec = walk.new("PartitionSpec", dbName=walk.db, tableName="u", partitionList=composite)
    assert client.add_partitions_pspec(getattr(proxies, "PartitionSpecProxy$Factory").get(spec)) == 1
    assert list(client.listPartitionNames(walk.db, "u", -1)) == ["year=2030/month=jan"]


def filter_texts(walk: Walk) -> None:
    """The calls by expression take a filter in its bytes, as Java's own metastore does without Hive's jar."""
    client, hive = walk.client, walk.hive
    walk.partitioned("t", "2024/jan", "2025/jan")
    found = hive.list_of()
    client.listPartitionsByExpr(walk.db, "t", b"year = 2024", "", -1, found)
    assert "2024/jan" in values(found)
    if walk.catalog:
        client.listPartitionsByExpr("hive", walk.db, "t", b"year = 2024", "", -1, found)


def partition_values(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb", "2025/jan")
    request = walk.new("PartitionValuesRequest", dbName=walk.db, tblName="t", partitionKeys=walk.columns("year int"))
    request.setApplyDistinct(True)
    rows = [list(row.getRow()) for row in client.listPartitionValues(request).getPartitionValues()]
    assert sorted(rows) == [["2024"], ["2025"]]


def alters(walk: Walk) -> None:
    client, hive = walk.client, walk.hive
    walk.partitioned("t", "2024/jan", "2024/feb")
    context = walk.new("EnvironmentContext", properties={"DO_NOT_UPDATE_STATS": "true"})

    def changed(value: str) -> Any:
        partition = client.getPartition(walk.db, "t", ["2024", "jan"])
        partition.getParameters().put("k", value)
        return partition

    def is_now(value: str) -> None:
        assert client.getPartition(walk.db, "t", ["2024", "jan"]).getParameters()["k"] == value

    client.alter_partition(walk.db, "t", changed("a"))
    is_now("a")
    client.alter_partition(walk.db, "t", changed("b"), context)
    is_now("b")
    client.alter_partitions(walk.db, "t", hive.list_of(changed("c")))
    is_now("c")
    client.alter_partitions(walk.db, "t", hive.list_of(changed("d")), context)
    is_now("d")
    if walk.catalog:
        client.alter_partition("hive", walk.db, "t", changed("e"), context)
        is_now("e")
    if hive.generation == 3:
        client.alter_partitions("hive", walk.db, "t", hive.list_of(changed("f")), context)
        is_now("f")
    if hive.generation == 4:
        client.alter_partition("hive", walk.db, "t", changed("f"), context, None)
        client.alter_partitions(walk.db, "t", hive.list_of(changed("g")), context, None, -1)
        client.alter_partitions("hive", walk.db, "t", hive.list_of(changed("h")), context, None, -1)
        is_now("h")
    missing = changed("z")
    missing.setValues(["2040", "x"])
    with refused("InvalidOperationException"):
        client.alter_partition(walk.db, "t", missing)


def renames(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb")
    partition = client.getPartition(walk.db, "t", ["2024", "jan"])
    partition.setValues(["2025", "jan"])
    client.renamePartition(walk.db, "t", ["2024", "jan"], partition)
    assert values(client.listPartitions(walk.db, "t", -1)) == ["2024/feb", "2025/jan"]
    assert client.getPartition(walk.db, "t", ["2025", "jan"]).getSd().getLocation().endswith("year=2025/month=jan")
    if walk.hive.generation == 3:
        partition.setValues(["2026", "jan"])
        client.renamePartition("hive", walk.db, "t", ["2025", "jan"], partition)
        assert values(client.listPartitions(walk.db, "t", -1)) == ["2024/feb", "2026/jan"]
    if walk.hive.generation == 4:
        partition.setValues(["2026", "jan"])
        client.renamePartition("hive", walk.db, "t", ["2025", "jan"], partition, None, 0, False)
        assert values(client.listPartitions(walk.db, "t", -1)) == ["2024/feb", "2026/jan"]


def drops(walk: Walk) -> None:
    client, jvm = walk.client, walk.hive.jvm
    months = "abcdefghijk"
    walk.partitioned("t", *(f"2024/{month}" for month in months))
    context = walk.new("EnvironmentContext", properties={})
    options = jvm.org.apache.hadoop.hive.metastore.PartitionDropOptions().deleteData(True)
    assert client.dropPartition(walk.db, "t", ["2024", "a"], True)
    assert client.dropPartition(walk.db, "t", "year=2024/month=b", True)
    assert client.dropPartitionByName(walk.db, "t", "year=2024/month=c", True)
    assert client.dropPartition(walk.db, "t", ["2024", "d"], options)
    assert client.dropPartition(walk.db, "t", ["2024", "e"])
    assert client.dropPartition(walk.db, "t", ["2024", "f"], context)
    assert client.dropPartition(walk.db, "t", "year=2024/month=g", True, context)
    if walk.hive.generation == 2:
        assert client.dropPartition(walk.db, "t", ["2024", "h"], True, context)
    else:
        assert client.dropPartition("hive", walk.db, "t", ["2024", "h"], True)
        assert client.dropPartition("hive", walk.db, "t", "year=2024/month=i", True)
        assert client.dropPartition("hive", walk.db, "t", ["2024", "j"], options)
    assert client.dropPartitionByName(walk.db, "t", "year=2024/month=k", True, context)
    with refused("NoSuchObjectException"):
        client.dropPartition(walk.db, "t", ["2024", "a"], True)


def drops_by_expression(walk: Walk) -> None:
    """Drops by expression, which here is a filter string in its bytes; Kryo's own form has its own tests."""
    client, jvm = walk.client, walk.hive.jvm
    walk.partitioned("t", *(f"2024/{month}" for month in "abcdef"))
    pair_class = jvm.org.apache.hadoop.hive.common if walk.hive.generation == 2 else None
    if walk.hive.generation == 3:
        pair_class = jvm.org.apache.hadoop.hive.metastore.utils
    if pair_class is None:
        pair_of = jvm.org.apache.commons.lang3.tuple.Pair.of
    else:
        pair_of = pair_class.ObjectPair

    def pairs(month: str) -> Any:
        return walk.hive.list_of(pair_of(0, bytearray(f'month = "{month}"', "utf-8")))

    options = jvm.org.apache.hadoop.hive.metastore.PartitionDropOptions().deleteData(True).returnResults(True)
    assert values(client.dropPartitions(walk.db, "t", pairs("a"), options)) == ["2024/a"]
    assert values(client.dropPartitions(walk.db, "t", pairs("b"), True, False)) == ["2024/b"]
    client.dropPartitions(walk.db, "t", pairs("c"), True, True, False)
    if walk.catalog:
        client.dropPartitions("hive", walk.db, "t", pairs("d"), options)
    with refused("NoSuchObjectException"):
        client.dropPartitions(walk.db, "t", pairs("a"), True, False)
    assert client.dropPartitions(walk.db, "t", pairs("a"), True, True).size() == 0
    assert client.listPartitionNames(walk.db, "t", -1).size() == (2 if walk.catalog else 3)


def exchanges(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("source", *(f"202{year}/{month}" for year in range(5) for month in "ab"))
    walk.partitioned("target")
    assert client.exchange_partition({"year": "2020", "month": "a"}, walk.db, "source", walk.db, "target") is not None
    some = client.exchange_partitions({"year": "2021"}, walk.db, "source", walk.db, "target")
    assert values(some) == ["2021/a", "2021/b"]
    if walk.catalog:
        spec = {"year": "2022", "month": "a"}
        client.exchange_partition(spec, "hive", walk.db, "source", "hive", walk.db, "target")
        client.exchange_partitions({"year": "2023"}, "hive", walk.db, "source", "hive", walk.db, "target")
    assert client.listPartitionNames(walk.db, "target", -1).size() == (6 if walk.catalog else 3)
    with refused("MetaException"):
        client.exchange_partitions({"year": "2050"}, walk.db, "source", walk.db, "target")


def names(walk: Walk) -> None:
    client = walk.client
    assert list(client.partitionNameToVals("year=2024/month=a%2Fb")) == ["2024", "a/b"]
    assert dict(client.partitionNameToSpec("year=2024/month=a%2Fb")) == {"year": "2024", "month": "a/b"}
    client.validatePartitionNameCharacters(["a", "b c"])


STORIES = [
    adds, appends, reads, reads_with_privileges, filters, specs, filter_texts, partition_values, alters, renames,
    drops, drops_by_expression, exchanges, names,
]  # fmt: skip
