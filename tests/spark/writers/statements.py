"""The writers: how each is begun by a handle of any kind, and what it does to a table in the model."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.orc
from pyspark.sql import DataFrame

from hive_acid.spark import AcidSession
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from tests.spark.reading import Row
from tests.spark.writers.disturbances import HIT_KEY, NEW_KEY, TABLE
from tests.spark.writers.model import COLUMNS, KEY, RefusedError, TableModel, World, on

SECOND_TABLE = "u"
ROWS: tuple[Row, ...] = ({"id": 1, "v": 10, KEY: 0}, {"id": 2, "v": 20, KEY: 0}, {"id": 3, "v": 30, KEY: HIT_KEY})
"""What all tables hold at first."""

NEW: tuple[Row, ...] = ({"id": 7, "v": 70, KEY: HIT_KEY}, {"id": 8, "v": 80, KEY: NEW_KEY})
ARRIVED: tuple[Row, ...] = (
    {"id": 1, "v": 11, KEY: 0},
    {"id": 50, "v": 51, KEY: HIT_KEY},
    {"id": 9, "v": 99, KEY: NEW_KEY},
)
HITS = "id <> 2"

Run = Callable[[], int | None]
"""The statement; it returns how many rows it says to have changed, None if it says nothing."""


@dataclass(frozen=True)
class Scene:
    """Where a statement runs."""

    acid: AcidSession
    database: str
    keyed: bool
    loose: Path
    """A directory for files to load."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that the table has at first."""
        return (*COLUMNS, KEY) if self.keyed else COLUMNS

    def values(self, rows: Iterable[Row]) -> str:
        """Rows of these columns, as SQL."""
        return ", ".join(f"({', '.join(str(row[name]) for name in self.columns)})" for row in rows)

    def frame(self, rows: Iterable[Row]) -> DataFrame:
        """Rows of these columns."""
        return self.acid.spark.sql(f"SELECT * FROM VALUES {self.values(rows)} AS g({', '.join(self.columns)})")

    def fitting(self, rows: Iterable[Row]) -> list[Row]:
        return [{name: value for name, value in row.items() if self.keyed or name != KEY} for row in rows]

    def name(self, table: str = TABLE) -> str:
        return f"{self.database}.{table}"


class Handle:
    """A table as the statement is given it: its name, a `Table`, or a frame of before."""

    def __init__(self, scene: Scene, kind: str) -> None:
        self._scene = scene
        self._is_frame = kind == "frame"
        self.given: Any = scene.name()
        """What a verb is given."""

        if kind == "object":
            self.given = scene.acid.connection.table(scene.database, TABLE)
        elif kind == "frame":
            self.given = scene.acid.table(scene.name())

    def call(self, verb: str, *arguments: Any, **named: Any) -> Any:
        if self._is_frame:
            return getattr(self.given, verb)(*arguments, **named)
        return getattr(self._scene.acid, verb)(self.given, *arguments, **named)


Made = Callable[[Scene, Handle], Run]
Step = Callable[[World], tuple[World, int | None]]
"""A change, and how many rows it has changed."""

Expected = Callable[[TableModel], tuple[TableModel, int | None]]


@dataclass(frozen=True)
class Writer:
    """One way to write."""

    made: Made
    steps: tuple[Step, ...]
    """What it does to the model; between two steps others may come, who do not meet a lock."""

    shapes: tuple[bool, ...] = (False, True)
    """Whether its table has a partition column."""

    insert_only: bool = False
    handles: tuple[str, ...] = ("name", "frame", "object")
    """``builder`` stands for all that is made before and holds the table: builders, sinks and streams."""

    makes_table: bool = False


def _on_table(*steps: Expected) -> tuple[Step, ...]:
    return tuple(map(_step, steps))


