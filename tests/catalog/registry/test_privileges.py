"""Roles and privileges, over the wire: stored and answered, not enforced."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.store.database import Database
from tests.caller import Caller, Refused, refused
from tests.catalog.conftest import column, partition, storage, table

USER, ROLE, GROUP = 1, 2, 3
GRANT, REVOKE = ttypes.GrantRevokeType.GRANT, ttypes.GrantRevokeType.REVOKE
KINDS = ttypes.HiveObjectType


@pytest.fixture
def ann(metastore: Callable[..., str]) -> Iterator[Caller]:
    with Caller(metastore()) as caller:
        caller.call("create_database", ttypes.Database(name="d"))
        caller.call("create_table", table("t", "d", sd=storage(column("a"), column("b")), keys=(column("k"),)))
        caller.call("add_partition", partition(["1"], "t", "d"))
        yield caller


def ref(kind: str, **fields: Any) -> Any:
    named = {
        "global": {},
        "database": {"dbName": "d"},
        "table": {"dbName": "D", "objectName": "T"},
        "partition": {"dbName": "d", "objectName": "t", "partValues": ["1"]},
        "column": {"dbName": "d", "objectName": "t", "columnName": "A"},
        "partition column": {"dbName": "d", "objectName": "t", "partValues": ["1"], "columnName": "a"},
    }[kind]
    return ttypes.HiveObjectRef(objectType=getattr(KINDS, kind.split()[-1].upper()), **(named | fields))  # type: ignore[operator]


def privilege(
    target: Any, what: str = "SELECT", who: str = "bob", kind: int = USER, authorizer: str | None = "SQL", **more: Any
) -> Any:
    info = ttypes.PrivilegeGrantInfo(privilege=what, **({"grantor": "ann", "grantorType": USER} | more))
    return ttypes.HiveObjectPrivilege(
        hiveObject=target, principalName=who, principalType=kind, grantInfo=info, authorizer=authorizer
    )


def bag(*privileges: Any) -> Any:
    return ttypes.PrivilegeBag(privileges=list(privileges))


def listed(ann: Caller, target: Any, who: str | None = None, kind: int | None = None) -> list[tuple[str, str]]:
    found = ann.call("list_privileges", who, kind, target)
    return [(one.principalName, one.grantInfo.privilege) for one in found]


def grant_role(ann: Caller, role: str, who: str, kind: int = USER, option: bool = False) -> bool:
    return bool(ann.call("grant_role", role, who, kind, "ann", USER, option))


# --- roles ---


def test_admin_and_public_are_there(ann: Caller) -> None:
    assert ann.call("get_role_names") == ["admin", "public"]
    assert listed(ann, ref("global")) == [("admin", "All")]
    for name in ("admin", "public"):
        with refused("MetaException"):
            ann.call("create_role", ttypes.Role(roleName=name))
        with refused("MetaException", "cannot be dropped"):
            ann.call("drop_role", name)


def test_roles_come_and_go(ann: Caller) -> None:
    assert ann.call("create_role", ttypes.Role(roleName="Dev", ownerName="ann")) is True
    assert "Dev" in ann.call("get_role_names")
    with refused("MetaException", "exists already"):
        ann.call("create_role", ttypes.Role(roleName="Dev"))
    assert ann.call("drop_role", "Dev") is True
    assert "Dev" not in ann.call("get_role_names")
    assert ann.call("drop_role", "Dev") is True


def test_members_of_a_role(ann: Caller) -> None:
    ann.call("create_role", ttypes.Role(roleName="dev", ownerName="eve"))
    grant_role(ann, "dev", "bob", option=True)
    request = ttypes.GrantRevokeRoleRequest(
        requestType=GRANT, roleName="dev", principalName="staff", principalType=GROUP, grantor="ann", grantorType=ROLE
    )
    assert ann.call("grant_revoke_role", request).success is True
    members = ann.call("get_principals_in_role", ttypes.GetPrincipalsInRoleRequest(roleName="dev")).principalGrants
    assert [
        (one.principalName, one.principalType, one.grantOption, one.grantorName, one.grantorPrincipalType)
        for one in members
    ] == [("bob", USER, True, "ann", USER), ("staff", GROUP, False, "ann", ROLE)]
    assert members[0].grantTime > 1_700_000_000
    roles = ann.call("list_roles", "bob", USER)
    assert [(one.roleName, one.ownerName) for one in roles] == [("dev", "eve"), ("public", "public")]
    assert [one.roleName for one in ann.call("list_roles", "staff", GROUP)] == ["dev"]
    wanted = ttypes.GetRoleGrantsForPrincipalRequest(principal_name="bob", principal_type=USER)
    grants = ann.call("get_role_grants_for_principal", wanted).principalGrants
    assert [(one.roleName, one.principalName, one.grantOption) for one in grants] == [
        ("dev", "bob", True),
        ("public", "bob", False),
    ]


@pytest.mark.parametrize(
    ("role", "who", "kind", "words"),
    [
        ("nix", "bob", USER, "nix does not exist"),
        ("public", "bob", USER, "public"),
        ("dev", "nix", ROLE, "nix does not exist"),
        ("dev", "bob", USER, "already has"),
        ("dev", "bob", 9, "neither a user"),
        ("dev", "dev", ROLE, "no cycles"),
        ("low", "dev", ROLE, "no cycles"),
    ],
)
def test_what_cannot_be_granted(ann: Caller, role: str, who: str, kind: int, words: str) -> None:
    for name in ("dev", "middle", "low"):
        ann.call("create_role", ttypes.Role(roleName=name))
    grant_role(ann, "dev", "bob")
    grant_role(ann, "dev", "middle", ROLE)
    grant_role(ann, "middle", "low", ROLE)
    with refused("MetaException", words):
        grant_role(ann, role, who, kind)


def test_users_can_be_admins_from_the_start(metastore: Callable[..., str]) -> None:
    for _ in range(2):
        with Caller(metastore(**{"hive.users.in.admin.role": "bob, eve"})) as ann:
            wanted = ttypes.GetPrincipalsInRoleRequest(roleName="admin")
            found = ann.call("get_principals_in_role", wanted).principalGrants
            assert [(one.principalName, one.grantOption) for one in found] == [("bob", True), ("eve", True)]


def test_two_grants_at_once_close_no_circle(metastore: Callable[..., str]) -> None:
    uri = metastore()
    with Caller(uri) as ann, Caller(uri) as bob:
        for number in range(5):
            a, b = f"a{number}", f"b{number}"
            for name in (a, b):
                ann.call("create_role", ttypes.Role(roleName=name))
            ann.send("grant_role", a, b, ROLE, "ann", USER, False)
            bob.send("grant_role", b, a, ROLE, "bob", USER, False)
            outcomes = []
            for caller in (ann, bob):
                try:
                    outcomes.append(str(caller.receive()))
                except Refused as error:
                    outcomes.append(error.message[-17:])
            assert sorted(outcomes) == ["True", "no cycles allowed"]


def test_revoking_a_role(ann: Caller) -> None:
    ann.call("create_role", ttypes.Role(roleName="dev"))
    grant_role(ann, "dev", "bob", option=True)
    request = ttypes.GrantRevokeRoleRequest(
        requestType=REVOKE, roleName="dev", principalName="bob", principalType=USER, grantOption=True
    )
    ann.call("grant_revoke_role", request)
    members = ann.call("get_principals_in_role", ttypes.GetPrincipalsInRoleRequest(roleName="dev")).principalGrants
    assert [one.grantOption for one in members] == [False]
    with refused("MetaException", "grant option"):
        ann.call("grant_revoke_role", request)
    assert ann.call("revoke_role", "dev", "bob", USER) is True
    for role in ("dev", "nix", "public"):
        with refused("MetaException"):
            ann.call("revoke_role", role, "bob", USER)


# --- privileges ---


@pytest.mark.parametrize("kind", ["global", "database", "table", "partition", "column", "partition column"])
def test_a_privilege_on_each_kind_of_object(ann: Caller, kind: str) -> None:
    target = ref(kind)
    assert ann.call("grant_privileges", bag(privilege(target, "SELECT, INSERT", grantOption=True))) is True
    found = ann.call("list_privileges", "bob", USER, target)
    assert [one.grantInfo.privilege for one in found] == ["SELECT", "INSERT"]
    one = found[0]
    wanted = ref(kind)
    lowered = (wanted.dbName and "d", wanted.objectName and "t", wanted.partValues, wanted.columnName and "a")
    its = one.hiveObject
    assert (its.objectType, its.dbName, its.objectName, its.partValues, its.columnName) == (wanted.objectType, *lowered)
    assert (one.principalType, one.authorizer, one.grantInfo.grantor) == (USER, "SQL", "ann")
    assert (one.grantInfo.grantorType, one.grantInfo.grantOption) == (USER, True)
    assert one.grantInfo.createTime > 1_700_000_000
    with refused("MetaException", "already granted"):
        ann.call("grant_privileges", bag(privilege(target, "INSERT")))
    assert ann.call("revoke_privileges", bag(privilege(target, "SELECT,INSERT"))) is True
    assert listed(ann, target, "bob", USER) == []
    with refused("MetaException", "was not granted"):
        ann.call("revoke_privileges", bag(privilege(target, "INSERT")))


def test_objects_of_one_kind_are_not_those_of_another(ann: Caller) -> None:
    kinds = ["database", "table", "partition", "column", "partition column"]
    ann.call("grant_privileges", bag(*(privilege(ref(kind), kind) for kind in kinds)))
    for kind in kinds:
        assert listed(ann, ref(kind)) == [("bob", kind)]
    everything = ttypes.HiveObjectRef()
    assert sorted(what for _, what in listed(ann, everything, "bob", USER)) == sorted(kinds)
    all_tables = ttypes.HiveObjectRef(objectType=KINDS.TABLE)
    assert listed(ann, all_tables, "bob", USER) == [("bob", "table")]
    assert listed(ann, all_tables, "eve", USER) == listed(ann, ref("table", objectName="nix")) == []


def test_objects_of_another_catalog(ann: Caller, tmp_path: Path) -> None:
    catalog = ttypes.Catalog(name="other", locationUri=str(tmp_path / "other"))
    ann.call("create_catalog", ttypes.CreateCatalogRequest(catalog=catalog))
    ann.call("create_database", ttypes.Database(name="d", catalogName="other"))
    ann.call("create_table", table("t", "d", catName="other"))
    for kind in ("database", "table"):
        ann.call("grant_privileges", bag(privilege(ref(kind, catName="other"), kind)))
        assert listed(ann, ref(kind)) == []
        (one,) = ann.call("list_privileges", "bob", USER, ref(kind, catName="other"))
        assert (one.hiveObject.catName, one.hiveObject.dbName, one.grantInfo.privilege) == ("other", "d", kind)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (privilege(ref("database", dbName="nix")), "nix"),
        (privilege(ref("table", objectName="nix")), "nix"),
        (privilege(ref("partition", partValues=["9"])), "'9'"),
        (privilege(ref("column", columnName="nix")), "nix"),
        (privilege(ref("table"), who="nix", kind=ROLE), "nix"),
        (privilege(ref("table", objectName=None)), "table"),
        (privilege(ttypes.HiveObjectRef(objectType=6, objectName="c")), "type 6"),
        (privilege(ttypes.HiveObjectRef()), "missing"),
    ],
)
def test_what_privileges_need(ann: Caller, one: Any, words: str) -> None:
    with refused("MetaException", words):
        ann.call("grant_privileges", bag(privilege(ref("table")), one))
    assert listed(ann, ref("table")) == []


def test_only_the_grant_option_is_revoked(ann: Caller) -> None:
    def ask(kind: int, **more: Any) -> Any:
        request = ttypes.GrantRevokePrivilegeRequest(requestType=kind, privileges=bag(asked), **more)
        return ann.call("grant_revoke_privileges", request).success

    asked = privilege(ref("table"), grantOption=True)
    assert ask(GRANT) is True
    assert ask(REVOKE, revokeGrantOption=True) is True
    assert [one.grantInfo.grantOption for one in ann.call("list_privileges", "bob", USER, ref("table"))] == [False]
    with refused("MetaException", "grant option"):
        ask(REVOKE, revokeGrantOption=True)
    assert ask(REVOKE) is True
    assert listed(ann, ref("table")) == []


def test_what_a_user_may_do(ann: Caller) -> None:
    for role in ("dev", "all", "other"):
        ann.call("create_role", ttypes.Role(roleName=role))
    grant_role(ann, "dev", "staff", GROUP)
    grant_role(ann, "all", "dev", ROLE)
    target = ref("table")
    ann.call(
        "grant_privileges",
        bag(
            privilege(target, "A", "bob"),
            privilege(target, "B", "staff", GROUP),
            privilege(target, "C", "dev", ROLE),
            privilege(target, "D", "all", ROLE),
            privilege(target, "E", "other", ROLE),
            privilege(target, "F", "public", ROLE),
            privilege(target, "G", "eve"),
            privilege(ref("database"), "H", "bob"),
        ),
    )
    found = ann.call("get_privilege_set", target, "bob", ["staff"])

    def names(by_name: Any) -> dict[str, list[str]]:
        return {name: [info.privilege for info in infos] for name, infos in by_name.items()}

    assert names(found.userPrivileges) == {"bob": ["A"]}
    assert names(found.groupPrivileges) == {"staff": ["B"]}
    assert names(found.rolePrivileges) == {"dev": ["C"], "all": ["D"], "public": ["F"]}
    nobody = ann.call("get_privilege_set", ref("table", objectName="nix"), None, None)
    assert (nobody.userPrivileges, nobody.groupPrivileges, nobody.rolePrivileges) == ({}, {}, {})


def test_partitions_are_told_with_their_privileges_if_the_table_has_them(ann: Caller) -> None:
    """By the table's property PARTITION_LEVEL_PRIVILEGE, as in Hive; in every form that names a user."""
    ann.call("grant_privileges", bag(privilege(ref("partition")), privilege(ref("table"), "UPDATE")))
    ann.call("add_partition", partition(["2"], "t", "d"))

    def told() -> list[list[Any]]:
        request = ttypes.GetPartitionsPsWithAuthRequest(
            dbName="d", tblName="t", partVals=[""], maxParts=-1, userName="bob", groupNames=["staff"]
        )
        return [
            [ann.call("get_partition_with_auth", "d", "t", [value], "bob", ["staff"]) for value in "12"],
            ann.call("get_partitions_with_auth", "d", "t", -1, "bob", ["staff"]),
            ann.call("get_partitions_ps_with_auth", "d", "t", [""], -1, "bob", ["staff"]),
            ann.call("get_partitions_ps_with_auth_req", request).partitions,
        ]

    assert [[one.privileges for one in found] for found in told()] == [[None, None]] * 4
    with_property = ann.call("get_table", "d", "t")
    with_property.parameters["PARTITION_LEVEL_PRIVILEGE"] = "TRUE"
    ann.call("alter_table", "d", "t", with_property)
    for first, second in told():
        assert [info.privilege for info in first.privileges.userPrivileges["bob"]] == ["SELECT"]
        assert second.privileges.userPrivileges == {"bob": []}
        for one in (first, second):
            assert one.privileges.groupPrivileges == {"staff": []}
            assert one.privileges.rolePrivileges == {"public": []}


