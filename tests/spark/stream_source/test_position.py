"""Positions of streams: which writes are new, compared with sets of ids."""

import random
import sqlite3

import pytest

from hive_acid.errors import FormatError
from hive_acid.format.snapshot import ValidWriteIdList
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
        end = Position.parse(str(Position.of(7, table.write_ids, since)))
        if chance.random() < 0.5:
            continue
        fresh = Fresh.between(start, end)
        new = [one for one in range(_HIGHEST + 2) if fresh.any_in(one, one)]
        assert new == _by_sql(fresh)
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
