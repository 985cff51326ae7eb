"""Services with a stop-watch: how long their runs take and how often they fail, under the names that Hive has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from metastore.compaction.cleaner.cleaner import CleanerRun
from metastore.compaction.worker.timing import CLEANER_CYCLE, NOT_JUDGED, WORKER_CYCLE
from metastore.housekeeping.housekeeper import HousekeeperRun
from metastore.observe.meters import Meters
from metastore.schedule import Service
from metastore.txn.calls import ABORTED, COMMITTED

INITIATOR_CYCLE = "compaction_initiator_cycle"
_CYCLES = {"Initiator": INITIATOR_CYCLE}
_OTHERS = "service_cycle"
_TIMED_OUT = "total_num_timed_out_transactions"
_NOT_CLEANED = "compaction_cleaner_failure_counter"
_TYPES = ("minor", "major", "rebalance")
_CLEANED_TYPES = (*_TYPES, "abort_txn_cleanup")


def expect_all(meters: Meters) -> None:
    """Show everything that may be counted from the start, so that a rate can be made of the first event."""
    for name in (COMMITTED, ABORTED, _TIMED_OUT, _NOT_CLEANED, NOT_JUDGED):
        meters.count(name, 0)
    for name in _CYCLES.values():
        meters.expect(name)
    for kind in _TYPES:
        meters.expect(WORKER_CYCLE, type=kind)
    for kind in _CLEANED_TYPES:
        meters.expect(CLEANER_CYCLE, type=kind)


def measured(service: Service, meters: Meters) -> Service:
    """The service, each of its runs measured, and what it did counted."""
    name, labelled = _CYCLES.get(service.name), {}
    if name is None:
        name, labelled = _OTHERS, {"service": service.name}
    meters.expect(name, **labelled)

    def run_once(run: Callable[[], Any] = service.run_once) -> Any:
        with meters.cycle(name, **labelled):
            done = run()
        if isinstance(done, HousekeeperRun):
            meters.count(_TIMED_OUT, done.timed_out_txns)
        elif isinstance(done, CleanerRun):
            meters.count(_NOT_CLEANED, len(done.failed))
        return done

    return dataclasses.replace(service, run_once=run_once)
