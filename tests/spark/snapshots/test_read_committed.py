"""READ COMMITTED: who changes rows waits for others that do, then sees theirs, and never fails by a conflict."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import SqlError, WriteConflictError
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.spark.compaction import compact_table
from tests.waiting import until

COMMITTED = "read committed"


@pytest.fixture
def others(spark: SparkSession, acid: AcidSession) -> Iterator[Callable[..., AcidSession]]:
    """Sessions beside `acid`, each with a connection of its own."""
    made: list[AcidSession] = []

    def session(**settings: Any) -> AcidSession:
        made.append(hive_acid.spark.session(spark, acid.connection.uri, **settings))
        return made[-1]

    yield session
    for one in made:
        one.close()


@pytest.fixture
def committed(others: Callable[..., AcidSession]) -> AcidSession:
    return others(isolation=COMMITTED)


def rows(acid: AcidSession, table: str = "d.t") -> list[tuple[Any, ...]]:
    frame = acid.table(table)
    return sorted(map(tuple, frame.select(*sorted(frame.columns)).collect()))


def counters(acid: AcidSession, number: int = 1, form: str = "plain") -> None:
    """A table ``d.t`` of so many rows (id, n) with n = 0."""
    keys = "PARTITIONED BY (id INT)" if form == "partitioned" else "CLUSTERED BY (id) INTO 2 BUCKETS"
    columns = "(n INT)" if form == "partitioned" else "(id INT, n INT)"
    clause = "" if form == "plain" else keys
    acid.sql(f"CREATE TABLE d.t {columns} {clause} STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid.sql(f"INSERT INTO d.t (id, n) VALUES {', '.join(f'({one}, 0)' for one in range(number))}")


WAYS: dict[str, Callable[[AcidSession], Any]] = {
    "UPDATE": lambda acid: acid.sql("UPDATE d.t SET n = n + 1 WHERE id = 0"),
    "verb": lambda acid: acid.update("d.t", {"n": "n + 1"}, where="id = 0"),
    "MERGE of the same table": lambda acid: acid.sql(
        "MERGE INTO d.t USING (SELECT id, n + 1 AS more FROM d.t WHERE id = 0) s ON d.t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET n = s.more"
    ),
    "UPDATE by a subquery": lambda acid: acid.sql("UPDATE d.t SET n = (SELECT max(n) + 1 FROM d.t) WHERE id = 0"),
    "DELETE and INSERT": lambda acid: delete_and_insert(acid),
    "OVERWRITE": lambda acid: acid.sql("INSERT OVERWRITE TABLE d.t SELECT id, n + 1 FROM d.t"),
}


def delete_and_insert(acid: AcidSession) -> None:
    with acid.transaction(isolation=COMMITTED):
        acid.sql("UPDATE d.t SET n = n + 10 WHERE id = 0")
        acid.sql("UPDATE d.t SET n = n - 9 WHERE id = 0")


@pytest.mark.parametrize("way", WAYS)
def test_writers_of_one_row_lose_nothing_and_none_fails(acid: AcidSession, others: Any, way: str) -> None:
    counters(acid)
    sessions = [others(isolation=COMMITTED) for _ in range(3)]

    def count(session: AcidSession) -> None:
        for _ in range(4):
            WAYS[way](session)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(count, sessions))
    assert rows(acid) == [(0, 12)]


def test_beside_writers_of_snapshot_isolation_nothing_is_lost(acid: AcidSession, others: Any) -> None:
    counters(acid)
    done: list[int] = []

    def count(isolation: str) -> None:
        session = others(isolation=isolation)
        for _ in range(4):
            try:
                session.sql("UPDATE d.t SET n = n + 1 WHERE id = 0")
                done.append(1)
            except WriteConflictError:
                assert isolation == "snapshot"

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(count, ["snapshot", COMMITTED, COMMITTED]))
    assert rows(acid) == [(0, len(done))]
    assert len(done) >= 8


def test_a_statement_waits_and_then_sees_what_it_has_waited_for(acid: AcidSession, committed: AcidSession) -> None:
    counters(acid, 2)
    with acid.transaction():
        acid.update("d.t", {"n": "n + 5"})
        waiting = threading.Thread(target=committed.sql, args=("UPDATE d.t SET n = n * 2 WHERE n > 1",))
        waiting.start()
        until(lambda: any(lock.state == ttypes.LockState.WAITING for lock in locks(acid)))
    waiting.join()
    assert rows(acid) == [(0, 10), (1, 10)]


def locks(acid: AcidSession) -> Any:
    return acid.connection.call("show_locks", ttypes.ShowLocksRequest(dbname="d", tablename="t")).locks or []


def test_each_statement_of_a_block_sees_what_has_committed(acid: AcidSession, committed: AcidSession) -> None:
    counters(acid)
    acid.sql("CREATE TABLE d.u (id INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    with committed.transaction():
        assert rows(committed, "d.u") == []
        acid.sql("INSERT INTO d.u VALUES (1)")
        assert rows(committed, "d.u") == [(1,)]
        assert [row.id for row in committed.sql("SELECT id FROM d.u").collect()] == [1]
        acid.update("d.t", {"n": "n + 1"})
        assert committed.update("d.t", {"n": "n + 1"}) == 1
        acid.sql("INSERT INTO d.t VALUES (7, 7)")
        # What was added since the transaction has changed the table it does not see, and so does not change.
        assert rows(committed) == [(0, 2)]
        assert committed.update("d.t", {"n": "n + 1"}) == 1
    assert rows(acid) == [(0, 3), (7, 7)]


def test_explain_and_the_log_tell_of_locks(
    acid: AcidSession, committed: AcidSession, caplog: pytest.LogCaptureFixture
) -> None:
    counters(acid)
    explained = "EXPLAIN LOCKS UPDATE d.t SET n = 1"
    assert "d.t -> EXCL_WRITE" in str(committed.sql(explained).collect())
    assert "d.t -> SHARED_WRITE" in str(acid.sql(explained).collect())
    caplog.set_level("INFO", "hive_acid")
    with acid.transaction() as holder:
        acid.update("d.t", {"n": "1"})
        waiting = threading.Thread(target=committed.update, args=("d.t", {"n": "n + 1"}))
        waiting.start()
        until(lambda: f"transaction {holder.id} of" in caplog.text)
    waiting.join()
    assert re.search(r"has waited \d+ s for a lock on d\.t: .* holds it since 20", caplog.text)
    assert rows(acid) == [(0, 2)]


def test_by_the_words_of_sql(acid: AcidSession, committed: AcidSession) -> None:
    counters(acid)
    acid.sql("BEGIN ISOLATION LEVEL READ COMMITTED")
    assert rows(acid) == [(0, 0)]
    committed.sql("UPDATE d.t SET n = n + 1")
    acid.sql("UPDATE d.t SET n = n + 1")
    acid.sql("COMMIT")
    assert rows(committed) == [(0, 2)]
    with pytest.raises(SqlError, match="one SNAPSHOT"):
        acid.sql("BEGIN READ ONLY, ISOLATION LEVEL READ COMMITTED")
    with pytest.raises(ValueError, match="'snapshot' or 'read committed'"), acid.transaction(isolation="serializable"):
        pass


def test_rows_that_were_added_first_make_a_later_change_a_conflict(acid: AcidSession, committed: AcidSession) -> None:
    """Deletes of a write id reach no rows of larger ones, so those would stay beside their successors."""
    counters(acid)
    with pytest.raises(WriteConflictError, match="smaller write id"), committed.transaction():
        committed.sql("INSERT INTO d.t VALUES (1, 1)")
        acid.update("d.t", {"n": "n + 1"})
        committed.update("d.t", {"n": "n + 1"})
    assert rows(acid) == [(0, 1)]
    with committed.transaction():
        committed.sql("INSERT INTO d.t VALUES (1, 1)")
        acid.sql("INSERT INTO d.t VALUES (2, 2)")
        committed.update("d.t", {"n": "n + 1"})
    assert rows(acid) == [(0, 2), (1, 2), (2, 2)]


def test_a_deadlock_is_broken_by_name(acid: AcidSession, others: Any) -> None:
    counters(acid, 2)
    acid.sql("CREATE TABLE d.u (id INT, n INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    acid.sql("INSERT INTO d.u VALUES (0, 0)")
    both = threading.Barrier(2)
    failed: list[BaseException] = []

    def change(tables: tuple[str, str]) -> None:
        session = others(isolation=COMMITTED)
        try:
            with session.transaction():
                session.update(tables[0], {"n": "n + 1"}, where="id = 0")
                both.wait(60)
                session.update(tables[1], {"n": "n + 1"}, where="id = 0")
        except Exception as error:
            failed.append(error)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(change, [("d.t", "d.u"), ("d.u", "d.t")]))
    assert len(failed) == 1
    assert "deadlock" in str(failed[0])
    assert rows(acid) == [(0, 1), (1, 0)]
    assert rows(acid, "d.u") == [(0, 1)]


@pytest.mark.parametrize("form", ["plain", "partitioned", "bucketed"])
@pytest.mark.parametrize("seed", range(3))
def test_transfers_keep_their_sum(acid: AcidSession, others: Any, seed: int, form: str) -> None:
    """Blocks of several statements, inserts and compactions beside them: what is moved is neither lost nor doubled."""
    counters(acid, 4, form)
    acid.sql("UPDATE d.t SET n = 100")
    sessions = [others(isolation=COMMITTED) for _ in range(3)]
    added: list[int] = []
    ends: list[BaseException] = []
    compacting = threading.Lock()

    def move(number: int) -> None:
        chance, session = random.Random(f"{seed} {number}"), sessions[number]
        for step in range(6):
            source, target, amount = chance.randrange(4), chance.randrange(4), chance.randrange(1, 9)
            kind = chance.choice(["block", "merge", "insert", "sql", "compact"])
            try:
                if kind == "block":
                    with session.transaction():
                        session.update("d.t", {"n": f"n - {amount}"}, where=f"id = {source}")
                        session.update("d.t", {"n": f"n + {amount}"}, where=f"id = {target}")
                elif kind == "sql":
                    session.sql(
                        f"UPDATE d.t SET n = n - int(id = {source}) * {amount} + int(id = {target}) * {amount} "
                        f"WHERE id IN ({source}, {target})"
                    )
                elif kind == "merge":
                    session.sql(
                        f"MERGE INTO d.t t USING (SELECT id, n FROM d.t WHERE id < 4) s ON t.id = s.id WHEN MATCHED "
                        f"THEN UPDATE SET n = s.n - int(s.id = {source}) * {amount} + int(s.id = {target}) * {amount}"
                    )
                elif kind == "compact":
                    with compacting:
                        compact_table(session.spark, session, "d.t", chance.choice(["minor", "major"]))
                else:
                    session.sql(f"INSERT INTO d.t (id, n) VALUES ({100 + number * 10 + step}, 1)")
                    added.append(1)
            except Exception as error:
                ends.append(error)

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(move, range(3)))
    assert not ends
    found = rows(acid)
    assert sum(n for _, n in found) == 400 + len(added)
    assert [row[0] for row in found if row[0] < 4] == [0, 1, 2, 3]
    assert len(found) == 4 + len(added)
