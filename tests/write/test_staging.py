"""A write's files take a place that is free, and only its own are removed again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from hive_acid.filesystem import files
from hive_acid.ids import TxnId
from hive_acid.write.staging import INSERT, StagedFiles, Staging

NAME = "delta_0000001_0000001_0000"


@pytest.fixture(params=["renames", "copies"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "renames":
        yield str(tmp_path)
        return
    monkeypatch.setattr(files, "rename_is_copy", lambda location: True)
    yield "memory://staging"
    fsspec.filesystem("memory").store.clear()


def made(root: str, is_marked: bool = True) -> tuple[Staging, StagedFiles]:
    staging = Staging.below(f"{root}/t", TxnId(7))
    files.make_directory(staging.location)
    files.write(files.join(staging.location, "0"), b"ours")
    return staging, StagedFiles(INSERT, (), {0: "0"}, is_marked=is_marked)


def content(root: str) -> dict[str, bytes]:
    found = [entry.path for entry in files.list_tree(f"{root}/t") if not entry.is_directory]
    return {path: files.read(files.join(root, "t", path)) for path in found}


@pytest.mark.parametrize("theirs", [b"them", b"theirs"], ids=["of one size", "of another size"])
@pytest.mark.parametrize("file", ["bucket_00000", "bucket_00001"])
@pytest.mark.parametrize("lost", [False, True], ids=["staged", "staged files gone"])
@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "plain"])
def test_what_somebody_else_has_at_the_place_stays(
    root: str, file: str, theirs: bytes, lost: bool, is_marked: bool
) -> None:
    """As after another client's rename of the table, and a new table at its place with rows of its own."""
    staging, found = made(root, is_marked)
    files.make_directory(f"{root}/t/{NAME}")
    files.write(f"{root}/t/{NAME}/{file}", theirs)
    if lost:
        files.remove(staging.location)
    with pytest.raises((FileExistsError, FileNotFoundError)):
        staging.publish([found], lambda _: (f"{root}/t", NAME))
    staging.undo()
    assert content(root) == {f"{NAME}/{file}": theirs}


def test_what_it_has_put_into_place_is_removed(root: str) -> None:
    staging, found = made(root)
    staging.publish([found], lambda _: (f"{root}/t", NAME))
    assert content(root)[f"{NAME}/bucket_00000"] == b"ours"
    staging.undo()
    assert content(root) == {}
