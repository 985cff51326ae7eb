"""Services with a stop-watch: how long their runs take and how often they fail, under the names that Hive has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from metastore.compaction.cleaner.cleaner import CleanerRun
from metastore.housekeeping.housekeeper import HousekeeperRun
from metastore.observe.meters import Meters
from metastore.schedule import Service


def measured(service: Service, meters: Meters) -> Service:
    """The service, each of its runs measured, and what it did counted."""
    cycle = meters.initiator if service.name == "Initiator" else meters.services.of(service.name)

    def run_once(run: Callable[[], Any] = service.run_once) -> Any:
        with cycle.run():
            done = run()
        if isinstance(done, HousekeeperRun):
            meters.timed_out.inc(done.timed_out_txns)
        elif isinstance(done, CleanerRun):
            meters.not_cleaned.inc(len(done.failed))
        return done

    return dataclasses.replace(service, run_once=run_once)
