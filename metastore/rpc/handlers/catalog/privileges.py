"""RPCs of roles and privileges: old and ``_req`` forms are brought to one call. What they enforce is not asked here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.catalog.models import USER
from metastore.catalog.names import DEFAULT_CATALOG, database_name, split_key
from metastore.catalog.registry.privileges import (
    Grant,
    ObjectType,
    Privileges,
    PrivilegeSet,
    SecuredObject,
    global_catalog,
)
from metastore.catalog.registry.roles import IS_GROUP, IS_ROLE, Principal, Role, RoleGrant, Roles
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.plain import checked_text, to_plain

AUTHORIZER_OF_OWNERS = "SQL"
"""Whose privileges those are that come with a new table."""


def handlers(roles: Roles, privileges: Privileges) -> dict[str, Handler]:
    """RPC name to function."""
    return _roles(roles) | _privileges(privileges)


def _roles(roles: Roles) -> dict[str, Handler]:
    def create_role(call: Call, role: Any) -> bool:
        roles.create(_text(role.roleName, "the role"), role.ownerName)
        return True

    def drop_role(call: Call, name: str | None) -> bool:
        roles.drop(_text(name, "the role"))
        return True

    def get_role_names(call: Call) -> list[str]:
        return roles.names()

    def grant_role(
        call: Call,
        role: str | None,
        principal: str | None,
        principal_type: int | None,
        grantor: str | None,
        grantor_type: int | None,
        grant_option: bool | None,
    ) -> bool:
        member = _principal(principal, principal_type)
        roles.grant(RoleGrant(_text(role, "the role"), member, grantor, grantor_type or USER, bool(grant_option)))
        return True

    def revoke_role(call: Call, role: str | None, principal: str | None, principal_type: int | None) -> bool:
        roles.revoke(_text(role, "the role"), _principal(principal, principal_type))
        return True

    def grant_revoke_role(call: Call, request: Any) -> Any:
        role, member = _text(request.roleName, "the role"), _principal(request.principalName, request.principalType)
        if _is_grant(request):
            grantor_type = request.grantorType or USER
            roles.grant(RoleGrant(role, member, request.grantor, grantor_type, bool(request.grantOption)))
        else:
            roles.revoke(role, member, only_grant_option=bool(request.grantOption))
        return ttypes.GrantRevokeRoleResponse(success=True)

    def list_roles(call: Call, principal: str | None, principal_type: int | None) -> list[Any]:
        return [_role_struct(role) for role in roles.of(_principal(principal, principal_type))]

    def get_principals_in_role(call: Call, request: Any) -> Any:
        found = [_role_grant_struct(grant) for grant in roles.members(request.roleName)]
        return ttypes.GetPrincipalsInRoleResponse(principalGrants=found)

    def get_role_grants_for_principal(call: Call, request: Any) -> Any:
        found = roles.grants_to(_principal(request.principal_name, request.principal_type))
        structs = [_role_grant_struct(grant) for grant in found]
        return ttypes.GetRoleGrantsForPrincipalResponse(principalGrants=structs)

    served = (
        create_role,
        drop_role,
        get_role_names,
        grant_role,
        revoke_role,
        grant_revoke_role,
        list_roles,
        get_principals_in_role,
        get_role_grants_for_principal,
    )
    return {handler.__name__: handler for handler in served}


def _privileges(privileges: Privileges) -> dict[str, Handler]:
    def get_privilege_set(call: Call, target: Any, user: str | None, groups: Sequence[str] | None) -> Any:
        return privilege_set_struct(privileges.of_user(_secured_object(target), user, groups or []))

    def list_privileges(call: Call, principal: str | None, principal_type: int | None, target: Any) -> list[Any]:
        whose = None if principal is None else _principal(principal, principal_type)
        target = SecuredObject(None) if target is None else _searched_object(target)
        return [_grant_struct(grant) for grant in privileges.matching(whose, target)]

    def grant_privileges(call: Call, bag: Any) -> bool:
        privileges.grant(_grants_of(bag))
        return True

    def revoke_privileges(call: Call, bag: Any) -> bool:
        privileges.revoke(_grants_of(bag))
        return True

    def grant_revoke_privileges(call: Call, request: Any) -> Any:
        grants = _grants_of(request.privileges)
        if _is_grant(request):
            privileges.grant(grants)
        else:
            privileges.revoke(grants, only_grant_option=bool(request.revokeGrantOption))
        return ttypes.GrantRevokePrivilegeResponse(success=True)

    def refresh_privileges(call: Call, target: Any, authorizer: str | None, request: Any) -> Any:
        privileges.refresh(_searched_object(target), authorizer, _grants_of(request.privileges))
        return ttypes.GrantRevokePrivilegeResponse(success=True)

    served = (
        get_privilege_set,
        list_privileges,
        grant_privileges,
        revoke_privileges,
        grant_revoke_privileges,
        refresh_privileges,
    )
    return {handler.__name__: handler for handler in served}


def privilege_set_struct(found: PrivilegeSet) -> Any:
    """A PrincipalPrivilegeSet."""
    return ttypes.PrincipalPrivilegeSet(
        userPrivileges=_infos(found.of_user),
        groupPrivileges=_infos(found.of_groups),
        rolePrivileges=_infos(found.of_roles),
    )


def owner_grants(struct: Any) -> list[Grant]:
    """The privileges that a table is created with, as the PrincipalPrivilegeSet in its struct says."""
    if struct is None:
        return []
    target = SecuredObject(ObjectType.TABLE)
    sets = ((USER, struct.userPrivileges), (IS_GROUP, struct.groupPrivileges), (IS_ROLE, struct.rolePrivileges))
    return [
        _grant(target, Principal(checked_text(name, "a principal"), kind), info, AUTHORIZER_OF_OWNERS)
        for kind, by_name in sets
        for name, infos in (by_name or {}).items()
        for info in infos
    ]


def _is_grant(request: Any) -> bool:
    if request.requestType not in (ttypes.GrantRevokeType.GRANT, ttypes.GrantRevokeType.REVOKE):
        raise MetaError(f"the request type {request.requestType} is neither to grant nor to revoke")
    return bool(request.requestType == ttypes.GrantRevokeType.GRANT)


def _text(value: str | None, what: str) -> str:
    if not value:
        raise MetaError(f"the name of {what} is missing")
    return checked_text(value, what)


def _principal(name: str | None, kind: int | None) -> Principal:
    if kind not in (USER, IS_ROLE, IS_GROUP):
        raise MetaError(f"the principal {name} is neither a user, a role nor a group, but {kind}")
    return Principal(_text(name, "the principal"), kind)


def _secured_object(struct: Any) -> SecuredObject:
    """An object that a request names. Raises MetaError unless it says all that it takes."""
    found = None if struct is None else _searched_object(struct)
    if found is None or found.type is None:
        raise MetaError("the object of the privilege is missing")
    needed = {ObjectType.GLOBAL: (), ObjectType.DATABASE: ("database",), ObjectType.TABLE: ("database", "table")}
    for name in needed.get(
        found.type, ("database", "table", "column" if found.type == ObjectType.COLUMN else "partition")
    ):
        if not getattr(found, name):
            raise MetaError(f"the object of the privilege does not say its {name}")
    return found


def _searched_object(struct: Any) -> SecuredObject:
    """An object to search for, in which anything may be left open."""
    plain = to_plain(struct)
    kind = plain.get("objectType")
    if kind is not None and kind not in list(ObjectType):
        raise MetaError(f"privileges on objects of type {kind} are not kept: there are no such objects here")
    values = plain.get("partValues")
    return SecuredObject(
        None if kind is None else ObjectType(kind),
        database_name(plain["dbName"], plain.get("catName")) if plain.get("dbName") else None,
        plain.get("objectName") or None,
        tuple(values) if values else None,
        plain.get("columnName") or None,
        global_catalog(plain.get("catName")) if kind == ObjectType.GLOBAL else None,
    )


def _grants_of(bag: Any) -> list[Grant]:
    found = []
    for one in (bag.privileges if bag is not None else None) or []:
        if one.grantInfo is None or one.grantInfo.privilege is None:
            raise MetaError(f"the privilege for {one.principalName} is missing")
        principal = _principal(one.principalName, one.principalType)
        found.append(_grant(_secured_object(one.hiveObject), principal, one.grantInfo, one.authorizer))
    return found


def _grant(target: SecuredObject, principal: Principal, info: Any, authorizer: str | None) -> Grant:
    plain = to_plain(info)
    return Grant(
        target,
        principal,
        plain.get("privilege", ""),
        plain.get("grantor"),
        plain.get("grantorType") or USER,
        plain.get("grantOption", False),
        authorizer,
    )


def _infos(grants: Mapping[str, Sequence[Grant]]) -> dict[str, list[Any]]:
    return {name: [_info_struct(grant) for grant in granted] for name, granted in grants.items()}


def _info_struct(grant: Grant) -> Any:
    return ttypes.PrivilegeGrantInfo(
        privilege=grant.privilege,
        createTime=grant.granted_s,
        grantor=grant.grantor,
        grantorType=grant.grantor_type,
        grantOption=grant.grant_option,
    )


def _grant_struct(grant: Grant) -> Any:
    elsewhere = grant.object.catalog or DEFAULT_CATALOG, None
    catalog, database = split_key(grant.object.database) if grant.object.database else elsewhere
    return ttypes.HiveObjectPrivilege(
        hiveObject=ttypes.HiveObjectRef(
            objectType=grant.object.type,
            dbName=database,
            objectName=grant.object.table,
            partValues=None if grant.object.partition is None else list(grant.object.partition),
            columnName=grant.object.column,
            catName=catalog,
        ),
        principalName=grant.principal.name,
        principalType=grant.principal.type,
        grantInfo=_info_struct(grant),
        authorizer=grant.authorizer,
    )


def _role_struct(role: Role) -> Any:
    return ttypes.Role(roleName=role.name, createTime=role.created_s, ownerName=role.owner)


def _role_grant_struct(grant: RoleGrant) -> Any:
    return ttypes.RolePrincipalGrant(
        roleName=grant.role,
        principalName=grant.principal.name,
        principalType=grant.principal.type,
        grantOption=grant.grant_option,
        grantTime=grant.granted_s,
        grantorName=grant.grantor,
        grantorPrincipalType=grant.grantor_type,
    )
