"""Sketches of distinct values: what Hive has written, their union, how near the estimate is."""

from __future__ import annotations

import base64
import random

import pytest

from metastore.catalog.statistics.sketches import FlajoletMartin, HyperLogLog, SketchError, SketchUnion, decode

# Bytes by the format's description: 10 index bits; in the first, registers 0 and 1023 hold 1 and 2, packed in 2 bits
# each; in the second, the pairs (3, 1), (5, 2) and (4, 7), in an order that makes the last difference negative.
DENSE = b"HLL\xa2\x02" + b"\x40" + bytes(254) + b"\x02"
SPARSE = b"HLL\xa0\x03\x03" + b"\xc1\x01" + b"\x81\x01" + b"\xc5\xff\xff\xff\xff\xff\xff\xff\xff\x01"

# Written by the classes of Hive 4.0.1 for the numbers 0 to 2, and 0 to 999 of which it estimates 985.
HIVE_FEW = "SExMoAMDwfO+SIDgz8///////wGDrtGhBA=="
HIVE_MANY = (
    "SExMpNkHECQAFREEFAAQIAFQEAAAEAgRATABABAwECAgMxUnIAACEBASABAlEAEAEhEAAAIQAwMUABMRAkFkAAEgBRECATkCMgACYCBgMQAQAR"
    "AAIAIBAjAxAREAIRAgNiICFRQiAwABIBAEJEIAI2ADEEAAAgBAISABABAgEgAygAEEQ2AAMEYAMyFSAhABExMRAjAxAyACQhICIAUEExEQABES"
    "YhIhESU0FQAjIxEAEkAxEyAhAwJRE1AgAQMQAwAAACcAQyEgMQM0RABBACIBEVAAMBFiEAEEEwAgMAZDMzEBQAMwASAAAwAhEBEgMEUhIgEDMC"
    "ZQIkNDEAEAUAAmMAARAAMwECMgMSIDBABwUgEyEiERIQMyIABmAhMCIAIlAwADATUgEQAgIAEjACEBIgQSARAhAhAEUANEAFQQERAAQFEEERAT"
    "ElJgkAIBASBwEyIGEAABMRAwUSIgAUEAIhAgIQQRE2AiAQECMkUQAANSEiAAJwIBAiAAJAEmUgVAAQAiA0AgABAgIAACASAAIVQBAEBAABEFES"
    "IAMkEgAioAYAQEAxABASQBAAATABEQIBEwIiAzIiEiMDIhEAQiIDEGVVEBICc0IhASEBAQIQARAUBAABECAkACQDNREBIwAREgBgIQADBRMAIE"
    "ESEQADACAlABACBDAjMDICwBEAARAAI="
)


def sketch(values: set[int], index_bits: int = 10, sparse: bool = False) -> HyperLogLog:
    """Of hashes that are numbers of 64 random bits, each a distinct value."""
    pairs: dict[int, int] = {}
    registers = bytearray(1 << index_bits)
    for value in values:
        rest = value >> index_bits
        run = (rest & -rest).bit_length() if rest else 65 - index_bits
        index = value % len(registers)
        registers[index] = max(registers[index], run)
        pairs[value % 2**25] = max(pairs.get(value % 2**25, 0), run)
    return HyperLogLog(index_bits, pairs) if sparse else HyperLogLog(index_bits, None, bytes(registers))


def hashes(seed: int, count: int) -> set[int]:
    source = random.Random(seed)
    return {source.getrandbits(64) for _ in range(count)}


def test_bytes_of_packed_registers() -> None:
    found = decode(DENSE)
    assert found == HyperLogLog(10, None, bytes([1]) + bytes(1022) + bytes([2]))
    assert found.encode() == DENSE


def test_bytes_of_few_registers() -> None:
    found = decode(SPARSE)
    assert found == HyperLogLog(10, {3: 1, 5: 2, 4: 7})
    assert found.estimate() == 3
    assert decode(found.encode()) == found


def test_what_hive_has_written() -> None:
    few, many = (decode(base64.b64decode(text)) for text in (HIVE_FEW, HIVE_MANY))
    assert few.estimate() == 3
    assert many.estimate() == pytest.approx(985, rel=0.02)
    assert many.encode()[6:] == base64.b64decode(HIVE_MANY)[6:], "all but the estimate"
    assert many.merge(few) == many


@pytest.mark.parametrize("index_bits", [4, 10, 14, 15])
@pytest.mark.parametrize("count", [0, 1, 100, 20_000])
@pytest.mark.parametrize("sparse", [True, False])
def test_round_trip(index_bits: int, count: int, sparse: bool) -> None:
    made = sketch(hashes(count, count), index_bits, sparse)
    assert decode(made.encode()) == made


