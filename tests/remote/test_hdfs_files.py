"""File operations on HDFS: directories exist, a rename is one step."""

import time
from typing import Any

import pytest

from hive_acid.filesystem import files

pytestmark = pytest.mark.maven


@pytest.fixture
def root(hdfs: str, request: pytest.FixtureRequest) -> Any:
    return f"{hdfs}/{request.node.name}"


@pytest.mark.sampled(of="stores beside the disk")
def test_a_listing_has_files_and_directories(root: str) -> None:
    before = time.time() * 1000
    files.write(files.join(root, "t", "delta_1", "bucket_00000"), b"abc")
    files.make_directory(files.join(root, "t", "empty"))
    listed = files.list_tree(files.join(root, "t"))
    assert [(entry.path, entry.size) for entry in listed] == [
        ("delta_1/", 0),
        ("delta_1/bucket_00000", 3),
        ("empty/", 0),
    ]
    assert all(before - 60_000 < entry.modified_ms < before + 60_000 for entry in listed)
    assert [entry.path for entry in files.list_tree(root, max_depth=1)] == ["t/"]
    assert files.list_tree(files.join(root, "nothing")) == []


def test_a_file_is_written_read_copied_and_replaced(root: str) -> None:
    files.write(files.join(root, "a"), b"older")
    files.write(files.join(root, "a"), b"new")
    files.copy(files.join(root, "a"), files.join(root, "below", "b"))
    files.copy(files.join(root, "a"), files.join(root, "below", "b"))
    with files.create(files.join(root, "made", "c")) as made:
        made.write(b"0123")
        made.write(b"456789")
    assert files.read(files.join(root, "below", "b")) == b"new"
    with files.opened(files.join(root, "made", "c")) as opened:
        opened.seek(4)
        assert opened.read(3) == b"456"
    assert [entry.path for entry in files.list_tree(root)] == ["a", "below/", "below/b", "made/", "made/c"]


def test_a_directory_is_moved_whole_and_again(root: str) -> None:
    files.write(files.join(root, "from", "b", "c"), b"x")
    for _ in range(2):
        files.rename(files.join(root, "from"), files.join(root, "deep", "to"))
    assert [entry.path for entry in files.list_tree(root)] == ["deep/", "deep/to/", "deep/to/b/", "deep/to/b/c"]


def test_what_is_removed_is_gone_and_that_is_told_once(root: str) -> None:
    files.write(files.join(root, "d", "a"), b"x")
    assert files.remove(files.join(root, "d"))
    assert not files.remove(files.join(root, "d"))
    assert not files.exists(files.join(root, "d"))


@pytest.mark.parametrize("name", ["p=a;b", "p=a?b", "p=a#b", "p=a b", "p=é", "p=a%3Ab", "p=[a]*"])
def test_a_name_is_taken_as_it_is(root: str, name: str) -> None:
    """Read as parts of a URL some would name another directory."""
    for directory in (name, "p=a"):
        files.write(files.join(root, directory, "f"), directory.encode())
    assert files.read(files.join(root, name, "f")) == name.encode()
    assert {entry.path for entry in files.list_tree(root, max_depth=1)} == {f"{name}/", "p=a/"}
    files.rename(files.join(root, name), files.join(root, f"{name}2"))
    assert [entry.path for entry in files.list_tree(files.join(root, f"{name}2"))] == ["f"]
    assert files.remove(files.join(root, f"{name}2"))
    assert [entry.path for entry in files.list_tree(root)] == ["p=a/", "p=a/f"]


def test_what_is_refused_is_an_error_of_files(root: str) -> None:
    files.write(files.join(root, "file"), b"x")
    for refused in (files.make_directory, lambda place: files.write(place, b"y")):
        with pytest.raises(OSError, match="file"):
            refused(files.join(root, "file", "below"))


def test_a_place_is_below_another(hdfs: str) -> None:
    assert files.is_below(f"{hdfs}/a/b", f"{hdfs}/a")
    assert not files.is_below(f"{hdfs}/ab", f"{hdfs}/a")
