"""pyiceberg: tables, appends, evolution, and commits of many processes of which none is lost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.hive import HiveCatalog
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.types import StringType

from hive_acid.wire import ttypes
from tests.caller import Caller, Refused, refused
from tests.clients.checking import CheckingProxy
from tests.clients.iceberg import SCHEMA, TABLE, append, catalog_of, rows
from tests.served import Served

WRITERS, COMMITS = 4, 4


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def catalog(server: Served, proxy: CheckingProxy, warehouse: Path) -> Iterator[HiveCatalog]:
    """A catalogue with the empty namespace ``lake``."""
    found = catalog_of(proxy.uri, f"file://{warehouse}")
    found.create_namespace("lake")
    yield found
    with server.caller() as caller, suppress(Refused):
        caller.call("drop_database", "lake", True, True)


def values(catalog: HiveCatalog) -> list[tuple[str, int]]:
    found = catalog.load_table(TABLE).scan().to_arrow().to_pydict()
    return sorted(zip(found["writer"], found["number"], strict=True))


def test_life_of_a_table(catalog: HiveCatalog) -> None:
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("lake")
    assert ("lake",) in catalog.list_namespaces()
    table = catalog.create_table(TABLE, schema=SCHEMA)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(TABLE, schema=SCHEMA)
    table.append(rows("ann", 1))
    table.append(rows("ann", 2))
    assert values(catalog) == [("ann", 1), ("ann", 2)]
    table.overwrite(rows("bob", 3))
    assert values(catalog) == [("bob", 3)]
    assert catalog.list_tables("lake") == [("lake", "events")]
    catalog.rename_table(TABLE, "lake.moved")
    assert catalog.load_table("lake.moved").scan().to_arrow().num_rows == 1
    catalog.drop_table("lake.moved")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("lake.moved")
    catalog.update_namespace_properties("lake", updates={"k": "v"})
    assert catalog.load_namespace_properties("lake")["k"] == "v"
    catalog.drop_namespace("lake")
    assert ("lake",) not in catalog.list_namespaces()


def test_schema_evolves(catalog: HiveCatalog, server: Served) -> None:
    table = catalog.create_table(TABLE, schema=SCHEMA)
    table.append(rows("ann", 1))
    with table.update_schema() as update:
        update.add_column("place", StringType())
        update.rename_column("number", "count")
    table.append(pa.table({"writer": ["bob"], "count": [2], "place": ["here"]}))
    found = catalog.load_table(TABLE).scan().to_arrow().sort_by("count").to_pydict()
    assert found == {"writer": ["ann", "bob"], "count": [1, 2], "place": [None, "here"]}
    with server.caller() as caller:
        columns = caller.call("get_table", "lake", "events").sd.cols
    assert [column.name for column in columns] == ["writer", "count", "place"]


def test_a_held_lock_keeps_writers_waiting(catalog: HiveCatalog, server: Served) -> None:
    catalog.create_table(TABLE, schema=SCHEMA)
    with server.caller() as caller:
        held = caller.lock("e lake/events n")
        impatient = HiveCatalog(
            "hive",
            uri=server.uri,
            **{"lock-check-min-wait-time": "0.01", "lock-check-max-wait-time": "0.02", "lock-check-retries": "3"},
        )
        with pytest.raises(Exception, match="lock"):
            impatient.load_table(TABLE).append(rows("ann", 1))
        caller.unlock(held.lockid)
        assert append(catalog, "ann", 2) == 0
        assert caller.locks() == []
    assert values(catalog) == [("ann", 2)]


@pytest.mark.slow
def test_concurrent_commits_lose_nothing(catalog: HiveCatalog, proxy: CheckingProxy, warehouse: Path) -> None:
    catalog.create_table(TABLE, schema=SCHEMA)
    command = [sys.executable, "-m", "tests.clients.iceberg", proxy.uri, f"file://{warehouse}"]
    writers = [
        subprocess.Popen([*command, f"w{number}", str(COMMITS)], stdout=subprocess.PIPE, text=True)
        for number in range(WRITERS)
    ]
    overtaken = [writer.communicate(timeout=120)[0] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * WRITERS, overtaken
    expected = sorted((f"w{writer}", number) for writer in range(WRITERS) for number in range(COMMITS))
    assert values(catalog) == expected
    assert len(catalog.load_table(TABLE).history()) == WRITERS * COMMITS


def test_stale_pointer_is_refused(catalog: HiveCatalog, server: Served) -> None:
    """Iceberg without locks: compare-and-set of the pointer inside alter_table (wire.md §4.5)."""
    catalog.create_table(TABLE, schema=SCHEMA)
    with server.caller() as ann, server.caller() as bob:
        seen = ann.call("get_table", "lake", "events")
        catalog.load_table(TABLE).append(rows("x", 1))
        stale = ttypes.EnvironmentContext(
            properties={
                "expected_parameter_key": "metadata_location",
                "expected_parameter_value": seen.parameters["metadata_location"],
            }
        )
        with refused("MetaException", "The table has been modified"):
            bob.call("alter_table_with_environment_context", "lake", "events", seen, stale)
    assert values(catalog) == [("x", 1)]


def test_both_thrift_libraries_in_one_process(catalog: HiveCatalog, server: Served) -> None:
    """pyiceberg's own `thrift` beside our thriftpy2: neither takes the other's modules."""
    import thrift
    import thriftpy2

    assert not thrift.__name__.startswith(thriftpy2.__name__)
    with Caller(server.uri) as caller:
        assert "lake" in caller.call("get_all_databases")
        assert ("lake",) in catalog.list_namespaces()
        assert caller.call("getName") == "metastore"
