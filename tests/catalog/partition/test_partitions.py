"""Partitions over RPC: names and escapes, every form of each call, directories."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.conftest import Rpc, column, partition, storage, table

NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.fixture
def p(rpc: Rpc) -> Rpc:
    """Table ``p`` with the keys ``Day`` and ``hr`` and four partitions."""
    rpc.create_table(table("p", keys=(column("Day", "string"), column("hr", "int"))))
    rpc.add_partitions([partition(values) for values in (["a", "1"], ["a", "2"], ["b", "1"], ["c", "10"])])
    return rpc


def names(found: list[Any]) -> list[list[str]]:
    return [struct.values for struct in found]


def test_add_fills_in_and_makes_the_directory(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("p", keys=(column("Day", "string"),)))
    added = rpc.add_partition(partition(["X"], "P"))
    assert added == rpc.get_partition("default", "p", ["X"])
    assert (added.dbName, added.tableName, added.catName) == ("default", "p", "hive")
    assert added.sd.location == f"file:{warehouse}/p/day=X"
    assert [found.name for found in added.sd.cols] == ["a", "b"]
    assert added.sd.inputFormat == rpc.get_table("default", "p").sd.inputFormat
    assert added.createTime == int(added.parameters["transient_lastDdlTime"]) > 1_000_000_000
    assert (warehouse / "p/day=X").is_dir()


@pytest.mark.parametrize(
    ("value", "directory"),
    [
        ("a b", "a b"),
        ("a/b", "a%2Fb"),
        ("10:30", "10%3A30"),
        ("50%", "50%25"),
        ("}{", "}%7B"),
        ("ü\t", "ü%09"),
        ("", NULL),
        (NULL, NULL),
    ],
)
def test_values_are_escaped_in_names_only(rpc: Rpc, warehouse: Path, value: str, directory: str) -> None:
    rpc.create_table(table("p", keys=(column("k", "string"),)))
    rpc.append_partition("default", "p", [value])
    assert rpc.get_partition_names("default", "p", -1) == [f"k={directory}"]
    assert (warehouse / "p" / f"k={directory}").is_dir()
    stored = value or NULL
    assert rpc.get_partition_by_name("default", "p", f"k={directory}").values == [stored]
    assert rpc.partition_name_to_vals(f"k={directory}") == [stored]
    assert rpc.partition_name_to_spec(f"K={directory}") == {"k": stored}
    assert rpc.drop_partition_by_name("default", "p", f"k={directory}", True) is True
    assert list((warehouse / "p").iterdir()) == []


def test_stored_columns_are_the_tables_own(p: Rpc, db: Database) -> None:
    p.add_partition(partition(["x", "1"], sd=storage(column("other"))))
    p.add_partition(partition(["y", "1"], sd=storage()))
    with db.engine.connect() as connection:
        query = "SELECT name FROM partition WHERE columns IS NOT NULL"
        assert connection.exec_driver_sql(query).scalars().all() == ["day=x/hr=1"]
    assert p.get_partition("default", "p", ["x", "1"]).sd.cols == [column("other")]


def test_every_form_of_add(rpc: Rpc) -> None:
    rpc.create_table(table("p", keys=(column("k"),)))
    rpc.add_partition_with_environment_context(partition(["1"]))
    assert rpc.add_partitions([partition(["2"]), partition(["3"])]) == 2
    assert rpc.add_partitions([]) == 0
    rpc.append_partition_by_name("@hive#default", "p", "k=4")
    rpc.append_partition_req(ttypes.AppendPartitionsRequest(dbName="default", tableName="p", partVals=["5"]))
    rpc.append_partition_req(ttypes.AppendPartitionsRequest(dbName="default", tableName="p", name="k=6"))
    request = ttypes.AddPartitionsRequest(
        dbName="default",
        tblName="p",
        parts=[partition(["6"]), partition(["7"], sd=storage())],
        ifNotExists=True,
        skipColumnSchemaForPartition=True,
    )
    request.parts[1].sd.cols = None
    result = rpc.add_partitions_req(request)
    assert names(result.partitions) == [["7"]]
    assert (result.partitions[0].sd.cols, [found.name for found in result.partitionColSchema]) == ([], ["a", "b"])
    assert rpc.get_partition_names("default", "p", -1) == [f"k={value}" for value in range(1, 8)]
    assert rpc.undeclared == []


def test_add_is_all_or_nothing(p: Rpc, warehouse: Path) -> None:
    with pytest.raises(AlreadyExistsError, match="day=a/hr=1"):
        p.add_partitions([partition(["n", "1"]), partition(["a", "1"])])
    with pytest.raises(MetaError, match="given twice"):
        p.add_partitions([partition(["n", "1"]), partition(["n", "1"])])
    (warehouse / "p" / "day=n").write_text("in the way")
    with pytest.raises(MetaError):
        p.add_partitions([partition(["m", "1"]), partition(["n", "1"])])
    assert len(p.get_partition_names("default", "p", -1)) == 4
    assert not (warehouse / "p/day=m/hr=1").exists()


@pytest.mark.parametrize(
    ("struct", "words"),
    [
        (partition(["1"]), "2 partition columns"),
        (partition(["1", "2", "3"]), "2 partition columns"),
        (partition([]), "2 partition columns"),
        (partition(["1", "2"], "nix"), "nix table not found"),
        (partition(["1", "2"], "plain"), "is not partitioned"),
        (partition(["1", b"\xff"]), "UTF-8"),
        (partition(["1", "a\0"]), "zero bytes"),
        (partition(["1", "x" * 3000]), "more than 2000 bytes"),
    ],
)
def test_partitions_that_cannot_be(p: Rpc, struct: Any, words: str) -> None:
    p.create_table(table("plain"))
    with pytest.raises(InvalidObjectError if struct.tableName == "nix" else MetaError, match=words):
        p.add_partition(struct)


def test_partitions_of_two_tables_in_one_request(p: Rpc) -> None:
    with pytest.raises(MetaError, match="does not belong to target table"):
        p.add_partitions([partition(["n", "1"]), partition(["n", "1"], "q")])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([""], 4),
        (["a"], 2),
        (["", "1"], 2),
        (["a", ""], 2),
        (["a", "2"], 1),
        (["nix"], 0),
    ],
)
def test_partial_values(p: Rpc, values: list[str], expected: int) -> None:
    assert len(p.get_partitions_ps("default", "p", values, -1)) == expected
    assert len(p.get_partitions_ps_with_auth("default", "p", values, -1, "ann", [])) == expected
    assert len(p.get_partition_names_ps("default", "p", values, -1)) == expected
    request = ttypes.GetPartitionsPsWithAuthRequest(dbName="default", tblName="p", partVals=values)
    assert len(p.get_partitions_ps_with_auth_req(request).partitions) == expected
    request = ttypes.GetPartitionNamesPsRequest(dbName="default", tblName="p", partValues=values)
    assert len(p.get_partition_names_ps_req(request).names) == expected


def test_too_many_partial_values(p: Rpc) -> None:
    with pytest.raises(MetaError, match="3 partition values"):
        p.get_partitions_ps("default", "p", ["a", "1", "x"], -1)


def test_every_form_of_get(p: Rpc) -> None:
    all_values = [["a", "1"], ["a", "2"], ["b", "1"], ["c", "10"]]
    assert names(p.get_partitions("default", "P", -1)) == all_values
    assert names(p.get_partitions_with_auth("default", "p", 2, "ann", [])) == all_values[:2]
    request = ttypes.PartitionsRequest(dbName="default", tblName="p", maxParts=3)
    assert names(p.get_partitions_req(request).partitions) == all_values[:3]
    assert p.fetch_partition_names_req(request) == p.get_partition_names("default", "p", 3)
    wanted = ["day=c/hr=10", "day=a/hr=1", "day=nix/hr=0"]
    assert names(p.get_partitions_by_names("default", "p", wanted)) == [["a", "1"], ["c", "10"]]
    by_names = ttypes.GetPartitionsByNamesRequest(db_name="default", tbl_name="p", names=wanted)
    assert names(p.get_partitions_by_names_req(by_names).partitions) == [["a", "1"], ["c", "10"]]
    one = ttypes.GetPartitionRequest(dbName="default", tblName="p", partVals=["b", "1"])
    assert p.get_partition_req(one).partition.values == ["b", "1"]
    assert p.get_partition_with_auth("default", "p", ["b", "1"], "ann", []).values == ["b", "1"]
    with pytest.raises(NoSuchObjectError, match=r"default\.p"):
        p.get_partition("default", "p", ["b", "2"])
    with pytest.raises(NoSuchObjectError):
        p.get_partitions("default", "nix", -1)
    for name in ("nonsense", "day=b"):
        with pytest.raises(NoSuchObjectError):
            p.get_partition_by_name("default", "p", name)
    assert p.get_partition_by_name("default", "p", "hr=1/day=b/more=2").values == ["b", "1"]


def test_a_request_can_leave_out_columns_and_parameters(p: Rpc) -> None:
    p.add_partition(partition(["z", "1"], parameters={"keep.a": "1", "drop.b": "2"}))
    request = ttypes.PartitionsRequest(
        dbName="default",
        tblName="p",
        skipColumnSchemaForPartition=True,
        includeParamKeyPattern="%.%",
        excludeParamKeyPattern="drop*",
    )
    last = p.get_partitions_req(request).partitions[-1]
    assert (last.sd.cols, last.parameters) == ([], {"keep.a": "1"})


def test_every_form_of_alter(p: Rpc) -> None:
    p.alter_partition("default", "p", partition(["a", "1"], parameters={"n": "1"}))
    p.alter_partition_with_environment_context("default", "p", partition(["a", "2"], parameters={"n": "2"}))
    p.alter_partitions("default", "p", [partition(["b", "1"], parameters={"n": "3"})])
    changed = [partition(["c", "10"], parameters={"n": "4"})]
    request = ttypes.AlterPartitionsRequest(dbName="default", tableName="p", partitions=changed, writeId=9)
    p.alter_partitions_req(request)
    found = p.get_partitions("default", "p", -1)
    assert [struct.parameters["n"] for struct in found] == ["1", "2", "3", "4"]
    assert found[3].writeId == 9
    assert all(struct.sd.location and struct.sd.cols and struct.createTime for struct in found)
    with pytest.raises(InvalidOperationError):
        p.alter_partitions(
            "default", "p", [partition(["a", "1"], parameters={"n": "9"}), partition(["no", "1"], parameters={})]
        )
    assert p.get_partition("default", "p", ["a", "1"]).parameters["n"] == "1"
    with pytest.raises(InvalidOperationError):
        p.alter_partition("default", "nix", partition(["a", "1"]))


def test_rename_moves_the_directory(p: Rpc, warehouse: Path) -> None:
    (warehouse / "p/day=a/hr=1/data").write_text("rows")
    p.rename_partition("default", "p", ["a", "1"], partition(["A", "7"]))
    assert (warehouse / "p/day=A/hr=7/data").read_text() == "rows"
    assert p.get_partition("default", "p", ["A", "7"]).sd.location == f"file:{warehouse}/p/day=A/hr=7"
    assert "day=A/hr=7" in p.get_partition_names("default", "p", -1)
    request = ttypes.RenamePartitionRequest(
        dbName="default", tableName="p", partVals=["b", "1"], newPart=partition(["c", "10"])
    )
    with pytest.raises(InvalidOperationError, match="exists already"):
        p.rename_partition_req(request)
    with pytest.raises(InvalidOperationError):
        p.rename_partition("default", "p", ["nix", "1"], partition(["n", "1"]))


def test_rename_moves_a_directory_that_spark_named_in_upper_case(p: Rpc, warehouse: Path) -> None:
    """Spark names it by its own spelling of the column, and after a rename looks for Hive's."""
    place = warehouse / "p/Day=x/hr=1"
    p.add_partition(partition(["x", "1"], sd=storage(location=f"file:{place}")))
    (place / "data").write_text("rows")
    p.rename_partition("default", "p", ["x", "1"], partition(["y", "1"], sd=storage(location=f"file:{place}")))
    assert p.get_partition("default", "p", ["y", "1"]).sd.location == f"file:{warehouse}/p/day=y/hr=1"
    assert (warehouse / "p/day=y/hr=1/data").read_text() == "rows"
    assert not place.exists()


