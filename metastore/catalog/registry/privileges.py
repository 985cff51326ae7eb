"""Privileges: stored and answered here; `metastore.authorization` enforces them if it is told to.

They belong to the object, not to its name: a rename carries them, a drop takes them along (the foreign keys of the
database see to both).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, or_, select, tuple_, update
from sqlalchemy import Table as SqlTable
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import InvalidObjectError, MetaError, NoSuchObjectError
from metastore.catalog.models import USER, Table
from metastore.catalog.names import DEFAULT_CATALOG, fold, partition_values, table_text
from metastore.catalog.registry.constraints import column_changes
from metastore.catalog.registry.roles import IS_GROUP, IS_ROLE, Principal, check_principal, roles_above
from metastore.catalog.registry.schema import PRIVILEGE
from metastore.catalog.schema import CATALOG, DATABASE, PARTITION, TBL
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database


class ObjectType(IntEnum):
    """What a privilege is for, as on the wire (HiveObjectType)."""

    GLOBAL = 1
    DATABASE = 2
    TABLE = 3
    PARTITION = 4
    COLUMN = 5


@dataclass(frozen=True, slots=True)
class SecuredObject:
    """An object that privileges are granted on. In a search what is None can be any; `type` None is every type.

    `partition` has the values of one; with `column` it is that column in this partition alone. With `catalog` a global
    object is that catalog alone.
    """

    type: ObjectType | None
    database: str | None = None
    table: str | None = None
    partition: tuple[str, ...] | None = None
    column: str | None = None
    catalog: str | None = None

    @property
    def text(self) -> str:
        """The object in the words of an error message."""
        if self.catalog is not None:
            return f"catalog {self.catalog}"
        if self.type in (None, ObjectType.GLOBAL):
            return "everything"
        if self.table is None:
            return f"database {self.database}"
        words = f"table {table_text(self.database or '', self.table)}"
        if self.partition:
            words += f" partition {list(self.partition)}"
        return f"{words} column {self.column}" if self.column else words


@dataclass(frozen=True, slots=True)
class Grant:
    """That a principal may do something with an object. `authorizer` is whose rules these are, such as ``SQL``."""

    object: SecuredObject
    principal: Principal
    privilege: str
    grantor: str | None = None
    grantor_type: int | None = None
    grant_option: bool = False
    authorizer: str | None = None
    granted_s: int = 0


@dataclass(frozen=True, slots=True)
class PrivilegeSet:
    """What a user may do with an object: itself, by its groups, and by the roles of either; by their names."""

    of_user: dict[str, list[Grant]]
    of_groups: dict[str, list[Grant]]
    of_roles: dict[str, list[Grant]]


def global_catalog(name: str | None) -> str | None:
    """The catalog that a global object is all of; None for everything.

    Hive's clients fill in the default one by themselves, so it is everything.
    """
    return None if name is None or fold(name) == DEFAULT_CATALOG else fold(name)


class Privileges:
    """All privileges."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def grant(self, grants: Sequence[Grant]) -> None:
        """Grant privileges, all or none; one `privilege` may name several with commas between.

        Raises NoSuchObjectError for an unknown object or role, InvalidObjectError for what the same grantor has granted
        already.
        """

        def change(connection: Connection) -> None:
            for one in _each(grants):
                _insert(connection, one, _place(connection, one.object))

        in_transaction(self._db, change)

    def revoke(self, grants: Sequence[Grant], only_grant_option: bool = False) -> None:
        """Take privileges away, whoever granted them, or just the right to grant them on; all or none.

        Raises NoSuchObjectError for an unknown object, InvalidObjectError for what is not granted, MetaError for a
        grant option that is not there.
        """

        def change(connection: Connection) -> None:
            for one in _each(grants):
                held = _held(one, _place(connection, one.object))
                if only_grant_option:
                    statement: Any = update(PRIVILEGE).where(held, PRIVILEGE.c.grant_option).values(grant_option=False)
                else:
                    statement = delete(PRIVILEGE).where(held)
                if connection.execute(statement).rowcount == 0:
                    _refuse_revoke(one, only_grant_option)

        in_transaction(self._db, change)

    def refresh(self, target: SecuredObject, authorizer: str | None, grants: Sequence[Grant]) -> None:
        """Let these be all the grants of an authorizer on a database, a table, or all columns of a table.

        Raises MetaError for another kind of object, NoSuchObjectError for an unknown object or role.
        """
        if target.type not in (ObjectType.DATABASE, ObjectType.TABLE, ObjectType.COLUMN):
            raise MetaError("privileges can be refreshed of a database, of a table and of its columns")

        def change(connection: Connection) -> None:
            wanted = {}
            for one in _each(grants):
                one = replace(one, authorizer=one.authorizer or authorizer)
                place = _place(connection, one.object)
                wanted[_identity(one, place)] = (one, place)
            whole = SecuredObject(
                ObjectType.DATABASE if target.type == ObjectType.DATABASE else ObjectType.TABLE,
                target.database,
                target.table,
            )
            of_target = {name: value for name, value in _place(connection, whole).items() if value is not None}
            of_target["object_type"] = target.type
            columns = PRIVILEGE.c
            query = select(PRIVILEGE).where(
                *(columns[name] == value for name, value in of_target.items()),
                columns.authorizer.is_not_distinct_from(authorizer),
            )
            for row in connection.execute(query.with_for_update()).all():
                if wanted.pop(_identity_of_row(row), None) is None:
                    connection.execute(delete(PRIVILEGE).where(columns.id == row.id))
            for one, place in wanted.values():
                _insert(connection, one, place)

        in_transaction(self._db, change)

    def matching(self, principal: Principal | None, target: SecuredObject) -> list[Grant]:
        """The grants to a principal (None: anyone) on exactly this object, or on all that `target` leaves open."""
        columns = PRIVILEGE.c
        conditions = [*_matches(target)]
        if principal is not None:
            conditions += [columns.principal == principal.name, columns.principal_type == principal.type]
        with self._db.engine.connect() as connection:
            return _select(connection, *conditions)

    def of_user(self, target: SecuredObject, user: str | None, groups: Collection[str]) -> PrivilegeSet:
        """What a user in these groups may do with exactly this object; an unknown object has no privileges."""
        with self._db.engine.connect() as connection:
            principals = _acting(connection, user, groups)
            found = _select(connection, _is_granted_to(principals), *_matches(target))
        return _set_of(principals, found)

    def on_partitions(
        self, table_id: int, user: str | None, groups: Collection[str]
    ) -> Callable[[Sequence[str]], PrivilegeSet]:
        """What a user in these groups may do with each partition of a table, by its values; asked for once."""
        columns = PRIVILEGE.c
        of_table = columns.object_type == ObjectType.PARTITION, columns.table_id == table_id
        with self._db.engine.connect() as connection:
            principals = _acting(connection, user, groups)
            found = _select(connection, _is_granted_to(principals), *of_table)
        by_values: dict[tuple[str, ...], list[Grant]] = {}
        for one in found:
            by_values.setdefault(one.object.partition or (), []).append(one)
        return lambda values: _set_of(principals, by_values.get(tuple(values), ()))


