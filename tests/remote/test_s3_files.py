"""File operations where directories do not exist and a rename is a copy."""

from typing import Any

import pytest

from hive_acid.filesystem import files
from tests.remote.s3 import Store

pytestmark = pytest.mark.maven


@pytest.fixture
def root(store: Store, request: pytest.FixtureRequest) -> Any:
    return f"s3a://{store.bucket}/{request.node.name}"


def test_a_listing_has_the_directories_that_keys_imply(root: str) -> None:
    files.write(files.join(root, "t", "delta_1", "bucket_00000"), b"abc")
    files.write(files.join(root, "t", "delta_1", "_orc_acid_version"), b"2")
    files.write(files.join(root, "table", "other"), b"x")
    listed = [(entry.path, entry.size) for entry in files.list_tree(files.join(root, "t"))]
    assert listed == [("delta_1/", 0), ("delta_1/_orc_acid_version", 1), ("delta_1/bucket_00000", 3)]
    assert [entry.path for entry in files.list_tree(root, max_depth=2)] == [
        "t/",
        "t/delta_1/",
        "table/",
        "table/other",
    ]
    assert files.list_tree(files.join(root, "nothing")) == []
    assert min(entry.modified_ms for entry in files.list_tree(root)) > 1_700_000_000_000


def test_an_empty_directory_does_not_exist(root: str) -> None:
    files.make_directory(files.join(root, "empty"))
    assert not files.exists(files.join(root, "empty"))
    assert files.list_tree(root) == []


def test_a_directory_is_moved_whole_and_again(root: str) -> None:
    for name in ("a", "b/c"):
        files.write(files.join(root, "from", name), name.encode())
    files.rename(files.join(root, "from"), files.join(root, "to"))
    files.rename(files.join(root, "from"), files.join(root, "to"))
    assert [entry.path for entry in files.list_tree(root)] == ["to/", "to/a", "to/b/", "to/b/c"]
    assert files.read(files.join(root, "to", "b", "c")) == b"b/c"


def test_a_move_that_was_killed_goes_on(root: str) -> None:
    for name in ("a", "b"):
        files.write(files.join(root, "from", name), name.encode())
    files.write(files.join(root, "to", "a"), b"a")
    files.rename(files.join(root, "from"), files.join(root, "to"))
    assert [entry.path for entry in files.list_tree(root)] == ["to/", "to/a", "to/b"]


def test_a_file_is_moved(root: str) -> None:
    files.write(files.join(root, "one"), b"1")
    files.rename(files.join(root, "one"), files.join(root, "two"))
    assert not files.exists(files.join(root, "one"))
    assert files.read(files.join(root, "two")) == b"1"


def test_a_name_that_looks_like_a_pattern_is_just_a_name(root: str) -> None:
    """fsspec would take what fits: other tables."""
    for name in ("x[1]/a", "x1/a", "y*/b", "yes/b"):
        files.write(files.join(root, name), b"x")
    assert files.remove(files.join(root, "x[1]"))
    assert not files.remove(files.join(root, "x[1]"))
    files.rename(files.join(root, "y*"), files.join(root, "z?"))
    assert files.remove(files.join(root, "z?"))
    assert [entry.path for entry in files.list_tree(root) if not entry.is_directory] == ["x1/a", "yes/b"]


def test_removal_takes_all_and_may_be_repeated(root: str) -> None:
    for name in ("d/a", "d/b/c", "d2/a"):
        files.write(files.join(root, name), b"x")
    assert files.remove(files.join(root, "d"))
    assert not files.remove(files.join(root, "d"))
    assert [entry.path for entry in files.list_tree(root)] == ["d2/", "d2/a"]
