"""Messages that are written are read back, and what is none is refused."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import bytes_field, fields, number_field, read_varint, varint, zigzag

FIELDS = st.lists(st.tuples(st.integers(1, 9000), st.one_of(st.integers(0, 2**63), st.binary(max_size=300))))


@given(FIELDS)
def test_what_is_written_is_read(given_fields: Any) -> None:
    written = b"".join(
        number_field(field, value) if isinstance(value, int) else bytes_field(field, value)
        for field, value in given_fields
    )
    assert list(fields(written)) == given_fields


@given(st.binary(max_size=40))
def test_bytes_of_chance_are_read_or_refused(message: Any) -> None:
    with contextlib.suppress(FormatError):
        assert all(field >= 0 for field, _ in fields(message))


def test_fixed_sizes_are_passed_by() -> None:
    assert list(fields(varint(3 << 3 | 1) + b"12345678" + varint(4 << 3 | 5) + b"1234")) == [
        (3, b"12345678"),
        (4, b"1234"),
    ]


def test_signed_numbers() -> None:
    assert [zigzag(value) for value in (0, 1, 2, 3, 2**64 - 1)] == [0, -1, 1, -2, -(2**63)]


@pytest.mark.parametrize(
    "message", [b"\x80", b"\x80" * 12, varint(1 << 3 | 2) + varint(5) + b"1234", b"\x0b", b"\x09123"]
)
def test_what_is_cut_off_is_refused(message: Any) -> None:
    with pytest.raises(FormatError):
        list(fields(message))


def test_a_number_tells_where_it_ends() -> None:
    assert read_varint(b"\x00" + varint(300) + b"\x07", 1) == (300, 3)
