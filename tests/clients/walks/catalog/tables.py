"""Tables and views."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from tests.caller import refused
from tests.clients.walks.walk import Walk


def life(walk: Walk) -> None:
    client = walk.client
    before = walk.table("t", parameters={"k": "v"})
    client.createTable(before)
    with refused("AlreadyExistsException", "t"):
        client.createTable(before)
    table = client.both("getTable", walk.db, "t")
    assert (table.getDbName(), table.getTableName(), table.getOwner()) == (walk.db, "t", "ann")
    assert table.getTableType() == "MANAGED_TABLE"
    assert table.getParameters()["k"] == "v"
    assert "transient_lastDdlTime" in table.getParameters()
    assert table.getCreateTime() > 0
    assert table.getSd().getSerdeInfo().getSerializationLib() == before.getSd().getSerdeInfo().getSerializationLib()
    assert Path(urlsplit(table.getSd().getLocation()).path).is_dir()
    assert client.both("tableExists", walk.db, "t")
    assert not client.tableExists(walk.db, "u")
    with refused("NoSuchObjectException", "u"):
        client.getTable(walk.db, "u")
    client.dropTable(walk.db, "t")
    assert not client.tableExists(walk.db, "t")
    assert not Path(urlsplit(table.getSd().getLocation()).path).exists()
    client.dropTable(walk.db, "t")  # this form ignores what is not there
    with refused("NoSuchObjectException", "t"):
        client.dropTable(walk.db, "t", True, False)
    table = walk.table("c")
    client.createTable(table, walk.new("EnvironmentContext", properties={"DO_NOT_UPDATE_STATS": "true"}))
    assert client.tableExists(walk.db, "c")


def drops(walk: Walk) -> None:
    client = walk.client
    context = walk.new("EnvironmentContext", properties={"ifPurge": "TRUE"})
    for name in "abcdef":
        walk.create(name)
    client.dropTable(walk.db, "a", True, True)
    client.dropTable(walk.db, "b", True, False, True)
    client.dropTable(walk.db, "a", True, True, True)
    if walk.hive.generation == 2:
        client.dropTable(walk.db, "c", True, True, context)
    else:
        client.dropTable("hive", walk.db, "c", True, True, True)
        client.dropTable("hive", walk.db, "d", True, True, context)
    external = walk.create(
        "x", kind="EXTERNAL_TABLE", location=f"file:{walk.directory}/x", parameters={"EXTERNAL": "TRUE"}
    )
    assert external.getTableType() == "EXTERNAL_TABLE"
    client.dropTable(walk.db, "x", True, False)
    assert (walk.directory / "x").is_dir()


def lists(walk: Walk) -> None:
    client = walk.client
    for name in ("ta", "tb", "other"):
        walk.create(name)
    assert sorted(client.both("getAllTables", walk.db)) == ["other", "ta", "tb"]
    assert sorted(client.both("getTables", walk.db, "t*")) == ["ta", "tb"]
    assert sorted(client.getTables(walk.db, "ta|oth*")) == ["other", "ta"]
    kinds = walk.hive.jvm.org.apache.hadoop.hive.metastore.TableType
    assert sorted(client.both("getTables", walk.db, "t*", kinds.MANAGED_TABLE)) == ["ta", "tb"]
    assert list(client.getTables(walk.db, "*", kinds.VIRTUAL_VIEW)) == []
    found = client.both("getTableObjectsByName", walk.db, ["tb", "nothing", "ta"])
    assert sorted(table.getTableName() for table in found) == ["ta", "tb"]
    metas = client.both("getTableMeta", walk.db, "*", ["MANAGED_TABLE"])
    assert sorted((meta.getDbName(), meta.getTableName()) for meta in metas) == [
        (walk.db, name) for name in ("other", "ta", "tb")
    ]
    found = client.listTableNamesByFilter(walk.db, 'hive_filter_field_owner__ = "ann"', -1)
    assert sorted(found) == ["other", "ta", "tb"]
    assert list(client.listTableNamesByFilter(walk.db, 'hive_filter_field_owner__ = "bob"', 10)) == []
    if walk.catalog:
        found = client.listTableNamesByFilter("hive", walk.db, 'hive_filter_field_owner__ like "a.*"', 2)
        assert len(found) == 2


def in_default(walk: Walk) -> None:
    """Hive 2's forms that name no database."""
    if walk.hive.generation > 2:
        return
    client, name = walk.client, f"of_{walk.db}"
    table = walk.table(name)
    table.setDbName("default")
    client.createTable(table)
    assert client.getTable(name).getDbName() == "default"
    assert client.tableExists(name)
    client.dropTable(name, True)
    assert not client.tableExists(name)


