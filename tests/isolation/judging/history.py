"""What the clients of a run did and saw: the material that the checker judges."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Elements = tuple[int, ...]


class Key(NamedTuple):
    """One list that transactions append to: a partition of a table."""

    table: str
    partition: str

    def __str__(self) -> str:
        return f"{self.table}/{self.partition}"


class Outcome(enum.Enum):
    """How a transaction ended, as its client knows in the end."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"


class Read(NamedTuple):
    """A list as the transaction saw it; `at` is when it was read, in seconds since the start of the run."""

    key: Key
    elements: Elements
    at: float


class Append(NamedTuple):
    """One element put at the end of a list; no two appends of a run have the same element."""

    key: Key
    element: int


@dataclass(slots=True)
class Transaction:
    """One transaction. Times are seconds since the start of the run, as the client's clock has them.

    `began` is before its opening was asked for, `snapshot_at` when the answer with the snapshot it reads by was
    there, `committing` before its commit was first asked for, `ended` when it knew the outcome.
    """

    client: str
    kind: str
    began: float
    txn_id: int = 0
    snapshot_at: float = 0.0
    committing: float = 0.0
    ended: float = 0.0
    outcome: Outcome = Outcome.UNKNOWN
    operations: list[Read | Append] = field(default_factory=list)
    write_ids: list[tuple[str, int]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"T{self.txn_id}"

    def story(self) -> str:
        """Its life in a few lines."""
        operations = ", ".join(
            f"append {one.element} to {one.key}"
            if isinstance(one, Append)
            else f"read {one.key} = {shorten(one.elements)} at {one.at:.3f}"
            for one in self.operations
        )
        return (
            f"{self.name} ({self.kind}, {self.client}) began {self.began:.3f}, snapshot {self.snapshot_at:.3f}, "
            f"commit asked {self.committing:.3f}, {self.outcome.value} {self.ended:.3f}\n"
            f"    write ids: {', '.join(f'{table} {number}' for table, number in self.write_ids) or 'none'}\n"
            f"    {operations or 'nothing read or written'}\n"
            f"    calls: {' '.join(self.calls)}"
        )


def shorten(elements: Sequence[int]) -> str:
    """A list as text, its end in full."""
    if len(elements) <= 6:
        return str(list(elements))
    return f"[{len(elements) - 5} more, {', '.join(map(str, elements[-5:]))}]"
