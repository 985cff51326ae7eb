"""Asynchronous connections: none goes deaf when the number of a lost one's socket is taken by the next."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from metastore.rpc.server import new_event_loop
from metastore.store.hot.connection import HotConnection, Rows


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = new_event_loop()
    yield loop
    loop.close()


def ask(
    hot: HotConnection, loop: asyncio.AbstractEventLoop, function: str, *parameters: bytes | None
) -> asyncio.Future[Rows]:
    answer: asyncio.Future[Rows] = loop.create_future()

    def done(rows: Rows | None, error: Exception | None) -> None:
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(rows or [])

    hot.send(function, parameters, done)
    return answer


def cut(descriptor: int) -> None:
    """End a connection as a crash of Postgres does: nothing more comes, nothing more goes."""
    with socket.socket(fileno=os.dup(descriptor)) as other:
        other.shutdown(socket.SHUT_RDWR)


def test_the_next_connection_is_heard_when_it_has_the_lost_ones_number(
    db_url: str, loop: asyncio.AbstractEventLoop
) -> None:
    async def scenario() -> Any:
        lost, following = (HotConnection(db_url, "", loop) for _ in range(2))
        assert await ask(lost, loop, "int8inc", b"0") == [(1,)]
        number = lost._descriptor
        cut(number)
        try:
            with pytest.raises(psycopg.OperationalError):
                await ask(lost, loop, "int8inc", b"1")
            assert lost.is_broken
            rows = await asyncio.wait_for(ask(following, loop, "pg_sleep", b"0.2"), 10)
            assert following._descriptor == number  # or this would prove nothing
            return rows
        finally:
            following.close()

    assert loop.run_until_complete(scenario()) == [("",)]


def test_values_are_python_s(db_url: str, loop: asyncio.AbstractEventLoop) -> None:
    async def scenario() -> None:
        hot = HotConnection(db_url, "", loop)
        try:
            with psycopg.connect(db_url, autocommit=True) as connection:
                connection.execute(
                    "CREATE FUNCTION echo(n bigint, flag boolean, words text, ids bigint[], nothing text)"
                    " RETURNS TABLE (n bigint, flag boolean, words text, ids bigint[], nothing text)"
                    " LANGUAGE sql AS 'SELECT n, flag, words, ids, nothing'"
                )
            for _ in range(2):  # prepared, and called again
                sent = (b"7", b"t", 'Grüße, "x"\\'.encode(), b"{1,2,30000000000}", None)
                assert await ask(hot, loop, "echo", *sent) == [(7, True, 'Grüße, "x"\\', [1, 2, 30000000000], None)]
            many = b"{" + b",".join([b"%d" % number for number in range(200_000)]) + b"}"
            rows = await ask(hot, loop, "echo", b"1", b"f", None, many, None)  # more than a socket takes at once
            assert rows[0][3] == list(range(200_000))
        finally:
            hot.close()

    loop.run_until_complete(scenario())


def test_an_error_of_a_call_leaves_the_connection_as_it_was(db_url: str, loop: asyncio.AbstractEventLoop) -> None:
    async def scenario() -> None:
        hot = HotConnection(db_url, "", loop)
        try:
            for _ in range(2):
                with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                    await ask(hot, loop, "int8inc", b"none")
                with pytest.raises(psycopg.errors.UndefinedFunction):
                    await ask(hot, loop, "not_there")
                assert await ask(hot, loop, "int8inc", b"4") == [(5,)]
            assert not hot.is_broken
        finally:
            hot.close()

    loop.run_until_complete(scenario())


def test_nothing_is_called_behind_a_greeting_that_fails(db_url: str, loop: asyncio.AbstractEventLoop) -> None:
    async def scenario() -> None:
        with psycopg.connect(db_url, autocommit=True) as connection:
            connection.execute("CREATE SEQUENCE asked")
        hot = HotConnection(db_url, "", loop, greeting="SELECT 1 / 0")
        try:
            with pytest.raises(psycopg.errors.DivisionByZero):
                await ask(hot, loop, "nextval", b"asked")
            assert hot.is_broken
            assert not hot.has_carried
            with psycopg.connect(db_url) as connection:
                assert connection.execute("SELECT is_called FROM asked").fetchone() == (False,)
        finally:
            hot.close()

    loop.run_until_complete(scenario())
