from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.format.deletion_bitmap import (
    BLOCK_ROWS,
    NO_PLACE,
    DeletionBitmap,
    Layout,
    RowSource,
    bitmaps_of,
    layout_of,
    merged,
    places_left,
    rows_within,
    runs_left,
    without_runs,
)
from hive_acid.format.rows import encode_bucket

WORDS = 1 << 17
sources = st.tuples(st.integers(1, 40), st.integers(0, 3), st.integers(0, 2)).map(
    lambda found: (found[0], encode_bucket(found[1], found[2]))
)
events = st.builds(
    lambda source, row_id: (*source, row_id), sources, st.integers(0, 70) | st.integers(4000, 9000) | st.just(10**6)
)


def layout_of_one(deleted: Mapping[RowSource, DeletionBitmap], most_words: int = WORDS) -> Layout | None:
    """The layout of one partition's blocks."""
    return layout_of({NO_PLACE: deleted}, (), most_words)


def blocks(events: Any) -> Any:
    """Those of single events."""
    return bitmaps_of((write_id, bucket, [row_id]) for write_id, bucket, row_id in events)


def holds(deleted: Any, *event: Any) -> Any:
    """Whether a row is among those that are deleted."""
    return places_left(deleted, *([number] for number in event)) == []


@given(st.lists(events, max_size=60), st.lists(events, max_size=60), st.lists(events, max_size=60))
def test_what_is_deleted_is_found_and_nothing_else(one: Any, other: Any, asked: Any) -> None:
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


@given(st.lists(events, max_size=60), st.lists(events, max_size=60))
def test_rows_that_are_left_are_told_at_once_in_any_order(gone: Any, asked: Any) -> None:
    columns = zip(*asked, strict=True) if asked else ([], [], [])
    assert [asked[place] for place in places_left(blocks(gone), *columns)] == [of for of in asked if of not in {*gone}]


@given(st.sets(st.integers(0, 3 * BLOCK_ROWS)), st.integers(0, 3 * BLOCK_ROWS), st.integers(-5, 3 * BLOCK_ROWS))
def test_rows_within_a_range_are_counted(gone: Any, first: int, length: int) -> None:
    bitmap = blocks((1, 7, row_id) for row_id in gone).get((1, 7), {})
    last = first + length
    assert rows_within(bitmap, first, last) == sum(first <= row_id <= last for row_id in gone)


def test_nothing_is_deleted_by_nothing() -> None:
    layout = layout_of_one({})
    assert layout is not None
    assert not layout.has(1, encode_bucket(0), 0)


def test_the_last_row_of_a_block_and_the_first_of_the_next() -> None:
    found = blocks([(1, 7, BLOCK_ROWS - 1), (1, 7, BLOCK_ROWS)])
    assert found == {(1, 7): {0: 1 << BLOCK_ROWS - 1, 1: 1}}


def test_a_layout_is_no_longer_than_it_may_be() -> None:
    spread = blocks((1, encode_bucket(1), block * BLOCK_ROWS) for block in range(100))
    length = 2 + 2 + 100 + 64 * 100
    layout = layout_of_one(spread, length)
    assert layout is not None
    assert sum(elements(layout.tree)) == length
    assert layout_of_one(spread, length - 1) is None
    assert layout_of_one(blocks([(1, 7, 2**40)])) is None, "its index alone would be too long"


def elements(node: Any) -> Iterator[Any]:
    yield len(node)
    for child in node:
        if child is not None and not isinstance(child, int):
            yield from elements(child)


