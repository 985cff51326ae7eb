"""An import: catalogue and ACID state of a source into our database, beside the files, which stay where they are.

Files and write ids have to agree, so the order matters. Transaction ids are passed over first: directories of
compactions carry those of the source. A table comes together with its write ids, its partitions and statistics
follow, and then the write ids are asked for again: if the source has given out more of them, or a transaction ended,
files have come that the copy does not know of, and the table is done again, with a limit. At the end the same question
is put for all tables, for who writes there between its copy and the last one would be overlooked. The source should be
quiet for the tables that move: a write after the last question is lost to the copy, and nobody can know.

An import is resumed by running it again. There is no record of how far it came: what is here and equal is passed by,
what is missing is added, so it may be killed at any point, and run against a source that has changed meanwhile.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from hive_acid.errors import FormatError, HiveAcidError, MetastoreUnreachableError
from metastore.catalog.models import Table
from metastore.transfer.comparison import in_words
from metastore.transfer.models import Entry, Selection, Source, SourceTable, TableWrites, TransferError, TxnState
from metastore.transfer.report import ADDED, DIFFERENT, EQUAL, NOTE, REFUSED, REPLACED, Report
from metastore.transfer.target import OWN, Outcome, Target

REFUSE, WAIT, ABORTED = "refuse", "wait", "aborted"
OPEN_POLICIES = (REFUSE, WAIT, ABORTED)
"""What to do about transactions that are open at the source."""
_ROUNDS = 3
_POLL_S = 1.0
_NAMED_TXNS = 5
_ENTRIES_PER_BATCH = 1000


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What is moved, and how. `wait_s` bounds the wait for open transactions."""

    selection: Selection = field(default_factory=Selection)
    open_policy: str = REFUSE
    wait_s: float = 300.0
    dry_run: bool = False


def settled_txns(source: Source, policy: str, wait_s: float) -> TxnState:
    """The source's transactions when those that were open first have ended, or count as aborted.

    Raises TransferError if some are open and may not be waited for, or do not end.
    """
    txns = source.txns()
    waited_for = {one.txn_id for one in txns.open_txns}
    deadline = time.monotonic() + wait_s
    while policy != ABORTED and waited_for:
        if policy == REFUSE or time.monotonic() > deadline:
            named = ", ".join(str(one) for one in txns.open_txns[:_NAMED_TXNS])
            more = len(txns.open_txns) - _NAMED_TXNS
            raise TransferError(
                f"transactions are open at {source.name}: {named}{f' and {more} more' if more > 0 else ''}. Let them"
                " end (--open-transactions wait), or have them count as aborted here (--open-transactions aborted):"
                " what they commit later is lost then"
            )
        time.sleep(_POLL_S)
        txns = source.txns()
        waited_for &= {one.txn_id for one in txns.open_txns}
    return txns