def alter(walk: Walk) -> None:
    client = walk.client
    table = walk.create("t")
    table.getParameters().put("k", "v")
    client.alter_table(walk.db, "t", table)
    assert client.getTable(walk.db, "t").getParameters()["k"] == "v"
    table.getSd().setCols(walk.columns("id bigint, name string, more double"))
    client.alter_table(walk.db, "t", table, True)
    assert client.getTable(walk.db, "t").getSd().getCols()[0].getType() == "bigint"
    context = walk.new("EnvironmentContext", properties={"DO_NOT_UPDATE_STATS": "true"})
    table.getParameters().put("k", "w")
    client.alter_table_with_environmentContext(walk.db, "t", table, context)
    assert client.getTable(walk.db, "t").getParameters()["k"] == "w"
    if walk.catalog:
        table.getParameters().put("k", "x")
        client.alter_table("hive", walk.db, "t", table, context)
        assert client.getTable(walk.db, "t").getParameters()["k"] == "x"
    with refused("InvalidOperationException"):
        client.alter_table(walk.db, "nothing", table)


def rename(walk: Walk) -> None:
    client = walk.client
    table = walk.create("t")
    old = Path(urlsplit(table.getSd().getLocation()).path)
    (old / "data").write_text("x")
    table.setTableName("u")
    client.alter_table(walk.db, "t", table)
    assert not client.tableExists(walk.db, "t")
    new = Path(urlsplit(client.getTable(walk.db, "u").getSd().getLocation()).path)
    assert new.name == "u"
    assert (new / "data").read_text() == "x"
    assert not old.exists()


def compare_and_set(walk: Walk) -> None:
    """Iceberg's commits: only the one that knows the present pointer goes through."""
    client = walk.client
    table = walk.create("t", parameters={"metadata_location": "a"})
    expected = {"expected_parameter_key": "metadata_location", "expected_parameter_value": "a"}
    context = walk.new("EnvironmentContext", properties=expected)
    table.getParameters().put("metadata_location", "b")
    client.alter_table_with_environmentContext(walk.db, "t", table, context)
    with refused(
        "MetaException", "The table has been modified. The parameter value for key 'metadata_location' is 'b'"
    ):
        client.alter_table_with_environmentContext(walk.db, "t", table, context)


def views(walk: Walk) -> None:
    client = walk.client
    walk.create("t")
    view = walk.table("v", kind="VIRTUAL_VIEW")
    view.setViewOriginalText("SELECT 1")
    view.setViewExpandedText("SELECT 1 AS one")
    client.createTable(view)
    found = client.getTable(walk.db, "v")
    assert found.getViewExpandedText() == "SELECT 1 AS one"
    assert found.getSd().getLocation() is None
    kinds = walk.hive.jvm.org.apache.hadoop.hive.metastore.TableType
    assert list(client.getTables(walk.db, "*", kinds.VIRTUAL_VIEW)) == ["v"]
    client.dropTable(walk.db, "v")


def skewed(walk: Walk) -> None:
    """A map whose keys are lists, which thriftpy2 alone cannot read."""
    client = walk.client
    table = walk.table("t", columns="id int, name string")
    skew = walk.new("SkewedInfo", skewedColNames=["id"], skewedColValues=[["1"], ["5"]])
    table.getSd().setSkewedInfo(skew)
    locations = walk.hive.jvm.java.util.HashMap()
    locations.put(walk.hive.list_of("1"), f"file:{walk.directory}/one")
    locations.put(walk.hive.list_of("5"), f"file:{walk.directory}/five")
    skew.setSkewedColValueLocationMaps(locations)
    client.createTable(table)
    found = client.getTable(walk.db, "t").getSd().getSkewedInfo()
    assert found.equals(skew)
    again = client.getTable(walk.db, "t")
    again.getSd().getSkewedInfo().getSkewedColValueLocationMaps().put(walk.hive.list_of("7"), "file:/seven")
    client.alter_table(walk.db, "t", again)
    assert client.getTable(walk.db, "t").getSd().getSkewedInfo().getSkewedColValueLocationMapsSize() == 3


STORIES = [life, drops, lists, in_default, alter, rename, compare_and_set, views, skewed]