def test_numbers_that_no_event_can_have_have_no_layout() -> None:
    assert layout_of_one({(2**32, 7): {0: 1}}) is None
    assert layout_of_one({(7, 2**31): {0: 1}}) is None
    assert layout_of_one(blocks([(-1, 7, 0)])) is None
    assert layout_of_one(blocks([(1, -7, 0)])) is None
    assert layout_of_one(blocks([(1, 7, -1)])) is None
    assert layout_of_one(blocks([(1, 7, 2**45)])) is None
    layout = layout_of_one({(2**20, 2**31 - 1): {0: 1}})
    assert layout is not None
    assert layout.has(2**20, 2**31 - 1, 0)
    assert not layout.has(2**32 + 2**20, 2**31 - 1, 0), "the same lower bits"


def test_many_writes_and_buckets_are_told_apart() -> None:
    many = {(write_id, encode_bucket(bucket)): {0: 1 << bucket} for write_id in range(1, 40) for bucket in range(16)}
    layout = layout_of_one(many, 1 << 30)
    assert layout is not None
    assert all(
        layout.has(*source, row) == bool(blocks[0] >> row & 1) for source, blocks in many.items() for row in range(17)
    )


def test_numbers_of_a_layout_stay_as_a_table_grows() -> None:
    def numbers(writes: int, rows: int) -> object:
        layout = layout_of_one(blocks((write_id, encode_bucket(0), rows) for write_id in range(1, writes + 1)))
        assert layout is not None
        return layout.slots, layout.seed, layout.high_write_ids, layout.statements

    assert len({numbers(writes, 1000 * writes) for writes in range(1, 33)}) == 1, "Spark compiles code for each anew"


@pytest.mark.parametrize("highest", [1, 1023, 1024, 1_000_000])
@pytest.mark.parametrize("statement", [0, 1, 4095])
def test_writes_and_statements_of_any_number(highest: int, statement: int) -> None:
    deleted = {(highest, encode_bucket(5, statement)): {0: 1}, (1, encode_bucket(4095)): {2: 1}}
    layout = layout_of_one(deleted)
    assert layout is not None
    assert layout.high_write_ids is (highest > 1023)
    assert layout.statements is (statement > 0)
    assert layout.levels == 4 + layout.high_write_ids + layout.statements
    for write_id in (0, 1, 64, 1023, 1024, 1025, 1_000_000, 2**32):
        for bucket in (encode_bucket(at, of) for at in (4, 5, 4095) for of in (0, statement, statement ^ 1)):
            for row_id in (0, 2 * BLOCK_ROWS):
                assert layout.has(write_id, bucket, row_id) == holds(deleted, write_id, bucket, row_id)


def test_lists_of_writes_that_would_be_too_long_have_two_levels() -> None:
    few = {f"k={k}": {(1000 + k, encode_bucket(0)): {0: 1}} for k in range(20)}
    direct, split = layout_of(few, (), 1 << 16), layout_of(few, (), 1 << 12)
    assert direct is not None
    assert split is not None
    assert (direct.high_write_ids, split.high_write_ids) == (False, True)
    assert all(split.has(1000 + k, encode_bucket(0), 0, f"k={k}") for k in range(20))
    assert not split.has(1001, encode_bucket(0), 0, "k=2")


@given(st.lists(st.integers(0, 3 * BLOCK_ROWS), max_size=200), st.lists(st.integers(0, BLOCK_ROWS), max_size=200))
def test_rows_of_one_source_are_its_bits_in_any_order_and_number(one: Any, other: Any) -> None:
    found = bitmaps_of([(1, 7, one), (2, 7, one), (1, 7, other)])
    rows = range(3 * BLOCK_ROWS + 2)
    assert {*rows}.difference(places_left(found, [1] * len(rows), [7] * len(rows), rows)) == {*one, *other}
    assert sum(bits.bit_count() for bits in found[2, 7].values()) == len({*one})


places = st.sampled_from(["k=1", "k=2", "day=2024-01-01/name=a%2520b", "k=\u00e9"])