def adder(grants: Sequence[Grant]) -> Callable[[Connection, Table], None]:
    """What grants privileges on a table in the database transaction that creates it. Errors as `Privileges.grant`."""

    def add(connection: Connection, table: Table) -> None:
        for one in _each(grants):
            _insert(connection, one, {**_NOWHERE, "object_type": ObjectType.TABLE, "table_id": table.id})

    return add


def follow_columns(connection: Connection, old: Table, new: Table, *, by_name: bool = False) -> None:
    """Let the privileges on columns follow a change of their table's, as `constraints.follow_columns` does."""
    renamed, dropped = column_changes(old.columns, new.columns, by_name=by_name)
    columns = PRIVILEGE.c
    of_table = columns.table_id == new.id
    if dropped:
        connection.execute(delete(PRIVILEGE).where(of_table, columns.column_name.in_(dropped)))
    for before, after in renamed.items():
        connection.execute(update(PRIVILEGE).where(of_table, columns.column_name == before).values(column_name=after))


def pass_on(connection: Connection, old: Table, new: Table) -> None:
    """Have a table the privileges of the one whose place it takes, instead of its own.

    Those on partitions go with these, and those on columns with columns that the new one lacks.
    """
    columns = PRIVILEGE.c
    connection.execute(delete(PRIVILEGE).where(columns.table_id == new.id))
    of_old = columns.table_id == old.id, columns.partition_id.is_(None)
    connection.execute(update(PRIVILEGE).where(*of_old).values(table_id=new.id))
    there = {column.name for column in (*new.columns, *new.partition_keys)}
    gone = columns.column_name.is_not(None), columns.column_name.not_in(there)
    connection.execute(delete(PRIVILEGE).where(columns.table_id == new.id, *gone))


