from hypothesis import given
from hypothesis import strategies as st

from hive_acid.format.deleted import BLOCK_ROWS, blocks_of, holds, layout_of, merged
from hive_acid.format.rows import encode_bucket

WORDS = 1 << 17
sources = st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2)).map(
    lambda found: (found[0], encode_bucket(found[1], found[2]))
)
events = st.builds(
    lambda source, row_id: (*source, row_id), sources, st.integers(0, 70) | st.integers(4000, 9000) | st.just(10**6)
)


def blocks(events):
    """Those of single events."""
    return blocks_of((write_id, bucket, [row_id]) for write_id, bucket, row_id in events)


@given(st.lists(events, max_size=60), st.lists(events, max_size=60), st.lists(events, max_size=60))
def test_what_is_deleted_is_found_and_nothing_else(one, other, asked):
    deleted = merged([blocks(one), blocks(other)])
    layout = layout_of(deleted, WORDS)
    assert layout is not None
    gone = {*one, *other}
    for event in [*one, *other, *asked]:
        assert layout.has(*event) == holds(deleted, *event) == (event in gone)
        write_id, bucket, row_id = event
        for near in (row_id - 1, row_id + 1, row_id + 64, row_id + BLOCK_ROWS, row_id + 2**40):
            if near >= 0:
                known = holds(deleted, write_id, bucket, near)
                assert layout.has(write_id, bucket, near) == known == ((write_id, bucket, near) in gone)
        assert layout.has(write_id + 1, bucket, row_id) == ((write_id + 1, bucket, row_id) in gone)


def test_nothing_is_deleted_by_nothing():
    layout = layout_of({}, WORDS)
    assert layout is not None
    assert not layout.has(1, encode_bucket(0), 0)


def test_the_last_row_of_a_block_and_the_first_of_the_next():
    found = blocks([(1, 7, BLOCK_ROWS - 1), (1, 7, BLOCK_ROWS)])
    assert found == {(1, 7): {0: 1 << BLOCK_ROWS - 1, 1: 1}}


def test_a_layout_is_no_longer_than_it_may_be():
    spread = blocks((1, 7, block * BLOCK_ROWS) for block in range(100))
    length = 2 * 64 + 101 + 64 * 101
    layout = layout_of(spread, length)
    assert layout is not None
    assert len(layout.words) == length
    assert layout_of(spread, length - 1) is None
    assert layout_of(blocks([(1, 7, 2**45)]), WORDS) is None, "its index alone would be too long"


def test_numbers_that_no_event_can_have_have_no_layout():
    assert layout_of({(2**32, 7): {0: 1}}, WORDS) is None
    assert layout_of({(7, 2**31): {0: 1}}, WORDS) is None
    assert layout_of(blocks([(-1, 7, 0)]), WORDS) is None
    assert layout_of(blocks([(1, -7, 0)]), WORDS) is None
    assert layout_of(blocks([(1, 7, -1)]), WORDS) is None
    layout = layout_of({(2**32 - 1, 2**31 - 1): {0: 1}}, WORDS)
    assert layout is not None
    assert layout.has(2**32 - 1, 2**31 - 1, 0)
    assert not layout.has(2**33 - 1, 2**31 - 1, 0), "the same bits, as far as they are packed"


def test_many_writes_and_buckets_have_slots_of_their_own():
    many = {(write_id, encode_bucket(bucket)): {0: 1 << bucket} for write_id in range(1, 40) for bucket in range(16)}
    layout = layout_of(many, 1 << 30)
    assert layout is not None
    assert all(
        layout.has(*source, row) == bool(blocks[0] >> row & 1) for source, blocks in many.items() for row in range(17)
    )


def test_numbers_of_a_layout_stay_as_a_table_grows():
    def numbers(writes: int, rows: int) -> tuple[int, int, int, int]:
        layout = layout_of(blocks((write_id, encode_bucket(0), rows) for write_id in range(1, writes + 1)), WORDS)
        assert layout is not None
        return layout.slots, layout.write_id_factor, layout.bucket_factor, layout.longest

    assert len({numbers(writes, 1000 * writes) for writes in range(1, 50)}) == 1, "Spark compiles code for each anew"


def test_a_list_that_would_be_too_long_if_rounded_up_is_as_long_as_it_has_to_be():
    deleted = {(write_id, 7): {140: 1} for write_id in range(1, 200)}
    layout = layout_of(deleted, WORDS)
    assert layout is not None
    assert layout.longest == 141
    assert layout.has(3, 7, 140 * BLOCK_ROWS)


@given(st.lists(st.integers(0, 3 * BLOCK_ROWS), max_size=200), st.lists(st.integers(0, BLOCK_ROWS), max_size=200))
def test_rows_of_one_source_are_its_bits_in_any_order_and_number(one, other):
    found = blocks_of([(1, 7, one), (2, 7, one), (1, 7, other)])
    assert {row_id for row_id in range(3 * BLOCK_ROWS + 2) if holds(found, 1, 7, row_id)} == {*one, *other}
    assert sum(bits.bit_count() for bits in found[2, 7].values()) == len({*one})
