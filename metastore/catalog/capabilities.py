"""What a client may do with a table, by the capabilities that it names (metastore-wire.md §5, the table there)."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.catalog.models import Table

NONE, READ, READ_WRITE = 1, 2, 8

_CONNECTOR_READ, _CONNECTOR_WRITE = "CONNECTORREAD", "CONNECTORWRITE"


@dataclass(frozen=True, slots=True)
class Access:
    """`kind` is Thrift's accessType; the lists name what the client lacks for more."""

    kind: int
    required_to_read: list[str] = field(default_factory=list)
    required_to_write: list[str] = field(default_factory=list)
    hides_buckets: bool = False


def access_of(table: Table, capabilities: frozenset[str]) -> Access:
    """The access that `capabilities` give to `table`."""
    if "MANAGERAWMETADATA" in capabilities:
        return Access(READ_WRITE)
    if table.is_view:
        return _access(capabilities, {"HIVESQL", _CONNECTOR_READ}, None)
    if table.table_type == "MATERIALIZED_VIEW":
        readable = "HIVEMQT" in capabilities and bool(capabilities & {_CONNECTOR_READ, "HIVEFULLACIDREAD"})
        return Access(READ) if readable else Access(NONE, required_to_read=["HIVEMQT", "HIVEFULLACIDREAD"])
    if table.is_full_acid:
        return _access(capabilities, {"HIVEFULLACIDREAD", _CONNECTOR_READ}, {"HIVEFULLACIDWRITE", _CONNECTOR_WRITE})
    if table.is_transactional:
        return _access(
            capabilities, {"HIVEMANAGEDINSERTREAD", _CONNECTOR_READ}, {"HIVEMANAGEDINSERTWRITE", _CONNECTOR_WRITE}
        )
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
