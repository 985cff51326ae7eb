"""The transactional rules, each with its text (metastore-wire.md §5), as a client meets them."""

from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from hive_acid.wire import ttypes
from tests.catalog.conftest import ACID, ORC, Rpc, column, partition, storage, table

INSERT_ONLY = ACID | {"transactional_properties": "insert_only"}


def get(rpc: Rpc, name: str) -> Any:
    return rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName=name)).table


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"parameters": {"transactional": "yes"}},
            "'transactional' property of TBLPROPERTIES may only have value 'true'",
        ),
        (
            {"parameters": ACID, "sd": storage(inputFormat="org.apache.hadoop.mapred.TextInputFormat")},
            "The table must be stored using an ACID compliant format (such as ORC): default.t",
        ),
        (
            {"parameters": ACID, "sd": storage(outputFormat=None)},
            "The table must be stored using an ACID compliant format (such as ORC): default.t",
        ),
        (
            {"parameters": ACID, "tableType": "EXTERNAL_TABLE"},
            "default.t cannot be declared transactional because it's an external table",
        ),
        (
            {"parameters": ACID | {"EXTERNAL": "TRUE"}},
            "default.t cannot be declared transactional because it's an external table",
        ),
        (
            {"parameters": INSERT_ONLY, "tableType": "VIRTUAL_VIEW"},
            "default.t cannot be declared transactional because it's a view",
        ),
        (
            {"parameters": ACID | {"transactional_properties": "fast"}},
            "'transactional_properties' of default.t is 'fast': it may be 'default' or 'insert_only'",
        ),
        (
            {"parameters": ACID, "sd": storage(sortCols=[ttypes.Order(col="a", order=1)])},
            "default.t is sorted: an ACID table keeps its rows in the order of their row ids",
        ),
    ],
)
def test_create_refuses(rpc: Rpc, warehouse: Path, more: dict[str, Any], text: str) -> None:
    with pytest.raises(MetaError) as caught:
        rpc.create_table(table("t", **more))
    assert str(caught.value) == text
    assert list(warehouse.iterdir()) == []


def test_create_completes_and_folds_the_parameters(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters={"TRANSACTIONAL": "True", "Other": "X"}))
    rpc.create_table(table("f", parameters={"transactional": "FALSE", "transactional_properties": "default"}))
    rpc.create_table(table("i", parameters=INSERT_ONLY, sd=storage(inputFormat="x", outputFormat="y")))
    found = get(rpc, "t").parameters
    del found["transient_lastDdlTime"]
    assert found == {"transactional": "true", "transactional_properties": "default", "Other": "X"}
    assert get(rpc, "f").parameters.keys() == {"transient_lastDdlTime"}
    assert get(rpc, "i").parameters["transactional_properties"] == "insert_only"


def test_bucketed_acid_tables_may_exist(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID, sd=storage(numBuckets=4, bucketCols=["a"])))
    assert get(rpc, "t").sd.bucketCols == ["a"]


def test_a_transactional_table_needs_a_place_of_its_own(rpc: Rpc, warehouse: Path) -> None:
    (warehouse / "t").mkdir()
    rpc.create_table(table("t", parameters=ACID))
    with pytest.raises(InvalidObjectError, match="is in use"):
        rpc.create_table(table("u", parameters=ACID, sd=storage(location=f"{warehouse}/t")))
    (warehouse / "w").mkdir()
    (warehouse / "w" / "part-0.orc").write_text("rows")
    with pytest.raises(InvalidObjectError, match="is in use"):
        rpc.create_table(table("w", parameters=ACID))
    rpc.create_table(table("w"))


@pytest.mark.parametrize("parameters", [{"transactional": "false"}, {}])
def test_transactional_cannot_be_unset(rpc: Rpc, parameters: dict[str, str]) -> None:
    rpc.create_table(table("t", parameters=ACID))
    with pytest.raises(MetaError) as caught:
        rpc.alter_table("default", "t", table("t", parameters=parameters))
    assert str(caught.value) == "TBLPROPERTIES with 'transactional'='true' cannot be unset"


@pytest.mark.parametrize(("before", "after"), [("default", "insert_only"), ("insert_only", "default")])
def test_the_kind_is_fixed(rpc: Rpc, before: str, after: str) -> None:
    rpc.create_table(table("t", parameters=ACID | {"transactional_properties": before}))
    with pytest.raises(MetaError) as caught:
        rpc.alter_table("default", "t", table("t", parameters=ACID | {"transactional_properties": after}))
    assert (
        str(caught.value)
        == "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
    )
    rpc.alter_table("default", "t", table("t", parameters=ACID))
    assert get(rpc, "t").parameters["transactional_properties"] == before


