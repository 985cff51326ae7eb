"""Projections as the JVM is told them: what they mean is `selectExpr`'s meaning, and their cost does not grow."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark.jvm.frames.projection import projected

PARTS = [
    "a",
    "'",
    '"',
    "\\",
    "\n",
    "\r",
    "\t",
    "\x1e",
    "\x1f",
    ";",
    ",",
    "--",
    "/*",
    "é",
    "ß",
    "\U0001f600",
    " ",
    "%",
    "$1",
]
"""What literals are made of: the separator, what py4j writes in another way, what a pattern could mean."""


def columns_by(seed: int, number: int) -> list[str]:
    """So many columns of literals by a seed."""
    chosen = random.Random(seed)
    texts = ["".join(chosen.choices(PARTS, k=chosen.randint(0, 6))) for _ in range(number)]
    literals = [text.replace("\\", "\\\\").replace("'", "\\'") for text in texts]
    return [f"concat(id, '{literal}') AS `c{position}`" for position, literal in enumerate(literals)]


@pytest.mark.parametrize("seed", range(6))
def test_a_projection_is_that_of_select_expr(spark: SparkSession, seed: int) -> None:
    frame = spark.range(3)
    columns = columns_by(seed, 1 + seed * 5)
    assert projected(frame, *columns).collect() == frame.selectExpr(*columns).collect()


def test_no_column_at_all_is_none(spark: SparkSession) -> None:
    assert projected(spark.range(2)).columns == []


def test_what_is_wrong_is_told_as_by_select_expr(spark: SparkSession) -> None:
    for columns in (["id +"], ["nobody"], ["id", ""], ["id AS a", "id AS a, id"]):
        told = []
        for project in (lambda *of: spark.range(1).selectExpr(*of), lambda *of: projected(spark.range(1), *of)):
            with pytest.raises(Exception, match=r"PARSE|UNRESOLVED|error") as raised:
                _ = project(*columns).columns  # Connect looks no sooner
            told.append((type(raised.value), str(raised.value).splitlines()[0]))
        assert told[0] == told[1]


def test_calls_to_the_jvm_do_not_grow_with_the_columns(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    frame: Any = spark.range(1)
    if "_jdf" not in vars(frame):
        pytest.skip("over Connect there are no calls to a JVM")
    projected(frame, "id")
    client = frame._jdf._gateway_client
    send, calls = client.send_command, []

    def counted(command: str, *arguments: Any, **options: Any) -> Any:
        if not command.startswith("m\n"):  # what Python has no use for any more
            calls.append(command)
        return send(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", counted)
    numbers = []
    for width in (1, 10, 300):
        calls.clear()
        projected(frame, *(f"id AS c{position}" for position in range(width)))
        numbers.append(len(calls))
    assert numbers[0] == numbers[1] == numbers[2] <= 4, numbers
