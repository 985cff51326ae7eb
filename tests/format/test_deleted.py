from hypothesis import given
from hypothesis import strategies as st

from hive_acid.format.deleted import BLOCK_ROWS, blocks_of, layout_of, merged
from hive_acid.format.rows import encode_bucket

WORDS = 1 << 17
sources = st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2)).map(
    lambda found: (found[0], encode_bucket(found[1], found[2]))
)
events = st.builds(
    lambda source, row_id: (*source, row_id), sources, st.integers(0, 70) | st.integers(4000, 9000) | st.just(10**6)
)


@given(st.lists(events, max_size=60), st.lists(events, max_size=60), st.lists(events, max_size=60))
def test_what_is_deleted_is_found_and_nothing_else(one, other, asked):
    layout = layout_of(merged([blocks_of(one), blocks_of(other)]), WORDS)
    assert layout is not None
    gone = {*one, *other}
    for event in [*one, *other, *asked]:
        assert layout.has(*event) == (event in gone)
        write_id, bucket, row_id = event
        for near in (row_id - 1, row_id + 1, row_id + 64, row_id + BLOCK_ROWS, row_id + 2**40):
            if near >= 0:
                assert layout.has(write_id, bucket, near) == ((write_id, bucket, near) in gone)
        assert layout.has(write_id + 1, bucket, row_id) == ((write_id + 1, bucket, row_id) in gone)


def test_nothing_is_deleted_by_nothing():
    layout = layout_of({}, WORDS)
    assert layout is not None
    assert not layout.has(1, encode_bucket(0), 0)


def test_the_last_row_of_a_block_and_the_first_of_the_next():
    found = blocks_of([(1, 7, BLOCK_ROWS - 1), (1, 7, BLOCK_ROWS)])
    assert found == {(1, 7): {0: 1 << BLOCK_ROWS - 1, 1: 1}}


def test_a_layout_is_no_longer_than_it_may_be():
    spread = blocks_of((1, 7, block * BLOCK_ROWS) for block in range(100))
    length = len(layout_of(spread, WORDS).words)
    assert layout_of(spread, length) is not None
    assert layout_of(spread, length - 1) is None
    assert layout_of(blocks_of([(1, 7, 2**45)]), WORDS) is None, "its index alone would be too long"


def test_numbers_that_no_event_can_have_have_no_layout():
    assert layout_of({(2**32, 7): {0: 1}}, WORDS) is None
    assert layout_of({(7, 2**31): {0: 1}}, WORDS) is None
    assert layout_of(blocks_of([(-1, 7, 0)]), WORDS) is None
    assert layout_of(blocks_of([(1, -7, 0)]), WORDS) is None
    assert layout_of(blocks_of([(1, 7, -1)]), WORDS) is None
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
