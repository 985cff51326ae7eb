"""The verbs of a session that plan and do nothing: what EXPLAIN runs a statement with.

A verb that changes rows does all that comes before its first write, in a transaction that only reads: it looks at the
table and tells its plan, as `hive_acid.spark.verbs.changes` does before it goes on. The source of a join is not
computed. All other verbs say what they would be asked for (`told_only`).
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from hive_acid.catalog.alterations import NewColumns
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Column, Table
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.listing import check_full_acid, check_transactional
from hive_acid.spark.snapshots.blocks import Result
from hive_acid.spark.verbs.keys import KeyVerbs
from hive_acid.spark.write.overwrite import has_own_readers
from hive_acid.spark.write.planned import Planned
from hive_acid.transactions.locks import (
    Operation,
    alone_with_rows,
    overwrite_component,
    read_component,
    write_component,
)
from hive_acid.transactions.states import Isolation
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from hive_acid.write.table_write import Intent, TableWrite

_NONE = Intent(Operation.INSERT)
_EXCLUSIVE = frozenset({"add_primary_key", "rename_table", "rename_partition", "create_table_as", "import_table"})
_ADD = frozenset({"add_partitions", "convert_table", "load_data"})
_READ = frozenset({"export_table", "analyze"})
_WITHOUT_LOCK = frozenset({"create_table", "create_view", "drop_table", "compact", "concatenate"})
"""Verbs by the lock that they ask for; others alter a definition, and keep those away who change rows."""


class NotedLocks:
    """The locks that a statement would ask for in a transaction of some isolation."""

    def __init__(self, isolation: Isolation) -> None:
        self._is_alone = isolation is Isolation.READ_COMMITTED
        self._components: list[Any] = []
        self._used: Counter[str] = Counter()

    def note(self, component: Any) -> None:
        """Note a lock of a writer, or of who alters a definition."""
        self._components.append(alone_with_rows(component) if self._is_alone else component)

    def use(self, tables: Iterable[str]) -> None:
        """Note the tables that a statement names, each as often as it reads or changes it."""
        self._used.update(tables)

    def lines(self) -> list[str]:
        """As they are shown, as Hive does."""
        locked = list(self._components)
        read = self._used - Counter(f"{of.dbname}.{of.tablename}" for of in locked)
        locked += [read_component(*name.split(".", 1)) for name in read]
        kinds = ttypes.LockType._VALUES_TO_NAMES
        shown = {
            f"{of.dbname}.{of.tablename}{f'.{of.partitionname}' if of.partitionname else ''} -> {kinds[of.type]}": None
            for of in locked
        }
        return ["LOCK INFORMATION:", *(shown or ("none is asked for",))]


class Explaining(KeyVerbs):
    """The verbs that change rows, as `acid` has them, up to where they would write. Raises TransactionsOffError."""

    def __init__(self, acid: KeyVerbs, locks: NotedLocks) -> None:
        context = copy.copy(acid._context)
        context.computes_sources = False
        super().__init__(context, acid._blocks, acid.manager)
        self._plan_cache = acid._plan_cache
        self._locks = locks
        self._refuse_without_transactions()

    def _change(
        self,
        table: str | Table,
        intent: Intent | Callable[[Transaction, TableReference], Intent],
        plan: Callable[[TableWrite], Planned[Result]],
        *,
        by_files: bool = False,
        evolving: NewColumns | None = None,
    ) -> Result:
        """Plan a write, which is not begun: no lock of a writer is taken, no id, and no column is added."""
        check = _check_filled if by_files else check_full_acid
        meant = self._meant(table)
        with self._blocks.reading([meant.full_name]) as transaction:
            about = intent if isinstance(intent, Intent) else intent(transaction, meant)
            found = self._context.locked_for_reading(transaction, meant)
            check(found)
            if evolving is not None:
                found = _with_columns(found, evolving)
            planned = plan(TableWrite(self.connection, self._definitions, transaction, found, _NONE))
            tell(planned.plan)
            self._locks.note(about.component(found))
            return planned.nothing


def _check_filled(table: Table) -> None:
    if not table.is_plain:
        check_transactional(table)


def _with_columns(table: Table, evolving: NewColumns) -> Table:
    """The table as it would be with the columns that it lacks."""
    given = {column.name: column for column in evolving(table)}
    there = [given.pop(column.name, column) for column in table.columns]
    return replace(table, columns=(*there, *given.values()))


# --- verbs that are told only --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _VerbPlan:
    """What a verb of the session, or a call of the metastore, would be asked for."""

    verb: str
    about: str
    words: tuple[str, ...]

    def lines(self) -> list[str]:
        """As it is shown."""
        return [f"{self.verb.replace('_', ' ').upper()} {self.about}".rstrip(), *(f"  {word}" for word in self.words)]


def told_only(acid: KeyVerbs, locks: NotedLocks) -> KeyVerbs:
    """The verbs of `acid`, of which those that would change something only tell so."""
    return cast(KeyVerbs, _Told(acid, locks))


class _Told:
    """What stands for a session: it reads as that does, and every other verb is told."""

    _READING = frozenset(
        {
            "spark",
            "manager",
            "limits",
            "table",
            "_table_within",
            "history",
            "temporary",
            "_context",
            "_blocks",
            "_plan_cache",
        }
    )

    def __init__(self, acid: KeyVerbs, locks: NotedLocks) -> None:
        self._acid = acid
        self._locks = locks
        self.connection = _ToldCalls(acid.connection)

    def __getattr__(self, name: str) -> Any:
        if name in self._READING:
            return getattr(self._acid, name)

        def told(*given: Any, **options: Any) -> int:
            first = given[name == "import_table" :][:1]
            about = "".join(one.full_name if isinstance(one, Table) else str(one) for one in first)
            tell(_VerbPlan(name, about, (*filter(None, map(_plain_one, given[1:])), *_words(options))))
            if "." in about:
                self._note(name, *about.split(".", 1), overwrites=bool(options.get("overwrite")))
            return 0

        return told

    def _note(self, verb: str, database: str, table: str, *, overwrites: bool) -> None:
        if verb in ("truncate", "replace_table_as") or overwrites:
            beside = has_own_readers(self._acid.connection, TableReference.of(f"{database}.{table}"))
            self._locks.note(overwrite_component(database, table, beside_readers=beside))
        elif verb in _EXCLUSIVE:
            self._locks.note(overwrite_component(database, table))
        elif verb in _ADD:
            self._locks.note(write_component(database, table, Operation.INSERT))
        elif verb in _READ:
            self._locks.note(read_component(database, table))
        elif verb not in _WITHOUT_LOCK:
            self._locks.note(overwrite_component(database, table, beside_readers=True))


class _ToldCalls:
    """What stands for a connection: questions are asked, and every other call is told."""

    _READING = frozenset(
        {"table", "wire_table", "partitions", "partition_names", "partitions_named", "ask", "user", "catalog"}
    )
    _QUESTIONS = ("get_", "show_", "list_")

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        if name in self._READING:
            return getattr(self._connection, name)
        return lambda *given, **options: tell(_VerbPlan(name, _plain(given[:1]), _words(options)))

    def call(self, method: str, *given: Any) -> Any:
        """As `Transport.call`."""
        if method.startswith(self._QUESTIONS):
            return self._connection.call(method, *given)
        tell(_VerbPlan(method, _plain(given[:1]), ()))
        return None


def _words(options: dict[str, Any]) -> tuple[str, ...]:
    shown = ((name.replace("_", " "), _plain_one(value)) for name, value in options.items())
    return tuple(f"{name}: {value}" for name, value in shown if value)


def _plain(values: Iterable[Any]) -> str:
    return ", ".join(filter(None, map(_plain_one, values)))


def _plain_one(value: Any) -> str:
    """What a plan shows of an argument; nothing for what is no plain value."""
    if isinstance(value, Column):
        return f"{value.name} {value.type}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}={one}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return _plain(value)
    return str(value) if value and isinstance(value, str | int) else ""
