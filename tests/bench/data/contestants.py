"""Who is measured: each makes the same table from the same rows, and changes it in its own way."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.filesystem import files
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from tests.bench.data.orders import COLUMNS, PARTITION_KEY

PRICE = "price + 1"
DATA_FILES = (".orc", ".parquet", ".puffin", ".bin")
"""How the files of formats end that have rows or say which ones are deleted."""


class Contestant(ABC):
    """One table format. `changes` says whether rows can be updated, deleted and merged in place."""

    name = ""
    changes = True

    def __init__(self, spark: SparkSession, root: str, *, partitioned: bool) -> None:
        self.spark = spark
        self.root = root
        self.partitioned = partitioned
        self._tables = 0

    def sql(self, text: str) -> DataFrame:
        """A statement in SQL, as the users of this format write it."""
        return self.spark.sql(text)

    @property
    @abstractmethod
    def full_name(self) -> str:
        """The table's name in SQL."""

    @property
    def location(self) -> str:
        """The directory of all files of the table, as it is now."""
        return self.path

    def data_files(self) -> list[int]:
        """The sizes in bytes of the files with rows, deleted ones or what deletes them, but of no other ones."""
        found = Path(self.location.removeprefix("file:")).rglob("*")
        return [file.stat().st_size for file in found if file.suffix in DATA_FILES or file.name.startswith("bucket_")]

    def restart(self) -> None:
        """Begin with the first table again; that of now is removed."""
        if self._tables:
            self.drop()
        self._tables = 0

    def attach(self) -> None:
        """Go on with the first table, which another process has made."""
        self._tables = 1

    def new_table(self) -> None:
        """Begin with a table that does not exist yet; the one before is removed."""
        if self._tables:
            self.drop()
        self._tables += 1
        self.create()

    @property
    def table(self) -> str:
        return f"orders{self._tables}"

    @property
    def path(self) -> str:
        return f"{self.root}/{self.name}/{self.table}"

    @abstractmethod
    def create(self) -> None:
        """Make the table's definition, where there is one."""

    def drop(self) -> None:
        files.remove(self.path)

    @abstractmethod
    def load(self, frame: DataFrame) -> None:
        """Write all rows."""

    @abstractmethod
    def frame(self, where: str | None = None) -> DataFrame:
        """The rows as they are now, or those for which `where` is true."""

    def count(self) -> int:
        """The number of rows."""
        return self.frame().count()

    def update(self, where: str) -> None:
        raise TypeError(f"{self.name} has no UPDATE")

    def delete(self, where: str) -> None:
        raise TypeError(f"{self.name} has no DELETE")

    def merge(self, source: DataFrame, *, all_columns: bool = False) -> None:
        raise TypeError(f"{self.name} has no MERGE")

    def insert_row(self, values: str) -> None:
        """INSERT one row by SQL."""
        raise TypeError(f"{self.name} has no INSERT")

    def compact(self) -> None:
        raise TypeError(f"{self.name} has no compaction")


class Plain(Contestant):
    """Spark's own files: what reading and writing costs by itself. Its compaction is to write all rows anew."""

    changes = False

    def __init__(self, spark: SparkSession, root: str, *, partitioned: bool, kind: str) -> None:
        super().__init__(spark, root, partitioned=partitioned)
        self.name = kind
        self._rewritten = ""

    @property
    def full_name(self) -> str:
        return f"{self.name}.`{self.location}`"

    @property
    def location(self) -> str:
        return self._rewritten or self.path

    def create(self) -> None:
        self._rewritten = ""

    def load(self, frame: DataFrame) -> None:
        self._write(frame, self.path)

    def frame(self, where: str | None = None) -> DataFrame:
        found = self.spark.read.format(self.name).load(self.location)
        found = found.select(*COLUMNS)
        return found.where(where) if where else found

    def compact(self) -> None:
        target = f"{self.path}-{uuid.uuid4().hex[:6]}"
        self._write(self.frame(), target)
        if self._rewritten:
            files.remove(self._rewritten)
        self._rewritten = target

    def drop(self) -> None:
        super().drop()
        if self._rewritten:
            files.remove(self._rewritten)

    def _write(self, frame: DataFrame, path: str) -> None:
        writer = frame.write.format(self.name).mode("append")
        if self.name == "orc":
            writer = writer.option("compression", DEFAULT_COMPRESSION)
        (writer.partitionBy(PARTITION_KEY) if self.partitioned else writer).save(path)


class _Ours(Contestant):
    """Compaction is the Worker's job, run in this session so that its CPU time is seen."""

    database = ""

    def __init__(self, spark: SparkSession, root: str, uri: str, *, partitioned: bool) -> None:
        super().__init__(spark, root, partitioned=partitioned)
        self._acid = hive_acid.spark.session(spark, uri)
        self._acid.create_database(self.database, if_not_exists=True)

    @property
    def acid(self) -> hive_acid.spark.AcidSession:
        return self._acid

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.table}"

    @property
    def location(self) -> str:
        return self._acid.connection.table(self.database, self.table).location

    def sql(self, text: str) -> DataFrame:
        return self._acid.sql(text)

    def create(self) -> None:
        columns = dict(COLUMNS)
        keys = {PARTITION_KEY: columns.pop(PARTITION_KEY)} if self.partitioned else {}
        self._acid.create_table(self.full_name, columns, partitioned_by=keys)

    def drop(self) -> None:
        self._acid.drop_table(self.full_name)

    def compact(self) -> None:
        from tests.spark.compaction import compact_table

        compact_table(self.spark, self._acid, self.full_name, "major")


