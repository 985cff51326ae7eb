"""Which of several servers on one database runs the background services: a lease, renewed, with a fencing epoch.

The lease is a row. Its holder renews it well before it expires; who finds it expired takes it over under the next
epoch. Time is the database's alone. A holder that was paused for longer than the lease may believe in it still when it
wakes up: so all that a service changes in the database goes through `Fenced`, which has the database check, in the
transaction of the change, that the epoch in which the run began is the present one. A take-over waits for
changes under way, and none begins afterwards.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import psycopg2

from metastore.observe.log import event
from metastore.store.clock import Look
from metastore.store.database import Database

LOG = logging.getLogger("metastore.services")

SERVICES = "services"
"""The name of the lease under which all background services run."""
RENEWALS_PER_LEASE = 3
"""So that a renewal may fail and there is time for another one."""
_RENEWED_BEFORE = 3
"""One that holds for so many times its length was renewed before the clock was put back. Its holder renews it soon, if
it lives; one that stays so for as long is left."""
LOST = "HA001"
"""SQLSTATE of check_lease when the lease is not held under the given epoch."""


class LeaseLostError(RuntimeError):
    """This server may not run services any more: another one does, or will soon."""


class Calls(Protocol):
    """Calls of stored functions, as `Database` and `Fenced` make them."""

    def call(self, function: str, *args: object) -> list[tuple[Any, ...]]:
        """All rows that the function returns."""

    def call_one(self, function: str, *args: object) -> tuple[Any, ...] | None:
        """The first row, None if there is none."""


class Lease:
    """This server's hold on a lease; `start` competes for it until `stop`."""

    def __init__(self, db: Database, holder: str, length_ms: int, name: str = SERVICES) -> None:
        """`holder` names this server to those who look at the table."""
        self._db = db
        self._holder = f"{holder}-{uuid.uuid4().hex[:8]}"  # no other one's, even of the same process
        self._length_ms = length_ms
        self._name = name
        self._epoch: int | None = None
        self._trusted_until = 0.0
        self._ended = threading.Event()
        self._timer: threading.Thread | None = None
        self._connection: Any = None
        self._run = threading.local()
        self._first_look: Look | None = None
        self._ahead: tuple[int, float] | None = None
        """The end, far ahead, of one that somebody has (ms since 1970), and since when it is seen (monotonic)."""

    def start(self, taken: Callable[[], None] = lambda: None) -> None:
        """Take the lease as soon as it is free, and keep it, on a thread of its own; `taken` is called each time."""
        self._timer = threading.Thread(target=self._keep, args=(taken,), name="lease", daemon=True)
        self._timer.start()

    def stop(self) -> None:
        """Give the lease up, so that another server need not wait for its end. May be repeated."""
        self._ended.set()
        if self._timer is not None:
            self._timer.join()
            self._timer = None
        self.release()

    @property
    def is_held(self) -> bool:
        """Whether this server has reason to believe that it holds the lease; only the database knows."""
        return self._epoch is not None and time.monotonic() < self._trusted_until

    def first_look(self) -> Look | None:
        """Where the database's clock stood when this server took the lease, or renewed it too late; None before that.

        If nobody had it then, where it stood when somebody had: no server ran, and only the clock could say for how
        long. What came before is the business of whoever had it.
        """
        return self._first_look

    @contextlib.contextmanager
    def term(self) -> Iterator[int]:
        """The present epoch, for a run of a service on this thread: within the block `Fenced` insists on just this one.

        Raises LeaseLostError if the lease is not held.
        """
        epoch = self._epoch
        if epoch is None or not self.is_held:
            raise self._lost()
        self._run.epoch = epoch
        try:
            yield epoch
        finally:
            self._run.epoch = None

    def fence(self) -> tuple[str, int]:
        """The arguments of check_lease for the run of which this is a part. Raises LeaseLostError outside of one."""
        epoch: int | None = getattr(self._run, "epoch", None)
        if epoch is None:
            raise self._lost()
        return self._name, epoch

    def check(self) -> None:
        """Ask the database whether the run's epoch is the present one, before what it cannot undo.

        Raises LeaseLostError.
        """
        with _told():
            self._db.call("check_lease", *self.fence())

    def compete(self) -> bool:
        """Renew the lease, or take it if it is free; whether it was taken just now. Raises psycopg2.Error."""
        epoch = self._epoch
        look = None if self.is_held else self._last_look()
        asked_at = time.monotonic()
        left_ms = None if look is None else self._left_ms(asked_at)
        held, holder = self._ask("hold_lease", self._name, self._holder, epoch or 0, self._length_ms, left_ms)
        if held is not None and (held != epoch or look is not None):
            self._first_look = look or self._last_look()
        if held != epoch:
            if epoch is not None:
                event(LOG, logging.WARNING, "lease lost", lease=self._name, epoch=epoch, holder=holder)
            if held is not None:
                event(LOG, logging.INFO, "lease taken", lease=self._name, epoch=held, holder=self._holder)
        # Counted from before the question: here it never seems to last longer than in the database.
        self._epoch, self._trusted_until = held, asked_at + self._length_ms / 1000
        return held not in (None, epoch)

    def release(self) -> None:
        """Let the lease go; work in progress is refused from now on. What fails is made up for by its end."""
        epoch, self._epoch = self._epoch, None
        if epoch is not None:
            with contextlib.suppress(psycopg2.Error):
                self._ask("release_lease", self._name, epoch)
        self._disconnect()

    def _keep(self, taken: Callable[[], None]) -> None:
        is_failing = False
        while True:
            try:
                if self.compete():
                    taken()
                is_failing = False
            except psycopg2.Error as error:
                level = logging.DEBUG if is_failing else logging.WARNING
                event(LOG, level, "lease not renewed", lease=self._name, error=str(error).strip())
                is_failing = True
            if self._ended.wait(self._length_ms / 1000 / RENEWALS_PER_LEASE):
                return

    def _last_look(self) -> Look:
        """Where the clock stands, or stood when the lease ended that somebody had last."""
        shown_ms, last_ms = self._ask("lease_clock", self._name)
        longest_ms = shown_ms + self._length_ms * _RENEWED_BEFORE
        if last_ms is None or last_ms <= longest_ms:
            self._ahead = None
        elif self._ahead is None or self._ahead[0] != last_ms:
            self._ahead = last_ms, time.monotonic()
        is_held = last_ms is None or shown_ms <= last_ms <= longest_ms
        return Look(time.monotonic(), shown_ms if is_held else last_ms)

    def _left_ms(self, now_s: float) -> int | None:
        """The end of one that was renewed before the clock was put back, and for long not since."""
        is_left = self._ahead is not None and now_s - self._ahead[1] >= self._length_ms / 1000 * _RENEWED_BEFORE
        return self._ahead[0] if is_left and self._ahead is not None else None

    def _ask(self, function: str, *args: object) -> tuple[Any, ...]:
        """One row over a connection of its own: a renewal must not stand in line with calls."""
        try:
            if self._connection is None:
                self._connection = self._db.dedicated_connection()
            with self._connection.cursor() as cursor:
                cursor.execute(f"SELECT * FROM {function}({', '.join(['%s'] * len(args))})", args)
                row: tuple[Any, ...] = cursor.fetchone()
                return row
        except psycopg2.Error:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _lost(self) -> LeaseLostError:
        return LeaseLostError(f"this server does not hold the lease '{self._name}'")


class Fenced:
    """Calls of stored functions that take effect only while the lease is held under the epoch of the run.

    The check and the function are one round trip and one database transaction.
    """

    def __init__(self, db: Database, lease: Lease) -> None:
        self._db = db
        self._lease = lease

    def call(self, function: str, *args: object) -> list[tuple[Any, ...]]:
        """As `Database.call`. Raises LeaseLostError, nothing done."""
        with _told():
            return self._db.call_behind("check_lease", self._lease.fence(), function, *args)

    def call_one(self, function: str, *args: object) -> tuple[Any, ...] | None:
        """The first row of `call`, None if there is none."""
        rows = self.call(function, *args)
        return rows[0] if rows else None


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """The refusal of check_lease as an error of its own."""
    try:
        yield
    except psycopg2.Error as error:
        if error.pgcode == LOST:
            raise LeaseLostError(error.diag.message_primary) from error
        raise
