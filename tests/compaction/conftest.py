"""A table on disk with the services behind it."""

from pathlib import Path

import pytest

from metastore.store.database import Database

from .world import World


@pytest.fixture
def world(db: Database, tmp_path: Path) -> World:
    return World(db, tmp_path)
