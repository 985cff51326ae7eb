"""The words of `methods` as checks of a call's arguments.

Names are brought to the form in which the handler of the method looks them up, by the same functions: what is checked
is what the call is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hive_acid.wire import service, ttypes
from metastore.authorization.models import ADMIN, ANY, SERVER, VERBS, Thing, database_thing, table_thing
from metastore.catalog.models import USER
from metastore.catalog.names import database_key, database_name, decoded, fold
from metastore.catalog.registry.privileges import ObjectType, global_catalog
from metastore.catalog.removal.trash import UNDROP
from metastore.txn.names import split_table, stored_name

Getter = Callable[[Sequence[Any]], Any]
TXN, LOCK = "transaction", "lock"


class Asker(Protocol):
    """Somebody who calls; each method raises the error of a refusal unless it may be."""

    def require(self, verbs: frozenset[str], thing: Thing) -> None:
        """One of some rights."""

    def require_own(self, kind: str, ids: Sequence[int]) -> None:
        """Transactions or locks of its own."""

    def require_own_range(self, least: int, most: int) -> None:
        """No transaction of another one between these."""

    def require_numbered(self, verbs: frozenset[str], number: int) -> None:
        """One of some rights with the table of an id."""

    def require_compacted(self, ids: Sequence[int]) -> None:
        """ADMIN on the tables of compactions."""

    def require_grant(self, privileges: frozenset[str], thing: Thing) -> None:
        """The right to grant privileges."""

    def require_role(self, role: str) -> None:
        """The right to grant a role."""

    def require_self(self, name: str | None, kind: int, thing: Thing | None) -> None:
        """That a principal is the caller or one of its roles, or else ADMIN on a thing."""

    def require_owner(self, thing: Thing, owner: str | None) -> None:
        """ADMIN on a thing, if that is to have another owner."""


class Need(Protocol):
    """One condition."""

    def check(self, asker: Asker, arguments: Sequence[Any]) -> None:
        """Raises the error of a refusal."""


@dataclass(frozen=True, slots=True)
class Right:
    """One of `verbs` with each of the things that a request names."""

    verbs: frozenset[str]
    things: Callable[[Sequence[Any]], Iterator[Thing]]

    def check(self, asker: Asker, arguments: Sequence[Any]) -> None:
        """Raises the error of a refusal."""
        for thing in self.things(arguments):
            asker.require(self.verbs, thing)


@dataclass(frozen=True, slots=True)
class Own:
    """Transactions or locks of one's own."""

    kind: str
    ids: Getter

    def check(self, asker: Asker, arguments: Sequence[Any]) -> None:
        """Raises the error of a refusal."""
        ids = self.ids(arguments)
        asker.require_own(self.kind, ids if isinstance(ids, list) else [ids or 0])


@dataclass(frozen=True, slots=True)
class Checked:
    """Whatever else."""

    by: Callable[[Asker, Sequence[Any]], None]

    def check(self, asker: Asker, arguments: Sequence[Any]) -> None:
        """Raises the error of a refusal."""
        self.by(asker, arguments)


@dataclass(frozen=True, slots=True)
class Conditional:
    """A need of requests in which one of some fields is said, or none is."""

    need: Need
    fields: tuple[Getter, ...]
    is_said: bool

    def check(self, asker: Asker, arguments: Sequence[Any]) -> None:
        """Raises the error of a refusal."""
        is_said = False
        for field in self.fields:
            if field(arguments):
                is_said = True
        if is_said is self.is_said:
            self.need.check(asker, arguments)


def parsed(method: str, texts: Sequence[str]) -> tuple[Need, ...]:
    """The needs of a method beside a user. Raises ValueError for words that say nothing of its arguments."""
    return tuple(_need(_Paths(method), text.split()) for text in texts if text not in ("anyone", "user"))


def named_table(method: str, text: str) -> Callable[[Sequence[Any]], Iterator[Thing]]:
    """What says which table a request names."""
    return _things(_Paths(method), "table", text.split())


def is_for_anyone(texts: Sequence[str]) -> bool:
    """Whether nobody need have come in."""
    return "anyone" in texts


def thing_of_object(struct: Any) -> Thing:
    """What a HiveObjectRef names; a column or partition is its table. Raises MetaError for missing names."""
    kind = None if struct is None else struct.objectType
    if kind == ObjectType.GLOBAL:
        return catalog_of_object(struct)
    if kind == ObjectType.DATABASE:
        return database_thing(database_name(struct.dbName, struct.catName))
    return table_thing(
        database_name(None if struct is None else struct.dbName, None if struct is None else struct.catName),
        fold(None if struct is None else struct.objectName),
    )


def catalog_of_object(struct: Any) -> Thing:
    """A catalog, if a global object names one; the default one, which clients fill in by themselves, is everything."""
    catalog = global_catalog(struct.catName)
    return SERVER if catalog is None else Thing(catalog)


