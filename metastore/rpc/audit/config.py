"""Settings of the audit log."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import integer, text


@dataclass(frozen=True)
class AuditConfig:
    """Where lines go."""

    file: str = text(
        "metastore.audit.file",
        "",
        "File that gets a line of JSON for each call that changes something or is refused, and for who comes in by a "
        "password and who does not; empty for none.",
    )
    most_bytes: int = integer(
        "metastore.audit.file.bytes.max",
        "104857600",
        "A file of the audit log that is so large is renamed to FILE.1, and a new one begun.",
        least=1024,
    )
    files: int = integer(
        "metastore.audit.files", "10", "So many older files are kept: FILE.1 is the newest.", least=1, most=10_000
    )
