"""Which table a verb means, and the definition that the verb works with.

What lives longer than a statement (frames with verbs, merge builders, sinks, `Table` objects) keeps a table's name and
its id. A definition is true only for a moment: columns are added, properties set, a table is dropped and another one
takes its name. So each verb reads the definition again behind its own lock, and refuses a table with another id.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from hive_acid.catalog.about import AboutTable
from hive_acid.catalog.calls import CatalogCalls, table_question
from hive_acid.catalog.table import Table, table_from_wire, table_parts
from hive_acid.catalog.temporary_tables import TemporaryTables
from hive_acid.errors import HiveAcidError, NoSuchObjectError, TableChangedError
from hive_acid.forks import renew_in_children
from hive_acid.transactions.transaction import Transaction

_KEPT = 1_000
"""So many definitions a session remembers."""


@dataclass(frozen=True, slots=True)
class TableReference:
    """A table by its name, and by its id unless whichever has the name is meant.

    `known` is a definition that it had once, if any is known: good for guesses, not for rows.
    """

    database: str
    name: str
    id: int | None = None
    known: Table | None = None

    @classmethod
    def of(cls, table: str | Table) -> TableReference:
        """What a user means: by a name any table that has it, by a `Table` that one.

        Raises ValueError for no name, TableNotAcidError for what is only told about a table.
        """
        if isinstance(table, AboutTable):
            raise table.not_written(table.called)
        if isinstance(table, Table):
            return cls(table.database, table.name, table.id or None, table)
        return cls(*table_parts(table))

    @property
    def full_name(self) -> str:
        """``database.name``."""
        return f"{self.database}.{self.name}"

    def check(self, found: Table) -> None:
        """Raise TableChangedError if `found`, which has the name now, is another table."""
        if self.id is not None and found.id and found.id != self.id:
            raise TableChangedError(
                f"{self.full_name} is another table now: the one that was meant was dropped or renamed, and another "
                f'one has its name. Take it again: acid.table("{self.full_name}")'
            )


class Definitions:
    """Tables as one session knows them: as they were last, and as they are now. Safe to share between threads."""

    def __init__(self, catalog: CatalogCalls, temporary: TemporaryTables | None = None) -> None:
        """`temporary` are the tables that hide stored ones of their names; none unless they are given."""
        self._catalog = catalog
        self.temporary = temporary
        self._last: OrderedDict[str, Table] = OrderedDict()
        self.renew_in_child()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """Have a lock that no thread of the parent's holds."""
        self._guard = threading.Lock()

    def reference(self, table: str | Table) -> TableReference:
        """As `TableReference.of`; a temporary table goes before a stored one of its name."""
        reference = TableReference.of(table)
        place = self.temporary.place(reference.full_name) if self.temporary and isinstance(table, str) else None
        return reference if place is None else TableReference.of(place)

    def meant(self, table: str | Table) -> TableReference:
        """The reference to a table, with a definition that it had once. Raises NoSuchObjectError if none is known."""
        reference = self.reference(table)
        if reference.known is not None:
            return reference
        with self._guard:
            known = self._last.get(reference.full_name)
        return replace(reference, known=known if known is not None else self.now(reference))

    def now(self, reference: TableReference, transaction: Transaction | None = None) -> Table:
        """The definition of this moment; behind a lock of `transaction` it stays true for who asks for locks.

        Raises NoSuchObjectError if there is no such table, TableChangedError if it is another one than the reference
        means, or than the transaction has used.
        """
        return self.told(reference, transaction)[0]

    def told(self, reference: TableReference, transaction: Transaction | None = None) -> tuple[Table, Any]:
        """As `now`, with all that the metastore says of it beside it, as a Thrift struct."""
        (answer,) = self._catalog.ask(table_question(reference.database, reference.name))
        return self._answered(reference, answer, transaction)

    def behind_lock(
        self, reference: TableReference, transaction: Transaction, component: Any, *, writes: bool = False
    ) -> Table:
        """As `now`, after `component` is locked; both in one round trip, unless the lock has to wait.

        `writes` as in `Transaction.lock`.
        """
        question = table_question(reference.database, reference.name)
        answer = transaction.lock(component, behind=question, writes=writes)
        return self.now(reference, transaction) if answer is None else self._answered(reference, answer, transaction)[0]

    def _answered(self, reference: TableReference, answer: Any, transaction: Transaction | None) -> tuple[Table, Any]:
        if isinstance(answer, NoSuchObjectError):
            self.forget(reference.full_name)
            if self.temporary and self.temporary.called(reference.full_name):
                raise self.temporary.gone(reference.full_name)
            if reference.id is None:
                raise answer
            raise NoSuchObjectError(
                f"there is no table {reference.full_name} any more: it was dropped or renamed ({answer})"
            )
        if isinstance(answer, HiveAcidError):
            raise answer
        wire = answer.table
        table = table_from_wire(wire)
        reference.check(table)
        if transaction is not None:
            transaction.uses(table.database, table.name, table.id)
        self.note(table)
        return table, wire

    def forget(self, full_name: str) -> None:
        """A name means nothing any more, or something else."""
        with self._guard:
            self._last.pop(full_name, None)

    def note(self, table: Table) -> None:
        """Remember a definition as the last one."""
        with self._guard:
            self._last[table.full_name] = table
            self._last.move_to_end(table.full_name)
            while len(self._last) > _KEPT:
                self._last.popitem(last=False)
