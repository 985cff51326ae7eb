"""What is moved between metastores, in the catalogue's words, and where it may come from.

Definitions are the catalogue's models. Everything smaller (functions, constraints, statistics, roles, privileges)
travels as an `Entry`, see `entries`.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hive_acid.errors import HiveAcidError
from metastore.catalog.models import CatalogInfo, DatabaseInfo, Partition, Table
from metastore.catalog.names import DEFAULT_CATALOG, fold

PARTITIONS_PER_BATCH = 1000
"""How many partitions are held in memory, asked for and stored at a time."""


class TransferError(HiveAcidError):
    """Something is not moved, and why."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which databases and tables are meant, by patterns with ``*`` and ``?``; none given means all.

    A table pattern is ``table`` or ``database.table``. With a selection of tables nothing is moved but these and the
    definitions of their databases.
    """

    databases: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.databases and not self.tables

    def has_catalog(self, name: str) -> bool:
        """Whether databases of the catalog are meant; of the default one, whose names do not say it, they may be."""
        named = [pattern.partition("#")[0] for pattern in (*self.databases, *self.tables) if pattern.startswith("@")]
        return self.is_everything or name == DEFAULT_CATALOG or _matches(named, f"@{name}")

    def has_database(self, name: str) -> bool:
        """Whether anything of the database is meant."""
        if self.databases and not _matches(self.databases, name):
            return False
        owners = [pattern.partition(".")[0] for pattern in self.tables if "." in pattern]
        return len(owners) < len(self.tables) or not self.tables or _matches(owners, name)

    def has_table(self, database: str, name: str) -> bool:
        """Whether the table is meant."""
        if not self.has_database(database):
            return False
        full_name = f"{database}.{name}"
        return not self.tables or any(
            _matches([pattern], full_name if "." in pattern else name) for pattern in self.tables
        )


@dataclass(frozen=True, order=True, slots=True)
class AbortedWrite:
    """What an aborted transaction may have left in a table's files.

    `write_id` is 0 for a compaction, which has none. `txn_id` is 0 where the source does not tell. No `partition` means
    that it is not known which, or that the table has none. `operation` is that of txn_component.
    """

    write_id: int
    txn_id: int = 0
    partition: str = ""
    operation: str = "i"


@dataclass(frozen=True, slots=True)
class TableWrites:
    """The write ids of a table: those up to the high-water mark are given out, all but these are committed.

    `unfinished` are those of open transactions, in the form that they have once these are aborted.
    """

    high_water_mark: int
    aborted: tuple[AbortedWrite, ...] = ()
    unfinished: tuple[AbortedWrite, ...] = ()

    @property
    def aborted_ids(self) -> set[int]:
        return {one.write_id for one in self.aborted if one.write_id}

    def with_open_as_aborted(self) -> TableWrites:
        """The state in which what is open counts as aborted."""
        return TableWrites(self.high_water_mark, tuple(sorted((*self.aborted, *self.unfinished))))


@dataclass(frozen=True, slots=True)
class OpenTxn:
    """A transaction that is open at the source, and whose it is."""

    txn_id: int
    user: str = ""
    host: str = ""

    def __str__(self) -> str:
        return f"{self.txn_id} ({self.user or 'unknown'}@{self.host or 'unknown'})"


@dataclass(frozen=True, slots=True)
class TxnState:
    """The transactions of a source; `compactions` counts its queue and history by state."""

    high_water_mark: int
    open_txns: tuple[OpenTxn, ...] = ()
    compactions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """Something smaller than a table: `kind` and `key` say what (``function``, ``db.name``), `value` is its row."""

    kind: str
    key: str
    value: dict[str, Any]


class SourceTable(Protocol):
    """A table of a source, and what belongs to it. What is not asked for costs nothing."""

    @property
    def table(self) -> Table:
        """The definition."""
        ...

    def writes(self) -> TableWrites | None:
        """Its write ids as they are now; None for a table without transactions.

        Raises HiveAcidError if the source cannot tell.
        """
        ...

    def partitions(self) -> Iterator[Sequence[Partition]]:
        """All partitions in batches, by name within a batch."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Constraints, statistics and privileges."""
        ...


class Source(Protocol):
    """Where catalogue and ACID state come from. The methods are called in this order.

    A source that is read forwards, such as a file, need not hold anything back: of one table `writes`, `partitions` and
    `entries` are asked in this order, before the next table.
    """

    @property
    def name(self) -> str:
        """For messages."""
        ...

    @property
    def identity(self) -> str:
        """Whose transaction ids these are: the same for a metastore however it is read, where it tells who it is."""
        ...

    def txns(self) -> TxnState:
        """Its transactions now."""
        ...

    def catalogs(self) -> Iterator[CatalogInfo]:
        """Its catalogs, ``hive`` too."""
        ...

    def databases(self, selection: Selection) -> Iterator[DatabaseInfo]:
        """The chosen databases, by name."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Functions, roles, privileges on databases: what belongs to no table."""
        ...

    def tables(self, selection: Selection) -> Iterator[SourceTable]:
        """The chosen tables, by database and name."""
        ...

    def changed(self, known: Mapping[str, TableWrites]) -> Iterator[SourceTable]:
        """Those of the tables ``db.table`` whose write ids are not what they were."""
        ...


def _matches(patterns: Sequence[str], name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, fold(pattern)) for pattern in patterns)
