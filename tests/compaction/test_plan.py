"""Plans: from a listing to what is merged and how the result is called (acid-format.md §6.1, §6.2)."""

from typing import Any

import pytest

from hive_acid.filesystem.files import FileEntry
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId
from metastore.compaction.models import Storage, TableInfo
from metastore.compaction.plan import CompactionRefusedError, TableKind, compaction_input, plan_compaction
from metastore.compaction.states import CompactionType

MAJOR, MINOR, REBALANCE = CompactionType.MAJOR, CompactionType.MINOR, CompactionType.REBALANCE
NO_WRITES = "d.t:10000000:9223372036854775807::"
FIRST = "delta_10000001_10000001_0000/bucket_00000"


def plan(
    names: Any, kind: Any, write_ids: Any = "d.t:10000002:9223372036854775807::", buckets: Any = None, **table: Any
) -> Any:
    entries = [FileEntry(name, 1) for name in names]
    txns = ValidTxnList.parse("20:9223372036854775807::")
    found = compaction_input(entries, ValidWriteIdList.parse(write_ids), txns, lambda _: b"")
    return plan_compaction(found, kind, TxnId(21), TableKind(**table), buckets=buckets)


def merged(found: Any) -> Any:
    return [directory.name for directory in found.data], [file.path for file in found.raw], found.insert_output


@pytest.mark.parametrize(
    ("listing", "expected"),
    [
        (["000000_0"], ([], ["000000_0"], "base_-9223372036854775808_v0000021")),
        (
            ["000000_0_copy_1", "000000_0", "HIVE_UNION_SUBDIR_1/000000_0", "part-00000-1-c000.orc"],
            (
                [],
                ["000000_0", "000000_0_copy_1", "HIVE_UNION_SUBDIR_1/000000_0", "part-00000-1-c000.orc"],
                "base_-9223372036854775808_v0000021",
            ),
        ),
        (
            ["000000_0", FIRST, "delta_10000002_10000002_0000/000000_0"],
            (
                ["delta_10000001_10000001_0000"],
                ["000000_0", "delta_10000002_10000002_0000/000000_0"],
                "base_10000002_v0000021",
            ),
        ),
        (["base_10000002/000000_0"], ([], ["base_10000002/000000_0"], "base_10000002_v0000021")),
        (
            ["base_10000001/000000_0", "000000_0", "delta_10000002_10000002_0000/bucket_00000"],
            (["delta_10000002_10000002_0000"], ["base_10000001/000000_0"], "base_10000002_v0000021"),
        ),
    ],
)
def test_a_major_compaction_takes_in_files_without_ids(listing: Any, expected: Any) -> None:
    assert merged(plan(listing, MAJOR)) == expected


def test_originals_alone_make_a_base_that_all_snapshots_accept() -> None:
    """T48: whatever the write ids, and deletes of them are applied by the next one."""
    assert plan(["000000_0"], MAJOR, NO_WRITES).insert_output == "base_-9223372036854775808_v0000021"
    compacted = ["base_-9223372036854775808_v0000020/bucket_00000"]
    assert plan(compacted, MAJOR, NO_WRITES) is None
    found = plan([*compacted, "delete_delta_10000001_10000001_0000/bucket_00000"], MAJOR)
    assert merged(found) == ([compacted[0].partition("/")[0]], [], "base_10000001_v0000021")
    assert [directory.name for directory in found.deletes] == ["delete_delta_10000001_10000001_0000"]


def test_a_minor_compaction_leaves_originals_and_takes_loaded_files() -> None:
    found = plan(["000000_0", FIRST, "delta_10000002_10000002_0000/000000_0"], MINOR)
    assert merged(found) == (
        ["delta_10000001_10000001_0000"],
        ["delta_10000002_10000002_0000/000000_0"],
        "delta_10000001_10000002_v0000021",
    )
    assert plan(["000000_0", FIRST], MINOR) is None


@pytest.mark.parametrize(
    "listing",
    [
        ["delta_10000001_10000001_0000/bucket_00000", "delta_10000001_10000001_0000/000001_0"],
        [FIRST, "delete_delta_10000002_10000002_0000/000000_0"],
        ["delta_10000001_10000002/000000_0"],
    ],
)
def test_files_whose_rows_cannot_be_named_are_refused(listing: Any) -> None:
    with pytest.raises(CompactionRefusedError, match="000"):
        plan(listing, MAJOR)


