"""Two metastores: one that is moved out of, and a database to move into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metastore.store.database import Database
from tests.served import Served, served
from tests.transfer.world import fill


@pytest.fixture
def old(postgres_url: str, template: str, tmp_path: Path) -> Iterator[Served]:
    """A metastore with one of everything."""
    with served(postgres_url, template, tmp_path / "warehouse") as found:
        fill(found.uri)
        yield found


@pytest.fixture
def new(postgres_url: str, template: str, tmp_path: Path) -> Iterator[Served]:
    """A metastore with nothing."""
    with served(postgres_url, template, tmp_path / "elsewhere") as found:
        yield found


@pytest.fixture
def target(new: Served) -> Database:
    """The database of `new`."""
    return new.db
