"""dbt in a session that is joined to a metastore: ``python dbt_process.py URI PROJECT``, where there is dbt-spark.

Prints the rows of each table, as JSON, after each of two runs; between them the source has other rows.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark.jvm.java import ensure_java

TABLES = ("orders", "daily", "recent", "order_history")
COMMANDS = (["seed"], ["run"], ["test"], ["snapshot"], ["docs", "generate"])


def main(uri: str, project: Path) -> None:
    """Run all commands, the source's rows are changed, and run them again."""
    ensure_java()
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC").getOrCreate()
    hive_acid.spark.enable(spark, metastore=uri)
    seed = project / "seeds" / "raw_orders.csv"
    for changed in (False, True):
        if changed:
            seed.write_text(seed.read_text().replace("2,bob,20.0", "2,bob,21.0") + "4,dan,40.0,2026-11-03\n")
        for words in COMMANDS:
            done = dbtRunner().invoke([*words, "--project-dir", str(project), "--profiles-dir", str(project)])
            if not done.success:
                raise SystemExit(f"dbt {' '.join(words)}: {done.exception or [one.message for one in done.result]}")
        print(json.dumps({name: rows(spark, name) for name in TABLES}))
    spark.stop()


def rows(spark: SparkSession, name: str) -> list[Any]:
    """The rows of a table as texts, in order."""
    shown = "id, customer, total, dbt_valid_to IS NULL" if name == "order_history" else "*"
    return sorted([str(value) for value in row] for row in spark.sql(f"SELECT {shown} FROM shop.{name}").collect())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
