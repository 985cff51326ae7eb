"""One server per module; every test works in databases of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from hive_acid.wire import ttypes
from tests.caller import Caller
from tests.served import Served, served

_names = itertools.count(1)


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(postgres_url, template, tmp_path_factory.mktemp("warehouse")) as running:
        yield running


@pytest.fixture(scope="module")
def shared_caller(server: Served) -> Iterator[Caller]:
    with server.caller() as caller:
        yield caller


@pytest.fixture
def ann(shared_caller: Caller) -> Iterator[Caller]:
    """The client most tests need; it leaves no transaction open, a read-only one neither."""
    yield shared_caller
    open_ids = shared_caller.call("get_open_txns_req", ttypes.GetOpenTxnsRequest(excludeTxnTypes=[])).open_txns
    if open_ids:
        shared_caller.abort_all(*open_ids)


@pytest.fixture
def alone(
    postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Served]]:
    """Starts a server of the test's own, called with settings: for what only holds on a fresh database."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(
            served(postgres_url, template, tmp_path_factory.mktemp("alone"), settings)
        )


@pytest.fixture
def name() -> str:
    """The name of a database that no other test uses."""
    return f"d{next(_names)}"
