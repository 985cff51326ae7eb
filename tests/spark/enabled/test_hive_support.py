"""Beside `enableHiveSupport()` on the same metastore: the transactional tables are ours, the plain ones Spark's."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.spark.conftest import OVER_CONNECT

PROGRAM = """
import sys
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
import hive_acid.spark
from hive_acid.spark.jvm.java import ensure_java

ensure_java()
builder = SparkSession.builder.master("local[2]").enableHiveSupport()
settings = {
    "spark.hadoop.hive.metastore.uris": sys.argv[1],
    "spark.sql.warehouse.dir": sys.argv[2],
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
}
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
rows = lambda frame: sorted(tuple(row) for row in frame.collect())

acid = hive_acid.spark.enable(spark)  # by the address that Spark's own client has
spark.sql("CREATE DATABASE d")
spark.sql("USE d")
spark.sql("CREATE TABLE t (id int, n int)")
spark.sql("INSERT INTO d.t VALUES (1, 10), (2, 20)")
spark.sql("CREATE TABLE p (id int, s string) USING parquet")
spark.sql("INSERT INTO p VALUES (1, 'a')")
assert not acid.connection.table("d", "p").is_transactional
spark.createDataFrame([(5, "z")], "id int, s string").write.mode("append").saveAsTable("p")
spark.createDataFrame([(6, "y")], "id int, s string").write.insertInto("d.p")
assert rows(spark.table("p")) == rows(spark.sql("SELECT * FROM d.p")) == [(1, "a"), (5, "z"), (6, "y")]
spark.createDataFrame([(5, 50)], "id int, n int").write.mode("append").saveAsTable("t")
spark.sql("UPDATE t SET n = n + 1 WHERE id IN (SELECT id FROM p)")
assert rows(spark.sql("SELECT n, s FROM t JOIN p USING (id)")) == [(11, "a"), (51, "z")]
assert [(one.name, one.isTemporary) for one in spark.catalog.listTables()] == [("p", False), ("t", False)]
spark.range(1).createOrReplaceTempView("v")
assert [(one.name, one.isTemporary) for one in spark.catalog.listTables()] == [("p", False), ("t", False), ("v", True)]
assert [one.name for one in spark.catalog.listTables("d", "v*|t")] == ["t", "v"]
spark.catalog.dropTempView("v")
assert spark.catalog.tableExists("t") and spark.catalog.tableExists("p") and not spark.catalog.tableExists("x")
spark.sql("CREATE VIEW mixed AS SELECT t.id, n, s FROM t JOIN p ON t.id = p.id")
wanted = rows(spark.sql("SELECT t.id, n, s FROM t JOIN p ON t.id = p.id"))
for name in ("mixed", "d.mixed"):
    assert rows(spark.table(name)) == rows(spark.sql(f"SELECT * FROM {name}")) == wanted
assert "`d`.`p`" in spark.sql("SHOW CREATE TABLE mixed").collect()[0][0]
spark.sql("USE default")
spark.sql("CREATE VIEW d.again AS SELECT count(*) AS c FROM d.mixed JOIN d.p USING (id)")
assert rows(spark.table("d.again")) == [(len(wanted),)]
spark.sql("USE d")
spark.range(1).createOrReplaceTempView("here")
try:
    spark.sql("CREATE VIEW broken AS SELECT t.id FROM t, p, here")
except hive_acid.errors.SqlError as error:
    assert str(error).startswith("here is not the metastore's"), error
else:
    raise AssertionError("a view that stays shows one that does not")
beside = hive_acid.spark.session(spark, acid.connection)
assert rows(beside.table("d.mixed")) == wanted
spark.sql("CREATE VIEW plain_only AS SELECT s FROM p")
assert rows(spark.table("plain_only")) == [("a",), ("y",), ("z",)]
spark.sql("CREATE TABLE c USING parquet AS SELECT * FROM t")
assert rows(spark.table("c")) == rows(spark.table("t"))
spark.sql("DROP TABLE c")
spark.stop()

spark = builder.getOrCreate()
try:
    spark.table("d.t").collect()
except AnalysisException as error:
    assert "import hive_acid.spark; hive_acid.spark.enable(spark)" in str(error), error
else:
    raise AssertionError("the guard lets it through")
assert rows(spark.table("d.p")) == [(1, "a"), (5, "z"), (6, "y")]
hive_acid.spark.enable(spark)
assert spark.table("d.t").count() == 3
spark.stop()
print("as it should be")
"""


@pytest.mark.sampled(of="stories of minutes")
@pytest.mark.spark
@pytest.mark.skipif(OVER_CONNECT, reason="a Spark of its own is started without Connect")
def test_beside_hive_support(metastore: Callable[..., str], tmp_path: Path) -> None:
    script = tmp_path / "beside.py"
    script.write_text(PROGRAM)
    command = [sys.executable, str(script), metastore(), str(tmp_path / "spark")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "as it should be" in done.stdout
