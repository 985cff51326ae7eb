"""Directory states of histories that a machine makes up, and what the vectors do not say."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hive_acid.errors import FormatError, NotEnoughHistoryError
from hive_acid.filesystem.files import FileEntry
from hive_acid.format.snapshot import RangeValidity, ValidTxnList, ValidWriteIdList
from hive_acid.format.state import directory_state

from .history import Compaction, History, Snapshot

ALL_VALID = ValidWriteIdList("db.t", 9)
TXNS = ValidTxnList(1000)
OUTCOMES = st.sampled_from(["committed", "committed", "committed", "aborted"])


class Table(RuleBasedStateMachine):
    """Writers, one compactor and readers that keep their snapshots, in any order; nothing is ever removed."""

    def __init__(self) -> None:
        super().__init__()
        self.history = History()
        self.open_txns: list[int] = []
        self.compaction: Compaction | None = None
        self.readers: list[Snapshot] = []

    @rule(writes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), OUTCOMES), min_size=1, max_size=4))
    def write_and_end(self, writes: list[tuple[int, int, str]]) -> None:
        for inserts, deletes, outcome in writes:
            txn_id = self.history.open_txn()
            self.history.write(txn_id, inserts, deletes)
            self.history.fate[txn_id] = outcome

    @precondition(lambda self: len(self.open_txns) < 2)
    @rule(inserts=st.integers(0, 3), deletes=st.integers(0, 2))
    def write(self, inserts: int, deletes: int) -> None:
        self.open_txns.append(self.history.open_txn())
        self.history.write(self.open_txns[-1], inserts, deletes)

    @precondition(lambda self: not self.open_txns and self.compaction is None)
    @rule(inserts=st.integers(0, 2), outcome=OUTCOMES)
    def overwrite(self, inserts: int, outcome: str) -> None:
        """Under its exclusive lock an overwrite is alone."""
        txn_id = self.history.open_txn()
        self.history.write(txn_id, inserts, 0, overwrite=True)
        self.history.fate[txn_id] = outcome

    @precondition(lambda self: self.open_txns)
    @rule(data=st.data(), outcome=OUTCOMES)
    def end(self, data: st.DataObject, outcome: str) -> None:
        txn_id = data.draw(st.sampled_from(self.open_txns))
        self.open_txns.remove(txn_id)
        self.history.fate[txn_id] = outcome

    @precondition(lambda self: self.compaction is None)
    @rule(major=st.booleans())
    def start_compaction(self, major: bool) -> None:
        self.compaction = self.history.compact(major)

    @precondition(lambda self: self.compaction is not None)
    @rule(outcome=OUTCOMES)
    def end_compaction(self, outcome: str) -> None:
        """The output is in place before the transaction ends; every reader in between is asked as well."""
        assert self.compaction is not None
        self.history.directories |= self.compaction.output
        self.check_all()
        self.history.fate[self.compaction.txn_id] = outcome
        self.compaction = None

    @rule()
    def take_snapshot(self) -> None:
        self.readers = [*self.readers[-4:], self.history.snapshot()]

    @invariant()
    def check_all(self) -> None:
        for snapshot in (*self.readers, self.history.snapshot()):
            self.check(snapshot)

    def check(self, snapshot: Snapshot) -> None:
        assert self.history.read(snapshot) == snapshot.promised
        state = self.history.state(snapshot)
        selected = [*state.data, *state.delete_deltas]
        for directory in selected:
            named = directory.directory
            assert not named.visibility_txn_id or snapshot.txns.is_valid(named.visibility_txn_id)
            if directory is not state.base:
                validity = snapshot.write_ids.range_validity(named.min_write_id, named.max_write_id)
                assert validity is not RangeValidity.NONE
        names = {directory.name for directory in selected}
        assert not names & {*state.obsolete, *state.aborted}
        assert not {*state.obsolete} & {*state.aborted}
        assert not any(snapshot.write_ids.is_valid(write_id) for write_id in state.aborted_write_ids)


Table.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestTable = Table.TestCase


def test_entries_of_the_file_layer() -> None:
    entries = [FileEntry("base_0000002/", 0), FileEntry("base_0000002/bucket_00001", 7), FileEntry("_SUCCESS", 0)]
    state = directory_state(entries, ALL_VALID, TXNS)
    assert state.base is not None
    assert [(file.path, file.size, file.bucket) for file in state.base.files] == [("base_0000002/bucket_00001", 7, 1)]
    assert state.base.size == 7
    assert state.base.validity is RangeValidity.ALL


def test_empty_directory() -> None:
    state = directory_state([], ALL_VALID, TXNS)
    assert state.base is None
    assert state.data == state.delete_deltas == ()
    assert state.obsolete == state.aborted == ()


def test_only_data_files_are_listed() -> None:
    entries = [
        ("delta_1_1_0/bucket_00000", 5),
        ("delta_1_1_0/_orc_acid_version", 1),
        ("delta_1_1_0/.bucket_00000.crc", 1),
        ("delta_1_1_0/_tmp/bucket_00001", 1),
        ("delta_1_1_0/000002_0", 3),
        ("delta_1_1_0/odd.orc", 2),
    ]
    (delta,) = directory_state(entries, ALL_VALID, TXNS).insert_deltas
    assert [(file.path, file.bucket) for file in delta.files] == [
        ("delta_1_1_0/000002_0", 2),
        ("delta_1_1_0/bucket_00000", 0),
        ("delta_1_1_0/odd.orc", None),
    ]
    assert not delta.unfinished


def test_side_file_marks_an_unfinished_delta() -> None:
    entries = [("delta_5_8/bucket_00000", 5), ("delta_5_8/bucket_00000_flush_length", 8)]
    (delta,) = directory_state(entries, ALL_VALID, TXNS).insert_deltas
    assert delta.unfinished
    assert [file.path for file in delta.files] == ["delta_5_8/bucket_00000"]


def test_aborted_ids_of_aborted_directories() -> None:
    entries = [
        (f"{name}/bucket_00000", 1) for name in ("delta_2_2_0", "delta_3_5", "base_6", "delta_7_8", "delta_9_9_0")
    ]
    state = directory_state(entries, ValidWriteIdList("db.t", 9, (), (2, 3, 4, 5, 6, 8)), TXNS)
    assert state.aborted == ("base_6", "delta_2_2_0", "delta_3_5")
    assert state.aborted_write_ids == (2, 3, 4, 5, 6)
    assert state.uncompacted_aborts


def test_open_overwrite_below_the_base_is_left_alone() -> None:
    entries = [("base_0000002/bucket_00000", 1), ("base_0000005/bucket_00000", 1)]
    state = directory_state(entries, ValidWriteIdList("db.t", 5, (2,)), TXNS)
    assert state.base is not None
    assert state.base.name == "base_0000005"
    assert state.obsolete == ()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("delta_3_1",), "make no sense"),
        (("base_x",), "make no sense"),
        (("delta_1_3_v7", "delta_2_5"), "overlap"),
        (("delta_1_1_0", "delta_0000001_0000001_0000"), "one and the same write"),
    ],
)
def test_contradicting_names(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        directory_state([(f"{name}/bucket_00000", 1) for name in names], ALL_VALID, TXNS)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"dataFormat":"other"}', b"{"])
def test_unknown_metadata(content: bytes) -> None:
    with pytest.raises(FormatError, match="_metadata_acid"):
        directory_state([("base_2/_metadata_acid", 1)], ALL_VALID, TXNS, {"base_2/_metadata_acid": content})


def test_metadata_must_be_given() -> None:
    with pytest.raises(FormatError, match="is needed"):
        directory_state([("base_2/_metadata_acid", 1)], ALL_VALID, TXNS)


def test_not_enough_history_says_what_is_left() -> None:
    with pytest.raises(NotEnoughHistoryError, match=r"db\.t .*older than base_0000008_v0000020"):
        directory_state([("base_0000008_v0000020/bucket_00000", 1)], ValidWriteIdList("db.t", 5), TXNS)