def test_every_form_of_drop(p: Rpc, warehouse: Path) -> None:
    p.drop_partition("default", "p", ["a", "1"], True)
    assert not (warehouse / "p/day=a/hr=1").exists()
    p.drop_partition_with_environment_context("default", "p", ["a", "2"], False)
    assert (warehouse / "p/day=a/hr=2").is_dir()
    p.drop_partition_req(ttypes.DropPartitionRequest(dbName="default", tblName="p", partName="day=b/hr=1"))
    with pytest.raises(NoSuchObjectError):
        p.drop_partition("default", "p", ["a", "1"], True)
    parts = ttypes.RequestPartsSpec(names=["day=c/hr=10", "day=nix/hr=1"])
    request = ttypes.DropPartitionsRequest(dbName="default", tblName="p", parts=parts, deleteData=True, ifExists=False)
    with pytest.raises(NoSuchObjectError):
        p.drop_partitions_req(request)
    assert p.get_partition_names("default", "p", -1) == ["day=c/hr=10"]
    request.ifExists = None  # Hive's default is true
    assert names(p.drop_partitions_req(request).partitions) == [["c", "10"]]
    assert p.get_partition_names("default", "p", -1) == []
    assert p.undeclared == []


def test_drop_by_filter_text_in_place_of_an_expression(p: Rpc) -> None:
    assert names(p.drop_partitions_req(drop_request(b'day = "a" and hr > 1')).partitions) == [["a", "2"]]
    assert p.drop_partitions_req(drop_request(b'day = "nix"')).partitions == []
    with pytest.raises(NoSuchObjectError, match="matches"):
        p.drop_partitions_req(drop_request(b'day = "a"', b'day = "nix"', ifExists=False))
    with pytest.raises(MetaError, match="cannot decide"):
        p.drop_partitions_req(drop_request(b"\x01\x00org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDe\xe3"))
    assert len(p.get_partition_names("default", "p", -1)) == 3