def test_refresh_replaces_those_of_an_authorizer(ann: Caller) -> None:
    target = ref("table")
    ann.call(
        "grant_privileges",
        bag(
            privilege(target, "OLD", authorizer="R"),
            privilege(target, "SAME", authorizer="R"),
            privilege(target, "MORE", authorizer="R"),
            privilege(target, "THEIRS", authorizer="SQL"),
            privilege(ref("column"), "COLUMN", authorizer="R"),
        ),
    )
    wanted = bag(
        privilege(target, "SAME,NEW", authorizer="R"), privilege(target, "MORE", authorizer="R", grantOption=True)
    )
    before = {one.grantInfo.privilege: one for one in ann.call("list_privileges", "bob", USER, target)}
    request = ttypes.GrantRevokePrivilegeRequest(requestType=GRANT, privileges=wanted)
    for _ in range(2):
        assert ann.call("refresh_privileges", target, "R", request).success is True
    after = {one.grantInfo.privilege: one for one in ann.call("list_privileges", "bob", USER, target)}
    assert sorted(after) == ["MORE", "NEW", "SAME", "THEIRS"]
    assert after["SAME"] == before["SAME"]
    assert after["MORE"].grantInfo.grantOption is True
    columns = ttypes.HiveObjectRef(objectType=KINDS.COLUMN, dbName="d", objectName="t")
    nothing = ttypes.GrantRevokePrivilegeRequest(requestType=GRANT, privileges=bag())
    ann.call("refresh_privileges", columns, "R", nothing)
    assert listed(ann, columns) == []
    with refused("MetaException", "refreshed"):
        ann.call("refresh_privileges", ref("partition"), "R", nothing)


