"""What every slice of one server is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from metastore.config import Config
from metastore.lock.waiters import LockWaiters
from metastore.observe.gauges import Gauges
from metastore.observe.meters import Meters
from metastore.store.database import Database
from metastore.store.leases import Fenced, Lease


@dataclass(frozen=True, slots=True)
class Common:
    """The database and what is counted; `fenced` is the database for services of which one at a time runs.

    `name` tells this process from all others, `waiters` are the calls that wait for a lock.
    """

    db: Database
    config: Config
    name: str
    lease: Lease
    fenced: Fenced
    waiters: LockWaiters
    meters: Meters
    gauges: Gauges


def done(run_once: Callable[[], Any]) -> Any:
    """What a run of a service did; None if it did nothing."""
    run = run_once()
    return run if any(dataclasses.astuple(run)) else None
