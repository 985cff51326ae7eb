"""Functions that users have written, over the wire."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, refused

JARS = [(ttypes.ResourceType.JAR, "hdfs:///a.jar"), (ttypes.ResourceType.FILE, "hdfs:///b.txt")]


@pytest.fixture
def ann(metastore: Callable[..., str]) -> Iterator[Caller]:
    with Caller(metastore()) as caller:
        caller.call("create_database", ttypes.Database(name="d"))
        yield caller


def function(name: Any = "f", database: Any = "default", **more: Any) -> Any:
    fields = {"className": "org.F", "ownerName": "ann", "ownerType": 1, "functionType": 1} | more
    return ttypes.Function(functionName=name, dbName=database, **fields)


def test_a_function_comes_back_as_it_was_sent(ann: Caller) -> None:
    resources = [ttypes.ResourceUri(resourceType=kind, uri=uri) for kind, uri in JARS]
    ann.call("create_function", function("My_F", "D", resourceUris=resources, ownerType=2, createTime=7))
    found = ann.call("get_function", "d", "MY_f")
    assert (found.functionName, found.dbName, found.catName, found.className) == ("my_f", "d", "hive", "org.F")
    assert (found.ownerName, found.ownerType, found.functionType) == ("ann", 2, 1)
    assert [(one.resourceType, one.uri) for one in found.resourceUris] == JARS
    assert found.createTime > 1_700_000_000  # the server's, whatever the client says
    ann.call("create_function", function("bare", resourceUris=None))
    assert ann.call("get_function", "default", "bare").resourceUris == []


def test_an_owner_left_out_stays_so(ann: Caller) -> None:
    ann.call("set_ugi", "bob", [])
    ann.call("create_function", function(ownerName=None))
    assert ann.call("get_function", "default", "f").ownerName is None


@pytest.mark.parametrize(
    ("struct", "kind"),
    [
        (function("f;"), "InvalidObjectException"),
        (function(""), "InvalidObjectException"),
        (function(className=None), "InvalidObjectException"),
        (function(None), "MetaException"),
        (function("f", None), "MetaException"),
        (function(ownerType=None), "MetaException"),
        (function(functionType=None), "MetaException"),
        (None, "MetaException"),
        (function("f", "nix"), "NoSuchObjectException"),
        (function("TAKEN"), "AlreadyExistsException"),
    ],
)
def test_what_cannot_be_created(ann: Caller, struct: Any, kind: str) -> None:
    ann.call("create_function", function("taken"))
    with refused(kind):
        ann.call("create_function", struct)
    if struct is not None:  # alter declares none of these but MetaException
        ann.call("create_function", function("other"))
        with refused("MetaException"):
            ann.call("alter_function", "default", "other", struct)


def test_lists_match_patterns(ann: Caller) -> None:
    for name in ("to_find_1", "to_find_2", "hidden"):
        ann.call("create_function", function(name))
    ann.call("create_function", function("to_find_1", "d"))
    assert ann.call("get_functions", "DEFAULT", "*_FIND_*") == ["to_find_1", "to_find_2"]
    assert ann.call("get_functions", "@hive#default", "hid*|*_1") == ["hidden", "to_find_1"]
    assert ann.call("get_functions", "default", None) == ["hidden", "to_find_1", "to_find_2"]
    assert ann.call("get_functions", "default", "") == []
    assert ann.call("get_functions", "nix", "*") == []
    with refused("MetaException"):
        ann.call("get_functions", None, "*")
    found = ann.call("get_all_functions").functions
    assert [(one.dbName, one.functionName) for one in found] == [
        ("d", "to_find_1"),
        ("default", "hidden"),
        ("default", "to_find_1"),
        ("default", "to_find_2"),
    ]


def test_lists_by_request_have_names_or_functions(ann: Caller) -> None:
    ann.call("create_function", function("f"))
    names = ann.call("get_functions_req", ttypes.GetFunctionsRequest(dbName="default", pattern="*", returnNames=True))
    assert (names.function_names, names.functions) == (["f"], None)
    whole = ann.call("get_functions_req", ttypes.GetFunctionsRequest(dbName="default", returnNames=False))
    assert ([one.className for one in whole.functions], whole.function_names) == (["org.F"], None)


def test_alter_changes_all_but_time_and_resources(ann: Caller) -> None:
    resources = [ttypes.ResourceUri(resourceType=kind, uri=uri) for kind, uri in JARS]
    ann.call("create_function", function(resourceUris=resources))
    before = ann.call("get_function", "default", "f")
    ann.call("alter_function", "DEFAULT", "F", function("G", "d", className="org.G", ownerName="eve", ownerType=3))
    found = ann.call("get_function", "d", "g")
    assert (found.className, found.ownerName, found.ownerType) == ("org.G", "eve", 3)
    assert (found.createTime, found.resourceUris) == (before.createTime, before.resourceUris)
    with refused("NoSuchObjectException"):
        ann.call("get_function", "default", "f")
    for missing in (("default", "f"), ("nix", "g"), (None, "g"), ("d", None)):
        with refused("MetaException"):
            ann.call("alter_function", *missing, function())


def test_drop(ann: Caller) -> None:
    ann.call("create_function", function())
    ann.call("drop_function", "Default", "F")
    for missing in ("default", "nix"):
        with refused("NoSuchObjectException", "does not exist"):
            ann.call("drop_function", missing, "f")
    for nameless in ((None, "f"), ("default", None)):
        with refused("MetaException", "missing"):
            ann.call("drop_function", *nameless)


def test_functions_of_another_catalog(ann: Caller, tmp_path: Path) -> None:
    catalog = ttypes.Catalog(name="other", locationUri=str(tmp_path / "other"))
    ann.call("create_catalog", ttypes.CreateCatalogRequest(catalog=catalog))
    ann.call("create_database", ttypes.Database(name="d", catalogName="other"))
    ann.call("create_function", function("f", "d", catName="other"))
    found = ann.call("get_function", "@other#d", "f")
    assert (found.catName, found.dbName) == ("other", "d")
    request = ttypes.GetFunctionsRequest(dbName="d", catalogName="other", pattern="*", returnNames=True)
    assert ann.call("get_functions_req", request).function_names == ["f"]
    assert ann.call("get_functions", "d", "*") == ann.call("get_all_functions").functions == []
    with refused("NoSuchObjectException"):
        ann.call("create_function", function("f", "d", catName="nix"))
    assert ann.call("get_functions", "@nix#d", "*") == []


def test_functions_go_with_their_database_only_if_told(ann: Caller) -> None:
    ann.call("create_function", function("f", "d"))
    with refused("InvalidOperationException", "functions"):
        ann.call("drop_database", "d", True, False)
    assert ann.call("get_functions", "d", "*") == ["f"]
    ann.call("drop_database", "d", True, True)
    ann.call("create_database", ttypes.Database(name="d"))
    assert ann.call("get_functions", "d", "*") == []