def _acting(connection: Connection, user: str | None, groups: Collection[str]) -> list[Principal]:
    """A user, its groups, and the roles of either."""
    own = [Principal(user)] if user is not None else []
    theirs = [Principal(group, IS_GROUP) for group in groups]
    roles = sorted(roles_above(connection, [*own, *theirs])) if own or theirs else []
    if own:
        roles = sorted({*roles, "public"})
    return [*own, *theirs, *(Principal(role, IS_ROLE) for role in roles)]


def _is_granted_to(principals: Sequence[Principal]) -> Any:
    pairs = [(principal.name, principal.type) for principal in principals]
    return tuple_(PRIVILEGE.c.principal, PRIVILEGE.c.principal_type).in_(pairs)


def _set_of(principals: Sequence[Principal], found: Sequence[Grant]) -> PrivilegeSet:
    """Grants by the names of those who may have some."""

    def by_name(kind: int) -> dict[str, list[Grant]]:
        return {
            principal.name: [one for one in found if one.principal == principal]
            for principal in principals
            if principal.type == kind
        }

    return PrivilegeSet(by_name(USER), by_name(IS_GROUP), by_name(IS_ROLE))


_NOWHERE = {"catalog": None, "database": None, "table_id": None, "partition_id": None, "column_name": None}


def _each(grants: Sequence[Grant]) -> Iterator[Grant]:
    """One grant for each privilege that is named."""
    for one in grants:
        for privilege in one.privilege.split(","):
            if privilege.strip():
                yield replace(one, privilege=privilege.strip())


def _place(connection: Connection, target: SecuredObject) -> dict[str, Any]:
    """The columns of a row that say which object it is for; the object stays until the end of the transaction."""
    place: dict[str, Any] = {**_NOWHERE, "object_type": target.type}
    if target.catalog is not None:
        place["catalog"] = _found(connection, CATALOG, CATALOG.c.name, target, CATALOG.c.name == target.catalog)
    if target.type == ObjectType.DATABASE:
        place["database"] = _found(connection, DATABASE, DATABASE.c.name, target, DATABASE.c.name == target.database)
    if target.type in (ObjectType.TABLE, ObjectType.PARTITION, ObjectType.COLUMN):
        named = and_(TBL.c.database == target.database, TBL.c.name == fold(target.table or ""))
        place["table_id"] = _found(connection, TBL, TBL.c.id, target, named)
    if target.type == ObjectType.PARTITION or (target.type == ObjectType.COLUMN and target.partition):
        columns = PARTITION.c
        named = and_(columns.table_id == place["table_id"], columns["values"] == _values(target))
        place["partition_id"] = _found(connection, PARTITION, columns.id, target, named)
    if target.type == ObjectType.COLUMN:
        place["column_name"] = fold(target.column or "")
        row = connection.execute(select(TBL.c.columns, TBL.c.partition_keys).where(TBL.c.id == place["table_id"])).one()
        if place["column_name"] not in {column["name"] for column in [*row.columns, *row.partition_keys]}:
            raise NoSuchObjectError(f"{target.text} does not exist")
    return place


def _found(connection: Connection, table: SqlTable, column: Any, target: SecuredObject, *conditions: Any) -> Any:
    query = select(column).select_from(table).where(*conditions)
    row = connection.execute(query.with_for_update(key_share=True, read=True)).first()
    if row is None:
        raise NoSuchObjectError(f"{target.text} does not exist")
    return row[0]