def test_a_transactional_table_stays_managed(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID))
    for change in ({"tableType": "EXTERNAL_TABLE"}, {"parameters": ACID | {"EXTERNAL": "TRUE"}}):
        with pytest.raises(MetaError, match="because it's an external table"):
            rpc.alter_table("default", "t", table("t", **({"parameters": ACID} | change)))


def test_an_empty_table_can_become_transactional(rpc: Rpc) -> None:
    rpc.create_table(table("t"))
    rpc.alter_table("default", "t", table("t", parameters=ACID))
    assert get(rpc, "t").parameters["transactional_properties"] == "default"


def test_a_table_with_data_cannot_become_transactional(rpc: Rpc, warehouse: Path) -> None:
    rpc.create_table(table("t"))
    rpc.create_table(table("p", keys=(column("k"),)))
    rpc.add_partition(partition(["1"]))
    (warehouse / "t" / "part-0.orc").write_text("rows")
    for changed in (table("t", parameters=ACID), table("p", parameters=ACID, keys=(column("k"),))):
        with pytest.raises(MetaError, match="holds data, so it cannot be made transactional"):
            rpc.alter_table("default", changed.tableName, changed)
        assert "transactional" not in get(rpc, changed.tableName).parameters


COLUMNS = [column("a"), column("b", "string"), column("c", "decimal(10,2)"), column("d", "varchar(5)")]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (COLUMNS[:3], "none can be dropped"),
        ([COLUMNS[1], COLUMNS[0], *COLUMNS[2:]], "a cannot be renamed, moved or replaced by b"),
        ([column("z"), *COLUMNS[1:]], "a cannot be renamed, moved or replaced by z"),
        ([column("n"), *COLUMNS], "a cannot be renamed, moved or replaced by n"),
        ([column("a", "smallint"), *COLUMNS[1:]], "type of a cannot change from int to smallint"),
        ([column("a", "string"), *COLUMNS[1:]], "type of a cannot change from int to string"),
        ([*COLUMNS[:2], column("c", "decimal(10,3)"), COLUMNS[3]], "type of c"),
        ([*COLUMNS[:3], column("d", "varchar(4)")], "type of d"),
        ([*COLUMNS[:3], column("d", "char(9)")], "type of d"),
    ],
)
def test_columns_of_acid_tables_keep_their_place(rpc: Rpc, columns: list[Any], words: str) -> None:
    rpc.create_table(table("t", parameters=ACID, sd=storage(*COLUMNS)))
    with pytest.raises(InvalidOperationError, match=words):
        rpc.alter_table("default", "t", table("t", parameters=ACID, sd=storage(*columns)))
    assert get(rpc, "t").sd.cols == COLUMNS


def test_columns_of_acid_tables_may_grow(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID, sd=storage(*COLUMNS)))
    wider = [
        column("A", "bigint", "wider"),
        COLUMNS[1],
        column("c", "decimal(12,4)"),
        column("d", "string"),
        column("e", "date"),
    ]
    rpc.alter_table("default", "t", table("t", parameters=ACID, sd=storage(*wider)))
    assert [(found.name, found.type) for found in get(rpc, "t").sd.cols] == [
        ("a", "bigint"),
        ("b", "string"),
        ("c", "decimal(12,4)"),
        ("d", "string"),
        ("e", "date"),
    ]


def test_plain_tables_may_change_their_columns(rpc: Rpc) -> None:
    rpc.create_table(table("t"))
    rpc.alter_table("default", "t", table("t", sd=storage(column("z", "date"))))
    assert get(rpc, "t").sd.cols == [column("z", "date")]


def test_partition_columns_cannot_change(rpc: Rpc) -> None:
    rpc.create_table(table("p", keys=(column("k"),)))
    for keys in ((), (column("other"),), (column("k"), column("l"))):
        with pytest.raises(InvalidOperationError, match=r"partition columns of default\.p cannot change"):
            rpc.alter_table("default", "p", table("p", keys=keys))
    rpc.alter_table("default", "p", table("p", keys=(column("K", "bigint", "words"),)))
    assert get(rpc, "p").partitionKeys == [column("k", "bigint", "words")]
    assert ORC["inputFormat"] == get(rpc, "p").sd.inputFormat
