"""A table with many partitions: filters go by the index, lists are sent in parts, however long they are."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Select

from hive_acid.wire import ttypes
from metastore.catalog.models import Column
from metastore.catalog.partition.filters import filter_condition
from metastore.catalog.partition.name_ranges import MAX_RANGES, name_ranges
from metastore.catalog.partition.partitions import Partitions
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.caller import INTERNAL, Caller, refused
from tests.catalog.conftest import Rpc, column, table

DAYS, HOURS = 1000, 20
KEYS = [Column("d", "string"), Column("hr", "int")]


@pytest.fixture
def many(db: Database, rpc: Rpc) -> Database:
    """Table ``p`` with 20,000 partitions, put there by SQL."""
    rpc.create_table(table("p", keys=(column("d", "string"), column("hr", "int"))))
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"""INSERT INTO partition (table_id, name, values, location, created_s, parameters, details)
                SELECT t.id, format('d=%%s/hr=%%s', d, hr), ARRAY[d::text, hr::text],
                       format('file:/nowhere/d=%%s/hr=%%s', d, hr), 1, '{{}}', '{{}}'
                  FROM tbl t, generate_series({DAYS}, {2 * DAYS - 1}) AS d, generate_series(0, {HOURS - 1}) AS hr"""
        )
        connection.exec_driver_sql("ANALYZE partition")
    return db


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = '1500' and hr = 7", 1),
        ("hr = 7 and d = '1500'", 1),
        ("d = '1500' and hr > 9", 10),
        ("d = '1500'", HOURS),
        ("(d = '1500' or d = '1501') and hr in (1, 2)", 4),
        ("d in ('1500', '1501', 'nix')", 2 * HOURS),
        ("(struct(d, hr)) in (const struct('1500', 1), const struct('1600', 2))", 2),
    ],
)
def test_equalities_of_the_first_keys_go_by_the_index(
    many: Database, catalog: CatalogService, text: str, expected: int
) -> None:
    found = catalog.partitions.filtered(catalog.partitions.owner("default", "p"), text)
    assert len(found.all()) == expected
    query: Select[Any] = found._query
    with many.engine.connect() as connection:
        compiled = query.compile(connection, compile_kwargs={"literal_binds": True})
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {str(compiled).replace('%', '%%')}").scalars())
    assert "partition_name" in plan, plan
    assert "Seq Scan" not in plan, plan


def test_ranges_only_narrow() -> None:
    def ranges(text: str, *kinds: str) -> Any:
        keys = [Column(name, kind) for name, kind in zip("abc", kinds, strict=False)]
        return name_ranges(filter_condition(text, keys), keys)

    assert ranges("a = 'x'", "string") == [("a=x", None)]
    assert ranges("a = 'x/y'", "string", "int") == [("a=x%2Fy/", "a=x%2Fy0")]
    assert ranges("b = 1", "string", "int") is None
    assert ranges("a > 'x'", "string") is None
    assert ranges("a = 'x' or b = 1", "string", "int") is None
    assert ranges("not a = 'x'", "string") is None
    assert ranges("a = 1.5", "decimal(3,1)") is None
    assert ranges("a = '2020-1-2'", "date") == [("a=2020-01-02", None)]
    assert ("a=5", None) in ranges("a = 05", "int")
    assert ("a=0", "a=1") in ranges("a = 5", "int"), "where 05 is"
    assert ranges("a in (" + ", ".join(map(str, range(MAX_RANGES))) + ")", "string") is None
    assert ("a=5", None) in ranges("a = 5.0", "int")
    assert ("a=50", None) in ranges("a = '5e1'", "int")
    assert ("a=5.5", None) not in ranges("a = 5.5", "int")
    assert ("a=5", None) in ranges("a = 5 and a = 05", "int")
    assert ranges("a = 'x' and b = 'y'", "string", "decimal(3,1)", "int") == [("a=x/", "a=x0")]


def test_long_lists_over_the_wire(many: Database, metastore: Callable[..., str]) -> None:
    with Caller(metastore()) as ann:
        names = ann.call("get_partition_names", "default", "p", -1)
        assert (len(names), names[0], names[-1]) == (DAYS * HOURS, "d=1000/hr=0", f"d=1999/hr={HOURS // 2 - 1}")
        assert names == sorted(names)
        assert [one.values for one in ann.call("get_partitions", "default", "p", 700)] == [
            [part.partition("=")[2] for part in name.split("/")] for name in names[:700]
        ]
        found = ann.call("get_partitions_by_filter", "default", "p", "hr = 7", -1)
        assert [one.values for one in found] == [[str(d), "7"] for d in range(DAYS, 2 * DAYS)]
        request = ttypes.GetPartitionsByNamesRequest(db_name="default", tbl_name="p", names=names[:3000])
        assert len(ann.call("get_partitions_by_names_req", request).partitions) == 3000
        request = ttypes.DropPartitionsRequest(
            dbName="default",
            tblName="p",
            parts=ttypes.RequestPartsSpec(exprs=[ttypes.DropPartitionsExpr(expr=b"hr > 0")]),
            needResult=False,
        )
        ann.call("drop_partitions_req", request)
        assert ann.call("get_num_partitions_by_filter", "default", "p", "") == DAYS


def test_filters_that_walk_over_the_table_find_all(
    many: Database, catalog: CatalogService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than what is held of the names: the conditions decide once more."""
    partitions: Partitions = catalog.partitions
    owner = partitions.owner("default", "p")
    for held in (10, 10_000):
        monkeypatch.setattr("metastore.catalog.partition.partitions._HELD_NAMES", held)
        assert len(partitions.filtered(owner, "hr = 7").all()) == DAYS
        assert len(partitions.filtered(owner, "hr = 7", 3).all()) == 3
        assert len(partitions.filtered(owner, "hr = 7", 11).all()) == 11
        assert partitions.filtered(owner, "hr = 7", 0).all() == []
        assert partitions.filtered(owner, "hr = 77").all() == []


def test_hive_is_told_to_prune_by_itself(rpc: Rpc, metastore: Callable[..., str]) -> None:
    """It goes by the type of the error, and reads the text (wire.md §3.5)."""
    rpc.create_table(table("p", keys=(column("d", "string"),)))
    request = ttypes.PartitionsByExprRequest(dbName="default", tblName="p", expr=b"\x01\x00whatever")
    with Caller(metastore()) as ann:
        for method in ("get_partitions_by_expr", "get_partitions_spec_by_expr"):
            with refused(INTERNAL, f"^Invalid method name: '{method}'$"):
                ann.call(method, request)
        assert ann.call("get_partition_names", "default", "p", -1) == []
