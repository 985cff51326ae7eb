"""What a client may do with a table (wire.md §5.8, §5.9).

Three rules, from the oldest to the newest. The guard is ours: a bare ``get_table`` is what stock Spark and Hive 2 send,
which cannot deal with full-ACID tables. Client capabilities are numbers that clients of Hive 3 send. Processor
capabilities are names that clients of Hive 4 send, and are answered by an access type.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.catalog.config import ALLOW, GUARD_PROPERTY
from metastore.catalog.models import Table

INSERT_ONLY_TABLES = 2
"""The number among Thrift's ClientCapability that lets a client see insert-only tables."""

NONE, READ, READ_WRITE = 1, 2, 8

CONNECTOR_READ, CONNECTOR_WRITE = "CONNECTORREAD", "CONNECTORWRITE"
FULL_ACID_READ, FULL_ACID_WRITE = "HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"
INSERT_ONLY_READ, INSERT_ONLY_WRITE = "HIVEMANAGEDINSERTREAD", "HIVEMANAGEDINSERTWRITE"
EVERYTHING = "MANAGERAWMETADATA"
"""The client takes tables as they are stored and does what is right."""


@dataclass(frozen=True, slots=True)
class Access:
    """`kind` is Thrift's accessType; the lists name what the client lacks for more."""

    kind: int
    required_to_read: list[str] = field(default_factory=list)
    required_to_write: list[str] = field(default_factory=list)
    hides_buckets: bool = False


def guard_of(table: Table, server: str) -> str:
    """What becomes of a bare get_table: refuse, warn or allow, as the table says, else the `server`."""
    if not table.is_full_acid:
        return ALLOW
    return (table.parameter(GUARD_PROPERTY) or server).lower()


def access_of(table: Table, capabilities: frozenset[str]) -> Access:
    """The access that `capabilities` give to `table`."""
    if EVERYTHING in capabilities:
        return Access(READ_WRITE)
    if table.is_view:
        return _access(capabilities, {"HIVESQL", CONNECTOR_READ}, None)
    if table.table_type == "MATERIALIZED_VIEW":
        readable = "HIVEMQT" in capabilities and bool(capabilities & {CONNECTOR_READ, FULL_ACID_READ})
        return Access(READ) if readable else Access(NONE, required_to_read=["HIVEMQT", FULL_ACID_READ])
    if table.is_full_acid:
        return _access(capabilities, {FULL_ACID_READ, CONNECTOR_READ}, {FULL_ACID_WRITE, CONNECTOR_WRITE})
    if table.is_transactional:
        return _access(capabilities, {INSERT_ONLY_READ, CONNECTOR_READ}, {INSERT_ONLY_WRITE, CONNECTOR_WRITE})
    if not table.is_external:
        return Access(READ_WRITE)
    if table.bucket_columns:
        return _bucketed_external(capabilities)
    if "EXTREAD" in capabilities and "EXTWRITE" in capabilities:
        return Access(READ_WRITE)
    return _access(capabilities, {"EXTREAD"}, None, write_with="EXTWRITE")


def _bucketed_external(capabilities: frozenset[str]) -> Access:
    if "HIVEBUCKET2" in capabilities:
        return Access(READ_WRITE)
    hides = "ACCEPTS_UNMODIFIED_METADATA" not in capabilities
    return Access(READ, required_to_write=["HIVEBUCKET2"], hides_buckets=hides)


def _access(
    capabilities: frozenset[str], to_read: set[str], to_write: set[str] | None, write_with: str | None = None
) -> Access:
    """Read-write with any of `to_write`, else read with any of `to_read`, else nothing."""
    if to_write is not None and capabilities & to_write:
        return Access(READ_WRITE)
    lacking = sorted(to_write or ([write_with] if write_with else []))
    if capabilities & to_read:
        return Access(READ, required_to_write=lacking)
    return Access(NONE, required_to_read=sorted(to_read), required_to_write=lacking)
