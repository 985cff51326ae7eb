"""Streams where a rename is a copy, as in object stores: files are written where they belong, and marked at the end."""

from __future__ import annotations

import pytest

from hive_acid.errors import StreamingTransactionError
from hive_acid.filesystem import files
from hive_acid.streaming import delta
from tests.streaming.conftest import House

DELTA = "delta_0000001_0000001_0000"


@pytest.fixture
def by_key(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """Each row is written at once."""
    house.create({"id": "int"}, {"p": "string"})
    monkeypatch.setattr(files, "rename_is_copy", lambda location: True)
    monkeypatch.setattr(delta, "GATHERED_BYTES", 1)
    return house


def below(house: House) -> set[str]:
    return {entry.path for entry in files.list_tree(str(house.location)) if not entry.is_directory}


def test_files_are_marked_when_all_are_there(by_key: House) -> None:
    with by_key.stream() as stream:
        stream.begin_transaction()
        stream.write(b"1,a\n")
        stream.write(b"2,b\n3,a\n")
        assert below(by_key) == {f"p={p}/{DELTA}/bucket_00000" for p in "ab"}, "and in no hidden directory"
        stream.commit_transaction()
        assert stream.statistics.partitions_created == 2
    assert below(by_key) == {f"p={p}/{DELTA}/{name}" for p in "ab" for name in ("bucket_00000", "_orc_acid_version")}
    assert by_key.rows() == [(1, "p=a"), (2, "p=b"), (3, "p=a")]


def test_an_abort_removes_them(by_key: House) -> None:
    with by_key.stream() as stream:
        stream.begin_transaction()
        stream.write(b"1,a\n")
        stream.abort_transaction()
    assert below(by_key) == set()


def test_a_partition_that_moves_meanwhile_aborts(by_key: House) -> None:
    """Its rows are in the old place already."""
    with by_key.stream() as stream:
        stream.begin_transaction()
        stream.write(b"1,a\n")
        wire = by_key.connection.call("get_partition_by_name", "d", "t", "p=a")
        wire.sd.location += "_elsewhere"
        by_key.connection.call("alter_partition", "d", "t", wire)
        with pytest.raises(StreamingTransactionError, match=r"p=a of d\.t was moved"):
            stream.commit_transaction()
    assert below(by_key) == set()
