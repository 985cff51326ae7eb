"""The figures of compactions (transactions.md §4.12)."""

from __future__ import annotations

from metastore.compaction.metrics import take_compaction_gauges
from metastore.compaction.models import CompactionRequest
from metastore.compaction.states import CompactionType
from metastore.observe.gauges import Labels, labels
from metastore.observe.meanings import MEANINGS
from metastore.store.database import Database

from .world import World

DAY_MS = 86_400_000
MOST = 1_000_001


def figures(db: Database, most_targets: int = 100, at_most: int = MOST) -> dict[tuple[str, Labels], float]:
    taken = take_compaction_gauges(db, DAY_MS, most_targets, at_most)
    found = {(figure.name, figure.labels): figure.value for figure in taken}
    assert len(found) == len(taken)
    assert {name for name, _ in found} <= MEANINGS.keys()
    return found


def plain(db: Database) -> dict[str, float]:
    """Those without labels that are not 0."""
    return {name: value for (name, of), value in figures(db).items() if not of and value}


def ask(world: World, table: str, pool: str | None = None, version: str = "1") -> int:
    request = CompactionRequest(
        CompactionType.MAJOR, "db", table, pool=pool, initiator="host-init", initiator_version=version
    )
    return world.service.compact(request).id


def age(db: Database, compaction_id: int, **hours: int) -> None:
    for column, number in hours.items():
        with db.engine.begin() as connection:
            connection.exec_driver_sql(
                f"UPDATE compaction SET {column} = {column} - interval '{number} hours' WHERE id = {compaction_id}"
            )


def test_a_fresh_system(db: Database) -> None:
    assert plain(db) == {}
    names = {name for name, _ in figures(db)}
    assert {
        "compaction_num_initiated",
        "compaction_num_did_not_initiate",
        "compaction_oldest_cleaning_age_in_sec",
    } <= names
    assert not any(of for _, of in figures(db))


def test_states_ages_pools_and_versions(world: World) -> None:
    first, second, third = ask(world, "a"), ask(world, "b", "etl"), ask(world, "c", "etl", "2")
    age(world.db, first, enqueued_at=5)
    age(world.db, second, enqueued_at=3)
    taken = world.service.find_next("host-7-1", "v1", "etl")
    assert taken is not None
    assert taken.id == second
    age(world.db, second, started_at=2)
    found = figures(world.db)
    hours = {name: round(value / 3600) for (name, of), value in found.items() if "_age_" in name and not of}
    assert hours == {
        "compaction_oldest_enqueue_age_in_sec": 5,
        "compaction_oldest_working_age_in_sec": 2,
        "compaction_oldest_cleaning_age_in_sec": 0,
    }
    etl, default = labels(pool="etl"), labels(pool="default")
    assert found["compaction_pools_initiated_item_count", etl] == 1
    assert found["compaction_pools_initiated_item_count", default] == 1
    assert found["compaction_pools_working_item_count", etl] == 1
    assert round(found["compaction_pools_oldest_working_age_in_sec", etl] / 3600) == 2
    assert round(found["compaction_pools_oldest_enqueue_age_in_sec", default] / 3600) == 5
    counts = {name: value for name, value in plain(world.db).items() if "_age_" not in name}
    assert counts == {
        "compaction_num_initiated": 2,
        "compaction_num_working": 1,
        "compaction_num_initiators": 1,
        "compaction_num_initiator_versions": 2,
        "compaction_num_workers": 1,
        "compaction_num_worker_versions": 1,
    }
    # What is older than the window is not looked at.
    for one in (first, second, third):
        age(world.db, one, enqueued_at=30)
    age(world.db, second, started_at=30)
    assert "compaction_num_worker_versions" not in plain(world.db)


def test_a_target_counts_by_its_latest(world: World) -> None:
    for _ in range(2):
        compaction = world.service.find_next("w") if ask(world, "t") else None
        assert compaction is not None
        world.service.mark_failed(compaction.id, "no memory", "w")
    assert plain(world.db)["compaction_num_failed"] == 1
    ask(world, "t")
    counts = plain(world.db)
    assert "compaction_num_failed" not in counts
    assert counts["compaction_num_initiated"] == 1


def test_the_places_with_the_most_deltas(db: Database) -> None:
    for number in range(5):
        db.call("update_compaction_metric", "db", "t", f"p={number}", 1, 100 + number)
    db.call("update_compaction_metric", "db", "u", None, 0, 300)
    found = {key: value for key, value in figures(db, most_targets=2).items() if key[1]}
    assert found == {
        ("compaction_num_active_deltas", labels(table="db.t", partition="p=4")): 104,
        ("compaction_num_active_deltas", labels(table="db.t", partition="p=3")): 103,
        ("compaction_num_obsolete_deltas", labels(table="db.u")): 300,
    }


def test_writes_where_nobody_compacts(db: Database) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO database (name, location, owner_type, created_s, parameters, details)"
            """ VALUES ('db', 'x', 1, 0, '{}', '{}'), ('on', 'x', 1, 0, '{"No_Auto_Compaction": "false"}', '{}')"""
        )
        for database, table, parameters in (
            ("db", "t", '{"NO_AUTO_COMPACTION": "True"}'),
            ("db", "u", "{}"),
            ("on", "t", '{"no_auto_compaction": "true"}'),
        ):
            connection.exec_driver_sql(
                "INSERT INTO tbl (database, name, table_type, owner_type, created_s, columns, partition_keys,"
                " parameters, storage, details) VALUES (%s, %s, 'MANAGED_TABLE', 1, 0, '[]', '[]', %s, '{}', '{}')",
                (database, table, parameters),
            )
            connection.exec_driver_sql(
                "INSERT INTO completed_component (db, tbl, txn_id, write_id, update_delete, committed_at)"
                " SELECT %s, %s, n, n, false, now() FROM generate_series(1, 3) AS n",
                (database, table),
            )
    name = "num_writes_to_disabled_compaction_table"
    assert plain(db)[name] == 3
    assert figures(db, at_most=2)[name, ()] == 2
