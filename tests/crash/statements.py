"""The writes whose clients are killed: what is there before, and the statement."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hive_acid.filesystem import files
from hive_acid.streaming import DelimitedWriter, StreamingConnection

Run = Callable[[Any, str, Path], object]
"""Called with the session, the database, and a directory for loose files."""


@dataclass(frozen=True)
class KilledStatement:
    """One write.

    What others include is killed in long runs only.
    """

    run: Run
    prepare: Run
    tables: tuple[str, ...] = ("t",)
    makes_table: bool = False
    only_in_long_runs: bool = False
    locks_out: bool = False
    """Its lock keeps the next one out, also that of a client that has died: until it times out."""


def _flat(acid: Any, database: str, _scratch: Path) -> None:
    acid.create_table(f"{database}.t", {"id": "int", "v": "int"})
    acid.insert(f"{database}.t", acid.spark.sql("SELECT * FROM VALUES (1, 10), (2, 20), (3, 30) AS g(id, v)"))


def _divided(acid: Any, database: str, _scratch: Path) -> None:
    acid.create_table(f"{database}.t", {"id": "int", "v": "int"}, partitioned_by={"p": "int"})
    rows = "VALUES (1, 10, 0), (2, 20, 0), (3, 30, 1), (4, 40, 1) AS g(id, v, p)"
    acid.insert(f"{database}.t", acid.spark.sql(f"SELECT * FROM {rows}"))


def _keyed(acid: Any, database: str, _scratch: Path) -> None:
    acid.sql(f"CREATE TABLE {database}.t (id int, v int, PRIMARY KEY (id)) PARTITIONED BY (p int)")
    acid.insert(f"{database}.t", _new(acid, "id, v, p", (1, 10, 0), (2, 20, 0), (3, 30, 1), (4, 40, 1)))


def _two_tables(acid: Any, database: str, scratch: Path) -> None:
    _divided(acid, database, scratch)
    acid.create_table(f"{database}.u", {"id": "int", "v": "int"})


def _with_a_file(acid: Any, database: str, scratch: Path) -> None:
    _flat(acid, database, scratch)
    acid.spark.sql("SELECT 9 AS id, 90 AS v").coalesce(1).write.orc(_loose(database, scratch))


def _loose(database: str, scratch: Path) -> str:
    return str(scratch / f"{database}-loose")


def _new(acid: Any, columns: str, *rows: tuple[int, ...]) -> Any:
    return acid.spark.sql(f"SELECT * FROM VALUES {', '.join(map(str, rows))} AS g({columns})")


def _insert(acid: Any, database: str, _scratch: Path) -> None:
    acid.insert(f"{database}.t", _new(acid, "id, v", (8, 80), (9, 90)))


def _insert_divided(acid: Any, database: str, _scratch: Path) -> None:
    acid.insert(f"{database}.t", _new(acid, "id, v, p", (7, 70, 0), (8, 80, 1), (9, 90, 2)))


def _update(acid: Any, database: str, _scratch: Path) -> None:
    acid.update(f"{database}.t", {"v": "v + 1"}, "id IN (1, 3)")


def _delete(acid: Any, database: str, _scratch: Path) -> None:
    acid.delete(f"{database}.t", "id IN (1, 3)")


def _merge(acid: Any, database: str, _scratch: Path) -> None:
    source = _new(acid, "id, v, p", (1, 11, 0), (3, 33, 1), (9, 99, 2))
    builder = acid.merge(f"{database}.t", source, "t.id = s.id").whenMatchedDelete("s.id = 3").whenMatchedUpdateAll()
    builder.whenNotMatchedInsertAll().execute()


def _upsert(acid: Any, database: str, _scratch: Path) -> None:
    acid.upsert(f"{database}.t", _new(acid, "id, v, p", (1, 11, 0), (3, 33, 1), (9, 99, 2)))


def _transaction(acid: Any, database: str, scratch: Path) -> None:
    with acid.transaction():
        _insert_divided(acid, database, scratch)
        acid.update(f"{database}.t", {"v": "v + 1"}, "id >= 4")
        acid.insert(f"{database}.u", _new(acid, "id, v", (1, 1)))


def _overwrite(acid: Any, database: str, _scratch: Path) -> None:
    acid.overwrite(f"{database}.t", _new(acid, "id, v", (8, 80), (9, 90)))


def _overwrite_divided(acid: Any, database: str, _scratch: Path) -> None:
    acid.overwrite(f"{database}.t", _new(acid, "id, v, p", (8, 80, 1), (9, 90, 2)))


def _replace(acid: Any, database: str, _scratch: Path) -> None:
    rows = "VALUES (8, 80, 1), (9, 90, 2) AS g(id, v, p)"
    acid.sql(f"CREATE OR REPLACE TABLE {database}.t PARTITIONED BY (p) AS SELECT string(v) AS s, id, v, p FROM {rows}")


def _succeed(acid: Any, database: str, _scratch: Path) -> None:
    rows = "VALUES (8, 80, 1), (9, 90, 2) AS g(id, v, p)"
    acid.sql(f"CREATE OR REPLACE TABLE {database}.t PARTITIONED BY (v) AS SELECT string(p) AS s, id, v FROM {rows}")


def _multi_insert(acid: Any, database: str, _scratch: Path) -> None:
    builder = acid.multi_insert(_new(acid, "id, v", (8, 80), (9, 90)))
    builder = builder.into(f"{database}.t", values={"id": "id", "v": "v", "p": "0"}, where="id = 8")
    builder.into(f"{database}.u", values={"id": "id", "v": "v"}).execute()


def _create_as(acid: Any, database: str, _scratch: Path) -> None:
    acid.create_table_as(f"{database}.u", _new(acid, "id, v", (8, 80), (9, 90)))


def _load_data(acid: Any, database: str, scratch: Path) -> None:
    acid.load_data(f"{database}.t", _loose(database, scratch))


def _truncate(acid: Any, database: str, _scratch: Path) -> None:
    acid.truncate(f"{database}.t")


def _arriving(acid: Any, database: str, scratch: Path) -> None:
    _divided(acid, database, scratch)
    (scratch / f"{database}-arriving").mkdir()
    rows = ({"id": 1, "v": 11, "p": 0}, {"id": 3, "v": 33, "p": 1}, {"id": 9, "v": 99, "p": 1})
    (scratch / f"{database}-arriving" / "rows.json").write_text("\n".join(map(json.dumps, rows)))


def _sink(acid: Any, database: str, scratch: Path, **options: Any) -> None:
    sink = acid.sink(f"{database}.t", query="q", **options)

    def batch(frame: Any, batch_id: int) -> None:
        sink(frame, batch_id)
        files.remove(str(scratch / "nothing"))  # a step between the commit and Spark's own note that the batch is done

    arriving = acid.spark.readStream.schema("id int, v int, p int").json(str(scratch / f"{database}-arriving"))
    writer = arriving.writeStream.foreachBatch(batch).option("checkpointLocation", str(scratch / f"{database}-noted"))
    writer.trigger(availableNow=True).start().awaitTermination()


def _streamed(acid: Any, database: str, _scratch: Path) -> None:
    with StreamingConnection(acid.connection, f"{database}.t", DelimitedWriter(",")) as stream, stream.transaction():
        stream.write("7,70,0\n8,80,1\n9,90,2")


STATEMENTS = {
    "insert": KilledStatement(_insert, _flat, only_in_long_runs=True),
    "insert into partitions": KilledStatement(_insert_divided, _divided),
    "upsert by a primary key": KilledStatement(_upsert, _keyed),
    "update": KilledStatement(_update, _divided, only_in_long_runs=True),
    "delete": KilledStatement(_delete, _flat, only_in_long_runs=True),
    "merge": KilledStatement(_merge, _divided),
    "transaction": KilledStatement(_transaction, _two_tables, ("t", "u"), only_in_long_runs=True),
    "overwrite": KilledStatement(_overwrite, _flat, only_in_long_runs=True, locks_out=True),
    "overwrite of partitions": KilledStatement(_overwrite_divided, _divided, only_in_long_runs=True, locks_out=True),
    "replace": KilledStatement(_replace, _divided, locks_out=True),
    "succeed": KilledStatement(_succeed, _divided, locks_out=True),
    "multi-insert": KilledStatement(_multi_insert, _two_tables, ("t", "u"), only_in_long_runs=True),
    "create as": KilledStatement(_create_as, _flat, ("t", "u"), makes_table=True),
    "load data": KilledStatement(_load_data, _with_a_file, only_in_long_runs=True),
    "truncate": KilledStatement(_truncate, _divided, only_in_long_runs=True),
    "sink": KilledStatement(_sink, _arriving),
    "sink that upserts": KilledStatement(partial(_sink, mode="upsert", keys=["id"]), _arriving),
    "stream": KilledStatement(_streamed, _divided),
}
