"""Java's own client classes against our server: every method they have, in three releases."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

import pytest

from tests.clients.java.client import JavaHive
from tests.clients.java.uncovered import is_listed, patterns
from tests.clients.walks import STORIES, Walk

GENERATIONS = [
    pytest.param(2, id="2.3.10"),
    pytest.param(3, id="3.1.3", marks=pytest.mark.maven),
    pytest.param(4, id="4.0.1", marks=pytest.mark.maven),
]
_TOLD: set[tuple[int, str]] = set()


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("story", STORIES)
def test_walk(walk_of: Callable[[int], Walk], generation: Any, story: Any) -> None:
    _TOLD.add((generation, story))
    STORIES[story](walk_of(generation))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_method_is_called_or_listed(
    walk_of: Callable[[int], Walk], hive_of: Callable[[int], JavaHive], generation: Any
) -> None:
    """By reflection: a method is called by some walk, or it is listed with a reason, never both."""
    for story in STORIES:
        if (generation, story) not in _TOLD:
            STORIES[story](walk_of(generation))
    hive = hive_of(generation)
    uncalled = hive.signatures - hive.called
    assert sorted(one for one in uncalled if not is_listed(generation, one)) == []
    assert sorted(one for one in hive.called if is_listed(generation, one)) == []
    assert [one for one in patterns(generation) if not any(fnmatch(name, one) for name in uncalled)] == []
