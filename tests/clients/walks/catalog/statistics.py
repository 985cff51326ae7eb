"""Column statistics of tables and partitions, alone and aggregated."""

from __future__ import annotations

from typing import Any

from tests.caller import refused
from tests.clients.walks.walk import Walk


def _of(walk: Walk, low: int, high: int, partition: str | None = None) -> Any:
    """Statistics of the columns ``id`` and ``name``."""
    data = walk.hive.api.ColumnStatisticsData()
    data.setLongStats(walk.new("LongColumnStatsData", lowValue=low, highValue=high, numNulls=1, numDVs=high - low))
    text = walk.hive.api.ColumnStatisticsData()
    text.setStringStats(walk.new("StringColumnStatsData", maxColLen=9, avgColLen=2.5, numNulls=0, numDVs=3))
    what = walk.new("ColumnStatisticsDesc", isTblLevel=partition is None, dbName=walk.db, tableName="t")
    if partition is not None:
        what.setPartName(partition)
    columns = [
        walk.new("ColumnStatisticsObj", colName="id", colType="int", statsData=data),
        walk.new("ColumnStatisticsObj", colName="name", colType="string", statsData=text),
    ]
    made = walk.new("ColumnStatistics", statsDesc=what, statsObj=columns)
    if walk.engine:
        made.setEngine("hive")
    return made


def of_table(walk: Walk) -> None:
    client = walk.client
    walk.create("t")
    assert client.updateTableColumnStatistics(_of(walk, 1, 10))
    found = client.both("getTableColumnStatistics", walk.db, "t", ["id", "name", "other"], *walk.engine)
    by_name = {one.getColName(): one.getStatsData() for one in found}
    assert set(by_name) == {"id", "name"}
    assert by_name["id"].getLongStats().getHighValue() == 10
    assert by_name["name"].getStringStats().getAvgColLen() == 2.5
    client.updateTableColumnStatistics(_of(walk, 1, 20))
    (one,) = client.getTableColumnStatistics(walk.db, "t", ["id"], *walk.engine)
    assert one.getStatsData().getLongStats().getNumDVs() == 19
    assert client.deleteTableColumnStatistics(walk.db, "t", "id", *walk.engine)
    assert client.getTableColumnStatistics(walk.db, "t", ["id"], *walk.engine).size() == 0
    if walk.catalog:
        assert client.deleteTableColumnStatistics("hive", walk.db, "t", "name", *walk.engine)
    with refused("NoSuchObjectException"):
        client.deleteTableColumnStatistics(walk.db, "nothing", "id", *walk.engine)


def of_partitions(walk: Walk) -> None:
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb")
    jan, feb = "year=2024/month=jan", "year=2024/month=feb"
    assert client.updatePartitionColumnStatistics(_of(walk, 1, 10, jan))
    request = walk.new("SetPartitionsStatsRequest", colStats=[_of(walk, 5, 30, feb)])
    if walk.engine:
        request.setEngine("hive")
    assert client.setPartitionColumnStatistics(request)
    found = client.both("getPartitionColumnStatistics", walk.db, "t", [jan, feb], ["id", "name"], *walk.engine)
    assert {name: len(columns) for name, columns in found.items()} == {jan: 2, feb: 2}
    whole = client.both("getAggrColStatsFor", walk.db, "t", ["id"], [jan, feb], *walk.engine)
    assert whole.getPartsFound() == 2
    long = whole.getColStats()[0].getStatsData().getLongStats()
    assert (long.getLowValue(), long.getHighValue(), long.getNumNulls()) == (1, 30, 2)
    assert client.deletePartitionColumnStatistics(walk.db, "t", jan, "id", *walk.engine)
    if walk.catalog:
        assert client.deletePartitionColumnStatistics("hive", walk.db, "t", jan, "name", *walk.engine)
        found = client.getPartitionColumnStatistics(walk.db, "t", [jan], ["id", "name"], *walk.engine)
        assert jan not in found or len(found[jan]) == 0


STORIES = [of_table, of_partitions]
