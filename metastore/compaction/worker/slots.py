"""Worker slots: how many there are of each pool, what wakes them, and how they rest when Spark cannot be had.

A slot without a pool takes compactions without one, and those that have waited too long for theirs; a slot of a pool
takes that pool's alone. As in Hive the pools' slots are a part of ``hive.compactor.worker.threads``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from metastore.compaction.config import CompactionConfig
from metastore.compaction.worker.job import BackendLostError
from metastore.compaction.worker.worker import CompactionWorker
from metastore.settings import SettingError
from metastore.store.leases import LeaseLostError

log = logging.getLogger(__name__)


def slots_by_pool(config: CompactionConfig) -> list[str | None]:
    """The pool of each slot, None for one without; those without come first.

    Raises SettingError if the pools have more slots than there are.
    """
    pooled = [pool for pool, number in sorted(config.worker_pools.items()) for _ in range(number)]
    if len(pooled) > config.worker_threads:
        raise SettingError(
            f"the pools of hive.compactor.worker.*.threads have {len(pooled)} slots, but "
            f"metastore.compactor.worker.threads is {config.worker_threads}: it counts theirs too, so raise it"
        )
    if 0 < len(pooled) == config.worker_threads:
        log.warning("all worker slots are of pools: nobody here takes compactions without a pool")
    return [None] * (config.worker_threads - len(pooled)) + list(pooled)


class WorkerSlot:
    """One of the compactions that a server runs at a time.

    When Spark is not there, or the database, the slot rests: for its idle pause at first, twice as long each time,
    until something succeeds. So what waits in the queue is not tried to death meanwhile.
    """

    def __init__(
        self,
        worker: CompactionWorker,
        config: CompactionConfig,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker
        self._shortest_s = config.worker_sleep_ms / 1000
        self._longest_s = max(config.worker_max_sleep_ms / 1000, self._shortest_s)
        self._clock = clock
        self._rest_s = 0.0
        self._rests_until = 0.0

    def run_once(self) -> int:
        """Work the queue off; how many compactions that were. Raises what the database raises when it is away."""
        done = 0
        while self._clock() >= self._rests_until:
            try:
                if not self._worker.run_once():
                    break
            except BackendLostError as error:
                log.warning("no compactions for %.0f s: %s", self._rest(), error)
                break
            except LeaseLostError:
                raise
            except Exception:
                self._rest()
                raise
            self._rest_s = 0.0
            done += 1
        return done

    def stop(self) -> None:
        """Give up what is being done and put it back into the queue."""
        self._worker.stop()

    def _rest(self) -> float:
        """Rest from now on; for how many seconds."""
        self._rest_s = min(max(self._rest_s * 2, self._shortest_s), self._longest_s)
        self._rests_until = self._clock() + self._rest_s
        return self._rest_s
