"""RPCs of constraints. On the wire a constraint is a list of structs, one for each column; here it is one value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ConstraintKind, ttypes
from metastore.catalog.constraint import Constraint, Parent
from metastore.catalog.models import Table
from metastore.catalog.names import database_name, split_key
from metastore.catalog.registry.constraints import Constraints
from metastore.rpc.call import Call, Handler
from metastore.rpc.encoding.plain import to_plain


@dataclass(frozen=True, slots=True)
class _Form:
    """How a kind of constraint looks on the wire."""

    struct: Any
    many: str
    """The field of the answers that has a list of it; `noun` is in the names of the methods."""
    noun: str
    columns_field: str
    name: str
    expression: str | None = None


_FORMS = {
    ConstraintKind.PRIMARY_KEY: _Form(ttypes.SQLPrimaryKey, "primaryKeys", "primary_key", "primaryKeyCols", "pk_name"),
    ConstraintKind.FOREIGN_KEY: _Form(ttypes.SQLForeignKey, "foreignKeys", "foreign_key", "foreignKeyCols", "fk_name"),
    ConstraintKind.UNIQUE: _Form(
        ttypes.SQLUniqueConstraint, "uniqueConstraints", "unique_constraint", "uniqueConstraintCols", "uk_name"
    ),
    ConstraintKind.NOT_NULL: _Form(
        ttypes.SQLNotNullConstraint, "notNullConstraints", "not_null_constraint", "notNullConstraintCols", "nn_name"
    ),
    ConstraintKind.DEFAULT: _Form(
        ttypes.SQLDefaultConstraint,
        "defaultConstraints",
        "default_constraint",
        "defaultConstraintCols",
        "dc_name",
        "default_value",
    ),
    ConstraintKind.CHECK: _Form(
        ttypes.SQLCheckConstraint,
        "checkConstraints",
        "check_constraint",
        "checkConstraintCols",
        "dc_name",
        "check_expression",
    ),
}
_RESPONSES = {
    ConstraintKind.PRIMARY_KEY: ttypes.PrimaryKeysResponse,
    ConstraintKind.FOREIGN_KEY: ttypes.ForeignKeysResponse,
    ConstraintKind.UNIQUE: ttypes.UniqueConstraintsResponse,
    ConstraintKind.NOT_NULL: ttypes.NotNullConstraintsResponse,
    ConstraintKind.DEFAULT: ttypes.DefaultConstraintsResponse,
    ConstraintKind.CHECK: ttypes.CheckConstraintsResponse,
}
_COLUMNWISE = (ConstraintKind.NOT_NULL, ConstraintKind.DEFAULT, ConstraintKind.CHECK)
"""Of these each struct is a constraint of its own."""


def handlers(constraints: Constraints) -> dict[str, Handler]:
    """RPC name to function."""

    def adding(kind: ConstraintKind) -> Handler:
        def add(call: Call, request: Any) -> None:
            constraints.add(_constraints_of(kind, getattr(request, _FORMS[kind].columns_field)))

        return add

    def getting(kind: ConstraintKind) -> Handler:
        def get(call: Call, request: Any) -> Any:
            found = constraints.of_table(database_name(request.db_name, request.catName), request.tbl_name, [kind])
            return _RESPONSES[kind](**{_FORMS[kind].many: constraint_structs(found)})

        return get

    def get_foreign_keys(call: Call, request: Any) -> Any:
        def side(database: str | None, table: str | None) -> tuple[str | None, str | None]:
            return None if database is None else database_name(database, request.catName), table

        parent = side(request.parent_db_name, request.parent_tbl_name)
        child = side(request.foreign_db_name, request.foreign_tbl_name)
        if parent == child == (None, None):
            raise MetaError("name the table that has the foreign keys, the one they refer to, or both")
        return ttypes.ForeignKeysResponse(foreignKeys=constraint_structs(constraints.foreign_keys(parent, child)))

    def get_all_table_constraints(call: Call, request: Any) -> Any:
        found = constraints.of_table(database_name(request.dbName, request.catName), request.tblName)
        by_kind = {
            form.many: constraint_structs(one for one in found if one.kind == kind) for kind, form in _FORMS.items()
        }
        return ttypes.AllTableConstraintsResponse(allTableConstraints=ttypes.SQLAllTableConstraints(**by_kind))

    def drop_constraint(call: Call, request: Any) -> None:
        database = database_name(request.dbname, request.catName)
        constraints.drop(database, request.tablename, request.constraintname)

    found: dict[str, Handler] = {f"add_{form.noun}": adding(kind) for kind, form in _FORMS.items()}
    found |= {f"get_{form.noun}s": getting(kind) for kind, form in _FORMS.items()}
    return found | {
        "get_foreign_keys": get_foreign_keys,
        "get_all_table_constraints": get_all_table_constraints,
        "drop_constraint": drop_constraint,
    }


def constraints_of(table: Table, lists: Sequence[Sequence[Any] | None]) -> list[Constraint]:
    """The constraints that a new table is created with, from the lists of the six kinds in the order of the wire."""
    return [
        one
        for kind, structs in zip(ConstraintKind, lists, strict=True)
        for one in _constraints_of(kind, structs, table)
    ]


def _constraints_of(
    kind: ConstraintKind, structs: Sequence[Any] | None, table: Table | None = None
) -> list[Constraint]:
    """The constraints of a list; `table` is the one that they are for, if they need not name it."""
    groups: list[list[dict[str, Any]]] = []
    for struct in structs or []:
        plain = to_plain(struct)
        if groups and kind not in _COLUMNWISE and _goes_on(kind, groups[-1][-1], plain):
            groups[-1].append(plain)
        else:
            groups.append([plain])
    return [_constraint(kind, group, table) for group in groups]


def _goes_on(kind: ConstraintKind, before: dict[str, Any], plain: dict[str, Any]) -> bool:
    """Whether a struct is the next column of the constraint of the struct before it."""
    same = ("fktable_db", "fktable_name") if kind == ConstraintKind.FOREIGN_KEY else ("table_db", "table_name")
    names = (*same, _FORMS[kind].name)
    return plain.get("key_seq", 0) > 1 and all(before.get(name) == plain.get(name) for name in names)


def _constraint(kind: ConstraintKind, group: Sequence[dict[str, Any]], table: Table | None) -> Constraint:
    form, first = _FORMS[kind], group[0]
    prefix = "fk" if kind == ConstraintKind.FOREIGN_KEY else ""
    column = f"{prefix}column_name"
    ordered = sorted(group, key=lambda plain: plain.get("key_seq", 0))
    catalog = first.get("catName")
    columns = [_required(plain, column) for plain in ordered if kind != ConstraintKind.CHECK or plain.get(column)]
    return Constraint(
        kind,
        table.database if table else database_name(first.get(f"{prefix}table_db"), catalog),
        table.name if table else _required(first, f"{prefix}table_name"),
        columns,
        first.get(form.name),
        first.get("enable_cstr", False),
        first.get("validate_cstr", False),
        first.get("rely_cstr", False),
        first.get(form.expression) if form.expression else None,
        _parent(ordered, catalog) if kind == ConstraintKind.FOREIGN_KEY else None,
    )


def _parent(ordered: Sequence[dict[str, Any]], catalog: str | None) -> Parent:
    first = ordered[0]
    return Parent(
        database_name(first.get("pktable_db"), catalog),
        _required(first, "pktable_name"),
        [_required(plain, "pkcolumn_name") for plain in ordered],
        first.get("pk_name"),
        first.get("update_rule", 0),
        first.get("delete_rule", 0),
    )


def _required(plain: dict[str, Any], name: str) -> str:
    if not plain.get(name):
        raise MetaError(f"the constraint does not say its {name}")
    return str(plain[name])


def constraint_structs(constraints: Iterable[Constraint]) -> list[Any]:
    return [struct for constraint in constraints for struct in _columns_of(constraint)]


def _columns_of(constraint: Constraint) -> list[Any]:
    """One struct for each column; one for a check of the whole row."""
    form = _FORMS[constraint.kind]
    catalog, database = split_key(constraint.database)
    fields: dict[str, Any] = {
        "catName": catalog,
        form.name: constraint.name,
        "enable_cstr": constraint.enabled,
        "validate_cstr": constraint.validated,
        "rely_cstr": constraint.rely,
    }
    if form.expression:
        fields[form.expression] = constraint.expression
    if constraint.parent is not None:
        return _references(constraint, constraint.parent, fields)
    fields |= {"table_db": database, "table_name": constraint.table}
    keyed = constraint.kind in (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)
    return [
        form.struct(**fields, column_name=column, **({"key_seq": place} if keyed else {}))
        for place, column in enumerate(constraint.columns or [None], 1)
    ]


def _references(constraint: Constraint, parent: Parent, fields: dict[str, Any]) -> list[Any]:
    pairs = zip(constraint.columns, parent.columns, strict=True)
    return [
        ttypes.SQLForeignKey(
            **fields,
            pktable_db=split_key(parent.database)[1],
            pktable_name=parent.table,
            pkcolumn_name=referred,
            fktable_db=split_key(constraint.database)[1],
            fktable_name=constraint.table,
            fkcolumn_name=column,
            key_seq=place,
            update_rule=parent.update_rule,
            delete_rule=parent.delete_rule,
            pk_name=parent.key,
        )
        for place, (column, referred) in enumerate(pairs, 1)
    ]