def test_registers_too_large_to_pack() -> None:
    made = HyperLogLog(4, None, bytes([64, *range(15)]))
    assert made.encode()[3] & 7 == 7
    assert decode(made.encode()) == made


@pytest.mark.parametrize("count", [1, 2, 10, 100, 700, 1500, 5_000, 50_000])
@pytest.mark.parametrize("index_bits", [10, 14])
def test_the_estimate_is_near(index_bits: int, count: int) -> None:
    """Within four standard errors, 1.04 / sqrt(registers) each, over the range in which others need tables."""
    error = 1.04 / (1 << index_bits) ** 0.5
    assert sketch(hashes(count, count), index_bits).estimate() == pytest.approx(count, rel=4 * error, abs=1)


@pytest.mark.parametrize("seed", range(20))
def test_the_union_is_the_sketch_of_all_values(seed: int) -> None:
    source = random.Random(seed)
    parts = [hashes(source.getrandbits(32), source.choice([0, 1, 50, 200, 3000])) for _ in range(4)]
    union = SketchUnion()
    for part in parts:
        assert union.add(sketch(part, 10, sparse=len(part) < 150).encode())
    found = union.sketch
    everything = sketch(set().union(*parts), 10, sparse=True)
    assert isinstance(found, HyperLogLog)
    if found.pairs is not None:
        assert found == everything
    else:
        assert found == sketch(set().union(*parts), 10)


def test_a_union_of_different_sizes_has_the_smaller_one() -> None:
    one, other = hashes(1, 4000), hashes(2, 3000)
    for sparse in (False, True):
        found = sketch(one, 14, sparse).merge(sketch(other, 10))
        assert found == sketch(one | other, 10)


def test_many_small_unions_switch_to_registers() -> None:
    union = SketchUnion()
    for number in range(400):
        union.add(HyperLogLog(10, {number: 1}).encode())
    assert isinstance(union.sketch, HyperLogLog)
    assert union.sketch.pairs is None
    assert union.sketch.estimate() == pytest.approx(506, rel=0.1), "400 registers of 1024 hold a one"


def test_flajolet_martin() -> None:
    one = b"FM\x02\x00" + b"\x07\x00\x00\x00" + b"\x01\x00\x00\x00"
    other = b"FM\x02\x00" + b"\x08\x00\x00\x00" + b"\x06\x00\x00\x00"
    union = SketchUnion()
    union.add(one)
    assert union.sketch == FlajoletMartin(2, 0x1_0000_0007)
    assert union.sketch.estimate() == 5  # 2 ** ((3 + 1) / 2) / 0.77351
    union.add(other)
    assert union.sketch is not None
    assert union.sketch.encode() == b"FM\x02\x00" + b"\x0f\x00\x00\x00" + b"\x07\x00\x00\x00"
    assert union.sketch.estimate() == 14  # 2 ** ((4 + 3) / 2) / 0.77351
    assert FlajoletMartin(1, 2**31 - 1).estimate() == int(2**31 / 0.77351)
    assert FlajoletMartin(1, 0).estimate() == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HLL",
        b"FM\x02",
        b"FM\x00\x00",
        b"{0, 1, 2}{0, 3}",
        b"HLL\xa0\x80",
        b"HLL\xa0\x01\xff\xff\xff\x7f",
        b"HLL\xa0\x01" + b"\xff" * 30,
        b"HLL\x30\x01\x00",
        DENSE[:-1],
        b"HLL\xa7\x01" + b"\xff" * 1024,
        b"HLL\xa0\x01\x01\xff\xff\xff\xff\x0f",
    ],
)
def test_what_is_no_sketch_leaves_the_union_unknown(data: bytes) -> None:
    with pytest.raises(SketchError):
        decode(data)
    union = SketchUnion()
    assert union.add(DENSE)
    assert not union.add(data)
    assert not union.add(DENSE)
    assert union.sketch is None


def test_two_forms_do_not_unite() -> None:
    union = SketchUnion()
    union.add(DENSE)
    assert not union.add(b"FM\x01\x00\x01\x00\x00\x00")


def test_random_bytes_are_a_sketch_or_an_error() -> None:
    source = random.Random(7)
    for _ in range(2_000):
        data = source.choice([b"HLL", b"FM"]) + source.randbytes(source.randrange(200))
        try:
            found = decode(data)
        except SketchError:
            continue
        assert decode(found.encode()).estimate() == found.estimate() >= 1
