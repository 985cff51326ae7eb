"""What kind of table a new one becomes by the settings (wire.md §5.12)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.errors import MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from tests.catalog.conftest import ACID, Rpc, storage, table

INSERT_ONLY = ACID | {"transactional_properties": "insert_only"}


def get(rpc: Rpc, name: str, database: str = "default") -> Any:
    return rpc.get_table_req(ttypes.GetTableRequest(dbName=database, tblName=name)).table


def create(rpc: Rpc, struct: Any, *capabilities: str) -> None:
    rpc.create_table_req(ttypes.CreateTableRequest(table=struct, processorCapabilities=list(capabilities) or None))


@pytest.fixture
def translating(make_catalog: Callable[..., CatalogService], tmp_path: Path) -> Rpc:
    return Rpc(make_catalog(translate_types=True, external_warehouse=str(tmp_path / "external")))


def test_managed_tables_stay_so_by_default(rpc: Rpc) -> None:
    create(rpc, table("t"), "EXTREAD")
    create(rpc, table("a", parameters=ACID))
    assert (get(rpc, "t").tableType, get(rpc, "a").tableType) == ("MANAGED_TABLE", "MANAGED_TABLE")


def test_managed_tables_become_external(translating: Rpc, tmp_path: Path) -> None:
    translating.create_table(table("t"))
    found = get(translating, "t")
    del found.parameters["transient_lastDdlTime"]
    assert found.tableType == "EXTERNAL_TABLE"
    assert found.parameters == {"EXTERNAL": "TRUE", "external.table.purge": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE"}
    assert found.sd.location == f"file:{tmp_path}/external/t"
    translating.drop_table("default", "t", True)
    assert not (tmp_path / "external/t").exists()


def test_where_translated_tables_go(translating: Rpc, warehouse: Path, tmp_path: Path) -> None:
    translating.create_database(ttypes.Database(name="d"))
    translating.create_database(ttypes.Database(name="e", locationUri=str(tmp_path / "own")))
    translating.create_table(table("t", "d"))
    translating.create_table(table("t", "e"))
    translating.create_table(table("u", "d", sd=storage(location=str(tmp_path / "chosen"))))
    create(translating, table("a", "d", parameters=ACID), "HIVEFULLACIDWRITE")
    assert get(translating, "t", "d").sd.location == f"file:{tmp_path}/external/d.db/t"
    assert get(translating, "t", "e").sd.location == f"file:{tmp_path}/own/t"
    assert get(translating, "u", "d").sd.location == f"file:{tmp_path}/chosen"
    assert get(translating, "a", "d").sd.location == f"file:{warehouse}/d.db/a"


@pytest.mark.parametrize(
    ("parameters", "capabilities", "is_created"),
    [
        (ACID, [], False),
        (ACID, ["HIVEMANAGEDINSERTWRITE"], False),
        (ACID, ["HIVEFULLACIDWRITE"], True),
        (ACID, ["CONNECTORWRITE"], True),
        (ACID, ["MANAGERAWMETADATA"], True),
        (INSERT_ONLY, ["HIVEFULLACIDWRITE"], False),
        (INSERT_ONLY, ["HIVEMANAGEDINSERTWRITE"], True),
    ],
)
def test_transactional_tables_need_a_capability(
    translating: Rpc, parameters: dict[str, str], capabilities: list[str], is_created: bool
) -> None:
    if is_created:
        create(translating, table("t", parameters=parameters), *capabilities)
        assert get(translating, "t").tableType == "MANAGED_TABLE"
    else:
        words = "Processor has no capabilities, cannot create an ACID table." if not capabilities else "Processor lacks"
        with pytest.raises(MetaError, match=words):
            create(translating, table("t", parameters=parameters), *capabilities)
        with pytest.raises(NoSuchObjectError):
            get(translating, "t")


def test_views_external_and_raw_tables_are_left_alone(translating: Rpc) -> None:
    translating.create_table(table("v", tableType="VIRTUAL_VIEW"))
    translating.create_table(table("e", tableType="EXTERNAL_TABLE"))
    create(translating, table("m"), "MANAGERAWMETADATA")
    assert get(translating, "v").tableType == "VIRTUAL_VIEW"
    assert "TRANSLATED_TO_EXTERNAL" not in get(translating, "e").parameters
    assert get(translating, "m").tableType == "MANAGED_TABLE"


def test_new_tables_can_be_acid_by_default(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(create_as_acid=True))
    rpc.create_table(table("t"))
    rpc.create_table(table("said", parameters={"transactional": "false"}))
    rpc.create_table(table("text", sd=storage(inputFormat="text")))
    rpc.create_table(table("sorted", sd=storage(sortCols=[ttypes.Order(col="a", order=1)])))
    rpc.create_table(table("e", tableType="EXTERNAL_TABLE"))
    rpc.create_table(table("x", parameters={"EXTERNAL": "TRUE"}))
    rpc.create_table(table("v", tableType="VIRTUAL_VIEW"))
    names = ("t", "said", "text", "sorted", "e", "x", "v")
    acid = [name for name in names if "transactional" in get(rpc, name).parameters]
    assert acid == ["t"]
    assert get(rpc, "t").parameters["transactional_properties"] == "default"


def test_new_tables_can_be_insert_only_by_default(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(create_as_acid=True, create_as_insert_only=True))
    rpc.create_table(table("t"))
    rpc.create_table(table("text", sd=storage(inputFormat="text")))
    kinds = [get(rpc, name).parameters["transactional_properties"] for name in ("t", "text")]
    assert kinds == ["default", "insert_only"]


def test_managed_tables_go_where_the_database_says(rpc: Rpc, tmp_path: Path) -> None:
    rpc.create_database(ttypes.Database(name="d", managedLocationUri=str(tmp_path / "managed")))
    rpc.create_table(table("t", "d"))
    rpc.create_table(table("e", "d", tableType="EXTERNAL_TABLE"))
    assert get(rpc, "t", "d").sd.location == f"file:{tmp_path}/managed/t"
    assert get(rpc, "e", "d").sd.location == f"file:{tmp_path}/warehouse/d.db/e"
    rpc.alter_table("d", "t", table("u", "d"))
    assert get(rpc, "u", "d").sd.location == f"file:{tmp_path}/managed/u"
    assert (tmp_path / "managed/u").is_dir()
