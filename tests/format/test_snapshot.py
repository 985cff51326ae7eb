"""Lists of valid transactions and write ids: golden texts of transactions.md §10, predicates, derived lists."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.errors import FormatError
from hive_acid.format.snapshot import (
    NONE_OPEN,
    RangeValidity,
    ValidTxnList,
    ValidWriteIdList,
    decode_bits,
    encode_bits,
)

ALL, SOME, NONE = RangeValidity.ALL, RangeValidity.SOME, RangeValidity.NONE
OPEN_TXNS = [2, 3, 4, 5, 6, 7, 8, 9, 11, 12]
ABORTED_BITS = bytes.fromhex("9F")

ids = st.lists(st.integers(1, 60), unique=True)


def test_golden_txn_list_of_nobody() -> None:
    txns = ValidTxnList.from_open_txns(12, OPEN_TXNS, ABORTED_BITS)
    assert str(txns) == "12:7:7,8,11,12:2-6,9"
    assert txns.min_open == 7


def test_golden_txn_list_of_an_open_one() -> None:
    txns = ValidTxnList.from_open_txns(12, OPEN_TXNS, ABORTED_BITS, own_txn_id=11)
    assert str(txns) == "11:7:7,8:2-6,9"
    assert txns.is_valid(11)
    assert txns.is_valid(10)
    assert not txns.is_valid(12)
    assert not txns.is_valid(7)


def test_golden_fresh_system() -> None:
    assert str(ValidTxnList.from_open_txns(0, [], b"")) == "0:9223372036854775807::"


@pytest.mark.parametrize(
    ("high_water_mark", "invalid", "min_open", "bits", "expected"),
    [
        (12, [2, 3, 4, 5, 6, 7, 8, 9, 11, 12], 7, "9F", "db.e:12:7:7,8,11,12:2,3,4,5,6,9"),
        (7, [2, 3, 4, 5, 6], None, "1F", "db.e:7:9223372036854775807::2,3,4,5,6"),
        (1, [1], None, "01", "db.e:1:9223372036854775807::1"),
        (1, [1], 2, "01", "db.e:1:2::1"),
        (1, [1], 1, "", "db.e:1:1:1:"),
        (1, [], None, "", "db.e:1:9223372036854775807::"),
    ],
)
def test_golden_write_id_lists(
    high_water_mark: int, invalid: list[int], min_open: int | None, bits: str, expected: str
) -> None:
    write_ids = ValidWriteIdList.from_invalid("db.e", high_water_mark, invalid, bytes.fromhex(bits), min_open)
    assert str(write_ids) == expected
    assert str(ValidWriteIdList.parse(expected)) == expected


@pytest.mark.parametrize(
    ("reader", "compactor"),
    [
        ("db.e:12:7:7,8,11,12:2,3,4,5,6,9", "db.e:6:7::2,3,4,5,6"),
        ("db.ow:1:1:1:", "db.ow:0:9223372036854775807::"),
        ("db.ab:1:2::1", "db.ab:1:2::1"),
        ("db.t:5:9223372036854775807::", "db.t:5:9223372036854775807::"),
    ],
)
def test_golden_compactor_lists(reader: str, compactor: str) -> None:
    assert str(ValidWriteIdList.parse(reader).for_compactor()) == compactor


def test_golden_bits() -> None:
    aborted = {0, 1, 2, 3, 4, 7, 10, *range(16, 22), 27}
    assert encode_bits(at in aborted for at in range(31)).hex() == "9f043f08"
    assert encode_bits([]) == encode_bits([False] * 9) == b""


@given(st.lists(st.booleans(), max_size=70))
def test_bits_round_trip(flags: list[bool]) -> None:
    bits = encode_bits(flags)
    assert decode_bits(bits, len(flags)) == flags
    assert not bits.endswith(b"\0")


def test_runs_of_five_are_ranges() -> None:
    assert str(ValidTxnList(20, (3, 4, 5, 6), (10, 11, 12, 13, 14))) == "20:3:3,4,5,6:10-14"
    assert str(ValidTxnList(20, (1, 2, 3, 4, 5, 7, 9, 10))) == "20:1:1-5,7,9,10:"


@given(st.integers(0, 70), ids, ids)
def test_txn_list_round_trip(high_water_mark: int, open_ids: list[int], aborted_ids: list[int]) -> None:
    txns = ValidTxnList(high_water_mark, tuple(open_ids), tuple(aborted_ids))
    assert ValidTxnList.parse(str(txns)) == txns


@given(st.integers(0, 70), ids, ids)
def test_write_id_list_round_trip(high_water_mark: int, open_ids: list[int], aborted_ids: list[int]) -> None:
    write_ids = ValidWriteIdList("db.t", high_water_mark, tuple(open_ids), tuple(aborted_ids))
    assert ValidWriteIdList.parse(str(write_ids)) == write_ids


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_means_everything(text: str | None) -> None:
    assert ValidTxnList.parse(text).is_valid(NONE_OPEN)


def test_last_fields_may_be_missing() -> None:
    assert ValidTxnList.parse("5:3:3") == ValidTxnList(5, (3,))
    assert ValidWriteIdList.parse("db.t:5:3:3") == ValidWriteIdList("db.t", 5, (3,))


@pytest.mark.parametrize("text", ["x", "5", "5:a:b", "1:2:3:4:5", "5:3:-3:", "5:3:3-:", "5:5:1-99999999999:"])
def test_malformed_txn_list(text: str) -> None:
    with pytest.raises(FormatError):
        ValidTxnList.parse(text)


@pytest.mark.parametrize("text", ["", "db.t", "db.t:5", "db.t:x:1::", "5:3:::::"])
def test_malformed_write_id_list(text: str) -> None:
    with pytest.raises(FormatError):
        ValidWriteIdList.parse(text)


def test_reader_predicates() -> None:
    write_ids = ValidWriteIdList("db.t", 8, (7, 8), (5,))
    assert [w for w in range(1, 11) if write_ids.is_valid(w)] == [1, 2, 3, 4, 6]
    assert write_ids.is_aborted(5)
    assert not write_ids.is_aborted(7)
    assert [w for w in range(1, 11) if write_ids.is_valid_base(w)] == [1, 2, 3, 4, 5, 6]
    assert write_ids.range_validity(1, 4) is ALL
    assert write_ids.range_validity(5, 8) is SOME
    assert write_ids.range_validity(7, 8) is NONE
    assert write_ids.range_validity(6, 12) is SOME
    assert write_ids.range_validity(7, 12) is NONE
    assert write_ids.range_validity(9, 9) is NONE
    assert write_ids.aborted_range(5, 5) is ALL
    assert write_ids.aborted_range(5, 6) is SOME
    assert write_ids.aborted_range(6, 6) is NONE
    assert write_ids.aborted_in(1, 8) == (5,)


def test_compactor_takes_a_range_whole_or_not_at_all() -> None:
    write_ids = ValidWriteIdList("db.t", 8, (7,), (2,)).for_compactor()
    assert write_ids.high_water_mark == 6
    assert write_ids.range_validity(1, 6) is ALL
    assert write_ids.range_validity(5, 7) is NONE
    assert not write_ids.is_valid(2)


def test_compactor_never_reaches_above_the_high_water_mark() -> None:
    """An open write above the high-water mark of the snapshot does not widen it."""
    assert ValidWriteIdList("db.t", 1, (), (1,), min_open=5).for_compactor().high_water_mark == 1


def test_cleaner_is_capped() -> None:
    write_ids = ValidWriteIdList("db.t", 9, (4, 8), (2,)).for_cleaner(6)
    assert write_ids.high_water_mark == 6
    assert write_ids.open_ids == (4,)
    assert write_ids.range_validity(5, 6) is ALL
    assert write_ids.range_validity(3, 4) is SOME
    assert write_ids.range_validity(5, 7) is NONE


@given(st.integers(0, 40), ids, ids, st.integers(1, 60), st.integers(0, 20))
def test_range_validity_counts(high: int, open_ids: list[int], aborted_ids: list[int], first: int, more: int) -> None:
    aborted = tuple(set(aborted_ids) - set(open_ids))
    write_ids = ValidWriteIdList("db.t", high, tuple(open_ids), aborted)
    valid = [write_ids.is_valid(write_id) for write_id in range(first, first + more + 1)]
    expected = ALL if all(valid) else SOME if any(valid) else NONE
    assert write_ids.range_validity(first, first + more) is expected


def test_up_to() -> None:
    assert ValidTxnList(20, (5, 15), (3, 18)).up_to(10) == ValidTxnList(10, (5,), (3,))
    assert ValidTxnList(20).up_to(30) == ValidTxnList(20)


def test_a_hundred_thousand_exceptions_are_cheap() -> None:
    """Bisection, not scanning: a linear search would take minutes."""
    write_ids = ValidWriteIdList.parse(str(ValidWriteIdList("db.t", 300_000, tuple(range(1, 200_001, 2)))))
    started = time.monotonic()
    assert sum(write_ids.is_valid(write_id) for write_id in range(1, 200_001)) == 100_000
    assert all(write_ids.range_validity(write_id, write_id + 500) is SOME for write_id in range(1, 100_001))
    assert time.monotonic() - started < 5