# --- with their object ---


def test_a_table_is_created_with_the_privileges_of_its_owner(ann: Caller) -> None:
    info = ttypes.PrivilegeGrantInfo(privilege="SELECT", grantor="bob", grantorType=USER, grantOption=True)
    new = table("new", "d", privileges=ttypes.PrincipalPrivilegeSet(userPrivileges={"bob": [info]}))
    ann.call("create_table", new)
    (one,) = ann.call("list_privileges", "bob", USER, ref("table", objectName="new"))
    assert (one.grantInfo.privilege, one.grantInfo.grantOption, one.authorizer) == ("SELECT", True, "SQL")


def test_a_rename_carries_them(ann: Caller) -> None:
    for kind in ("table", "partition", "column"):
        ann.call("grant_privileges", bag(privilege(ref(kind), kind)))
    renamed = storage(column("a2"), column("b"))
    ann.call("alter_table", "d", "t", table("u", sd=renamed, keys=(column("k"),)))
    moved = {"dbName": "default", "objectName": "u"}
    assert listed(ann, ref("table", **moved)) == [("bob", "table")]
    assert listed(ann, ref("partition", **moved)) == [("bob", "partition")]
    assert listed(ann, ref("column", columnName="a2", **moved)) == [("bob", "column")]
    ann.call("rename_partition", "default", "u", ["1"], partition(["2"], "u"))
    assert listed(ann, ref("partition", partValues=["2"], **moved)) == [("bob", "partition")]


