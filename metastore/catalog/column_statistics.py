"""Statistics of columns as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum

from hive_acid.format.snapshot import ValidWriteIdList

DEFAULT_ENGINE = "hive"


class StatisticsKind(StrEnum):
    """What a column holds, as far as its statistics go: the members of the IDL's union."""

    BOOLEAN = "boolean"
    LONG = "long"
    DOUBLE = "double"
    STRING = "string"
    BINARY = "binary"
    DECIMAL = "decimal"
    DATE = "date"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Figures of one column, None where its kind has none or the engine did not give it.

    `low` and `high` are numbers, for dates days and for timestamps seconds since 1970; lengths are in bytes.
    """

    column: str
    type: str
    kind: StatisticsKind
    nulls: int
    distinct_values: int | None = None
    trues: int | None = None
    falses: int | None = None
    max_length: int | None = None
    avg_length: float | None = None
    low: int | float | Decimal | None = None
    high: int | float | Decimal | None = None
    bit_vector: bytes | None = None
    histogram: bytes | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """Statistics of a table as a whole (`partition` None) or of a partition, by the name it has; `analyzed_s` in
    seconds since 1970, 0 for now.
    """

    columns: list[ColumnStatistics]
    partition: str | None = None
    analyzed_s: int = 0


@dataclass(frozen=True, slots=True)
class Writer:
    """The write to an ACID table in whose transaction statistics were gathered, and the snapshot that it read."""

    write_id: int
    snapshot: ValidWriteIdList


@dataclass(frozen=True, slots=True)
class Found:
    """What is stored, for one reader.

    `is_compliant`: whether it describes exactly what the reader's snapshot shows; None if the reader gave none.
    """

    analyses: list[Analysis] = field(default_factory=list)
    is_compliant: bool | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Statistics of several partitions together; `partitions` counts those that have some of every column."""

    columns: Sequence[ColumnStatistics] = ()
    partitions: int = 0
    is_compliant: bool | None = None


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What a client that alters a table or partitions says of their statistics."""

    is_left_alone: bool = False
    """They are the client's own business (DO_NOT_UPDATE_STATS)."""
    is_computed: bool = False
    """The client has just computed those it sends (STATS_GENERATED)."""
    writer: Writer | None = None
    """In whose transaction; ACID tables only."""
    is_all: bool = False
    """Nothing else is to change, whatever the definition says."""
