"""Functions that users have written, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field

from metastore.catalog.models import USER
from metastore.catalog.names import table_text

JAVA = 1  # FunctionType


@dataclass(frozen=True, slots=True)
class Function:
    """A function; `resources` are (ResourceType, URI) of the files that have its code."""

    database: str
    name: str
    class_name: str
    owner: str | None = None
    owner_type: int = USER
    type: int = JAVA
    created_s: int = 0
    resources: list[tuple[int | None, str | None]] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        return table_text(self.database, self.name)
