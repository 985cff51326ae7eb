"""The Cleaner never takes what a live reader can need, in random stories."""

from pathlib import Path

import pytest

from metastore.store.database import Database

from .cleaning_walk import Walk


@pytest.mark.parametrize("seed", range(1, 5))
def test_every_live_reader_sees_its_rows(db: Database, tmp_path: Path, seed: int) -> None:
    walk = Walk(db, tmp_path, seed)
    walk.run(120)
    assert walk.removed > 10, "so the Cleaner had something to do"