def test_a_drop_takes_them_along(ann: Caller, db: Database) -> None:
    def left() -> set[str]:
        return {what for _, what in listed(ann, ttypes.HiveObjectRef(), "bob", USER)}

    kinds = ("global", "database", "table", "partition", "column", "partition column")
    ann.call("grant_privileges", bag(*(privilege(ref(kind), kind) for kind in kinds)))
    ann.call("drop_partition", "d", "t", ["1"], True)
    assert left() == {"global", "database", "table", "column"}
    ann.call("alter_table", "d", "t", table("t", "d", sd=storage(column("b")), keys=(column("k"),)))
    assert left() == {"global", "database", "table"}
    ann.call("drop_table", "d", "t", True)
    assert left() == {"global", "database"}
    ann.call("drop_database", "d", True, True)
    assert left() == {"global"}
    with db.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM privilege WHERE principal = 'bob'").scalar() == 1


def test_a_dropped_role_has_nothing_left(ann: Caller) -> None:
    for role in ("dev", "low"):
        ann.call("create_role", ttypes.Role(roleName=role))
    grant_role(ann, "dev", "bob")
    grant_role(ann, "low", "dev", ROLE)
    ann.call("grant_privileges", bag(privilege(ref("table"), who="dev", kind=ROLE)))
    ann.call("drop_role", "dev")
    ann.call("create_role", ttypes.Role(roleName="dev"))
    assert listed(ann, ref("table")) == []
    assert [one.roleName for one in ann.call("list_roles", "bob", USER)] == ["public"]
    assert ann.call("list_roles", "dev", ROLE) == []
