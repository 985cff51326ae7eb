"""The background services on their intervals, on threads, only on the leader."""

from __future__ import annotations

import datetime
import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

from metastore.observe.log import event
from metastore.store.leader import Leader

LOG = logging.getLogger("metastore.services")
FIRST_RUN_WITHIN_S = 1.0
# A run longer than its interval is usual (a compaction takes what it takes); APScheduler would warn at each turn.
logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)


@dataclass(frozen=True)
class Service:
    """One background service: `run_once` does what there is to do and returns something true if it did anything."""

    name: str
    interval_ms: int
    run_once: Callable[[], Any]


class Schedule:
    """Runs each service again and again, never two runs of one at a time."""

    def __init__(self, services: Sequence[Service], leader: Leader) -> None:
        self._leader = leader
        self._failing: set[str] = set()
        self._scheduler = BackgroundScheduler(
            executors={"default": ThreadPoolExecutor(max(1, len(services)))},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=datetime.UTC,
        )
        for service in services:
            first = datetime.datetime.now(datetime.UTC) + datetime.timedelta(
                seconds=random.uniform(0, FIRST_RUN_WITHIN_S)
            )
            self._scheduler.add_job(
                self._run, "interval", seconds=service.interval_ms / 1000, args=[service], next_run_time=first
            )

    def start(self) -> None:
        """Begin."""
        self._scheduler.start()

    def stop(self) -> None:
        """Let the runs in progress end, start no other."""
        self._scheduler.shutdown(wait=True)
        self._leader.resign()

    def _run(self, service: Service) -> None:
        if not self._leader.is_leader():
            return
        try:
            done = service.run_once()
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
