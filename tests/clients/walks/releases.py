"""What releases since Hive 3 have: catalogs, write ids, replication, truncation, materialised views."""

from __future__ import annotations

from tests.caller import refused
from tests.clients.walks.walk import Walk


def catalogs(walk: Walk) -> None:
    if walk.hive.generation == 2:
        return
    client, name = walk.client, f"cat_{walk.db}"
    client.createCatalog(walk.new("Catalog", name=name, description="other", locationUri=f"file:{walk.directory}/cat"))
    assert client.getCatalog(name).getDescription() == "other"
    assert {"hive", name} <= set(client.getCatalogs())
    changed = client.getCatalog(name)
    changed.setDescription("changed")
    client.alterCatalog(name, changed)
    assert client.getCatalog(name).getDescription() == "changed"
    client.createDatabase(walk.new("Database", catalogName=name, name=walk.db, description="twin", parameters={}))
    assert client.getDatabase(name, walk.db).getDescription() == "twin"
    assert client.getDatabase(walk.db).getDescription() == ""
    assert set(client.getAllDatabases(name)) == {"default", walk.db}
    table = walk.table("t")
    table.setCatName(name)
    client.createTable(table)
    assert list(client.getAllTables(name, walk.db)) == ["t"]
    assert list(client.getAllTables(walk.db)) == []
    assert client.getTable(name, walk.db, "t").getCatName() == name
    client.dropTable(name, walk.db, "t", True, False, False)
    if walk.hive.generation == 3:
        client.dropDatabase(name, walk.db, True, False, True)
    else:
        request = walk.new("DropDatabaseRequest", catalogName=name, name=walk.db, ignoreUnknownDb=False)
        request.setDeleteData(True)
        request.setCascade(False)
        client.dropDatabase(request)
    client.dropCatalog(name)
    with refused("NoSuchObjectException", name):
        client.getCatalog(name)


def write_ids(walk: Walk) -> None:
    if walk.hive.generation == 2:
        return
    client = walk.client
    client.createTable(walk.table("t", parameters={"transactional": "true", "_meta.k": ""}))
    full_name = f"{walk.db}.t"
    first, second = client.openTxns("ann", 2).getTxn_ids()
    assert client.allocateTableWriteId(first, walk.db, "t") == 1
    (given,) = client.allocateTableWriteIdsBatch(walk.hive.longs([second]), walk.db, "t")
    assert (given.getTxnId(), given.getWriteId()) == (second, 2)
    client.commitTxn(first)
    (found,) = client.getValidWriteIds([full_name], client.getValidTxns().writeToString())
    assert (found.getFullTableName(), found.getWriteIdHighWaterMark()) == (full_name, 2)
    assert list(found.getInvalidWriteIds()) == [2]
    client.rollbackTxn(second)
    if walk.hive.generation == 4:
        _write_ids_of_4(walk, full_name)


def _write_ids_of_4(walk: Walk, full_name: str) -> None:
    client, api = walk.client, walk.hive.api
    snapshot = client.getValidWriteIds(full_name)
    assert snapshot.isWriteIdValid(1)
    assert snapshot.isWriteIdAborted(2)
    assert client.getMaxAllocatedWriteId(walk.db, "t") == 2
    third = client.openTxn("ann", api.TxnType.DEFAULT)
    assert client.allocateTableWriteId(third, walk.db, "t", False) == 3
    client.addWriteIdsToMinHistory(third, {})
    assert client.getLatestTxnIdInConflict(third) == 0
    assert client.getOpenTxns().getTxn_high_water_mark() >= third
    assert not client.getValidTxns(third, [api.TxnType.READ_ONLY]).isTxnValid(third + 1)
    client.commitTxn(walk.new("CommitTxnRequest", txnid=third))
    fourth = client.openTxn("ann")
    client.rollbackTxn(walk.new("AbortTxnRequest", txnid=fourth))
    fifth = client.openTxn("ann")
    client.abortTxns(walk.new("AbortTxnsRequest", txn_ids=walk.hive.longs([fifth])))
    sixth = client.openTxn("ann")
    table_id = client.getTable(walk.db, "t").getId()
    client.commitTxnWithKeyValue(sixth, table_id, "_meta.k", "v")
    assert client.getTable(walk.db, "t").getParameters()["_meta.k"] == "v"
    walk.acid("seeded")
    client.seedWriteId(walk.db, "seeded", 7)
    assert client.getMaxAllocatedWriteId(walk.db, "seeded") == 7


