"""Forms of the partition calls beside the usual ones: specs, values, expressions, exchange, renames; limits."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidOperationError,
    MetaError,
)
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table
from tests.catalog.partition.test_expressions import VECTORS
from tests.catalog.partition.test_partitions import drop_request

KEYS = (column("d", "string"), column("hr", "int"))
VALUES = [["a", "1"], ["a", "2"], ["b", "1"], ["c", "10"]]
BY_NAMES, BY_VALUES, BY_EXPR = range(3)


@pytest.fixture
def p(rpc: Rpc) -> Rpc:
    rpc.create_table(table("p", keys=KEYS, parameters={"partition.spec.grouping.enabled": "true"}))
    rpc.add_partitions([partition(values) for values in VALUES])
    return rpc


def vector(release: str, text: str) -> bytes:
    for line in VECTORS.read_text().splitlines():
        found_release, form, found, data = (*line.split("\t"), "", "", "")[:4]
        if (found_release, form, found) == (release, "plain", text):
            return base64.b64decode(data)
    raise KeyError(text)


# --- partition specs ---


def shared(specs: list[Any]) -> list[tuple[list[str], str]]:
    return [
        (found.values, found.relativePath)
        for spec in specs
        if spec.sharedSDPartitionSpec is not None
        for found in spec.sharedSDPartitionSpec.partitions
    ]


def test_specs_share_the_descriptor(p: Rpc, warehouse: Path) -> None:
    p.add_partition(partition(["z", "0"], sd=storage(location=str(warehouse / "elsewhere"))))
    p.add_partition(partition(["y", "0"], sd=storage(column("other"))))
    specs = p.get_partitions_pspec("default", "p", -1)
    assert {(spec.catName, spec.dbName, spec.tableName, spec.rootPath) for spec in specs} == {
        ("hive", "default", "p", f"file:{warehouse}/p")
    }
    assert sorted(shared(specs)) == [
        (["a", "1"], "/d=a/hr=1"),
        (["a", "2"], "/d=a/hr=2"),
        (["b", "1"], "/d=b/hr=1"),
        (["c", "10"], "/d=c/hr=10"),
        (["y", "0"], "/d=y/hr=0"),
    ]
    assert len(specs) == 3, "the table's descriptor, another one, and what lies elsewhere"
    assert specs[0].sharedSDPartitionSpec.sd.location == f"file:{warehouse}/p"
    (elsewhere,) = specs[-1].partitionList.partitions
    assert (elsewhere.values, elsewhere.sd.location) == (["z", "0"], f"file:{warehouse}/elsewhere")
    filtered = p.get_part_specs_by_filter("default", "p", "d = 'a'", -1)
    assert [values for values, _ in shared(filtered)] == [["a", "1"], ["a", "2"]]
    assert len(shared(p.get_partitions_pspec("default", "p", 2))) == 2


def test_what_was_got_as_specs_can_be_added_so(p: Rpc) -> None:
    p.create_table(table("q", keys=KEYS))
    specs = p.get_partitions_pspec("default", "p", -1)
    for spec in specs:
        spec.tableName = "q"
    with pytest.raises(AlreadyExistsError):
        p.add_partitions_pspec(p.get_partitions_pspec("default", "p", -1))
    assert p.add_partitions_pspec(specs) == 4
    assert [found.values for found in p.get_partitions("default", "q", -1)] == VALUES
    at_p = p.get_partition("default", "p", ["a", "1"]).sd.location
    assert p.get_partition("default", "q", ["a", "1"]).sd.location == at_p
    listed = ttypes.PartitionListComposingSpec(partitions=[partition(["n", "1"], "q")])
    assert p.add_partitions_pspec([ttypes.PartitionSpec(dbName="default", tableName="q", partitionList=listed)]) == 1
    with pytest.raises(MetaError, match="neither"):
        p.add_partitions_pspec([ttypes.PartitionSpec(dbName="default", tableName="q")])


def test_specs_are_one_list_unless_the_table_has_them_grouped(rpc: Rpc) -> None:
    """By the table's property partition.spec.grouping.enabled, as in Hive; none is a list as well."""
    rpc.create_table(table("p", keys=KEYS))
    (none,) = rpc.get_partitions_pspec("default", "p", -1)
    assert (none.partitionList.partitions, none.sharedSDPartitionSpec) == ([], None)
    rpc.add_partitions([partition(values) for values in VALUES])
    for specs in (
        rpc.get_partitions_pspec("default", "p", -1),
        rpc.get_part_specs_by_filter("default", "p", "", -1),
    ):
        (spec,) = specs
        assert [found.values for found in spec.partitionList.partitions] == VALUES
        assert spec.sharedSDPartitionSpec is None


