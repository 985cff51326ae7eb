"""What only Hive 4 has: whole requests, its compaction workers' calls, statistics of a snapshot."""

from __future__ import annotations

from typing import Any

from tests.caller import refused
from tests.clients.walks.walk import Walk


def requests(walk: Walk) -> None:
    """The forms of Hive 4 that take and give one request."""
    if walk.hive.generation != 4:
        return
    client, api = walk.client, walk.hive.api
    walk.partitioned("t", "2024/jan", "2024/feb")
    where = {"dbName": walk.db, "tblName": "t"}
    found = client.getTable(walk.new("GetTableRequest", **where))
    assert client.getTable(walk.db, "t", False, "hive") == found
    assert client.getTable("hive", walk.db, "t", False, "hive") == found
    assert client.getTable("hive", walk.db, "t", None) == found
    assert client.getTable("hive", walk.db, "t", None, False, "hive") == found
    assert client.getFieldsRequest(walk.new("GetFieldsRequest", **where)).getFields().size() == 2
    assert client.getSchemaRequest(walk.new("GetSchemaRequest", **where)).getFields().size() == 4
    one = client.getPartitionRequest(walk.new("GetPartitionRequest", partVals=["2024", "jan"], **where)).getPartition()
    assert list(one.getValues()) == ["2024", "jan"]
    request = walk.new("PartitionsRequest", maxParts=-1, **where)
    assert client.getPartitionsRequest(request).getPartitions().size() == 2
    request = api.GetPartitionsByNamesRequest(walk.db, "t")
    request.setNames(["year=2024/month=feb"])
    assert client.getPartitionsByNames(request).getPartitions().size() == 1
    request = walk.new("GetPartitionNamesPsRequest", partValues=["2024"], maxParts=-1, **where)
    assert client.listPartitionNamesRequest(request).getNames().size() == 2
    request = walk.new("GetPartitionsPsWithAuthRequest", partVals=["2024"], maxParts=-1, **where)
    assert client.listPartitionsWithAuthInfoRequest(request).getPartitions().size() == 2
    request = walk.new("GetPartitionsRequest", **where)
    request.setProjectionSpec(walk.new("GetProjectionsSpec", fieldList=["values", "sd.location"]))
    request.setFilterSpec(api.GetPartitionsFilterSpec())
    assert client.getPartitionsWithSpecs(request).getPartitionSpec().size() >= 1
    request = walk.new("AllTableConstraintsRequest", dbName=walk.db, tblName="t", catName="hive")
    assert client.getAllTableConstraints(request) is not None
    walk.client.createTable(api.CreateTableRequest(walk.table("u")))
    assert [one.getTableName() for one in client.getTables("hive", walk.db, ["u"], None)] == ["u"]
    extended = client.getTablesExt("hive", walk.db, "*", 63, 10)
    assert sorted(one.getTblName() for one in extended) == ["t", "u"]
    client.dropTable(client.getTable(walk.db, "u"), True, False, False)


def alters(walk: Walk) -> None:
    if walk.hive.generation != 4:
        return
    client = walk.client
    table = walk.create("t")
    context = walk.new("EnvironmentContext", properties={})
    table.getParameters().put("k", "v")
    client.alter_table("hive", walk.db, "t", table, context, None)
    assert client.getTable(walk.db, "t").getParameters()["k"] == "v"


def queue(walk: Walk) -> None:
    """Compactions as Hive 4's own worker takes them over Thrift."""
    if walk.hive.generation != 4:
        return
    client, api = walk.client, walk.hive.api
    walk.acid("t")
    request = walk.new("CompactionRequest", dbname=walk.db, tablename="t", type=api.CompactionType.MAJOR)
    queued = client.compact2(request).getId()
    shown = client.showCompactions(walk.new("ShowCompactRequest", dbName=walk.db)).getCompacts()
    assert [one.getId() for one in shown] == [queued]
    aborted = client.abortCompactions(walk.new("AbortCompactionRequest", compactionIds=walk.hive.longs([queued])))
    assert aborted.getAbortedcompacts() is not None
    latest = walk.new("GetLatestCommittedCompactionInfoRequest", dbname=walk.db, tablename="t")
    assert client.getLatestCommittedCompactionInfo(latest).getCompactions().size() == 0
    assert client.getServerVersion()
    assert client.scheduledQueryPoll(walk.new("ScheduledQueryPollRequest", clusterNamespace="x")) is not None


def worker(walk: Walk) -> None:
    """A compaction from the queue to its end, by the calls of Hive 4's own Worker and Cleaner."""
    if walk.hive.generation != 4:
        return
    client, api = walk.client, walk.hive.api

    def begin(name: str) -> Any:
        walk.acid(name)
        client.compact2(walk.db, name, None, api.CompactionType.MAJOR, {})
        while True:
            found = client.findNextCompact(f"worker-{walk.db}").getCi()
            if (found.getDbname(), found.getTablename()) == (walk.db, name):
                return found

    one = begin("a")
    assert list(client.findColumnsWithStats(one)) == []
    client.setHadoopJobid("job_1", one.getId())
    txn_id = client.openTxn("ann", api.TxnType.COMPACTION)
    one.setHighestWriteId(0)
    client.updateCompactorState(one, txn_id)
    client.markCompacted(one)
    client.markCleaned(one)
    client.commitTxn(txn_id)
    states = {"a": "succeeded"}
    for name, mark, state in (("b", client.markFailed, "failed"), ("c", client.markRefused, "refused")):
        taken = begin(name)
        taken.setErrorMessage("because")
        mark(taken)
        states[name] = state
    shown = {one.getTablename(): one for one in client.showCompactions().getCompacts() if one.getDbname() == walk.db}
    assert {name: one.getState() for name, one in shown.items()} == states
    assert shown["c"].getErrorMessage() == "because"
    request = walk.new("FindNextCompactRequest", workerId="w", workerVersion="4.0.1")
    assert client.findNextCompact(request).getCi() is None


