"""Privileges and roles: stored and answered."""

from __future__ import annotations

from typing import Any

from tests.clients.walks.walk import Walk


def _bag(walk: Walk, privilege: str, table: str | None = "t") -> Any:
    api = walk.hive.api
    kind = api.HiveObjectType.TABLE if table else api.HiveObjectType.DATABASE
    what = walk.new("HiveObjectRef", objectType=kind, dbName=walk.db, objectName=table, partValues=[], columnName=None)
    grant = walk.new(
        "PrivilegeGrantInfo",
        privilege=privilege,
        createTime=0,
        grantor="admin",
        grantorType=api.PrincipalType.USER,
        grantOption=False,
    )
    one = walk.new(
        "HiveObjectPrivilege",
        hiveObject=what,
        principalName="bob",
        principalType=api.PrincipalType.USER,
        grantInfo=grant,
    )
    return walk.new("PrivilegeBag", privileges=[one])


def privileges(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    walk.create("t")
    bag = _bag(walk, "SELECT")
    if walk.hive.generation == 4:
        bag.getPrivileges()[0].setAuthorizer("SQL")
    what = bag.getPrivileges()[0].getHiveObject()
    assert client.grant_privileges(bag)
    (found,) = client.list_privileges("bob", api.PrincipalType.USER, what)
    assert found.getGrantInfo().getPrivilege().upper() == "SELECT"
    assert found.getHiveObject().getObjectName() == "t"
    of_bob = client.get_privilege_set(what, "bob", []).getUserPrivileges()
    assert [info.getPrivilege().upper() for info in of_bob["bob"]] == ["SELECT"]
    assert client.revoke_privileges(bag, False)
    assert client.list_privileges("bob", api.PrincipalType.USER, what).size() == 0
    if walk.catalog:
        assert client.refresh_privileges(what, "SQL", bag)
        assert client.list_privileges("bob", api.PrincipalType.USER, what).size() == 1


def roles(walk: Walk) -> None:
    client, api = walk.client, walk.hive.api
    name = f"readers_{walk.db}"
    assert client.create_role(walk.new("Role", roleName=name, createTime=0, ownerName="ann"))
    assert name in client.listRoleNames()
    user = api.PrincipalType.USER
    assert client.grant_role(name, "bob", user, "ann", user, True)
    assert name in [role.getRoleName() for role in client.list_roles("bob", user)]
    members = client.get_principals_in_role(walk.new("GetPrincipalsInRoleRequest", roleName=name))
    assert [grant.getPrincipalName() for grant in members.getPrincipalGrants()] == ["bob"]
    request = walk.new("GetRoleGrantsForPrincipalRequest", principal_name="bob", principal_type=user)
    grants = client.get_role_grants_for_principal(request).getPrincipalGrants()
    assert name in [grant.getRoleName() for grant in grants]
    assert client.revoke_role(name, "bob", user, True)
    assert client.revoke_role(name, "bob", user, False)
    assert name not in [role.getRoleName() for role in client.list_roles("bob", user)]
    assert client.drop_role(name)
    assert name not in client.listRoleNames()


STORIES = [privileges, roles]
