"""Row events: the bucket property and the reference reader, with the row-level vectors of acid-format.md §8."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.errors import FormatError
from hive_acid.format.rows import (
    DELETE,
    INSERT,
    RowEvent,
    RowId,
    check_file,
    decode_bucket,
    encode_bucket,
    file_of,
    visible_rows,
)
from hive_acid.format.snapshot import ValidWriteIdList

BUCKET_0 = 536870912


def insert(write_id: int, row_id: int, row: object = "row", bucket_property: int = BUCKET_0) -> RowEvent:
    return RowEvent(INSERT, write_id, bucket_property, row_id, write_id, row)


def delete(key: RowId, write_id: int) -> RowEvent:
    return RowEvent(DELETE, *key, write_id, None)


def keys(events: list[RowEvent]) -> list[tuple[int, int]]:
    return [(event.original_write_id, event.row_id) for event in events]


@pytest.mark.parametrize(
    ("bucket", "statement_id", "encoded"),
    [(0, 0, 536870912), (1, 0, 536936448), (1, 2, 536936450), (4095, 4095, 805244927)],
)
def test_bucket_property(bucket: int, statement_id: int, encoded: int) -> None:
    assert encode_bucket(bucket, statement_id) == encoded
    assert decode_bucket(encoded) == (bucket, statement_id)


@given(st.integers(0, 4095), st.integers(0, 4095))
def test_bucket_property_round_trip(bucket: int, statement_id: int) -> None:
    assert decode_bucket(encode_bucket(bucket, statement_id)) == (bucket, statement_id)
    assert 0 < encode_bucket(bucket, statement_id) < 2**31


def test_bucket_property_of_old_data_is_the_bucket() -> None:
    assert decode_bucket(3) == (3, 0)


@pytest.mark.parametrize("value", [2 << 29, -1])
def test_unknown_codec(value: int) -> None:
    with pytest.raises(FormatError, match="codec version"):
        decode_bucket(value)


@pytest.mark.parametrize(("bucket", "statement_id"), [(4096, 0), (-1, 0), (0, 4096), (0, -1)])
def test_bucket_property_limits(bucket: int, statement_id: int) -> None:
    with pytest.raises(ValueError, match="outside"):
        encode_bucket(bucket, statement_id)


def test_file_of() -> None:
    assert file_of(536936450) == "bucket_00001"


def test_check_file() -> None:
    check_file("bucket_00000", [insert(1, 0), insert(1, 1), insert(2, 0)])
    check_file("bucket_00000", [])
    with pytest.raises(FormatError, match="row 1 of bucket_00000 is out of order"):
        check_file("bucket_00000", [insert(1, 1), insert(1, 0)])
    with pytest.raises(FormatError, match="out of order"):
        check_file("bucket_00000", [insert(1, 1), insert(1, 1)])
    with pytest.raises(FormatError, match="belongs into bucket_00000"):
        check_file("bucket_00001", [insert(1, 0)])


def test_open_writes_of_a_streaming_delta_are_filtered() -> None:
    rows = [insert(write_id, 0) for write_id in (5, 6, 7, 8)]
    assert keys(visible_rows(rows, [], ValidWriteIdList("db.t", 8, (7, 8)))) == [(5, 0), (6, 0)]


def test_aborted_delete_leaves_its_row() -> None:
    row = insert(1, 0)
    assert visible_rows([row], [delete(row.key, 2)], ValidWriteIdList("db.t", 2, (), (2,))) == [row]


def test_delete_applies_to_a_row_of_a_base() -> None:
    """Compaction keeps ROW__IDs, so a delete that was made before it finds its row."""
    base = [insert(1, 0), insert(1, 1)]
    assert visible_rows([], [delete(base[1].key, 4)], ValidWriteIdList("db.t", 4), base) == [base[0]]


def test_rows_of_a_base_are_not_filtered() -> None:
    base = [insert(3, 0)]
    assert visible_rows([], [], ValidWriteIdList("db.t", 5, (3,)), base) == base


def test_two_deletes_of_one_row() -> None:
    rows = [insert(1, 0), insert(1, 1)]
    deletes = [delete(rows[0].key, 2), delete(rows[0].key, 3)]
    assert visible_rows(rows, deletes, ValidWriteIdList("db.t", 3)) == [rows[1]]


def test_updated_row_deleted_later() -> None:
    first, second = insert(1, 0, "old"), insert(2, 0, "new")
    deletes = [delete(first.key, 2), delete(second.key, 3)]
    assert visible_rows([first, second], deletes, ValidWriteIdList("db.t", 3)) == []
    assert visible_rows([first, second], deletes, ValidWriteIdList("db.t", 2)) == [second]
    assert visible_rows([first, second], deletes, ValidWriteIdList("db.t", 1)) == [first]


def test_deletes_stay_in_their_partition() -> None:
    """Two partitions hold a row of the same ROW__ID; each is read with its own deletes."""
    one, other = insert(1, 0, "one"), insert(1, 0, "other")
    assert one.key == other.key
    write_ids = ValidWriteIdList("db.t", 2)
    assert visible_rows([one], [delete(one.key, 2)], write_ids) == []
    assert visible_rows([other], [], write_ids) == [other]


def test_result_is_in_key_order() -> None:
    rows = [insert(2, 0), insert(1, 1), insert(1, 0, bucket_property=encode_bucket(1)), insert(1, 0)]
    assert visible_rows(rows, [], ValidWriteIdList("db.t", 2)) == [rows[3], rows[1], rows[2], rows[0]]


def test_one_row_id_twice_is_corruption() -> None:
    with pytest.raises(FormatError, match="two rows"):
        visible_rows([insert(1, 0), insert(1, 0)], [], ValidWriteIdList("db.t", 1))
