"""One server for each file of tests, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.caller import Caller
from tests.served import Served, served


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(postgres_url, template, tmp_path_factory.mktemp("warehouse")) as running:
        yield running


@pytest.fixture(scope="module")
def ann(server: Served) -> Iterator[Caller]:
    with server.caller() as caller:
        yield caller
