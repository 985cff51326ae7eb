"""Constraints of tables: primary, foreign and unique keys, not null, default and check. Stored and told, not enforced.

They belong to the table, not to its name: a rename carries them, a drop takes them along, those of other tables that
refer to it too (the foreign keys of the database see to both).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import Connection, Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import InvalidObjectError, MetaError, NoSuchObjectError
from hive_acid.wire import ConstraintKind
from metastore.catalog import changes
from metastore.catalog.constraint import Constraint, Parent
from metastore.catalog.models import Column, Table
from metastore.catalog.names import fold, table_text
from metastore.catalog.records import locked
from metastore.catalog.registry.schema import TABLE_CONSTRAINT
from metastore.catalog.schema import TBL
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

_PREFIXES = {
    ConstraintKind.PRIMARY_KEY: "pk",
    ConstraintKind.FOREIGN_KEY: "fk",
    ConstraintKind.UNIQUE: "uk",
    ConstraintKind.NOT_NULL: "nn",
    ConstraintKind.DEFAULT: "dc",
    ConstraintKind.CHECK: "cc",
}
_ALL_KINDS = tuple(ConstraintKind)
_PARENT = TBL.alias("parent")


class Constraints:
    """The constraints of all tables."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, constraints: Sequence[Constraint]) -> list[Constraint]:
        """Add constraints to tables that exist, all or none; returns them as they are stored.

        Raises NoSuchObjectError for an unknown table or column, InvalidObjectError for a name that is taken, MetaError
        for a second primary key and for a foreign key that refers to no key of its parent or has other types.
        """

        def change(connection: Connection) -> list[Constraint]:
            added = [
                _add(connection, locked(connection, constraint.database, constraint.table), constraint)
                for constraint in constraints
            ]
            changes.constraints_added(connection, added)
            return added

        return in_transaction(self._db, change)

    def drop(self, database: str, table: str, name: str) -> None:
        """Drop a constraint. Raises NoSuchObjectError, also when repeated (wire.md §3.5)."""

        def change(connection: Connection) -> None:
            owner = locked(connection, database, table)
            columns = TABLE_CONSTRAINT.c
            statement = delete(TABLE_CONSTRAINT).where(columns.table_id == owner.id, columns.name == fold(name))
            if connection.execute(statement).rowcount == 0:
                raise NoSuchObjectError(f"table {table_text(database, table)} has no constraint {name}")
            changes.constraint_dropped(connection, owner.database, owner.name, fold(name))

        in_transaction(self._db, change)

    def of_table(self, database: str, table: str, kinds: Collection[ConstraintKind] = _ALL_KINDS) -> list[Constraint]:
        """The constraints of a table, those of a kind together by name; none if it does not exist."""
        return self._select(TBL.c.database == database, TBL.c.name == fold(table), TABLE_CONSTRAINT.c.kind.in_(kinds))

    def foreign_keys(
        self, parent: tuple[str | None, str | None], child: tuple[str | None, str | None]
    ) -> list[Constraint]:
        """The foreign keys from `child` to `parent`, each a database and a table; what is None can be any."""
        sides = ((_PARENT, parent), (TBL, child))
        conditions = [side.c.database == database for side, (database, _) in sides if database is not None]
        conditions += [side.c.name == fold(table) for side, (_, table) in sides if table is not None]
        return self._select(TABLE_CONSTRAINT.c.kind == ConstraintKind.FOREIGN_KEY, *conditions)

    def _select(self, *conditions: Any) -> list[Constraint]:
        with self._db.engine.connect() as connection:
            return _select(connection, *conditions)


def adder(constraints: Sequence[Constraint]) -> Callable[[Connection, Table], None]:
    """What adds constraints to a table in the database transaction that creates it. Errors as `Constraints.add`."""
    # Keys first: foreign keys may refer to them.
    ordered = sorted(constraints, key=lambda constraint: constraint.kind == ConstraintKind.FOREIGN_KEY)

    def add(connection: Connection, table: Table) -> None:
        changes.constraints_added(connection, [_add(connection, table, constraint) for constraint in ordered])

    return add


def follow_columns(connection: Connection, old: Table, new: Table, *, by_name: bool = False) -> None:
    """Let constraints follow a change of their table's columns: with a renamed one they go on, with a dropped one they
    end, those of other tables that refer to it too. A column with another name in the place of one that is gone is a
    renamed one, unless columns are known `by_name`.
    """
    renamed, dropped = column_changes(_columns(old), _columns(new), by_name=by_name)
    for ids, columns in (("table_id", "columns"), ("parent_id", "parent_columns")):
        if not (renamed or dropped):
            break
        of_table, names = TABLE_CONSTRAINT.c[ids] == new.id, TABLE_CONSTRAINT.c[columns]
        if dropped:
            connection.execute(delete(TABLE_CONSTRAINT).where(of_table, names.overlap(sorted(dropped))))
        for row in connection.execute(select(TABLE_CONSTRAINT.c.id, names.label("names")).where(of_table)).all():
            followed = [renamed.get(name, name) for name in row.names]
            if followed != row.names:
                statement = update(TABLE_CONSTRAINT).where(TABLE_CONSTRAINT.c.id == row.id)
                connection.execute(statement.values({columns: followed}))