def _step(expected: Expected) -> Step:
    def run(world: World) -> tuple[World, int | None]:
        counts: list[int | None] = []

        def change(table: TableModel) -> TableModel:
            after, count = expected(table)
            counts.append(count)
            return after

        return on(TABLE, change)(world), counts[0]

    return run


# --- what they do, in the model --------------------------------------------------------------------


def _shown(table: TableModel, rows: Iterable[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != KEY or table.is_keyed} for row in rows]


def _only_known(table: TableModel, *more: str) -> TableModel:
    """The table, if a frame has all of its columns."""
    given = {*COLUMNS, KEY, *more}
    return table.having(*COLUMNS) if set(table.columns) <= given else table.having(*table.columns, "of the frame")


def _added(table: TableModel, rows: Sequence[Row] = NEW) -> tuple[TableModel, int]:
    return table.with_rows((*_only_known(table).rows, *_shown(table, rows))), len(rows)


def _added_by_name(table: TableModel) -> tuple[TableModel, None]:
    """With a list of columns others are null."""
    return table.having(*COLUMNS).with_rows((*table.rows, *_shown(table, NEW))), None


def _added_by_place(table: TableModel) -> tuple[TableModel, int | None]:
    """Of files and streams, values go to columns by their places."""
    data = [name for name in table.columns if name != KEY]
    if len(data) > len(COLUMNS):
        return table.having("of the records"), None
    rows = [dict(zip(data, (row["id"], row["v"]), strict=True)) | {KEY: row[KEY]} for row in NEW]
    return table.with_rows((*table.rows, *_shown(table, rows))), None


def _evolved(table: TableModel) -> tuple[TableModel, int]:
    wider = _widened(table)
    return wider.with_rows((*wider.rows, *({**row, "r": 5} for row in _shown(table, NEW)))), len(NEW)


def _widened(table: TableModel) -> TableModel:
    """It with all columns that a frame has, and one more."""
    for name in (*COLUMNS, "r"):
        table = table.with_column(name)
    return table


def _overwritten_by_place(table: TableModel) -> tuple[TableModel, None]:
    if len([name for name in table.columns if name != KEY]) > len(COLUMNS):
        raise RefusedError("more columns than values")
    keys = {row[KEY] for row in NEW}
    kept = [row for row in table.rows if table.is_keyed and row[KEY] not in keys]
    return _added_by_place(table.with_rows(kept))[0], None


def _updated(table: TableModel) -> tuple[TableModel, int]:
    table.having(*COLUMNS)
    hit = [row for row in table.rows if row["id"] != 2]
    return (
        table.with_rows({**row, "v": _plus(row)} if row["id"] != 2 else row for row in table.rows),
        len(hit),
    )


def _plus(row: Row) -> int | None:
    value = row.get("v")
    return None if value is None else value + 1


def _deleted(table: TableModel) -> tuple[TableModel, int]:
    left = [row for row in table.having("id").rows if row["id"] == 2]
    return table.with_rows(left), len(table.rows) - len(left)


def _deleted_of_source(table: TableModel) -> tuple[TableModel, int]:
    there = {row["id"] for row in ARRIVED}
    left = [row for row in table.having("id").rows if row["id"] not in there]
    return table.with_rows(left), len(table.rows) - len(left)


def _merged(table: TableModel, *, inserts: bool, evolves: bool = False) -> tuple[TableModel, int]:
    table = _widened(table) if evolves else table.having(*COLUMNS)
    more = {"r": 5} if evolves else {}
    source = {row["id"]: row for row in ARRIVED}
    matched = {row["id"] for row in table.rows} & source.keys()
    rows = [
        {**row, "v": source[row["id"]]["v"], **({KEY: source[row["id"]][KEY]} if table.is_keyed else {}), **more}
        if row["id"] in matched
        else row
        for row in table.rows
    ]
    count = sum(row["id"] in matched for row in table.rows)
    new = [{**row, **more} for row in ARRIVED if row["id"] not in matched] if inserts else []
    return table.with_rows((*rows, *_shown(table, new))), count + len(new)


