"""Random histories of one table against a dictionary: a failure is a seed."""

from __future__ import annotations

import random

import pytest

from hive_acid.errors import WriteConflictError
from tests.spark.checker import check_table, location_of
from tests.spark.compaction import compact_table

STEPS = 12
KEYS = 40


class Model:
    """What the table should hold: id to (value, partition)."""

    def __init__(self, acid, spark, seed, partitioned):
        self.acid = acid
        self.spark = spark
        self.random = random.Random(seed)
        self.partitioned = partitioned
        self.rows: dict[int, tuple[int, int]] = {}
        self.next_id = 0
        keys = {"p": "int"} if partitioned else {}
        columns = {"id": "int", "v": "int"} if partitioned else {"id": "int", "v": "int", "p": "int"}
        acid.create_table("d.t", columns, partitioned_by=keys)

    def frame(self, rows):
        return self.spark.createDataFrame([(i, v, p) for i, (v, p) in rows.items()], "id int, v int, p int")

    def insert(self):
        count = self.random.choice((0, 1, 5, KEYS))
        new = {self.next_id + i: (self.random.randrange(100), self.random.randrange(3)) for i in range(count)}
        self.next_id += count
        assert self.acid.insert("d.t", self.frame(new).repartition(self.random.choice((1, 3)))) == count
        self.rows |= new

    def update(self):
        low, high = sorted(self.random.sample(range(101), 2))
        hit = {i: (v + 1, p) for i, (v, p) in self.rows.items() if low <= v < high}
        assert self.acid.update("d.t", {"v": "v + 1"}, f"v >= {low} AND v < {high}") == len(hit)
        self.rows |= hit

    def delete(self):
        which, part = self.random.randrange(5), self.random.randrange(3)
        hit = [i for i, (_, p) in self.rows.items() if i % 5 == which and p == part]
        assert self.acid.delete("d.t", f"id % 5 = {which} AND p = {part}") == len(hit)
        for i in hit:
            del self.rows[i]

    def merge(self):
        ids = self.random.sample(range(self.next_id + 10), min(12, self.next_id + 10))
        source = {i: (self.random.randrange(100), self.rows[i][1] if i in self.rows else 1) for i in ids}
        merged = (
            self.acid.merge("d.t", self.frame(source), "t.id = s.id")
            .whenMatchedDelete("s.v % 4 = 0")
            .whenMatchedUpdate("s.v % 4 = 1", {"v": "s.v + t.v"})
            .whenNotMatchedInsertAll("s.v % 4 < 3")
            .execute()
        )
        before = dict(self.rows)
        for i, (v, p) in source.items():
            if i not in before:
                if v % 4 < 3:
                    self.rows[i] = (v, p)
            elif v % 4 == 0:
                del self.rows[i]
            elif v % 4 == 1:
                self.rows[i] = (v + before[i][0], p)
        self.next_id = max(self.next_id, *ids) + 1
        assert merged.inserted == len(self.rows.keys() - before.keys())
        assert merged.deleted == len(before.keys() - self.rows.keys())

    def transaction(self):
        kept, next_id = dict(self.rows), self.next_id
        fails = self.random.random() < 0.5
        try:
            with self.acid.transaction():
                self.insert()
                self.random.choice((self.update, self.delete))()
                self.check()
                if fails:
                    raise WriteConflictError("as if")
        except WriteConflictError:
            assert fails
            self.rows, self.next_id = kept, next_id

    def compact(self):
        kind = self.random.choice(("minor", "major"))
        compact_table(self.spark, self.acid, "d.t", kind)

    def check(self):
        found = sorted((r.id, r.v, r.p) for r in self.acid.table("d.t").collect())
        assert found == sorted((i, v, p) for i, (v, p) in self.rows.items())


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "partitioned"), [(1, False), (2, True), (3, True)])
def test_random_histories(acid, spark, seed, partitioned):
    model = Model(acid, spark, seed, partitioned)
    steps = (model.insert, model.update, model.delete, model.merge, model.transaction, model.compact)
    for _ in range(STEPS):
        model.random.choices(steps, (3, 3, 2, 2, 2, 2))[0]()
        model.check()
    check_table(location_of(acid, "d.t"))
    compact_table(spark, acid, "d.t", "major")
    model.check()