def with_specs(
    fields: list[str] | None = None, mode: int | None = None, filters: list[str] | None = None, **more: Any
) -> Any:
    return ttypes.GetPartitionsRequest(
        dbName="default",
        tblName="p",
        projectionSpec=ttypes.GetProjectionsSpec(fieldList=fields, **more),
        filterSpec=ttypes.GetPartitionsFilterSpec(filterMode=mode, filters=filters),
    )


@pytest.mark.parametrize(
    ("mode", "filters", "expected"),
    [
        (None, None, VALUES),
        (BY_NAMES, ["d=b/hr=1", "d=nix/hr=0"], [["b", "1"]]),
        (BY_VALUES, ["a"], [["a", "1"], ["a", "2"]]),
        (BY_VALUES, ["", "1"], [["a", "1"], ["b", "1"]]),
        (BY_EXPR, ["d > 'a'", "hr = 1"], [["b", "1"]]),
        (BY_EXPR, ["d = 'a' or d = 'b'", "hr = 1"], [["a", "1"], ["b", "1"]]),
    ],
)
def test_filter_modes(p: Rpc, mode: int | None, filters: list[str] | None, expected: list[list[str]]) -> None:
    specs = p.get_partitions_with_specs(with_specs(None, mode, filters)).partitionSpec
    assert [values for values, _ in shared(specs)] == expected


def test_filters_need_a_mode(p: Rpc) -> None:
    with pytest.raises(MetaError, match="filter mode"):
        p.get_partitions_with_specs(with_specs(None, None, ["d = 'a'"]))


def test_projections(p: Rpc) -> None:
    p.add_partition(partition(["k", "1"], parameters={"keep.a": "1", "drop.b": "2"}))
    (spec,) = p.get_partitions_with_specs(with_specs(["values", "sd.location"], BY_VALUES, ["k"])).partitionSpec
    (found,) = spec.sharedSDPartitionSpec.partitions
    assert (found.values, found.relativePath, found.parameters, found.createTime) == (
        ["k", "1"],
        "/d=k/hr=1",
        None,
        None,
    )
    assert spec.sharedSDPartitionSpec.sd.cols is None
    (spec,) = p.get_partitions_with_specs(with_specs(["parameters", "createTime"], BY_VALUES, ["k"])).partitionSpec
    (alone,) = spec.partitionList.partitions
    assert (alone.values, alone.sd) == (None, None)
    assert alone.parameters["keep.a"] == "1"
    assert alone.createTime > 0
    some = with_specs(["parameters"], BY_VALUES, ["k"], includeParamKeyPattern="%.%", excludeParamKeyPattern="drop%")
    (spec,) = p.get_partitions_with_specs(some).partitionSpec
    assert spec.partitionList.partitions[0].parameters == {"keep.a": "1"}


# --- names, values, expressions ---


