"""The verbs of a walk: each does the same to the tables and to the model, and compares what comes back.

A verb whose method the session does not have is left out (`available`), so that the walk grows with the product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest

from hive_acid.errors import ColumnError, DuplicateKeyError, UnsupportedTableError
from hive_acid.spark import AcidSession
from hive_acid.spark.change.merge import MergeBuilder, RowCounts
from tests.data_walk.conditions import Assignment, Condition
from tests.data_walk.model import Model, Partition, Txn
from tests.data_walk.tables import KEY_VALUES, Columns, Row, Shape, frame_of, key_text, literal
from tests.spark.by_spark import WRITTEN, limited

_SOURCE = Shape({"id": "int", "v": "int"}, {})


@dataclass(frozen=True)
class Step:
    """What a writer does next; the arguments say all, so that a story can be told again with parts left out."""

    writer: str
    verb: str
    arguments: Mapping[str, Any]

    def __str__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.writer} {self.verb}({said})"


@dataclass
class Scene:
    """Where a changing verb plays: a writer's session, its transaction in the model, and a place for loose files."""

    acid: AcidSession
    model: Model
    txn: Txn
    scratch: str

    def columns(self, table: str) -> Columns:
        return self.model.columns[table]

    def frame(self, table: str, rows: Sequence[Row], roles: Sequence[str] | None = None) -> Any:
        columns = self.columns(table)
        return frame_of(self.acid.spark, columns, rows, columns.roles if roles is None else roles)


@dataclass(frozen=True)
class Clause:
    """One WHEN of a merge: ``matched``, ``new`` or ``by source``; assigns, takes all (None), or deletes ("delete")."""

    when: str
    condition: Condition | None
    action: tuple[Assignment, ...] | str | None


def insert(scene: Scene, table: str, rows: Sequence[Row], tasks: int) -> None:
    frame = scene.frame(table, rows)
    # As they are given the client writes them.
    placed = frame.repartition(tasks) if tasks > 1 else frame
    _equal(scene.acid.insert(table, placed), scene.model.insert(scene.txn, table, rows))


def overwrite(scene: Scene, table: str, rows: Sequence[Row], partition: Mapping[str, Any] | None) -> None:
    """The whole table, a static partition, or the partitions that rows fall into."""
    columns = scene.columns(table)
    rows = [{**row, **(partition or {})} for row in rows]
    roles = [role for role in columns.roles if role not in (partition or {})]
    of = {columns.partition_of(row) for row in rows}

    def is_replaced(place: Partition) -> bool:
        if partition is None:
            return not columns.keys or place in of
        return all(place[list(columns.keys).index(key)] == value for key, value in partition.items())

    frame = scene.frame(table, rows, roles)
    given = None if partition is None else {key: key_text(value) for key, value in partition.items()}
    number = scene.acid.overwrite(table, frame, partition=given)
    _equal(number, scene.model.replace(scene.txn, table, rows, is_replaced))


def replace(scene: Scene, table: str, rows: Sequence[Row], where: Condition) -> None:
    """Rows by a condition, which is true for the new ones."""
    number = scene.acid.overwrite(table, scene.frame(table, rows), where=where.sql(scene.columns(table)))
    scene.model.change(scene.txn, table, lambda row: None if where.holds(row) else row)
    scene.txn.claimed |= {(table, scene.columns(table).partition_of(row)) for row in rows}
    _equal(number, scene.model.insert(scene.txn, table, rows))


def truncate(scene: Scene, table: str, partition: Mapping[str, Any] | None) -> None:
    columns = scene.columns(table)
    keys = list(columns.keys)
    chosen = partition or {}
    there = {columns.partition_of(version.row) for version in scene.txn.own[table].values()}
    wanted = tuple(chosen.get(key) for key in keys)
    if partition and wanted not in there:
        return
    scene.acid.truncate(table, {key: key_text(value) for key, value in chosen.items()} if partition else None)
    scene.model.replace(scene.txn, table, (), lambda place: not partition or place == wanted)


