"""Names of databases in several catalogs, and the property that no list shows what is of another catalog."""

from __future__ import annotations

import string
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hive_acid.errors import InvalidObjectError
from hive_acid.wire import ttypes
from metastore.catalog.names import (
    database_key,
    database_name,
    decoded,
    split_key,
    table_text,
)
from tests.caller import Caller, refused
from tests.catalog.conftest import table
from tests.served import served

NAME = st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("database", "catalog", "expected"),
    [
        ("Db", None, ("hive", "db")),
        ("db", "Spark", ("spark", "db")),
        ("@Spark#Db", None, ("spark", "db")),
        ("@spark#db", "hive", ("spark", "db")),
        ("@hive#", None, ("hive", None)),
        ("@spark#!", None, ("spark", "")),
        ("@#db", None, ("", "db")),
        (None, None, ("hive", None)),
        (None, "spark", ("spark", None)),
        ("@no hash", None, ("hive", "@no hash")),
    ],
)
def test_what_a_request_names(database: str | None, catalog: str | None, expected: tuple[str, str | None]) -> None:
    assert decoded(database, catalog) == expected


def test_names_that_are_not_text() -> None:
    for call in (lambda: decoded(b"\xff"), lambda: decoded("d", b"\xff")):  # type: ignore[arg-type]
        with pytest.raises(InvalidObjectError):
            call()


@given(catalog=NAME, name=NAME, other=NAME)
def test_keys_lead_back_and_never_meet(catalog: str, name: str, other: str) -> None:
    key = database_key(catalog, name)
    assert split_key(key) == (catalog, name)
    assert database_name(f"@{catalog.upper()}#{name.upper()}") == key
    assert (key == database_key(other, name)) == (catalog == other)
    assert catalog == "hive" or not key.isidentifier()
    assert "." not in key  # which ends the database in the full name of a table
    assert table_text(key, "t") == f"{catalog}.{name}.t"


def test_nobody_gets_at_another_catalog_by_a_twisted_name() -> None:
    for text in ("@hive#@spark#db", "@other#@spark#db", "@spark#x#db"):
        assert database_name(text) != database_name("@spark#db")


CATALOGS = ("hive", "spark", "spark2")
DATABASES = ("default", "a", "ab", "b_1")
TABLES = ("t", "a", "ta")
PATTERN = st.lists(
    st.sampled_from(["*", ".*", "%", "|", ".", "@", "#", "!", "@hive#", "@spark#", *"abt_1", *DATABASES, "[", "\\"]),
    max_size=5,
).map("".join)


@pytest.fixture(scope="module")
def ann(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    """All catalogs have all databases, all databases all tables; comment and owner say of which catalog one is."""
    place = tmp_path_factory.mktemp("catalogs")
    with served(postgres_url, template, place, {}) as running, running.caller() as caller:
        for catalog in CATALOGS:
            if catalog != "hive":
                new = ttypes.Catalog(name=catalog, locationUri=str(place / catalog))
                caller.call("create_catalog", ttypes.CreateCatalogRequest(catalog=new))
            for database in DATABASES:
                if database != "default":
                    caller.call("create_database", ttypes.Database(name=database, catalogName=catalog))
                for name in TABLES:
                    caller.call("create_table", table(f"{name}_{catalog}", database, catName=catalog, owner=catalog))
        yield caller


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(catalog=st.sampled_from([*CATALOGS, "none"]), databases=PATTERN, tables=PATTERN, in_string=st.booleans())
@example(catalog="hive", databases="@spark#*", tables="*", in_string=True)
@example(catalog="hive", databases="*|@spark#*", tables="*", in_string=True)
@example(catalog="hive", databases="", tables="*", in_string=True)
def test_no_list_shows_another_catalog(ann: Caller, catalog: str, databases: str, tables: str, in_string: bool) -> None:
    text = f"@{catalog}#{databases}" if in_string else databases
    own = decoded(text)[0]

    names = ann.call("get_databases", text)
    assert set(names) <= (set(DATABASES) if own in CATALOGS else set())
    request = ttypes.GetDatabaseObjectsRequest(pattern=text)
    found = ann.call("get_databases_req", request).databases
    assert [(one.catalogName, one.name) for one in found] == [(own, name) for name in names]
    shown = ann.call("get_table_meta", text, tables, [])
    assert {one.catName for one in shown} <= {own}
    assert {one.ownerName for one in shown} <= {own}
    assert {one.dbName for one in shown} <= set(names)

    if None in (decoded(text)[1], decoded(databases)[1]):
        with refused("MetaException", "names no database"):
            ann.call("get_tables", text if decoded(text)[1] is None else databases, tables)
        return
    listed: set[str] = set(ann.call("get_tables", text, tables)) | set(ann.call("get_all_tables", text))
    listed |= set(ann.call("get_tables_by_type", text, tables, "MANAGED_TABLE"))
    names_of_own = {f"{name}_{own}" for name in TABLES}
    assert listed <= names_of_own
    everything: Any = ttypes.GetTablesExtRequest(
        catalog=own, database=databases, tableNamePattern=tables, requestedFields=0
    )
    ext = {one.tblName for one in ann.call("get_tables_ext", everything)}
    assert ext <= {f"{name}_{decoded(databases, own)[0]}" for name in TABLES}


def test_the_lists_are_not_empty(ann: Caller) -> None:
    """The property above would hold of a server that shows nothing."""
    for catalog in CATALOGS:
        assert ann.call("get_databases", f"@{catalog}#*") == sorted(DATABASES)
        assert ann.call("get_databases", f"@{catalog}#a%|b.*") == ["a", "ab", "b_1"]
        assert len(ann.call("get_table_meta", f"@{catalog}#", None, [])) == len(DATABASES) * len(TABLES)
        assert ann.call("get_tables", f"@{catalog}#ab", "t*") == [f"t_{catalog}", f"ta_{catalog}"]
    assert ann.call("get_all_databases") == sorted(DATABASES)
