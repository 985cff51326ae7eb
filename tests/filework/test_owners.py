"""Directories of users where the metastore is root, who gives away nothing but what it has made."""

import os
import pwd
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid import connect
from hive_acid.wire import ttypes
from metastore.app import App, ServeOptions, StartError
from metastore.compaction.worker.output import publish_output
from metastore.config import Config
from metastore.filework.owners import OWNERS
from tests.served import served

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

USER = "daemon"
UID, GID = pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid


@pytest.fixture(autouse=True)
def _on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWNERS, "is_on", True)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    return lambda: [one.getMessage() for one in caplog.records if "stays the metastore's" in one.getMessage()]


def users(*paths: Path) -> list[tuple[int, int]]:
    return [(status.st_uid, status.st_gid) for status in map(os.lstat, paths)]


def made(path: Path, user: str | None = None) -> Path:
    path.mkdir(parents=True)
    if user is not None:
        os.chown(path, UID, GID)
    return path


def test_directories_of_the_catalogue(postgres_url: str, template: str, tmp_path: Path) -> None:
    root = tmp_path / "warehouse"
    with (
        served(postgres_url, template, root, {"metastore.filesystem.owners": "true"}) as running,
        connect(running.uri, user=USER) as connection,
    ):
        connection.create_database("d")
        columns = [ttypes.FieldSchema("id", "int", None)]
        keys = [ttypes.FieldSchema(name, "string", None) for name in ("p", "q")]
        orc = "org.apache.hadoop.hive.ql.io.orc.Orc"
        descriptor = ttypes.StorageDescriptor(
            cols=columns,
            inputFormat=f"{orc}InputFormat",
            outputFormat=f"{orc}OutputFormat",
            serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
        )
        for name, owner in (("t", USER), ("of_nobody_here", "no such user"), ("of_root", "root")):
            table = ttypes.Table(
                tableName=name, dbName="d", owner=owner, sd=descriptor, partitionKeys=keys,
                parameters={"transactional": "true"}, tableType="MANAGED_TABLE",
            )  # fmt: skip
            connection.call("create_table", table)
        for name in ("t", "of_root"):
            connection.call("append_partition", "d", name, ["1", "2"])
        connection.call("truncate_table", "d", "t", ["p=1/q=2"])
        place = root / "d.db"
        (base,) = (place / "t" / "p=1" / "q=2").glob("base_*")
        own = [place, place / "t", place / "t" / "p=1", place / "t" / "p=1" / "q=2", base, *base.iterdir()]
        assert users(*own) == [(UID, GID)] * len(own)
        others = [root, place / "of_nobody_here", place / "of_root", place / "of_root" / "p=1"]
        assert users(*others) == [(0, 0)] * len(others)


def test_what_a_compaction_makes(tmp_path: Path) -> None:
    table = made(tmp_path / "t", USER)
    output = made(table / ".staging" / "base_5")
    for name in ("bucket_00000", "_orc_acid_version"):
        (output / name).write_text("x")
    publish_output(str(table / ".staging"), str(table), ["base_5"])
    publish_output(str(table / ".staging"), str(table), ["base_5"])
    assert users(table / "base_5", *(table / "base_5").iterdir()) == [(UID, GID)] * 3
    assert not (table / ".staging").exists()


def test_it_goes_by_no_link_of_others(tmp_path: Path, told: Callable[[], list[str]]) -> None:
    secret = made(tmp_path / "etc")
    inner = made(secret / "inner")
    home = made(tmp_path / "home", USER)
    (home / "link").symlink_to(secret)
    os.lchown(home / "link", UID, GID)
    OWNERS.give(str(home / "link" / "inner"), USER)
    OWNERS.give(str(home / "link"), USER)
    OWNERS.give_below([str(home / "link" / "inner")], str(home))
    OWNERS.give_tree(str(home / "link"), str(home))
    assert users(secret, inner) == [(0, 0)] * 2
    assert len(told()) == 4
    (tmp_path / "ours").symlink_to("home/../etc")  # that of root is a part of the way
    OWNERS.give(f"file:{tmp_path}/ours/inner", USER)
    assert users(secret, inner) == [(0, 0), (UID, GID)]


def test_it_gives_no_file_with_another_name_and_none_of_others(tmp_path: Path) -> None:
    home = made(tmp_path / "home", USER)
    tree = made(home / "tree")
    kept = tmp_path / "shadow"
    kept.write_text("x")
    os.link(kept, tree / "linked")
    (tree / "pointer").symlink_to(kept)
    os.mkfifo(tree / "pipe")
    other = made(tree / "other")
    os.chown(other, UID + 1, GID)
    (other / "file").write_text("x")
    OWNERS.give_tree(str(tree), str(home))
    assert users(tree) == [(UID, GID)]
    assert users(kept, tree / "pointer", tree / "pipe", other / "file") == [(0, 0)] * 4
    assert users(other) == [(UID + 1, GID)]


def test_who_swaps_directories_meanwhile_gets_none(tmp_path: Path) -> None:
    """Between a directory and a link to root's own, again and again, while the server gives."""
    home = made(tmp_path / "home", USER)
    secret = made(tmp_path / "etc" / "t")
    (home / "d").mkdir()
    os.symlink(secret.parent, home / "link")
    os.lchown(home / "link", UID, GID)
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            os.rename(home / "d", home / "kept")
            os.rename(home / "link", home / "d")
            os.rename(home / "d", home / "link")
            os.rename(home / "kept", home / "d")

    swapping = threading.Thread(target=swap)
    swapping.start()
    given = 0
    try:
        for number in range(400):
            (tmp_path / "etc" / f"t{number}").mkdir()
            for place in (home / "d", home / "kept"):
                try:
                    os.mkdir(place / f"t{number}")
                except OSError:
                    continue
            OWNERS.give(str(home / "d" / f"t{number}"), USER)
    finally:
        is_over.set()
        swapping.join()
    stolen = [one for one in (tmp_path / "etc").iterdir() if users(one) != [(0, 0)]]
    given = sum(users(one) == [(UID, GID)] for one in (home / "d").iterdir())
    assert stolen == []
    assert given


def test_nothing_is_given_without_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OWNERS, "is_on", False)
    home = made(tmp_path / "home", USER)
    inner = made(home / "inner")
    OWNERS.give(str(inner), USER)
    OWNERS.give_tree(str(inner), str(home))
    OWNERS.give_below([str(inner)], str(home))
    monkeypatch.setattr(OWNERS, "is_on", True)
    OWNERS.give("s3a://bucket/x", USER)
    assert users(inner) == [(0, 0)]


def test_who_is_not_root_gives_nothing(tmp_path: Path, db_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    config = Config.parse(["metastore.filesystem.owners=true"])
    app = App(ServeOptions("127.0.0.1", 0, None, db_url, str(tmp_path / "w"), config))
    with pytest.raises(StartError, match="which root alone may"):
        app.start()
