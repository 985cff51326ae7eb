"""A running server: what is queued there is taken at once, and the figures of a table follow its compaction."""

from __future__ import annotations

import re
from collections.abc import Callable

import hive_acid
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.operators.show import compactions
from metastore.slices.compactions import WORKER
from metastore.store.database import Database
from tests.observe.scrape import get
from tests.ports import free_port
from tests.waiting import until

SETTINGS = {"metastore.compactor.initiator.on": "false", "metastore.compactor.cleaner.on": "false"}


def make_table(connection: Connection, name: str, keys: tuple[Column, ...] = (), **parameters: str) -> None:
    parameters = {"transactional": "true", **parameters}
    connection.create_table(Table("default", name, (Column("id", "int"),), keys, parameters))


def test_a_request_does_not_wait_for_the_workers_pause(metastore: Callable[..., str]) -> None:
    """Of an empty table, which needs no Spark: it is refused, long before the idle pause of 10.8 s is over."""
    port = free_port()
    workers = {"metastore.compactor.worker.threads": "2", "metastore.metrics.port": str(port)}
    with hive_acid.connect(metastore(**SETTINGS, **workers)) as connection:
        make_table(connection, "t")
        looks = rf'hive_service_cycle_seconds_count{{service="{WORKER}"}} 2\.0'
        until(lambda: re.search(looks, get(port, "/metrics")[2]))  # both have looked, and sleep
        connection.compact("default", "t", "major")
        until(lambda: "refused" in str(compactions(connection).rows), 4)


def test_figures_follow_a_compaction(metastore: Callable[..., str], db: Database) -> None:
    """Once what it replaced is gone, and not a second time; what is not on record stays so."""
    known = {"numFiles": "12", "totalSize": "5000", "numRows": "70"}
    with hive_acid.connect(metastore(**SETTINGS, **{"metastore.compactor.worker.threads": "0"})) as connection:
        make_table(connection, "t", **known)  # type: ignore[arg-type]
        make_table(connection, "u", numFiles="many")
        for name in ("t", "u"):
            (compaction_id,) = connection.compact("default", name, "major")
            db.call("find_next_compact", "worker-1", None, None, 0)
            db.call("set_progress", compaction_id, "worker-1", None, None, 11, 4000, 1, 3000)
            db.call("mark_compacted", compaction_id, "worker-1")
            for _ in range(2):
                db.call("mark_cleaned", compaction_id, [])
        found = connection.table("default", "t").parameters
        assert {key: found[key] for key in known} == {"numFiles": "2", "totalSize": "4000", "numRows": "70"}
        assert connection.table("default", "u").parameters["numFiles"] == "many"
        assert "totalSize" not in connection.table("default", "u").parameters


def test_figures_of_a_partition(metastore: Callable[..., str], db: Database) -> None:
    with hive_acid.connect(metastore(**SETTINGS)) as connection:
        make_table(connection, "t", (Column("p", "int"),))
        table = connection.table("default", "t")
        connection.add_partitions(table, {name: f"{table.location}/{name}" for name in ("p=1", "p=2")})
        with db.engine.begin() as database:
            database.exec_driver_sql(
                """UPDATE partition SET parameters = parameters || '{"numFiles": "5", "totalSize": "50"}'"""
            )
        db.call("resize_statistics", "default", "t", "p=1", -4, -60)
        with db.engine.begin() as database:
            rows = database.exec_driver_sql("SELECT name, parameters FROM partition ORDER BY name")
            found = {name: (given["numFiles"], given["totalSize"]) for name, given in rows}
    assert found == {"p=1": ("1", "0"), "p=2": ("5", "50")}