@given(st.dictionaries(places, st.lists(events, max_size=40), min_size=1, max_size=5), st.lists(events, max_size=40))
def test_rows_of_several_places_are_told_apart(gone: Any, asked: Any) -> None:
    others = ["k=3", "k=1/k=2"]
    layout = layout_of({place: blocks(events) for place, events in gone.items()}, others, WORDS)
    assert layout is not None
    for place in (*gone, *others):
        for event in (*asked, *(event for events in gone.values() for event in events)):
            assert layout.has(*event, place) == (event in gone.get(place, []))  # type: ignore[call-arg]


def test_hundreds_of_places_have_a_layout() -> None:
    days = [f"day=2024-{day // 30 + 1:02}-{day % 30 + 1:02}" for day in range(360)]
    deleted = {
        day: {(7 * nth + write, encode_bucket(bucket)): {0: 1 << nth} for write in (1, 2) for bucket in range(3)}
        for nth, day in enumerate(days)
    }
    layout = layout_of(deleted, (), 1 << 20)
    assert layout is not None
    for nth, day in enumerate(days):
        assert layout.has(7 * nth + 1, encode_bucket(2), nth, day)
        assert not layout.has(7 * nth + 1, encode_bucket(2), nth, days[nth - 1])
        assert not layout.has(7 * nth + 1, encode_bucket(2), nth + 1, day)


def test_no_other_place_is_where_one_with_deletes_is() -> None:
    """Others may be where others are: thousands of them take few slots."""
    days = [f"day={day}" for day in range(3000)]
    layout = layout_of({days[7]: {(1, encode_bucket(0)): {0: 1}}}, [*days[:7], *days[8:]], WORDS)
    assert layout is not None
    assert [day for day in days if layout.has(1, encode_bucket(0), 0, day)] == [days[7]]


def test_places_that_no_seed_tells_apart_have_no_layout() -> None:
    deleted = {f"k={k}": {(1, encode_bucket(0)): {0: 1}} for k in range(5000)}
    assert layout_of(deleted, (), 1 << 24) is None


def test_the_seed_is_another_one_where_the_first_tells_places_not_apart() -> None:
    seeds = set()
    for first in range(20):
        places = [f"k={k}" for k in range(first, first + 30)]
        layout = layout_of(
            {place: {(1, encode_bucket(0)): {0: 1 << nth}} for nth, place in enumerate(places)}, (), WORDS
        )
        assert layout is not None
        assert all(
            layout.has(1, encode_bucket(0), row, place) == (row == nth)
            for nth, place in enumerate(places)
            for row in range(30)
        )
        seeds.add(layout.seed)
    assert len(seeds) > 1


spans = st.tuples(st.integers(0, 2 * BLOCK_ROWS), st.integers(1, 3 * BLOCK_ROWS)).map(lambda of: range(of[0], sum(of)))


@given(spans, st.sets(st.integers(0, 5 * BLOCK_ROWS), max_size=40), st.lists(spans, max_size=2))
def test_rows_one_after_the_other(ids: range, single: set[int], more: list[range]) -> None:
    gone = single.union(*more)
    bitmap = bitmaps_of([(1, 2, sorted(gone))]).get((1, 2), {})
    assert bitmaps_of([(1, 2, ids)]) == bitmaps_of([(1, 2, list(ids))])
    assert bitmaps_of([(1, 2, range(7, 7))])[1, 2] == {}
    left = runs_left(bitmap, ids[0], ids[-1])
    assert [row_id for run in left for row_id in run] == [row_id for row_id in ids if row_id not in gone]
    assert all(run.stop < after.start for run, after in pairwise(left))
    assert rows_within(bitmap, ids[0], ids[-1]) == sum(row_id in ids for row_id in gone)
    outside = bitmaps_of([(1, 2, sorted(row_id for row_id in gone if row_id not in ids))])
    assert without_runs({(1, 2): bitmap, (3, 2): bitmap}, [(1, 2, ids), (9, 9, ids)]) == {
        source: blocks for source, blocks in {(1, 2): outside.get((1, 2)), (3, 2): bitmap}.items() if blocks
    }
