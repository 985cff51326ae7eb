"""Reads beside clients that take no locks and move what is read: all rows, or an error; never fewer rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.connection import Connection, connect
from hive_acid.errors import HiveAcidError
from hive_acid.filesystem import files
from hive_acid.protocol import Question
from hive_acid.spark.session import AcidSession

COLUMNS = {"id": "int", "v": "string"}
ROWS = [(1, "a", "x"), (2, "b", "y")]
Move = Callable[[Connection, Any], object]


def _rename(other: Connection, wire: Any) -> None:
    wire.tableName = "moved"
    other.call("alter_table", "d", "t", wire)


def _relocate(other: Connection, wire: Any) -> None:
    before, wire.sd.location = wire.sd.location, wire.sd.location + "_moved"
    files.rename(before, wire.sd.location)
    other.call("alter_table", "d", "t", wire)


def _drop(other: Connection, wire: Any) -> None:
    other.call("drop_table", "d", "t", True)


def _replace(other: Connection, wire: Any) -> None:
    """Another table lies there, whose columns have the names of each other, and rows of its own."""
    location = wire.sd.location
    _rename(other, wire)
    wire = other.wire_table("d", "moved")
    wire.tableName, wire.sd.location, wire.id = "t", location, None
    wire.sd.cols[0].name, wire.sd.cols[1].name = "w", "id"
    other.call("create_table", wire)


def _relocate_partition(other: Connection, wire: Any) -> None:
    partition = other.call("get_partition_by_name", "d", "t", "p=x")
    before, partition.sd.location = partition.sd.location, partition.sd.location + "_moved"
    files.rename(before, partition.sd.location)
    other.call("alter_partition", "d", "t", partition)


def _rename_partition(other: Connection, wire: Any) -> None:
    partition = other.call("get_partition_by_name", "d", "t", "p=x")
    partition.values = ["z"]
    other.call("rename_partition", "d", "t", ["x"], partition)


def _drop_partition(other: Connection, wire: Any) -> None:
    other.call("drop_partition_by_name", "d", "t", "p=x", True)


MOVES: dict[str, Move] = {
    "renamed": _rename,
    "relocated": _relocate,
    "dropped": _drop,
    "replaced": _replace,
    "partition relocated": _relocate_partition,
    "partition renamed": _rename_partition,
    "partition dropped": _drop_partition,
}
MOVES_OF_PARTITIONS = [how for how in MOVES if how.startswith("partition")]
MOMENTS = ("hive_acid_begin", "behind", "hive_acid_partitions", "get_partitions_by_names", "listing", "hive_acid_moved")
"""Just before these calls, behind the first before what is asked behind it, and before the files are listed."""
READS: dict[str, Callable[[AcidSession], list[Any]]] = {
    "frame": lambda acid: acid.table("d.t").collect(),
    "sql": lambda acid: acid.sql("SELECT id, v, p FROM d.t").collect(),
    "a part": lambda acid: acid.table("d.t").where("p = 'x'").collect(),
    "statement": lambda acid: [None] * acid.delete("d.t", "p = 'x'"),
}


@pytest.fixture
def other(acid: AcidSession) -> Iterator[Connection]:
    with connect(acid.connection.uri) as connection:
        yield connection


@pytest.mark.parametrize(
    ("form", "how"),
    [
        *(("flat", how) for how in MOVES if how not in MOVES_OF_PARTITIONS),
        *((form, how) for form in ("partitioned", "insert-only") for how in MOVES if how != "relocated"),
    ],
)
def test_what_is_moved_while_it_is_read_is_found_or_told(
    acid: AcidSession, spark: SparkSession, other: Connection, monkeypatch: pytest.MonkeyPatch, form: str, how: str
) -> None:
    for kind, read in READS.items():
        if form == "insert-only" and kind == "statement":
            continue
        for moment in MOMENTS:
            with suppress(HiveAcidError):
                acid.drop_database("d", cascade=True)
            acid.create_database("d")
            properties = {"transactional_properties": "insert_only"} if form == "insert-only" else {}
            keys = {} if form == "flat" else {"p": "string"}
            columns = COLUMNS if keys else COLUMNS | {"p": "string"}
            acid.create_table("d.t", columns, partitioned_by=keys, properties=properties)
            acid.insert("d.t", spark.createDataFrame(ROWS, "id int, v string, p string"))
            came = _at(monkeypatch, acid.connection, moment, lambda: MOVES[how](other, other.wire_table("d", "t")))
            try:
                found = len(read(acid))
            except HiveAcidError:
                found = None
            finally:
                monkeypatch.undo()
            whole = 1 if kind in ("a part", "statement") else 2
            if came and how == "partition dropped":  # before the read, or after it
                assert found in (whole, whole - 1, None), (kind, moment)
            elif came and how == "partition renamed" and whole == 1:
                assert found in (1, 0, None), (kind, moment)
            elif came and how == "replaced" and moment in ("hive_acid_begin", "behind"):
                assert found in (0, None), (kind, moment)
            else:
                assert found in (whole, None), (kind, moment)


def _at(patch: pytest.MonkeyPatch, connection: Connection, moment: str, act: Callable[[], object]) -> list[bool]:
    """Do something once, just before a moment comes; the list is not empty once it has come."""
    came: list[bool] = []
    ask, listed = connection.ask, files.list_tree

    def once() -> None:
        if not came:
            came.append(True)
            act()

    def asking(*questions: Question) -> list[Any]:
        if questions[0].method == moment:
            once()
        if moment == "behind" and questions[0].method == "hive_acid_begin" and questions[1:]:
            answers = ask(questions[0])
            once()
            return answers + ask(*questions[1:])
        return ask(*questions)

    def listing(location: str, *more: Any, **how: Any) -> Any:
        # The metastore of this process lists as it likes, in threads of its own.
        if moment == "listing" and not threading.current_thread().name.startswith("files-"):
            once()
        return listed(location, *more, **how)

    patch.setattr(connection, "ask", asking)
    patch.setattr(files, "list_tree", listing)
    return came
