"""Keys and constraints."""

from __future__ import annotations

from typing import Any

from tests.caller import refused
from tests.clients.walks.walk import Walk

_STATES = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}


def _primary(walk: Walk, table: str, name: str | None = None) -> Any:
    return walk.new(
        "SQLPrimaryKey", table_db=walk.db, table_name=table, column_name="id", key_seq=1, pk_name=name, **_STATES
    )


def _foreign(walk: Walk, table: str, parent: str, name: str) -> Any:
    return walk.new(
        "SQLForeignKey",
        pktable_db=walk.db,
        pktable_name=parent,
        pkcolumn_name="id",
        fktable_db=walk.db,
        fktable_name=table,
        fkcolumn_name="id",
        key_seq=1,
        update_rule=0,
        delete_rule=0,
        fk_name=name,
        pk_name="pk_parent",
        **_STATES,
    )


def _keys(walk: Walk, table: str) -> Any:
    if walk.hive.generation == 2:
        return walk.client.getPrimaryKeys(walk.new("PrimaryKeysRequest", db_name=walk.db, tbl_name=table))
    request = walk.new("PrimaryKeysRequest", db_name=walk.db, tbl_name=table)
    request.setCatName("hive")
    return walk.client.getPrimaryKeys(request)


def _foreign_keys(walk: Walk, table: str) -> Any:
    request = walk.new("ForeignKeysRequest", foreign_db_name=walk.db, foreign_tbl_name=table)
    return walk.client.getForeignKeys(request)


def keys(walk: Walk) -> None:
    client, hive = walk.client, walk.hive
    walk.create("parent")
    walk.create("child")
    client.addPrimaryKey(hive.list_of(_primary(walk, "parent", "pk_parent")))
    (key,) = _keys(walk, "parent")
    assert (key.getPk_name(), key.getColumn_name(), key.isRely_cstr()) == ("pk_parent", "id", True)
    client.addForeignKey(hive.list_of(_foreign(walk, "child", "parent", "fk_child")))
    (foreign,) = _foreign_keys(walk, "child")
    assert (foreign.getFk_name(), foreign.getPktable_name()) == ("fk_child", "parent")
    client.dropConstraint(walk.db, "child", "fk_child")
    assert _foreign_keys(walk, "child").size() == 0
    if walk.catalog:
        client.dropConstraint("hive", walk.db, "parent", "pk_parent")
    else:
        client.dropConstraint(walk.db, "parent", "pk_parent")
    assert _keys(walk, "parent").size() == 0
    with refused("NoSuchObjectException"):
        client.dropConstraint(walk.db, "parent", "pk_parent")


def with_table(walk: Walk) -> None:
    client, hive = walk.client, walk.hive
    lists = [hive.list_of(_primary(walk, "t")), hive.list_of()]
    if hive.generation > 2:
        lists += [hive.list_of() for _ in range(4)]
    client.createTableWithConstraints(walk.table("t"), *lists)
    (key,) = _keys(walk, "t")
    assert key.getPk_name()
    client.dropTable(walk.db, "t")


def others(walk: Walk) -> None:
    """Unique, not null, default and check, which Hive 3 brought."""
    if walk.hive.generation == 2:
        return
    client, hive = walk.client, walk.hive
    walk.create("t")
    common = {"catName": "hive", "table_db": walk.db, "table_name": "t", "column_name": "id", **_STATES}
    request = {"catName": "hive", "db_name": walk.db, "tbl_name": "t"}
    for kind, adding, reading, asking, name, more in [
        ("SQLUniqueConstraint", "addUniqueConstraint", "getUniqueConstraints", "UniqueConstraintsRequest", "uk_name",
         {"key_seq": 1}),
        ("SQLNotNullConstraint", "addNotNullConstraint", "getNotNullConstraints", "NotNullConstraintsRequest",
         "nn_name", {}),
        ("SQLDefaultConstraint", "addDefaultConstraint", "getDefaultConstraints", "DefaultConstraintsRequest",
         "dc_name", {"default_value": "7"}),
        ("SQLCheckConstraint", "addCheckConstraint", "getCheckConstraints", "CheckConstraintsRequest", "dc_name",
         {"check_expression": "id > 0"}),
    ]:  # fmt: skip
        named = f"c_{adding.lower()}"
        getattr(client, adding)(hive.list_of(walk.new(kind, **{name: named}, **more, **common)))  # type: ignore[arg-type]
        (found,) = getattr(client, reading)(walk.new(asking, **request))
        assert getattr(found, f"get{name.capitalize()}")() == named
        assert found.getColumn_name() == "id"
        client.dropConstraint(walk.db, "t", named)
        assert getattr(client, reading)(walk.new(asking, **request)).size() == 0


STORIES = [keys, with_table, others]
