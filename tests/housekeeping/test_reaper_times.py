"""How soon after their time-out dead writers lose their locks: by the time-out, not by an interval of its own."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from metastore.config import Config
from tests.caller import Caller

MARGIN_S = 6
"""What a busy machine may add; the interval was 180 s."""


@pytest.mark.parametrize(
    ("settings", "times"),
    [
        ([], (30_000, 100_000)),
        (["hive.txn.timeout=2s"], (1_000, 1_000)),
        (["hive.txn.timeout=60s"], (6_000, 20_000)),
        (["hive.txn.timeout=2h"], (60_000, 100_000)),
        (["hive.txn.timeout=2s", "hive.timedout.txn.reaper.start=0s"], (1_000, 0)),
        (["hive.txn.timeout=2s", "hive.timedout.txn.reaper.interval=7s"], (7_000, 7_000)),
        (["metastore.acid.housekeeper.interval=180s"], (180_000, 100_000)),
        (["hive.txn.timeout=2s", "metastore.acid.housekeeper.interval=0s"], (1_000, 1_000)),
    ],
)
def test_the_interval_is_part_of_the_time_out_unless_it_is_set(settings: list[str], times: tuple[int, int]) -> None:
    config = Config.parse(settings)
    assert config.housekeeping.reaper_times_ms(config.txn.timeout_ms) == times


@pytest.mark.parametrize("in_transaction", [True, False])
def test_a_dead_writers_lock_goes_soon_after_the_time_out(
    metastore: Callable[..., str], *, in_transaction: bool
) -> None:
    uri = metastore(**{"hive.txn.timeout": "2s", "metastore.lock.poll.wait": "100ms"})
    with Caller(uri) as dead, Caller(uri, "bob") as waiting:
        assert dead.asks("e d/t u", txn=dead.begin() if in_transaction else None) == "A"
        began = time.monotonic()
        txn_id = waiting.begin()
        lock = waiting.lock("e d/t u", txn=txn_id)
        while waiting.check(lock.lockid, txn_id) != "A":  # which keeps it alive
            assert time.monotonic() - began < 2 + 1 + MARGIN_S
        assert time.monotonic() - began > 1.9