def load_data(scene: Scene, table: str, rows: Sequence[Row], partition: Mapping[str, Any], copy: bool) -> None:
    columns = scene.columns(table)
    rows = [{**row, **partition} for row in rows]
    path = f"{scene.scratch}/load-{rows[0]['id']}"
    scene.frame(table, rows, list(columns.types)).coalesce(1).write.orc(path)
    given = {key: key_text(value) for key, value in partition.items()} if partition else None
    refusal: AbstractContextManager[object] | None = None
    # A frame, hence its file, knows no lengths.
    if any(kind.startswith(("varchar", "char")) for kind in columns.types.values()):
        refusal = pytest.raises(ColumnError, match="is string")
    elif columns.buckets:
        refusal = pytest.raises(UnsupportedTableError, match="tells no bucket")
    with refusal or nullcontext():
        scene.acid.load_data(table, path, partition=given, copy=copy)
    if refusal is None:
        scene.model.insert(scene.txn, table, rows)


def written(scene: Scene, by_client: bool) -> AbstractContextManager[object]:
    """Within the block changes are written by the client, as few ones are, or all by Spark."""
    return nullcontext() if by_client else limited(scene.acid, **WRITTEN)


def update(
    scene: Scene, table: str, assignments: Sequence[Assignment], where: Condition | None, by_client: bool
) -> None:
    columns = scene.columns(table)
    values = {one.target(columns): one.sql(columns) for one in assignments}
    with written(scene, by_client):
        found = scene.acid.update(table, values, where.sql(columns) if where else None)

    def new(row: Row) -> Row:
        return _assigned(row, assignments, row) if where is None or where.holds(row) else row

    _equal(found, scene.model.change(scene.txn, table, new)[0])


def delete(scene: Scene, table: str, where: Condition | None, by_client: bool) -> None:
    with written(scene, by_client):
        found = scene.acid.delete(table, where.sql(scene.columns(table)) if where else None)
    expected = scene.model.change(scene.txn, table, lambda row: None if where is None or where.holds(row) else row)
    _equal(found, expected[1])


def merge(scene: Scene, table: str, rows: Sequence[Row], clauses: Sequence[Clause], by_client: bool) -> None:
    """A source row that matches keeps the partition of what it matches."""
    columns, own = scene.columns(table), scene.txn.own[table]
    source = {row["id"]: row for row in rows}
    for number in source.keys() & own.keys():
        source[number] = {**source[number], **{key: own[number].row[key] for key in columns.keys}}
    with written(scene, by_client):
        found = _built(scene, table, list(source.values()), clauses).execute()
    inserted = scene.model.insert

    def changed(row: Row) -> Row | None:
        given = source.get(row["id"])
        clause = _first(clauses, "matched" if given else "by source", given or row)
        if clause is None:
            return row
        if clause.action == "delete":
            return None
        if clause.action is None:
            return {**row, **{role: given[role] for role in columns.types}} if given else row
        return _assigned(row, clause.action, row)  # type: ignore[arg-type]

    new = [row for number, row in source.items() if number not in own and _first(clauses, "new", row)]
    updated, deleted = scene.model.change(scene.txn, table, changed)
    scene.txn.claimed |= {(table, columns.partition_of(row)) for row in new}
    _equal(tuple(found), (inserted(scene.txn, table, new), updated, deleted))


def upsert(scene: Scene, table: str, rows: Sequence[Row], does: str, by_client: bool) -> None:
    """Rows that come, or change the one with their key: all of it, or `v` alone, or nothing."""
    columns, own = scene.columns(table), scene.txn.own[table]
    key, value = columns.name("id"), columns.name("v")
    frame, source = scene.frame(table, rows), {row["id"]: row for row in rows}
    with written(scene, by_client):
        if does == "all":
            found = scene.acid.upsert(table, frame)
        else:
            frame.createOrReplaceTempView("upserted")
            then = f"UPDATE SET `{value}` = excluded.`{value}`" if does == "v" else "NOTHING"
            said = scene.acid.sql(
                f"INSERT INTO {table} BY NAME SELECT * FROM upserted ON CONFLICT (`{key}`) DO {then}"
            ).first()
            assert said is not None
            found = RowCounts(said.num_inserted_rows, said.num_updated_rows, 0)

    def changed(row: Row) -> Row:
        given = source.get(row["id"])
        if given is None or does == "nothing":
            return row
        return {**given} if does == "all" else {**row, "v": given["v"]}

    new = [row for number, row in source.items() if number not in own]
    updated, deleted = scene.model.change(scene.txn, table, changed)
    scene.txn.claimed |= {(table, columns.partition_of(row)) for row in new}
    _equal(tuple(found), (scene.model.insert(scene.txn, table, new), updated, deleted))