class Acid(_Ours):
    """Ours, by its verbs and as a DataFrame."""

    name, database = "hive-acid", "bench"

    def load(self, frame: DataFrame) -> None:
        self._acid.insert(self.full_name, frame)

    def frame(self, where: str | None = None) -> DataFrame:
        found = self._acid.table(self.full_name)
        return found.where(where) if where else found

    def update(self, where: str) -> None:
        self._acid.update(self.full_name, {"price": PRICE, "status": "'changed'"}, where)

    def delete(self, where: str) -> None:
        self._acid.delete(self.full_name, where)

    def merge(self, source: DataFrame, *, all_columns: bool = False) -> None:
        merge = self._acid.merge(self.full_name, source, "t.o_id = s.o_id AND t.month = s.month")
        changed = (
            merge.whenMatchedUpdateAll()
            if all_columns
            else merge.whenMatchedUpdate(set={"price": "s.price", "status": "s.status"})
        )
        changed.whenNotMatchedInsertAll().execute()

    def insert_row(self, values: str) -> None:
        self.sql(f"INSERT INTO {self.full_name} VALUES ({values})")


class _Sql(Contestant):
    """What is changed by SQL."""

    def load(self, frame: DataFrame) -> None:
        frame.writeTo(self.full_name).append()

    def frame(self, where: str | None = None) -> DataFrame:
        found = self.spark.table(self.full_name)
        return found.where(where) if where else found

    def update(self, where: str) -> None:
        self.sql(f"UPDATE {self.full_name} SET price = {PRICE}, status = 'changed' WHERE {where}")

    def delete(self, where: str) -> None:
        self.sql(f"DELETE FROM {self.full_name} WHERE {where}")

    def merge(self, source: DataFrame, *, all_columns: bool = False) -> None:
        source.createOrReplaceTempView("bench_source")
        changed = "*" if all_columns else "price = s.price, status = s.status"
        self.sql(
            f"MERGE INTO {self.full_name} t USING bench_source s ON t.o_id = s.o_id AND t.month = s.month "
            f"WHEN MATCHED THEN UPDATE SET {changed} WHEN NOT MATCHED THEN INSERT *"
        )

    def insert_row(self, values: str) -> None:
        self.sql(f"INSERT INTO {self.full_name} VALUES ({values})")

    def _columns(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())

    def _partitioned_by(self) -> str:
        return f"PARTITIONED BY ({PARTITION_KEY})" if self.partitioned else ""


class AcidSql(_Ours, _Sql):
    """Ours, by SQL alone. In one JVM with `Acid` each would run programs that the other one has had compiled."""

    name, database = "hive-acid-sql", "bench_sql"

    def load(self, frame: DataFrame) -> None:
        frame.createOrReplaceTempView("bench_source")
        self.sql(f"INSERT INTO {self.full_name} SELECT {', '.join(COLUMNS)} FROM bench_source")

    def frame(self, where: str | None = None) -> DataFrame:
        return self.sql(f"SELECT * FROM {self.full_name}{f' WHERE {where}' if where else ''}")

    def count(self) -> int:
        return int(self.sql(f"SELECT count(*) FROM {self.full_name}").collect()[0][0])


class Delta(_Sql):
    name = "delta"

    @property
    def full_name(self) -> str:
        return f"delta.`{self.path}`"

    def create(self) -> None:
        self.spark.sql(
            f"CREATE TABLE {self.full_name} ({self._columns()}) USING delta {self._partitioned_by()} "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )

    def drop(self) -> None:
        files.remove(self.path)

    def compact(self) -> None:
        self.spark.sql(f"OPTIMIZE {self.full_name}")
        self.spark.sql(f"REORG TABLE {self.full_name} APPLY (PURGE)")


class Iceberg(_Sql):
    name = "iceberg"

    @property
    def full_name(self) -> str:
        return f"ice.bench.{self.table}"

    def create(self) -> None:
        modes = {f"write.{verb}.mode": "merge-on-read" for verb in ("update", "delete", "merge")}
        properties = {"format-version": "3", "write.distribution-mode": "none", **modes}
        if self.partitioned:
            properties["write.distribution-mode"] = "hash"
        given = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        self.spark.sql(
            f"CREATE TABLE {self.full_name} ({self._columns()}) USING iceberg {self._partitioned_by()} "
            f"TBLPROPERTIES ({given})"
        )

    @property
    def location(self) -> str:
        return f"{self.root}/{self.name}/bench/{self.table}"

    def drop(self) -> None:
        self.sql(f"DROP TABLE {self.full_name}")

    def compact(self) -> None:
        self.spark.sql(
            f"CALL ice.system.rewrite_data_files(table => 'bench.{self.table}', options => map('rewrite-all', 'true'))"
        )


def contestant(name: str, spark: SparkSession, root: str, uri: str, *, partitioned: bool) -> Contestant:
    """The contestant of this name."""
    for ours in (Acid, AcidSql):
        if name == ours.name:
            return ours(spark, root, uri, partitioned=partitioned)
    for kind in (Delta, Iceberg):
        if name == kind.name:
            return kind(spark, root, partitioned=partitioned)
    return Plain(spark, root, partitioned=partitioned, kind=name)


def settings(names: list[str], root: str) -> dict[str, Any]:
    """Spark's settings that these contestants need, without their jars."""
    extensions, found = [], {}
    if Delta.name in names:
        extensions.append("io.delta.sql.DeltaSparkSessionExtension")
        found["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        found["spark.databricks.delta.snapshotPartitions"] = "2"
    if Iceberg.name in names:
        extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        found["spark.sql.catalog.ice"] = "org.apache.iceberg.spark.SparkCatalog"
        found["spark.sql.catalog.ice.type"] = "hadoop"
        found["spark.sql.catalog.ice.warehouse"] = f"{root}/iceberg"
    return {**found, "spark.sql.extensions": ",".join(extensions)} if extensions else found
