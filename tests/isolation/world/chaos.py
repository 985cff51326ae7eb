"""What happens to servers and Postgres while clients work: killed, frozen, started again, restarted, at random."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tests.isolation.world.cluster import Cluster, Server

MOST_STARTS = 20
FREEZES = 0.3
"""The part of the harm to servers that is a freeze; the rest are kills."""


@dataclass(frozen=True)
class ChaosConfig:
    """Mean seconds between two kills or freezes of a server, and two restarts of Postgres; 0 for never."""

    kill_every_s: float = 0.0
    restart_every_s: float = 0.0
    frozen_s: float = 5.0
    """How long a server is frozen, on the average; beyond the time-out it comes back into another world."""
    down_s: float = 0.5
    """How long what was killed stays down, on the average."""


class Chaos:
    """A thread per trouble, from `start` to `stop`; `events` has what happened, `counts` how often."""

    def __init__(self, cluster: Cluster, config: ChaosConfig, seed: int, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._config = config
        self._chance = random.Random(f"chaos {seed}")
        self._clock = clock
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._guard = threading.Lock()
        self.events: list[str] = []
        self.counts: Counter[str] = Counter()
        self.failure: Exception | None = None

    def start(self) -> None:
        """Begin."""
        if self._config.kill_every_s:
            for server in self._cluster.servers:
                self._begin(lambda server=server: self._harm(server), self._config.kill_every_s)
        if self._config.restart_every_s:
            self._begin(self._restart, self._config.restart_every_s)

    def stop(self) -> None:
        """End, with everything running. Raises what went wrong."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _begin(self, trouble: Callable[[], None], every_s: float) -> None:
        def run() -> None:
            try:
                while not self._ended.wait(self._chance.uniform(0.5, 1.5) * every_s):
                    trouble()
            except Exception as error:
                self.failure = error

        self._threads.append(threading.Thread(target=run, name="chaos", daemon=True))
        self._threads[-1].start()

    def _happened(self, what: str) -> None:
        with self._guard:
            self.counts[what.split(" of ")[0]] += 1
            self.events.append(f"{self._clock():.3f} {what}")

    def _harm(self, server: Server) -> None:
        if self._chance.random() < FREEZES:
            server.freeze()
            self._happened(f"freeze of {server.name}")
            self._ended.wait(self._chance.uniform(0, 2) * self._config.frozen_s)
            server.thaw()
            self._happened(f"thaw of {server.name}")
        else:
            self._kill(server)

    def _kill(self, server: Server) -> None:
        server.kill()
        self._happened(f"kill -9 of {server.name}")
        self._ended.wait(self._chance.uniform(0, 2) * self._config.down_s)
        for _ in range(MOST_STARTS):
            if server.start():
                self._happened(f"start of {server.name}")
                return
        raise RuntimeError(f"{server.name} does not start again: {server.log.read_text()[-2000:]}")

    def _restart(self) -> None:
        immediately = self._chance.random() < 0.5
        self._happened(f"{'immediate' if immediately else 'fast'} shutdown of Postgres")
        self._cluster.postgres.stop(immediately)
        self._ended.wait(self._chance.uniform(0, 2) * self._config.down_s)
        self._cluster.postgres.start()
        self._happened("start of Postgres")
