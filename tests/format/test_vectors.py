"""Every vector of acid-format.md §8, in several orders of listing."""

import random

import pytest

from hive_acid.format.names import METADATA_MARKER
from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DirectoryState, directory_state

from .vectors import VECTORS, Vector, long_name, long_names

ORDERS = ("given", "reversed", "shuffled 1", "shuffled 2")


def test_there_are_57_vectors() -> None:
    assert [vector.id for vector in VECTORS] == [f"T{number:02d}" for number in range(1, 58)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.id} {vector.title}")
def test_vector(vector: Vector, order: str) -> None:
    if vector.error:
        with pytest.raises(vector.error) as raised:
            state_of(vector, order)
        assert raised.type is vector.error
        return
    state = state_of(vector, order)
    assert (state.base.name if state.base else "") == long_name(vector.base)
    assert sorted(d.name for d in state.insert_deltas) == sorted(long_names(vector.inserts))
    assert sorted(d.name for d in state.delete_deltas) == sorted(long_names(vector.deletes))
    assert [file.path for file in state.originals] == long_names(vector.originals)
    assert sorted(state.obsolete) == sorted(long_names(vector.obsolete))
    assert sorted(state.aborted) == sorted(long_names(vector.aborted))
    assert state.uncompacted_aborts == vector.uncompacted_aborts
    filtered = [d.name for d in (*state.data, *state.delete_deltas) if d.validity is RangeValidity.SOME]
    assert filtered == long_names(vector.filtered)


def state_of(vector: Vector, order: str) -> DirectoryState:
    entries = vector.entries()
    if order == "reversed":
        entries.reverse()
    elif order != "given":
        random.Random(order).shuffle(entries)
    return directory_state(entries, vector.write_id_list(), vector.txn_list(), vector.metadata())


def test_marker_is_read_only_where_it_decides() -> None:
    """A base with a visibility transaction is a compaction's, whatever its marker says."""
    read: list[str] = []

    def metadata(path: str) -> bytes:
        read.append(path)
        return b'{"thisFileVersion":"0","dataFormat":"compacted"}'

    entries = [
        (f"{directory}/{METADATA_MARKER}", 1)
        for directory in ("base_0000001_v0000004", "base_0000002", "delta_0000003_0000003")
    ]
    vector = Vector("", "", "hwm 3", "")
    state = directory_state(entries, vector.write_id_list(), vector.txn_list(), metadata)
    assert state.base is not None
    assert state.base.name == "base_0000002"
    assert read == [f"base_0000002/{METADATA_MARKER}"]