def expr_request(data: bytes = b"", **more: Any) -> Any:
    return ttypes.PartitionsByExprRequest(dbName="default", tblName="p", expr=data, **more)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (None, ["d=a/hr=1", "d=a/hr=2", "d=b/hr=1", "d=c/hr=10"]),
        ("0:-", ["d=c/hr=10", "d=b/hr=1", "d=a/hr=1", "d=a/hr=2"]),
        ("1:-", ["d=c/hr=10", "d=a/hr=2", "d=a/hr=1", "d=b/hr=1"]),
        ("1,0:+-", ["d=b/hr=1", "d=a/hr=1", "d=a/hr=2", "d=c/hr=10"]),
    ],
)
def test_names_in_an_order(p: Rpc, order: str | None, expected: list[str]) -> None:
    assert p.get_partition_names_req(expr_request(order=order)) == expected
    assert p.get_partition_names_req(expr_request(order=order, maxParts=2)) == expected[:2]


@pytest.mark.parametrize("order", ["1", "0,1:+", "x:+", "7:+", "0:*"])
def test_orders_that_cannot_be(p: Rpc, order: str) -> None:
    with pytest.raises(MetaError):
        p.get_partition_names_req(expr_request(order=order))


@pytest.mark.parametrize("release", ["2.3.10", "3.1.3", "4.0.1"])
def test_names_and_partitions_by_an_expression(p: Rpc, release: str) -> None:
    """Hive 4's ALTER TABLE … DROP PARTITION asks for the partitions, and has no other way."""
    hive = vector(release, "d = 'a' and hr = 1")
    assert p.get_partition_names_req(expr_request(hive)) == ["d=a/hr=1"]
    found = p.get_partitions_by_expr(expr_request(hive))
    assert ([one.values for one in found.partitions], found.hasUnknownPartitions) == ([["a", "1"]], False)
    specs = p.get_partitions_spec_by_expr(expr_request(hive))
    assert (shared(specs.partitionsSpec), specs.hasUnknownPartitions) == ([(["a", "1"], "/d=a/hr=1")], False)
    assert p.get_partition_names_req(expr_request(b"d = 'a'")) == ["d=a/hr=1", "d=a/hr=2"]
    found = p.get_partitions_by_expr(expr_request(b"d = 'a'", maxParts=1))
    assert ([one.values for one in found.partitions], found.hasUnknownPartitions) == ([["a", "1"]], False)
    specs = p.get_partitions_spec_by_expr(expr_request(b"hr = 1"))
    assert (shared(specs.partitionsSpec), specs.hasUnknownPartitions) == (
        [(["a", "1"], "/d=a/hr=1"), (["b", "1"], "/d=b/hr=1")],
        False,
    )


def test_values(p: Rpc) -> None:
    def ask(*keys: str, **more: Any) -> list[list[str]]:
        request = ttypes.PartitionValuesRequest(
            dbName="default", tblName="p", partitionKeys=[column(key) for key in keys], **more
        )
        return [row.row for row in p.get_partition_values(request).partitionValues]

    assert ask("d") == [["a"], ["b"], ["c"]]
    assert ask("d", applyDistinct=False) == [["a"], ["a"], ["b"], ["c"]]
    assert ask("HR", "d", filter="hr < 10", ascending=False) == [["2", "a"], ["1", "b"], ["1", "a"]]
    assert ask("hr", "d", maxParts=1) == [["1", "a"]]
    with pytest.raises(MetaError, match="not a partition column"):
        ask("nix")
    with pytest.raises(MetaError, match="no partition columns"):
        ask()


# --- drops by expression ---


@pytest.mark.parametrize("release", ["2.3.10", "3.1.3", "4.0.1"])
def test_drop_by_hives_expressions(p: Rpc, warehouse: Path, release: str) -> None:
    p.add_partition(partition(["", "1"]))
    request = drop_request(
        vector(release, "(d = 'a' and hr = 1) or (d = 'b' and hr > 2)"), vector(release, "d is null"), deleteData=True
    )
    dropped = p.drop_partitions_req(request).partitions
    assert [found.values for found in dropped] == [["__HIVE_DEFAULT_PARTITION__", "1"], ["a", "1"]]
    assert not (warehouse / "p/d=a/hr=1").exists()
    assert (warehouse / "p/d=a/hr=2").exists()
    p.drop_partitions_req(drop_request(vector(release, "not hr = 1"), needResult=False))
    assert p.get_partition_names("default", "p", -1) == ["d=b/hr=1"]


