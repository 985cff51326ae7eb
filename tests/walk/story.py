"""Runs a walk of a seed; when it breaks, finds the shortest story that still does and tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tests.served import Served
from tests.walk.chooser import Chooser
from tests.walk.shortening import shortest
from tests.walk.verbs import Step
from tests.walk.walk import Broken, Walk

Fresh = Callable[[], AbstractContextManager[Served]]
"""Serves a fresh database each time it is called."""


@dataclass(frozen=True)
class Plan:
    """A walk: `together` is the largest number of calls sent at the same time."""

    seed: int
    steps: int
    together: int = 1
    with_housekeeping: bool = False


def run(plan: Plan, fresh: Fresh) -> set[tuple[str, str]]:
    """Walk, and return which verbs got which kinds of answers.

    Raises AssertionError with the shortest story of what went wrong.
    """
    chooser = Chooser(plan.seed, with_housekeeping=plan.with_housekeeping)
    groups: list[list[Step]] = []
    count = 0
    with fresh() as server, Walk(server) as walk:
        while count < plan.steps:
            size = 1 + len(groups) % plan.together
            groups.append(chooser.group(size, walk.model, walk.known))
            try:
                walk.play(groups[-1])
            except Broken as broken:
                found = [*walk.told[-2 * plan.together :], f"Wrong: {broken}"]
                break
            count += len(groups[-1])
        else:
            return walk.seen
    raise AssertionError(
        "\n".join(
            [*_tell(plan, shortest(groups, lambda story: replay(story, fresh)[0]), fresh), "First seen as:", *found]
        )
    )


def replay(groups: Sequence[Sequence[Step]], fresh: Fresh) -> tuple[int | None, list[str], str]:
    """The number of the group that broke, None if none did; what was told, and what was wrong."""
    with fresh() as server, Walk(server) as walk:
        for at, group in enumerate(groups):
            try:
                walk.play(group)
            except Broken as broken:
                return at, walk.told, str(broken)
        return None, walk.told, ""


def _tell(plan: Plan, groups: Sequence[Sequence[Step]], fresh: Fresh) -> list[str]:
    broken_at, told, wrong = replay(groups, fresh)
    if broken_at is None:
        wrong = "this time it went well: the story depends on chance"
    people = sorted({step.client for group in groups for step in group})
    lines = [f"{number:4}. {line}" for number, line in enumerate(told, 1)]
    return [f"{plan} broke. The shortest story, by {', '.join(people)}:", *lines, f"Wrong: {wrong}"]
