"""Runs a walk of a seed; when it breaks, finds the shortest story that still does and tells it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tests.data_walk.chooser import Chooser
from tests.data_walk.tables import Shape
from tests.data_walk.verbs import Step
from tests.data_walk.walk import Walk
from tests.served import served
from tests.walk.shortening import Limits, shortest

LIMITS = Limits(replays=60, seconds=240.0)


@dataclass(frozen=True)
class Stage:
    """Where walks take place: Spark, and a database to copy for each."""

    spark: SparkSession
    postgres_url: str
    template: str
    directory: Path

    def play(self, shapes: Mapping[str, Shape], steps: Sequence[Step]) -> int | None:
        """Replay a story on fresh tables; the number of the step that breaks, None if none does."""
        place = self._place()
        at = 0
        with served(self.postgres_url, self.template, place) as server:
            try:
                with Walk(self.spark, server, place, shapes) as walk:
                    for at, step in enumerate(steps):  # noqa: B007 - it is where the walk broke
                        walk.play(step)
                    walk.finish()
            except Exception:  # whatever it is: this story is about what goes wrong
                return at
        return None

    def run(self, seed: int, steps: int) -> dict[str, int]:
        """Walk, and return how often each verb was played.

        Raises AssertionError with the shortest story of what went wrong.
        """
        chooser = Chooser(seed)
        shapes = chooser.shapes()
        place, played = self._place(), list[Step]()
        with served(self.postgres_url, self.template, place) as server:
            try:
                with Walk(self.spark, server, place, shapes) as walk:
                    for _ in range(steps):
                        played.append(chooser.step(walk))
                        walk.play(played[-1])
                    walk.finish()
            except Exception:
                wrong = traceback.format_exc()
            else:
                return {verb: sum(step.verb == verb for step in played) for verb in {step.verb for step in played}}
        started = time.monotonic()
        kept = shortest(played, lambda story: self.play(shapes, story), LIMITS)
        raise AssertionError(
            "\n".join(
                [
                    f"seed {seed} broke after {len(played)} steps. The shortest story found in"
                    f" {time.monotonic() - started:.0f} s, on {shapes}:",
                    *(f"{number:4}. {step}" for number, step in enumerate(kept, 1)),
                    f"Wrong: {wrong}",
                ]
            )
        )

    def _place(self) -> Path:
        number = len(list(self.directory.iterdir()))
        place = self.directory / f"walk-{number}" / "warehouse"
        place.mkdir(parents=True)
        return place
