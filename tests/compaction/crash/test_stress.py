"""A short run of servers that are killed at random; `python -m tests.compaction.crash` has long ones."""

from pathlib import Path

import pytest

from hive_acid.connection import connect
from tests.compaction.crash.stress import Stress
from tests.served import served

SECONDS = 8.0


@pytest.mark.slow
def test_servers_killed_at_random(postgres_url: str, template: str, tmp_path: Path) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server, connect(server.uri) as connection:
        connection.create_database("db")
        stress = Stress(server.db, server.db_url, connection, tmp_path / "warehouse", tmp_path, seed=1)
        stress.run(SECONDS)
    assert stress.counts["commits"]
    assert stress.counts["kills"]
    assert stress.counts["compactions"]
