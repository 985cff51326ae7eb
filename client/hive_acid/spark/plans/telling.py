"""Plans are told where they are acted upon: to the debug log, and to who listens in this thread, as EXPLAIN does."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

LOG = logging.getLogger("hive_acid.spark.plans")


class Plan(Protocol):
    """What is told: a step of a statement, in lines of which all but the first belong to it."""

    def lines(self) -> Sequence[str]: ...


_HEARD: ContextVar[list[Plan] | None] = ContextVar("hive_acid_plans", default=None)


class _Text:
    """The text of a plan, made where somebody reads it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def __str__(self) -> str:
        return text_of([self._plan])


def text_of(plans: Iterable[Plan]) -> str:
    """Plans as they are shown to a user."""
    return "\n\n".join("\n".join(plan.lines()) for plan in plans)


def tell(plan: Plan) -> None:
    """Say that `plan` is acted upon now."""
    LOG.debug("%s", _Text(plan))
    heard = _HEARD.get()
    if heard is not None:
        heard.append(plan)


@contextmanager
def heard_plans() -> Iterator[list[Plan]]:
    """The plans that are told within the block by this thread, in their order."""
    heard: list[Plan] = []
    before = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(before)