class _Paths:
    """Finds arguments and fields of a method by their names."""

    def __init__(self, method: str) -> None:
        arguments = getattr(service, f"{method}_args")
        self._spec = {spec[1]: (at, spec) for at, (_, spec) in enumerate(sorted(arguments.thrift_spec.items()))}
        self._method = method

    def getter(self, path: str) -> Getter:
        """What gets a field; with ``[]`` in it a list, of what is behind them in each element."""
        if path == ".":
            return lambda arguments: None
        before, bracket, behind = path.partition("[]")
        found = self._plain(before)
        if not bracket:
            return found
        each = _attributes(behind.lstrip("."))
        return lambda arguments: [each(one) for one in found(arguments) or ()]

    def _plain(self, path: str) -> Getter:
        first, _, rest = path.partition(".")
        at, spec = self._spec[first]
        self._check(spec, rest)
        if not rest:
            return lambda arguments: arguments[at]
        if "." not in rest:  # as in the requests of hot calls
            return lambda arguments: None if arguments[at] is None else getattr(arguments[at], rest)
        get = _attributes(rest)
        return lambda arguments: get(arguments[at])

    def _check(self, spec: Any, rest: str) -> None:
        for name in filter(None, rest.split(".")):
            fields = {field[1]: field for field in spec[2].thrift_spec.values()}
            if name not in fields:
                raise ValueError(f"{self._method} has no {name} in {rest}")
            spec = fields[name]


def _attributes(path: str) -> Callable[[Any], Any]:
    """What follows fields; None where one of them is absent."""
    names = path.split(".") if path else []

    def get(value: Any) -> Any:
        for name in names:
            if value is None:
                return None
            value = getattr(value, name)
        return value

    return get


def _need(paths: _Paths, words: list[str]) -> Need:
    for word, is_said in (("when", True), ("unless", False)):
        if word in words:
            at = words.index(word)
            return Conditional(_need(paths, words[:at]), tuple(map(paths.getter, words[at + 1 :])), is_said)
    match words:
        case [verbs, "on", "numbered", path]:
            number, right = paths.getter(path), _verbs(verbs)
            return Checked(lambda asker, arguments: asker.require_numbered(right, number(arguments) or 0))
        case [verbs, "on", kind, *rest]:
            return Right(_verbs(verbs), _things(paths, kind, rest))
        case ["own", "txn", path]:
            return Own(TXN, paths.getter(path))
        case ["own", "lock", path]:
            return Own(LOCK, paths.getter(path))
        case ["own", "range", least, most]:
            first, last = paths.getter(least), paths.getter(most)
            return Checked(
                lambda asker, arguments: asker.require_own_range(first(arguments) or 0, last(arguments) or 0)
            )
        case ["lock", path]:
            return Checked(_locks(paths.getter(path)))
        case ["compacted", path]:
            ids = paths.getter(path)
            return Checked(lambda asker, arguments: asker.require_compacted(ids(arguments)))
        case ["create", "table", *given]:
            return Checked(_created(*map(paths.getter, [*given, "."][:2])))
        case ["alter", "table", *given]:
            return Checked(_altered_table(*map(paths.getter, given)))
        case ["alter", "database", name, struct]:
            return Checked(_altered_database(paths.getter(name), paths.getter(struct)))
        case ["grant", "or", "revoke", kind, path]:
            return Checked(_granted_or_revoked(paths.getter(kind), paths.getter(path)))
        case ["grant", path]:
            return Checked(_granted(paths.getter(path)))
        case ["revoke", path]:
            return Checked(_revoked(paths.getter(path)))
        case ["grantable", "role", path]:
            role = paths.getter(path)
            return Checked(lambda asker, arguments: asker.require_role(role(arguments) or ""))
        case ["self", name, kind]:
            return Checked(_self(paths.getter(name), paths.getter(kind), None))
        case ["self", name, kind, "or", target]:
            return Checked(_self(paths.getter(name), paths.getter(kind), paths.getter(target)))
    raise ValueError(f"{' '.join(words)} is no need")


def _verbs(text: str) -> frozenset[str]:
    found = frozenset(text.split("|"))
    if not found <= VERBS | {ADMIN, ANY}:
        raise ValueError(f"{text} are no verbs")
    return found


def _things(paths: _Paths, kind: str, given: list[str]) -> Callable[[Sequence[Any]], Iterator[Thing]]:
    if kind == "tables":
        elements, fields = paths.getter(given[0]), [_attributes(name) for name in given[1:]]

        def tables(arguments: Sequence[Any]) -> Iterator[Thing]:
            for one in elements(arguments):
                database, table, *catalog = (field(one) for field in fields)
                yield table_thing(database_name(database, *catalog), fold(table))

        return tables
    getters = [paths.getter(path) for path in given]

    def values(arguments: Sequence[Any]) -> list[Any]:
        return [get(arguments) for get in getters]

    def server(arguments: Sequence[Any]) -> Iterator[Thing]:
        yield SERVER

    def catalog(arguments: Sequence[Any]) -> Iterator[Thing]:
        yield Thing(decoded(*values(arguments))[0])

    def database(arguments: Sequence[Any]) -> Iterator[Thing]:
        yield database_thing(database_name(*values(arguments)))

    def table(arguments: Sequence[Any]) -> Iterator[Thing]:
        database, name, *catalog = values(arguments)
        yield table_thing(database_name(database, *catalog), fold(name))

    def stored(arguments: Sequence[Any]) -> Iterator[Thing]:
        database, name = values(arguments)
        yield table_thing(stored_name(fold(database)), stored_name(fold(name)))

    def full(arguments: Sequence[Any]) -> Iterator[Thing]:
        for name in getters[0](arguments):
            yield table_thing(*split_table(name))

    def used(arguments: Sequence[Any]) -> Iterator[Thing]:
        for name in getters[0](arguments):
            parts = name.split(".")
            if len(parts) == 3:
                yield table_thing(database_key(fold(parts[0]), fold(parts[1])), fold(parts[2]))
            else:
                yield table_thing(*split_table(name))

    kinds: dict[str, Callable[[Sequence[Any]], Iterator[Thing]]] = {
        "server": server, "catalog": catalog, "database": database, "table": table, "stored": stored, "full": full,
        "used": used,
    }  # fmt: skip
    return kinds[kind]


