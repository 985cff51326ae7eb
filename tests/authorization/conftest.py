"""A server that enforces rights, for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.authorization.world import SETTINGS, person
from tests.caller import Caller
from tests.served import Served, served


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(postgres_url, template, tmp_path_factory.mktemp("rights") / "warehouse", SETTINGS) as running:
        yield running


@pytest.fixture
def root(server: Served) -> Iterator[Caller]:
    with person(server, "root") as caller:
        yield caller