def drop_request(*expressions: bytes, **more: Any) -> Any:
    parts = ttypes.RequestPartsSpec(exprs=[ttypes.DropPartitionsExpr(expr=data) for data in expressions])
    return ttypes.DropPartitionsRequest(dbName="default", tblName="p", parts=parts, **more)


def test_external_tables_keep_partition_files(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("p", tableType="EXTERNAL_TABLE", keys=(column("k"),)))
    rpc.add_partition(partition(["1"]))
    rpc.drop_partition("default", "p", ["1"], True)
    assert (warehouse / "p/k=1").is_dir()


def test_whitelist(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(partition_name_whitelist="[a-z]+"))
    rpc.create_table(table("p", keys=(column("k", "string"),)))
    assert rpc.partition_name_has_valid_characters(["abc"], True) is True
    assert rpc.partition_name_has_valid_characters(["1"], False) is False
    with pytest.raises(MetaError, match="whitelist"):
        rpc.partition_name_has_valid_characters(["1"], True)
    with pytest.raises(MetaError, match="whitelist"):
        rpc.add_partition(partition(["1"]))


def test_the_read_interface_of_other_slices(p: Rpc, catalog: CatalogService, warehouse: Path) -> None:
    info = catalog.table("Default", "P")
    assert info is not None
    assert info.columns == [("a", "int"), ("b", "string")]
    assert info.partition_keys == [("day", "string"), ("hr", "int")]
    assert (info.location, info.table_type, info.is_full_acid) == (f"file:{warehouse}/p", "MANAGED_TABLE", False)
    assert catalog.partition("default", "p", "day=a/hr=1") == f"file:{warehouse}/p/day=a/hr=1"
    assert catalog.partition("default", "p", "day=nix/hr=1") is None
    assert len(catalog.partition_names("default", "p")) == 4
    assert (catalog.table("default", "nix"), catalog.partition_names("default", "nix")) == (None, [])
    assert catalog.database_parameters("default") == catalog.database_parameters("nix") == {}
