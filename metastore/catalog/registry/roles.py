"""Roles and who has them: stored and answered here; `metastore.authorization` enforces what they bring.

`admin` and `public` are there from the start; every user has `public` without being granted it. Names are taken as
they come: clients that fold them do it themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, literal, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import MetaError, NoSuchObjectError
from metastore.catalog.models import USER
from metastore.catalog.registry.schema import PRIVILEGE, ROLE, ROLE_GRANT
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

ADMIN, PUBLIC = "admin", "public"

IS_ROLE, IS_GROUP = 2, 3  # PrincipalType


@dataclass(frozen=True, slots=True)
class Principal:
    """A user, role or group; `type` as on the wire (`models.USER`, `IS_ROLE`, `IS_GROUP`)."""

    name: str
    type: int = USER


@dataclass(frozen=True, slots=True)
class Role:
    """A role."""

    name: str
    owner: str | None
    created_s: int


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """That a principal has a role, by whom, since when, and whether it may grant it on."""

    role: str
    principal: Principal
    grantor: str | None
    grantor_type: int | None
    grant_option: bool
    granted_s: int = 0


class Roles:
    """All roles and their members."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def ensure_admins(self, users: str) -> None:
        """Give the role `admin`, and the right to grant it on, to users, with commas between; who has it keeps it."""
        names = {user.strip() for user in users.split(",")} - {""}
        if not names:
            return
        rows = [
            {
                "principal": name,
                "principal_type": USER,
                "role": ADMIN,
                "grantor": ADMIN,
                "grantor_type": IS_ROLE,
                "grant_option": True,
            }
            for name in sorted(names)
        ]
        statement = insert(ROLE_GRANT).values(rows).on_conflict_do_nothing()
        in_transaction(self._db, lambda connection: connection.execute(statement))

    def names(self) -> list[str]:
        """The names of all roles."""
        with self._db.engine.connect() as connection:
            return list(connection.execute(select(ROLE.c.name).order_by(ROLE.c.name)).scalars())

    def create(self, name: str, owner: str | None) -> None:
        """Make a role. Raises MetaError if it exists, as `admin` and `public` always do."""
        if not name:
            raise MetaError("a role needs a name")
        if name == PUBLIC:
            raise MetaError(f"the role {PUBLIC} is there implicitly: it cannot be created")

        def change(connection: Connection) -> None:
            statement = insert(ROLE).values(name=name, owner=owner).on_conflict_do_nothing().returning(ROLE.c.name)
            if connection.execute(statement).first() is None:
                raise MetaError(f"the role {name} exists already")

        in_transaction(self._db, change)

    def drop(self, name: str) -> None:
        """Remove a role with its memberships and its privileges; one that is gone already is no error.

        Raises MetaError for `admin` and `public`.
        """
        if name in (ADMIN, PUBLIC):
            raise MetaError(f"the roles {ADMIN} and {PUBLIC} cannot be dropped")

        def change(connection: Connection) -> None:
            connection.execute(delete(ROLE).where(ROLE.c.name == name))  # takes its members along
            for table in (ROLE_GRANT, PRIVILEGE):
                columns = table.c
                connection.execute(delete(table).where(columns.principal == name, columns.principal_type == IS_ROLE))

        in_transaction(self._db, change)

    def grant(self, grant: RoleGrant) -> None:
        """Give a role to a principal.

        Raises MetaError for an unknown role, one that the principal has already, `public`, and for a role that would
        come to have itself.
        """
        role, principal = grant.role, grant.principal
        if role == PUBLIC:
            raise MetaError(f"nobody can be added to {PUBLIC}: every user has it")

        def change(connection: Connection) -> None:
            # Two grants at once could close a circle that neither sees.
            connection.execute(text("LOCK TABLE role_grant IN SHARE ROW EXCLUSIVE MODE"))
            _check_exists(connection, role)
            if principal.type == IS_ROLE:
                check_principal(connection, principal)
                if principal.name in roles_above(connection, [Principal(role, IS_ROLE)]) | {role}:
                    raise MetaError(
                        f"the role {role} cannot be granted to {principal.name}, which it already belongs to:"
                        " no cycles allowed"
                    )
            statement = insert(ROLE_GRANT).values(
                principal=principal.name,
                principal_type=principal.type,
                role=role,
                grantor=grant.grantor,
                grantor_type=grant.grantor_type,
                grant_option=grant.grant_option,
            )
            created = connection.execute(statement.on_conflict_do_nothing().returning(ROLE_GRANT.c.role)).first()
            if created is None:
                raise MetaError(f"{principal.name} already has the role {role}")

        in_transaction(self._db, change)

    def revoke(self, role: str, principal: Principal, only_grant_option: bool = False) -> None:
        """Take a role from a principal, or just the right to grant it on.

        Raises MetaError for an unknown role, for what the principal does not have, and for `public`.
        """
        if role == PUBLIC:
            raise MetaError(f"the role {PUBLIC} cannot be revoked: every user has it")
        columns = ROLE_GRANT.c
        held = (columns.role == role, columns.principal == principal.name, columns.principal_type == principal.type)

        def change(connection: Connection) -> None:
            _check_exists(connection, role)
            if only_grant_option:
                statement: Any = update(ROLE_GRANT).where(*held, columns.grant_option).values(grant_option=False)
            else:
                statement = delete(ROLE_GRANT).where(*held)
            if connection.execute(statement).rowcount == 0:
                what = "the grant option of the role" if only_grant_option else "the role"
                raise MetaError(f"{principal.name} does not have {what} {role}")

        in_transaction(self._db, change)

    def of(self, principal: Principal) -> list[Role]:
        """The roles granted to a principal itself, and `public` to every user."""
        query = select(ROLE).join(ROLE_GRANT, ROLE_GRANT.c.role == ROLE.c.name).where(*_held_by(principal))
        with self._db.engine.connect() as connection:
            found = [Role(*row) for row in connection.execute(query.order_by(ROLE.c.name))]
        return [*found, Role(PUBLIC, PUBLIC, 0)] if principal.type == USER else found

    def grants_to(self, principal: Principal) -> list[RoleGrant]:
        """The grants behind `of`."""
        found = self._grants(*_held_by(principal))
        return [*found, RoleGrant(PUBLIC, principal, None, None, False)] if principal.type == USER else found

    def members(self, role: str) -> list[RoleGrant]:
        """The grants of a role; none of `public`, which nobody is granted."""
        return self._grants(ROLE_GRANT.c.role == role)

    def _grants(self, *conditions: Any) -> list[RoleGrant]:
        columns = ROLE_GRANT.c
        query = select(ROLE_GRANT).where(*conditions).order_by(columns.role, columns.principal_type, columns.principal)
        with self._db.engine.connect() as connection:
            return [_grant(row) for row in connection.execute(query)]