# --- rebalance -----------------------------------------------------------------------------------

SECOND = "delta_10000002_10000002_0000/bucket_00001"


def test_a_rebalance_takes_all_and_nobody_else_may_write() -> None:
    found = plan([FIRST, SECOND, "delete_delta_10000002_10000002_0000/bucket_00000"], REBALANCE)
    assert (found.kind, found.exclusive_write, found.buckets) == (REBALANCE, True, 2)
    assert (found.insert_output, found.delete_output) == ("base_10000002_v0000021", None)
    assert plan([FIRST], REBALANCE, buckets=7).buckets == 7
    assert plan([], REBALANCE) is None
    again = plan(["base_10000002_v0000019/bucket_00000"], REBALANCE)
    assert again.insert_output == "base_10000002_v0000021"
    assert not plan([FIRST, SECOND], MAJOR).exclusive_write


@pytest.mark.parametrize(
    ("reason", "table", "buckets"),
    [
        ("CLUSTERED", {"is_clustered": True}, None),
        ("insert-only", {"insert_only": True}, None),
        ("Hive 3.1", {"hive_3": True}, None),
        ("bucket 0", {"in_one_bucket": True}, 2),
        ("1 to 4096", {}, 0),
        ("1 to 4096", {}, 4097),
    ],
)
def test_rebalances_that_are_refused(reason: str, table: Any, buckets: int | None) -> None:
    with pytest.raises(CompactionRefusedError, match=reason):
        plan([FIRST, SECOND], REBALANCE, buckets=buckets, **table)


def test_no_delete_may_lie_beyond_a_rebalance() -> None:
    """Write 1 is open, and write 2 has deleted rows by the ids that they would lose."""
    listing = ["base_10000000_v0000009/bucket_00000", "delete_delta_10000002_10000002_0000/bucket_00000"]
    with pytest.raises(CompactionRefusedError, match="delete_delta_10000002"):
        plan(listing, REBALANCE, "d.t:10000002:10000001:10000001:")
    assert plan(listing, REBALANCE).insert_output == "base_10000002_v0000021"
    aborted = plan(listing, REBALANCE, "d.t:10000002:10000001:10000001:10000002")
    assert aborted.insert_output == "base_10000000_v0000021"


# --- insert-only tables --------------------------------------------------------------------------


def test_insert_only_tables_have_directories_side_by_side() -> None:
    listing = ["base_10000000/x.orc", "delta_10000001_10000001_0000/000000_0", "delta_10000002_10000002_0000/part-0"]
    minor, major = plan(listing, MINOR, insert_only=True), plan(listing, MAJOR, insert_only=True)
    assert [found.name for found in minor.data] == ["delta_10000001_10000001_0000", "delta_10000002_10000002_0000"]
    assert minor.outputs == ("delta_10000001_10000002_v0000021",)
    assert major.data[0].name == "base_10000000"
    assert major.outputs == ("base_10000002_v0000021",)
    assert minor.insert_only
    assert not major.exclusive_write
    assert plan(listing[:1], MAJOR, insert_only=True) is None


@pytest.mark.parametrize(
    ("reason", "more"),
    [("delete_delta", "delete_delta_10000002_10000002_0000/bucket_00000"), ("in no directory of a write", "000000_0")],
)
def test_what_is_not_of_an_insert_only_table_is_not_lost(reason: str, more: str) -> None:
    with pytest.raises(CompactionRefusedError, match=reason):
        plan(["delta_10000001_10000001_0000/f", "delta_10000002_10000002_0000/f", more], MAJOR, insert_only=True)


def test_kinds_of_tables() -> None:
    storage = Storage.of({"inputFormat": "x.OrcInputFormat", "bucketCols": ["id"], "serdeInfo": {"parameters": None}})
    assert storage == Storage("x.OrcInputFormat", "", {}, ("id",))
    table = TableInfo("/t", (), (), {"TRANSACTIONAL": "True", "hive_acid.layout": "statements"}, {}, storage)
    assert table.kind == TableKind(is_clustered=True, in_one_bucket=True)
    only = TableInfo("/t", (), (), {"transactional": "true", "transactional_properties": "INSERT_ONLY"})
    assert only.kind == TableKind(insert_only=True)
    assert not TableInfo("/t", ()).is_transactional
