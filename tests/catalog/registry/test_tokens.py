"""Delegation tokens and keys, over the wire: kept for clients, never issued."""

from collections.abc import Callable, Iterator

import pytest

from metastore.catalog.registry import tokens
from tests.caller import INTERNAL, Caller, refused


@pytest.fixture
def ann(metastore: Callable[..., str]) -> Iterator[Caller]:
    with Caller(metastore()) as caller:
        yield caller


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("get_delegation_token", ("ann", "hive/host@REALM")),
        ("renew_delegation_token", ("token",)),
        ("cancel_delegation_token", ("token",)),
    ],
)
def test_none_is_issued(ann: Caller, method: str, arguments: tuple[str, ...]) -> None:
    with refused("MetaException", "no delegation tokens.*hive.metastore.sasl.enabled=false"):
        ann.call(method, *arguments)


def test_tokens_are_kept(ann: Caller) -> None:
    assert ann.call("add_token", "id1", "secret") is True
    assert ann.call("add_token", "id1", "other") is False
    assert ann.call("add_token", "id0", "secret0") is True
    assert ann.call("get_token", "id1") == "secret"
    assert ann.call("get_token", "nix") == ""
    assert ann.call("get_all_token_identifiers") == ["id0", "id1"]
    assert ann.call("remove_token", "id1") is True
    assert ann.call("remove_token", "id1") is False
    assert ann.call("get_all_token_identifiers") == ["id0"]


def test_keys_are_kept(ann: Caller) -> None:
    first, second = ann.call("add_master_key", "one"), ann.call("add_master_key", "two")
    assert second > first
    ann.call("update_master_key", first, "uno")
    assert ann.call("get_master_keys") == ["uno", "two"]
    assert ann.call("remove_master_key", first) is True
    assert ann.call("remove_master_key", first) is False
    with refused("NoSuchObjectException", f"number {first}"):
        ann.call("update_master_key", first, "x")
    assert ann.call("get_master_keys") == ["two"]


def test_their_size_is_bounded(ann: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * (tokens.MAX_LENGTH + 1)
    for arguments in ((long, "t"), ("t", long), ("", "t"), ("t", None)):
        with refused(INTERNAL, "token"):
            ann.call("add_token", *arguments)
    with refused("MetaException", "767"):
        ann.call("add_master_key", long)
    monkeypatch.setattr(tokens, "MAX_TOKENS", 1)
    monkeypatch.setattr(tokens, "MAX_KEYS", 1)
    ann.call("add_token", "id", "t")
    ann.call("add_master_key", "k")
    with refused(INTERNAL, "1 tokens already"):
        ann.call("add_token", "id2", "t")
    with refused("MetaException", "1 keys already"):
        ann.call("add_master_key", "k2")
