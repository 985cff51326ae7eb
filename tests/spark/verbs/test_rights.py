"""Where rights are enforced each statement takes those of all that it does to rows, and no others."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid import connect
from hive_acid.connection import Connection
from hive_acid.errors import AccessDeniedError, HiveAcidError, NoSuchObjectError
from hive_acid.spark import AcidSession
from tests.authorization.world import SETTINGS, bag, target

ME = getpass.getuser()
VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "ALTER", "DROP")
SOURCE = "MERGE INTO d.t USING (SELECT 1 AS id, 'x' AS v) s ON t.id = s.id"
UPDATES, DELETES = "WHEN MATCHED AND t.v = 'a' THEN UPDATE SET v = s.v", "WHEN MATCHED THEN DELETE"
INSERTS = "WHEN NOT MATCHED THEN INSERT *"
STATEMENTS = {
    "SELECT * FROM d.t": {"SELECT"},
    "INSERT INTO d.t VALUES (3, 'c')": {"INSERT"},
    "UPDATE d.t SET v = 'x' WHERE id = 1": {"UPDATE"},
    "DELETE FROM d.t WHERE id = 1": {"DELETE"},
    f"{SOURCE} {UPDATES}": {"UPDATE"},
    f"{SOURCE} {DELETES}": {"DELETE"},
    f"{SOURCE} {UPDATES} {DELETES}": {"UPDATE", "DELETE"},
    f"{SOURCE} {UPDATES} {INSERTS}": {"UPDATE", "INSERT"},
    f"{SOURCE} {DELETES} {INSERTS}": {"DELETE", "INSERT"},
    f"{SOURCE} {UPDATES} {DELETES} {INSERTS}": {"UPDATE", "DELETE", "INSERT"},
    f"{SOURCE} WHEN NOT MATCHED BY SOURCE THEN DELETE": {"DELETE"},
    "INSERT OVERWRITE d.t VALUES (9, 'i')": {"INSERT", "DELETE"},
    "INSERT OVERWRITE d.p PARTITION (k = 1) VALUES (9)": {"INSERT", "DELETE"},
    "INSERT OVERWRITE d.p VALUES (9, 1)": {"INSERT", "DELETE"},
    "TRUNCATE TABLE d.t": {"DELETE"},
    "TRUNCATE TABLE d.p": {"DELETE"},
    "ALTER TABLE d.t ADD COLUMNS (w int)": {"ALTER"},
    "DROP TABLE d.t": {"DROP"},
}


@pytest.fixture
def boss(metastore: Callable[..., str]) -> Iterator[Connection]:
    settings = {**SETTINGS, "hive.users.in.admin.role": "boss", "metastore.filesystem.directories": "true"}
    with connect(metastore(**settings), user="boss") as connection:
        connection.create_database("d")
        yield connection


@pytest.fixture
def owner(spark: SparkSession, boss: Connection) -> AcidSession:
    """Whose the tables are."""
    return hive_acid.spark.session(spark, boss)


@pytest.fixture
def acid(spark: SparkSession, boss: Connection) -> Iterator[AcidSession]:
    """A session of somebody who has no right."""
    with hive_acid.spark.session(spark, f"thrift://{boss.host}:{boss.port}") as session:
        yield session


def rows(owner: AcidSession) -> list[list[tuple[object, ...]]]:
    return [sorted(map(tuple, owner.sql(f"SELECT * FROM d.{name}").collect())) for name in ("t", "p")]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_takes_all_that_it_does(
    boss: Connection, owner: AcidSession, acid: AcidSession, statement: str
) -> None:
    owner.sql("CREATE TABLE d.t (id int, v string)")
    owner.sql("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")
    owner.sql("CREATE TABLE d.p (id int) PARTITIONED BY (k int)")
    owner.sql("INSERT INTO d.p VALUES (1, 1), (2, 2)")
    before = rows(owner)

    def grant(*verbs: str) -> None:
        for verb in verbs:
            for name in ("t", "p"):
                boss.call("grant_privileges", bag(verb, target("d", name), ME))

    for needed in STATEMENTS[statement]:
        others = [verb for verb in VERBS if verb != needed]
        grant(*others)
        with pytest.raises(
            AccessDeniedError, match=rf"{ME} may not call \w+: it takes (\w+ or )*{needed}( or \w+)* on"
        ):
            acid.sql(statement).collect()
        assert rows(owner) == before
        for name in ("t", "p"):
            owner.sql(f"REVOKE ALL ON TABLE d.{name} FROM USER `{ME}`")
    grant(*STATEMENTS[statement])
    acid.sql(statement).collect()
    if statement[:6] not in ("SELECT", "ALTER ", "DROP T"):
        assert rows(owner) != before


def test_what_is_not_there_is_told_to_who_sees_the_database(
    boss: Connection, owner: AcidSession, acid: AcidSession
) -> None:
    owner.sql("CREATE TABLE d.t (id int)")
    with pytest.raises(AccessDeniedError, match=r"it takes any right on table hive\.d.nothere"):
        acid.sql("SELECT * FROM d.nothere")
    owner.sql(f"GRANT SELECT ON TABLE d.t TO `{ME}`")
    with pytest.raises(NoSuchObjectError, match="nothere"):
        acid.table("d.nothere")
    acid.sql("DROP TABLE IF EXISTS d.nothere")
    for statement in (
        "CREATE TABLE d.mine (id int)", "CREATE TABLE d.mine AS SELECT 1 AS id", "CREATE TABLE d.mine LIKE d.t",
        "CREATE OR REPLACE TABLE d.mine (id int)", "CREATE VIEW d.mine AS SELECT id FROM d.t",
    ):  # fmt: skip
        with pytest.raises(AccessDeniedError, match=r"it takes CREATE on database hive\.d, or ADMIN"):
            acid.sql(statement)
    owner.sql("CREATE TABLE d.hidden (id int)")
    with pytest.raises(AccessDeniedError, match=r"it takes any right on table hive\.d.hidden"):
        acid.sql("SELECT * FROM d.hidden")
    owner.sql(f"GRANT CREATE ON DATABASE d TO `{ME}`")
    acid.sql("CREATE TABLE d.mine AS SELECT 1 AS id")
    assert acid.sql("SELECT * FROM d.mine").count() == 1


def test_revoke_all_takes_away_what_there_is(boss: Connection, owner: AcidSession, acid: AcidSession) -> None:
    owner.sql("CREATE TABLE d.t (id int)")
    owner.sql(f"GRANT SELECT, INSERT ON TABLE d.t TO USER `{ME}` WITH GRANT OPTION")
    owner.sql(f"GRANT ADMIN ON TABLE d.t TO USER `{ME}`")
    owner.sql("GRANT ADMIN, DROP ON DATABASE d TO USER eve")
    acid.sql("DELETE FROM d.t")
    owner.sql(f"REVOKE GRANT OPTION FOR ALL ON TABLE d.t FROM USER `{ME}`")
    shown = owner.sql(f"SHOW GRANT USER `{ME}` ON TABLE d.t").collect()
    assert {(row.privilege, row.grant_option) for row in shown} == {
        ("SELECT", "false"), ("INSERT", "false"), ("ADMIN", "false"),
    }  # fmt: skip
    owner.sql(f"REVOKE ALL PRIVILEGES ON TABLE d.t FROM USER `{ME}`")
    assert owner.sql(f"SHOW GRANT USER `{ME}` ON TABLE d.t").collect() == []
    with pytest.raises(AccessDeniedError):
        acid.sql("SELECT * FROM d.t").collect()
    with pytest.raises(HiveAcidError, match="was not granted ALL"):
        owner.sql(f"REVOKE ALL ON TABLE d.t FROM USER `{ME}`")
    owner.sql("REVOKE ALL ON DATABASE d FROM eve")
    assert owner.sql("SHOW GRANT USER eve ON DATABASE d").collect() == []
