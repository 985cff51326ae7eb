"""Frames list the partitions that they read when they read them: the rows are those of when they were made, or none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import SnapshotEndedError, TableChangedError
from hive_acid.filesystem import files
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT

VALUES = ("a", "b", "c d", "x/y", "%41", "ü", "it's", '"', "=", None)
HIT = "b"
TOUCHING = (
    "p = 'b'",
    "p IN ('b', 'x/y', '%41') AND id % 2 = 1",
    "p = \"it's\" OR p = 'ü'",  # texts with a quote leave nothing out
    "id < 12",
)
"""Conditions for which the partition is read that is hit."""
GONE = SnapshotEndedError if OVER_CONNECT else TableChangedError
"""Over Connect all is listed when the frame is made, and files are missed when they are read."""
CONDITIONS = (*TOUCHING, "p > 'b' OR p IS NULL", "p = 'nothing'")


def rows_of(spark: SparkSession, first: int) -> Any:
    """Three rows for each partition, whose numbers begin with `first`."""
    rows = [(first + number, f"v{number}", VALUES[number % len(VALUES)]) for number in range(3 * len(VALUES))]
    return spark.createDataFrame(rows, "id int, v string, p string")


def found(frame: Any) -> list[Any]:
    return sorted(frame.collect(), key=str)


@pytest.fixture
def other(acid: AcidSession, spark: SparkSession) -> Iterator[AcidSession]:
    """Another client, and the table that both know."""
    acid.create_table("d.t", {"id": "int", "v": "string"}, partitioned_by={"p": "string"})
    acid.insert("d.t", rows_of(spark, 0))
    acid.delete("d.t", "id IN (0, 1, 6, 16)")
    with hive_acid.spark.session(spark, acid.connection.uri) as session:
        yield session


def _drop(other: AcidSession) -> None:
    other.connection.call("drop_partition_by_name", "d", "t", f"p={HIT}", True)


def _again(other: AcidSession) -> None:
    _drop(other)
    other.insert("d.t", rows_of(other.spark, 100))


def _rename(other: AcidSession) -> None:
    partition = other.connection.call("get_partition_by_name", "d", "t", f"p={HIT}")
    partition.values = ["renamed"]
    other.connection.call("rename_partition", "d", "t", [HIT], partition)


def _rename_and_fill(other: AcidSession) -> None:
    _rename(other)
    other.insert("d.t", rows_of(other.spark, 100))


def _relocate(other: AcidSession) -> None:
    partition = other.connection.call("get_partition_by_name", "d", "t", f"p={HIT}")
    before, partition.sd.location = partition.sd.location, partition.sd.location + "_moved"
    files.rename(before, partition.sd.location)
    other.connection.call("alter_partition", "d", "t", partition)


def _rename_table(other: AcidSession) -> None:
    wire = other.connection.wire_table("d", "t")
    wire.tableName = "moved"
    other.connection.call("alter_table", "d", "t", wire)


def _make_anew(other: AcidSession) -> None:
    other.drop_table("d.t")
    other.create_table("d.t", {"v": "string", "id": "int"}, partitioned_by={"p": "string"})
    other.insert("d.t", rows_of(other.spark, 100).select("v", "id", "p"))


def _compact(other: AcidSession) -> None:
    other.insert("d.t", rows_of(other.spark, 100))
    compact_table(other.spark, other, "d.t", "major")


KEEPS: dict[str, Callable[[AcidSession], Any]] = {
    "inserts": lambda other: other.insert("d.t", rows_of(other.spark, 100)),
    "new partitions": lambda other: other.insert("d.t", rows_of(other.spark, 100).withColumn("p", F.lit("bb"))),
    "changes": lambda other: (other.delete("d.t", "id % 2 = 1"), other.update("d.t", {"v": "'new'"})),
    "overwrite": lambda other: other.overwrite("d.t", rows_of(other.spark, 100)),
    "truncation": lambda other: other.truncate("d.t"),
    "compaction": _compact,
    "drop": _drop,
    "drop by our verb": lambda other: other.drop_partitions("d.t", [f"p={HIT}"]),
    "drop, and made anew": _again,
    "drop, made anew and dropped": lambda other: (_again(other), _drop(other)),
    "table dropped": lambda other: other.drop_table("d.t"),
    "table made anew": _make_anew,
    "partition and table dropped": lambda other: (_drop(other), other.drop_table("d.t")),
}
"""What does not keep a frame from its rows."""

MOVES: dict[str, Callable[[AcidSession], Any]] = {
    "renamed": _rename,
    "renamed, and made anew": _rename_and_fill,
    "renamed, made anew and dropped": lambda other: (_rename_and_fill(other), _drop(other)),
    "relocated": _relocate,
    "relocated, and the table dropped": lambda other: (_relocate(other), other.drop_table("d.t")),
    "dropped, made anew and renamed": lambda other: (_again(other), _rename(other)),
    "table renamed": _rename_table,
}
"""What takes its files away, in ways that no client with locks takes."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "tells"),
    [*((how, True) for how in (*KEEPS, *MOVES)), *((how, False) for how in ("changes", "drop, and made anew"))],
)
def test_a_frame_has_the_rows_of_when_it_was_made(
    acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, how: str, tells: bool
) -> None:
    """Also where the metastore does not tell of ids, and all is listed when the frame is made."""
    monkeypatch.setattr(acid.connection, "tells_places", tells)
    expected = {condition: found(acid.sql(f"SELECT * FROM d.t WHERE {condition}")) for condition in CONDITIONS}
    assert expected == {condition: found(acid.table("d.t", where=condition)) for condition in CONDITIONS}
    everything = found(acid.table("d.t"))
    frames = {condition: acid.table("d.t") for condition in CONDITIONS}
    together, counted, whole = acid.table("d.t"), acid.table("d.t"), acid.table("d.t")
    (KEEPS | MOVES)[how](other)
    for condition, frame in frames.items():
        try:
            assert found(frame.where(condition)) == expected[condition], condition
        except GONE:
            assert how == "table renamed" or (how in MOVES and (OVER_CONNECT or condition in TOUCHING))
    if how in KEEPS:
        for condition in TOUCHING[:2]:
            assert found(together.where(condition).where("id >= 0")) == expected[condition], condition
        assert counted.count() == len(everything)
        assert found(whole) == everything
    elif not OVER_CONNECT:
        with pytest.raises(TableChangedError, match=r"take acid\.table again"):
            counted.count()
        with pytest.raises(TableChangedError, match=r"take acid\.table again"):
            found(whole)
    if "table" not in how:
        for condition in TOUCHING[:2]:
            now = found(acid.sql(f"SELECT * FROM d.t WHERE {condition}"))
            assert found(acid.table("d.t").where(condition)) == now, condition
            assert found(acid.table("d.t", where=condition)) == now, condition


