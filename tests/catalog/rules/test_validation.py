"""The transactional rules, each with its text (wire.md §5.10), as a client meets them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from hive_acid.format.evolution import RENAMED
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from tests.catalog.conftest import ACID, ORC, Rpc, column, partition, storage, table

INSERT_ONLY = ACID | {"transactional_properties": "insert_only"}
SPARK_FILE = "part-00000-8a1.c000.snappy.orc"


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
        rpc.create_table(table("w", parameters=ACID, sd=storage(location=f"{warehouse}/w")))
    rpc.create_table(table("w"))


def test_files_of_nobody_in_its_default_place_do_not_block_a_name(rpc: Rpc, warehouse: Path) -> None:
    """As after a CREATE TABLE AS SELECT of another engine that has failed half way."""
    (warehouse / "t/delta_0000001_0000001_0000").mkdir(parents=True)
    (warehouse / "t/delta_0000001_0000001_0000/bucket_00000").write_text("rows")
    rpc.create_table(table("t", parameters=ACID))
    place = get(rpc, "t").sd.location.removeprefix("file:")
    assert place.startswith(f"{warehouse}/t.v")
    assert list(Path(place).iterdir()) == []
    assert (warehouse / "t/delta_0000001_0000001_0000/bucket_00000").exists()


@pytest.mark.parametrize("keys", [(), (column("k"),)])
@pytest.mark.parametrize(
    ("file", "query", "fits"),
    [
        ("000000_1380429234567890123417", "trino_query_id", True),
        ("000003_0", "presto_query_id", True),
        ("000003_0", "query_id", False),
        ("part-00000-x.orc", "trino_query_id", False),
        ("delta_0000001_0000001_0000/bucket_00000", "trino_query_id", False),
        ("base_5/000000_0", "trino_query_id", False),
    ],
)
def test_trino_writes_the_files_of_a_new_table_first(
    rpc: Rpc, warehouse: Path, file: str, query: str, fits: bool, keys: tuple[Any, ...]
) -> None:
    """CREATE TABLE … WITH (transactional = true) AS SELECT: files without write ids, and the query in the table."""
    path = warehouse / ("t/k=1" if keys else "t") / file
    path.parent.mkdir(parents=True)
    path.write_text("rows")
    made = table("t", parameters=ACID | {query: "20261122_x"}, sd=storage(location=f"{warehouse}/t"), keys=keys)
    if fits:
        rpc.create_table(made)
        assert get(rpc, "t").sd.location == f"file:{warehouse}/t"
    else:
        with pytest.raises(InvalidObjectError, match="is in use"):
            rpc.create_table(made)
    assert path.exists()


@pytest.mark.parametrize("parameters", [{"transactional": "false"}, {}])
def test_transactional_cannot_be_unset(rpc: Rpc, parameters: dict[str, str]) -> None:
    rpc.create_table(table("t", parameters=ACID))
    with pytest.raises(MetaError) as caught:
        rpc.alter_table("default", "t", table("t", parameters=parameters))
    assert str(caught.value) == "TBLPROPERTIES with 'transactional'='true' cannot be unset"


def test_the_kind_is_fixed(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID | {"transactional_properties": "default"}))
    with pytest.raises(MetaError) as caught:
        rpc.alter_table("default", "t", table("t", parameters=INSERT_ONLY))
    assert (
        str(caught.value)
        == "TBLPROPERTIES with 'transactional_properties' cannot be altered after the table is created"
    )
    rpc.alter_table("default", "t", table("t", parameters=ACID))
    assert get(rpc, "t").parameters["transactional_properties"] == "default"


def test_insert_only_tables_can_become_full_acid(rpc: Rpc, warehouse: Path) -> None:
    for name, data_file in (("t", "000000_0"), ("u", "part-0.orc")):
        rpc.create_table(table(name, parameters=INSERT_ONLY))
        rpc.alter_table("default", name, table(name, parameters=ACID))  # says nothing of the kind, so it stays
        assert get(rpc, name).parameters["transactional_properties"] == "insert_only"
        (warehouse / name / "delta_0000001_0000001_0000").mkdir()
        (warehouse / name / "delta_0000001_0000001_0000" / data_file).write_text("rows")
    full = ACID | {"transactional_properties": "default"}
    rpc.alter_table("default", "t", table("t", parameters=full))
    assert get(rpc, "t").parameters["transactional_properties"] == "default"
    with pytest.raises(MetaError, match=r"delta_0000001_0000001_0000/part-0\.orc is not named as Hive names files"):
        rpc.alter_table("default", "u", table("u", parameters=full))
    rpc.create_table(table("x", parameters=INSERT_ONLY, sd=storage(inputFormat="x", outputFormat="y")))
    with pytest.raises(MetaError, match="must be stored using an ACID compliant format"):
        rpc.alter_table("default", "x", table("x", parameters=full, sd=storage(inputFormat="x", outputFormat="y")))


def test_a_transactional_table_stays_managed(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID))
    for change in ({"tableType": "EXTERNAL_TABLE"}, {"parameters": ACID | {"EXTERNAL": "TRUE"}}):
        with pytest.raises(MetaError, match="because it's an external table"):
            rpc.alter_table("default", "t", table("t", **({"parameters": ACID} | change)))


def test_an_empty_table_can_become_transactional(rpc: Rpc) -> None:
    rpc.create_table(table("t"))
    rpc.alter_table("default", "t", table("t", parameters=ACID))
    assert get(rpc, "t").parameters["transactional_properties"] == "default"


@pytest.mark.parametrize("name", ["000000_0", "000001_12", "000000_0_copy_1", "_SUCCESS", SPARK_FILE])
def test_data_named_as_by_hive_or_spark_can_become_transactional(
    rpc: Rpc, db: Database, warehouse: Path, name: str
) -> None:
    """The write ids begin so high that rows of these files cannot be taken for newer ones (wire.md §5.11)."""
    rpc.create_table(table("p", keys=(column("k"),)))
    rpc.add_partition(partition(["1"]))
    (warehouse / "p/k=1" / name).write_text("rows")
    rpc.alter_table("default", "p", table("p", parameters=ACID, keys=(column("k"),)))
    assert get(rpc, "p").parameters["transactional_properties"] == "default"
    assert db.call("get_max_write_id", "default", "p") == [(10_000_000,)]


@pytest.mark.parametrize("name", ["part-0.orc", "000000_0.orc", "000000_0_copy_x"])
def test_other_data_cannot_become_transactional(
    rpc: Rpc, db: Database, warehouse: Path, tmp_path: Path, name: str
) -> None:
    rpc.create_table(table("t"))
    rpc.create_table(table("p", keys=(column("k"),)))
    rpc.add_partition(partition(["1"], sd=storage(location=str(tmp_path / "far"))))
    (warehouse / "t" / name).write_text("rows")
    (tmp_path / "far" / name).write_text("rows")
    for changed in (table("t", parameters=ACID), table("p", parameters=ACID, keys=(column("k"),))):
        with pytest.raises(MetaError, match=f"the file .*{name} is not named as Hive names files"):
            rpc.alter_table("default", changed.tableName, changed)
        assert "transactional" not in get(rpc, changed.tableName).parameters
        assert db.call("get_max_write_id", "default", changed.tableName) == [(0,)]
    rpc.alter_table("default", "t", table("t", parameters=INSERT_ONLY))
    assert get(rpc, "t").parameters["transactional_properties"] == "insert_only"


def test_sparks_names_do_not_tell_the_buckets_of_a_clustered_table(rpc: Rpc, warehouse: Path) -> None:
    clustered = storage(numBuckets=4, bucketCols=["a"])
    rpc.create_table(table("t", sd=clustered))
    (warehouse / "t" / SPARK_FILE).write_text("rows")
    with pytest.raises(MetaError, match="is not named as Hive names files"):
        rpc.alter_table("default", "t", table("t", parameters=ACID, sd=clustered))


def test_files_that_cannot_be_looked_at_cannot_become_transactional(
    make_catalog: Callable[..., CatalogService],
) -> None:
    rpc = Rpc(make_catalog(directories=False))
    rpc.create_table(table("t"))
    with pytest.raises(MetaError, match="does not look at files"):
        rpc.alter_table("default", "t", table("t", parameters=ACID))


COLUMNS = [column("a"), column("b", "string"), column("c", "decimal(10,2)"), column("d", "varchar(5)")]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (COLUMNS[:3], "none can be dropped"),
        ([COLUMNS[1], COLUMNS[0], *COLUMNS[2:]], "a cannot be moved or replaced by b"),
        ([column("n"), *COLUMNS], "a cannot be moved or replaced by n"),
        ([column("z", "string"), *COLUMNS[1:]], "type of a cannot change from int to string"),
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


def test_a_renamed_column_of_an_acid_table_leaves_a_mark_for_readers(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=ACID, sd=storage(*COLUMNS)))
    rpc.alter_table("default", "t", table("t", parameters=ACID, sd=storage(column("A"), *COLUMNS[1:])))
    assert RENAMED not in get(rpc, "t").parameters, "another case is the same name"
    rpc.alter_table("default", "t", table("t", parameters=ACID, sd=storage(column("z", "bigint"), *COLUMNS[1:])))
    assert [found.name for found in get(rpc, "t").sd.cols] == ["z", "b", "c", "d"]
    rpc.alter_table("default", "t", table("t", parameters=ACID, sd=storage(column("z", "bigint"), *COLUMNS[1:])))
    assert get(rpc, "t").parameters[RENAMED] == "true", "the files stay, and so does the mark"


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("struct<a:int>", "struct<a:int,b:string>", True),
        ("struct<a:int>", "struct<A:bigint>", True),
        ("array<struct<a:int>>", "array<struct<a:int,b:map<string,int>>>", True),
        ("map<string,struct<a:int>>", "map<string,struct<a:int,b:int>>", True),
        ("struct<a:struct<b:int>>", "struct<a:struct<b:int,c:int>,d:int>", True),
        ("struct<a:int,b:int>", "struct<a:int>", False),
        ("struct<a:int,b:int>", "struct<b:int,a:int>", False),
        ("struct<a:int>", "struct<b:int>", False),
        ("struct<a:int>", "struct<b:int,a:int>", False),
        ("struct<a:int>", "struct<a:int,A:int>", False),
        ("struct<a:bigint>", "struct<a:int>", False),
        ("map<int,string>", "map<bigint,string>", False),
        ("array<int>", "map<int,int>", False),
        ("struct<a:int>", "string", False),
        ("array<bigint>", "array<int>", False),
    ],
)
def test_nested_types_of_acid_tables_may_grow_at_their_end(rpc: Rpc, old: str, new: str, allowed: bool) -> None:
    rpc.create_table(table("t", parameters=ACID, sd=storage(column("a", old), column("b"))))
    changed = table("t", parameters=ACID, sd=storage(column("a", new), column("b")))
    if allowed:
        rpc.alter_table("default", "t", changed)
    else:
        with pytest.raises(InvalidOperationError, match="type of a"):
            rpc.alter_table("default", "t", changed)
    assert get(rpc, "t").sd.cols[0].type == (new if allowed else old)


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


WIDER = [
    ("int", "bigint"),
    ("tinyint", "decimal(10,2)"),
    ("float", "double"),
    ("date", "string"),
    ("struct<a:int>", "struct<a:int>"),
    ("string", "varchar(3)"),
    ("varchar(9)", "double"),
    ("decimal(5,2)", "decimal(4,1)"),
]
NARROWER = [
    ("bigint", "int"),
    ("string", "int"),
    ("double", "float"),
    ("int", "date"),
    ("date", "timestamp"),
    ("struct<a:int>", "struct<a:bigint>"),
    ("array<int>", "string"),
]


@pytest.mark.parametrize(("before", "after"), WIDER)
def test_plain_tables_may_change_their_columns(rpc: Rpc, before: str, after: str) -> None:
    rpc.create_table(table("t", sd=storage(column("a", before), column("b"))))
    rpc.alter_table("default", "t", table("t", sd=storage(column("z", after.upper()))))
    assert get(rpc, "t").sd.cols == [column("z", after.upper())]


@pytest.mark.parametrize(("before", "after"), NARROWER)
def test_types_by_which_files_cannot_be_read_are_refused(
    rpc: Rpc, make_catalog: Callable[..., CatalogService], before: str, after: str
) -> None:
    rpc.create_table(table("t", sd=storage(column("a", before), column("b"))))
    changed = table("t", sd=storage(column("a", after), column("b")))
    with pytest.raises(InvalidOperationError) as caught:
        rpc.alter_table("default", "t", changed)
    assert str(caught.value) == (
        "The following columns have types incompatible with the existing columns in their respective positions : a"
    )
    Rpc(make_catalog(check_column_types=False)).alter_table("default", "t", changed)
    assert get(rpc, "t").sd.cols[0] == column("a", after)


def test_views_and_iceberg_tables_change_their_columns_as_they_like(rpc: Rpc) -> None:
    for name, more in (("v", {"tableType": "VIRTUAL_VIEW"}), ("i", {"parameters": {"table_type": "ICEBERG"}})):
        rpc.create_table(table(name, **more))
        rpc.alter_table("default", name, table(name, sd=storage(column("z", "date")), **more))
        assert get(rpc, name).sd.cols == [column("z", "date")]


def test_partition_columns_cannot_change(rpc: Rpc) -> None:
    rpc.create_table(table("p", keys=(column("k"),)))
    for keys in ((), (column("other"),), (column("k"), column("l"))):
        with pytest.raises(InvalidOperationError, match=r"partition columns of default\.p cannot change"):
            rpc.alter_table("default", "p", table("p", keys=keys))
    rpc.alter_table("default", "p", table("p", keys=(column("K", "bigint", "words"),)))
    assert get(rpc, "p").partitionKeys == [column("k", "bigint", "words")]
    assert ORC["inputFormat"] == get(rpc, "p").sd.inputFormat
