"""What becomes of statistics when tables and partitions are altered, renamed, emptied and dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from hive_acid.wire import ttypes
from metastore.store.database import Database
from tests.catalog.conftest import Rpc, column, partition, storage, table
from tests.catalog.statistics.short import long, statistics, text

BOTH = {"BASIC_STATS": "true", "COLUMN_STATS": {"a": "true", "b": "true"}}


@pytest.fixture
def t(rpc: Rpc) -> Rpc:
    """Table ``t`` with statistics of a and b, all accurate."""
    rpc.create_table(table("t", parameters={"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numRows": "5"}))
    rpc.update_table_column_statistics(statistics("t", a=long(), b=text()))
    return rpc


@pytest.fixture
def p(rpc: Rpc) -> Rpc:
    """Table ``p`` with the partitions k=1 and k=2, with statistics of a and b for both and the table."""
    rpc.create_table(table("p", keys=(column("k", "int"),)))
    rpc.add_partitions([partition(["1"]), partition(["2"])])
    for name in (None, "k=1", "k=2"):
        update = rpc.update_partition_column_statistics if name else rpc.update_table_column_statistics
        update(statistics("p", name, a=long(), b=text()))
    return rpc


def known(rpc: Rpc, name: str, *partitions: str) -> list[str]:
    """``a b k=1:a``: the columns with statistics, of the table and of its partitions."""
    request = ttypes.TableStatsRequest(dbName="default", tblName=name, colNames=["a", "b", "c"])
    found = [one.colName for one in rpc.get_table_statistics_req(request).tableStats]
    parts = ttypes.PartitionsStatsRequest(
        dbName="default", tblName=name, colNames=["a", "b", "c"], partNames=list(partitions)
    )
    by_name = rpc.get_partitions_statistics_req(parts).partStats
    return found + [f"{name}:{one.colName}" for name, columns in sorted(by_name.items()) for one in columns]


def accuracy(struct: Any) -> Any:
    return json.loads(struct.parameters.get("COLUMN_STATS_ACCURATE", "null"))


def alter(rpc: Rpc, name: str, properties: dict[str, str] | None = None, **changes: Any) -> Any:
    """The table as it stands with some changes, as clients send it; what is stored then."""
    struct = rpc.get_table("default", name)
    struct.sd.cols = changes.pop("cols", struct.sd.cols)
    struct.sd.location = changes.pop("location", struct.sd.location)
    struct.parameters = {**struct.parameters, **changes.pop("parameters", {})}
    for field, value in changes.items():
        setattr(struct, field, value)
    rpc.alter_table_with_environment_context(
        "default", name, struct, ttypes.EnvironmentContext(properties=properties or {})
    )
    return rpc.get_table("default", struct.tableName)


KEEP = {"DO_NOT_UPDATE_STATS": "true"}
COMPUTED = {"STATS_GENERATED": "TASK"}


def test_figures_alone_undo_no_alteration_of_another_one(t: Rpc, p: Rpc) -> None:
    stale, stale_partition = t.get_table("default", "t"), p.get_partition_by_name("default", "p", "k=1")
    alter(t, "t", cols=[*stale.sd.cols, column("new")], parameters={"owner_of": "x"})
    moved = p.get_partition_by_name("default", "p", "k=1")
    moved.parameters["mine"] = "y"
    p.alter_partition("default", "p", moved)
    told = {"numRows": "7", "totalSize": "9", "other": "z", "COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}
    only = ttypes.EnvironmentContext(properties={**COMPUTED, "hive_acid.statistics.only": "true"})
    stale.parameters |= told
    stale_partition.parameters |= told
    t.alter_table_with_environment_context("default", "t", stale, only)
    p.alter_partitions_with_environment_context("default", "p", [stale_partition], only)
    found, of_partition = t.get_table("default", "t"), p.get_partition_by_name("default", "p", "k=1")
    assert [one.name for one in found.sd.cols][-1] == "new"
    assert (found.parameters["owner_of"], of_partition.parameters["mine"]) == ("x", "y")
    for struct in (found, of_partition):
        assert (struct.parameters["numRows"], struct.parameters["totalSize"]) == ("7", "9")
        assert accuracy(struct) == {"BASIC_STATS": "true"}
        assert "other" not in struct.parameters


def test_a_rename_carries_them_over(t: Rpc) -> None:
    renamed = alter(t, "t", KEEP, tableName="u")
    assert known(t, "u") == ["a", "b"]
    assert accuracy(renamed) == BOTH


def test_a_drop_takes_them_along(p: Rpc, db: Database) -> None:
    p.drop_partition("default", "p", ["1"], True)
    assert known(p, "p", "k=1", "k=2") == ["a", "b", "k=2:a", "k=2:b"]
    p.drop_table("default", "p", True)
    with db.engine.connect() as connection:
        assert connection.execute(sql("SELECT count(*) FROM column_statistics")).scalar() == 0


@pytest.mark.parametrize(
    ("columns", "left"),
    [
        ([column("a"), column("b", "string"), column("c")], ["a", "b"]),
        ([column("A", "INT"), column("b", "STRING")], ["a", "b"]),
        ([column("a", "int", "said"), column("b", "string")], ["a", "b"]),
        ([column("a", "bigint"), column("b", "string")], ["b"]),
        ([column("x"), column("b", "string")], ["b"]),
        ([column("b", "string")], ["b"]),
    ],
)
def test_they_go_with_their_column_and_its_type(t: Rpc, columns: list[Any], left: list[str]) -> None:
    changed = alter(t, "t", KEEP, cols=columns)
    assert known(t, "t") == left
    assert accuracy(changed) == {"BASIC_STATS": "true", "COLUMN_STATS": dict.fromkeys(left, "true")}


@pytest.mark.parametrize(("cascade", "left"), [(False, ["a", "b"]), (True, ["b"])])
def test_columns_of_partitions(p: Rpc, cascade: bool, left: list[str]) -> None:
    """Partitions keep the columns they have, unless the change is for them too."""
    struct = p.get_table("default", "p")
    struct.sd.cols = [column("a", "bigint"), column("b", "string")]
    p.alter_table_with_cascade("default", "p", struct, cascade)
    assert known(p, "p", "k=1", "k=2") == ["b", *(f"k={number}:{name}" for number in "12" for name in left)]
    stored = p.get_partition("default", "p", ["1"])
    assert accuracy(stored) == {"COLUMN_STATS": dict.fromkeys(left, "true")}


def test_a_partition_of_other_columns(p: Rpc) -> None:
    struct = p.get_partition("default", "p", ["1"])
    struct.sd.cols = [column("a", "bigint"), column("b", "string")]
    p.alter_partition("default", "p", struct)
    assert known(p, "p", "k=1", "k=2") == ["a", "b", "k=1:b", "k=2:a", "k=2:b"]
    assert accuracy(p.get_partition("default", "p", ["1"])) == {"COLUMN_STATS": {"b": "true"}}


def test_a_renamed_partition_keeps_them(p: Rpc) -> None:
    p.rename_partition("default", "p", ["1"], partition(["3"]))
    assert known(p, "p", "k=1", "k=3") == ["a", "b", "k=3:a", "k=3:b"]


@pytest.mark.parametrize(
    ("properties", "left"),
    [
        (KEEP, BOTH),
        (COMPUTED, BOTH),
        ({}, None),
        ({"STATS_GENERATED": "USER"}, None),
        ({"DO_NOT_UPDATE_STATS": "false"}, None),
    ],
)
def test_accuracy_stays_if_the_client_answers_for_it(t: Rpc, properties: dict[str, str], left: Any) -> None:
    changed = alter(t, "t", properties, parameters={"numRows": "6"})
    assert accuracy(changed) == left
    assert changed.parameters["numRows"] == "6"
    assert known(t, "t") == ["a", "b"]


def test_the_wish_to_be_left_alone_is_not_stored(t: Rpc) -> None:
    """Trino sends it among the parameters."""
    t.create_table(table("u", parameters=KEEP, keys=(column("k"),)))
    t.add_partition(partition(["1"], "u", parameters=KEEP))
    assert "DO_NOT_UPDATE_STATS" not in t.get_table("default", "u").parameters
    assert "DO_NOT_UPDATE_STATS" not in t.get_partition("default", "u", ["1"]).parameters
    changed = alter(t, "t", parameters=KEEP)
    assert accuracy(changed) == BOTH
    assert "DO_NOT_UPDATE_STATS" not in changed.parameters


def test_another_place_has_other_rows(t: Rpc, tmp_path: Any) -> None:
    assert accuracy(alter(t, "t", KEEP, location=f"file:{tmp_path}/elsewhere")) is None


def test_of_partitions_those_whose_figures_change_lose_it(p: Rpc) -> None:
    struct = p.get_partition("default", "p", ["1"])
    struct.parameters = {**struct.parameters, "comment": "said"}
    p.alter_partition("default", "p", struct)
    assert accuracy(p.get_partition("default", "p", ["1"])) is not None
    struct.parameters = {**struct.parameters, "numFiles": "7"}
    p.alter_partition("default", "p", struct)
    assert accuracy(p.get_partition("default", "p", ["1"])) is None
    struct.parameters = {"numFiles": "8", "COLUMN_STATS_ACCURATE": "{}"}
    context = ttypes.EnvironmentContext(properties=COMPUTED)
    p.alter_partitions_with_environment_context("default", "p", [struct], context)
    assert accuracy(p.get_partition("default", "p", ["1"])) == {"BASIC_STATS": "true"}


def test_a_view_has_none(rpc: Rpc) -> None:
    rpc.create_table(table("v", tableType="VIRTUAL_VIEW", sd=storage()))
    changed = alter(rpc, "v", parameters={"a": "b"})
    assert changed.parameters["a"] == "b"


# --- materialised views -----------------------------------------------------------------------------


def test_changes_of_source_tables_are_counted_in_views(t: Rpc) -> None:
    source = t.get_table("default", "t")

    def made_of(*tables: Any) -> Any:
        return ttypes.CreationMetadata(
            catName="hive",
            dbName="default",
            tblName="v",
            tablesUsed=["default.t"],
            sourceTables=[
                ttypes.SourceTable(table=table, insertedCount=0, updatedCount=0, deletedCount=0) for table in tables
            ],
        )

    named = ttypes.Table(dbName="default", tableName="t")
    other = ttypes.Table(dbName="default", tableName="other")
    t.create_table(table("v", tableType="MATERIALIZED_VIEW", creationMetadata=made_of(other, source)))
    t.create_table(table("w", tableType="MATERIALIZED_VIEW", creationMetadata=made_of(named)))
    t.create_table(table("x", tableType="MATERIALIZED_VIEW", creationMetadata=made_of(other)))
    for _ in range(2):
        t.update_transaction_statistics(
            ttypes.UpdateTransactionalStatsRequest(tableId=source.id, insertCount=5, updatedCount=2, deletedCount=1)
        )

    def counts(name: str) -> list[tuple[int, int, int]]:
        found = t.get_table("default", name).creationMetadata.sourceTables
        return [(one.insertedCount, one.updatedCount, one.deletedCount) for one in found]

    assert counts("v") == [(0, 0, 0), (10, 4, 2)]
    assert counts("w") == [(10, 4, 2)]
    assert counts("x") == [(0, 0, 0)]
    unknown = ttypes.UpdateTransactionalStatsRequest(tableId=999, insertCount=1, updatedCount=1, deletedCount=1)
    t.update_transaction_statistics(unknown)


# --- rows that go -----------------------------------------------------------------------------------


def test_truncation_forgets_them(t: Rpc, p: Rpc, warehouse: Path) -> None:
    p.truncate_table("default", "p", ["k=1"])
    assert known(p, "p", "k=1", "k=2") == ["k=2:a", "k=2:b"]
    assert accuracy(p.get_partition("default", "p", ["1"])) is None
    t.truncate_table("default", "t", None)
    assert known(t, "t") == []
    assert accuracy(t.get_table("default", "t")) is None
