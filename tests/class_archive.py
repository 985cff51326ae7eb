"""``python -m tests.class_archive``: Spark's classes as Java has them in memory, for the JVMs of the tests.

Java writes it as it ends (`tests.jvm` says where, and what it is good for). A Java that cannot, such as the wheel's,
leaves none, and tests start without.
"""

from __future__ import annotations

import tempfile

from pyspark.sql import SparkSession

from hive_acid.spark.java import ensure_java
from tests.jvm import CLASSES, SHORT_LIVED


def main() -> None:
    """Do a little of what tests do, so that the classes for it are loaded."""
    ensure_java()
    CLASSES.unlink(missing_ok=True)
    options = " ".join((*SHORT_LIVED, f'"-XX:ArchiveClassesAtExit={CLASSES}"'))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": options,
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.appName("hive-acid tests").master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    java = spark.sparkContext._gateway.proc
    try:
        with tempfile.TemporaryDirectory() as place:
            rows = spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
            rows.write.orc(f"{place}/orc")
            spark.read.orc(f"{place}/orc").createOrReplaceTempView("stored")
            rows.createOrReplaceTempView("rows")
            spark.sql("SELECT s.name, count(*) FROM stored s JOIN rows r ON s.id = r.id GROUP BY s.name").collect()
    finally:
        spark.stop()
        java.stdin.close()  # what it lives as long as
        java.wait(60)


if __name__ == "__main__":
    main()
