"""Chooses the next step of a random walk: mostly sensible ones, some foolish ones, all of them from the seed."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from metastore.txn.states import TxnState
from tests.walk.model import Model
from tests.walk.verbs import DB, Step
from tests.walk.walk import HOUSE

CLIENTS = ("ann", "ben", "cid", "dan", "eve")
TABLES = ("a", "a", "b", "b", "c", "A")
"""Few, so that everybody meets everybody; a name in capitals is the same table."""
PARTITIONS = ("p=1", "p=2", "P=1")
KINDS = ("DEFAULT",) * 8 + ("READ_ONLY", "COMPACTION", "MATER_VIEW_REBUILD")
UNKNOWN = 10**9
FEWEST_OPEN, MOST_OPEN = 6, 14
MOST_REQUESTS = 16

WEIGHTS = {
    "open": 14, "commit": 15, "abort": 3, "abort_all": 1, "heartbeat": 3, "heartbeat_range": 2, "conflict": 3,
    "add_partitions": 4, "open_txns": 2, "open_txns_but": 2, "snapshot": 3, "info": 1, "allocate": 12,
    "max_write_id": 1, "seed": 1, "write_ids": 10, "lock": 20, "check": 10, "unlock": 4, "locks": 5,
    "time_out": 1, "expire_locks": 1,
}  # fmt: skip


KINDS_OF_LOCK = (("r", "ssi"),) * 3 + (("w", "iuud"),) * 5 + (("x", "udi"), ("e", "un"))
CROWDED = ("commit", "commit", "commit", "lock", "lock", "allocate", "check", "unlock", "abort")
"""Verbs of which many come at the same time."""


class Chooser:
    """The walk of one seed."""

    def __init__(self, seed: int, *, with_housekeeping: bool = False) -> None:
        self._chance = random.Random(seed)
        self._with_housekeeping = with_housekeeping
        self._txns: list[tuple[str, str]] = []  # reference and the client who opened it
        self._requests: list[tuple[str, Any]] = []  # reference and its transaction's, or 0
        self._standing: list[tuple[str, Any]] = []  # those of them that are on record now
        self._snapshots: list[tuple[str, str]] = []  # reference and its transaction's
        self._named = 0

    def group(self, size: int, model: Model, known: Mapping[str, Any]) -> list[Step]:
        """Steps of different clients to be sent together, often all of one verb: then they are in each other's way.

        What the server does by itself comes alone.
        """
        verb = self._chance.choice(CROWDED) if size > 1 and self._chance.random() < 0.5 else None
        steps: list[Step] = []
        for client in self._chance.sample(CLIENTS, size):
            step = self.step(model, known, verb)
            if step.client == HOUSE:
                return steps or [step]
            steps.append(replace(step, client=client) if size > 1 else step)
        return steps

    def step(self, model: Model, known: Mapping[str, Any], verb: str | None = None) -> Step:
        """The next step, of this verb if one is given, with an eye to where the model is now."""
        if self._with_housekeeping and verb is None and self._chance.random() < 0.02:
            return Step(HOUSE, "keep_house", {})
        open_ids = [txn_id for txn_id, txn in model.txns.items() if txn.state is TxnState.OPEN]
        if len(open_ids) < FEWEST_OPEN and self._chance.random() < 0.5:
            verb = "open"
        elif len(open_ids) > MOST_OPEN:
            verb = self._chance.choice(("commit", "commit", "abort", "abort_all"))
        elif len(model.requests) > MOST_REQUESTS:
            verb = self._chance.choice(("commit", "unlock", "unlock", "abort", "check"))
        elif verb is None:
            verb = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if verb == "time_out":
            txns = [ref for ref, _ in self._txns if known.get(ref) in open_ids][-3:]
            return Step(HOUSE, verb, {"txn_ids": (self._chance.choice(txns),) if txns else ()})
        if verb == "expire_locks":
            locks = [ref for ref, txn in self._requests if not txn and known.get(ref) in model.requests]
            return Step(HOUSE, verb, {"lock_ids": tuple(locks[:1])})
        live = [(ref, client) for ref, client in self._txns if known.get(ref) in open_ids]
        self._standing = [one for one in self._requests if known.get(one[0]) in model.requests]
        return getattr(self, f"_{verb}")(live)

    # --- who and what ----------------------------------------------------------------------------

    def _client(self) -> str:
        return self._chance.choice(CLIENTS)

    def _name(self, kind: str) -> str:
        self._named += 1
        return f"${kind}{self._named}"

    def _txn(self, live: list[tuple[str, str]]) -> tuple[Any, str]:
        """A transaction, most often an open one, and its client."""
        dice = self._chance.random()
        if dice < 0.86 and live:
            return self._chance.choice(live[-8:])
        if dice < 0.97 and self._txns:
            return self._chance.choice(self._txns[-15:])
        return UNKNOWN, self._client()

    def _lock_of(self) -> tuple[Any, Any]:
        dice = self._chance.random()
        if dice < 0.85 and self._standing:
            return self._chance.choice(self._standing)
        if dice < 0.97 and self._requests:
            return self._chance.choice(self._requests[-10:])
        return UNKNOWN, 0

    def _table(self) -> str:
        return self._chance.choice(TABLES)

    # --- transactions ----------------------------------------------------------------------------

    def _open(self, live: list[tuple[str, str]]) -> Step:
        number = self._chance.choice((1, 1, 1, 2, 3))
        client = self._client()
        names = tuple(self._name("t") for _ in range(number))
        self._txns += [(name, client) for name in names]
        return Step(client, "open", {"number": number, "kind": self._chance.choice(KINDS)}, names)

    def _commit(self, live: list[tuple[str, str]]) -> Step:
        txn, client = self._txn(live)
        return Step(client, "commit", {"txn": txn, "exclusive": self._chance.choice((None, None, False, True))})

    def _abort(self, live: list[tuple[str, str]]) -> Step:
        txn, client = self._txn(live)
        return Step(client, "abort", {"txn": txn})

    def _abort_all(self, live: list[tuple[str, str]]) -> Step:
        txns = tuple(self._txn(live)[0] for _ in range(self._chance.randint(1, 3)))
        return Step(self._client(), "abort_all", {"txns": txns})

    def _heartbeat(self, live: list[tuple[str, str]]) -> Step:
        txn, client = self._txn(live)
        lock = self._lock_of()[0]
        chosen = self._chance.choice(((txn, 0), (0, lock), (txn, lock), (0, 0)))
        return Step(client, "heartbeat", {"txn": chosen[0], "lock": chosen[1]})

    def _heartbeat_range(self, live: list[tuple[str, str]]) -> Step:
        first = self._chance.randint(1, max(1, self._named))
        return Step(self._client(), "heartbeat_range", {"first": first, "last": first + self._chance.randint(-1, 9)})

    def _conflict(self, live: list[tuple[str, str]]) -> Step:
        if not live:
            return self._open(live)
        txn, client = self._chance.choice(live)
        return Step(client, "conflict", {"txn": txn})

    def _add_partitions(self, live: list[tuple[str, str]]) -> Step:
        txn, client = self._txn(live)
        partitions = tuple(self._chance.choice(PARTITIONS) for _ in range(self._chance.randint(1, 2)))
        arguments = {"txn": txn, "table": self._table(), "partitions": partitions}
        return Step(client, "add_partitions", {**arguments, "operation": self._chance.choice("iuud")})

    def _open_txns(self, live: list[tuple[str, str]]) -> Step:
        return Step(self._client(), "open_txns", {})

    def _open_txns_but(self, live: list[tuple[str, str]]) -> Step:
        kinds = tuple(self._chance.sample(("DEFAULT", "READ_ONLY", "COMPACTION"), self._chance.randint(0, 2)))
        return Step(self._client(), "open_txns_but", {"kinds": kinds})

    def _snapshot(self, live: list[tuple[str, str]]) -> Step:
        if not live:
            return self._open(live)
        txn, client = self._chance.choice(live)
        name = self._name("s")
        self._snapshots.append((name, txn))
        return Step(client, "snapshot", {"txn": txn}, (name,))

    def _info(self, live: list[tuple[str, str]]) -> Step:
        return Step(self._client(), "info", {})

    # --- write ids -------------------------------------------------------------------------------

    def _allocate(self, live: list[tuple[str, str]]) -> Step:
        chosen = [self._txn(live) for _ in range(self._chance.choice((1, 1, 1, 2, 3)))]
        txns = tuple(dict.fromkeys(txn for txn, _ in chosen))
        arguments = {"table": self._table(), "txns": txns, "reallocate": self._chance.random() < 0.08}
        return Step(chosen[0][1], "allocate", arguments)

    def _max_write_id(self, live: list[tuple[str, str]]) -> Step:
        return Step(self._client(), "max_write_id", {"table": self._table()})

    def _seed(self, live: list[tuple[str, str]]) -> Step:
        table = self._chance.choice((*TABLES, "d", "e", "f", "g"))
        return Step(self._client(), "seed", {"table": table, "last": self._chance.randint(0, 9)})

    def _write_ids(self, live: list[tuple[str, str]]) -> Step:
        tables = tuple(self._table() for _ in range(self._chance.randint(1, 2)))
        snapshot, as_of = None, None
        dice = self._chance.random()
        # Housekeeping forgets what only the snapshots of ended transactions could tell apart.
        known = [name for name, txn in self._snapshots[-9:] if not self._with_housekeeping or txn in dict(live)]
        if dice < 0.6 and known:
            snapshot = self._chance.choice(known[-3:])
        elif dice < 0.75 and not self._with_housekeeping:
            as_of = self._chance.randint(1, 12)
        return Step(self._client(), "write_ids", {"tables": tables, "snapshot": snapshot, "as_of": as_of})

    # --- locks -----------------------------------------------------------------------------------

    def _lock(self, live: list[tuple[str, str]]) -> Step:
        txn, client = self._txn(live) if self._chance.random() < 0.92 else (0, self._client())
        wanted = tuple(self._wanted() for _ in range(self._chance.choice((1, 1, 2, 3))))
        options = tuple(
            option
            for option, chance in (("zero wait", 0.15), ("ctas", 0.08), ("dynamic", 0.1), ("not transactional", 0.08))
            if self._chance.random() < chance
        )
        name = self._name("l")
        self._requests.append((name, txn))
        return Step(client, "lock", {"wanted": wanted, "txn": txn, "options": options}, (name,))

    def _wanted(self) -> str:
        if self._chance.random() < 0.04:
            return self._chance.choice((f"r {DB} n", f"r {DB} n", f"x {DB} n", f"e {DB} n"))
        target = f"{DB}/{self._table()}"
        if self._chance.random() < 0.5:
            target += "/" + self._chance.choice(PARTITIONS)
        letter, operations = self._chance.choice(KINDS_OF_LOCK)
        return f"{letter} {target} {self._chance.choice(operations)}"

    def _check(self, live: list[tuple[str, str]]) -> Step:
        lock, txn = self._lock_of()
        return Step(self._client(), "check", {"lock": lock, "txn": txn if self._chance.random() < 0.8 else 0})

    def _unlock(self, live: list[tuple[str, str]]) -> Step:
        return Step(self._client(), "unlock", {"lock": self._lock_of()[0]})

    def _locks_shown(self) -> dict[str, Any]:
        some = self._chance.random() < 0.3
        return {"db": DB if some else None, "table": self._table() if some else None, "partition": None, "txn": None}

    def _locks(self, live: list[tuple[str, str]]) -> Step:
        return Step(self._client(), "locks", self._locks_shown())
