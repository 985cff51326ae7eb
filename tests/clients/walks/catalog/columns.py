"""Columns and schemas; what reads them."""

from __future__ import annotations

from tests.caller import refused
from tests.clients.walks.walk import Walk


def fields(walk: Walk) -> None:
    client = walk.client
    walk.create("t", keys="year int")
    assert [field.getName() for field in client.both("getFields", walk.db, "t")] == ["id", "name"]
    assert [field.getName() for field in client.both("getSchema", walk.db, "t")] == ["id", "name", "year"]
    with refused("UnknownTableException"):
        client.getFields(walk.db, "nothing")
    with refused("UnknownDBException"):
        client.getSchema("nothing", "t")


def column_types(walk: Walk) -> None:
    kinds = "a decimal(10;2),b array<struct<x:int>>,c map<string;double>,d timestamp,e char(3),f uniontype<int;string>"
    table = walk.create("t", columns=kinds)
    assert [field.getType() for field in table.getSd().getCols()] == [
        part.split()[1].replace(";", ",") for part in kinds.split(",")
    ]


STORIES = [fields, column_types]