def column_changes(
    old: Sequence[Column], new: Sequence[Column], *, by_name: bool = False
) -> tuple[dict[str, str], set[str]]:
    """The columns that have another name now, old to new, and those that are gone; all of them if known `by_name`."""
    before, after = {column.name for column in old}, {column.name for column in new}
    renamed = {
        was.name: now.name
        for was, now in zip(old, new, strict=False)
        if was.name not in after and now.name not in before and not by_name
    }
    return renamed, before - after - renamed.keys()


def _add(connection: Connection, table: Table, constraint: Constraint) -> Constraint:
    types = {column.name: column.type.lower() for column in _columns(table)}
    columns = [fold(name) for name in constraint.columns]
    _check_columns(table, types, columns)
    if constraint.kind == ConstraintKind.PRIMARY_KEY and _of(connection, table.id, [ConstraintKind.PRIMARY_KEY]):
        raise MetaError(f"Primary key already exists for: {table_text(table.database, table.name)}")
    name = fold(constraint.name) if constraint.name else f"{_PREFIXES[constraint.kind]}_{secrets.token_hex(8)}"
    values: dict[str, Any] = {
        "table_id": table.id,
        "name": name,
        "kind": constraint.kind,
        "columns": columns,
        "enabled": constraint.enabled,
        "validated": constraint.validated,
        "rely": constraint.rely,
        "expression": constraint.expression,
    }
    if constraint.parent is not None:
        values |= _reference(connection, table, columns, constraint.parent)
    statement = insert(TABLE_CONSTRAINT).values(values).on_conflict_do_nothing().returning(TABLE_CONSTRAINT.c.id)
    created = connection.execute(statement).first()
    if created is None:
        raise InvalidObjectError(f"Constraint name already exists: {table_text(table.database, table.name)}.{name}")
    return _select(connection, TABLE_CONSTRAINT.c.id == created.id)[0]


def _reference(connection: Connection, child: Table, columns: Sequence[str], parent: Parent) -> dict[str, Any]:
    """What is stored of a foreign key's parent."""
    target = child
    if (parent.database, fold(parent.table)) != (child.database, child.name):
        target = locked(connection, parent.database, parent.table)
    referred = [fold(name) for name in parent.columns]
    parent_types = {column.name: column.type.lower() for column in _columns(target)}
    child_types = {column.name: column.type.lower() for column in _columns(child)}
    _check_columns(target, parent_types, referred)
    where = f"the foreign key of {child.full_name} to {target.full_name}"
    if target.id == child.id and referred == list(columns):
        raise MetaError(f"{where} refers to its own columns {', '.join(columns)}")
    for name, other in zip(columns, referred, strict=True):
        if child_types[name] != parent_types[other]:
            raise MetaError(
                f"{where} compares {name}, which is {child_types[name]}, with {other}, which is {parent_types[other]}"
            )
    keys = _of(connection, target.id, [ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE])
    key = next((key for key in keys if sorted(key.columns) == sorted(referred)), None)
    if key is None:
        raise MetaError(f"{where} refers to {', '.join(referred)}, which is neither a primary key nor unique there")
    return {
        "parent_id": target.id,
        "parent_columns": referred,
        "parent_key": fold(parent.key) if parent.key else key.name,
        "update_rule": parent.update_rule,
        "delete_rule": parent.delete_rule,
    }


def _check_columns(table: Table, types: dict[str, str], columns: Sequence[str]) -> None:
    for name in columns:
        if name not in types:
            raise NoSuchObjectError(f"table {table_text(table.database, table.name)} has no column {name}")


def _columns(table: Table) -> list[Column]:
    return [*table.columns, *table.partition_keys]


def stored_with(connection: Connection, table: Table) -> list[Constraint]:
    """The constraints of a table, as it is called in the caller's transaction."""
    return _select(connection, TABLE_CONSTRAINT.c.table_id == table.id)


def _of(connection: Connection, table_id: int, kinds: Collection[ConstraintKind]) -> Sequence[Row[Any]]:
    columns = TABLE_CONSTRAINT.c
    query = select(TABLE_CONSTRAINT).where(columns.table_id == table_id, columns.kind.in_(kinds))
    return connection.execute(query.order_by(columns.kind, columns.name)).all()


def _select(connection: Connection, *conditions: Any) -> list[Constraint]:
    columns = TABLE_CONSTRAINT.c
    tables = TABLE_CONSTRAINT.join(TBL, TBL.c.id == columns.table_id).outerjoin(
        _PARENT, _PARENT.c.id == columns.parent_id
    )
    query = (
        select(
            *columns,
            TBL.c.database,
            TBL.c.name.label("table"),
            _PARENT.c.database.label("parent_database"),
            _PARENT.c.name.label("parent_table"),
        )
        .select_from(tables)
        .where(*conditions)
        .order_by(TBL.c.database, TBL.c.name, columns.kind, columns.name)
    )
    return [_constraint(row) for row in connection.execute(query).all()]


def _constraint(row: Any) -> Constraint:
    parent = None
    if row.kind == ConstraintKind.FOREIGN_KEY:
        parent = Parent(
            row.parent_database,
            row.parent_table,
            list(row.parent_columns),
            row.parent_key,
            row.update_rule,
            row.delete_rule,
        )
    return Constraint(
        ConstraintKind(row.kind),
        row.database,
        row.table,
        list(row.columns),
        row.name,
        row.enabled,
        row.validated,
        row.rely,
        row.expression,
        parent,
    )