def roles_above(connection: Connection, principals: Collection[Principal]) -> set[str]:
    """Every role that one of the principals has, itself or through other roles."""
    columns = ROLE_GRANT.c
    pairs = [(principal.name, principal.type) for principal in principals]
    held = select(columns.role).where(tuple_(columns.principal, columns.principal_type).in_(pairs))
    above = held.cte("above", recursive=True)
    through = select(columns.role).join(above, columns.principal == above.c.role)
    above = above.union(through.where(columns.principal_type == literal(IS_ROLE)))
    return set(connection.execute(select(above.c.role)).scalars())


def check_principal(connection: Connection, principal: Principal) -> None:
    """Raise NoSuchObjectError for a role that does not exist; users and groups are not known here."""
    if principal.type == IS_ROLE:
        _check_exists(connection, principal.name)


def _check_exists(connection: Connection, role: str) -> None:
    query = select(ROLE.c.name).where(ROLE.c.name == role).with_for_update(key_share=True, read=True)
    if connection.execute(query).first() is None:
        raise NoSuchObjectError(f"the role {role} does not exist")


def _held_by(principal: Principal) -> Sequence[Any]:
    return (ROLE_GRANT.c.principal == principal.name, ROLE_GRANT.c.principal_type == principal.type)


def _grant(row: Row[Any]) -> RoleGrant:
    principal = Principal(row.principal, row.principal_type)
    return RoleGrant(row.role, principal, row.grantor, row.grantor_type, row.grant_option, row.granted_s)
