"""What the compaction service takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from hive_acid.format import properties
from hive_acid.format.names import is_for_hive_3
from hive_acid.ids import CompactionId, TxnId, WriteId
from metastore.compaction.plan import BEGINNING, TableKind
from metastore.compaction.states import CompactionState, CompactionType


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """A compaction to queue; `partition` is None for an unpartitioned table.

    `reason` says why it is asked for. With a head start it is queued as if it had been asked for so much earlier. A
    minor one leaves the deltas up to the write id `after` as they are.
    """

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
    head_start_s: int = 0
    after: WriteId = BEGINNING
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CompactionAnswer:
    """What became of a request: if it was not accepted, `id` and `state` are those of the one in its way."""

    id: CompactionId
    state: CompactionState
    accepted: bool


class Weight(NamedTuple):
    """A number of files, and their bytes together."""

    files: int
    size_bytes: int


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
    head_start_s: int
    last_worker: str | None
    progress: Mapping[str, Any] | None
    files_before: int | None
    bytes_before: int | None
    files_after: int | None
    bytes_after: int | None
    reason: str | None
    round: int
    after_write_id: WriteId | None
    has_more: bool
    next_id: CompactionId | None

    @classmethod
    def from_row(cls, row: tuple[Any, ...]) -> Compaction:
        """The compaction that the database gives as `row`."""
        return cls(row[0], CompactionState(row[1]), CompactionType(row[2]), *row[3:])

    @property
    def target(self) -> str:
        """What is compacted, for messages: ``db.table`` or ``db.table/partition``."""
        return target_name(self.db, self.table, self.partition)

    @property
    def label(self) -> str:
        """What it is called in sentences: ``the major compaction 8``, or ``the major compaction 8 (round 2)``."""
        of = f" (round {self.round})" if self.round > 1 or self.has_more else ""
        return f"the {self.type.name.lower()} compaction {self.id}{of}"

    @property
    def rounds(self) -> str | None:
        """Which round it is and what follows, for people; None for one that does all at once."""
        if self.next_id is not None:
            return f"round {self.round}: compaction {self.next_id} goes on behind write id {self.highest_write_id}"
        if self.has_more and not self.state.is_history:
            return f"round {self.round}: another one follows behind write id {self.highest_write_id}"
        return f"round {self.round}" if self.round > 1 or self.has_more else None


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
class Storage:
    """How the files of a table are made, in Hive's words: a format's name is that of its Java class."""

    input_format: str = ""
    serde: str = ""
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    bucket_columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, descriptor: Mapping[str, Any]) -> Storage:
        """The storage of a descriptor as the metastore keeps it."""
        serde = descriptor.get("serdeInfo") or {}
        return cls(
            descriptor.get("inputFormat") or "",
            serde.get("serializationLib") or "",
            dict(serde.get("parameters") or {}),
            tuple(descriptor.get("bucketCols") or ()),
        )


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
    storage: Storage = field(default_factory=Storage)

    @property
    def is_transactional(self) -> bool:
        """Whether a snapshot decides what is seen of the table."""
        return properties.is_transactional(self.parameters)

    @property
    def is_full_acid(self) -> bool:
        """Whether the table has ACID columns, which insert-only tables have not."""
        return properties.is_full_acid(self.parameters)

    @property
    def is_insert_only(self) -> bool:
        """Whether rows can be added, and have no ids by which they could be changed (acid-format.md §2.4)."""
        return properties.is_insert_only(self.parameters)

    @property
    def is_for_hive_3(self) -> bool:
        """Whether Apache Hive 3.1 reads the table, which knows no directory that bears a transaction's number."""
        return is_for_hive_3(self.parameters)

    @property
    def kind(self) -> TableKind:
        """What of it decides how it is compacted."""
        return TableKind(
            hive_3=self.is_for_hive_3,
            insert_only=self.is_insert_only,
            is_clustered=bool(self.storage.bucket_columns),
            in_one_bucket=properties.word_of(self.parameters, properties.LAYOUT_PROPERTY) == "statements",
        )


class Catalogue(Protocol):
    """What compaction asks the catalogue; names are lower case."""

    def table(self, db: str, table: str) -> TableInfo | None:
        """The table, None if it is gone."""

    def partition(self, db: str, table: str, partition: str) -> str | None:
        """The location of a partition, None if it is gone."""

    def primary_key(self, db: str, table: str) -> Sequence[str]:
        """The columns of the table's primary key if that is enforced, else none."""

    def partition_parameters(self, db: str, table: str, partition: str) -> Mapping[str, str]:
        """The parameters of a partition, none if it is gone."""

    def partition_names(self, db: str, table: str) -> list[str]:
        """The names of all partitions of a table."""

    def partition_locations(self, db: str, table: str) -> list[str]:
        """The locations of all partitions of a table."""

    def remove_dropped(self, location: str, trash: str | None) -> bool:
        """Remove the directory of a dropped table or partition; False if another one has taken its place."""

    def remove_homes(self) -> None:
        """Remove the directories of dropped databases in which nothing is read any more, unless they are somebody's."""
