"""Lists of tables over RPC: by pattern, type and filter, summaries, projections; short and long."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import InvalidOperationError, MetaError, UnknownDBError
from hive_acid.wire import ttypes
from tests.caller import Caller, refused
from tests.catalog.conftest import ACID, Rpc, column, storage, table

OWNER = "hive_filter_field_owner__"
ACCESS = "hive_filter_field_last_access__"
KEY = "hive_filter_field_params__k"
TYPE = "hive_filter_field_tableType__"
NAME = "hive_filter_field_tableName__"


@pytest.fixture
def filled(rpc: Rpc) -> Rpc:
    """Five tables and a view, unlike in owner, last access and the parameter ``k``."""
    for name, owner, access, parameters in (
        ("t0", "Owner1", 1000, {"k": "v1", "comment": "first"}),
        ("t1", "Owner1", 2000, {"k": "v2"}),
        ("t2", "Owner2", 1000, {"k": "v2", "EXTERNAL": "TRUE"}),
        ("t3", "Owner3", 3000, {"k": "V2"}),
        ("u", "Tester", 2500, {"K": "v4", "k.l": "dotted"}),
    ):
        rpc.create_table(table(name, owner=owner, lastAccessTime=access, parameters=parameters))
    rpc.create_table(table("view", owner="Owner4", tableType="VIRTUAL_VIEW", viewOriginalText="SELECT 1"))
    return rpc


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{OWNER} = "Owner1"', "t0 t1"),
        (f"{OWNER}='owner1'", ""),
        (f'{OWNER} like "Owner.*"', "t0 t1 t2 t3 view"),
        (f'{OWNER} LIKE "Owner%" and {OWNER} <> "Owner1"', "t2 t3 view"),
        (f'{OWNER} > "Owner2" and {OWNER} < "T"', "t3 view"),
        (f'{OWNER} in ("Tester", "Owner3")', "t3 u"),
        (f'{OWNER} between "Owner2" and "Owner3"', "t2 t3"),
        (f"{ACCESS} = 1000", "t0 t2"),
        (f"{ACCESS}<=2000", "t0 t1 t2 view"),
        (f"2000 < {ACCESS}", "t3 u"),
        (f"{ACCESS} >= 2500 or {ACCESS} = 0", "t3 u view"),
        (f'{KEY} = "v2"', "t1 t2"),
        (f'{KEY} <> "v2"', "t0 t3"),
        (f'not {KEY} = "v2"', "t0 t3"),
        (f'{KEY} like "v_"', "t0 t1 t2"),
        ('hive_filter_field_params__K = "v4"', "u"),
        ('`hive_filter_field_params__k.l` = "dotted"', "u"),
        ('HIVE_FILTER_FIELD_PARAMS__k = "v1"', "t0"),
        (f'{ACCESS}<3000 and ({OWNER}="Tester" or {KEY}="v2")', "t1 t2 u"),
        (f'{TYPE} = "VIRTUAL_VIEW"', "view"),
        (f'{TYPE} = "EXTERNAL_TABLE" or {NAME} = "U"', "t2 u"),
        ("", "t0 t1 t2 t3 u view"),
    ],
)
def test_filters(filled: Rpc, text: str, expected: str) -> None:
    assert filled.get_table_names_by_filter("default", text, -1) == expected.split()
    assert filled.get_table_names_by_filter("default", text, 1) == expected.split()[:1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("invalid filter", "filter"),
        ('owner = "x"', "is no field of a table: those are hive_filter_field_owner__"),
        ('hive_filter_field_params__ = "x"', "is no field"),
        (f"{ACCESS} = 'yesterday'", "number of seconds"),
        (f"{ACCESS} = {'9' * 30}", "number of seconds"),
        (f'{OWNER} = "x" and', "filter"),
        (f'{OWNER} <=> "x"', "filter"),
    ],
)
def test_filters_that_are_none(rpc: Rpc, text: str, words: str) -> None:
    with pytest.raises(MetaError, match=words):
        rpc.get_table_names_by_filter("default", text, -1)


def test_filters_of_no_database(rpc: Rpc) -> None:
    assert rpc.get_table_names_by_filter("nix", f"{ACCESS} = 0", -1) == []
    assert rpc.get_table_names_by_filter("@nix#default", f"{ACCESS} = 0", -1) == []
    for name in (None, "", "@hive#", "@hive#!", "@#default"):
        with pytest.raises(UnknownDBError):
            rpc.get_table_names_by_filter(name, f"{ACCESS} = 0", -1)
    with pytest.raises(InvalidOperationError, match="missing"):
        rpc.get_table_names_by_filter("default", None, -1)


def test_names_by_pattern_and_type(filled: Rpc) -> None:
    assert filled.get_tables("default", "T*") == ["t0", "t1", "t2", "t3"]
    assert filled.get_tables("DEFAULT", "t0|v%|u") == ["t0", "u", "view"]
    assert filled.get_tables("default", None) == filled.get_all_tables("default")
    assert filled.get_tables_by_type("default", "*", "virtual_view") == ["view"]
    assert filled.get_tables_by_type("default", "t.*", "EXTERNAL_TABLE") == ["t2"]
    assert filled.get_all_tables("nix") == []


def test_summaries(filled: Rpc) -> None:
    filled.create_database(ttypes.Database(name="other"))
    filled.create_table(table("t0", "other"))
    found = filled.get_table_meta("*", "t0|view", [])
    assert [(one.dbName, one.tableName, one.tableType, one.comments, one.ownerName) for one in found] == [
        ("default", "t0", "MANAGED_TABLE", "first", "Owner1"),
        ("default", "view", "VIRTUAL_VIEW", None, "Owner4"),
        ("other", "t0", "MANAGED_TABLE", None, None),
    ]
    assert {(one.catName, one.ownerType) for one in found} == {("hive", 1)}
    found = filled.get_table_meta("def*", None, ["VIRTUAL_VIEW", "EXTERNAL_TABLE"])
    assert [one.tableName for one in found] == ["t2", "view"]
    assert filled.get_table_meta(None, "*", ["INDEX_TABLE"]) == []
    assert [one.dbName for one in filled.get_table_meta("Other", "*", [])] == ["other"]
    assert filled.get_table_meta("othe", "*", []) == []


def test_patterns_have_an_end(filled: Rpc) -> None:
    assert filled.get_tables("default", "|".join(f"t{number}" for number in range(3000))) == ["t0", "t1", "t2", "t3"]
    for call in (
        lambda: filled.get_tables("default", "x" * 30_001),
        lambda: filled.get_databases("x" * 30_001),
        lambda: filled.get_table_meta("x*" * 20_000, "*", []),
    ):
        with pytest.raises(MetaError, match="more than 30000 characters"):
            call()


def objects(rpc: Rpc, *fields: str, **more: Any) -> list[Any]:
    projection = ttypes.GetProjectionsSpec(fieldList=list(fields)) if fields else None
    given = {"dbName": "default", "tablesPattern": "*", "projectionSpec": projection} | more
    request = ttypes.GetTablesRequest(**given)
    return list(rpc.get_table_objects_by_name_req(request).tables)


def test_whole_tables(filled: Rpc) -> None:
    named = objects(filled, tablesPattern=None, tblNames=["U", "t0", "nix", "t0"])
    assert [found.tableName for found in named] == ["t0", "u"]
    assert named[1] == filled.get_table("default", "u")
    assert objects(filled, tablesPattern="u") == named[1:]
    assert objects(filled, tablesPattern=None, tblNames=[]) == []
    assert filled.get_table_objects_by_name("default", ["u", "t0"]) == named
    with pytest.raises(UnknownDBError, match="nix"):
        objects(filled, dbName="nix")
    with pytest.raises(InvalidOperationError, match="neither names nor a pattern"):
        objects(filled, tablesPattern=None)


@pytest.mark.parametrize(
    "fields",
    [
        ["tableName"],
        ["dbName", "tableName", "owner", "ownerType"],  # as Hive 4 lists tables
        ["tableName", "sd.location", "sd.serdeInfo.serializationLib"],
        ["tableName", "sd", "lastAccessTime", "viewOriginalText"],
    ],
)
def test_projections(filled: Rpc, fields: list[str]) -> None:
    """What is asked for is as in the whole table, and nothing else is there, whatever was read of it."""
    for whole, part in zip(objects(filled), objects(filled, *fields), strict=True):
        tops = {field.partition(".")[0] for field in fields}
        for name in (spec[1] for spec in ttypes.Table.thrift_spec.values()):
            if name == "createTime":  # always there, as in Hive
                assert part.createTime == whole.createTime
            elif name not in tops:
                assert getattr(part, name) is None, name
            elif name in fields:
                assert getattr(part, name) == getattr(whole, name), name
        if "sd.location" in fields:
            assert part.sd.location == whole.sd.location
            assert part.sd.serdeInfo.serializationLib == whole.sd.serdeInfo.serializationLib
            assert (part.sd.cols, part.sd.serdeInfo.parameters, part.sd.inputFormat) == (None, None, None)


@pytest.mark.parametrize("field", ["parameters", "sd.cols.name", "partitionKeys"])
def test_tables_are_whole_where_a_projection_has_lists_or_maps(filled: Rpc, field: str) -> None:
    assert objects(filled, "tableName", field) == objects(filled)


@pytest.mark.parametrize("field", ["nonsense", "sd.nonsense", "tableName.more", "sd.cols.nonsense"])
def test_a_projection_of_what_is_no_field_is_refused(filled: Rpc, field: str) -> None:
    with pytest.raises(MetaError, match=field):
        objects(filled, "tableName", field)


def test_projections_with_capabilities(rpc: Rpc) -> None:
    rpc.create_table(table("t", parameters=dict(ACID)))
    (found,) = objects(rpc, "tableName", "accessType", processorCapabilities=["HIVEFULLACIDREAD"])
    assert (found.accessType, found.sd, found.parameters) == (2, None, None)
    with pytest.raises(InvalidOperationError, match="patterns of parameters"):
        objects(rpc, projectionSpec=ttypes.GetProjectionsSpec(includeParamKeyPattern="k%"))


def test_the_guard_leaves_acid_tables_out(rpc: Rpc) -> None:
    rpc.create_table(table("acid", parameters=dict(ACID)))
    rpc.create_table(table("plain"))
    assert [found.tableName for found in rpc.get_table_objects_by_name("default", ["acid", "plain"])] == ["plain"]
    assert [found.tableName for found in objects(rpc)] == ["acid", "plain"]


def ext(rpc: Rpc, fields: int, *capabilities: str, **more: Any) -> list[Any]:
    request = ttypes.GetTablesExtRequest(
        **(
            {
                "catalog": "hive",
                "database": "default",
                "tableNamePattern": "*",
                "requestedFields": fields,
                "processorCapabilities": list(capabilities),
            }
            | more
        )
    )
    return [
        (one.tblName, one.accessType, one.requiredReadCapabilities, one.requiredWriteCapabilities)
        for one in rpc.get_tables_ext(request)
    ]


def test_extended_names(rpc: Rpc) -> None:
    rpc.create_table(table("a", parameters=dict(ACID)))
    bucketed = storage(column("c"), bucketCols=["c"], numBuckets=4)
    rpc.create_table(table("b", sd=bucketed, parameters={"EXTERNAL": "TRUE"}))
    assert ext(rpc, 0, "CONNECTORREAD") == [("a", None, None, None), ("b", None, None, None)]
    assert ext(rpc, 1, "CONNECTORREAD") == [("a", 2, None, None), ("b", 2, None, None)]
    writers = ["CONNECTORWRITE", "HIVEFULLACIDWRITE"]
    assert ext(rpc, 2, "CONNECTORREAD") == [("a", None, [], writers), ("b", None, [], ["HIVEBUCKET2"])]
    assert ext(rpc, 0x7FFFFFFF, "MANAGERAWMETADATA") == [("a", 8, [], []), ("b", 8, [], [])]
    assert ext(rpc, 0x7FFFFFFF) == [("a", None, None, None), ("b", None, None, None)]
    assert [name for name, *_ in ext(rpc, 0, limit=1)] == ["a"]
    assert [name for name, *_ in ext(rpc, 0, limit=-1)] == ["a", "b"]
    assert [name for name, *_ in ext(rpc, 0, tableNamePattern="b*")] == ["b"]
    assert ext(rpc, 0, database="nix") == []


def test_a_dry_run_says_what_a_create_stores(rpc: Rpc, warehouse: Path) -> None:
    struct = table("T", parameters=dict(ACID), sd=storage(column("C")))
    dry = rpc.translate_table_dryrun(ttypes.CreateTableRequest(table=struct))
    assert rpc.get_all_tables("default") == []
    assert not (warehouse / "t").exists()
    rpc.create_table_req(ttypes.CreateTableRequest(table=struct))
    stored = rpc.get_table_req(ttypes.GetTableRequest(dbName="default", tblName="t")).table
    for found in (dry, stored):
        found.createTime = found.id = found.parameters["transient_lastDdlTime"] = None
    assert dry == stored
    with pytest.raises(MetaError, match="ACID compliant format"):
        bad = table("u", parameters=dict(ACID), sd=storage(inputFormat="x"))
        rpc.translate_table_dryrun(ttypes.CreateTableRequest(table=bad))


@pytest.mark.slow
def test_long_lists_are_streamed(metastore: Callable[..., str]) -> None:
    """More tables than a short list has, through every call; ACID tables are left out of one of them."""
    with Caller(metastore(**{"metastore.filesystem.directories": "false"})) as ann:
        names = [f"t{number:04d}" for number in range(700)]
        for number, name in enumerate(names):
            ann.call("create_table", table(name, parameters=dict(ACID) if number % 7 == 0 else {"k": "v"}))
        plain = [name for number, name in enumerate(names) if number % 7]
        assert ann.call("get_all_tables", "default") == names
        assert ann.call("get_tables", "default", "t0*") == names
        assert ann.call("get_table_names_by_filter", "default", f'{KEY} = "v"', -1) == plain
        assert ann.call("get_table_names_by_filter", "default", f'{KEY} = "v"', 500) == plain[:500]
        assert [one.tableName for one in ann.call("get_table_meta", "*", "*", [])] == names
        found = ann.call("get_table_objects_by_name", "default", names)
        assert [one.tableName for one in found] == plain
        assert found[5].sd == ann.call("get_table", "default", plain[5]).sd
        request: Any = ttypes.GetTablesRequest(dbName="default", tablesPattern="*")
        assert [one.tableName for one in ann.call("get_table_objects_by_name_req", request).tables] == names
        request = ttypes.GetTablesExtRequest(
            catalog="hive", database="default", tableNamePattern="*", requestedFields=1, limit=650,
            processorCapabilities=["CONNECTORREAD"],
        )  # fmt: skip
        assert [one.tblName for one in ann.call("get_tables_ext", request)] == names[:650]
        with refused("MetaException", "filter"):
            ann.call("get_table_names_by_filter", "default", "nonsense", -1)
