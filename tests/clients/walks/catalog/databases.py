"""Databases."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from tests.caller import refused
from tests.clients.walks.walk import Walk


def life(walk: Walk) -> None:
    client, name = walk.client, f"{walk.db}_b"
    client.createDatabase(walk.new("Database", name=name, description="more", parameters={"a": "b"}))
    found = client.both("getDatabase", name)
    assert found.getDescription() == "more"
    assert dict(found.getParameters()) == {"a": "b"}
    assert Path(urlsplit(found.getLocationUri()).path).name == f"{name}.db"
    with refused("AlreadyExistsException", name):
        client.createDatabase(walk.new("Database", name=name.upper(), description="", parameters={}))
    found.setDescription("less")
    found.setOwnerName("bob")
    found.setOwnerType(walk.hive.api.PrincipalType.USER)
    client.alterDatabase(name, found)
    assert client.getDatabase(name).getDescription() == "less"
    if walk.catalog:
        found.setDescription("least")
        client.alterDatabase("hive", name, found)
        assert client.getDatabase("hive", name).getDescription() == "least"
        assert client.getDatabase(name).getCatalogName() == "hive"
    assert client.getDatabase(name).getOwnerName() == "bob"
    client.dropDatabase(name)
    with refused("NoSuchObjectException", name):
        client.getDatabase(name)


def lists(walk: Walk) -> None:
    client = walk.client
    assert walk.db in client.getAllDatabases()
    assert list(client.both("getDatabases", walk.db)) == [walk.db]
    assert list(client.getDatabases(f"{walk.db[:-1]}*|nothing")) == [walk.db]
    assert list(client.getDatabases("no_such*")) == []
    if walk.catalog:
        assert walk.db in client.getAllDatabases("hive")


def drops(walk: Walk) -> None:
    client = walk.client
    for number in range(4):
        name = f"{walk.db}_{number}"
        client.createDatabase(walk.new("Database", name=name, description="", parameters={}))
        table = walk.table("t")
        table.setDbName(name)
        client.createTable(table)
    first = f"{walk.db}_0"
    with refused("InvalidOperationException", first):
        client.dropDatabase(first)
    with refused("InvalidOperationException", first):
        client.dropDatabase(first, True, False)
    client.dropDatabase(first, True, False, True)
    client.dropDatabase(f"{walk.db}_1", False, True, True)
    third = f"{walk.db}_2"
    if walk.hive.generation == 3:
        client.dropDatabase("hive", third, True, True, True)
    if walk.hive.generation == 4:
        request = walk.new("DropDatabaseRequest", name=third, ignoreUnknownDb=True, deleteData=True, cascade=True)
        client.dropDatabase(request)
    client.dropDatabase(first, True, True)
    with refused("NoSuchObjectException", first):
        client.dropDatabase(first)


STORIES = [life, lists, drops]
