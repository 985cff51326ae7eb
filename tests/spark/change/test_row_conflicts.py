"""Transactions that have changed other rows of one partition all commit; of two that changed one row, the first."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import WriteConflictError
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table

Rows = dict[int, int]
"""A table ``d.t`` (id, n)."""

FORMS = {
    "plain": "(id INT, n INT)",
    "partitioned": "(id INT, n INT) PARTITIONED BY (p INT)",
    "bucketed": "(id INT, n INT) CLUSTERED BY (id) INTO 2 BUCKETS",
}


@pytest.fixture
def writers(spark: SparkSession, acid: AcidSession) -> Iterator[list[AcidSession]]:
    """Three sessions beside `acid`, each with a connection of its own."""
    made = [hive_acid.spark.session(spark, acid.connection.uri) for _ in range(3)]
    yield made
    for one in made:
        one.close()


def fill(acid: AcidSession, form: str = "plain", number: int = 6) -> Rows:
    acid.sql(f"CREATE TABLE d.t {FORMS[form]} STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    more = ", 1" if form == "partitioned" else ""
    for some in (range(number // 2), range(number // 2, number)):
        acid.sql(f"INSERT INTO d.t VALUES {', '.join(f'({one}, 0{more})' for one in some)}")
    return dict.fromkeys(range(number), 0)


def seen(acid: AcidSession) -> Rows:
    found = acid.table("d.t").select("id", "n").collect()
    assert len({row.id for row in found}) == len(found)
    return {row.id: row.n for row in found}


def condition(ids: frozenset[int]) -> str:
    return f"id IN ({', '.join(map(str, sorted(ids)))})"


def update(acid: AcidSession, ids: frozenset[int]) -> None:
    acid.update("d.t", {"n": "n + 1"}, where=condition(ids))


def delete(acid: AcidSession, ids: frozenset[int]) -> None:
    acid.delete("d.t", condition(ids))


def merge(acid: AcidSession, ids: frozenset[int]) -> None:
    values = ", ".join(f"({one})" for one in sorted(ids))
    acid.sql(
        f"MERGE INTO d.t USING (SELECT * FROM VALUES {values} AS v (k)) s ON d.t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET n = d.t.n + 1"
    )


def upsert(acid: AcidSession, ids: frozenset[int]) -> None:
    more = ", 1" if len(acid.table("d.t").columns) == 3 else ""
    values = ", ".join(f"({one})" for one in sorted(ids))
    acid.sql(
        f"MERGE INTO d.t USING (SELECT * FROM VALUES {values} AS v (k)) s ON d.t.id = s.k "
        f"WHEN MATCHED THEN UPDATE SET n = d.t.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.k, 0{more})"
    )


def changed(rows: Rows, kind: Callable[..., None], ids: frozenset[int]) -> Rows:
    """What a change makes of rows."""
    if kind is delete:
        return {one: n for one, n in rows.items() if one not in ids}
    new = dict.fromkeys(ids - rows.keys(), 0) if kind is upsert else {}
    return {one: n + (one in ids) for one, n in rows.items()} | new


KINDS: list[Callable[[AcidSession, frozenset[int]], None]] = [update, delete, merge, upsert, upsert]


def orders(writers: int) -> list[tuple[int, ...]]:
    """All orders in which so many writers can begin and commit; the first time that one is named it begins."""
    return sorted(set(itertools.permutations(sorted([*range(writers)] * 2))))


def play(
    acid: AcidSession, writers: list[AcidSession], rows: Rows, order: tuple[int, ...], chance: random.Random
) -> Rows:
    """Let writers change rows in some order beside compactions and inserts; what there is then.

    The oracle is "the first to commit wins", row by row: a writer commits if, and only if, nobody that committed since
    it began has changed a row that it has changed, or added one that it brings.
    """
    ids_of = {one: frozenset(chance.sample([*rows, 10, 11], chance.randint(1, 2))) for one in sorted(set(order))}
    does = {one: (chance.choice(KINDS), ids) for one, ids in ids_of.items()}
    begun: dict[int, tuple[AbstractContextManager[Any], int, set[int]]] = {}
    committed: list[frozenset[int]] = []
    for one in order:
        kind, ids = does[one]
        if one not in begun:
            block = writers[one].transaction()
            block.__enter__()
            begun[one] = block, len(committed), set(rows)
            if kind is not upsert:
                does[one] = kind, ids & rows.keys()  # others may have deleted some before
            kind(writers[one], ids)
            continue
        begun_block, since, there = begun[one]
        has_changed_same = any(ids & there & theirs for theirs in committed[since:])
        has_added_same = kind is upsert and not rows.keys().isdisjoint(ids - there)
        if has_changed_same or has_added_same:
            with pytest.raises(
                WriteConflictError, match=r"have changed the rows? .* \(id = \d+, n = \d+|has added a row"
            ):
                begun_block.__exit__(None, None, None)
        else:
            begun_block.__exit__(None, None, None)
            committed.append(ids)
            rows = changed(rows, kind, ids)
        assert seen(acid) == rows
        if (extra := chance.random()) < 0.15:
            compact_table(acid.spark, acid, "d.t", chance.choice(["minor", "major"]))
        elif extra < 0.3:
            new = max(rows, default=0) + 100
            acid.insert("d.t", acid.spark.sql(f"SELECT {new} AS id, 0 AS n, 1 AS p").select(*acid.table("d.t").columns))
            rows = {**rows, new: 0}
    return rows


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", orders(2), ids=str)
def test_of_two_writers(acid: AcidSession, writers: list[AcidSession], order: tuple[int, ...], form: str) -> None:
    rows = fill(acid, form)
    chance = random.Random(str((order, form)))
    for _ in range(2):
        rows = play(acid, writers, rows, order, chance)
        if len(rows) < 4:
            break


@pytest.mark.parametrize("order", orders(3), ids=str)
def test_of_three_writers(acid: AcidSession, writers: list[AcidSession], order: tuple[int, ...]) -> None:
    chance = random.Random(str(order))
    rows = fill(acid, chance.choice(list(FORMS)))
    play(acid, writers, rows, order, chance)
