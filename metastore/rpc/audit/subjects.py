"""What a call is about: names of objects and ids of transactions, by the names that the IDL has for them.

Nothing else is taken out of the arguments, so no value of a user's gets into the log: no property, location or token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from hive_acid.wire import service
from metastore.observe.log import shortened

T = TypeVar("T")

MOST_OBJECTS, MOST_NODES, MOST_LETTERS = 20, 400, 300
_CATALOG, _DATABASE, _NAME, _TRANSACTION = range(4)
_KINDS = {
    **dict.fromkeys(("catName", "catalogName"), _CATALOG),
    **dict.fromkeys(("dbName", "dbname", "db_name", "databaseName", "db"), _DATABASE),
    **dict.fromkeys(("tableName", "tablename", "tbl_name", "table_name", "tblName", "tblNames"), _NAME),
    **dict.fromkeys(("objectName", "functionName", "funcName", "fullTableNames", "fullTableName"), _NAME),
    "written": _NAME,
    **dict.fromkeys(("roleName", "role_name", "role", "rolename"), _NAME),
    **dict.fromkeys(("txnid", "txn_id", "txnId", "txnIds", "txn_ids", "targetTxnId"), _TRANSACTION),
}
"""Of fields and arguments, by their names."""
_NAMED = frozenset({"Database", "Catalog", "DropCatalogRequest", "AlterCatalogRequest", "GetCatalogRequest"}) | {
    f"{verb}DatabaseRequest" for verb in ("Create", "Drop", "Get")
}
"""Structs whose ``name`` is that of an object, as an argument of that name is."""
_PLAIN = frozenset({type(None), str, bytes, int, float, bool})


def subjects_of(method: str, arguments: Sequence[Any]) -> tuple[list[str], list[int]]:
    """The objects, ``database.table`` or what there is of it, and the transactions that a call names; some of many."""
    objects: dict[str, None] = {}
    transactions: dict[int, None] = {}
    _note(zip(_argument_names(method), arguments, strict=False), objects, transactions, True)
    waiting = deque(arguments)
    for _ in range(MOST_NODES):
        if not waiting or len(objects) > MOST_OBJECTS:
            break
        value = waiting.popleft()
        if hasattr(value, "thrift_spec"):
            fields = vars(value)
            if not _note(fields.items(), objects, transactions, type(value).__name__ in _NAMED):
                waiting.extend(one for one in fields.values() if one.__class__ not in _PLAIN)
        elif isinstance(value, dict):
            waiting.extend(islice(value.values(), MOST_NODES))
        elif isinstance(value, (list, tuple, set)):
            waiting.extend(islice(value, MOST_NODES))
    found = list(objects)
    return (found if len(found) <= MOST_OBJECTS else [*found[:MOST_OBJECTS], "…"]), list(transactions)[:MOST_OBJECTS]


@cache
def _argument_names(method: str) -> tuple[str, ...]:
    kind = getattr(service, f"{method}_args", None)
    return () if kind is None else tuple(spec[1] for _, spec in sorted(kind.thrift_spec.items()))


def _note(
    fields: Iterable[tuple[str, Any]], objects: dict[str, None], transactions: dict[int, None], is_named: bool
) -> bool:
    """What the fields of one struct name; whether that is an object, in which nothing else is looked for."""
    catalog = database = ""
    names: list[str] = []
    for field, value in fields:
        kind = _KINDS.get(field)
        if kind is None:
            if is_named and field == "name":
                names.extend(_of(str, value))
        elif kind == _NAME:
            names.extend(_of(str, value))
        elif kind == _TRANSACTION:
            transactions.update(dict.fromkeys(_of(int, value)))
        elif isinstance(value, str):
            if kind == _DATABASE:
                database = value
            else:
                catalog = value
    if not database and len(names) == 1 and names[0].startswith("@"):
        database = names.pop()
    if database.startswith("@"):  # of a catalog, as clients of Hive 3 and later write it
        catalog, _, database = database[1:].rstrip("!").partition("#")
    before = [part for part in ("" if catalog == "hive" else catalog, database) if part]
    for name in names or ([""] if database else []):
        objects[shortened(".".join((*before, name) if name else before), MOST_LETTERS)] = None
    return bool(names or database)


def _of(kind: type[T], value: Any) -> list[T]:
    """Values of a kind that a field holds, itself or in a list; the first of many."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple, set)):
        return [one for one in islice(value, MOST_OBJECTS + 1) if isinstance(one, kind)]
    return []
