"""What a request says of who calls: with rights enforced it is who has come in, whatever the client believes.

Whoever is no admin owns what it makes. Transactions and locks are of who has called for them, since they are its own
afterwards; whoever grants is the grantor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metastore.catalog.models import USER

Claim = Callable[[list[Any], str, bool], None]
"""Of the arguments, the user, and whether it is an admin."""
_IDENTIFYING = ("dbName", "tableName", "catName")


def _user(arguments: list[Any], user: str, is_admin: bool) -> None:
    arguments[0].user = user


def _run_as(arguments: list[Any], user: str, is_admin: bool) -> None:
    if not is_admin:
        arguments[0].runas = user


def _owner(field: str, kind: str | None, *within: str) -> Claim:
    def claim(arguments: list[Any], user: str, is_admin: bool) -> None:
        struct = arguments[0]
        for name in within:
            struct = getattr(struct, name)
        if struct is None:
            return
        if not is_admin:
            setattr(struct, field, user)
            if kind is not None:
                setattr(struct, kind, USER)
        granted = getattr(struct, "privileges", None)
        for by_name in () if granted is None else (
            granted.userPrivileges, granted.groupPrivileges, granted.rolePrivileges
        ):  # fmt: skip
            for infos in (by_name or {}).values():
                _grantors(infos, user)

    return claim


def _grantors(infos: Sequence[Any], user: str) -> None:
    for info in infos:
        if info is not None:
            info.grantor, info.grantorType = user, USER


def _grants(at: int, *within: str) -> Claim:
    def claim(arguments: list[Any], user: str, is_admin: bool) -> None:
        struct = arguments[at]
        for name in within:
            struct = None if struct is None else getattr(struct, name)
        _grantors([one.grantInfo for one in (struct.privileges if struct is not None else None) or ()], user)

    return claim


def _grantor_of_role(arguments: list[Any], user: str, is_admin: bool) -> None:
    arguments[3], arguments[4] = user, USER


def _grantor_in_request(arguments: list[Any], user: str, is_admin: bool) -> None:
    arguments[0].grantor, arguments[0].grantorType = user, USER


def _tables_say_their_names(arguments: list[Any], user: str, is_admin: bool) -> None:
    """Of a table of which parts are asked for the names are told, too: by them it is known whether it is seen."""
    spec = arguments[0].projectionSpec
    if spec is not None and spec.fieldList and not is_admin:
        spec.fieldList = list(dict.fromkeys([*spec.fieldList, *_IDENTIFYING]))


def _opener(arguments: list[Any], user: str, is_admin: bool) -> None:
    arguments[0].open.user = user


CLAIMS: dict[str, Claim] = {
    "open_txns": _user,
    "hive_acid_begin": _opener,
    "lock": _user,
    "compact": _run_as,
    "compact2": _run_as,
    "create_database": _owner("ownerName", "ownerType"),
    "create_database_req": _owner("ownerName", "ownerType"),
    "create_function": _owner("ownerName", "ownerType"),
    "create_table": _owner("owner", "ownerType"),
    "create_table_with_environment_context": _owner("owner", "ownerType"),
    "create_table_with_constraints": _owner("owner", "ownerType"),
    "create_table_req": _owner("owner", "ownerType", "table"),
    "grant_privileges": _grants(0),
    "grant_revoke_privileges": _grants(0, "privileges"),
    "refresh_privileges": _grants(2, "privileges"),
    "grant_role": _grantor_of_role,
    "grant_revoke_role": _grantor_in_request,
    "get_table_objects_by_name_req": _tables_say_their_names,
}
