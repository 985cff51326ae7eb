"""Transactions that have changed other rows of one partition all commit; of two that changed one row, the first."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.errors import WriteConflictError
from hive_acid.format.progress import last_batch
from hive_acid.spark import AcidSession
from hive_acid.spark.verbs.stream import SinkPlan
from tests.spark.compaction import compact_table
from tests.values.sessions.under import under

Rows = dict[int, int]
"""A table ``d.t`` (id, n)."""

FORMS = {
    "plain": "(id INT, n INT)",
    "partitioned": "(id INT, n INT) PARTITIONED BY (p INT)",
    "bucketed": "(id INT, n INT) CLUSTERED BY (id) INTO 2 BUCKETS",
}


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


def zeros(acid: AcidSession, ids: frozenset[int]) -> str:
    """A query of rows that are new."""
    more = ", 1" if len(acid.table("d.t").columns) == 3 else ""
    return f"SELECT * FROM VALUES {', '.join(f'({one}, 0{more})' for one in sorted(ids))}"


def replace_where(acid: AcidSession, ids: frozenset[int]) -> None:
    acid.sql(f"INSERT INTO d.t REPLACE WHERE {condition(ids)} {zeros(acid, ids)}")


def replace_using(acid: AcidSession, ids: frozenset[int]) -> None:
    acid.sql(f"INSERT INTO d.t REPLACE USING (id) {zeros(acid, ids)}")


def replace_on(acid: AcidSession, ids: frozenset[int]) -> None:
    acid.sql(f"INSERT INTO d.t t REPLACE ON t.id = s.col1 ({zeros(acid, ids)}) s")


def overwrite_where(acid: AcidSession, ids: frozenset[int]) -> None:
    rows = acid.spark.sql(zeros(acid, ids)).toDF(*acid.table("d.t").columns)
    acid.overwrite("d.t", rows, where=condition(ids))


REPLACING = (replace_where, replace_using, replace_on, overwrite_where)


def changed(rows: Rows, kind: Callable[..., None], ids: frozenset[int]) -> Rows:
    """What a change makes of rows."""
    if kind is delete:
        return {one: n for one, n in rows.items() if one not in ids}
    if kind in REPLACING:
        return rows | dict.fromkeys(ids, 0)
    new = dict.fromkeys(ids - rows.keys(), 0) if kind is upsert else {}
    return {one: n + (one in ids) for one, n in rows.items()} | new


KINDS: list[Callable[[AcidSession, frozenset[int]], None]] = [update, delete, merge, upsert, upsert, *REPLACING]


class InBlock:
    """A change in a transaction that has begun."""

    def __init__(self, acid: AcidSession, kind: Callable[..., None], ids: frozenset[int]) -> None:
        self._block = acid.transaction()
        self._block.__enter__()
        kind(acid, ids)

    def end(self) -> None:
        self._block.__exit__(None, None, None)


BATCHES = itertools.count()
ROWS_OF_BATCHES = 1000
"""The value of all rows of a batch is its number and this."""


class Batch:
    """A batch of a sink that upserts: written, and not committed before it is to end."""

    def __init__(self, acid: AcidSession, ids: frozenset[int], query: str) -> None:
        self._acid, self.query, self.number = acid, query, next(BATCHES)
        self.rows = dict.fromkeys(ids, ROWS_OF_BATCHES + self.number)
        given = [(one, n, 1) for one, n in self.rows.items()]
        frame = acid.spark.createDataFrame(given, "id int, n int, p int").select(*acid.table("d.t").columns)
        sink = acid.sink("d.t", query=query, mode="upsert", keys=["id"])
        self._give = lambda: sink(frame, self.number)
        self._written, self._goes_on = threading.Event(), threading.Event()
        self._attempts = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        _BATCH_OF[self._thread] = self
        self._thread.start()
        assert self._written.wait(120)

    def _run(self) -> None:
        try:
            self._give()
        except BaseException as error:
            self._failure = error
        finally:
            self._written.set()

    def wrote(self) -> None:
        """Called in its thread, where it is about to commit."""
        self._attempts += 1
        self._written.set()
        assert self._goes_on.wait(120)

    def end(self) -> int:
        """Commit, and be given again, as after a crash of the query; how often it was tried."""
        self._goes_on.set()
        self._thread.join(120)
        assert self._failure is None, self._failure
        self._give()
        assert last_batch(self._acid.connection.table("d", "t").parameters, self.query) == self.number
        return self._attempts


_BATCH_OF: dict[threading.Thread, Batch] = {}


@pytest.fixture
def batches_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    write = SinkPlan.write

    def waiting(plan: Any, *arguments: Any) -> None:
        write(plan, *arguments)
        if batch := _BATCH_OF.get(threading.current_thread()):
            batch.wrote()

    monkeypatch.setattr(SinkPlan, "write", waiting)


def orders(writers: int) -> list[tuple[int, ...]]:
    """All orders in which so many writers can begin and commit; the first time that one is named it begins."""
    return sorted(set(itertools.permutations(sorted([*range(writers)] * 2))))


def play(
    acid: AcidSession,
    writers: list[AcidSession],
    rows: Rows,
    order: tuple[int, ...],
    chance: random.Random,
    batches: float = 0.0,
) -> Rows:
    """Let writers change rows in some order beside compactions and inserts; what there is then.

    So many of them are `batches` of sinks, of which one that meets a change of its rows is tried again.

    The oracle is "the first to commit wins", row by row: a writer commits if, and only if, nobody that committed since
    it began has changed a row that it has changed, or added one that it brings.
    """
    ids_of = {one: frozenset(chance.sample([*rows, 10, 11], chance.randint(1, 2))) for one in sorted(set(order))}
    does = {one: (chance.choice(KINDS), ids) for one, ids in ids_of.items()}
    in_batches = {one for one in does if chance.random() < batches}
    begun: dict[int, tuple[InBlock | Batch, int, set[int]]] = {}
    committed: list[frozenset[int]] = []
    for one in order:
        kind, ids = does[one]
        if one not in begun:
            inserts = kind is upsert or kind in REPLACING or one in in_batches
            if not inserts:
                ids &= rows.keys()  # others may have deleted some before
                kind, ids = (kind, ids) if ids else (upsert, ids_of[one])
                does[one] = kind, ids
            begins = len(committed), set(rows)
            is_batch = one in in_batches
            change = Batch(writers[one], ids, f"q{one}") if is_batch else InBlock(writers[one], kind, ids)
            begun[one] = change, *begins
            continue
        change, since, there = begun[one]
        inserts = kind is upsert or kind in REPLACING or one in in_batches
        has_changed_same = any(ids & there & theirs for theirs in committed[since:])
        has_added_same = inserts and not rows.keys().isdisjoint(ids - there)
        is_conflict = has_changed_same or has_added_same
        if isinstance(change, Batch):
            assert change.end() == (2 if is_conflict else 1)
            committed.append(ids)
            rows = rows | change.rows
        elif is_conflict:
            with pytest.raises(
                WriteConflictError, match=r"have changed the rows? .* \(id = \d+, n = \d+|has added a row"
            ):
                change.end()
        else:
            change.end()
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", orders(2), ids=str)
@pytest.mark.usefixtures("batches_wait")
def test_of_two_of_which_some_are_batches(
    acid: AcidSession, writers: list[AcidSession], order: tuple[int, ...], form: str
) -> None:
    rows = fill(acid, form)
    chance = random.Random(str((order, form)))
    for batches in (1.0, 0.5):
        rows = play(acid, writers, rows, order, chance, batches)


@pytest.mark.parametrize("order", orders(3), ids=str)
@pytest.mark.usefixtures("batches_wait")
def test_of_three_of_which_some_are_batches(
    acid: AcidSession, writers: list[AcidSession], order: tuple[int, ...]
) -> None:
    chance = random.Random(f"batches {order}")
    rows = fill(acid, chance.choice(list(FORMS)))
    play(acid, writers, rows, order, chance, 0.6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", REPLACING)
def test_of_two_that_replace_what_is_not_there_one_commits(
    acid: AcidSession, writers: list[AcidSession], kind: Callable[..., None], form: str
) -> None:
    acid.sql(f"CREATE TABLE d.t {FORMS[form]} STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    both = [InBlock(one, kind, frozenset({1, 2})) for one in writers[:2]]
    other = InBlock(writers[2], kind, frozenset({3}))
    both[0].end()
    other.end()
    with pytest.raises(WriteConflictError, match="has added a row that the statement would have found"):
        both[1].end()
    assert seen(acid) == {1: 0, 2: 0, 3: 0}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO d.t REPLACE WHERE id IN (SELECT k FROM d.keys) SELECT k, 5 FROM d.keys",
        "INSERT INTO d.t t REPLACE ON t.id = k AND t.id IN (SELECT k FROM d.keys) (SELECT k, 5 FROM d.keys) s",
        "MERGE INTO d.t USING d.keys s ON d.t.id = s.k AND d.t.id IN (SELECT k FROM d.keys) "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.k, 5)",
    ],
    ids=["replace where", "replace on", "merge"],
)
def test_a_condition_with_a_query_is_not_asked_again(
    acid: AcidSession, writers: list[AcidSession], statement: str
) -> None:
    """What it names is not there any more at the commit: it conflicts with all who change the partition."""
    rows = fill(acid)
    acid.sql("CREATE TABLE d.keys (k INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid.sql("INSERT INTO d.keys VALUES (10)")
    with pytest.raises(WriteConflictError, match="new rows cannot be compared"), writers[0].transaction():
        writers[0].sql(statement)
        update(writers[1], frozenset({1}))
    assert seen(acid) == rows | {1: 1}
    writers[0].sql(statement)
    assert seen(acid) == rows | {1: 1, 10: 5}


def test_a_condition_is_not_asked_under_other_settings(acid: AcidSession, writers: list[AcidSession]) -> None:
    rows = fill(acid)
    first, second = (InBlock(one, upsert, frozenset({id_})) for one, id_ in zip(writers, (10, 11), strict=False))
    update(writers[2], frozenset({1}))
    first.end()
    with (
        under(acid.spark, {"spark.sql.ansi.enabled": "false"}),
        pytest.raises(WriteConflictError, match="settings have been changed since the statement"),
    ):
        second.end()
    assert seen(acid) == rows | {1: 1, 10: 0}