def _overwritten(table: TableModel) -> tuple[TableModel, int]:
    keys = {row[KEY] for row in NEW}
    kept = [row for row in _only_known(table).rows if table.is_keyed and row[KEY] not in keys]
    return table.with_rows((*kept, *_shown(table, NEW))), len(NEW)


def _partition_overwritten(table: TableModel) -> tuple[TableModel, int]:
    kept = [row for row in _only_known(table).rows if row[KEY] != HIT_KEY]
    return table.with_rows((*kept, *({**row, KEY: HIT_KEY} for row in NEW))), len(NEW)


def _replaced(table: TableModel) -> tuple[TableModel, int]:
    return _added(_deleted(table)[0])


def _emptied(table: TableModel) -> tuple[TableModel, None]:
    return table.with_rows(()), None


def _loaded(table: TableModel, *, overwrite: bool = False) -> tuple[TableModel, None]:
    """A file's columns are the table's by their places, and may be fewer."""
    if overwrite:
        table = table.with_rows(row for row in table.rows if table.is_keyed and row[KEY] != NEW_KEY)
    data = [name for name in table.columns if name != KEY]
    rows = [{data[0]: row["id"], data[1]: row["v"], KEY: NEW_KEY} for row in NEW]
    return table.with_rows((*table.rows, *_shown(table, rows))), None


def _two_tables(world: World, first: Expected = _added) -> tuple[World, int]:
    after = on(TABLE, lambda table: first(table)[0])(world)
    return on(SECOND_TABLE, lambda table: table.with_rows((*table.rows, *_shown(table, NEW))))(after), 2 * len(NEW)


def _redefined(world: World) -> tuple[World, None]:
    """Columns and rows are those of the query, whatever there was; also if there is no table any more."""
    there = world.get(TABLE)
    keyed = there is not None and there.is_keyed
    table = replace(
        there or TableModel("made", ()), columns=("r", *reversed(COLUMNS), *((KEY,) if keyed else ())), rows=()
    )
    return {**world, TABLE: table.with_rows({**row, "r": 5} for row in _shown(table, NEW))}, None


# --- what they do ----------------------------------------------------------------------------------


def _verb(verb: str, *arguments: Any, **named: Any) -> Made:
    return lambda scene, handle: partial(handle.call, verb, *arguments, **named)


def _of_frame(verb: str, rows: Sequence[Row] = NEW, **named: Any) -> Made:
    return lambda scene, handle: partial(handle.call, verb, scene.frame(rows), **named)


def _insert_evolving(scene: Scene, handle: Handle) -> Run:
    frame = scene.frame(NEW).selectExpr("*", "5 AS r")
    return partial(handle.call, "insert", frame, schema_evolution=True)


def _merge(scene: Scene, handle: Handle, *, inserts: bool, evolves: bool = False) -> Run:
    source = scene.frame(ARRIVED)
    if evolves:
        source = source.selectExpr("*", "5 AS r")
    builder = handle.call("merge", source, "t.id = s.id")
    if evolves:
        builder = builder.withSchemaEvolution().whenMatchedUpdateAll()
    else:
        values = {"v": "s.v", **({KEY: f"s.{KEY}"} if scene.keyed else {})}
        builder = builder.whenMatchedUpdate(None, values)
    if evolves:
        builder = builder.whenNotMatchedInsertAll()
    elif inserts:
        values = {name: f"s.{name}" for name in scene.columns}
        builder = builder.whenNotMatchedInsert(None, values)

    def run() -> int:
        counts = builder.execute()
        return int(counts.updated + counts.inserted)

    return run


def _overwrite_partition(scene: Scene, handle: Handle) -> Run:
    frame = scene.frame(NEW).drop(KEY)
    return partial(handle.call, "overwrite", frame, partition={KEY: str(HIT_KEY)})


