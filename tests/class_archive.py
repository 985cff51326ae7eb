"""``python -m tests.class_archive``: Spark's classes as Java has them in memory, for the JVMs of the tests.

Java writes it as it ends (`tests.jvm` says where, and what it is good for). A Java that cannot, such as the wheel's,
leaves none, and tests start without.
"""

from __future__ import annotations

import tempfile

from tests.jvm import CLASSES, SHORT_LIVED
from tests.spark.conftest import started


def main() -> None:
    """Do a little of what tests do, so that the classes for it are loaded."""
    CLASSES.unlink(missing_ok=True)
    spark = started(" ".join((*SHORT_LIVED, f'"-XX:ArchiveClassesAtExit={CLASSES}"')))
    java = spark.sparkContext._gateway.proc  # type: ignore[union-attr]
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
        java.wait(300)


if __name__ == "__main__":
    main()
