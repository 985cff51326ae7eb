"""Functions."""

from __future__ import annotations

from tests.caller import refused
from tests.clients.walks.walk import Walk


def life(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    jar = walk.new("ResourceUri", resourceType=api.ResourceType.JAR, uri="hdfs:///f.jar")
    made = walk.new(
        "Function",
        functionName="Upper2",
        dbName=walk.db,
        className="com.example.Upper",
        ownerName="ann",
        ownerType=api.PrincipalType.USER,
        createTime=0,
        functionType=api.FunctionType.JAVA,
        resourceUris=[jar],
    )
    client.createFunction(made)
    with refused("AlreadyExistsException"):
        client.createFunction(made)
    found = client.both("getFunction", walk.db, "upper2")
    assert found.getClassName() == "com.example.Upper"
    assert found.getOwnerName() == "ann"
    assert found.getResourceUris()[0].getUri() == "hdfs:///f.jar"
    assert list(client.both("getFunctions", walk.db, "up*")) == ["upper2"]
    assert list(client.getFunctions(walk.db, "nothing")) == []
    assert "upper2" in [function.getFunctionName() for function in client.getAllFunctions().getFunctions()]
    found.setClassName("com.example.Lower")
    client.alterFunction(walk.db, "upper2", found)
    assert client.getFunction(walk.db, "upper2").getClassName() == "com.example.Lower"
    if walk.catalog:
        found.setClassName("com.example.Other")
        client.alterFunction("hive", walk.db, "upper2", found)
        assert client.getFunction("hive", walk.db, "upper2").getClassName() == "com.example.Other"
    client.dropFunction(walk.db, "upper2")
    with refused("NoSuchObjectException"):
        client.getFunction(walk.db, "upper2")
    with refused("NoSuchObjectException"):
        client.dropFunction(walk.db, "upper2")
    if walk.catalog:
        client.createFunction(made)
        client.dropFunction("hive", walk.db, "upper2")


STORIES = [life]