class Import:
    """One run; `run` once."""

    def __init__(self, source: Source, target: Target, options: ImportOptions, progress: Callable[[str], None]) -> None:
        """`progress` is told the name of each table when it is done."""
        self._source = source
        self._target = target
        self._options = options
        self._progress = progress
        self._done: dict[str, TableWrites] = {}
        self._foreign_keys: list[tuple[Table | None, Entry]] = []
        self.report = Report(source.name, options.dry_run)

    def run(self) -> Report:
        """Move everything that is selected. Raises TransferError when nothing can be moved; see `settled_txns`."""
        selection = self._options.selection
        policy = ABORTED if self._options.dry_run else self._options.open_policy
        txns = settled_txns(self._source, policy, self._options.wait_s)
        self._target.take_txn_ids(txns.high_water_mark)
        self._note_txns(txns)
        for catalog in self._source.catalogs():
            if selection.has_catalog(catalog.name):
                self._note("catalog", catalog.name, self._target.catalog(catalog))
        for database in self._source.databases(selection):
            self._note("database", database.name, self._target.database(database))
        chosen = (entry for entry in self._source.entries() if selection.is_everything)
        self._entries(chosen, None)
        for found in self._source.tables(selection):
            self._table_or_refusal(found)
        self._look_again()
        for table, entry in self._foreign_keys:
            self._store(entry.kind, table, [entry])
        return self.report

    # --- tables ---

    def _table_or_refusal(self, found: SourceTable) -> None:
        name = found.table.full_name
        try:
            self._table(found)
        except (FormatError, MetastoreUnreachableError):
            raise  # the source itself is damaged or gone
        except HiveAcidError as error:
            self.report.find(REFUSED, "table", name, str(error))
        self._progress(name)

    def _table(self, found: SourceTable) -> None:
        writes = self._writes(found)
        outcome, table = self._target.table(found.table, writes)
        self._note("table", found.table.full_name, outcome)
        follows = writes is not None
        if writes is not None and table is not None and outcome.outcome != ADDED:
            known = self._done.get(found.table.full_name)
            compared = self._target.writes(table, writes, known)
            self._note("write ids", table.full_name, compared)
            follows = compared.outcome != DIFFERENT
        elif writes is not None:
            self.report.count("write ids", ADDED)
        stands = table or found.table
        self._parts(found, stands)
        for _ in range(_ROUNDS):
            again = self._writes(found) if follows else None
            if again == writes or again is None or table is None:
                break
            self._target.take_txn_ids(self._source.txns().high_water_mark)
            self._note_changed(table, self._target.writes(table, again, known=writes))
            self._parts(found, table)
            writes = again
        else:
            raise TransferError(
                f"is written to at the source all the time: its write ids changed in {_ROUNDS} copies running. Stop its"
                " writers and import it again"
            )
        if writes is not None and follows:
            self._done[found.table.full_name] = writes

    def _parts(self, found: SourceTable, table: Table) -> None:
        """What belongs to a table beside its write ids."""
        known = 0
        for batch in found.partitions():
            known += len(batch)
            for name, outcome in self._target.partitions(table, batch):
                self._note("partition", f"{table.full_name}/{name}", outcome)
        here = self._target.partition_count(table) if known and table.id else 0
        if here > known:
            self.report.find(NOTE, "table", table.full_name, f"has {here - known} partitions that the source lacks")
        self._entries(found.entries(), table)

    def _entries(self, found: Iterator[Entry], table: Table | None) -> None:
        for kind, same in itertools.groupby(found, key=lambda entry: entry.kind):
            while batch := list(itertools.islice(same, _ENTRIES_PER_BATCH)):
                waiting = self._parents_first(batch, table) if kind == "constraint" else batch
                self._store(kind, table, waiting)

    def _store(self, kind: str, table: Table | None, batch: list[Entry]) -> None:
        for entry, outcome in self._target.entries(kind, table, batch):
            name = entry.key if table is None else f"{table.full_name} {entry.key}"
            self._note(kind, name, outcome)

    def _parents_first(self, batch: list[Entry], table: Table | None) -> list[Entry]:
        """Foreign keys wait until the tables that they refer to are here, whatever the order."""
        self._foreign_keys += [(table, entry) for entry in batch if entry.value.get("parent")]
        return [entry for entry in batch if not entry.value.get("parent")]

    def _writes(self, found: SourceTable) -> TableWrites | None:
        writes = found.writes()
        if writes is None or not writes.unfinished:
            return writes
        if self._options.open_policy == ABORTED or self._options.dry_run:
            return writes.with_open_as_aborted()
        raise TransferError("has been written to by a transaction that is open at the source: import it again later")

    def _look_again(self) -> None:
        """Whether a table was written to after its copy. Such ones are done again, once, and named."""
        if self._options.dry_run:
            return
        changed = list(self._source.changed(self._done))
        if changed:
            self._target.take_txn_ids(self._source.txns().high_water_mark)
        for found in changed:
            self.report.find(
                NOTE,
                "table",
                found.table.full_name,
                "was written to at the source during the import: it was done again",
            )
            self._table_or_refusal(found)

    # --- the report ---

    def _note(self, kind: str, name: str, outcome: Outcome) -> None:
        if outcome.outcome == REFUSED:
            self.report.find(REFUSED, kind, name, in_words(list(outcome.differences)))
        elif outcome.outcome != DIFFERENT:
            self.report.count(kind, outcome.outcome)
        elif (kind, name) in OWN:
            self.report.count(kind, EQUAL)
            self.report.find(NOTE, kind, name, f"stays as it is here; {in_words(list(outcome.differences))}")
        else:
            self.report.find(DIFFERENT, kind, name, in_words(list(outcome.differences)))

    def _note_changed(self, table: Table, outcome: Outcome) -> None:
        if outcome.outcome == REPLACED:
            self.report.find(NOTE, "write ids", table.full_name, "changed at the source during the copy: done again")
        else:
            self._note("write ids", table.full_name, outcome)

    def _note_txns(self, txns: TxnState) -> None:
        if txns.open_txns:
            named = ", ".join(str(one) for one in txns.open_txns[:_NAMED_TXNS])
            self.report.find(NOTE, "transactions", f"of {self._source.name}", f"open, counted as aborted: {named}")
        for state, number in txns.compactions.items():
            self.report.count("compactions of the source", state, number)
        waiting = sum(txns.compactions.get(state, 0) for state in ("initiated", "working", "ready for cleaning"))
        if waiting:
            words = f"{waiting} are not finished and do not move: what they were to do is found anew here"
            self.report.find(NOTE, "compactions", f"of {self._source.name}", words)
