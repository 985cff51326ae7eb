"""The background services on their intervals, on threads, only while this server holds the lease."""

from __future__ import annotations

import contextlib
import datetime
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from metastore.observe.log import event
from metastore.store.leases import Lease, LeaseLostError

LOG = logging.getLogger("metastore.services")
FIRST_RUN_WITHIN_S = 1.0
_LOOK_AT_CLOCK_S = 5.0
_MOVED_S = 1.0
"""A clock that is so far from where it should be has been put forward or back; one that is adjusted is not."""
# A run longer than its interval is usual (a compaction takes what it takes); APScheduler would warn at each turn.
logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Service:
    """One background service: `run_once` does what there is to do and returns something true if it did anything.

    The first run comes soon after the lease was taken, or `delay_ms` after that.
    """

    name: str
    interval_ms: int
    run_once: Callable[[], Any]
    delay_ms: int = 0


class _SteadyScheduler(BackgroundScheduler):  # type: ignore[misc]
    """Keeps its intervals when the clock is put forward or back, by which APScheduler knows when jobs are due."""

    _ahead_s: float | None = None
    """By how much the clock is ahead of the monotonic one, when it was looked at last."""

    def _process_jobs(self) -> float:
        ahead_s = time.time() - time.monotonic()
        moved_s = 0.0 if self._ahead_s is None else ahead_s - self._ahead_s
        self._ahead_s = ahead_s
        if abs(moved_s) > _MOVED_S:
            event(LOG, logging.WARNING, "clock moved", seconds=round(moved_s))
            for job in self.get_jobs():
                if job.next_run_time is not None:
                    with contextlib.suppress(JobLookupError):  # the server stops
                        job.modify(next_run_time=job.next_run_time + datetime.timedelta(seconds=moved_s))
        wait_s = super()._process_jobs()
        return _LOOK_AT_CLOCK_S if wait_s is None else min(wait_s, _LOOK_AT_CLOCK_S)


class Schedule:
    """Runs each service again and again, never two runs of one at a time, here or on another server.

    Each run is a term of the lease: when that is lost, what the run still tries to change is refused.
    """

    def __init__(self, services: Sequence[Service], lease: Lease) -> None:
        self._lease = lease
        self._failing: set[str] = set()
        self._wakings: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(max(1, len(services)))
        self._scheduler = _SteadyScheduler(
            executors={"default": self._threads},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=datetime.UTC,
        )
        self._jobs = [
            (
                service,
                self._scheduler.add_job(
                    self._run, "interval", seconds=service.interval_ms / 1000, args=[service], next_run_time=None
                ),
            )
            for service in services
        ]

    def start(self) -> None:
        """Begin as soon as the lease is free."""
        self._scheduler.start()
        self._lease.start(self._lead)

    def wake(self, name: str) -> None:
        """Run the services of that name now; those that are running run once more then."""
        if not self._lease.is_held:
            return
        self._wakings[name] += 1
        now = datetime.datetime.now(datetime.UTC)
        for service, job in self._jobs:
            if service.name == name:
                with contextlib.suppress(JobLookupError):  # the server stops
                    job.modify(next_run_time=now)

    def stop(self) -> None:
        """Let the runs in progress end, start no other, and let another server follow at once."""
        # Not wait=True: APScheduler waits with its locks held, for runs that may need them to wake another service.
        self._scheduler.shutdown(wait=False)
        self._threads.shutdown(wait=True)
        self._lease.stop()

    def _lead(self) -> None:
        """The lease was taken: what is due may have been so for long."""
        now = datetime.datetime.now(datetime.UTC)
        for service, job in self._jobs:
            delay_s = service.delay_ms / 1000 + random.uniform(0, FIRST_RUN_WITHIN_S)
            with contextlib.suppress(JobLookupError):  # the server stops
                job.modify(next_run_time=now + datetime.timedelta(seconds=delay_s))

    def _run(self, service: Service) -> None:
        woken = None
        while self._lease.is_held and woken != self._wakings[service.name]:
            woken = self._wakings[service.name]
            self._run_once(service)

    def _run_once(self, service: Service) -> None:
        try:
            with self._lease.term():
                done = service.run_once()
        except LeaseLostError as error:
            event(LOG, logging.INFO, "service stopped", service=service.name, reason=error)
            return
        except Exception as error:
            # A database that is away fails every run: said once, with the traceback for the first.
            if service.name not in self._failing:
                self._failing.add(service.name)
                LOG.exception("service failed service=%s", service.name)
            event(LOG, logging.DEBUG, "service failed again", service=service.name, error=error)
            return
        if service.name in self._failing:
            self._failing.discard(service.name)
            event(LOG, logging.INFO, "service works again", service=service.name)
        if done:
            event(LOG, logging.INFO, "service ran", service=service.name, done=done)
