"""GRANT, REVOKE, roles and what SHOW tells of them: the metastore keeps them, and enforces them if it is set so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import DATABASE_WORDS, Cursor
from hive_acid.wire import ttypes

_AUTHORIZER = "SQL"
_PRIVILEGES = frozenset(
    {"ALL", "ALTER", "CREATE", "DELETE", "DROP", "INDEX", "INSERT", "LOCK", "SELECT", "SHOW_DATABASE", "UPDATE"}
)
_ALL, _ADMIN = "ALL", "ADMIN"
_PRINCIPALS = ("USER", "ROLE", "GROUP")
_GRANTS = ("database", "table", "partition", "column", "principal_name", "principal_type", "privilege")
_OF_GRANTS = ("grant_option", "grant_time", "grantor")


class _Principal(NamedTuple):
    """Who gets a privilege or a role."""

    kind: int
    name: str


class _Object(NamedTuple):
    """What a privilege is on; empty where it is on everything."""

    kind: str
    database: str | None = None
    table: str | None = None

    def wire(self, column: str | None = None) -> Any:
        """As the metastore has it."""
        kind = "COLUMN" if column else self.kind
        return ttypes.HiveObjectRef(
            objectType=getattr(ttypes.HiveObjectType, kind),
            dbName=self.database,
            objectName=self.table,
            partValues=[],
            columnName=column,
        )


def grant(run: Run, cursor: Cursor) -> DataFrame:
    """``GRANT privilege [(columns)], … [ON object] TO principal, … [WITH GRANT OPTION]``, and of roles."""
    cursor.expect("GRANT")
    if not _sees_privilege(cursor):
        return _of_roles(run, cursor, grants=True)
    privileges = _privileges(cursor)
    on = _object(run, cursor) if cursor.accept("ON") else _Object("GLOBAL")
    cursor.expect("TO")
    who = _principals(cursor)
    option = cursor.accept("WITH", "GRANT", "OPTION")
    cursor.finish()
    _change(run, ttypes.GrantRevokeType.GRANT, _bag(run, privileges, on, who, option=option))
    return run.nothing()


def revoke(run: Run, cursor: Cursor) -> DataFrame:
    """``REVOKE [GRANT OPTION FOR] privilege [(columns)], … [ON object] FROM principal, …``, and of roles.

    ALL takes away each privilege that a principal has on the object.
    """
    cursor.expect("REVOKE")
    only_option = cursor.accept("GRANT", "OPTION", "FOR")
    if not only_option and not _sees_privilege(cursor):
        return _of_roles(run, cursor, grants=False)
    privileges = _privileges(cursor)
    on = _object(run, cursor) if cursor.accept("ON") else _Object("GLOBAL")
    cursor.expect("FROM")
    who = _principals(cursor)
    cursor.finish()
    bag = _bag(run, privileges, on, who, option=only_option)
    if privileges == [(_ALL, ())]:
        held = [one for principal in who for one in _held(run, principal, on, only_option)]
        bag.privileges = held or bag.privileges  # of nobody who has any the metastore says so
    _change(run, ttypes.GrantRevokeType.REVOKE, bag, revokeGrantOption=only_option)
    return run.nothing()


def _sees_privilege(cursor: Cursor) -> bool:
    """Whether privileges follow, and not the names of roles, of which one is called ``admin``."""
    return cursor.peek() in _PRIVILEGES or cursor.sees(_ADMIN, "ON") or cursor.sees(_ADMIN, ",")


def _held(run: Run, principal: _Principal, on: _Object, with_option: bool) -> list[Any]:
    """The privileges of a principal on an object itself, not on columns of it, each once."""
    wanted = on.wire()
    found = run.acid.connection.call("list_privileges", principal.name, principal.kind, wanted)
    return [
        *{
            one.grantInfo.privilege: one
            for one in found
            if one.hiveObject.objectType == wanted.objectType and (one.grantInfo.grantOption or not with_option)
        }.values()
    ]


def create_role(run: Run, cursor: Cursor) -> DataFrame:
    """``CREATE ROLE [IF NOT EXISTS] r``."""
    cursor.expect("CREATE", "ROLE")
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    name = cursor.identifier("a role's name")
    cursor.finish()
    call = run.acid.connection.call
    if not (if_not_exists and name in call("get_role_names")):
        owner = run.acid.connection.user
        call("create_role", ttypes.Role(roleName=name, createTime=int(time.time()), ownerName=owner))
    return run.nothing()


def drop_role(run: Run, cursor: Cursor) -> DataFrame:
    """``DROP ROLE [IF EXISTS] r``."""
    cursor.expect("DROP", "ROLE")
    cursor.accept("IF", "EXISTS")
    name = cursor.identifier("a role's name")
    cursor.finish()
    run.acid.connection.call("drop_role", name)
    return run.nothing()


def show_privileges(run: Run, cursor: Cursor) -> DataFrame | None:
    """``SHOW GRANT [principal] [ON object | ALL]``, ``SHOW ROLES``, ``SHOW CURRENT ROLES``, ``SHOW PRINCIPALS r`` and
    ``SHOW ROLE GRANT principal``, behind SHOW; None for what is none of them.
    """
    call = run.acid.connection.call
    if cursor.accept("ROLES"):
        cursor.finish()
        return run.rows(["role"], [[name] for name in sorted(call("get_role_names"))])
    if cursor.accept("CURRENT", "ROLES"):
        cursor.finish()
        return _roles_of(run, _Principal(ttypes.PrincipalType.USER, run.acid.connection.user))
    if cursor.accept("ROLE", "GRANT"):
        who = _principal(cursor)
        cursor.finish()
        return _roles_of(run, who)
    if cursor.accept("PRINCIPALS"):
        request = ttypes.GetPrincipalsInRoleRequest(roleName=cursor.identifier("a role's name"))
        cursor.finish()
        found = call("get_principals_in_role", request).principalGrants or ()
        columns = ["principal_name", "principal_type", "grant_option", "grantor"]
        kinds = ttypes.PrincipalType._VALUES_TO_NAMES
        shown = (
            (one.principalName, kinds[one.principalType], _word(one.grantOption), one.grantorName) for one in found
        )
        return run.rows(columns, sorted(shown))
    if not cursor.accept("GRANT"):
        return None
    asked = None if cursor.at_end or cursor.sees("ON") else _principal(cursor)
    on = ttypes.HiveObjectRef()
    if cursor.accept("ON") and not cursor.accept("ALL"):
        on = _object(run, cursor).wire()
    cursor.finish()
    return _shown(run, call("list_privileges", asked and asked.name, asked and asked.kind, on))


def _shown(run: Run, found: Sequence[Any]) -> DataFrame:
    kinds = ttypes.PrincipalType._VALUES_TO_NAMES
    rows = [
        (
            one.hiveObject.dbName or "",
            one.hiveObject.objectName or "",
            str(one.hiveObject.partValues or ""),
            one.hiveObject.columnName or "",
            one.principalName,
            kinds[one.principalType],
            one.grantInfo.privilege,
            _word(one.grantInfo.grantOption),
            str(one.grantInfo.createTime),
            one.grantInfo.grantor or "",
        )
        for one in found
    ]
    return run.rows([*_GRANTS, *_OF_GRANTS], sorted(rows))


def _word(value: object) -> str:
    return str(bool(value)).lower()


def _roles_of(run: Run, who: _Principal) -> DataFrame:
    found = run.acid.connection.call("list_roles", who.name, who.kind)
    return run.rows(["role"], [[name] for name in sorted(role.roleName for role in found)])


def _of_roles(run: Run, cursor: Cursor, *, grants: bool) -> DataFrame:
    """``[ADMIN OPTION FOR] [ROLE] r, … TO | FROM principal, … [WITH ADMIN OPTION]``."""
    only_option = not grants and cursor.accept("ADMIN", "OPTION", "FOR")
    cursor.accept("ROLE")
    roles = [cursor.identifier("a privilege or a role")]
    while cursor.accept(","):
        roles.append(cursor.identifier("a role"))
    if cursor.sees("ON"):
        known = ", ".join(sorted(_PRIVILEGES))
        raise cursor.error(f"{', '.join(roles)} is no privilege: there are {known}")
    cursor.expect("TO" if grants else "FROM")
    who = _principals(cursor)
    option = only_option or (grants and cursor.accept("WITH", "ADMIN", "OPTION"))
    cursor.finish()
    kind = ttypes.GrantRevokeType.GRANT if grants else ttypes.GrantRevokeType.REVOKE
    for role in roles:
        for one in who:
            request = ttypes.GrantRevokeRoleRequest(
                requestType=kind,
                roleName=role,
                principalName=one.name,
                principalType=one.kind,
                grantor=run.acid.connection.user,
                grantorType=ttypes.PrincipalType.USER,
                grantOption=option,
            )
            run.acid.connection.call("grant_revoke_role", request)
    return run.nothing()


def _privileges(cursor: Cursor) -> list[tuple[str, tuple[str, ...]]]:
    """Names of privileges, each with the columns that it is on, which are none for the whole object."""
    found = []
    while True:
        word = cursor.one_of(*sorted({*_PRIVILEGES, _ADMIN}))
        if word == _ALL:
            cursor.accept("PRIVILEGES")
        columns: list[str] = []
        if cursor.sees("("):
            columns = [item.identifier("a column").lower() for item in cursor.items("columns")]
        found.append((word, tuple(columns)))
        if not cursor.accept(","):
            return found


def _object(run: Run, cursor: Cursor) -> _Object:
    """``[TABLE] t`` or ``DATABASE d``. Raises NoSuchObjectError."""
    if cursor.peek() in DATABASE_WORDS:
        cursor.one_of(cursor.peek())
        return _Object("DATABASE", run.names.database(cursor.name("a database's name")))
    for word in ("URI", "SERVER", "CONNECTOR", "DATACONNECTOR"):
        if cursor.sees(word):
            raise cursor.error(f"a privilege is on a TABLE or a DATABASE here, and none on a {word}")
    cursor.accept("TABLE")
    table = run.names.known(cursor.name())
    if cursor.sees("PARTITION"):
        raise cursor.error("privileges are on whole tables here: leave PARTITION out")
    return _Object("TABLE", table.database, table.name)


def _principals(cursor: Cursor) -> list[_Principal]:
    found = [_principal(cursor)]
    while cursor.accept(","):
        found.append(_principal(cursor))
    return found


def _principal(cursor: Cursor) -> _Principal:
    """``USER | ROLE | GROUP name``, of a name alone a user."""
    kind = cursor.one_of(cursor.peek()) if cursor.peek() in _PRINCIPALS else "USER"
    name = cursor.string("a name") if cursor.sees_string() else cursor.identifier("a user, role or group")
    return _Principal(getattr(ttypes.PrincipalType, kind), name)


def _bag(
    run: Run,
    privileges: Sequence[tuple[str, tuple[str, ...]]],
    on: _Object,
    who: Sequence[_Principal],
    *,
    option: bool,
) -> Any:
    now, user = int(time.time()), run.acid.connection.user
    return ttypes.PrivilegeBag(
        privileges=[
            ttypes.HiveObjectPrivilege(
                hiveObject=on.wire(column),
                principalName=one.name,
                principalType=one.kind,
                grantInfo=ttypes.PrivilegeGrantInfo(
                    privilege=word,
                    createTime=now,
                    grantor=user,
                    grantorType=ttypes.PrincipalType.USER,
                    grantOption=option,
                ),
                authorizer=_AUTHORIZER,
            )
            for one in who
            for word, columns in privileges
            for column in columns or (None,)
        ]
    )


def _change(run: Run, kind: int, bag: Any, **more: bool) -> None:
    request = ttypes.GrantRevokePrivilegeRequest(requestType=kind, privileges=bag, **more)
    run.acid.connection.call("grant_revoke_privileges", request)