@pytest.mark.parametrize("how", ["drop, and made anew", "table made anew", "changes"])
def test_a_frame_of_a_snapshot_block_has_them_too(acid: AcidSession, other: AcidSession, how: str) -> None:
    expected = found(acid.table("d.t").where("p = 'b'"))
    with acid.snapshot():
        frame = acid.table("d.t")
        KEEPS[how](other)
        assert found(frame.where("p = 'b'")) == expected


def test_a_frame_of_a_writing_block_has_those_of_when_it_was_made(acid: AcidSession, other: AcidSession) -> None:
    with acid.transaction():
        acid.insert("d.t", rows_of(acid.spark, 100))
        frame = acid.table("d.t")
        chosen = acid.table("d.t", where="p IN ('a', 'b')")
        expected = [found(each.where("p = 'b'")) for each in (frame, chosen)]
        acid.insert("d.t", rows_of(acid.spark, 200))
        assert [found(each.where("p = 'b' AND id >= 0")) for each in (frame, chosen)] == expected


@pytest.mark.skipif(OVER_CONNECT, reason="over Connect all is listed when the frame is made")
def test_what_has_ended_before_it_is_listed_is_told(acid: AcidSession, other: AcidSession) -> None:
    frames = [acid.table("d.t") for _ in range(3)]
    opened = acid.connection.call("get_open_txns_req", ttypes.GetOpenTxnsRequest())
    other.connection.abort_transactions(opened.open_txns)
    uses: list[Callable[[Any], Any]] = [lambda one: one.where("p = 'b'"), lambda one: one.count(), found]
    for frame, use in zip(frames, uses, strict=True):
        with pytest.raises(SnapshotEndedError):
            use(frame)


@pytest.mark.skipif(OVER_CONNECT, reason="over Spark Connect a frame is planned when it is made")
def test_only_what_is_read_is_listed(acid: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many partitions there are. The metastore of this process lists as it likes, in threads of its own."""
    seen: list[str] = []
    listed = files.list_tree

    def listing(location: str, *more: Any, **how: Any) -> Any:
        if not threading.current_thread().name.startswith("files-"):
            seen.append(location.rpartition("/")[2])
        return listed(location, *more, **how)

    monkeypatch.setattr(files, "list_tree", listing)
    frame = acid.table("d.t")
    assert seen == []
    assert frame.where(F.col("p") == "b").where("id > 0").count() == 2
    assert seen == ["p=b"]
    assert frame.where("p IN ('b', 'a')").count() == 4
    assert seen == ["p=b", "p=a"], "once"
    assert acid.table("d.t", where="p = 'b'").count() == 2
    assert seen == ["p=b", "p=a", "p=b"]
    del seen[:]
    assert acid.table("d.t").count() == 26
    assert seen == ["t"], "all of it at once"