def _sql(text: Callable[[Scene, str], str]) -> Made:
    """A statement whose text is made of the columns that the table has at first."""

    def made(scene: Scene, handle: Handle) -> Run:
        names = ", ".join(scene.columns)
        return lambda: _nothing(scene.acid.sql(text(scene, names)))

    return made


def _nothing(frame: DataFrame) -> None:
    frame.collect()


def _sql_insert(scene: Scene, names: str) -> str:
    return f"INSERT INTO {scene.name()} ({names}) VALUES {scene.values(NEW)}"


def _sql_merge(scene: Scene, names: str) -> str:
    sets = ", ".join(f"{name} = s.{name}" for name in scene.columns[1:])
    return (
        f"MERGE INTO {scene.name()} t USING (SELECT * FROM VALUES {scene.values(ARRIVED)} AS g({names})) s "
        f"ON t.id = s.id WHEN MATCHED THEN UPDATE SET {sets} "
        f"WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({', '.join(f's.{name}' for name in scene.columns)})"
    )


def _write_loose(scene: Scene) -> None:
    """A file to load, of the columns that the table has at first, but its key."""
    scene.loose.mkdir()
    rows = [{name: row[name] for name in COLUMNS} for row in NEW]
    kinds = pyarrow.schema([(name, pyarrow.int32()) for name in COLUMNS])
    pyarrow.orc.write_table(pyarrow.Table.from_pylist(rows, kinds), scene.loose / "rows.orc")


def _load(scene: Scene, handle: Handle, *, overwrite: bool = False) -> Run:
    _write_loose(scene)
    named: dict[str, Any] = {"partition": {KEY: str(NEW_KEY)}} if scene.keyed else {}

    def run() -> None:
        handle.call("load_data", f"file:{scene.loose}", overwrite=overwrite, **named)

    return run


def _multi_insert(scene: Scene, handle: Handle) -> Run:
    builder = scene.acid.multi_insert(scene.frame(NEW)).into(handle.given).into(scene.name(SECOND_TABLE))
    return lambda: sum(builder.execute())


def _block(scene: Scene, handle: Handle) -> Run:
    frame = scene.frame(NEW)

    def run() -> None:
        with scene.acid.transaction():
            handle.call("insert", frame)
            handle.call("update", {"v": "v + 1"}, HITS)

    return run


def _sink(scene: Scene, handle: Handle, mode: str) -> Run:
    named: dict[str, Any] = {} if mode == "append" else {"keys": ["id"]}
    sink = scene.acid.sink(scene.name(), query="q", mode=mode, **named)
    frame = scene.frame(NEW if mode == "append" else ARRIVED)
    return lambda: sink(frame, 0)


def _stream(scene: Scene, handle: Handle) -> Run:
    stream = StreamingConnection(scene.acid.connection, scene.name(), DelimitedWriter(","))
    lines = "\n".join(",".join(str(value) for value in row.values()) for row in scene.fitting(NEW))

    def run() -> None:
        with stream, stream.transaction():
            stream.write(lines)

    return run


def _create_as(scene: Scene, handle: Handle) -> Run:
    named: dict[str, Any] = {"partitioned_by": [KEY]} if scene.keyed else {}
    return lambda: scene.acid.create_table_as(scene.name(), scene.frame(NEW), **named)


def _update_from(scene: Scene, handle: Handle) -> Run:
    return partial(handle.call, "update", {"v": "s.v"}, source=scene.frame(ARRIVED), on="t.id = s.id")


def _delete_using(scene: Scene, handle: Handle) -> Run:
    return partial(handle.call, "delete", source=scene.frame(ARRIVED), on="t.id = s.id")


def _sql_multi_insert(scene: Scene, names: str) -> str:
    source = f"FROM (SELECT * FROM VALUES {scene.values(NEW)} AS g({names})) s"
    return f"{source} INSERT INTO {scene.name()} ({names}) SELECT * INSERT INTO {scene.name(SECOND_TABLE)} SELECT *"


