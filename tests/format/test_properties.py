"""The kind of a table, from its properties in whatever case they are written."""

from __future__ import annotations

import itertools

import pytest

from hive_acid.format.properties import is_full_acid, is_insert_only, is_transactional, with_defaults, word_of

KEYS = ("transactional", "TRANSACTIONAL", "Transactional")
KIND_KEYS = ("transactional_properties", "TRANSACTIONAL_PROPERTIES")


@pytest.mark.parametrize(("key", "value"), list(itertools.product(KEYS, ("true", "TRUE", " True "))))
def test_the_case_of_transactional_does_not_count(key: str, value: str) -> None:
    assert is_transactional({key: value})
    assert is_full_acid({key: value})
    assert not is_insert_only({key: value})


@pytest.mark.parametrize(
    ("key", "kind"), list(itertools.product(KIND_KEYS, ("insert_only", "INSERT_ONLY", "Insert_Only ")))
)
def test_the_case_of_insert_only_does_not_count(key: str, kind: str) -> None:
    properties = {"transactional": "true", key: kind}
    assert is_insert_only(properties)
    assert not is_full_acid(properties)
    assert not is_insert_only({key: kind})


@pytest.mark.parametrize("properties", [{}, {"transactional": "false"}, {"transactional": "yes"}])
def test_a_plain_table_is_of_no_transactional_kind(properties: dict[str, str]) -> None:
    assert not is_transactional(properties)
    assert not is_full_acid(properties)
    assert not is_insert_only(properties)


def test_a_default_gives_way_to_the_same_property_in_another_case() -> None:
    assert with_defaults({"TRANSACTIONAL": "false", "a": "1"}, {"transactional": "true", "b": "2"}) == {
        "TRANSACTIONAL": "false",
        "a": "1",
        "b": "2",
    }


def test_the_key_in_its_own_case_comes_first() -> None:
    assert word_of({"TRANSACTIONAL": "true", "transactional": "false"}, "transactional") == "false"
