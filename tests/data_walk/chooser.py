"""Chooses the next step of a walk from the seed, with an eye to where the walk is."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from tests.data_walk.conditions import Condition, fulfilling, some_assignments, some_condition
from tests.data_walk.failures import FAILURES
from tests.data_walk.tables import EXTRAS, KEY_VALUES, Row, Shape, key_value, value_of
from tests.data_walk.verbs import LOCKING, Clause, Step
from tests.data_walk.walk import WRITERS, Walk

TABLES = ("d.a", "d.b")
WEIGHTS = {
    "insert": 14, "update": 12, "delete": 8, "merge": 12, "overwrite": 6, "replace": 4, "multi_insert": 5,
    "load_data": 5, "truncate": 2, "begin": 8, "commit": 8, "abort": 3, "compact": 8, "clean": 3, "hold": 5, "look": 3,
    "release": 2, "add_column": 2, "rename_column": 2, "fail": 8, "upsert": 12, "duplicate": 5,
}  # fmt: skip
OF_KEYS = ("upsert", "duplicate")
"""Verbs on tables with a primary key."""
ALONE = ("load_data", "add_column", "rename_column")
"""Verbs that are not part of a transaction: nobody may be in the middle of one."""
WITHIN = (
    "insert",
    "update",
    "delete",
    "merge",
    "overwrite",
    "replace",
    "upsert",
    "duplicate",
    "truncate",
    "fail",
    "commit",
    "commit",
    "abort",
)
"""What may be done by the writer who has locked out the others."""


class Chooser:
    """The walk of one seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._next_id = 0
        self._writer = ""

    def shapes(self) -> dict[str, Shape]:
        return {name: Shape.random(self._chance) for name in TABLES}

    def step(self, walk: Walk) -> Step:
        """The next step."""
        writer = self._chance.choice(WRITERS)
        while True:
            verb = self._chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            if walk.alone is not None:
                verb, writer = self._chance.choice(WITHIN), walk.alone
            if verb in ("commit", "abort"):
                if not walk.blocks:
                    continue
                writer = self._chance.choice(list(walk.blocks))
            if verb == "begin" and writer in walk.blocks:
                continue
            keyed = [name for name in TABLES if walk.model.columns[name].is_keyed]
            if verb in OF_KEYS and not keyed:
                continue
            if verb in ALONE and walk.blocks:
                continue
            if verb in LOCKING and walk.blocks.keys() - {writer}:
                continue
            if verb in ("look", "release") and not walk.held:
                continue
            break
        self._writer = writer
        table = self._chance.choice(keyed if verb in OF_KEYS else TABLES)
        if verb in ("commit", "abort", "clean", "look", "release"):
            return Step(writer, verb, {})
        if verb == "begin":
            return Step(writer, verb, {"by_sql": self._chance.random() < 0.5})
        return Step(writer, verb, getattr(self, f"_{verb}")(walk, table))

    # --- arguments -----------------------------------------------------------------------------

    def _insert(self, walk: Walk, table: str) -> dict[str, Any]:
        rows = self._rows(walk, table, self._chance.choice((0, 1, 5, 20)))
        return {"table": table, "rows": rows, "tasks": self._chance.choice((1, 3))}

    def _update(self, walk: Walk, table: str) -> dict[str, Any]:
        assignments = some_assignments(self._chance, walk.model.columns[table])
        return {"table": table, "assignments": assignments, "where": self._where(walk, table), **self._by()}

    def _delete(self, walk: Walk, table: str) -> dict[str, Any]:
        return {"table": table, "where": some_condition(self._chance, walk.model.columns[table]), **self._by()}

    def _by(self) -> dict[str, Any]:
        return {"by_client": self._chance.random() < 0.6}

    def _overwrite(self, walk: Walk, table: str) -> dict[str, Any]:
        rows = self._rows(walk, table, self._chance.choice((0, 3, 8)))
        partition = self._partition(walk, table) if self._chance.random() < 0.5 else {}
        return {"table": table, "rows": rows, "partition": partition or None}

    def _replace(self, walk: Walk, table: str) -> dict[str, Any]:
        where = some_condition(self._chance, walk.model.columns[table])
        rows = self._rows(walk, table, self._chance.choice((0, 2, 7)))
        return {
            "table": table,
            "rows": [fulfilling(self._chance, where, row, self._id) for row in rows],
            "where": where,
        }

    def _truncate(self, walk: Walk, table: str) -> dict[str, Any]:
        content = walk.model.content[table]
        keys = walk.model.columns[table].keys
        if not keys or not content or self._chance.random() < 0.3:
            return {"table": table, "partition": None}
        row = self._chance.choice(list(content.values())).row
        return {"table": table, "partition": {key: row[key] for key in keys}}

    def _load_data(self, walk: Walk, table: str) -> dict[str, Any]:
        rows = self._rows(walk, table, self._chance.choice((1, 6)))
        return {
            "table": table,
            "rows": rows,
            "partition": self._partition(walk, table),
            "copy": self._chance.random() < 0.5,
        }

    def _multi_insert(self, walk: Walk, table: str) -> dict[str, Any]:
        rows = [{"id": self._id(), "v": value_of(self._chance, "int")} for _ in range(8)]
        at = (Condition("below", "v", 50), Condition("mod", "id", (2, 0)))
        return {"tables": TABLES, "rows": rows, "at": at}

    def _merge(self, walk: Walk, table: str) -> dict[str, Any]:
        columns = walk.model.columns[table]
        known = self._known(walk, table)
        old = self._chance.sample(known, min(len(known), self._chance.randint(0, 8)))
        rows = self._rows(walk, table, self._chance.randint(0, 5))
        rows += [{**row, "id": number} for number, row in zip(old, self._rows(walk, table, len(old)), strict=True)]
        clauses: list[Clause] = []
        if self._chance.random() < 0.8:
            clauses.append(Clause("matched", some_condition(self._chance, columns), "delete"))
        if self._chance.random() < 0.5:
            clauses.append(
                Clause("matched", some_condition(self._chance, columns), some_assignments(self._chance, columns))
            )
        if self._chance.random() < 0.5:
            clauses.append(Clause("matched", None, None))
        if self._chance.random() < 0.8 or not clauses:
            clauses.append(Clause("new", self._where(walk, table), None))
        if self._chance.random() < 0.4:
            action = self._chance.choice(("delete", some_assignments(self._chance, columns)))
            clauses.append(Clause("by source", some_condition(self._chance, columns), action))
        return {"table": table, "rows": rows, "clauses": tuple(clauses), **self._by()}

    def _upsert(self, walk: Walk, table: str) -> dict[str, Any]:
        """Of rows that are there, or were, for whomever, and of new ones."""
        ids = {*walk.model.content[table], *self._known(walk, table)}
        ids |= {self._chance.randint(1, self._next_id) for _ in range(3)} if self._next_id else set()
        old = self._chance.sample(sorted(ids), min(len(ids), self._chance.randint(0, 6)))
        rows = self._rows(walk, table, len(old) + self._chance.randint(0, 3))
        rows = [{**row, "id": number} for row, number in zip(rows, old, strict=False)] + rows[len(old) :]
        return {"table": table, "rows": rows, "does": self._chance.choice(("all", "v", "nothing")), **self._by()}

    def _duplicate(self, walk: Walk, table: str) -> dict[str, Any]:
        there = [*walk.model.content[table]]
        if self._writer in walk.blocks:
            there = [number for number in there if number in walk.blocks[self._writer][1].own[table]]
        rows = self._rows(walk, table, self._chance.randint(2, 4))
        wrong = self._chance.choice([None, rows[0]["id"], *self._chance.sample(there, min(3, len(there)))])
        return {"table": table, "rows": [*rows[:-1], {**rows[-1], "id": wrong}], **self._by()}

    def _known(self, walk: Walk, table: str) -> list[int]:
        """Ids of rows that the writer sees or has deleted. One that only others see would be new to its MERGE, and
        there twice if it came into another partition, where there is no conflict.
        """
        if self._writer not in walk.blocks:
            return [*walk.model.content[table]]
        _, txn = walk.blocks[self._writer]
        return [*dict.fromkeys((*txn.seen[table], *txn.own[table]))]

    def _fail(self, walk: Walk, table: str) -> dict[str, Any]:
        kinds = [kind for kind in FAILURES if kind not in LOCKING or not walk.blocks.keys() - {self._writer}]
        rows = self._rows(walk, table, self._chance.choice((1, 4)))
        return {"table": table, "kind": self._chance.choice(kinds), "rows": rows, **self._by()}

    def _compact(self, walk: Walk, table: str) -> dict[str, Any]:
        return {"table": table, "kind": self._chance.choice(("minor", "major")), **self._by()}

    def _hold(self, walk: Walk, table: str) -> dict[str, Any]:
        return {"table": table}

    def _add_column(self, walk: Walk, table: str) -> dict[str, Any]:
        return {"table": table, "kind": self._chance.choice(("int", "string", *EXTRAS))}

    def _rename_column(self, walk: Walk, table: str) -> dict[str, Any]:
        roles = list(walk.model.columns[table].types)
        return {"table": table, "role": self._chance.choice(roles), "name": f"r{self._id()}"}

    # --- rows ----------------------------------------------------------------------------------

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id

    def _rows(self, walk: Walk, table: str, number: int) -> list[Row]:
        columns = walk.model.columns[table]
        rows: list[Row] = []
        for _ in range(number):
            row = {role: value_of(self._chance, kind) for role, kind in columns.types.items()}
            row |= {key: key_value(self._chance, kind) for key, kind in columns.keys.items()}
            rows.append({**row, "id": self._id()})
        return rows

    def _partition(self, walk: Walk, table: str) -> Mapping[str, Any]:
        keys = walk.model.columns[table].keys
        some = {key: [one for one in KEY_VALUES[kind] if one is not None] for key, kind in keys.items()}
        return {key: self._chance.choice(values) for key, values in some.items()}

    def _where(self, walk: Walk, table: str) -> Condition | None:
        return some_condition(self._chance, walk.model.columns[table]) if self._chance.random() < 0.9 else None
