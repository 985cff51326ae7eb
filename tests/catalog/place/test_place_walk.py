"""A sample of `python -m tests.catalog.place.place_walk`, as many stories as fit into some seconds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from metastore.store.database import Database
from tests.catalog.place.place_walk import HOUR_MS, World

pytestmark = pytest.mark.sampled

SECONDS = 8.0


@pytest.mark.parametrize("undrop_window_ms", [0, HOUR_MS])
def test_no_story_takes_the_data_of_others(db: Database, tmp_path: Path, undrop_window_ms: int) -> None:
    ground = f"file:{tmp_path.resolve()}"
    world = World(db, f"{ground}/warehouse", ground, undrop_window_ms)
    deadline = time.monotonic() + SECONDS
    for seed in range(1000 + undrop_window_ms % 7, 1100):
        world.tell(seed)
        if time.monotonic() > deadline:
            break
    assert world.done
