"""Verbs that stand in two places, on a session and on a frame of it or on a connection: both are called alike."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from hive_acid.connection import Connection
from hive_acid.spark.session import AcidSession
from hive_acid.spark.verbs.frame import AcidTable

OF_A_FRAME = sorted(
    name for name, verb in vars(AcidTable).items() if inspect.isfunction(verb) and not name.startswith("_")
)


def _parameters(verb: Callable[..., object]) -> list[inspect.Parameter]:
    _, *others = inspect.signature(verb).parameters.values()
    return others


@pytest.mark.parametrize("name", [name for name in OF_A_FRAME if name != "partitions"])
def test_a_verb_of_a_frame_takes_what_that_of_the_session_takes_behind_the_table(name: str) -> None:
    table, *others = _parameters(getattr(AcidSession, name))
    assert table.name == "table"
    assert _parameters(getattr(AcidTable, name)) == others


@pytest.mark.parametrize("name", ["create_database", "drop_database"])
def test_a_verb_of_the_session_takes_what_that_of_the_connection_takes(name: str) -> None:
    assert _parameters(getattr(AcidSession, name)) == _parameters(getattr(Connection, name))
