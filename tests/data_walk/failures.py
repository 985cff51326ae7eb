"""Statements that fail when a part of their work is done: of them nothing may be left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from pyspark.sql import functions as F

from hive_acid.errors import MergeCardinalityError
from tests.data_walk.tables import Row
from tests.data_walk.verbs import Scene, written

_RAISED = "CAST(raise_error('as if') AS int)"


def _failing(scene: Scene, table: str, rows: Sequence[Row]) -> Any:
    """`rows`, of which the last cannot be computed."""
    columns = scene.columns(table)
    key, value = columns.name("id"), columns.name("v")
    last = f"CASE WHEN `{key}` = {rows[-1]['id']} THEN {_RAISED} ELSE `{value}` END"
    return scene.frame(table, rows).repartition(3).withColumn(value, F.expr(last))


def _raises(*, if_any: object) -> AbstractContextManager[object]:
    return pytest.raises(Exception, match="as if") if if_any else nullcontext()


def insert(scene: Scene, table: str, rows: Sequence[Row], by_client: bool) -> None:
    with written(scene, by_client), _raises(if_any=True):
        scene.acid.insert(table, _failing(scene, table, rows))


def overwrite(scene: Scene, table: str, rows: Sequence[Row], by_client: bool) -> None:
    with written(scene, by_client), _raises(if_any=True):
        scene.acid.overwrite(table, _failing(scene, table, rows))


def update(scene: Scene, table: str, rows: Sequence[Row], by_client: bool) -> None:
    columns = scene.columns(table)
    last = max(scene.txn.own[table], default="NULL")
    assigned = f"CASE WHEN `{columns.name('id')}` = {last} THEN {_RAISED} ELSE 7 END"
    with written(scene, by_client), _raises(if_any=scene.txn.own[table]):
        scene.acid.update(table, {columns.name("v"): assigned})


def merge(scene: Scene, table: str, rows: Sequence[Row], by_client: bool) -> None:
    """One row of the table is matched by two of the source, others are new."""
    columns = scene.columns(table)
    own = scene.txn.own[table]
    twice = [own[max(own)].row] * 2 if own else []
    key = columns.name("id")
    source = scene.frame(table, [*rows, *twice])
    builder = scene.acid.merge(table, source, f"t.{key} = s.{key}").whenMatchedUpdateAll()
    builder = builder.whenNotMatchedInsertAll() if own else builder
    with written(scene, by_client), pytest.raises(MergeCardinalityError) if own else nullcontext():
        builder.execute()


FAILURES: dict[str, Callable[..., None]] = {"insert": insert, "overwrite": overwrite, "update": update, "merge": merge}
