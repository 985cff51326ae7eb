"""Batches of hot calls: what goes together, who fails alone, who is asked again, and that nobody waits for ever."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from hive_acid.errors import MetaError, MetastoreError
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.hot.batcher import AGAIN, Again, HotCall
from metastore.store.hot.connection import Rows
from tests.waiting import until

FUNCTIONS = """
CREATE TABLE asked (batch bigint NOT NULL, number integer NOT NULL);
CREATE SEQUENCE batch_number;
-- Notes who came together; divides by zero for a 0, sleeps for a negative number of milliseconds.
CREATE FUNCTION note(numbers integer[]) RETURNS TABLE (number integer, inverse float, batch bigint)
LANGUAGE plpgsql AS $$
DECLARE
    this bigint := nextval('batch_number');
BEGIN
    PERFORM pg_sleep(-n / 1000.0) FROM unnest(numbers) AS n WHERE n < 0;
    INSERT INTO asked SELECT this, n FROM unnest(numbers) AS n;
    RETURN QUERY SELECT n, 1.0::float / n, this FROM unnest(numbers) AS n;
END
$$;
"""


class Note(HotCall[int, int]):
    """Asks for numbers; the answer is the batch that a number went with."""

    function = "note"

    def __init__(self, queue: str = "note", again: Sequence[int] = ()) -> None:
        self._queue = queue
        self._again = set(again)

    @property
    def queue(self) -> Hashable:
        return self._queue

    def arguments(self, questions: Sequence[int]) -> list[object]:
        return [list(questions)]

    def answers(self, questions: Sequence[int], rows: Rows) -> Sequence[int | MetastoreError | Again]:
        answers: list[int | MetastoreError | Again] = []
        for question, row in zip(questions, rows, strict=True):
            if question in self._again:
                self._again.discard(question)
                answers.append(AGAIN)
            elif question == 13:
                answers.append(MetaError("thirteen is refused"))
            else:
                answers.append(row[2])
        return answers


@pytest.fixture
def noted(db: Database) -> Database:
    with db.engine.begin() as connection:
        connection.exec_driver_sql(FUNCTIONS)
    return db


def asleep(db: Database) -> int:
    """How many batches sleep in the database."""
    with db.engine.connect() as connection:
        sleeping = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"
        return int(connection.exec_driver_sql(sleeping).scalar_one())


async def together(db: Database, call: Note, questions: Sequence[int]) -> list[Any]:
    """What becomes of questions that arrive in the same turn of the event loop."""
    futures = [db.ask_soon(call, question) for question in questions]
    found: list[Any] = []
    for future in futures:
        try:
            found.append(await future)
        except Exception as error:
            found.append(error)
    return found


def test_what_arrives_together_goes_together(noted: Database) -> None:
    before = noted.calls
    batches = noted.wait(together(noted, Note(), range(14, 34)))
    assert len(set(batches)) == 1
    assert noted.calls - before == 1


def test_what_comes_while_a_batch_is_under_way_goes_with_the_next(noted: Database) -> None:
    call = Note()
    with ThreadPoolExecutor(9) as pool:
        slow = pool.submit(noted.ask, call, -500)
        until(lambda: asleep(noted))
        others = [pool.submit(noted.ask, call, number) for number in range(1, 9)]
        assert {other.result() for other in others} == {slow.result() + 1}


def test_an_error_is_its_own_callers_alone(noted: Database) -> None:
    found = noted.wait(together(noted, Note(), [1, 13, 0, 2]))
    assert isinstance(found[1], MetaError)
    assert isinstance(found[2], psycopg.errors.DivisionByZero)
    assert all(isinstance(found[place], int) for place in (0, 3))
    with noted.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT number FROM asked ORDER BY number").scalars().all()
    assert rows == [1, 2, 13]  # the batch that failed left nothing behind


def test_a_deferred_question_is_asked_again_with_the_next_batch(noted: Database) -> None:
    first, second, third = noted.wait(together(noted, Note(again=[2]), [1, 2, 3]))
    assert first == third == second - 1


def test_a_deferral_without_end_is_refused(noted: Database) -> None:
    class Never(Note):
        def answers(self, questions: Sequence[int], rows: Rows) -> Sequence[int | MetastoreError | Again]:
            return [AGAIN] * len(questions)

    with pytest.raises(MetaError, match="try again"):
        noted.ask(Never(), 1)


def test_a_longer_queue_does_not_keep_a_lone_call_waiting(noted: Database) -> None:
    ended = threading.Event()
    busy = [Note(f"busy {number}") for number in range(4)]

    counts = [0] * 24

    def hammer(number: int) -> None:
        while not ended.is_set():
            noted.ask(busy[number % 4], 1 + number % 7)
            counts[number] += 1

    with ThreadPoolExecutor(len(counts)) as pool:
        hammers = [pool.submit(hammer, number) for number in range(len(counts))]
        try:
            until(lambda: min(counts) > 1)
            waits = []
            for _ in range(10):
                started = time.monotonic()
                noted.ask(Note("lone"), 1)
                waits.append(time.monotonic() - started)
        finally:
            ended.set()
        for future in hammers:
            future.result()
    assert min(counts) > 10
    assert sorted(waits)[5] < 1


def test_slow_batches_are_passed_by(noted: Database) -> None:
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(noted.ask, Note(f"slow {number}"), -1500) for number in range(3)]
        until(lambda: asleep(noted) == len(slow))
        started = time.monotonic()
        noted.ask(Note("quick"), 1)
        assert time.monotonic() - started < 1
        assert not any(one.done() for one in slow)
        for one in slow:
            one.result()


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_a_connection_lost_under_way(noted: Database, is_repeatable: bool) -> None:
    class Lost(Note):
        def is_repeatable(self, question: int) -> bool:
            return is_repeatable

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(noted.ask, Lost(), -2000)
        ended, deadline = 0, time.monotonic() + 30
        while not ended and time.monotonic() < deadline:
            with noted.engine.connect() as connection:
                ended = connection.exec_driver_sql(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND state = 'active' AND pid <> pg_backend_pid()"
                    " AND query LIKE '%%note(%%' AND wait_event = 'PgSleep'"  # it is not on its way up still
                ).scalar_one()
        assert ended == 1
        if is_repeatable:
            assert asked.result() > 0
        else:
            with pytest.raises(MetaError, match="outcome is unknown"):
                asked.result()
    assert noted.ask(Note(), 5) > 0  # the queue works on


class BackendPid(HotCall[None, int]):
    """The process at the other end."""

    function = "pg_backend_pid"

    def arguments(self, questions: Sequence[None]) -> list[object]:
        return []

    def answers(self, questions: Sequence[None], rows: Rows) -> Sequence[int]:
        return [rows[0][0]] * len(questions)


def test_a_connection_that_nobody_watches_any_more_is_looked_at(noted: Database) -> None:
    """As after an error of its socket, of which libuv tells once at most."""

    async def unwatched() -> int:
        asked = noted.ask_soon(Note(), -200)
        await asyncio.sleep(0.05)
        batcher, loop = noted._hot()
        for connection in batcher._busy:
            loop.remove_reader(connection._descriptor)
        return await asyncio.wait_for(asked, 5)

    assert noted.wait(unwatched()) > 0


def test_a_crash_that_leaves_a_question_unread_is_noticed(tmp_path: Path) -> None:
    """An end with something unread is an error of the socket: libuv tells of it once, with the last words, no more."""
    with EmbeddedPostgres(tmp_path / "crashing", settings={"fsync": "off"}) as url:
        db = Database(url)
        pid = db.ask(BackendPid(), None)
        os.kill(pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGQUIT)  # it says so and ends as soon as it goes on

        async def crash() -> int:
            asked = db.ask_soon(BackendPid(), None)
            await asyncio.sleep(0.1)
            os.kill(pid, signal.SIGCONT)
            until(lambda: not Path(f"/proc/{pid}").exists())  # the loop finds last words and end together
            return await asyncio.wait_for(asked, 20)

        try:
            assert db.wait(crash()) != pid
        finally:
            db.close()


def test_who_waits_when_the_database_is_closed_is_refused(noted: Database) -> None:
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(noted.ask, Note(), -800)]
        until(lambda: asleep(noted))
        asked.append(pool.submit(noted.ask, Note(), 3))
        noted.close()
        for one in asked:
            with pytest.raises(MetaError):
                one.result(timeout=5)


def test_a_function_that_has_another_signature_now_is_called_as_it_is(noted: Database) -> None:
    """As after an upgrade by another server on the same database: what is prepared no longer fits."""
    assert noted.ask(Note(), 5) > 0
    with noted.engine.begin() as connection:
        connection.exec_driver_sql(
            "DROP FUNCTION note(integer[]); CREATE FUNCTION note(numbers integer[])"
            " RETURNS TABLE (number bigint, inverse bigint, batch bigint, more text)"
            " LANGUAGE sql AS 'SELECT n, n, 77, null FROM unnest(numbers) AS n'"
        )
    assert noted.ask(Note(), 5) == 77
