"""A program of its own, as it stops Spark: ``python -m tests.spark.stopped URI`` tries everything after `spark.stop()`.

It prints, as JSON, which error each attempt ended with, and what a new session in the same process reads.
"""

import json
import sys
from collections.abc import Callable

from pyspark.sql import functions as F

import hive_acid.spark
from tests.spark.conftest import OVER_CONNECT, started


def main(uri: str) -> None:
    spark = started()
    acid = hive_acid.spark.session(spark, uri)
    acid.create_database("d")
    acid.create_table("d.t", {"id": "int", "name": "string"})
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    acid.insert("d.t", rows)
    exported = acid.connection.table("d", "t").location + "-exported"
    acid.export_table("d.t", exported)
    frame = acid.table("d.t")
    narrowed, derived, column = frame.where("id = 1"), frame.groupBy("id").count(), F.col("id")
    builder = acid.merge("d.t", rows, "t.id = s.id").whenMatchedDelete()
    multi, sink = acid.multi_insert(rows).into("d.t"), acid.sink("d.t", query="q")
    begun = acid.snapshot()
    begun.__enter__()
    spark.stop()
    attempts: dict[str, Callable[[], object]] = {
        "in the block": lambda: acid.table("d.t"),
        "its end": lambda: begun.__exit__(None, None, None),
        "table": lambda: acid.table("d.t"),
        "table where": lambda: acid.table("d.t", where="id = 1"),
        "sql": lambda: acid.sql("SELECT * FROM d.t"),
        "sql show": lambda: acid.sql("SHOW TABLES"),
        "sql update": lambda: acid.sql("UPDATE d.t SET id = 1"),
        "insert": lambda: acid.insert("d.t", rows),
        "overwrite": lambda: acid.overwrite("d.t", rows),
        "overwrite where": lambda: acid.overwrite("d.t", rows, where="id = 1"),
        "update": lambda: acid.update("d.t", {"id": "1"}),
        "update from": lambda: acid.update("d.t", {"id": "s.id"}, source=rows, on="t.id = s.id", target_alias="t"),
        "delete": lambda: acid.delete("d.t", "id = 1"),
        "delete all": lambda: acid.delete("d.t"),
        "merge": lambda: acid.merge("d.t", rows, "t.id = s.id").whenMatchedDelete().execute(),
        "builder": builder.execute,
        "multi-insert": multi.execute,
        "sink": lambda: sink(rows, 0),
        "snapshot": lambda: acid.snapshot().__enter__(),
        "transaction": lambda: acid.transaction().__enter__(),
        "analyze": lambda: acid.analyze("d.t", columns=["id"]),
        "create as": lambda: acid.create_table_as("d.w", rows),
        "export": lambda: acid.export_table("d.t", exported + "-again"),
        "import": lambda: acid.import_table(exported, "d.i"),
        "session": lambda: hive_acid.spark.session(spark, uri),
        "frame count": frame.count,
        "frame collect": frame.collect,
        "frame where": lambda: frame.where("name = 'a'"),
        "frame filter": lambda: frame.filter(column == 1),
        "frame column": lambda: frame.name,
        "frame item": lambda: frame["name"],
        "frame select": lambda: frame.select("id"),
        "frame show": frame.show,
        "frame pandas": frame.toPandas,
        "frame first": frame.first,
        "frame view": lambda: frame.createOrReplaceTempView("v"),
        "frame iterator": lambda: list(frame.toLocalIterator()),
        "frame write": lambda: frame.write.parquet(exported + "-parquet"),
        "frame insert": lambda: frame.insert(rows),
        "frame delete": lambda: frame.delete("id = 1"),
        "frame merge": lambda: frame.merge(rows, "t.id = s.id").whenMatchedDelete().execute(),
        "narrowed collect": narrowed.collect,
        "narrowed where": lambda: narrowed.where("name = 'a'"),
    }
    if not OVER_CONNECT:
        attempts["derived show"] = derived.show
        attempts["frame rdd"] = lambda: frame.rdd
    errors = {name: _error(attempt) for name, attempt in attempts.items()}
    again = started()
    read = hive_acid.spark.session(again, uri).table("d.t").count()
    shared = hive_acid.spark.session(again, acid.connection)
    shared.insert("d.t", again.createDataFrame([(3, "c")], "id int, name string"))
    shared.update("d.t", {"name": "upper(name)"}, "id < 3")
    found = sorted(row.name for row in shared.sql("SELECT name FROM d.t").collect())
    print(json.dumps({"errors": errors, "read": read, "found": found}))
    again.stop()


def _error(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    main(sys.argv[1])