def test_the_default_partition_is_null_to_hive(p: Rpc) -> None:
    """In filter texts it is a text like others: Spark filters again, a drop does not."""
    p.add_partition(partition(["", "7"]))
    assert len(p.get_partitions_by_filter("default", "p", "d != 'a'", -1)) == 3
    p.drop_partitions_req(drop_request(vector("4.0.1", "d is not null")))
    assert p.get_partition_names("default", "p", -1) == ["d=__HIVE_DEFAULT_PARTITION__/hr=7"]


def test_an_expression_of_other_columns_drops_nothing(p: Rpc) -> None:
    with pytest.raises(MetaError, match="not a partition column"):
        p.drop_partitions_req(drop_request(vector("4.0.1", "day = 1969-12-30")))
    p.create_table(table("q", keys=(column("d", "int"),)))
    p.add_partition(partition(["1"], "q"))
    request = drop_request(vector("4.0.1", "d = 'x'"))
    request.tblName = "q"
    with pytest.raises(MetaError, match="does not compare"):
        p.drop_partitions_req(request)
    assert len(p.get_partition_names("default", "p", -1) + p.get_partition_names("default", "q", -1)) == 5


# --- renames and exchange ---


def test_rename_on_an_acid_table_takes_its_history_along(rpc: Rpc, db: Database, warehouse: Path) -> None:
    rpc.create_table(table("p", parameters=ACID, keys=KEYS))
    rpc.add_partition(partition(["a", "1"]))
    (warehouse / "p/d=a/hr=1/delta_0000001_0000001_0000").mkdir()
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO completed_component (txn_id, db, tbl, partition, write_id, update_delete, committed_at)"
            " VALUES (1, 'default', 'p', 'd=a/hr=1', 1, false, now())"
        )
    request = ttypes.RenamePartitionRequest(
        dbName="default", tableName="p", partVals=["a", "1"], newPart=partition(["b", "2"]), clonePart=True
    )
    with pytest.raises(InvalidOperationError, match="makecopy"):
        rpc.rename_partition_req(request)
    request.clonePart = False
    rpc.rename_partition_req(request)
    assert (warehouse / "p/d=b/hr=2/delta_0000001_0000001_0000").is_dir()
    assert not (warehouse / "p/d=a/hr=1").exists()
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT partition FROM completed_component").scalars().all()
    assert found == ["d=b/hr=2"]


@pytest.fixture
def pair(p: Rpc) -> Rpc:
    p.create_table(table("q", keys=KEYS))
    return p


def exchange(rpc: Rpc, spec: dict[str, str], source: str = "p", target: str = "q") -> Any:
    return rpc.exchange_partitions(spec, "default", source, "default", target)


def test_exchange_moves_rows_and_directories(pair: Rpc, warehouse: Path) -> None:
    (warehouse / "p/d=a/hr=1/data").write_text("rows")
    moved = exchange(pair, {"D": "a"})
    assert [(found.values, found.tableName) for found in moved] == [(["a", "1"], "q"), (["a", "2"], "q")]
    assert moved[0].sd.location == f"file:{warehouse}/q/d=a/hr=1"
    assert (warehouse / "q/d=a/hr=1/data").read_text() == "rows"
    assert pair.get_partition_names("default", "p", -1) == ["d=b/hr=1", "d=c/hr=10"]
    assert pair.exchange_partition({"d": "b", "hr": "1"}, "default", "p", "default", "q") == ttypes.Partition()
    assert len(pair.get_partition_names("default", "q", -1)) == 3


