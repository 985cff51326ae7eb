"""The notification log, and events that clients fire or mark."""

from __future__ import annotations

from tests.clients.walks.walk import Walk


def log(walk: Walk) -> None:
    client = walk.client
    before = client.getCurrentNotificationEventId().getEventId()
    walk.create("t")
    client.dropTable(walk.db, "t")
    assert client.getCurrentNotificationEventId().getEventId() >= before + 2
    events = client.getNextNotification(before, 0, None).getEvents()
    mine = [event for event in events if event.getDbName() == walk.db]
    assert [event.getEventType() for event in mine] == ["CREATE_TABLE", "DROP_TABLE"]
    assert mine[0].getEventId() > before
    assert mine[0].getTableName() == "t"
    assert mine[0].getMessage()
    assert len(client.getNextNotification(before, 1, None).getEvents()) == 1


def fire(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    walk.partitioned("t", "2024/jan")
    inserted = walk.new("InsertEventRequestData", filesAdded=["file:/a"])
    data = api.FireEventRequestData()
    data.setInsertData(inserted)
    request = api.FireEventRequest(True, data)
    request.setDbName(walk.db)
    request.setTableName("t")
    request.setPartitionVals(["2024", "jan"])
    before = client.getCurrentNotificationEventId().getEventId()
    assert client.fireListenerEvent(request) is not None
    events = client.getNextNotification(before, 0, None).getEvents()
    assert "INSERT" in [event.getEventType() for event in events if event.getDbName() == walk.db]
    client.insertTable(client.getTable(walk.db, "t"), False)


STORIES = [log, fire]
