"""Every method that is told what a reader sees, and answers with partitions, claims only what is true for that reader.

Hive answers count(*) out of such a claim. The methods are found in the IDL, by the field of their request.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from hive_acid.wire import service, ttypes
from tests.caller import Caller
from tests.rpc.statistics.story import Story

LIST = "validWriteIdList"
CLAIM = "COLUMN_STATS_ACCURATE"
NAMES_ALONE = {
    "fetch_partition_names_req",
    "get_partition_names_ps_req",
    "get_partition_names_req",
    "get_partition_values",
}
CHANGES = ("add_", "alter_", "rename_", "set_", "truncate_", "update_")


def reading() -> dict[str, Any]:
    """Methods to the class of their request."""
    found = {}
    for name in service.thrift_services:
        fields = getattr(service, f"{name}_args").thrift_spec
        kinds = [spec[2] for spec in fields.values() if inspect.isclass(spec[2])]
        if any(LIST in kind().__dict__ for kind in kinds) and "partition" in name and not name.startswith(CHANGES):
            found[name] = kinds[0]
    return found


READING = {name: kind for name, kind in reading().items() if name not in NAMES_ALONE and "statistics" not in name}


def test_those_that_are_known_are_found() -> None:
    assert {"get_partitions_spec_by_expr", "get_partitions_by_names_req", "get_partition_req"} <= READING.keys()
    assert len(READING) >= 7


@pytest.mark.parametrize("method", READING)
def test_a_claim_ends_with_a_later_write(ann: Caller, method: str) -> None:
    story = Story(ann, partitioned=True)
    counted(story)
    assert claims(story, method) == {"x": True, "y": True}
    story.insert("/p=x")
    assert claims(story, method) == {"x": False, "y": True}
    assert claims(story, method, is_told=False) == {"x": True, "y": True}, "who says nothing is told what is stored"


def counted(story: Story) -> None:
    """What Hive does after an INSERT: the partitions say how many rows they have, as of its write."""
    txn, write_id, snapshot = story.begin()
    found = story.ann.call("get_partitions", "default", story.name, -1)
    for partition in found:
        partition.parameters = {**(partition.parameters or {}), "numRows": "1", CLAIM: '{"BASIC_STATS":"true"}'}
    request = ttypes.AlterPartitionsRequest(
        dbName="default",
        tableName=story.name,
        partitions=found,
        environmentContext=ttypes.EnvironmentContext(properties={"STATS_GENERATED": "TASK"}),
        writeId=write_id,
        validWriteIdList=snapshot,
    )
    story.ann.call("alter_partitions_req", request)
    story.ann.commit(txn)


def claims(story: Story, method: str, *, is_told: bool = True) -> dict[str, bool]:
    """By its value, whether a partition is said to be counted."""
    request = READING[method]()
    given = {
        "dbName": "default",
        "db_name": "default",
        "tblName": story.name,
        "tbl_name": story.name,
        "names": ["p=x", "p=y"],
        "expr": b"",
        "partVals": ["x"] if method == "get_partition_req" else None,
        LIST: story.list_of() if is_told else None,
    }
    for name, value in given.items():
        if name in request.__dict__:
            setattr(request, name, value)
    found = {value: CLAIM in parameters for value, parameters in told(story.ann.call(method, request))}
    if method == "get_partition_req":
        request.partVals = ["y"]
        found |= {value: CLAIM in parameters for value, parameters in told(story.ann.call(method, request))}
    return found


def told(answer: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """The value and the parameters of each partition in an answer, wherever it is."""
    if isinstance(answer, list):
        for one in answer:
            yield from told(one)
    elif isinstance(answer, (ttypes.Partition, ttypes.PartitionWithoutSD)):
        yield answer.values[0], answer.parameters or {}
    elif hasattr(answer, "thrift_spec"):
        for one in vars(answer).values():
            yield from told(one)
