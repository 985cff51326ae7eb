"""Migrations and stored functions."""

from concurrent.futures import ThreadPoolExecutor

import psycopg2
import pytest
from alembic import command

from hive_acid.errors import MetaError
from metastore.store.database import Database
from metastore.store.schema import functions
from metastore.store.schema.migrate import upgrade
from tests.databases import url_of


@pytest.fixture
def empty_url(postgres_url: str, request: pytest.FixtureRequest) -> str:
    name = f"empty_{abs(hash(request.node.name)) % 10**9}"
    connection = psycopg2.connect(postgres_url)
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return url_of(postgres_url, name)


def test_parallel_upgrades_of_an_empty_database(empty_url: str) -> None:
    databases = [Database(empty_url) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, databases))
    assert databases[0].call_one("get_max_write_id", "db", "t") == (0,)
    for db in databases:
        db.close()


def test_newer_database_is_refused(db: Database) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(MetaError, match="revision 9999, which this version of hive-acid does not know"):
        upgrade(db)


def test_changed_and_vanished_functions_are_replaced(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = functions.sources()

    def install(sources: dict[str, str]) -> list[str]:
        monkeypatch.setattr(functions, "sources", lambda: sources)
        with db.engine.begin() as connection:
            return functions.install(connection)

    assert install(shipped) == []
    added = {
        "one": "CREATE OR REPLACE FUNCTION one() RETURNS integer LANGUAGE sql AS 'SELECT 7 % 2'",
        "two": "CREATE OR REPLACE FUNCTION two() RETURNS integer LANGUAGE sql AS 'SELECT 2 * one()'",
    }
    assert install({**shipped, **added}) == ["one", "two"]
    assert db.call_one("two") == (2,)
    added["one"] = "CREATE OR REPLACE FUNCTION one(n integer DEFAULT 5) RETURNS bigint LANGUAGE sql AS 'SELECT n'"
    assert install({**shipped, **added}) == ["one"]
    assert db.call_one("one") == (5,)
    assert install(shipped) == ["one", "two"]
    with pytest.raises(psycopg2.errors.UndefinedFunction):
        db.call("one")


def test_every_function_is_valid(db: Database) -> None:
    """Installed without a check of their bodies, as they may call each other in any order: check them now."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL check_function_bodies = on")
        for source in functions.sources().values():
            connection.connection.cursor().execute(source)


def test_every_object_is_in_our_schema(db: Database) -> None:
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = 'public'"
        )
        assert list(found) == []


BEFORE_PLACES = """
DROP TABLE aborted_era;
DROP INDEX txn_aborted_since;
DROP INDEX tbl_successor;
DROP TABLE issued_token, token_key;
DROP TABLE place_alias;
DROP INDEX tbl_place, partition_place, database_place, database_managed_place, directory_removal_place;
DROP INDEX directory_removal_trash, dropped_directory_trash_place, compaction_place, dropped_directory_trash;
CREATE INDEX dropped_directory_location ON dropped_directory (location);
CREATE INDEX dropped_directory_trash ON dropped_directory (trash);
ALTER TABLE directory_removal DROP COLUMN owner, DROP COLUMN claimed_by, DROP COLUMN noted_at, DROP COLUMN attempts;
ALTER TABLE directory_removal DROP COLUMN next_at, DROP COLUMN last_error;
ALTER TABLE directory_removal DROP COLUMN takes_back, DROP COLUMN home_since;
ALTER TABLE dropped_table DROP COLUMN write_ids, DROP COLUMN aborted_components;
ALTER TABLE privilege DROP COLUMN catalog;
ALTER TABLE privilege
    ADD CONSTRAINT privilege_table_id_database_principal_principal_type_object_key UNIQUE (id, principal);
DROP FUNCTION tell_rights, tell_rights_on_table CASCADE;
ALTER TABLE dropped_table ADD COLUMN invalid_write_ids bigint[] NOT NULL DEFAULT '{}';
ALTER TABLE compaction_decision RENAME TO compaction_verdict;
ALTER INDEX compaction_decision_db_tbl_partition_service_key RENAME TO compaction_verdict_db_tbl_partition_service_key;
UPDATE alembic_version SET version_num = '0018';
"""


def test_locations_of_before_come_into_their_normal_form(db: Database) -> None:
    given = {
        "file:/w/t": "file:/w/t",
        "file:/w/./victim": "file:/w/victim",
        "file:/w//victim": "file:/w/victim",
        "file:/w/x/../victim": "file:/w/victim",
        "file:///w/victim/": "file:/w/victim",
        "hdfs://nn/w/p=a.b": "hdfs://nn/w/p=a.b",
        "hdfs://nn/w/..": "hdfs://nn",
        "S3A://b//x": "s3a://b/x",
        "data:,abc": "data:,abc",
        "file://host/x": "file://host/x",
    }
    with db.engine.begin() as connection:
        connection.exec_driver_sql(BEFORE_PLACES)
        for location in given:
            connection.exec_driver_sql(
                f"INSERT INTO directory_removal (location, only_if_empty) VALUES ('{location}', false)"
            )
    upgrade(db)
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT location FROM directory_removal ORDER BY id").scalars().all()
    assert dict(zip(given, found, strict=True)) == given


def test_of_a_database_of_this_version_no_migration_is_run(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "upgrade", lambda *_: pytest.fail("there is nothing to migrate"))
    upgrade(db)
