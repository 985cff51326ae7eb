"""The walk over the places of others (`catalog/place/place_walk.py`) on a real S3-compatible server and on HDFS."""

import time

import pytest

from metastore.store.database import Database
from tests.catalog.place.place_walk import World
from tests.remote.s3 import Store

SECONDS = 10.0


def walk(db: Database, ground: str) -> None:
    world = World(db, f"{ground}/warehouse", ground)
    deadline = time.monotonic() + SECONDS
    for seed in range(3000, 3100):
        world.tell(seed)
        if time.monotonic() > deadline:
            break
    assert world.done


@pytest.mark.sampled(of="stores beside the disk")
def test_on_an_object_store(db: Database, store: Store) -> None:
    walk(db, f"s3a://{store.bucket}/places")


@pytest.mark.sampled(of="stores beside the disk")
def test_on_hdfs(db: Database, hdfs: str) -> None:
    walk(db, f"{hdfs}/places")
