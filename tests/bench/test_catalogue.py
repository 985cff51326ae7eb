"""The bench of the catalogue runs every trial, against a small table and a real server."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import psycopg2
import pytest

from tests.bench.catalogue import SETTINGS, Bench


@pytest.mark.sampled(of="stories of minutes")
def test_every_trial(metastore: Callable[..., str], db_url: str) -> None:
    uri = metastore(**SETTINGS)
    with contextlib.closing(psycopg2.connect(db_url, options="-c search_path=hive_acid")) as database:
        database.autocommit = True
        bench = Bench(uri, database, os.getpid(), partitions=50_000, rounds=1)
        bench.fill()
        rows = [bench.run(trial) for trial in bench.trials()]
    assert len(rows) == 10
    for name, found, ours_ms, bare_ms, *_ in rows:
        assert int(found.replace(",", "")) > 0, name
        assert float(ours_ms.replace(",", "")) > 0 < float(bare_ms.replace(",", "")), name
