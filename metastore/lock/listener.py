"""Hears which locks other servers on the same database have freed.

Whoever frees a lock that somebody waits for sends a notification (``tell_freed.sql``). It is heard on one connection
of its own, from the first call that waits on this server on; a server where nobody ever waits needs none.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import psycopg2

from hive_acid.ids import LockId
from metastore.lock.waiters import LockWaiters
from metastore.observe.log import event
from metastore.store.database import Database

LOG = logging.getLogger("metastore.lock")
CHANNEL = "hive_acid_locks"
RECONNECT_S = 1.0
LOOK_S = 10.0
"""How often it listens without a call to do so: of a socket that fails libuv may tell nothing."""


class LockListener:
    """One listening connection; used on the event loop. What is told while there is none is found by looking again."""

    def __init__(self, db: Database, waiters: LockWaiters) -> None:
        self._db = db
        self._waiters = waiters
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
                event(LOG, logging.DEBUG, "not listening", error=error)
            else:
                self._waiters.wake_all()  # what was freed before this was not heard
                with contextlib.closing(connection):
                    await self._hear(connection)
            await asyncio.sleep(RECONNECT_S)

    def _connect(self) -> Any:
        connection = self._db.dedicated_connection()
        try:
            with connection.cursor() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
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

    def _told(self, payload: str) -> None:
        if payload:
            self._waiters.wake([LockId(int(lock_id)) for lock_id in payload.split(",")])
        else:
            self._waiters.wake_all()
