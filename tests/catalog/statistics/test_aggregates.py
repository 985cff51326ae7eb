"""Statistics over partitions beside a plain reckoning, and what they cost with many."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.catalog.service import CatalogService
from metastore.catalog.statistics.sketches import decode
from metastore.store.database import Database
from tests.catalog.conftest import Rpc, column, partition, table
from tests.catalog.statistics.short import (
    binary,
    boolean,
    date,
    decimal,
    double,
    figures,
    long,
    statistics,
    text,
    timestamp,
)
from tests.catalog.statistics.test_sketches import hashes, sketch

TYPES = {
    "l": "bigint",
    "d": "double",
    "s": "string",
    "bo": "boolean",
    "bi": "binary",
    "de": "decimal(20,2)",
    "da": "date",
    "ti": "timestamp",
    "h": "int",
}


def fill(rpc: Rpc, count: int, types: dict[str, str] = TYPES) -> list[str]:
    """A table ``p`` with partitions; their names."""
    struct = table("p", keys=(column("k", "int"),))
    struct.sd.cols = [column(name, kind) for name, kind in types.items()]
    rpc.create_table(struct)
    rpc.add_partitions([partition([str(number)]) for number in range(count)])
    return [f"k={number}" for number in range(count)]


def aggregated(rpc: Rpc, names: Sequence[str], *columns: str) -> tuple[dict[str, Any], int]:
    request = ttypes.PartitionsStatsRequest(
        dbName="default", tblName="P", colNames=[name.upper() for name in columns], partNames=list(names)
    )
    found = rpc.get_aggr_stats_for(request)
    return {one.colName: figures(one) for one in found.colStats}, found.partsFound


def store(rpc: Rpc, *structs: Any) -> None:
    assert rpc.set_aggr_stats_for(ttypes.SetPartitionsStatsRequest(colStats=list(structs)))


def number(struct: Any) -> Decimal:
    return Decimal(int.from_bytes(struct.unscaled, signed=True)).scaleb(-struct.scale)


@pytest.mark.parametrize("seed", range(5))
def test_aggregates_are_those_of_a_plain_reckoning(rpc: Rpc, seed: int) -> None:
    source = random.Random(seed)
    names = fill(rpc, 30)
    span = lambda low, high: sorted(source.randint(low, high) for _ in range(2))  # noqa: E731
    known: dict[str, list[Any]] = {name: [] for name in TYPES}
    values: list[set[int]] = []
    structs = []
    for name in names:
        nulls, distinct = source.randint(0, 9), source.randint(0, 99)
        values.append(hashes(source.getrandbits(32), source.choice([5, 100, 400])))
        bit_vector = sketch(values[-1], 10, sparse=len(values[-1]) < 150).encode()
        columns = {
            "l": long(*span(-(2**40), 2**40), nulls, distinct),  # type: ignore[call-arg]
            "d": double(*(value / 7 for value in span(-1000, 1000)), nulls, distinct),  # type: ignore[arg-type, call-arg]
            "s": text(source.randint(0, 99), source.random() * 50, nulls, distinct),
            "bo": boolean(source.randint(0, 99), source.randint(0, 99), nulls),
            "bi": binary(source.randint(0, 99), source.random() * 50, nulls),
            "de": decimal(*((value, source.randint(0, 3)) for value in span(-(10**6), 10**6)), nulls, distinct),  # type: ignore[arg-type, call-arg]
            "da": date(*span(-9999, 9999), nulls, distinct),  # type: ignore[call-arg]
            "ti": timestamp(*span(-(10**9), 10**9), nulls, distinct),  # type: ignore[call-arg]
            "h": long(0, 1, nulls, distinct, bitVectors=bit_vector),
        }
        structs.append(statistics("p", name, **columns))
        for which, data in columns.items():
            known[which].append(next(value for value in vars(data).values() if value is not None))
    store(rpc, *structs)
    found, partitions = aggregated(rpc, names, *TYPES)
    assert partitions == 30
    assert sorted(found) == sorted(TYPES)
    for which, all_data in known.items():
        assert found[which].numNulls == sum(data.numNulls for data in all_data)
        if which not in ("bo", "bi", "h"):
            assert found[which].numDVs == max(data.numDVs for data in all_data), which
    for which, value in (
        ("l", lambda bound: bound),
        ("d", lambda bound: bound),
        ("de", number),
        ("da", lambda bound: bound.daysSinceEpoch),
        ("ti", lambda bound: bound.secondsSinceEpoch),
    ):
        assert value(found[which].lowValue) == min(value(data.lowValue) for data in known[which]), which
        assert value(found[which].highValue) == max(value(data.highValue) for data in known[which]), which
    for which in ("s", "bi"):
        assert found[which].maxColLen == max(data.maxColLen for data in known[which])
        assert found[which].avgColLen == max(data.avgColLen for data in known[which])
    assert found["bo"].numTrues == sum(data.numTrues for data in known["bo"])
    assert found["bo"].numFalses == sum(data.numFalses for data in known["bo"])
    everything = sketch(set().union(*values))
    assert found["h"].numDVs == everything.estimate() == pytest.approx(len(set().union(*values)), rel=0.1)
    assert decode(found["h"].bitVectors) == everything


def test_partitions_without_statistics(rpc: Rpc) -> None:
    """Counts are scaled up as Hive does it, bounds are those that were found, and partsFound says how many."""
    names = fill(rpc, 4, {"a": "int", "b": "boolean"})
    store(rpc, statistics("p", "k=0", a=long(1, 2, 3, 4), b=boolean(2, 4, 6)), statistics("p", "k=2", a=long(3, 9, 5)))
    found, partitions = aggregated(rpc, [*names, "k=99"], "a", "b", "nonesuch")
    assert (found["a"].lowValue, found["a"].highValue, found["a"].numNulls, found["a"].numDVs) == (1, 9, 20, 5)
    assert (found["b"].numTrues, found["b"].numFalses, found["b"].numNulls) == (10, 20, 30)
    assert partitions == 0, "no partition has statistics of 'nonesuch'"
    assert aggregated(rpc, names, "a")[1] == 2
    assert aggregated(rpc, names, "a", "b")[1] == 1
    assert aggregated(rpc, ["k=1", "k=3"], "a") == ({}, 0)
    assert aggregated(rpc, [], "a") == ({}, 0)
    assert aggregated(rpc, names) == ({}, 0)
    assert aggregated(rpc, ["K=0", "k=0", "k=0"], "a")[0]["a"].numNulls == 3, "two spellings are one partition"


def test_bounds_that_are_missing_in_some(rpc: Rpc) -> None:
    names = fill(rpc, 2, {"a": "int"})
    store(rpc, statistics("p", "k=0", a=long(None, None, 7, 0)), statistics("p", "k=1", a=long(5, 6)))
    found = aggregated(rpc, names, "a")[0]["a"]
    assert (found.lowValue, found.highValue) == (5, 6)


def test_a_column_of_two_kinds_is_left_out(rpc: Rpc) -> None:
    names = fill(rpc, 2, {"a": "int", "b": "int"})
    store(rpc, statistics("p", "k=0", a=long(), b=long()), statistics("p", "k=1", a=text(), b=long()))
    assert sorted(aggregated(rpc, names, "a", "b")[0]) == ["b"]


@pytest.mark.parametrize("other", [None, b"{0, 1}", b"FM\x01\x00\x01\x00\x00\x00"])
def test_without_all_bit_vectors_the_largest_number_counts(rpc: Rpc, other: bytes | None) -> None:
    names = fill(rpc, 2, {"a": "int"})
    bits = sketch(hashes(1, 500)).encode()
    store(
        rpc,
        statistics("p", "k=0", a=long(0, 1, 0, 500, bitVectors=bits)),
        statistics("p", "k=1", a=long(0, 1, 0, 600, bitVectors=other)),
    )
    found = aggregated(rpc, names, "a")[0]["a"]
    assert (found.numDVs, found.bitVectors) == (600, None)


def test_beyond_a_number_of_partitions_bit_vectors_are_not_united(make_catalog: Callable[..., CatalogService]) -> None:
    rpc = Rpc(make_catalog(bit_vector_partitions=2))
    names = fill(rpc, 3, {"a": "int"})
    values = [hashes(seed, 300) for seed in range(3)]
    store(
        rpc,
        *(
            statistics("p", name, a=long(0, 1, 0, 300, bitVectors=sketch(some).encode()))
            for name, some in zip(names, values, strict=True)
        ),
    )
    assert aggregated(rpc, names, "a")[0]["a"].numDVs == 300
    assert aggregated(rpc, names[:2], "a")[0]["a"].numDVs == pytest.approx(600, rel=0.1)


def test_many_partitions_in_bounded_memory(rpc: Rpc, db: Database) -> None:
    """The reply and the names are all that is held; a thousand bit vectors more cost nothing."""
    fill(rpc, 1, {"a": "int"})
    bits = sketch(hashes(1, 2_000)).encode()
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO partition (table_id, name, values, created_s, parameters, details)"
            " SELECT table_id, 'k=' || n, ARRAY[n::text], 0, '{}', '{}' FROM partition, generate_series(1, 4999) AS n"
        )
        connection.exec_driver_sql(
            "INSERT INTO column_statistics (table_id, partition_id, column_name, engine, column_type, kind, analyzed_s,"
            " nulls, distinct_values, low, high, bit_vector)"
            " SELECT table_id, id, 'a', 'hive', 'int', 'long', 0, 1, 1500, id, id + 1, %s FROM partition",
            (bits,),
        )
    names = [f"k={number}" for number in range(5_000)]
    aggregated(rpc, names[:10], "a")
    tracemalloc.start()
    found, partitions = aggregated(rpc, names, "a")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (partitions, found["a"].numNulls) == (5_000, 5_000)
    assert found["a"].numDVs == pytest.approx(2_000, rel=0.1)
    assert peak < 5_000 * len(bits), f"{peak} bytes at once, the bit vectors are {5_000 * len(bits)}"
