"""A session of Spark at a metastore that asks for a password over TLS; the password is in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from metastore.rpc.doors.users.passwords import change
from tests.authority import Authority
from tests.rpc.doors.realm import REALM, missing, realm
from tests.served import served

pytestmark = pytest.mark.spark


def test_a_session_logs_in(
    spark: SparkSession,
    postgres_url: str,
    template: str,
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pair = authority.issue("metastore", "DNS:localhost", "IP:127.0.0.1")
    change(tmp_path / "users", "ann", "geheim")
    (tmp_path / "password").write_text("geheim\n")
    settings = {
        **pair.shown_by_a_server,
        "metastore.authentication": "password",
        "metastore.authentication.password.file": str(tmp_path / "users"),
    }
    monkeypatch.setenv("HIVE_ACID_TLS_CA", str(authority.ca))
    monkeypatch.setenv("HIVE_ACID_PASSWORD_FILE", str(tmp_path / "password"))
    with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
        uri = running.uri.replace("://", "://ann@")
        with hive_acid.spark.session(spark, uri) as acid:
            acid.sql("CREATE DATABASE d")
            acid.create_table("d.t", {"id": "int", "name": "string"})
            acid.sql("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")
            acid.sql("UPDATE d.t SET name = 'c' WHERE id = 2")
            assert sorted(map(tuple, acid.table("d.t").collect())) == [(1, "a"), (2, "c")]
            sink = acid.sink("d.t", query="q")
            vars(sink).update(sink.__getstate__())  # as in another process, where the file has the password
            assert vars(sink)["_login"] is None
            (tmp_path / "in").mkdir()
            (tmp_path / "in" / "1.json").write_text('{"id": 3, "name": "s"}')
            read = spark.readStream.schema("id int, name string").json(str(tmp_path / "in"))
            writer = read.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
            writer.trigger(availableNow=True).start().awaitTermination()
            assert sorted(map(tuple, acid.table("d.t").collect())) == [(1, "a"), (2, "c"), (3, "s")]


def test_a_session_has_a_ticket(
    spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the settings that Hive's client in Spark takes."""
    if (words := missing()) is not None:
        pytest.skip(words)
    (tmp_path / "realm").mkdir()
    with realm(tmp_path / "realm") as house:
        house.enter(monkeypatch)
        house.add("ann")
        settings = {
            "metastore.authentication": "kerberos",
            "metastore.kerberos.keytab.file": str(house.add("hive/localhost")),
            "metastore.kerberos.principal": f"hive/localhost@{REALM}",
        }
        monkeypatch.setenv("KRB5CCNAME", str(house.ticket("ann")))
        with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
            told = {
                "spark.hadoop.hive.metastore.uris": running.uri.replace("127.0.0.1", "localhost"),
                "spark.hadoop.hive.metastore.sasl.enabled": "true",
                "spark.hadoop.hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}",
            }
            for key, value in told.items():
                spark.conf.set(key, value)
            try:
                with hive_acid.spark.enable(spark) as acid:
                    assert acid.connection.user == "ann"
                    spark.sql("CREATE DATABASE d")
                    spark.sql("CREATE TABLE d.t (id int)")
                    spark.sql("INSERT INTO d.t VALUES (1), (2)")
                    assert spark.table("d.t").count() == 2
            finally:
                for key in told:
                    spark.conf.unset(key)
