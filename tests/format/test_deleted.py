import random
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from hive_acid.format.deleted import BLOCK_ROWS, NO_PLACE, Blocks, Layout, Source, blocks_of, holds, layout_of, merged
from hive_acid.format.rows import encode_bucket

WORDS = 1 << 17
sources = st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2)).map(
    lambda found: (found[0], encode_bucket(found[1], found[2]))
)
events = st.builds(
    lambda source, row_id: (*source, row_id), sources, st.integers(0, 70) | st.integers(4000, 9000) | st.just(10**6)
)


def layout_of_one(deleted: Mapping[Source, Blocks], most_words: int = WORDS) -> Layout | None:
    """The layout of one partition's blocks."""
    return layout_of({NO_PLACE: deleted}, most_words)


def blocks(events):
    """Those of single events."""
    return blocks_of((write_id, bucket, [row_id]) for write_id, bucket, row_id in events)


@given(st.lists(events, max_size=60), st.lists(events, max_size=60), st.lists(events, max_size=60))
def test_what_is_deleted_is_found_and_nothing_else(one, other, asked):
    deleted = merged([blocks(one), blocks(other)])
    layout = layout_of_one(deleted)
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
    layout = layout_of_one({})
    assert layout is not None
    assert not layout.has(1, encode_bucket(0), 0)


def test_the_last_row_of_a_block_and_the_first_of_the_next():
    found = blocks([(1, 7, BLOCK_ROWS - 1), (1, 7, BLOCK_ROWS)])
    assert found == {(1, 7): {0: 1 << BLOCK_ROWS - 1, 1: 1}}


def test_a_layout_is_no_longer_than_it_may_be():
    spread = blocks((1, 7, block * BLOCK_ROWS) for block in range(100))
    length = 32 + 2 * 64 + 101 + 64 * 101
    layout = layout_of_one(spread, length)
    assert layout is not None
    assert len(layout.words) == length
    assert layout_of_one(spread, length - 1) is None
    assert layout_of_one(blocks([(1, 7, 2**45)])) is None, "its index alone would be too long"


def test_numbers_that_no_event_can_have_have_no_layout():
    assert layout_of_one({(2**32, 7): {0: 1}}) is None
    assert layout_of_one({(7, 2**31): {0: 1}}) is None
    assert layout_of_one(blocks([(-1, 7, 0)])) is None
    assert layout_of_one(blocks([(1, -7, 0)])) is None
    assert layout_of_one(blocks([(1, 7, -1)])) is None
    layout = layout_of_one({(2**32 - 1, 2**31 - 1): {0: 1}})
    assert layout is not None
    assert layout.has(2**32 - 1, 2**31 - 1, 0)
    assert not layout.has(2**33 - 1, 2**31 - 1, 0), "the same bits, as far as they are packed"


def test_many_writes_and_buckets_have_slots_of_their_own():
    many = {(write_id, encode_bucket(bucket)): {0: 1 << bucket} for write_id in range(1, 40) for bucket in range(16)}
    layout = layout_of_one(many, 1 << 30)
    assert layout is not None
    assert all(
        layout.has(*source, row) == bool(blocks[0] >> row & 1) for source, blocks in many.items() for row in range(17)
    )


def test_numbers_of_a_layout_stay_as_a_table_grows():
    def numbers(writes: int, rows: int) -> object:
        layout = layout_of_one(blocks((write_id, encode_bucket(0), rows) for write_id in range(1, writes + 1)))
        assert layout is not None
        return layout.slots, layout.seed, layout.longest

    assert len({numbers(writes, 1000 * writes) for writes in range(1, 33)}) == 1, "Spark compiles code for each anew"


def test_a_list_that_would_be_too_long_if_rounded_up_is_as_long_as_it_has_to_be():
    deleted = {(write_id, 7): {140: 1} for write_id in range(1, 200)}
    layout = layout_of_one(deleted)
    assert layout is not None
    assert layout.longest == 141
    assert layout.has(3, 7, 140 * BLOCK_ROWS)


@given(st.lists(st.integers(0, 3 * BLOCK_ROWS), max_size=200), st.lists(st.integers(0, BLOCK_ROWS), max_size=200))
def test_rows_of_one_source_are_its_bits_in_any_order_and_number(one, other):
    found = blocks_of([(1, 7, one), (2, 7, one), (1, 7, other)])
    assert {row_id for row_id in range(3 * BLOCK_ROWS + 2) if holds(found, 1, 7, row_id)} == {*one, *other}
    assert sum(bits.bit_count() for bits in found[2, 7].values()) == len({*one})


places = st.sampled_from(["k=1", "k=2", "day=2024-01-01/name=a%2520b", "k=\u00e9"])


@given(st.dictionaries(places, st.lists(events, max_size=40), min_size=1, max_size=5), st.lists(events, max_size=40))
def test_rows_of_several_places_are_told_apart(gone, asked):
    layout = layout_of({place: blocks(events) for place, events in gone.items()}, WORDS)
    assert layout is not None
    for place in (*gone, "k=3", "k=1/k=2"):
        for event in (*asked, *(event for events in gone.values() for event in events)):
            assert layout.has(*event, place) == (event in gone.get(place, []))


def test_thousands_of_sources_have_a_layout():
    days = [f"day=2024-{day // 30 + 1:02}-{day % 30 + 1:02}" for day in range(360)]
    deleted = {
        day: {(7 * nth + write, encode_bucket(bucket)): {0: 1 << nth} for write in (1, 2) for bucket in range(3)}
        for nth, day in enumerate(days)
    }
    layout = layout_of(deleted, 1 << 20)
    assert layout is not None
    assert layout.slots == 1 << 13
    for nth, day in enumerate(days):
        assert layout.has(7 * nth + 1, encode_bucket(2), nth, day)
        assert not layout.has(7 * nth + 1, encode_bucket(2), nth, days[nth - 1])
        assert not layout.has(7 * nth + 1, encode_bucket(2), nth + 1, day)


def test_where_no_numbers_fit_others_do():
    """Sources that the usual seed does not tell apart have another, or more slots."""
    some = random.Random(11)
    seeds = set()
    for _ in range(30):
        sources = {(some.randrange(1 << 24), encode_bucket(some.randrange(100))): {0: 1} for _ in range(32)}
        layout = layout_of_one(sources)
        assert layout is not None
        assert all(layout.has(*source, 0) and not layout.has(*source, 1) for source in sources)
        seeds.add(layout.seed)
    assert len(seeds) > 1
