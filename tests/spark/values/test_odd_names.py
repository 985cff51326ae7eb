"""Names that are odd in some language on the way (SQL, Hive's types, directories, JSON) in every place of a name.

Each place is played with all names at once and compared with a model in Python, so that no name is another one's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import ColumnError, SqlError
from hive_acid.spark import AcidSession
from hive_acid.spark.values.quoting import quoted
from hive_acid.streaming import ArrowWriter, DelimitedWriter, JsonWriter, StreamingConnection

NAMES = [
    *("a b", "a.b", "a-b", "a'b", 'a"b', "a\\b", "a/b", "a=b", "a%b", "a%20b", "a,b", "a;b", "a:b", "a(b)", "a<b>"),
    *(
        "*",
        "#1",
        "1",
        "1e5",
        ".",
        "..",
        "é",
        "e\u0301",
        "日本",
        "\U0001f600",
        "ß",
        "a\tb",
        " a",
        "a ",
        "{a}",
        ":a",
        "?",
    ),
    *("$a", "--a", "/*a*/", "a[0]", "select", "null", "true", "interval", "default", "current_date", "t", "s", "d"),
    *("t.a", "row__id", "operation", "row", "rowid", "bucket", "currenttransaction", "kind", "file", "key0", "col1"),
    *("_c0", "_col0", "_metadata", "_file", "element", "value", "key", "op", "__hive_default_partition__", "count(1)"),
]
OF_TYPES = set("(),<>:")
"""What no field of a struct may have in its name, nor blanks at its ends: Hive's types have no quotes."""

FIELDS = [name for name in NAMES if not OF_TYPES & {*name} and " ".join(name.split()) == name]

ONLY, PLAIN = {"transactional_properties": "insert_only"}, {"transactional": "false"}
KINDS = [("ORC", ONLY), ("PARQUET", ONLY), ("ORC", PLAIN), ("PARQUET", PLAIN)]
"""Formats and properties of tables that are not full-ACID."""

Place = Callable[[AcidSession, Sequence[str], Path], None]


def frame_of(acid: AcidSession, names: Sequence[str], rows: Sequence[Sequence[Any]], first: str = "id") -> DataFrame:
    """A frame of a number and texts, whatever their names."""
    plain = acid.spark.createDataFrame(
        [tuple(row) for row in rows], ", ".join(["c0 int", *(f"c{at} string" for at in range(1, len(names) + 1))])
    )
    return plain.toDF(first, *names)


def rows_of(acid: AcidSession, table: str, names: Sequence[str], first: str = "id") -> list[tuple[Any, ...]]:
    found = acid.table(table)
    assert sorted(found.columns) == sorted([first, *names])
    return sorted(map(tuple, found.select(*map(quoted, (first, *names))).collect()))


def dummy(acid: AcidSession) -> AcidSession:
    """A session for plain tables."""
    return hive_acid.spark.session(acid.spark, acid.connection, settings={"hive.txn.manager": "DummyTxnManager"})


def line(names: Sequence[str], number: int, mark: str = "") -> tuple[Any, ...]:
    """A row: each column has a value of its own."""
    return (number, *(f"{number}{mark}:{at}" for at in range(len(names))))


