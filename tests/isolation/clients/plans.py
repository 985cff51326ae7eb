"""What a transaction is to do, chosen by chance."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.isolation.judging.deltas import Keyspace
from tests.isolation.judging.history import Key

RAW_KINDS = {"checked": 10, "dynamic": 4, "exclusive": 5, "insert": 3, "reader": 5}
"""Kind of transaction to its share.

- checked: shared-write locks on the partitions, conflicts checked at commit
- dynamic: a shared-write lock on the table, the partitions named before the commit, conflicts checked
- exclusive: exclusive-write locks and the new-snapshot rule in place of the check
- insert: rows inserted beside lists, in nobody's way
- reader: read-only, every list read twice, the rows beside them, too
"""
LIBRARY_KINDS = {"checked": 10, "dynamic": 5, "rows": 15, "insert": 3, "reader": 5}
"""Those that `hive_acid.transactions.transaction` has.

- rows: a shared-write lock on the table, whose lists are as rows to it: those who change others of them do not conflict
"""

LINGERING_ROUND_S = 0.7
"""A transaction that lingers stays open for some such rounds, alive, so that housekeeping goes on around it."""


@dataclass(frozen=True)
class Plan:
    """One transaction."""

    kind: str
    reads: tuple[Key, ...]
    writes: tuple[Key, ...]
    twice: bool = False
    """Each list is appended to by two statements."""
    abort: bool = False
    """Not committed in the end."""
    pause_s: float = 0.0
    """How long the client stops, as a machine may,"""
    pauses_early: bool = False
    """before it writes, else before it commits."""
    rounds: int = 0
    """How often it sleeps a while, tells that it lives, and reads everything again."""

    @property
    def tables(self) -> list[str]:
        """The tables written to."""
        return sorted({key.table for key in self.writes})

    def pause(self) -> None:
        """Stop for as long as it says."""
        time.sleep(self.pause_s)


def make_plan(
    chance: random.Random,
    keyspace: Keyspace,
    kinds: Mapping[str, int],
    *,
    pause_s: float,
    pause_rate: float,
    lingering_rate: float,
) -> Plan:
    """Some transaction; `pause_rate` of them pause for about `pause_s`, `lingering_rate` have several rounds."""
    kind = chance.choices(list(kinds), list(kinds.values()))[0]
    rounds = chance.randint(2, 8) if chance.random() < lingering_rate else 0
    reads = keyspace.choose(chance, chance.randint(2, 4) if kind == "reader" else chance.randint(0, 2))
    if kind == "reader":
        return Plan(kind, tuple(reads), (), rounds=rounds)
    if kind == "insert":
        return Plan(kind, (), tuple(keyspace.choose(chance, chance.randint(1, 2))), abort=chance.random() < 0.1)
    writes = keyspace.choose(chance, 1 if chance.random() < 0.7 else 2)
    if kind == "dynamic":  # one statement writes to one table
        writes = keyspace.choose(chance, len(writes), writes[0].table)
    return Plan(
        kind,
        tuple(key for key in reads if key not in writes),
        tuple(writes),
        twice=chance.random() < 0.1,
        abort=chance.random() < 0.04,
        pause_s=pause_s * chance.uniform(0.8, 1.5) if chance.random() < pause_rate else 0.0,
        pauses_early=chance.random() < 0.5,
        rounds=rounds,
    )
