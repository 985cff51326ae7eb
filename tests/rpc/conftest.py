"""Servers by themselves, without a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.rpc.test_server import Running, base_handlers


@pytest.fixture
def running() -> Iterator[Callable[..., Running]]:
    servers: list[Running] = []

    def start(limits: dict[str, Any] | None = None, **handlers: Any) -> Running:
        servers.append(Running(base_handlers() | handlers, **(limits or {})))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