def _sql_overwrite(scene: Scene, names: str) -> str:
    return f"INSERT OVERWRITE {scene.name()} SELECT * FROM VALUES {scene.values(NEW)} AS g({names})"


def _sql_replace(scene: Scene, names: str) -> str:
    columns = ", ".join(("5 AS r", *reversed(COLUMNS), *((KEY,) if scene.keyed else ())))
    clauses = f"PARTITIONED BY ({KEY})" if scene.keyed else ""
    return (
        f"CREATE OR REPLACE TABLE {scene.name()} {clauses} AS "
        f"SELECT {columns} FROM VALUES {scene.values(NEW)} AS g({names})"
    )


def _add_partition(scene: Scene, handle: Handle) -> Run:
    _write_loose(scene)

    def run() -> None:  # it says how many files
        scene.acid.add_partitions(handle.given, {f"{KEY}={NEW_KEY}": f"file:{scene.loose}"})

    return run


def _import(scene: Scene, handle: Handle) -> Run:
    """Of an export as it is described, since to make one is a statement by itself."""
    data = scene.loose / "data"
    data.mkdir(parents=True)
    kinds = pyarrow.schema([(name, pyarrow.int32()) for name in scene.columns])
    rows = scene.fitting(NEW)
    pyarrow.orc.write_table(pyarrow.Table.from_pylist(rows, kinds), data / "rows.orc")
    said = {
        "version": 1,
        "table": "a.b",
        "columns": dict.fromkeys(COLUMNS, "int"),
        "partition_keys": {KEY: "int"} if scene.keyed else {},
        "bucket_columns": [],
        "buckets": -1,
        "parameters": {"transactional": "true"},
        "partitions": [],
        "write_ids": "",
        "rows": len(rows),
        "exported_s": 0,
    }
    (scene.loose / "_export.json").write_text(json.dumps(said))
    return lambda: scene.acid.import_table(f"file:{scene.loose}", scene.name())


def _of_session(verb: str, *arguments: Any) -> Made:
    """What changes no row; it may say what it has found."""

    def made(scene: Scene, handle: Handle) -> Run:
        def run() -> None:
            getattr(scene.acid, verb)(handle.given, *arguments)

        return run

    return made


def _same(table: TableModel) -> tuple[TableModel, None]:
    return table, None


def _with_new_column(table: TableModel) -> tuple[TableModel, None]:
    return table.with_column("n"), None


def _with_renamed_column(table: TableModel) -> tuple[TableModel, None]:
    return table.having("v").renamed("v", "n"), None


def _without_partition(table: TableModel) -> tuple[TableModel, None]:
    return table.with_rows(row for row in table.rows if row[KEY] != HIT_KEY), None


def _no_count(expected: Expected) -> Expected:
    return lambda table: (expected(table)[0], None)


_EARLY = ("name", "builder")
_MEANT = ("name", "object")
_BUILT = ("name", "frame", "object", "builder")