def figures(walk: Walk) -> None:
    """Compaction figures, which the metastore keeps for its Initiator."""
    if walk.hive.generation != 4:
        return
    client, api = walk.client, walk.hive.api
    walk.acid("t")
    kind = api.CompactionMetricsMetricType.NUM_DELTAS
    where = {"dbname": walk.db, "tblname": "t", "type": kind}
    data = walk.new("CompactionMetricsDataStruct", metricvalue=500, version=1, threshold=10, **where)
    assert client.updateCompactionMetricsData(data)
    request = api.CompactionMetricsDataRequest(walk.db, "t", kind)
    client.removeCompactionMetricsData(request)


def cleanup(walk: Walk) -> None:
    if walk.hive.generation != 4:
        return
    client, api = walk.client, walk.hive.api
    walk.acid("t")
    txn_id = client.openTxn("ann", api.TxnType.SOFT_DELETE)
    request = walk.new("CompactionRequest", dbname=walk.db, tablename="t", type=api.CompactionType.MAJOR)
    request.setProperties({"location": f"file:{walk.directory}/gone"})
    assert client.submitForCleanup(request, 1, txn_id)
    client.rollbackTxn(txn_id)


def snapshot_statistics(walk: Walk) -> None:
    """Statistics that a transaction wrote are good for the snapshots that see it."""
    if walk.hive.generation != 4:
        return
    client = walk.client
    walk.acid("t", keys="year int")
    snapshot = f"{walk.db}.t:0:9223372036854775807::"
    for catalog in ([], ["hive"]):
        assert client.getTableColumnStatistics(*catalog, walk.db, "t", ["id"], "hive", snapshot).size() == 0
        found = client.getPartitionColumnStatistics(*catalog, walk.db, "t", ["year=1"], ["id"], "hive", snapshot)
        assert found.size() == 0
        client.getAggrColStatsFor(*catalog, walk.db, "t", ["id"], ["year=1"], "hive", snapshot)
    table_id = client.getTable(walk.db, "t").getId()
    request = walk.new("UpdateTransactionalStatsRequest", tableId=table_id)
    request.setInsertCount(3)
    request.setUpdatedCount(2)
    request.setDeletedCount(1)
    client.updateTransactionalStatistics(request)


def written_files(walk: Walk) -> None:
    """What a transaction wrote, for followers of the notification log."""
    if walk.hive.generation != 4:
        return
    client = walk.client
    walk.acid("t")
    txn_id = client.openTxn("ann")
    write_id = client.allocateTableWriteId(txn_id, walk.db, "t")
    files = walk.new("InsertEventRequestData", filesAdded=["file:/a"])
    files.setReplace(False)
    request = walk.new("WriteNotificationLogRequest", txnId=txn_id, writeId=write_id, db=walk.db, table="t")
    request.setFileInfo(files)
    client.addWriteNotificationLog(request)
    batch = walk.new("WriteNotificationLogBatchRequest", catalog="hive", db=walk.db, table="t", requestList=[request])
    client.addWriteNotificationLogInBatch(batch)
    client.commitTxn(txn_id)
    found = client.getAllWriteEventInfo(walk.new("GetAllWriteEventInfoRequest", txnId=txn_id))
    assert {(info.getDatabase(), info.getTable()) for info in found} == {(walk.db, "t")}


def by_expression(walk: Walk) -> None:
    if walk.hive.generation != 4:
        return
    client, api = walk.client, walk.hive.api
    walk.partitioned("t", "2024/jan", "2025/jan")
    request = walk.new("PartitionsByExprRequest", dbName=walk.db, tblName="t", expr=bytearray(b"year = 2024"))
    request.setMaxParts(-1)
    found = walk.hive.list_of()
    client.listPartitionsSpecByExpr(request, found)
    assert found.size() >= 1
    assert "year=2024/month=jan" in client.listPartitionNames(request)
    assert api is not None


def capabilities(walk: Walk) -> None:
    """A client that names its capabilities is told what it may do with a table."""
    if walk.hive.generation != 4:
        return
    own = walk.hive.connect(walk.uri)
    strings = walk.hive.strings("HIVEFULLACIDREAD", "HIVEMANAGEDINSERTREAD")
    own.setProcessorCapabilities(strings)
    own.setProcessorIdentifier("tests")
    walk.acid("t")
    read_only = 2
    assert own.getTable(walk.db, "t").getAccessType() == read_only
    assert own.getTranslateTableDryrun(walk.table("x")).getTableName() == "x"
    own.setProcessorCapabilities(None)
    own.close()


def connectors(walk: Walk) -> None:
    if walk.hive.generation != 4:
        return
    assert walk.client.getAllDataConnectorNames().size() == 0
    with refused("NoSuchObjectException"):
        walk.client.getDataConnector("nothing")


def counters(walk: Walk) -> None:
    if walk.hive.generation != 4:
        return
    client = walk.client
    ahead = client.openTxn("ann") + 10
    client.seedTxnId(ahead)
    assert client.openTxn("ann") >= ahead
    walk.acid("t")
    txn_id = client.openTxn("ann")
    write_id = client.allocateTableWriteId(txn_id, walk.db, "t")
    client.commitTxn(txn_id)
    assert client.getValidWriteIds(f"{walk.db}.t", write_id).isWriteIdValid(write_id)


STORIES = [
    requests, alters, queue, worker, figures, cleanup, snapshot_statistics, written_files, by_expression, capabilities,
    connectors, counters,
]  # fmt: skip
