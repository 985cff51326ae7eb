"""Listings of the local file system: what the general walk finds, and what happens to what vanishes."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hive_acid.filesystem import files
from tests.forks import status_of

NOBODY = 65534


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b/c/f", "b/g", "a", "b-c/h", "é/ü ö"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))
    (tmp_path / "empty").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "b")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    return tmp_path


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_a_local_listing_is_that_of_the_general_walk(tree: Path, depth: int | None) -> None:
    found = files.list_tree(f"file:{tree}", depth)
    general = sorted(files._walk(*files._open(str(tree)), "", depth), key=lambda entry: entry.path)
    assert [entry.path for entry in found] == [entry.path for entry in general]
    for one, other in zip(found, general, strict=True):
        if one.path not in ("linked", "broken"):
            assert one.size == other.size
            assert abs(one.modified_ms - other.modified_ms) <= 1
    assert ("b/c/" in {entry.path for entry in found}) == (depth != 1)


def test_what_is_not_there_is_not_listed(tree: Path) -> None:
    assert files.list_tree(str(tree / "no such")) == []
    assert files.list_tree(str(tree / "a")) == []


def test_what_may_not_be_read_is_an_error_and_not_an_empty_directory() -> None:
    """In a process of another user, since the superuser may read all."""

    def look() -> int:
        if os.geteuid() == 0:
            os.setuid(NOBODY)
        try:
            files.list_tree(str(place))
        except PermissionError:
            return 0
        return 1

    with tempfile.TemporaryDirectory(dir="/tmp") as below:  # pytest's own directory is of its user alone
        place = Path(below)
        place.chmod(0o755)
        (place / "closed").mkdir(mode=0)
        assert status_of(look) == 0
        (place / "closed").chmod(0o755)
        assert status_of(look) == 1, "it is the rights that make the error"


def test_several_listings(tree: Path) -> None:
    found = files.list_trees([str(tree / "b"), f"file://{tree}/empty", str(tree / "b-c")])
    assert [[entry.path for entry in of] for of in found] == [["c/", "c/f", "g"], [], ["h"]]


def test_the_end_of_a_file(tree: Path) -> None:
    (tree / "f").write_bytes(b"0123456789")
    assert files.read_end(str(tree / "f"), 10, 4) == b"6789"
    assert files.read_end(f"file:{tree}/f", 10, 40) == b"0123456789"


@pytest.mark.parametrize("step", range(4))
def test_of_two_who_rename_at_once_neither_fails(tree: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    source, target = tree / "b", tree / "to/b"
    filesystem, _ = files._open(str(tree))
    steps = 0

    def interrupted(name: str) -> None:
        original = getattr(filesystem, name)

        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            if steps == step:
                target.parent.mkdir(exist_ok=True)
                source.rename(target)
            steps += 1
            return original(*arguments, **options)

        monkeypatch.setattr(filesystem, name, call)

    for name in ("exists", "makedirs", "mv"):
        interrupted(name)
    files.rename(str(source), str(target))
    assert steps > step
    assert sorted(path.name for path in target.iterdir()) == ["c", "g"]


def test_a_rename_needs_a_source_and_a_free_target(tree: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such"):
        files.rename(str(tree / "no such"), str(tree / "to"))
    with pytest.raises(FileExistsError, match="empty"):
        files.rename(str(tree / "b"), str(tree / "empty"))
    files.rename(str(tree / "b"), str(tree / "to"))
    files.rename(str(tree / "b"), str(tree / "to"))
    assert (tree / "to/g").exists()


def test_an_empty_directory_goes_and_nothing_else(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "empty/in/it").mkdir(parents=True)
    for name in ("a", "b", "no such", "linked", "broken"):
        assert not files.remove_empty(f"file:{tree}/{name}"), name
    assert files.remove_empty(f"file:{tree}/empty")
    assert sorted(os.listdir(tree)) == ["a", "b", "b-c", "broken", "linked", "\u00e9"]
    (tree / "late/below").mkdir(parents=True)
    list_tree = files.list_tree

    def listed_before(location: str) -> list[files.FileEntry]:
        found = list_tree(location)
        (tree / "late/file").write_text("came meanwhile")
        return found

    monkeypatch.setattr(files, "list_tree", listed_before)
    assert not files.remove_empty(f"file:{tree}/late")
    assert os.listdir(tree / "late") == ["file"]


def test_many_directories_are_made(tree: Path) -> None:
    wanted = [f"file:{tree}/new/k={number}" for number in range(250)]
    assert files.make_directories([*wanted, f"file:{tree}/b", wanted[0]]) == (wanted, None)
    made, failed = files.make_directories([f"file:{tree}/x", f"file:{tree}/a/below"])
    assert made == [f"file:{tree}/x"]
    assert failed is not None
    assert failed[0] == f"file:{tree}/a/below"
    assert isinstance(failed[1], OSError)


@pytest.mark.parametrize(
    "call",
    [
        files.exists,
        files.make_directory,
        files.list_tree,
        files.remove,
        files.remove_empty,
        files.read,
        lambda location: files.write(location, b""),
        lambda location: files.rename(location, f"{location}.new"),
        lambda location: files.copy(location, f"{location}.new"),
    ],
)
def test_what_hdfs_refuses_is_an_os_error(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """To hdfs-native it is a RuntimeError, whatever is asked."""

    class Refusing:
        def __getattr__(self, name: str) -> Any:
            def refuse(*args: Any, **options: Any) -> Any:
                raise RuntimeError("Operation category READ is not supported in state standby")

            return refuse

    monkeypatch.setattr(files.hdfs, "opened", lambda location: (Refusing(), "/there"))  # type: ignore[attr-defined]
    monkeypatch.setattr(files, "keep_in_children", lambda filesystem: None)
    with pytest.raises(OSError, match="standby"):
        call("hdfs://host:9000/there")


@pytest.mark.parametrize("name", ["a::b", "zip::c", "~", "a%20b", "x?y#z", "a b", "memory:", "{d}", "*", "[e]"])
@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_place_on_the_disk_is_what_it_says(tmp_path: Path, name: str, scheme: str) -> None:
    """Signs that mean something in a URL, or to who keeps several file systems in one, are signs in names here."""
    at = f"{scheme}{tmp_path}/{name}/t"
    files.make_directory(at)
    files.write(f"{at}/f", b"x")
    assert (tmp_path / name / "t" / "f").read_bytes() == b"x"
    files.rename(f"{at}/f", f"{at}/{name}")
    assert [entry.path for entry in files.list_tree(at)] == [name]
    assert files.exists(f"{at}/{name}")
    assert files.read(f"{at}/{name}") == b"x"
    files.remove(at)
    assert not (tmp_path / name / "t").exists()


def test_what_two_remove_at_once_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other one has taken is not there any more, and the rest goes."""
    root, rm = tmp_path / "root", files._LOCAL.rm
    root.mkdir()
    for name in "abc":
        (root / name).touch()

    def taken(path: str, recursive: bool) -> None:
        if (root / "a").exists():
            (root / "a").unlink()
            raise FileNotFoundError(root / "a")
        rm(path, recursive=recursive)

    monkeypatch.setattr(files._LOCAL, "rm", taken)
    assert files.remove(str(root)) is True
    assert not root.exists()
    monkeypatch.undo()
    assert files.remove(str(root)) is False
