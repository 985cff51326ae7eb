"""Hive's hash of bucket columns, in plain Python, against what Hive computes."""

from typing import Any

import pytest

from hive_acid.errors import FormatError
from hive_acid.format.hashing import bucket_number, combined, hash_of
from tests.format.hash_vectors import HASHES, SEVERAL, value_of


@pytest.mark.parametrize("kind", HASHES)
def test_hashes_are_those_of_hive(kind: Any) -> None:
    assert {text: hash_of(kind, value_of(kind, text)) for text, _ in HASHES[kind]} == dict(HASHES[kind])


def test_several_columns_and_nulls() -> None:
    for values, expected in SEVERAL:
        hashes = [hash_of(kind, value) for kind, value in zip(("int", "string"), values, strict=True)]
        assert combined(hashes) == expected
        assert bucket_number(["int", "string"], values, 7) == (expected & 0x7FFFFFFF) % 7


@pytest.mark.parametrize("kind", ["map<int,int>", "uniontype<int,string>", "interval_day_time"])
def test_what_has_no_known_hash_is_refused(kind: str) -> None:
    with pytest.raises(FormatError, match=kind.partition("<")[0]):
        hash_of(kind, {})
