"""The ways to do one thing with a table: verbs, Spark's own words, SQL. What they do is the same.

Changes give how many rows they have changed, None in ways that do not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.spark import EnabledSession


class Way:
    """One of the ways; each method is one thing that they all can do."""

    tells = True
    """Whether a change tells how many rows it has changed."""

    def __init__(self, acid: EnabledSession, spark: SparkSession) -> None:
        self.acid = acid
        self.spark = spark


class Verbs(Way):
    """``acid.…``."""

    def read(self, name: str) -> DataFrame:
        return self.acid.table(name)

    def create(self, name: str, rows: DataFrame, keys: tuple[str, ...] = ()) -> None:
        self.acid.create_table_as(name, rows, partitioned_by=keys)

    def append(self, name: str, rows: DataFrame) -> int | None:
        return self.acid.insert(name, rows)

    def evolve(self, name: str, rows: DataFrame) -> None:
        self.acid.insert(name, rows, schema_evolution=True)

    def overwrite(self, name: str, rows: DataFrame) -> int | None:
        return self.acid.overwrite(name, rows)

    def overwrite_where(self, name: str, rows: DataFrame, where: str) -> None:
        self.acid.overwrite(name, rows, where=where)

    def update(self, name: str, changes: Mapping[str, str], where: str) -> int:
        return self.acid.update(name, changes, where)

    def delete(self, name: str, where: str) -> int:
        return self.acid.delete(name, where)

    def merge(self, name: str, rows: DataFrame) -> tuple[int, ...] | None:
        builder = self.acid.merge(name, rows, "t.id = s.id", target_alias="t", source_alias="s")
        builder.whenMatchedDelete("s.n < 0").whenMatchedUpdate(None, {"n": "t.n + s.n"}).whenNotMatchedInsertAll()
        return builder.whenNotMatchedBySourceUpdate("t.id > 100", {"n": "0"}).execute()

    def columns(self, name: str) -> list[tuple[str, str]]:
        return [(column.name, column.type) for column in self.acid.connection.table(*name.split(".")).all_columns]

    def properties(self, name: str) -> Mapping[str, str]:
        return self.acid.connection.table(*name.split(".")).parameters

    def partitions(self, name: str) -> list[str]:
        return self.acid.table(name).partitions()

    def tables(self, database: str) -> list[str]:
        return sorted(self.acid.connection.call("get_tables", database, "*"))


class Words(Verbs):
    """Spark's own words, in a session that is joined. For UPDATE and DELETE there are none."""

    tells = False

    def read(self, name: str) -> DataFrame:
        return self.spark.table(name)

    def create(self, name: str, rows: DataFrame, keys: tuple[str, ...] = ()) -> None:
        writer = rows.writeTo(name)
        (writer.partitionedBy(*map(F.col, keys)) if keys else writer).create()

    def append(self, name: str, rows: DataFrame) -> int | None:
        rows.writeTo(name).append()
        return None

    def evolve(self, name: str, rows: DataFrame) -> None:
        rows.writeTo(name).option("mergeSchema", "true").append()

    def overwrite(self, name: str, rows: DataFrame) -> int | None:
        rows.writeTo(name).overwritePartitions()
        return None

    def overwrite_where(self, name: str, rows: DataFrame, where: str) -> None:
        rows.writeTo(name).overwrite(F.expr(where))

    def merge(self, name: str, rows: DataFrame) -> tuple[int, ...] | None:
        table = name.split(".")[-1]
        merge = rows.alias("s").mergeInto(name, F.expr(f"{table}.id = s.id"))
        merge = merge.whenMatched(F.col("s.n") < 0).delete().whenMatched().update({"n": F.expr(f"{table}.n + s.n")})
        merge = merge.whenNotMatched().insertAll()
        merge.whenNotMatchedBySource(F.expr(f"{table}.id > 100")).update({"n": F.lit(0)}).merge()
        return None

    def columns(self, name: str) -> list[tuple[str, str]]:
        return [(column.name, column.dataType) for column in self.spark.catalog.listColumns(name)]

    def tables(self, database: str) -> list[str]:
        return [table.name for table in self.spark.catalog.listTables(database) if not table.isTemporary]


class FirstWriter(Words):
    """The words of Spark's first writer."""

    def create(self, name: str, rows: DataFrame, keys: tuple[str, ...] = ()) -> None:
        rows.write.partitionBy(*keys).saveAsTable(name)

    def append(self, name: str, rows: DataFrame) -> int | None:
        rows.write.mode("append").saveAsTable(name)
        return None

    def evolve(self, name: str, rows: DataFrame) -> None:
        rows.write.mode("append").option("mergeSchema", "true").saveAsTable(name)

    def overwrite(self, name: str, rows: DataFrame) -> int | None:
        in_order = rows.select(*self.spark.read.table(name).columns)
        in_order.write.insertInto(name, overwrite=True)
        return None


class Sql(Words):
    """SQL by ``spark.sql``, with frames in braces."""

    tells = True

    def read(self, name: str) -> DataFrame:
        return self.spark.sql(f"SELECT * FROM {name}")

    def create(self, name: str, rows: DataFrame, keys: tuple[str, ...] = ()) -> None:
        by = f"PARTITIONED BY ({', '.join(keys)})" if keys else ""
        self.spark.sql(f"CREATE TABLE {name} {by} AS SELECT * FROM {{rows}}", rows=rows)

    def append(self, name: str, rows: DataFrame) -> int | None:
        return self._affected(f"INSERT INTO {name} BY NAME SELECT * FROM {{rows}}", rows=rows)

    def evolve(self, name: str, rows: DataFrame) -> None:
        self.spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO {name} BY NAME SELECT * FROM {{rows}}", rows=rows)

    def overwrite(self, name: str, rows: DataFrame) -> int | None:
        return self._affected(f"INSERT OVERWRITE {name} BY NAME SELECT * FROM {{rows}}", rows=rows)

    def overwrite_where(self, name: str, rows: DataFrame, where: str) -> None:
        self.spark.sql(f"INSERT INTO {name} BY NAME REPLACE WHERE {where} SELECT * FROM {{rows}}", rows=rows)

    def update(self, name: str, changes: Mapping[str, str], where: str) -> int:
        values = ", ".join(f"{column} = {value}" for column, value in changes.items())
        return self._affected(f"UPDATE {name} SET {values} WHERE {where}")

    def delete(self, name: str, where: str) -> int:
        return self._affected(f"DELETE FROM {name} WHERE {where}")

    def merge(self, name: str, rows: DataFrame) -> tuple[int, ...] | None:
        done = self.spark.sql(
            f"""MERGE INTO {name} AS t USING {{rows}} AS s ON t.id = s.id
                WHEN MATCHED AND s.n < 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = t.n + s.n
                WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id > 100 THEN UPDATE SET n = 0""",
            rows=rows,
        )
        return tuple(done.select("num_inserted_rows", "num_updated_rows", "num_deleted_rows").collect()[0])

    def _affected(self, text: str, **frames: Any) -> int:
        return int(self.spark.sql(text, **frames).collect()[0].num_affected_rows)

    def columns(self, name: str) -> list[tuple[str, str]]:
        return [(row.col_name, row.data_type) for row in self.spark.sql(f"DESCRIBE {name}").collect()][
            : self._width(name)
        ]

    def _width(self, name: str) -> int:
        return len(self.read(name).columns)

    def tables(self, database: str) -> list[str]:
        return [row.tableName for row in self.spark.sql(f"SHOW TABLES IN {database}").collect()]


WAYS: dict[str, Any] = {"verbs": Verbs, "words": Words, "first writer": FirstWriter, "sql": Sql}
