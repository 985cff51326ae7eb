"""Directories of users on HDFS, where the metastore is a superuser."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hive_acid import connect
from hive_acid.filesystem import files
from hive_acid.filesystem.files import owner, set_owner
from hive_acid.filesystem.hdfs import Owner
from hive_acid.wire import ttypes
from metastore.compaction.worker.output import publish_output
from metastore.filework.owners import OWNERS
from tests.served import served

pytestmark = [pytest.mark.maven, pytest.mark.sampled(of="stores beside the disk")]

USER = "ann"
ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"


@pytest.fixture(autouse=True)
def _on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWNERS, "is_on", True)


@pytest.fixture
def root(hdfs: str) -> Iterator[str]:
    place = f"{hdfs}/owners"
    files.make_directory(place)
    yield place
    files.remove(place)


@pytest.fixture
def ours(root: str) -> str:
    """Who the tests are to the name node."""
    return owner(root).user


def made(location: str, user: str | None = None) -> str:
    files.make_directory(location)
    if user is not None:
        set_owner(location, Owner(user, "staff"))
    return location


def users(*locations: str) -> list[str]:
    return [owner(location).user for location in locations]


def test_directories_of_the_catalogue(postgres_url: str, template: str, root: str, ours: str) -> None:
    with (
        served(postgres_url, template, root, {"metastore.filesystem.owners": "true"}) as running,
        connect(running.uri, user=USER) as connection,
    ):
        connection.create_database("d")
        descriptor = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema("id", "int", None)],
            inputFormat=f"{ORC}InputFormat",
            outputFormat=f"{ORC}OutputFormat",
            serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
        )
        keys = [ttypes.FieldSchema(name, "string", None) for name in ("p", "q")]
        for name, whose in (("t", "bob"), ("of_the_metastore", ours)):
            table = ttypes.Table(
                tableName=name, dbName="d", owner=whose, sd=descriptor, partitionKeys=keys,
                parameters={"transactional": "true"}, tableType="MANAGED_TABLE",
            )  # fmt: skip
            connection.call("create_table", table)
            connection.call("append_partition", "d", name, ["1", "2"])
        connection.call("truncate_table", "d", "t", ["p=1/q=2"])
        place = f"{root}/d.db"
        partition = f"{place}/t/p=1/q=2"
        (base,) = (entry.path for entry in files.list_tree(partition, 1) if entry.path.startswith("base_"))
        below = [files.join(partition, base, entry.path) for entry in files.list_tree(files.join(partition, base))]
        assert users(place) == [USER]
        assert below
        assert {*users(f"{place}/t", f"{place}/t/p=1", partition, files.join(partition, base), *below)} == {"bob"}
        assert {*users(root, f"{place}/of_the_metastore", f"{place}/of_the_metastore/p=1")} == {ours}
        assert writes("bob", f"{partition}/delta_1")
        assert not writes("carl", f"{partition}/delta_2")
        connection.call("drop_table", "d", "t", True)
        assert not files.exists(f"{place}/t")


def writes(user: str, location: str) -> bool:
    """Whether the name node lets a user make a directory."""
    program = f"from hive_acid.filesystem import files; files.make_directory({location!r})"
    return run_as(user, program).returncode == 0


def run_as(user: str, program: str) -> subprocess.CompletedProcess[str]:
    """A program of a user of HDFS, at its end."""
    environment = {**os.environ, "HADOOP_USER_NAME": user}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, timeout=60, capture_output=True, text=True, check=False)


def test_what_a_compaction_makes(root: str) -> None:
    table = made(f"{root}/t", USER)
    output = made(f"{table}/.staging/base_5")
    for name in ("bucket_00000", "_orc_acid_version"):
        files.write(f"{output}/{name}", b"x")
    publish_output(f"{table}/.staging", table, ["base_5"])
    publish_output(f"{table}/.staging", table, ["base_5"])
    below = [f"{table}/base_5", f"{table}/base_5/bucket_00000", f"{table}/base_5/_orc_acid_version"]
    assert [owner(location) for location in below] == [Owner(USER, "staff")] * 3
    assert not files.exists(f"{table}/.staging")


def test_what_is_of_others_stays_theirs(root: str, ours: str) -> None:
    home = made(f"{root}/home", USER)
    tree = made(f"{home}/tree")
    other = made(f"{tree}/other", "bob")
    files.write(f"{tree}/file", b"x")
    OWNERS.give_tree(tree, home)
    OWNERS.give(other, USER)
    OWNERS.give_below([other], home)
    assert users(tree, f"{tree}/file", other) == [USER, USER, "bob"]
    OWNERS.give(made(f"{home}/new"), ours)
    assert users(f"{home}/new") == [ours]
    assert [entry.path for entry in files.list_tree(root) if ".owner-" in entry.path] == []


def test_who_is_no_superuser_gives_nothing_and_says_so(root: str, hdfs: str) -> None:
    place = made(f"{root}/open", "carl")
    program = (
        "import logging; logging.basicConfig(); from hive_acid.filesystem import files\n"
        "from metastore.filework.owners import OWNERS; OWNERS.is_on = True\n"
        f"files.make_directory({place!r} + '/d'); OWNERS.give({place!r} + '/d', 'ann')"
    )
    told = run_as("carl", program)
    assert told.returncode == 0, told.stderr
    assert "stays the metastore's" in told.stderr
    assert users(f"{place}/d") == ["carl"]
