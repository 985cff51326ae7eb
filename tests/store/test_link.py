"""Asynchronous connections: none goes deaf when the number of a lost one's socket is taken by the next."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import Any

import psycopg2
import pytest

from metastore.rpc.server import new_event_loop
from metastore.store.link import Link, Rows


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = new_event_loop()
    yield loop
    loop.close()


def ask(link: Link, loop: asyncio.AbstractEventLoop, statement: str) -> asyncio.Future[Rows]:
    answer: asyncio.Future[Rows] = loop.create_future()

    def done(rows: Rows | None, error: Exception | None) -> None:
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(rows or [])

    link.send(statement, (), done)
    return answer


def cut(descriptor: int) -> None:
    """End a connection as a crash of Postgres does: nothing more comes, nothing more goes."""
    with socket.socket(fileno=os.dup(descriptor)) as other:
        other.shutdown(socket.SHUT_RDWR)


def test_the_next_connection_is_heard_when_it_has_the_lost_ones_number(
    db_url: str, loop: asyncio.AbstractEventLoop
) -> None:
    async def scenario() -> Any:
        lost, following = (Link(db_url, "", loop) for _ in range(2))
        assert await ask(lost, loop, "SELECT 1") == [(1,)]
        number = lost._descriptor
        cut(number)
        # In one turn of the loop, so that the end of the first has not been noticed.
        refused, answered = ask(lost, loop, "SELECT 2"), ask(following, loop, "SELECT 3, pg_sleep(0.2)::text")
        try:
            with pytest.raises(psycopg2.OperationalError):
                await refused
            rows = await asyncio.wait_for(answered, 10)
            assert following._descriptor == number  # or this would prove nothing
            return rows[0][0]
        finally:
            following.close()

    assert loop.run_until_complete(scenario()) == 3
