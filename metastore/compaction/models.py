"""What the compaction service takes and gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from hive_acid.format.names import is_for_hive_3
from hive_acid.ids import CompactionId, TxnId, WriteId
from metastore.compaction.states import CompactionState, CompactionType


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A compaction to queue; `partition` is None for an unpartitioned table."""

    type: CompactionType
    db: str
    table: str
    partition: str | None = None
    pool: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    order_by: str | None = None
    buckets: int | None = None
    run_as: str | None = None
    initiator: str | None = None
    initiator_version: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionAnswer:
    """What became of a request: if it was not accepted, `id` and `state` are those of the one in its way."""

    id: CompactionId
    state: CompactionState
    accepted: bool


@dataclass(frozen=True, slots=True)
class Compaction:
    """One row of queue and history; the fields are the table's columns in order."""

    id: CompactionId
    state: CompactionState
    type: CompactionType
    db: str
    table: str
    partition: str | None
    enqueued_at: datetime
    started_at: datetime | None
    committed_at: datetime | None
    ended_at: datetime | None
    worker: str | None
    attempts: int
    txn_id: TxnId | None
    highest_write_id: WriteId | None
    next_txn_id: TxnId | None
    cleaner_started_at: datetime | None
    cleaner_failures: int
    clean_after: datetime | None
    error_message: str | None
    pool: str | None
    properties: Mapping[str, str]
    order_by: str | None
    buckets: int | None
    run_as: str | None
    initiator: str | None
    initiator_version: str | None
    worker_version: str | None
    job_id: str | None

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Compaction:
        """The compaction that the database gives as `row`."""
        return cls(row[0], CompactionState(row[1]), CompactionType(row[2]), *row[3:])

    @property
    def target(self) -> str:
        """What is compacted, for messages: ``db.table`` or ``db.table/partition``."""
        return target_name(self.db, self.table, self.partition)


def target_name(db: str, table: str, partition: str | None) -> str:
    """``db.table`` or ``db.table/partition``."""
    return f"{db}.{table}/{partition}" if partition else f"{db}.{table}"


@dataclass(frozen=True, slots=True)
class AbortedCompaction:
    """The answer for one id of an abort: `found` is None for an unknown id."""

    id: CompactionId
    found: CompactionState | None
    aborted: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A table or partition that may need a compaction.

    `is_blocked` says that too many attempts failed lately, `last` is how the latest ended.
    """

    db: str
    table: str
    partition: str | None
    is_blocked: bool
    last: CompactionState | None


@dataclass(frozen=True, slots=True)
class TableInfo:
    """What compaction has to know of a table.

    `columns` are (name, Hive type) in the metastore's order, without the partition keys; parameters are the table's and
    its database's.
    """

    location: str
    columns: tuple[tuple[str, str], ...]
    partition_keys: tuple[str, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    database_parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_full_acid(self) -> bool:
        """Whether the table has ACID columns, which insert-only tables have not."""
        folded = {key.lower(): value.lower() for key, value in self.parameters.items()}
        return folded.get("transactional") == "true" and folded.get("transactional_properties") != "insert_only"

    @property
    def is_for_hive_3(self) -> bool:
        """Whether Apache Hive 3.1 reads the table, which knows no directory that bears a transaction's number."""
        return is_for_hive_3(self.parameters)


class Catalogue(Protocol):
    """What compaction asks the catalogue; names are lower case."""

    def table(self, db: str, table: str) -> TableInfo | None:
        """The table, None if it is gone."""

    def partition(self, db: str, table: str, partition: str) -> str | None:
        """The location of a partition, None if it is gone."""

    def partition_names(self, db: str, table: str) -> list[str]:
        """The names of all partitions of a table."""

    def remove_dropped(self, location: str, trash: str | None) -> bool:
        """Remove the directory of a dropped table or partition; False if another one has taken its place."""

    def forget_dropped(self, db: str, table: str) -> None:
        """The files of a dropped table are gone: forget its write ids, unless there is one of that name again."""
