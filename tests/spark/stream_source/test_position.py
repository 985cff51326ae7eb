"""Positions of streams: which writes are new, compared with sets of ids."""

import random
import sqlite3

import pytest

from hive_acid.errors import FormatError
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.stream_source.batch_limit import BatchLimit, Written
from hive_acid.spark.stream_source.position import Fresh, Position
from hive_acid.spark.stream_source.start import Start

_HIGHEST = 14


class _Table:
    """What becomes of the writes of a table."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._allocated = 0
        self._open: set[int] = set()
        self._aborted: set[int] = set()
        self.committed: set[int] = set()

    def step(self) -> None:
        if self._allocated < _HIGHEST and self._chance.random() < 0.6:
            self._allocated += 1
            self._open.add(self._allocated)
        elif self._open:
            ended = self._chance.choice(sorted(self._open))
            self._open.remove(ended)
            self._chance.choice((self._aborted, self.committed, self.committed)).add(ended)

    @property
    def write_ids(self) -> ValidWriteIdList:
        return ValidWriteIdList("d.t", self._allocated, tuple(self._open), tuple(self._aborted))


@pytest.mark.parametrize("seed", range(200))
def test_each_committed_write_is_new_once(seed: int) -> None:
    chance = random.Random(seed)
    table = _Table(chance)
    since = chance.choice((0, 0, 1, 5))
    come: list[int] = []
    start: Position | None = None
    for _ in range(30):
        table.step()
        everything = Position.of(7, table.write_ids, 0)
        end = Position.parse(str(everything.beginning_at(since)))
        assert end == Position.of(7, table.write_ids, since)
        if chance.random() < 0.5:
            continue
        fresh = Fresh.between(start, end)
        new = [one for one in range(_HIGHEST + 2) if fresh.any_in(one, one)]
        assert new == _by_sql(fresh)
        if start is not None:
            assert start.is_within(everything)
            assert everything.is_within(start) == (not new)
        come += new
        for first in range(0, _HIGHEST, 3):
            for last in range(first, _HIGHEST + 2, 2):
                assert fresh.any_in(first, last) == any(first <= one <= last for one in new)
        start = end
        assert sorted(come) == sorted(one for one in {0, *table.committed} if one >= since)


def _by_sql(fresh: Fresh) -> list[int]:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE t (w INTEGER)")
        database.executemany("INSERT INTO t VALUES (?)", [(one,) for one in range(_HIGHEST + 2)])
        return [one for (one,) in database.execute(f"SELECT w FROM t WHERE {fresh.condition('w')} ORDER BY w")]


def test_a_write_that_only_begins_is_no_other_position() -> None:
    before = Position.of(7, ValidWriteIdList("d.t", 5, (3,)), 0)
    assert Position.of(7, ValidWriteIdList("d.t", 7, (3, 6, 7)), 0) == before
    assert Position.of(7, ValidWriteIdList("d.t", 7, (3, 6), (7,)), 0) == before
    assert str(before) == '{"table": 7, "writeId": 5, "without": [[3, 3]], "since": 0}'


def test_an_option_that_changes_does_not_bring_rows_again() -> None:
    start = Position.of(7, ValidWriteIdList("d.t", 6), 5)
    assert Fresh.between(start, Position.of(7, ValidWriteIdList("d.t", 7), 0)).runs == ((7, 7),)


@pytest.mark.parametrize(
    "text", ["", "5", "[]", '{"table": 1}', '{"table": 1, "writeId": "x", "without": [], "since": 0}']
)
def test_a_checkpoint_of_something_else(text: str) -> None:
    with pytest.raises(FormatError, match="not that of a stream of a table"):
        Position.parse(text)


def test_where_a_stream_begins() -> None:
    assert Start.of("Earliest") == Start.of(0) == Start.of("0") == Start()
    assert Start.of(" latest") == Start(is_latest=True)
    assert Start.of("12") == Start.of(12) == Start(since=12)
    for wrong in ("-1", -1, "newest", 1.5, True, None, "", "1_0"):
        with pytest.raises(ValueError, match="a stream begins at"):
            Start.of(wrong)


@pytest.mark.parametrize("seed", range(200))
def test_a_limited_batch_has_whole_writes_and_each_once(seed: int) -> None:
    """Whatever commits late, and whatever compactions have put together meanwhile."""
    chance = random.Random(seed)
    table = _Table(chance)
    since = chance.choice((0, 0, 3))
    limit = BatchLimit(chance.choice((None, 1, 3)), chance.choice((None, 25)))
    sizes = {one: (chance.randint(1, 2), chance.randint(1, 20)) for one in range(_HIGHEST + 2)}
    come: list[int] = []
    start: Position | None = None
    for _ in range(60):
        table.step()
        newest = Position.of(7, table.write_ids, since)
        fresh = Fresh.between(start, newest)
        directories = [
            Written(part[0], part[-1], sum(sizes[one][0] for one in part), sum(sizes[one][1] for one in part))
            for part in _parts(sorted({0, *table.committed}), chance)
        ]
        last = limit.last_write(fresh, directories)
        end = newest if last is None else newest.as_far_as(last, start)
        assert Position.parse(str(end)) == end
        new = [one for one in range(_HIGHEST + 2) if Fresh.between(start, end).any_in(one, one)]
        assert bool(new) == bool(fresh.runs), "a batch has one write at least"
        of_batch = [one for one in directories if any(one.first <= of <= one.last for of in new)]
        if len(of_batch) > 1 and limit.files is not None:
            assert sum(one.files for one in of_batch) <= limit.files
        if len(of_batch) > 1 and limit.bytes is not None:
            assert sum(one.bytes for one in of_batch) <= limit.bytes
        for one in of_batch:
            assert {of for of in table.committed if one.first <= of <= one.last and of >= since} <= {*come, *new}
        assert limit or end == newest
        come += new
        start = end
    while start != newest:
        assert start is not None
        last = limit.last_write(Fresh.between(start, newest), directories)
        end = newest if last is None else newest.as_far_as(last, start)
        come += [one for one in range(_HIGHEST + 2) if Fresh.between(start, end).any_in(one, one)]
        start = end
    assert sorted(come) == sorted(one for one in {0, *table.committed} if one >= since)


def _parts(ids: list[int], chance: random.Random) -> list[list[int]]:
    """Ids in a row, some of them together."""
    found: list[list[int]] = []
    for one in ids:
        if found and chance.random() < 0.4:
            found[-1].append(one)
        else:
            found.append([one])
    return found


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((None, None), BatchLimit()),
        ((5, "100"), BatchLimit(5, 100)),
        (("7", "2k"), BatchLimit(7, 2048)),
        ((None, "512m"), BatchLimit(None, 512 * 2**20)),
        ((None, "1GiB"), BatchLimit(None, 2**30)),
    ],
)
def test_what_a_limit_is(given: tuple[object, object], wanted: BatchLimit) -> None:
    assert BatchLimit.of(*given) == wanted


@pytest.mark.parametrize(
    "given", [(0, None), ("5k", None), (-1, None), (True, None), (None, "0m"), (None, "much"), (1.5, None)]
)
def test_what_is_no_limit(given: tuple[object, object]) -> None:
    with pytest.raises(ValueError, match=r"(maxFiles.* is a whole number|maxBytes.* is a number of bytes) from 1"):
        BatchLimit.of(*given)