WRITERS = {
    "insert": Writer(_of_frame("insert"), _on_table(_added)),
    "insert with new column": Writer(_insert_evolving, _on_table(_evolved)),
    "update": Writer(_verb("update", {"v": "v + 1"}, HITS), _on_table(_updated)),
    "delete": Writer(_verb("delete", HITS), _on_table(_deleted)),
    "merge": Writer(partial(_merge, inserts=False), _on_table(partial(_merged, inserts=False)), handles=_BUILT),
    "merge with insert": Writer(
        partial(_merge, inserts=True), _on_table(partial(_merged, inserts=True)), handles=_BUILT
    ),
    "merge with new column": Writer(
        partial(_merge, inserts=True, evolves=True),
        _on_table(partial(_merged, inserts=True, evolves=True)),
        handles=_BUILT,
    ),
    "overwrite": Writer(_of_frame("overwrite"), _on_table(_overwritten)),
    "overwrite partition": Writer(_overwrite_partition, _on_table(_partition_overwritten), shapes=(True,)),
    "overwrite where": Writer(_of_frame("overwrite", where=HITS), _on_table(_replaced)),
    "load": Writer(_load, _on_table(_loaded)),
    "load over": Writer(partial(_load, overwrite=True), _on_table(partial(_loaded, overwrite=True))),
    "truncate": Writer(_verb("truncate"), _on_table(_emptied)),
    "multi-insert": Writer(_multi_insert, (_two_tables,), handles=("name", "object", "builder")),
    "SQL insert": Writer(_sql(_sql_insert), _on_table(_added_by_name), handles=("name",)),
    "SQL update": Writer(
        _sql(lambda scene, _: f"UPDATE {scene.name()} SET v = v + 1 WHERE {HITS}"),
        _on_table(_no_count(_updated)),
        handles=("name",),
    ),
    "SQL delete": Writer(
        _sql(lambda scene, _: f"DELETE FROM {scene.name()} WHERE {HITS}"),
        _on_table(_no_count(_deleted)),
        handles=("name",),
    ),
    "SQL merge": Writer(_sql(_sql_merge), _on_table(_no_count(partial(_merged, inserts=True))), handles=("name",)),
    "block": Writer(_block, _on_table(_no_count(_added), _no_count(_updated))),
    "sink": Writer(partial(_sink, mode="append"), _on_table(_no_count(_added)), handles=_EARLY),
    "sink of upserts": Writer(
        partial(_sink, mode="upsert"), _on_table(_no_count(partial(_merged, inserts=True))), handles=_EARLY
    ),
    "stream": Writer(_stream, _on_table(_added_by_place), handles=_EARLY),
    "insert-only: insert": Writer(_of_frame("insert"), _on_table(_added), insert_only=True),
    "insert-only: overwrite": Writer(_of_frame("overwrite"), _on_table(_overwritten), insert_only=True),
    "insert-only: truncate": Writer(_verb("truncate"), _on_table(_emptied), insert_only=True),
    "insert-only: load": Writer(_load, _on_table(_loaded), insert_only=True),
    "update from": Writer(_update_from, _on_table(partial(_merged, inserts=False))),
    "delete using": Writer(_delete_using, _on_table(_deleted_of_source)),
    "SQL multi-insert": Writer(
        _sql(_sql_multi_insert), (lambda world: (_two_tables(world, _added_by_name)[0], None),), handles=("name",)
    ),
    "SQL overwrite": Writer(_sql(_sql_overwrite), _on_table(_overwritten_by_place), handles=("name",)),
    "SQL replace": Writer(_sql(_sql_replace), (_redefined,), handles=("name",)),
    "add partition": Writer(_add_partition, _on_table(_loaded), shapes=(True,), handles=_MEANT),
    "analyze": Writer(_of_session("analyze"), _on_table(_same), handles=_MEANT),
    "add column": Writer(_of_session("add_columns", {"n": "int"}), _on_table(_with_new_column), handles=_MEANT),
    "rename column": Writer(_of_session("rename_column", "v", "n"), _on_table(_with_renamed_column), handles=_MEANT),
    "change type": Writer(_of_session("change_column_type", "v", "bigint"), _on_table(_same), handles=_MEANT),
    "set properties": Writer(_of_session("set_properties", {"mine": "1"}), _on_table(_same), handles=_MEANT),
    "drop partition": Writer(
        _of_session("drop_partitions", [f"{KEY}={HIT_KEY}"]),
        _on_table(_without_partition),
        shapes=(True,),
        handles=_MEANT,
    ),
    "import": Writer(_import, _on_table(_added), handles=("name",), makes_table=True),
    "create as": Writer(_create_as, _on_table(_added), handles=("name",), makes_table=True),
}