def _insert(connection: Connection, one: Grant, place: dict[str, Any]) -> None:
    check_principal(connection, one.principal)
    statement = insert(PRIVILEGE).values(
        **place,
        principal=one.principal.name,
        principal_type=one.principal.type,
        privilege=one.privilege,
        grantor=one.grantor,
        grantor_type=one.grantor_type,
        grant_option=one.grant_option,
        authorizer=one.authorizer,
    )
    if connection.execute(statement.on_conflict_do_nothing().returning(PRIVILEGE.c.id)).first() is None:
        raise InvalidObjectError(
            f"{one.privilege} on {one.object.text} is already granted to {one.principal.name} by {one.grantor}"
        )


def _held(one: Grant, place: dict[str, Any]) -> Any:
    columns = PRIVILEGE.c
    conditions = [columns[name].is_not_distinct_from(value) for name, value in place.items()]
    if one.authorizer is not None:
        conditions.append(columns.authorizer == one.authorizer)
    return and_(
        *conditions,
        columns.principal == one.principal.name,
        columns.principal_type == one.principal.type,
        columns.privilege == one.privilege,
    )


def _refuse_revoke(one: Grant, only_grant_option: bool) -> None:
    words = f"{one.privilege} on {one.object.text}"
    if only_grant_option:
        raise MetaError(f"{one.principal.name} does not have {words} with grant option")
    raise InvalidObjectError(f"{one.principal.name} was not granted {words}")


_IDENTITY = ("principal", "principal_type", "privilege", "grantor", "grantor_type", "grant_option")


def _identity(one: Grant, place: dict[str, Any]) -> tuple[Any, ...]:
    """What makes a grant the same as another one; the time does not."""
    own = (
        one.principal.name,
        one.principal.type,
        one.privilege,
        one.grantor,
        one.grantor_type,
        one.grant_option,
    )
    return (*(place[name] for name in ("object_type", *_NOWHERE)), *own)


def _identity_of_row(row: Row[Any]) -> tuple[Any, ...]:
    return tuple(row._mapping[name] for name in ("object_type", *_NOWHERE, *_IDENTITY))


def _matches(target: SecuredObject) -> list[Any]:
    columns = PRIVILEGE.c
    conditions: list[Any] = []
    if target.type is not None:
        conditions.append(columns.object_type == target.type)
    if target.type == ObjectType.GLOBAL and target.catalog is not None:
        conditions.append(columns.catalog == target.catalog)
    if target.database is not None and target.type != ObjectType.GLOBAL:
        conditions.append(or_(columns.database == target.database, TBL.c.database == target.database))
    if target.table is not None:
        conditions.append(TBL.c.name == fold(target.table))
    if target.partition:
        conditions.append(PARTITION.c["values"] == _values(target))
    elif target.type == ObjectType.COLUMN and target.column is not None:
        conditions.append(columns.partition_id.is_(None))
    if target.column is not None:
        conditions.append(columns.column_name == fold(target.column))
    return conditions


def _values(target: SecuredObject) -> list[str]:
    return partition_values(target.partition or ())


def _select(connection: Connection, *conditions: Any) -> list[Grant]:
    columns = PRIVILEGE.c
    objects = PRIVILEGE.outerjoin(TBL, TBL.c.id == columns.table_id).outerjoin(
        PARTITION, PARTITION.c.id == columns.partition_id
    )
    query = (
        select(
            *columns,
            TBL.c.database.label("table_database"),
            TBL.c.name.label("table_name"),
            PARTITION.c["values"].label("partition_values"),
        )
        .select_from(objects)
        .where(*conditions)
        .order_by(columns.object_type, columns.id)
    )
    return [_grant(row) for row in connection.execute(query).all()]


def _grant(row: Any) -> Grant:
    target = SecuredObject(
        ObjectType(row.object_type),
        row.table_database or row.database,
        row.table_name,
        None if row.partition_values is None else tuple(row.partition_values),
        row.column_name,
        row.catalog,
    )
    return Grant(
        target,
        Principal(row.principal, row.principal_type),
        row.privilege,
        row.grantor,
        row.grantor_type,
        row.grant_option,
        row.authorizer,
        row.granted_s,
    )