_ADMIN, _CREATE, _ALTER = frozenset({ADMIN}), frozenset({"CREATE"}), frozenset({"ALTER"})
_ANY, _TAKING = frozenset({ANY}), frozenset({"INSERT", "UPDATE", "DELETE", "ALTER", "DROP", "CREATE"})


def _locks(components: Getter) -> Callable[[Asker, Sequence[Any]], None]:
    """A lock takes the right to what it is for: a shared one any, others that to change something."""

    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        for one in components(arguments):
            database = stored_name(one.dbname or "")
            table = stored_name(one.tablename or "")
            thing = table_thing(database, table) if table else database_thing(database)
            asker.require(_LOCKING.get(one.operationType) or (_ANY if one.type == _SHARED_READ else _TAKING), thing)
            for operation in one.alsoOperations or ():
                asker.require(_LOCKING.get(operation, _TAKING), thing)

    return check


_SHARED_READ = ttypes.LockType.SHARED_READ
_LOCKING = {
    ttypes.DataOperationType.SELECT: frozenset({"SELECT"}),
    ttypes.DataOperationType.INSERT: frozenset({"INSERT"}),
    ttypes.DataOperationType.UPDATE: frozenset({"UPDATE"}),
    ttypes.DataOperationType.DELETE: frozenset({"DELETE"}),
}


def _created(table: Getter, context: Getter) -> Callable[[Asker, Sequence[Any]], None]:
    """CREATE in the database; ADMIN on it to bring back what somebody has dropped."""

    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        struct, said = table(arguments), context(arguments)
        database = database_thing(database_name(struct.dbName, struct.catName))
        brings_back = said is not None and UNDROP in (said.properties or {})
        asker.require(_ADMIN if brings_back else _CREATE, database)

    return check


def _altered_table(
    database: Getter, name: Getter, catalog: Getter, struct: Getter
) -> Callable[[Asker, Sequence[Any]], None]:
    """ALTER on the table, CREATE where a renamed one comes to, ADMIN for another owner."""

    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        key = database_name(database(arguments), catalog(arguments))
        old, new = table_thing(key, fold(name(arguments))), struct(arguments)
        asker.require(_ALTER, old)
        home = database_name(new.dbName, new.catName or old.catalog)
        if (home, fold(new.tableName)) != old[1:]:
            asker.require(_CREATE, database_thing(home))
        asker.require_owner(old, new.owner)

    return check


def _altered_database(name: Getter, struct: Getter) -> Callable[[Asker, Sequence[Any]], None]:
    """ALTER on the database, ADMIN for another owner."""

    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        thing, new = database_thing(database_name(name(arguments))), struct(arguments)
        asker.require(_ALTER, thing)
        asker.require_owner(thing, new.ownerName)

    return check


def _granted(grants: Getter) -> Callable[[Asker, Sequence[Any]], None]:
    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        for one in grants(arguments):
            named = (one.grantInfo.privilege if one.grantInfo else None) or ""
            privileges = frozenset(part.strip().upper() for part in named.split(","))
            asker.require_grant(privileges, thing_of_object(one.hiveObject))

    return check


def _revoked(grants: Getter) -> Callable[[Asker, Sequence[Any]], None]:
    """Whoever granted it, so it takes ADMIN on the object."""

    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        found = grants(arguments)
        for one in found if isinstance(found, list) else [found]:
            asker.require(_ADMIN, thing_of_object(getattr(one, "hiveObject", one)))

    return check


def _granted_or_revoked(kind: Getter, grants: Getter) -> Callable[[Asker, Sequence[Any]], None]:
    grant, revoke = _granted(grants), _revoked(grants)

    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        (grant if kind(arguments) == ttypes.GrantRevokeType.GRANT else revoke)(asker, arguments)

    return check


def _self(name: Getter, kind: Getter, target: Getter | None) -> Callable[[Asker, Sequence[Any]], None]:
    def check(asker: Asker, arguments: Sequence[Any]) -> None:
        struct = None if target is None else target(arguments)
        thing = None if struct is None or struct.objectType is None else thing_of_object(struct)
        asker.require_self(name(arguments), kind(arguments) or USER, thing)

    return check
