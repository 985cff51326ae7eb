"""Constraints of tables, over the wire."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller, Refused, refused
from tests.catalog.conftest import column, storage, table

FLAGS = {"enable_cstr": True, "validate_cstr": False, "rely_cstr": True}
COLUMNS = (column("a"), column("b", "string"), column("c"))


@pytest.fixture
def ann(metastore: Callable[..., str]) -> Iterator[Caller]:
    with Caller(metastore()) as caller:
        caller.call("create_database", ttypes.Database(name="d"))
        caller.call("create_table", table("t", sd=storage(*COLUMNS), keys=(column("p"),)))
        caller.call("create_table", table("parent", "d", sd=storage(*COLUMNS)))
        yield caller


def primary(*columns: str, name: str | None = None, of: str = "default.t", **more: Any) -> list[Any]:
    db, tbl = of.split(".")
    fields = {"table_db": db, "table_name": tbl, "pk_name": name, "catName": "hive", **FLAGS} | more
    return [ttypes.SQLPrimaryKey(column_name=one, key_seq=place, **fields) for place, one in enumerate(columns, 1)]


def unique(*columns: str, name: str | None = None, of: str = "default.t") -> list[Any]:
    db, tbl = of.split(".")
    fields = {"table_db": db, "table_name": tbl, "uk_name": name, "catName": "hive", **FLAGS}
    return [ttypes.SQLUniqueConstraint(column_name=c, key_seq=place, **fields) for place, c in enumerate(columns, 1)]


def foreign(*pairs: str, name: str | None = None, of: str = "default.t", to: str = "d.parent") -> list[Any]:
    """Each pair is ``child>parent``."""
    (db, tbl), (pkdb, pktbl) = of.split("."), to.split(".")
    fields = {"fktable_db": db, "fktable_name": tbl, "pktable_db": pkdb, "pktable_name": pktbl, "fk_name": name}
    fields |= {"catName": "hive", "update_rule": 1, "delete_rule": 2, **FLAGS}  # type: ignore[dict-item]
    return [
        ttypes.SQLForeignKey(
            fkcolumn_name=pair.split(">")[0], pkcolumn_name=pair.split(">")[1], key_seq=place, **fields
        )
        for place, pair in enumerate(pairs, 1)
    ]


def single(kind: str, col: str | None = "a", name: str | None = None, of: str = "default.t", **more: Any) -> Any:
    """A not null (``nn``), default (``dc``) or check (``cc``) constraint."""
    db, tbl = of.split(".")
    struct, name_field = {
        "nn": (ttypes.SQLNotNullConstraint, "nn_name"),
        "dc": (ttypes.SQLDefaultConstraint, "dc_name"),
        "cc": (ttypes.SQLCheckConstraint, "dc_name"),
    }[kind]
    more[name_field] = name
    return struct(catName="hive", table_db=db, table_name=tbl, column_name=col, **FLAGS, **more)


def add(ann: Caller, structs: list[Any]) -> None:
    method, request, field = {
        ttypes.SQLPrimaryKey: ("add_primary_key", ttypes.AddPrimaryKeyRequest, "primaryKeyCols"),
        ttypes.SQLForeignKey: ("add_foreign_key", ttypes.AddForeignKeyRequest, "foreignKeyCols"),
        ttypes.SQLUniqueConstraint: (
            "add_unique_constraint",
            ttypes.AddUniqueConstraintRequest,
            "uniqueConstraintCols",
        ),
        ttypes.SQLNotNullConstraint: (
            "add_not_null_constraint",
            ttypes.AddNotNullConstraintRequest,
            "notNullConstraintCols",
        ),
        ttypes.SQLDefaultConstraint: (
            "add_default_constraint",
            ttypes.AddDefaultConstraintRequest,
            "defaultConstraintCols",
        ),
        ttypes.SQLCheckConstraint: ("add_check_constraint", ttypes.AddCheckConstraintRequest, "checkConstraintCols"),
    }[type(structs[0])]
    ann.call(method, request(**{field: structs}))


def get(ann: Caller, kind: str, of: str = "default.t") -> list[Any]:
    """`kind` as in the name of the getter, ``primary_keys``."""
    db, tbl = of.split(".")
    words = kind.split("_")
    request = getattr(ttypes, "".join(word.title() for word in words) + "Request")
    found = ann.call(f"get_{kind}", request(db_name=db, tbl_name=tbl, catName="hive"))
    return list(getattr(found, words[0] + "".join(word.title() for word in words[1:])))


def references(ann: Caller, parent: str | None = None, child: str | None = None) -> list[Any]:
    fields: dict[str, Any] = {}
    for prefix, name in (("parent", parent), ("foreign", child)):
        if name:
            fields |= dict(zip((f"{prefix}_db_name", f"{prefix}_tbl_name"), name.split("."), strict=True))
    return list(ann.call("get_foreign_keys", ttypes.ForeignKeysRequest(**fields)).foreignKeys)


def every(ann: Caller, of: str = "default.t") -> Any:
    db, tbl = of.split(".")
    request = ttypes.AllTableConstraintsRequest(dbName=db, tblName=tbl, catName="hive")
    return ann.call("get_all_table_constraints", request).allTableConstraints


def drop(ann: Caller, name: str, of: str = "default.t") -> None:
    db, tbl = of.split(".")
    ann.call("drop_constraint", ttypes.DropConstraintRequest(dbname=db, tablename=tbl, constraintname=name))


# --- each kind ---


def test_keys_come_back_column_by_column(ann: Caller) -> None:
    sent = primary("B", "p", name="The_Key")
    add(ann, sent)
    found = get(ann, "primary_keys")
    assert [(one.column_name, one.key_seq, one.pk_name) for one in found] == [("b", 1, "the_key"), ("p", 2, "the_key")]
    assert (found[0].table_db, found[0].table_name, found[0].catName) == ("default", "t", "hive")
    assert (found[0].enable_cstr, found[0].validate_cstr, found[0].rely_cstr) == (True, False, True)


def test_several_unique_keys_in_one_call(ann: Caller) -> None:
    add(ann, [*unique("a", "b", name="u2"), *unique("c", name="u1"), *unique("a"), *unique("b", "a")])
    found: dict[str, list[str]] = {}
    for one in get(ann, "unique_constraints"):
        found.setdefault(one.uk_name, []).append(one.column_name)
    assert found.pop("u1") == ["c"]
    assert found.pop("u2") == ["a", "b"]
    assert sorted(found.values()) == [["a"], ["b", "a"]]
    assert all(name.startswith("uk_") for name in found)


def test_constraints_of_single_columns(ann: Caller) -> None:
    add(ann, [single("nn", "a"), single("nn", "p", "nn_p")])
    add(ann, [single("dc", "b", "dc_b", default_value="'x'")])
    add(ann, [single("cc", "c", "cc_c", check_expression="c > 0"), single("cc", None, "row", check_expression="a < c")])
    names = {one.column_name: one.nn_name for one in get(ann, "not_null_constraints")}
    assert names["p"] == "nn_p"
    assert names["a"].startswith("nn_")
    (default,) = get(ann, "default_constraints")
    assert (default.column_name, default.default_value, default.dc_name) == ("b", "'x'", "dc_b")
    checks = {one.dc_name: (one.column_name, one.check_expression) for one in get(ann, "check_constraints")}
    assert checks == {"cc_c": ("c", "c > 0"), "row": (None, "a < c")}


def test_foreign_keys_name_their_parents(ann: Caller) -> None:
    add(ann, primary("a", "b", of="d.parent", name="pk"))
    add(ann, foreign("c>a", "b>b"))
    found = references(ann, "d.parent", "default.t")
    assert [(one.fkcolumn_name, one.pkcolumn_name, one.key_seq) for one in found] == [("c", "a", 1), ("b", "b", 2)]
    one = found[0]
    assert (one.pktable_db, one.pktable_name, one.pk_name) == ("d", "parent", "pk")
    assert (one.fktable_db, one.fktable_name, one.update_rule, one.delete_rule) == ("default", "t", 1, 2)
    assert one.fk_name.startswith("fk_")
    assert (one.catName, one.rely_cstr) == ("hive", True)
    assert references(ann, parent="d.parent") == references(ann, child="default.t") == found
    assert references(ann, parent="default.t") == references(ann, "default.t", "d.parent") == []
    with refused("MetaException", "name the table"):
        references(ann)


def test_a_foreign_key_to_a_unique_key_of_its_own_table(ann: Caller) -> None:
    add(ann, unique("a"))
    add(ann, foreign("c>a", to="default.t"))
    assert references(ann, "default.t", "default.t")[0].pkcolumn_name == "a"


@pytest.mark.parametrize(
    ("structs", "kind", "words"),
    [
        (primary("a", of="default.nix"), "NoSuchObjectException", "default.nix"),
        (primary("a", of="nix.t"), "NoSuchObjectException", "nix.t"),
        (primary("nix"), "NoSuchObjectException", "column nix"),
        ([single("nn", "nix")], "NoSuchObjectException", "column nix"),
        ([single("nn", None)], "MetaException", "column_name"),
        (foreign("a>a", to="d.nix"), "NoSuchObjectException", "d.nix"),
        (foreign("a>nix"), "NoSuchObjectException", "column nix"),
        (foreign("a>a"), "MetaException", "neither a primary key nor unique"),
        (foreign("b>c"), "MetaException", "b, which is string, with c, which is int"),
        (foreign("a>a", to="default.t"), "MetaException", "its own columns"),
        (unique("a", name="taken"), "MetaException", "already exists: hive.default.t.taken"),
    ],
)
def test_what_cannot_be_added(ann: Caller, structs: list[Any], kind: str, words: str) -> None:
    add(ann, unique("b", name="Taken"))
    before = every(ann)
    with refused(kind, words):
        add(ann, structs)
    assert every(ann) == before


def test_constraints_of_another_catalog(ann: Caller, tmp_path: Path) -> None:
    catalog = ttypes.Catalog(name="other", locationUri=str(tmp_path / "other"))
    ann.call("create_catalog", ttypes.CreateCatalogRequest(catalog=catalog))
    ann.call("create_table", table("t", catName="other"))
    add(ann, primary("a", name="pk", catName="other"))
    assert get(ann, "primary_keys") == []
    request = ttypes.PrimaryKeysRequest(db_name="default", tbl_name="t", catName="other")
    (one,) = ann.call("get_primary_keys", request).primaryKeys
    assert (one.catName, one.table_db, one.pk_name) == ("other", "default", "pk")
    dropping = ttypes.DropConstraintRequest(dbname="default", tablename="t", constraintname="pk", catName="other")
    ann.call("drop_constraint", dropping)
    assert ann.call("get_primary_keys", request).primaryKeys == []


def test_a_table_has_one_primary_key(ann: Caller) -> None:
    add(ann, primary("a"))
    with refused("MetaException", "Primary key already exists for: hive.default.t"):
        add(ann, primary("b"))


def test_of_two_primary_keys_at_once_one_is_refused(metastore: Callable[..., str], ann: Caller) -> None:
    with Caller(metastore()) as bob:
        for caller, col in ((ann, "a"), (bob, "b")):
            caller.send("add_primary_key", ttypes.AddPrimaryKeyRequest(primaryKeyCols=primary(col)))
        outcomes = []
        for caller in (ann, bob):
            try:
                outcomes.append(caller.receive() or "added")
            except Refused as error:
                outcomes.append(error.kind)
        assert sorted(outcomes) == ["MetaException", "added"]
        assert len(get(ann, "primary_keys")) == 1


def test_a_call_adds_all_or_nothing(ann: Caller) -> None:
    with refused("NoSuchObjectException"):
        add(ann, [*unique("a"), *unique("nix")])
    assert get(ann, "unique_constraints") == []


@pytest.mark.parametrize(
    "kind",
    ["primary_keys", "unique_constraints", "not_null_constraints", "default_constraints", "check_constraints"],
)
def test_what_does_not_exist_has_no_constraints(ann: Caller, kind: str) -> None:
    assert get(ann, kind, "default.nix") == get(ann, kind, "nix.t") == get(ann, kind) == []


def test_drop(ann: Caller) -> None:
    add(ann, primary("a", name="pk"))
    drop(ann, "PK")
    assert get(ann, "primary_keys") == []
    for of in ("default.t", "default.nix", "nix.t"):
        with refused("NoSuchObjectException"):
            drop(ann, "pk", of)
    add(ann, primary("a", name="pk"))


# --- with their table ---


def create_with(ann: Caller, struct: Any, **lists: list[Any]) -> None:
    ann.call("create_table_req", ttypes.CreateTableRequest(table=struct, **lists))


def test_a_table_is_created_with_all_kinds(ann: Caller) -> None:
    new = "default.new"
    create_with(
        ann,
        table("new", sd=storage(*COLUMNS)),
        primaryKeys=primary("a", of=new, name="pk"),
        foreignKeys=foreign("c>a", of=new, to=new, name="fk"),
        uniqueConstraints=unique("b", of=new, name="uk"),
        notNullConstraints=[single("nn", of=new, name="nn")],
        defaultConstraints=[single("dc", of=new, name="dc", default_value="1")],
        checkConstraints=[single("cc", of=new, name="cc", check_expression="a > 0")],
    )
    found = every(ann, new)
    names = (
        found.primaryKeys[0].pk_name,
        found.foreignKeys[0].fk_name,
        found.uniqueConstraints[0].uk_name,
        found.notNullConstraints[0].nn_name,
        found.defaultConstraints[0].dc_name,
        found.checkConstraints[0].dc_name,
    )
    assert names == ("pk", "fk", "uk", "nn", "dc", "cc")


def test_the_older_form_creates_them_too(ann: Caller) -> None:
    new = table("new", sd=storage(*COLUMNS))
    ann.call("create_table_with_constraints", new, primary("a", of="default.new"), [], [], [], [], [])
    assert get(ann, "primary_keys", "default.new")[0].column_name == "a"


def test_a_constraint_that_is_refused_leaves_no_table(ann: Caller) -> None:
    with refused("NoSuchObjectException", "column nix"):
        create_with(ann, table("new"), primaryKeys=primary("nix", of="default.new"))
    assert "new" not in ann.call("get_all_tables", "default")
    create_with(ann, table("new"), primaryKeys=primary("a", of="default.new"))


def test_a_rename_carries_them(ann: Caller) -> None:
    add(ann, primary("a", of="d.parent"))
    add(ann, foreign("c>a"))
    ann.call("alter_table", "default", "t", table("u", "d", sd=storage(*COLUMNS), keys=(column("p"),)))
    ann.call("alter_table", "d", "parent", table("mother", "d", sd=storage(*COLUMNS)))
    (one,) = references(ann, "d.mother", "d.u")
    assert (one.fkcolumn_name, one.pktable_name) == ("c", "mother")
    assert references(ann, child="default.t") == references(ann, parent="d.parent") == []


def test_a_drop_takes_them_along_and_those_that_refer_to_it(ann: Caller) -> None:
    add(ann, [*primary("a", of="d.parent")])
    add(ann, foreign("c>a"))
    ann.call("drop_table", "d", "parent", True)
    assert references(ann, child="default.t") == []
    ann.call("create_table", table("parent", "d"))
    assert get(ann, "primary_keys", "d.parent") == []


def test_constraints_follow_their_columns(ann: Caller) -> None:
    ann.call("create_table", table("far", sd=storage(*COLUMNS)))
    add(ann, [*unique("a", "b", name="ab"), *unique("c", name="c")])
    add(ann, [single("nn", "b", "nn_b")])
    add(ann, [*foreign("a>c", of="default.far", to="default.t", name="to_c")])
    renamed = storage(column("a"), column("B2", "string"), column("c"), column("new"))
    ann.call("alter_table", "default", "t", table("t", sd=renamed, keys=(column("p"),)))
    found = every(ann)
    assert [one.column_name for one in found.uniqueConstraints if one.uk_name == "ab"] == ["a", "b2"]
    assert found.notNullConstraints[0].column_name == "b2"
    assert references(ann, parent="default.t")[0].pkcolumn_name == "c"
    shorter = storage(column("a"), column("b2", "string"))
    ann.call("alter_table", "default", "t", table("t", sd=shorter, keys=(column("p"),)))
    assert {one.uk_name for one in every(ann).uniqueConstraints} == {"ab"}
    assert references(ann, child="default.far") == []