def replication(walk: Walk) -> None:
    if walk.hive.generation == 2:
        return
    client, hive, policy = walk.client, walk.hive, f"{walk.db}.*"
    walk.acid("t")
    kinds = [hive.api.TxnType.REPL_CREATED] if hive.generation == 4 else []
    (first,) = client.replOpenTxn(policy, hive.longs([1001]), "ann", *kinds)
    assert list(client.replOpenTxn(policy, hive.longs([1001]), "ann", *kinds)) == [first]
    source = walk.new("TxnToWriteId", txnId=1001, writeId=5)
    (given,) = client.replAllocateTableWriteIdsBatch(walk.db, "t", policy, [source])
    assert (given.getTxnId(), given.getWriteId()) == (first, 5)
    aborted = f"{walk.db}.t:9:9223372036854775807::3"
    client.replTableWriteIdState(aborted, walk.db, "t", [])
    if hive.generation == 3:
        client.replCommitTxn(1001, policy)
        client.replOpenTxn(policy, hive.longs([1002]), "ann")
        client.replRollbackTxn(1002, policy)
    else:
        request = walk.new("CommitTxnRequest", txnid=1001, replPolicy=policy, txn_type=hive.api.TxnType.REPL_CREATED)
        client.commitTxn(request)
        client.replOpenTxn(policy, hive.longs([1002]), "ann", *kinds)
        client.replRollbackTxn(1002, policy, *kinds)


def truncation(walk: Walk) -> None:
    if walk.hive.generation == 2:
        return
    client = walk.client
    walk.partitioned("t", "2024/jan", "2024/feb")
    client.truncateTable(walk.db, "t", ["year=2024/month=jan"])
    client.truncateTable("hive", walk.db, "t", None)
    if walk.hive.generation == 4:
        client.truncateTable(walk.db, "t", None, None, 0)
        client.truncateTable(walk.db, "t", None, None, 0, True)
        names = walk.hive.jvm.org.apache.hadoop.hive.common.TableName
        client.truncateTable(names("hive", walk.db, "t"), None)
    assert client.listPartitionNames(walk.db, "t", -1).size() == 2


def materialised_views(walk: Walk) -> None:
    if walk.hive.generation == 2:
        return
    client, hive = walk.client, walk.hive
    walk.acid("source")
    view = walk.table("mv", kind="MATERIALIZED_VIEW")
    view.setRewriteEnabled(True)
    view.setViewOriginalText("SELECT 1")
    view.setViewExpandedText("SELECT 1")
    creation = walk.new(
        "CreationMetadata", catName="hive", dbName=walk.db, tblName="mv", tablesUsed={f"{walk.db}.source"}
    )
    creation.setValidTxnList(client.getValidTxns().writeToString())
    view.setCreationMetadata(creation)
    client.createTable(view)
    assert list(client.both("getMaterializedViewsForRewriting", walk.db)) == ["mv"]
    client.updateCreationMetadata(walk.db, "mv", creation)
    client.updateCreationMetadata("hive", walk.db, "mv", creation)
    if hive.generation == 4:
        found = client.getAllMaterializedViewObjectsForRewriting()
        assert "mv" in [table.getTableName() for table in found if table.getDbName() == walk.db]
    txn_id = client.openTxn("ann")
    rebuild = client.lockMaterializationRebuild(walk.db, "mv", txn_id)
    assert rebuild.getState() == hive.api.LockState.ACQUIRED
    assert client.heartbeatLockMaterializationRebuild(walk.db, "mv", txn_id)
    client.rollbackTxn(txn_id)
    assert client.getMaterializationInvalidationInfo(creation, creation.getValidTxnList()) is not None


def events(walk: Walk) -> None:
    if walk.hive.generation == 2:
        return
    client = walk.client
    before = client.getCurrentNotificationEventId().getEventId()
    walk.create("t")
    request = walk.new("NotificationEventsCountRequest", fromEventId=before, dbName=walk.db)
    assert client.getNotificationEventsCount(request).getEventsCount() == 1
    assert client.getMetastoreDbUuid() == client.getMetastoreDbUuid()
    recycle = walk.new("CmRecycleRequest", dataPath="file:/nothing", purge=False)
    assert client.recycleDirToCmPath(recycle) is not None
    if walk.hive.generation == 4:
        asked = walk.new("NotificationEventRequest", lastEvent=before, maxEvents=10)
        found = client.getNextNotification(asked, False, None).getEvents()
        assert "CREATE_TABLE" in [event.getEventType() for event in found if event.getDbName() == walk.db]


STORIES = [catalogs, write_ids, replication, truncation, materialised_views, events]
