"""A rebalance: the rows in even ranges over a number of files, under other ids (transactions.md §4.7).

Rows are sorted once and kept on disk, since their numbers must not change between counting and writing. A row keeps its
write id, and is numbered anew within its bucket. With an ORDER BY clause that is not possible: a file is sorted by
write id first, and would not have the order that was asked for. There all rows get the greatest of their write ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import UnsupportedTableError
from hive_acid.format import rows as ids
from hive_acid.spark.jvm.job_settings import grouped
from hive_acid.spark.read.table_frame import KEY_COLUMNS
from hive_acid.spark.values.quoting import quoted

_NUMBER, _TO = "__acid_number", "__acid_to"
_ORDER_BY = re.compile(r"\s*order\s+by\s+", re.IGNORECASE)


@contextmanager
def rebalanced(spark: SparkSession, rows: DataFrame, buckets: int, order_by: str | None) -> Iterator[DataFrame]:
    """`rows`, which have `KEY_COLUMNS`, under their new ids; for the length of the block.

    Bucket b of n has the rows from b/n to (b + 1)/n of the order: that of their ids, or of `order_by`.

    Raises UnsupportedTableError for a clause that Spark does not understand.
    """
    kept = _ordered(spark, rows, order_by).persist(StorageLevel.DISK_ONLY)
    try:
        write_id, bucket, row_id = KEY_COLUMNS
        part = F.spark_partition_id()
        counted = grouped(kept, [part.alias("part")], [F.count(F.lit(1)).alias("rows"), F.max(write_id).alias("last")])
        found = {line.part: (line.rows, line.last) for line in counted.collect()}
        sizes = [found.get(place, (0, 0))[0] for place in range(max(found, default=0) + 1)]
        total = sum(sizes)
        before = F.array(*(F.lit(count).cast("bigint") for count in accumulate([0, *sizes[:-1]])))
        number = F.get(before, part) + F.monotonically_increasing_id() - F.shiftleft(part.cast("bigint"), 33)
        to = F.expr(f"CAST({_NUMBER} * {buckets} DIV {max(total, 1)} AS INT)")
        start = F.expr(f"({_TO} * {max(total, 1)} + {buckets - 1}) DIV {buckets}")
        new = {
            bucket: F.lit(ids.encode_bucket(0)) + F.shiftleft(F.col(_TO), 16),
            row_id: F.col(_NUMBER) - start,
        }
        if order_by:
            new[write_id] = F.lit(max((last for _, last in found.values()), default=0)).cast("bigint")
        numbered = kept.withColumn(_NUMBER, number).withColumn(_TO, to.cast("int"))
        yield numbered.select(
            *(new.get(name, F.col(quoted(name))).alias(name) for name in kept.columns),
        )
    finally:
        kept.unpersist()


def _ordered(spark: SparkSession, rows: DataFrame, order_by: str | None) -> DataFrame:
    if not order_by:
        return rows.orderBy(*KEY_COLUMNS)
    clause = _ORDER_BY.sub("", order_by, count=1)
    try:
        ordered = spark.sql(f"SELECT * FROM {{rows}} ORDER BY {clause}", rows=rows)
        ordered.schema  # noqa: B018 - over Connect it is understood only now
    except Exception as error:  # of the JVM, which comes as py4j's or, by way of Connect, as PySpark's own
        raise UnsupportedTableError(f"the rows cannot be ordered by {clause}: {str(error).splitlines()[0]}") from error
    return ordered
