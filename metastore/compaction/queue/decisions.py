"""What the services last decided of each table and partition, and why: put down by who decides, never guessed later.

Operators ask for it (`metastore why`). There is one decision for a table or partition and service, the last one; its
time says since when it has been just so, and what is decided again in the same words costs no write.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable
from dataclasses import dataclass

from metastore.store.leases import Calls
from metastore.txn.names import stored_name, stored_partition

_LONGEST_MESSAGE = 2000
"""Characters that are kept of a message; errors of file systems can be long."""


class Decider(enum.Enum):
    """The services that decide; the value is what the database stores."""

    INITIATOR = "initiator"
    CLEANER = "cleaner"


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: `code` for programs, `message` with figures and the next action for people.

    `blocker` is the transaction in the way, `at_ms` since when it has been so, in the database's time.
    """

    partition: str | None
    service: Decider
    code: str
    message: str
    blocker: int | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Look:
    """What a service has to say of one table or partition; no code takes back what it said before.

    `blocker` is the transaction in the way.
    """

    db: str
    table: str
    partition: str | None
    code: str | None
    message: str = ""
    blocker: int | None = None


class Decisions:
    """The decisions in the database."""

    def __init__(self, db: Calls) -> None:
        self._db = db

    def set(self, looks: Iterable[Look], service: Decider) -> int:
        """Put down what a service says in one round trip, each target once; how many rows had changed."""
        rows = {
            (target := _target(look)): {
                **dict(zip(("db", "tbl", "partition"), target, strict=True)),
                "code": look.code,
                "message": _clipped(look.message),
                "blocker": look.blocker,
            }
            for look in looks
        }
        if not rows:
            return 0
        row = self._db.call_one("set_decisions", service.value, json.dumps(list(rows.values())))
        assert row is not None
        return int(row[0])

    def of(self, db: str, table: str, partition: str | None = None) -> list[Decision]:
        """Those of a table and its partitions; of one partition and the table as a whole, if it is given."""
        target = _target(Look(db, table, partition, None))
        return [
            Decision(part, Decider(service), code, message, blocker, at_ms)
            for part, service, code, message, blocker, at_ms in self._db.call("decisions", *target)
        ]


def _target(look: Look) -> tuple[str, str, str | None]:
    partition = stored_partition(look.partition) if look.partition else None
    return stored_name(look.db), stored_name(look.table), partition


def _clipped(message: str) -> str:
    return message if len(message) <= _LONGEST_MESSAGE else message[: _LONGEST_MESSAGE - 1] + "…"
