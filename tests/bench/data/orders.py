"""The table that is measured: 16 columns of an order, the same rows in every run."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

COLUMNS = {
    "o_id": "bigint",
    "customer": "bigint",
    "product": "int",
    "quantity": "int",
    "price": "decimal(12,2)",
    "discount": "decimal(4,2)",
    "tax": "double",
    "status": "string",
    "channel": "string",
    "ordered": "date",
    "shipped": "timestamp",
    "priority": "int",
    "clerk": "string",
    "weight": "double",
    "comment": "string",
    "month": "int",
}
PARTITION_KEY = "month"
MONTHS = 12
PRODUCTS = 20_000
_STATUS = "element_at(array('open', 'paid', 'sent', 'done', 'back'), cast(pmod({h}, 5) AS int) + 1)"
_CHANNEL = "element_at(array('web', 'shop', 'phone'), cast(pmod({h}, 3) AS int) + 1)"


def orders(spark: SparkSession, rows: int, first: int = 0, *, tasks: int = 4) -> DataFrame:
    """Orders `first` to `first + rows`, in the order of their ids."""
    return shaped(spark.range(first, first + rows, 1, tasks).withColumnRenamed("id", "o_id"))


def shaped(ids: DataFrame) -> DataFrame:
    """The orders of a frame with their ``o_id``: every value follows from the id."""
    h = "xxhash64(o_id, {})".format
    values = {
        "customer": f"pmod({h(1)}, 150000)",
        "product": f"cast(pmod({h(2)}, {PRODUCTS}) AS int)",
        "quantity": f"cast(pmod({h(3)}, 50) AS int) + 1",
        "price": f"cast(pmod({h(4)}, 10000000) / 100 AS decimal(12,2))",
        "discount": f"cast(pmod({h(5)}, 11) / 100 AS decimal(4,2))",
        "tax": f"pmod({h(6)}, 9) / 100D",
        "status": _STATUS.format(h=h(7)),
        "channel": _CHANNEL.format(h=h(8)),
        "ordered": f"date_add(date'2020-01-01', cast(pmod({h(9)}, 1500) AS int))",
        "shipped": f"timestamp_seconds(1577836800 + pmod({h(10)}, 130000000))",
        "priority": f"cast(pmod({h(11)}, 5) AS int)",
        "clerk": f"concat('Clerk#', lpad(cast(pmod({h(12)}, 1000) AS string), 9, '0'))",
        "weight": f"pmod({h(13)}, 100000) / 1000D",
        "comment": f"concat_ws(' ', hex({h(14)}), 'order', cast(pmod({h(15)}, 997) AS string), 'as', 'agreed')",
        "month": f"cast(pmod({h(16)}, {MONTHS}) AS int) + 1",
    }
    return ids.select("o_id", *(F.expr(text).alias(name) for name, text in values.items()))


def upserts(spark: SparkSession, rows: int, turn: int) -> DataFrame:
    """One in a hundred orders to be merged: half of them are there, scattered, with other values, half are new."""
    half = rows // 200
    known = spark.range(half).select((F.col("id") * 200 + 50 + turn).alias("o_id"))
    new = spark.range(half).select((F.col("id") + rows + turn * half).alias("o_id"))
    changed = shaped(known).withColumns({"price": F.expr("price + 1"), "status": F.lit("merged")})
    return changed.unionByName(shaped(new))


def products(spark: SparkSession, root: str) -> DataFrame:
    """A small dimension of the orders, in a file of Parquet that is written once: each product, of one of 40 brands."""
    path = f"{root}/products"
    made = spark.range(PRODUCTS).selectExpr("cast(id AS int) product", "concat('P', id) name", "id % 40 AS brand")
    made.coalesce(1).write.mode("ignore").parquet(path)
    return spark.read.parquet(path)


def checksum(frame: DataFrame) -> tuple[int, int]:
    """Number of rows, and a sum of hashes of all columns that no order of rows changes."""
    sums = frame.select(F.xxhash64(*COLUMNS).alias("h")).agg(
        F.count(F.lit(1)), F.coalesce(F.sum(F.col("h").cast("decimal(38,0)")), F.lit(0))
    )
    rows, total = sums.collect()[0]
    return int(rows), int(total)
