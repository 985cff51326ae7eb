"""Names of directories and files."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.format import names
from hive_acid.format.names import Directory, DirectoryKind, parse_directory

write_ids = st.integers(0, names.MAX_WRITE_ID)
statement_ids = st.none() | st.integers(0, names.MAX_STATEMENT_ID)
txn_ids = st.integers(0, 10**12)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("base_0000005", Directory(DirectoryKind.BASE, 0, 5, None, 0, "base_0000005")),
        ("base_5_v9", Directory(DirectoryKind.BASE, 0, 5, None, 9, "base_5_v9")),
        ("delta_0000001_0000003_v0000009", Directory(DirectoryKind.INSERT_DELTA, 1, 3, None, 9, "")),
        ("delete_delta_2_2_0", Directory(DirectoryKind.DELETE_DELTA, 2, 2, 0, 0, "")),
        ("delta_10000000_10000000_0000", Directory(DirectoryKind.INSERT_DELTA, 10**7, 10**7, 0, 0, "")),
        ("delta_1_1_v0", Directory(DirectoryKind.INSERT_DELTA, 1, 1, None, 0, "")),
    ],
)
def test_directory_is_read_leniently(name: str, expected: Directory) -> None:
    parsed = parse_directory(name)
    assert parsed is not None
    assert parsed.name == name
    for field in ("kind", "min_write_id", "max_write_id", "statement_id", "visibility_txn_id"):
        assert getattr(parsed, field) == getattr(expected, field)


def test_base_of_originals() -> None:
    parsed = parse_directory("base_-9223372036854775808_v0000003")
    assert parsed is not None
    assert parsed.max_write_id == names.ORIGINALS_WRITE_ID
    assert names.base_name(names.ORIGINALS_WRITE_ID, 3) == parsed.name


@pytest.mark.parametrize(
    "name",
    ["base_", "base_x", "base_-5", "delta_1", "delta_3_1", "delta_1_1_", "delta_1_1_0_v", "deltas_1_1", "base_1 ",
     "_base_1", "delta_1_99999999999999999999", "000000_0", "bucket_00000"],
)  # fmt: skip
def test_other_names_are_no_directory(name: str) -> None:
    assert parse_directory(name) is None


@given(write_ids, txn_ids)
def test_base_name_round_trip(write_id: int, txn_id: int) -> None:
    name = names.base_name(write_id, txn_id)
    assert parse_directory(name) == Directory(DirectoryKind.BASE, 0, write_id, None, txn_id, name)


@given(write_ids, write_ids, statement_ids, txn_ids, st.booleans())
def test_delta_name_round_trip(one: int, other: int, statement_id: int | None, txn_id: int, delete: bool) -> None:
    lowest, highest = sorted((one, other))
    visibility = txn_id if statement_id is None else 0
    write = names.delete_delta_name if delete else names.delta_name
    kind = DirectoryKind.DELETE_DELTA if delete else DirectoryKind.INSERT_DELTA
    name = write(lowest, highest, statement_id, visibility)
    assert parse_directory(name) == Directory(kind, lowest, highest, statement_id, visibility, name)


def test_names_are_padded() -> None:
    assert names.delta_name(4, 4, 0) == "delta_0000004_0000004_0000"
    assert names.delete_delta_name(4, 6, None, 17) == "delete_delta_0000004_0000006_v0000017"
    assert names.bucket_file_name(3) == "bucket_00003"


@pytest.mark.parametrize(
    "write",
    [
        lambda: names.delta_name(1, 1, 4096),
        lambda: names.delta_name(1, 1, -1),
        lambda: names.delta_name(2, 1, 0),
        lambda: names.delta_name(1, 1, 0, 9),
        lambda: names.base_name(-1),
        lambda: names.bucket_file_name(4096),
        lambda: names.staging_name(0, "a"),
        lambda: names.staging_name(7, "a/b"),
        lambda: names.staging_name(7, ""),
    ],
)
def test_limits_are_kept_on_writing(write: Any) -> None:
    with pytest.raises(ValueError, match=r"outside|not both|may hold"):
        write()


@given(st.integers(0, names.MAX_BUCKET))
def test_bucket_file_round_trip(bucket: int) -> None:
    assert names.parse_bucket_file(names.bucket_file_name(bucket)) == bucket


def test_files() -> None:
    assert names.parse_bucket_file("bucket_00002_1") == 2
    assert names.parse_bucket_file("bucket_00002_flush_length") is None
    assert names.is_side_file("bucket_00002_flush_length")
    assert not names.is_side_file("bucket_00002")
    assert names.parse_original_file("000012_0") == 12
    assert names.parse_original_file("000012_0_copy_3") == 12
    assert names.parse_original_file("part-00000.orc") is None


def test_hidden() -> None:
    assert names.is_hidden("_tmp/x")
    assert names.is_hidden("delta_1_1/.x.crc")
    assert names.is_hidden("a/_b/c")
    assert not names.is_hidden("a_/b.c/d")


@given(st.integers(1, 10**15), st.from_regex(r"[0-9A-Za-z-]+", fullmatch=True))
def test_staging_round_trip(txn_id: int, token: str) -> None:
    name = names.staging_name(txn_id, token)
    assert names.parse_staging(name) == txn_id
    assert names.is_hidden(name)


def test_others_staging_is_not_ours() -> None:
    assert names.parse_staging("_tmp_spark_x_1") is None
    assert names.parse_staging("_tmp_7") is None
