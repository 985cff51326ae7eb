"""Plans: from a listing to what is merged and how the result is called (acid-format.md §6.1, §6.2)."""

import pytest

from hive_acid.files import FileEntry
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from metastore.compaction.plan import CompactionRefusedError, compaction_input, plan_compaction
from metastore.compaction.states import CompactionType

MAJOR, MINOR = CompactionType.MAJOR, CompactionType.MINOR
NO_WRITES = "d.t:10000000:9223372036854775807::"
FIRST = "delta_10000001_10000001_0000/bucket_00000"


def plan(names, kind, write_ids="d.t:10000002:9223372036854775807::"):
    entries = [FileEntry(name, 1) for name in names]
    txns = ValidTxnList.parse("20:9223372036854775807::")
    return plan_compaction(compaction_input(entries, ValidWriteIdList.parse(write_ids), txns, lambda _: b""), kind, 21)


def merged(found):
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
def test_a_major_compaction_takes_in_files_without_ids(listing, expected):
    assert merged(plan(listing, MAJOR)) == expected


def test_originals_alone_make_a_base_that_all_snapshots_accept():
    """T48: whatever the write ids, and deletes of them are applied by the next one."""
    assert plan(["000000_0"], MAJOR, NO_WRITES).insert_output == "base_-9223372036854775808_v0000021"
    compacted = ["base_-9223372036854775808_v0000020/bucket_00000"]
    assert plan(compacted, MAJOR, NO_WRITES) is None
    found = plan([*compacted, "delete_delta_10000001_10000001_0000/bucket_00000"], MAJOR)
    assert merged(found) == ([compacted[0].partition("/")[0]], [], "base_10000001_v0000021")
    assert [directory.name for directory in found.deletes] == ["delete_delta_10000001_10000001_0000"]


def test_a_minor_compaction_leaves_originals_and_takes_loaded_files():
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
def test_files_whose_rows_cannot_be_named_are_refused(listing):
    with pytest.raises(CompactionRefusedError, match="000"):
        plan(listing, MAJOR)
