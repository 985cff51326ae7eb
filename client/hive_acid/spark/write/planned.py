"""A change that is planned and has not happened: what a verb does with it is its business, and EXPLAIN's to show it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hive_acid.spark.plans.telling import Plan

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Planned(Generic[Result]):
    """How a change will go: `run` takes ids and writes. `nothing` is what that returns if nothing changes."""

    plan: Plan
    run: Callable[[], Result]
    nothing: Result
