"""Messages of the notification log, read by Java's own classes of Hive 2.3.10.

Those of later releases need jars that are not fetched; `tests.events.test_messages` says what was seen there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from py4j.java_gateway import JavaObject

from metastore.rpc.handlers.event_messages import message
from tests.clients.java.client import JavaHive
from tests.events.samples import samples
from tests.events.test_messages import stored

MESSAGES = {event.type: message(stored(event)) for event in samples()}
READ = [
    *("CREATE_DATABASE", "DROP_DATABASE", "CREATE_TABLE", "ALTER_TABLE", "DROP_TABLE"),
    *("ADD_PARTITION", "ALTER_PARTITION", "DROP_PARTITION", "CREATE_FUNCTION", "DROP_FUNCTION", "INSERT"),
]
"""The types that this release knows."""


@pytest.fixture(scope="module")
def jvm(hive_of: Callable[[int], JavaHive]) -> Any:
    return hive_of(2).jvm


@pytest.fixture(scope="module")
def deserializer(jvm: Any) -> Any:
    return jvm.org.apache.hadoop.hive.metastore.messaging.json.JSONMessageDeserializer()


@pytest.mark.parametrize("kind", READ)
def test_every_getter_of_a_message_answers(jvm: Any, deserializer: Any, kind: Any) -> None:
    found = deserializer.getEventMessage(kind, MESSAGES[kind])
    iterable = jvm.java.lang.Class.forName("java.lang.Iterable")
    for method in found.getClass().getMethods():
        if method.getName().startswith("get") and len(method.getParameterTypes()) == 0:
            value = getattr(found, method.getName())()
            if isinstance(value, JavaObject) and iterable.isInstance(value):
                every(value)
    assert found.getTimestamp() == 1_700_000_000
    assert found.getDB() == "db"


def test_objects_arrive_as_they_were(deserializer: Any) -> None:
    added = deserializer.getAddPartitionMessage(MESSAGES["ADD_PARTITION"])
    (partition,) = every(added.getPartitionObjs())
    assert list(partition.getValues()) == ["x=1/y"]
    assert [column.getName() for column in partition.getSd().getCols()] == ["a", "b"]
    altered = deserializer.getAlterTableMessage(MESSAGES["ALTER_TABLE"])
    before, after = altered.getTableObjBefore(), altered.getTableObjAfter()
    assert (before.getTableName(), after.getTableName()) == ("t", "u")
    assert before.getSd().getCols()[1].getComment() == 'say "ü"'
    assert dict(before.getParameters()) == {"transactional": "true"}
    insert = deserializer.getInsertMessage(MESSAGES["INSERT"])
    assert every(insert.getFiles()) == ["f1###", "f2###s"]
    assert dict(insert.getPartitionKeyValues()) == {"ds": "x=1/y"}


def every(iterable: Any) -> Any:
    """The elements of a Java Iterable, which need not be a collection."""
    iterator, found = iterable.iterator(), []
    while iterator.hasNext():
        found.append(iterator.next())
    return found