def columns(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    acid.create_table("d.t", {"id": "int", **dict.fromkeys(names, "string")})
    text = ", ".join(f"{quoted(name)} string" for name in names)
    acid.sql(f"CREATE TABLE d.u (id int, {text})")
    a, b, c = line(names, 1), line(names, 2), line(names, 3)
    for table in ("d.t", "d.u"):
        acid.insert(table, frame_of(acid, names, [a, b]))
        listed = ", ".join(map(quoted, reversed(names)))
        values = ", ".join(f"'{value}'" for value in reversed(c[1:]))
        acid.sql(f"INSERT INTO {table} (id, {listed}) VALUES (3, {values})")
        assert rows_of(acid, table, names) == [a, b, c]
        every = " AND ".join(f"{quoted(name)} = '{value}'" for name, value in zip(names, b[1:], strict=True))
        assert [row[0] for row in acid.sql(f"SELECT * FROM {table} AS x WHERE {every}").collect()] == [2]
        assert [row[0] for row in acid.table(table).where(every).collect()] == [2]
        qualified = " AND ".join(f"x.{quoted(name)} = '{value}'" for name, value in zip(names, b[1:], strict=True))
        assert [row.id for row in acid.sql(f"SELECT x.id FROM {table} AS x WHERE {qualified}").collect()] == [2]
        new = {name: f"concat({quoted(name)}, '!')" for name in names}
        acid.update(table, new, every)
        told = ", ".join(f"{quoted(name)} = concat(x.{quoted(name)}, '?')" for name in names)
        acid.sql(f"UPDATE {table} AS x SET {told} WHERE id = 3")
        after_b, after_c = (2, *(f"{value}!" for value in b[1:])), (3, *(f"{value}?" for value in c[1:]))
        assert rows_of(acid, table, names) == [a, after_b, after_c]
        anything = " OR ".join(f"{quoted(name)} = '{value}'" for name, value in zip(names, a[1:], strict=True))
        assert acid.delete(table, anything) == 1
        assert rows_of(acid, table, names) == [after_b, after_c]
        acid.analyze(table, columns=[*names])
        ordered = acid.sql(f"SELECT id FROM {table} ORDER BY {', '.join(f'{quoted(name)} DESC' for name in names)}")
        assert [row.id for row in ordered.collect()] == [3, 2]
        acid.concatenate(table, wait=True)
        assert rows_of(acid, table, names) == [after_b, after_c]


def evolved(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    """Columns that come later: added, by INSERT and MERGE, renamed to."""
    b, c = line(names, 2), line(names, 3)
    empty = (1, *(None for _ in names))
    for number, add in enumerate(
        (
            lambda table: acid.add_columns(table, dict.fromkeys(names, "string")),
            lambda table: acid.sql(
                f"ALTER TABLE {table} ADD COLUMNS ({', '.join(f'{quoted(name)} string' for name in names)})"
            ),
            lambda table: acid.insert(table, frame_of(acid, names, [b]), schema_evolution=True),
            lambda table: (
                acid.merge(table, frame_of(acid, names, [b]), "t.id = s.id")
                .withSchemaEvolution()
                .whenMatchedUpdateAll()
                .whenNotMatchedInsertAll()
                .execute()
            ),
        )
    ):
        table = f"d.t{number}"
        acid.create_table(table, {"id": "int"})
        acid.insert(table, acid.spark.sql("SELECT 1 AS id"))
        add(table)
        if number < 2:
            acid.insert(table, frame_of(acid, names, [b]))
        assert sorted(rows_of(acid, table, names), key=str) == [empty, b]
    acid.create_table("d.r", {"id": "int", **{f"c{at}": "string" for at in range(len(names))}})
    acid.insert("d.r", frame_of(acid, [f"c{at}" for at in range(len(names))], [c]))
    for at, name in enumerate(names):
        if at % 2:
            acid.rename_column("d.r", f"c{at}", name)
        else:
            acid.sql(f"ALTER TABLE d.r RENAME COLUMN c{at} TO {quoted(name)}")
    assert rows_of(acid, "d.r", names) == [c]


def sinks(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    """All names as columns and keys, and by turns as what orders a batch and what a row of it is."""
    given = [name.upper() if len(name.upper()) == len(name) else name for name in names]
    a, b, c = line(names, 1), line(names, 2), line(names, 3)
    acid.create_table("d.t", {"id": "int", **dict.fromkeys(names, "string")})
    acid.sink("d.t", query="q")(frame_of(acid, given, [a, b]), 0)
    assert rows_of(acid, "d.t", names) == [a, b]
    acid.sink("d.t", query="u", mode="upsert", keys=given)(frame_of(acid, given, [(7, *b[1:]), c]), 0)
    assert rows_of(acid, "d.t", names) == [a, c, (7, *b[1:])]
    for number, name in enumerate(given):
        other = f"k{number}"
        table = f"d.t{number}"
        acid.create_table(table, {"id": "int", name: "string", other: "string"})
        sink = acid.sink(table, query=f"q{number}", mode="upsert", keys=[other], order_by=name)
        sink(frame_of(acid, [name, other], [(1, "a", "x"), (2, "b", "x"), (3, "a", "y")]), 0)
        assert rows_of(acid, table, [names[number], other]) == [(2, "b", "x"), (3, "a", "y")], name
        changes = acid.sink(table, query="c", mode="changes", keys=[other], change_column=name, order_by="id")
        with pytest.raises(Exception, match="says neither"):
            changes(frame_of(acid, [name, other], [(1, "nothing", "x")]), 0)
        changes(frame_of(acid, [name, other], [(1, "insert", "x"), (2, "delete", "x"), (5, "update", "z")]), 0)
        assert rows_of(acid, table, [names[number], other]) == [(3, "a", "y"), (5, "update", "z")], name


def added_by_sinks(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    a, b = line(names, 1), line(names, 2)
    acid.create_table("d.t", {"id": "int"})
    acid.sink("d.t", query="q", mode="upsert", keys=["ID"], schema_evolution=True)(frame_of(acid, names, [a, b]), 0)
    assert rows_of(acid, "d.t", names) == [a, b]


def streams(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    """Without Spark: columns, and a partition key of each name."""
    a, b, c = line(names, 1), line(names, 2), line(names, 3)
    given = ["id", *names]
    writers = {
        "arrow": (ArrowWriter(), pa.table({n: [v] for n, v in zip(given, a, strict=True)})),
        "json": (JsonWriter(), json.dumps(dict(zip(given, b, strict=True)))),
        "delimited": (DelimitedWriter("\x01"), "\x01".join(map(str, c))),
    }
    acid.create_table("d.t", {"id": "int", **dict.fromkeys(names, "string")})
    for writer, records in writers.values():
        with StreamingConnection(acid.connection.uri, "d.t", writer) as stream, stream.transaction():
            stream.write(records)
    assert rows_of(acid, "d.t", names) == [a, b, c]
    for number, name in enumerate(names):
        table = f"d.t{number}"
        acid.create_table(table, {"id": "int"}, partitioned_by={name: "string"})
        for static in ({}, {name: "x"}):
            stream = StreamingConnection(acid.connection.uri, table, JsonWriter(), static_partition=static)
            with stream, stream.transaction():
                stream.write(json.dumps({"id": len(static), **({} if static else {name: "y"})}))
        assert rows_of(acid, table, [name]) == [(0, "y"), (1, "x")], name


def partition_keys(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    for number, name in enumerate(names):
        table, key = f"d.t{number}", quoted(name)
        if number % 2:
            acid.create_table(table, {"id": "int"}, partitioned_by={name: "string"})
        else:
            acid.sql(f"CREATE TABLE {table} (id int) PARTITIONED BY ({key} string)")

        def is_now(*expected: tuple[int, str | None], table: str = table, name: str = name) -> None:
            assert rows_of(acid, table, [name]) == sorted(expected, key=str), name

        acid.insert(table, frame_of(acid, [name], [(1, "x"), (2, "y")]))
        acid.sql(f"INSERT INTO {table} PARTITION ({key} = 'z') VALUES (3)")
        acid.sql(f"INSERT INTO {table} PARTITION ({key}) SELECT 4, 'w'")
        is_now((1, "x"), (2, "y"), (3, "z"), (4, "w"))
        assert [row.id for row in acid.table(table).where(f"{key} = 'y'").collect()] == [2]
        assert [row.id for row in acid.sql(f"SELECT id FROM {table} q WHERE q.{key} IN ('z')").collect()] == [3]
        acid.overwrite(table, acid.spark.sql("SELECT 5 AS id"), partition={name: "x"})
        acid.sql(f"INSERT OVERWRITE {table} PARTITION ({key} = 'y') SELECT 6")
        is_now((5, "x"), (6, "y"), (3, "z"), (4, "w"))
        acid.update(table, {name: "'v'"}, f"{key} = 'x'")
        acid.sql(f"UPDATE {table} SET {key} = 'u' WHERE {key} = 'y'")
        is_now((5, "v"), (6, "u"), (3, "z"), (4, "w"))
        acid.delete(table, f"{key} = 'w'")
        acid.sql(f"DELETE FROM {table} AS t WHERE t.{key} = 'z'")
        is_now((5, "v"), (6, "u"))
        merged = acid.merge(table, frame_of(acid, [name], [(7, "v"), (8, "n")]), f"t.{key} = s.{key}")
        merged.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        is_now((7, "v"), (6, "u"), (8, "n"))
        acid.truncate(table, {name: "u"})
        acid.sql(f"TRUNCATE TABLE {table} PARTITION ({key} = 'n')")
        acid.sql(f"ALTER TABLE {table} ADD PARTITION ({key} = 'm')")
        acid.sql(f"ALTER TABLE {table} DROP PARTITION ({key} = 'z')")
        is_now((7, "v"))
        told = {row[0] for row in acid.sql(f"SHOW PARTITIONS {table}").collect()}
        assert told == {*acid.table(table).partitions()}
        named = acid.connection.table("d", f"t{number}").partition_name
        assert {named(["m"]), named(["v"])} <= told
        assert named(["z"]) not in told
        acid.add_partitions(table, {named(["l"]): None})
        acid.drop_partitions(table, [named(["x"]), named(["l"])])
        acid.analyze(table, columns=["id"])
        acid.concatenate(table, {name: "v"}, wait=True)
        is_now((7, "v"))
        made = acid.create_table_as(f"d.c{number}", acid.table(table), partitioned_by=[name])
        assert made == 1
        assert rows_of(acid, f"d.c{number}", [name]) == [(7, "v")]


def struct_fields(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    names = [name for name in names if name in FIELDS]
    kind = ",".join(f"{name}:string" for name in names)
    acid.create_table("d.t", {"id": "int", "v": f"struct<{kind}>", "w": f"array<struct<{kind}>>"})

    def of(*rows: tuple[Any, ...]) -> DataFrame:
        flat = frame_of(acid, names, rows)
        fields = F.struct(*(F.col(quoted(name)) for name in names))
        return flat.select("id", fields.alias("v"), F.array(fields).alias("w"))

    def is_now(*rows: tuple[Any, ...]) -> None:
        found = acid.table("d.t").select("id", *(f"v.{quoted(name)}" for name in names))
        assert sorted(map(tuple, found.collect())) == sorted(rows)
        inner = acid.table("d.t").selectExpr("id", *(f"w[0].{quoted(name)}" for name in names))
        assert [len({*row}) for row in inner.collect()] == [len(names) + 1] * len(rows)

    a, b, c = line(names, 1), line(names, 2), line(names, 3)
    acid.insert("d.t", of(a, b))
    is_now(a, b)
    acid.update("d.t", {f"v.{quoted(name)}": f"concat(v.{quoted(name)}, '!')" for name in names}, "id = 1")
    a = (1, *(f"{value}!" for value in a[1:]))
    is_now(a, b)
    told = ", ".join(f"x.v.{quoted(name)} = concat(v.{quoted(name)}, '?')" for name in names)
    every = " AND ".join(f"v.{quoted(name)} = '{value}'" for name, value in zip(names, b[1:], strict=True))
    acid.sql(f"UPDATE d.t AS x SET {told} WHERE {every}")
    b = (2, *(f"{value}?" for value in b[1:]))
    is_now(a, b)
    on = " AND ".join(f"t.v.{quoted(name)} = s.v.{quoted(name)}" for name in names)
    merging = acid.merge("d.t", of((9, *b[1:]), c), on)
    merging.whenMatchedUpdate(set={"id": "s.id"}).whenNotMatchedInsertAll().execute()
    is_now(a, (9, *b[1:]), c)
    acid.sink("d.t", query="q", mode="upsert", keys=["id"])(of((9, *b[1:]), line(names, 4)), 0)
    with StreamingConnection(acid.connection.uri, "d.t", JsonWriter()) as stream, stream.transaction():
        value = dict(zip(names, line(names, 5)[1:], strict=True))
        stream.write(json.dumps({"id": 5, "v": value, "w": [value]}))
    is_now(a, (9, *b[1:]), c, line(names, 4), line(names, 5))
    acid.create_table("d.e", {"id": "int", "v": "struct<z:string>"})
    flat = frame_of(acid, names, [a]).withColumn("z", F.lit("z"))
    wide = flat.select("id", F.struct("z", *(F.col(quoted(name)) for name in names)).alias("v"))
    acid.insert("d.e", wide, schema_evolution=True)
    assert [tuple(row.v) for row in acid.table("d.e").collect()] == [("z", *a[1:])]


def bucket_columns(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    # A table with a column row__id has no identity of rows to be read, and to hash 60 texts takes Spark long.
    names = [name for name in names if name != "row__id"][:: max(1, len(names) // 12)]
    rows = [line(names, number) for number in range(1, 20)]
    clustered = ", ".join(map(quoted, names))
    acid.create_table("d.t", {"id": "int", **dict.fromkeys(names, "string")}, clustered_by=names, buckets=4)
    text = ", ".join(f"{quoted(name)} string" for name in names)
    acid.sql(f"CREATE TABLE d.u (id int, {text}) CLUSTERED BY ({clustered}) INTO 4 BUCKETS")
    plain = [f"c{at}" for at in range(len(names))]
    acid.create_table("d.p", {"id": "int", **dict.fromkeys(plain, "string")}, clustered_by=plain, buckets=4)
    acid.insert("d.p", frame_of(acid, plain, rows))

    def placed(table: str) -> dict[int, int]:
        return {
            row.id: row.b for row in acid.table(table, row_id=True).selectExpr("id", "row__id.bucketid b").collect()
        }

    expected = placed("d.p")
    assert len({*expected.values()}) > 1
    for table in ("d.t", "d.u"):
        acid.insert(table, frame_of(acid, names, rows[:10]))
        with StreamingConnection(acid.connection.uri, table, JsonWriter()) as stream, stream.transaction():
            stream.write("\n".join(json.dumps(dict(zip(("id", *names), row, strict=True))) for row in rows[10:15]))
        merging = acid.merge(table, frame_of(acid, names, rows[12:]), "t.id = s.id")
        merging.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        acid.update(table, {name: f"concat({quoted(name)}, '')" for name in names}, "id < 5")
        assert rows_of(acid, table, names) == rows
        assert placed(table) == expected


def merge_keys(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    a, b, c, d = (line(names, number) for number in (1, 2, 3, 4))
    acid.create_table("d.t", {"id": "int", **dict.fromkeys(names, "string")})
    acid.create_table("d.s", {"id": "int", **dict.fromkeys(names, "string")})
    on = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names)
    equal = " AND ".join(f"x.{quoted(name)} = y.{quoted(name)}" for name in names)
    assign = ", ".join(f"{quoted(name)} = y.{quoted(name)}" for name in names)
    listed, values = ", ".join(map(quoted, names)), ", ".join(f"y.{quoted(name)}" for name in names)
    source = [(7, *b[1:]), c]
    acid.insert("d.s", frame_of(acid, names, source))

    def by_builder() -> None:
        merging = acid.merge("d.t", frame_of(acid, names, source), on)
        merging.whenMatchedUpdate(set={"id": "s.id", **{name: f"s.{quoted(name)}" for name in names}})
        merging.whenNotMatchedInsert(values={"id": "s.id", **{name: f"s.{quoted(name)}" for name in names}}).execute()

    def by_columns() -> None:
        alike = [F.col(f"t.{quoted(name)}") == F.col(f"s.{quoted(name)}") for name in names]
        while len(alike) > 1:  # as a tree: of one within the other a client of Connect takes some 45
            alike = [alike[at] & alike[at + 1] if at + 1 < len(alike) else alike[at] for at in range(0, len(alike), 2)]
        (both,) = alike
        merging = acid.merge("d.t", frame_of(acid, names, source), both)
        merging.whenMatchedUpdate(set={"id": F.col("s.id")}).whenNotMatchedInsertAll().execute()

    def by_sql() -> None:
        acid.sql(
            f"MERGE INTO d.t AS x USING d.s AS y ON {equal} WHEN MATCHED THEN UPDATE SET id = y.id, {assign}"
            f" WHEN NOT MATCHED THEN INSERT (id, {listed}) VALUES (y.id, {values})"
        )

    def by_sql_all() -> None:
        acid.sql(
            f"MERGE INTO d.t AS x USING (SELECT * FROM d.s) AS y ON {equal} WHEN MATCHED THEN UPDATE SET *"
            " WHEN NOT MATCHED THEN INSERT *"
        )

    def by_two() -> None:
        acid.update("d.t", {"id": "s.id"}, source=frame_of(acid, names, source), on=on)
        acid.sql(f"INSERT INTO d.t BY NAME SELECT * FROM d.s AS y WHERE y.{quoted(names[0])} = '{c[1]}'")

    def by_sql_from() -> None:
        acid.sql(f"UPDATE d.t AS x SET id = y.id FROM d.s AS y WHERE {equal}")
        acid.multi_insert(acid.table("d.s")).into(
            "d.t", {"id": "id", **{name: quoted(name) for name in names}}, where=f"{quoted(names[-1])} = '{c[-1]}'"
        ).execute()

    for merge in (by_builder, by_columns, by_sql, by_sql_all, by_two, by_sql_from):
        acid.overwrite("d.t", frame_of(acid, names, [a, b, d]))
        merge()
        assert rows_of(acid, "d.t", names) == [a, c, d, (7, *b[1:])], merge.__name__
        acid.delete("d.t", source=frame_of(acid, names, [c]), on=on)
        acid.sql(f"DELETE FROM d.t AS x USING d.s AS y WHERE {equal}")
        assert rows_of(acid, "d.t", names) == [a, d], merge.__name__


def other_formats(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    """Insert-only and plain tables of every format, export and import, conversion."""
    a, b = line(names, 1), line(names, 2)
    full, plain = acid, dummy(acid)
    for number, (form, properties) in enumerate([*KINDS, ("TEXTFILE", ONLY), ("JSONFILE", ONLY)]):
        table = f"d.t{number}"
        full.create_table(table, {"id": "int", **dict.fromkeys(names, "string")}, stored_as=form, properties=properties)
        acid = full if properties is ONLY else plain
        acid.insert(table, frame_of(acid, names, [a, b]))
        assert rows_of(acid, table, names) == [a, b], (form, properties)
        every = " AND ".join(f"{quoted(name)} = '{value}'" for name, value in zip(names, b[1:], strict=True))
        assert [row.id for row in acid.table(table).where(every).collect()] == [2], (form, properties)
        assert [row.id for row in acid.sql(f"SELECT id FROM {table} WHERE {every}").collect()] == [2]
    acid = full
    acid.convert_table("d.t2")
    assert rows_of(acid, "d.t2", names) == [a, b]
    acid.create_table("d.full", {"id": "int", **dict.fromkeys(names, "string")})
    acid.insert("d.full", frame_of(acid, names, [a, b]))
    acid.export_table("d.full", str(path / "out"))
    acid.import_table(str(path / "out"), "d.back")
    assert rows_of(acid, "d.back", names) == [a, b]


def other_keys(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    """Partition keys of insert-only and plain tables."""
    full, plain = acid, dummy(acid)
    for number, name in enumerate(names):
        form, properties = KINDS[number % len(KINDS)]
        table, key = f"d.t{number}", quoted(name)
        full.create_table(table, {"id": "int"}, partitioned_by={name: "string"}, stored_as=form, properties=properties)
        acid = full if properties is ONLY else plain
        acid.insert(table, frame_of(acid, [name], [(1, "x"), (2, "y")]))
        assert rows_of(acid, table, [name]) == [(1, "x"), (2, "y")], (name, form, properties)
        assert [row.id for row in acid.table(table).where(f"{key} = 'y'").collect()] == [2]
        if properties is ONLY:
            acid.overwrite(table, acid.spark.sql("SELECT 5 AS id"), partition={name: "x"})
            assert rows_of(acid, table, [name]) == [(2, "y"), (5, "x")], (name, form, properties)


def chars(acid: AcidSession, names: Sequence[str], path: Path) -> None:
    """As CHAR columns, whose conditions are written anew, with skipping by statistics."""
    acid.create_table("d.t", {"id": "int", **dict.fromkeys(names, "char(9)")})
    a, b, c = (line(names, number) for number in (1, 2, 3))
    acid.insert("d.t", frame_of(acid, names, [a]))
    acid.insert("d.t", frame_of(acid, names, [b, c]))
    every = " AND ".join(f"{quoted(name)} = '{value}'" for name, value in zip(names, b[1:], strict=True))
    alike = " AND ".join(f"t.{quoted(name)} IN ('{value}', 'x')" for name, value in zip(names, b[1:], strict=True))
    assert [row.id for row in acid.table("d.t").where(every).collect()] == [2]
    assert [row.id for row in acid.sql(f"SELECT id FROM d.t WHERE {alike}").collect()] == [2]
    on = " AND ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names)
    merging = acid.merge("d.t", frame_of(acid, names, [(7, *b[1:])]), on)
    assert merging.whenMatchedUpdate(set={"id": "s.id"}).execute().updated == 1
    assert acid.delete("d.t", every) == 1
    assert sorted(row.id for row in acid.table("d.t").collect()) == [1, 3]


WIDE = (*(columns, evolved, added_by_sinks, struct_fields, bucket_columns, merge_keys, other_formats, chars),)
"""Places where all names stand together."""

EACH = (sinks, streams, partition_keys, other_keys)
"""Places where each name stands alone."""

PARTS = 22


@pytest.mark.parametrize("place", WIDE)
@pytest.mark.sampled(days=len(WIDE))
def test_all_names_together(acid: AcidSession, tmp_path: Path, place: Place) -> None:
    place(acid, NAMES, tmp_path)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.sampled(days=PARTS)
def test_each_name(acid: AcidSession, tmp_path: Path, part: int) -> None:
    for place in EACH:
        place(acid, NAMES[part::PARTS], tmp_path)
        acid.drop_database("d", cascade=True)
        acid.create_database("d")


@pytest.mark.parametrize("name", [" a", "a ", "a  b", "a\tb", "a:b", "a,b", "a<b"])
def test_no_field_is_called_so_in_a_type_without_quotes(acid: AcidSession, name: str) -> None:
    """It would be another one in what the metastore keeps, and no value be stored in it."""
    frame = acid.spark.createDataFrame([(1, "x")], "id int, z string").toDF("id", name)
    frame = frame.select("id", F.array(F.struct(quoted(name))).alias("s"))
    with pytest.raises(ColumnError, match="no quotes, so a field cannot be called"):
        acid.create_table("d.t", frame.schema)
    with pytest.raises(SqlError, match="no quotes, so a field cannot be called"):
        acid.sql(f"CREATE TABLE d.t (s struct<{quoted(name)}: string>)")
    acid.create_table("d.t", {"id": "int"})
    with pytest.raises(ColumnError, match="no quotes, so a field cannot be called"):
        acid.insert("d.t", frame, schema_evolution=True)