def test_exchanges_that_cannot_be(pair: Rpc, warehouse: Path) -> None:
    pair.add_partition(partition(["a", "2"], "q"))
    pair.create_table(table("other", keys=(column("d", "string"),)))
    pair.create_table(table("acid", keys=KEYS, parameters=ACID))
    for spec, target, words in (
        ({"d": "a"}, "q", "has the partition d=a/hr=2 already"),
        ({"d": "nix"}, "q", "no partition"),
        ({"hr": "1"}, "q", "leaves out"),
        ({"nix": "1"}, "q", "does not specify"),
        ({}, "q", "does not specify"),
        ({"d": "a"}, "nix", "not found"),
        ({"d": "a"}, "other", "different columns"),
        ({"d": "a"}, "acid", "transactional"),
    ):
        with pytest.raises(MetaError, match=words):
            exchange(pair, spec, target=target)
    assert len(pair.get_partition_names("default", "p", -1)) == 4
    assert (warehouse / "p/d=a/hr=1").is_dir()


def test_an_exchange_that_fails_half_way_goes_back(pair: Rpc, warehouse: Path) -> None:
    (warehouse / "q/d=a").mkdir()
    (warehouse / "q/d=a/hr=2").mkdir()
    with pytest.raises(MetaError, match="exists already"):
        exchange(pair, {"d": "a"})
    assert (warehouse / "p/d=a/hr=1").is_dir()
    assert len(pair.get_partition_names("default", "p", -1)) == 4


# --- what is stored, limits ---


def test_storage_of_the_table_is_not_stored_again(p: Rpc, db: Database) -> None:
    p.add_partition(partition(["x", "1"], sd=storage(numBuckets=7)))
    with db.engine.connect() as connection:
        query = "SELECT name FROM partition WHERE storage IS NOT NULL"
        assert connection.exec_driver_sql(query).scalars().all() == ["d=x/hr=1"]
    changed = p.get_table("default", "p")
    changed.sd.outputFormat = "another"
    p.alter_table("default", "p", changed)
    assert p.get_partition("default", "p", ["a", "1"]).sd.outputFormat != "another"
    p.append_partition("default", "p", ["new", "1"])
    assert p.get_partition("default", "p", ["new", "1"]).sd.outputFormat == "another"


def test_zero_is_none_and_negative_is_all(p: Rpc) -> None:
    for limit, expected in ((0, 0), (-1, 4), (None, 4), (3, 3), (100, 4)):
        assert len(p.get_partitions("default", "p", limit)) == expected
        assert len(p.get_partition_names("default", "p", limit)) == expected
        assert len(p.get_partition_names_ps("default", "p", ["", ""], limit)) == expected
        assert len(p.get_partitions_by_filter("default", "p", "hr > 0", limit)) == expected


def test_the_limit_of_a_request(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(partition_request_limit=2))
    rpc.create_table(table("p", keys=KEYS))
    rpc.add_partitions([partition(values) for values in VALUES])
    for ask in (
        lambda: rpc.get_partitions("default", "p", -1),
        lambda: rpc.get_partitions("default", "p", 3),
        lambda: rpc.get_partitions_ps_with_auth("default", "p", ["", "1"], 101, "ann", []),
        lambda: rpc.get_partitions_by_filter("default", "p", "hr > 0", -1),
        lambda: rpc.get_partitions_pspec("default", "p", -1),
        lambda: rpc.get_partitions_by_expr(expr_request(b"hr > 0")),
    ):
        with pytest.raises(MetaError, match=r"hive\.metastore\.limit\.partition\.request"):
            ask()
    assert len(rpc.get_partitions("default", "p", 2)) == 2
    assert len(rpc.get_partitions_by_filter("default", "p", "d = 'a'", -1)) == 2
    assert len(rpc.get_partition_names("default", "p", -1)) == 4
    assert len(rpc.get_partitions_by_names("default", "p", rpc.get_partition_names("default", "p", -1))) == 4


@pytest.mark.parametrize("depth", [70])
def test_deep_filters(p: Rpc, depth: int) -> None:
    text = "d = 'a'"
    for level in range(depth):
        text = f"({text} {'and' if level % 2 else 'or'} hr > 0)" if level % 3 else f"not ({text})"
    assert len(p.get_partitions_by_filter("default", "p", text, -1)) <= 4
