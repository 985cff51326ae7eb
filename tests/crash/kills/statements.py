"""The statements of writers that are killed: what each does to the tables, and to the model of them.

A statement is told as JSON, since another process carries it out. `states` gives what the tables hold after each of its
commits, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.orc
from pyspark.sql import DataFrame

from hive_acid.spark import AcidSession
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from tests.crash.kills.content import FLAT, KEYED, PARTITIONED, Content, Line, Lines

Rows = Sequence[Sequence[int]]
"""Rows as JSON has them: id, v, p."""


@dataclass(frozen=True)
class Scene:
    """Where a statement runs; `loose` is a directory for the files that LOAD DATA takes."""

    acid: AcidSession
    database: str
    loose: Path

    def name(self, table: str) -> str:
        return f"{self.database}.{table}"

    def frame(self, table: str, rows: Rows) -> DataFrame:
        texts = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
        frame = self.acid.spark.sql(f"SELECT * FROM VALUES {texts} AS g(id, v, p)")
        return frame if table in KEYED else frame.drop("p")


@dataclass(frozen=True)
class KilledStatement:
    """One kind of statement; both functions take the arguments of one by name."""

    run: Callable[..., object]
    states: Callable[..., list[Content]]


def _lines(rows: Rows) -> Lines:
    return {number: Line(v, p) for number, v, p in rows}


def _with(content: Content, table: str, lines: Lines) -> Content:
    return {**content, table: lines}


def insert(scene: Scene, table: str, rows: Rows) -> None:
    scene.acid.insert(scene.name(table), scene.frame(table, rows))


def inserted(content: Content, table: str, rows: Rows) -> list[Content]:
    return [_with(content, table, {**content[table], **_lines(rows)})]


def update(scene: Scene, table: str, plus: int, of: int, rest: int) -> None:
    scene.acid.update(scene.name(table), {"v": f"v + {plus}"}, f"id % {of} = {rest}")


def updated(content: Content, table: str, plus: int, of: int, rest: int) -> list[Content]:
    lines = {
        number: line._replace(v=line.v + plus) if number % of == rest else line
        for number, line in content[table].items()
    }
    return [_with(content, table, lines)]


def delete(scene: Scene, table: str, of: int, rest: int) -> None:
    scene.acid.delete(scene.name(table), f"id % {of} = {rest}")


def deleted(content: Content, table: str, of: int, rest: int) -> list[Content]:
    lines = {number: line for number, line in content[table].items() if number % of != rest}
    return [_with(content, table, lines)]


def merge(scene: Scene, table: str, rows: Rows) -> None:
    builder = scene.acid.merge(scene.name(table), scene.frame(table, rows), "t.id = s.id")
    builder.whenMatchedDelete("s.v % 5 = 0").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def merged(content: Content, table: str, rows: Rows) -> list[Content]:
    lines = dict(content[table])
    for number, line in _lines(rows).items():
        if number in lines and line.v % 5 == 0:
            del lines[number]
        else:
            lines[number] = line
    return [_with(content, table, lines)]


def overwrite(scene: Scene, table: str, rows: Rows) -> None:
    scene.acid.overwrite(scene.name(table), scene.frame(table, rows))


def overwritten(content: Content, table: str, rows: Rows) -> list[Content]:
    new = _lines(rows)
    hit = {line.p for line in new.values()}
    kept = {number: line for number, line in content[table].items() if table in KEYED and line.p not in hit}
    return [_with(content, table, {**kept, **new})]


def load(scene: Scene, table: str, rows: Rows, p: int) -> None:
    place = scene.loose / f"load-{min(number for number, _, _ in rows)}"
    place.mkdir()
    columns = {"id": [number for number, _, _ in rows], "v": [v for _, v, _ in rows]}
    kinds = pyarrow.schema([(name, pyarrow.int32()) for name in columns])
    pyarrow.orc.write_table(pyarrow.table(columns, kinds), place / "rows.orc")
    named: dict[str, Any] = {"partition": {"p": str(p)}} if table in KEYED else {}
    scene.acid.load_data(scene.name(table), f"file:{place}", **named)


def loaded(content: Content, table: str, rows: Rows, p: int) -> list[Content]:
    return inserted(content, table, [(number, v, p) for number, v, _ in rows])


def truncate(scene: Scene, table: str) -> None:
    scene.acid.truncate(scene.name(table))


def truncated(content: Content, table: str) -> list[Content]:
    return [_with(content, table, {})]


def transaction(scene: Scene, rows: Rows, more: Rows, plus: int) -> None:
    with scene.acid.transaction():
        insert(scene, PARTITIONED, rows)
        update(scene, PARTITIONED, plus, 2, 0)
        insert(scene, FLAT, more)


def transacted(content: Content, rows: Rows, more: Rows, plus: int) -> list[Content]:
    (content,) = inserted(content, PARTITIONED, rows)
    (content,) = updated(content, PARTITIONED, plus, 2, 0)
    return inserted(content, FLAT, more)


def multi_insert(scene: Scene, rows: Rows) -> None:
    builder = scene.acid.multi_insert(scene.frame(PARTITIONED, rows)).into(scene.name(PARTITIONED))
    builder.into(scene.name(FLAT), values={"id": "id", "v": "v"}, where="id % 2 = 0").execute()


def multi_inserted(content: Content, rows: Rows) -> list[Content]:
    (content,) = inserted(content, PARTITIONED, rows)
    return inserted(content, FLAT, [row for row in rows if row[0] % 2 == 0])


def stream(scene: Scene, table: str, transactions: Sequence[Rows], batch: int) -> None:
    connection = scene.acid.connection
    writer = DelimitedWriter(",")
    with StreamingConnection(connection, scene.name(table), writer, transaction_batch_size=batch) as streaming:
        for rows in transactions:
            with streaming.transaction():
                streaming.write("\n".join(_record(row, keyed=table in KEYED) for row in rows))


def _record(row: Sequence[int], *, keyed: bool) -> str:
    return ",".join(map(str, row if keyed else row[:2]))


def streamed(content: Content, table: str, transactions: Iterable[Rows], batch: int) -> list[Content]:
    states = []
    for rows in transactions:
        (content,) = inserted(content, table, rows)
        states.append(content)
    return states


STATEMENTS = {
    "insert": KilledStatement(insert, inserted),
    "update": KilledStatement(update, updated),
    "delete": KilledStatement(delete, deleted),
    "merge": KilledStatement(merge, merged),
    "overwrite": KilledStatement(overwrite, overwritten),
    "load": KilledStatement(load, loaded),
    "truncate": KilledStatement(truncate, truncated),
    "transaction": KilledStatement(transaction, transacted),
    "multi-insert": KilledStatement(multi_insert, multi_inserted),
    "stream": KilledStatement(stream, streamed),
}
