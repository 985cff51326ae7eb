"""Structs that are written are read back, and what is none is refused."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.errors import FormatError
from hive_acid.format.thrift_compact import BINARY, I16, I32, I64, LIST, STRUCT, List, Struct, decoded, encoded

_BYTE, _DOUBLE, _BOOL, _SET = 3, 7, 1, 10
NUMBERS = st.tuples(st.sampled_from([I16, I32, I64]), st.integers(-(2**63), 2**63 - 1))
PLAIN = st.one_of(
    NUMBERS,
    st.tuples(st.just(BINARY), st.binary(max_size=200)),
    st.tuples(st.just(_BYTE), st.integers(0, 255)),
    st.tuples(st.just(_DOUBLE), st.floats(allow_nan=False)),
    st.tuples(st.just(_BOOL), st.booleans()),
)


def structs(values: Any) -> Any:
    return st.dictionaries(st.integers(1, 3000), values, max_size=6).map(Struct)


def lists(values: Any) -> Any:
    """Of values of one type, the type of the first."""
    return st.tuples(st.sampled_from([LIST, _SET]), st.lists(values, min_size=1, max_size=20)).map(
        lambda made: (made[0], List(made[1][0][0], [value for kind, value in made[1] if kind == made[1][0][0]]))
    )


NESTED = st.recursive(
    PLAIN, lambda inner: st.one_of(lists(inner), structs(inner).map(lambda of: (STRUCT, of))), max_leaves=30
)


@given(structs(NESTED))
def test_what_is_written_is_read(given_struct: Any) -> None:
    assert decoded(encoded(given_struct)) == given_struct


@given(st.binary(max_size=60))
def test_bytes_of_chance_are_read_or_refused(data: Any) -> None:
    with contextlib.suppress(FormatError):
        decoded(data)


@pytest.mark.parametrize("data", [b"", b"\x15", b"\x18\x05abc", b"\x17abc", b"\x1b\x01", b"\x1c" * 40, b"\x19\x16"])
def test_what_is_cut_off_or_unknown_is_refused(data: Any) -> None:
    with pytest.raises(FormatError):
        decoded(data)


def test_fields_are_of_the_type_that_is_wanted() -> None:
    found = Struct({1: (BINARY, b"x"), 2: (I64, 7), 3: (LIST, List(I64, [1]))})
    assert (found.number(2), found.number(9), found.struct(9), found.structs(9)) == (7, 0, {}, [])
    for wrong in (lambda: found.number(1), lambda: found.struct(2), lambda: found.structs(2), lambda: found.structs(3)):
        with pytest.raises(FormatError, match="is no"):
            wrong()
