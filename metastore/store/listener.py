"""Hears what the database tells on one channel, on a connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import psycopg2

from metastore.observe.log import event
from metastore.store.database import Database

LOG = logging.getLogger("metastore.store")
RECONNECT_S = 1.0
LOOK_S = 10.0
"""How often it listens without a call to do so: of a socket that fails libuv may tell nothing."""


class Listener:
    """One listening connection; used on the event loop."""

    def __init__(
        self, db: Database, channel: str, told: Callable[[str], None], listens: Callable[[bool], None]
    ) -> None:
        """`told` gets each payload. `listens` hears when it begins, since what was told before was not heard, and when
        the connection is lost.
        """
        self._db = db
        self._channel = channel
        self._told = told
        self._listens = listens
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def start(self) -> None:
        """Listen from now on, if it does not yet."""
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._listen())

    def close(self) -> None:
        """Let go of the connection."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    async def _listen(self) -> None:
        while True:
            try:
                connection = await self._db.run(self._connect)
            except psycopg2.Error as error:
                event(LOG, logging.DEBUG, "not listening", channel=self._channel, error=error)
            else:
                self._listens(True)
                try:
                    with contextlib.closing(connection):
                        await self._hear(connection)
                finally:
                    self._listens(False)
            await asyncio.sleep(RECONNECT_S)

    def _connect(self) -> Any:
        connection = self._db.dedicated_connection()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {self._channel}")
        except BaseException:
            connection.close()
            raise
        return connection

    async def _hear(self, connection: Any) -> None:
        """Pass on what is told, until the connection is lost."""
        loop = asyncio.get_running_loop()
        lost: asyncio.Future[None] = loop.create_future()
        descriptor = connection.fileno()

        def readable() -> None:
            try:
                connection.poll()
            except psycopg2.Error:
                # At once and only once: libpq has closed the socket, and the next one may have its number.
                loop.remove_reader(descriptor)
                lost.set_result(None)
                return
            for notification in connection.notifies:
                self._told(notification.payload)
            connection.notifies.clear()

        loop.add_reader(descriptor, readable)
        try:
            while not lost.done():
                await asyncio.wait([lost], timeout=LOOK_S)
                if not lost.done():
                    readable()
        except asyncio.CancelledError:
            loop.remove_reader(descriptor)
            raise