def duplicate(scene: Scene, table: str, rows: Sequence[Row], by_client: bool) -> None:
    """Rows of which one has no key, or that of another one or of a row that is there."""
    scene.txn.verbs.add("fail")
    scene.txn.written.add(table)
    with written(scene, by_client), pytest.raises(DuplicateKeyError):
        scene.acid.insert(table, scene.frame(table, rows))


def _built(scene: Scene, table: str, rows: Sequence[Row], clauses: Sequence[Clause]) -> MergeBuilder:
    columns = scene.columns(table)
    key = columns.name("id")
    builder = scene.acid.merge(table, scene.frame(table, rows), f"t.{key} = s.{key}")
    for clause in clauses:
        alias = "t." if clause.when == "by source" else "s."
        condition = clause.condition.sql(columns, alias) if clause.condition else None
        values = None
        if isinstance(clause.action, tuple):
            values = {one.target(columns): one.sql(columns, "t.") for one in clause.action}
        if clause.when == "new":
            builder.whenNotMatchedInsertAll(condition)
        elif clause.when == "matched" and clause.action is None:
            builder.whenMatchedUpdateAll(condition)
        elif clause.when == "matched" and clause.action == "delete":
            builder.whenMatchedDelete(condition)
        elif clause.when == "matched":
            builder.whenMatchedUpdate(condition, values)
        elif clause.action == "delete":
            builder.whenNotMatchedBySourceDelete(condition)
        else:
            builder.whenNotMatchedBySourceUpdate(condition, values)
    return builder


def multi_insert(scene: Scene, tables: Sequence[str], rows: Sequence[Row], at: Sequence[Condition]) -> None:
    """One source into several tables; what of it goes where is said by conditions on its `id` and `v`."""
    source = frame_of(scene.acid.spark, Columns.of(_SOURCE), rows, list(_SOURCE.columns))
    builder = scene.acid.multi_insert(source)
    for table, condition in zip(tables, at, strict=True):
        columns = scene.columns(table)
        values = {columns.name(role): literal(None, columns.type(role)) for role in columns.roles}
        values |= {columns.name("id"): "id", columns.name("v"): "v"}
        values |= {key: literal(row_key, columns.keys[key]) for key, row_key in _one_place(columns).items()}
        builder = builder.into(table, values=values, where=condition.sql(Columns.of(_SOURCE)))
        chosen = [row for row in rows if condition.holds(row)]
        empty = dict.fromkeys(columns.roles)
        scene.model.insert(scene.txn, table, ({**empty, **row, **_one_place(columns)} for row in chosen))
    builder.execute()


CHANGES: dict[str, Callable[..., None]] = {
    "insert": insert,
    "overwrite": overwrite,
    "replace": replace,
    "truncate": truncate,
    "load_data": load_data,
    "update": update,
    "delete": delete,
    "merge": merge,
    "upsert": upsert,
    "duplicate": duplicate,
    "multi_insert": multi_insert,
}


LOCKING = ("overwrite", "truncate")
"""Verbs that lock others out, until the end of their transaction."""


def tables_of(step: Step) -> list[str]:
    """What a step of `CHANGES` changes."""
    return list(step.arguments["tables"]) if "tables" in step.arguments else [step.arguments["table"]]


def _one_place(columns: Columns) -> dict[str, Any]:
    return {key: KEY_VALUES[kind][1] for key, kind in columns.keys.items()}


def _first(clauses: Sequence[Clause], when: str, row: Row) -> Clause | None:
    fitting = (one for one in clauses if one.when == when and (one.condition is None or one.condition.holds(row)))
    return next(fitting, None)


def _assigned(row: Row, assignments: Sequence[Assignment], old: Row) -> Row:
    return {**row, **{one.role: one.applied(old) for one in assignments}}


def _equal(found: Any, expected: Any) -> None:
    assert found == expected, f"it said {found}, the model {expected}"
