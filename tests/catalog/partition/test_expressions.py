"""Hive's serialised partition expressions: bytes that real Hive releases wrote, and bytes that nobody should."""

import base64
import random
import time
import tracemalloc
from pathlib import Path

import pytest

from hive_acid.errors import MetaError
from metastore.catalog.models import Column
from metastore.catalog.partition.conditions import Literal
from metastore.catalog.partition.expressions import expression_condition
from metastore.catalog.partition.filters import filter_condition
from metastore.catalog.partition.kryo_classes import EXPRESSION, FUNCTION

VECTORS = Path(__file__).parent / "vectors" / "kryo.tsv"
TYPES = """d string, hr int, n bigint, s smallint, t tinyint, x double, f float, flag boolean, day date, at timestamp,
amount decimal(10;2), v varchar(10), c char(5)"""
KEYS = [Column(*key.replace(";", ",").split()) for key in TYPES.split(",")]


def vectors() -> list[tuple[str, str, str, bytes]]:
    lines = [line.split("\t") for line in VECTORS.read_text().splitlines() if not line.startswith("#")]
    return [(release, form, text, base64.b64decode(data)) for release, form, text, data in lines]


@pytest.mark.parametrize(
    ("text", "data"),
    [pytest.param(text, data, id=f"{release} {form} {text}") for release, form, text, data in vectors()],
)
def test_what_hive_wrote(text: str, data: bytes) -> None:
    if text.startswith("!"):
        with pytest.raises(MetaError, match=text[1:]):
            expression_condition(data, KEYS)
        return
    condition, is_hive = expression_condition(data, KEYS)
    assert is_hive
    assert condition == (Literal(None) if text == "?null" else filter_condition(_spelled(text), KEYS))


def _spelled(text: str) -> str:
    """Hive's decimals have no zeros at the end."""
    return text.replace("12.50", "12.5")


def test_filter_text_in_place_of_an_expression() -> None:
    assert expression_condition(b'd = "a"', KEYS) == (filter_condition('d = "a"', KEYS), False)
    assert expression_condition('d = "a"', KEYS) == (filter_condition('d = "a"', KEYS), False)


def test_a_column_that_is_none() -> None:
    data = next(data for _, _, text, data in vectors() if text == "d = 'x'")
    with pytest.raises(MetaError, match="not a partition column"):
        expression_condition(data, KEYS[1:])


@pytest.mark.parametrize("release", ["2.3.10", "3.1.3", "4.0.1"])
def test_cut_and_changed_bytes_end_as_an_error_or_a_condition(release: str) -> None:
    """Whatever comes of them, it comes soon, and takes no memory to speak of."""
    chosen = [data for vector, _, text, data in vectors() if vector == release and "in (" in text]
    dice = random.Random(5)
    tracemalloc.start()
    began_at = time.monotonic()
    for data in chosen:
        for end in range(0, len(data), 7):
            _decode(data[:end], must_fail=True)
        for _ in range(300):
            changed = bytearray(data)
            for _ in range(dice.randint(1, 4)):
                changed[dice.randrange(1, len(changed))] = dice.choice([0, 1, 2, 0x7F, 0x80, 0xFF, dice.randrange(256)])
            _decode(bytes(changed))
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert time.monotonic() - began_at < 60


def _decode(data: bytes, must_fail: bool = False) -> None:
    try:
        expression_condition(data, KEYS)
    except MetaError:
        return
    assert not must_fail or not data, data


def test_lengths_beyond_the_end() -> None:
    name = b"java.util.ArrayLis\xf4"
    for huge in (b"\xff\xff\xff\xff\x0f", b"\xff" * 9, b"\xff\xff\xff\x7f"):
        with pytest.raises(MetaError, match="cannot decide"):
            expression_condition(b"\x01\x01\x00" + name + b"\x01" + huge, KEYS)
    with pytest.raises(MetaError, match="more than"):
        expression_condition(b"\x01" * 5_000_000, KEYS)


class Writer:
    """Writes expressions as Hive 3 does, of functions of one kind whose arguments are functions."""

    def __init__(self) -> None:
        self._classes: list[bytes] = []
        self.objects = 0

    def class_of(self, name: str) -> bytes:
        """A class by its name where it first occurs, by its number afterwards."""
        text = name.encode()
        if text not in self._classes:
            self._classes.append(text)
            return bytes([1, len(self._classes) - 1]) + text[:-1] + bytes([text[-1] | 0x80])
        return bytes([1, self._classes.index(text)])

    def new(self) -> bytes:
        self.objects += 1
        return b"\x01"

    def reference(self, number: int) -> bytes:
        mark = number + 2
        return bytes([mark]) if mark < 0x80 else bytes([mark & 0x7F | 0x80, mark >> 7])

    def nested(self, function: str, levels: int, twice: bool) -> bytes:
        """A function of a function and so on; with `twice` each has its argument two times, once by reference."""
        written = self.new() + self.class_of("java.util.ArrayList") + self.new()
        if levels == 0:
            written += b"\x00"
        else:
            written += bytes([2 if twice else 1]) + self.class_of(EXPRESSION)
            number = self.objects
            written += self.nested(function, levels - 1, twice)
            if twice:
                written += self.class_of(EXPRESSION)
                written += self.reference(number)
        written += self.class_of(FUNCTION + function) + self.new()
        return written + b"\x00" + b"\x00" + b"\x00"  # its result, isSortedExpr, its type


def test_depth_is_bounded() -> None:
    assert expression_condition(Writer().nested("GenericUDFOPAnd", 90, twice=False), KEYS)
    with pytest.raises(MetaError, match="nested deeper"):
        expression_condition(Writer().nested("GenericUDFOPAnd", 300, twice=False), KEYS)


def test_shared_parts_do_not_multiply() -> None:
    """Each level refers twice to the one below: 2 to the power of 40 conditions in a few hundred bytes."""
    assert expression_condition(Writer().nested("GenericUDFOPOr", 5, twice=True), KEYS)
    with pytest.raises(MetaError, match="more than 20000 parts"):
        expression_condition(Writer().nested("GenericUDFOPOr", 40, twice=True), KEYS)
