"""CREATE OR REPLACE TABLE with other partition columns: another table takes the place of the one that is there, with
the commit of its rows.
"""

import random
import threading
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

import hive_acid.spark
from hive_acid.catalog.calls import PartitionPlace
from hive_acid.catalog.table import Table
from hive_acid.errors import (
    HiveAcidError,
    SnapshotOutdatedError,
    TableChangedError,
    TransactionClosedError,
)
from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT
from tests.spark.sql.definitions.test_redefining import TYPES, rows_of

SEEDS = 8
KINDS = {
    "plain": "",
    "bucketed": "CLUSTERED BY (k) INTO 3 BUCKETS",
    "insert-only": "TBLPROPERTIES ('transactional_properties' = 'insert_only')",
    "parquet": "STORED AS PARQUET TBLPROPERTIES ('transactional_properties' = 'insert_only')",
}
KEYS: dict[str, tuple[Any, ...]] = {
    "string": ("1", "b c", "ä/=%:'", None),
    "int": (0, -5, 2**31 - 1, None),
    "bigint": (2**63 - 1, 7, None),
    "date": (date(2024, 2, 29), date(1969, 12, 31), None),
    "decimal(10,2)": (Decimal("1.50"), Decimal("-0.01"), None),
    "boolean": (True, False, None),
    "char(4)": ("ab", "abcd", None),
}
"""What partition columns may be, and their values."""


class Succeeded:
    """A table that is replaced again and again by others with other partition columns, and what Spark makes of it."""

    def __init__(self, acid: AcidSession, kind: str, seed: int) -> None:
        self.acid, self.kind, self.random = acid, kind, random.Random(f"{kind} {seed}")
        self.rows: list[tuple[Any, ...]] = []
        self.columns: list[tuple[str, str]] = []
        self.keys: list[tuple[str, str]] = []

    def replace(self) -> None:
        """Partition columns may have been columns before, and the other way round; so do their types change."""
        names = self.random.sample("abcdef", self.random.randint(2, 6))
        keys = names[: self.random.choice((0, 1, 1, 2))] if len(names) > 2 else names[: self.random.randint(0, 1)]
        self.keys = [(name, self.random.choice(list(KEYS))) for name in keys]
        types = [of for of in TYPES if self.kind != "parquet" or of != "timestamp"]
        self.columns = [("k", "int"), *((name, self.random.choice(types)) for name in names if name not in keys)]
        self.rows = [self.row(number) for number in range(self.random.choice((0, 1, 30)))]
        by, clauses = f"PARTITIONED BY ({', '.join(keys)})" if keys else "", KINDS[self.kind]
        way = self.random.choice(("rows", "writer", "nothing"))
        if way == "nothing" or any(of == "char(4)" for _, of in self.all):
            defined = ", ".join(f"{name} {of}" for name, of in self.columns)
            keyed = f"PARTITIONED BY ({', '.join(f'{name} {of}' for name, of in self.keys)})" if keys else ""
            self.acid.sql(f"CREATE OR REPLACE TABLE d.t ({defined}) {keyed} {clauses}")
            assert self.acid.table("d.t").isEmpty()
            self.acid.insert("d.t", self.frame(self.rows))
        else:
            self.frame(self.rows).createOrReplaceTempView("source")
            self.acid.sql(f"CREATE OR REPLACE TABLE d.t {by} {clauses} AS SELECT * FROM source")

    def replace_by_itself(self) -> None:
        """The rows stay, and the partition columns are other ones."""
        names = [name for name, of in self.all if of in KEYS and name != "k"]
        keys = self.random.sample(names, min(len(names), self.random.randint(0, 2)))
        by = f"PARTITIONED BY ({', '.join(keys)})" if keys else ""
        self.acid.sql(f"CREATE OR REPLACE TABLE d.t {by} {KINDS[self.kind]} AS SELECT * FROM d.t")
        order = [place for place, (name, _) in enumerate(self.all) if name not in keys]
        order += [next(place for place, (name, _) in enumerate(self.all) if name == key) for key in keys]
        columns = [self.all[place] for place in order]
        rows = [[row[place] for place in order] for row in self.rows]
        values = len(order) - len(keys)
        # An empty string is null in a partition's name; an empty CHAR is one of blanks.
        empty = [columns[place][1] == "string" for place in range(values, len(order))]
        self.rows = [
            (
                *row[:values],
                *(None if is_null and one == "" else one for is_null, one in zip(empty, row[values:], strict=True)),
            )
            for row in rows
        ]
        self.columns, self.keys = columns[:values], columns[values:]

    @property
    def all(self) -> list[tuple[str, str]]:
        return [*self.columns, *self.keys]

    def row(self, number: int) -> tuple[Any, ...]:
        keys = dict(self.keys)
        return tuple(
            number if name == "k" else self.random.choice(KEYS[of] if name in keys else TYPES[of])
            for name, of in self.all
        )

    def frame(self, rows: list[tuple[Any, ...]]) -> DataFrame:
        """As Spark has them."""
        schema = ", ".join(f"{name} {of}".replace("char(4)", "string") for name, of in self.all)
        return self.acid.spark.createDataFrame(rows, schema)

    def check(self) -> None:
        found = self.acid.table("d.t")
        assert [field.name for field in found.schema] == [name for name, _ in self.all]
        assert [key.name for key in self.acid.connection.table("d", "t").partition_keys] == [
            name for name, _ in self.keys
        ]
        chars = [name for name, of in self.all if of == "char(4)"]
        assert rows_of(found, chars) == rows_of(self.frame(self.rows), chars)

    def change(self) -> None:
        """One of the statements that the kind of table has."""
        key = next(place for place, (name, _) in enumerate(self.all) if name == "k")
        of_rows = ("insert",) if self.kind in ("insert-only", "parquet") else ("insert", "delete", "update")
        match self.random.choice(of_rows):
            case "insert":
                new = [self.row(1000 + number) for number in range(3)]
                self.acid.insert("d.t", self.frame(new))
                self.rows += new
            case "delete":
                self.acid.delete("d.t", "k % 3 = 0")
                self.rows = [row for row in self.rows if row[key] % 3]
            case _ if "CLUSTERED" not in KINDS[self.kind]:
                self.acid.update("d.t", {"k": "k + 7"})
                self.rows = [tuple(one + 7 if at == key else one for at, one in enumerate(row)) for row in self.rows]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_that_spark_has(acid: AcidSession, kind: str, seed: int) -> None:
    model, frames = Succeeded(acid, kind, seed), list[tuple[DataFrame, list[Any]]]()
    for _ in range(3):
        model.replace()
        model.check()
        model.change()
        model.check()
        frames.append((acid.table("d.t"), rows_of(acid.table("d.t"))))
        model.replace_by_itself()
        model.check()
    for frame, rows in frames:
        assert rows_of(frame) == rows, "who has read the table keeps what he has read"


# --- what it has from the one before --------------------------------------------------------------------------------


@pytest.fixture
def divided(acid: AcidSession) -> AcidSession:
    """A table of which no partition column stays."""
    acid.sql("CREATE TABLE d.t (id int, v string) PARTITIONED BY (p int) TBLPROPERTIES ('x' = '1', 'y' = '1')")
    acid.sql("INSERT INTO d.t VALUES (1, 'a', 1), (2, 'b', 2)")
    return acid


BY_V = "CREATE OR REPLACE TABLE d.t PARTITIONED BY (v) AS SELECT id + 10 AS id, v FROM d.t"
BEFORE, AFTER = ["(1, 'a', 1)", "(2, 'b', 2)"], ["(11, 'a')", "(12, 'b')"]


def test_properties_and_owner_stay_and_none_of_what_is_ours_is_shown(divided: AcidSession) -> None:
    divided.sql("ALTER TABLE d.t SET OWNER USER zoe")
    divided.sql("ANALYZE TABLE d.t COMPUTE STATISTICS")
    divided.sql("CREATE OR REPLACE TABLE d.t (name string) COMMENT 'new' TBLPROPERTIES ('x' = '2')")
    assert divided.table("d.t").isEmpty()
    there = divided.connection.table("d", "t")
    assert there.parameters.items() >= {"x": "2", "y": "1", "comment": "new"}.items()
    assert "numRows" not in there.parameters
    assert divided.connection.wire_table("d", "t").owner == "zoe"
    shown = divided.sql("SHOW CREATE TABLE d.t").collect()[0][0]
    assert "hive_acid" not in shown
    divided.sql("DROP TABLE d.t")
    divided.sql(shown)
    assert divided.table("d.t").columns == ["name"]


def test_constraints_are_those_that_are_named_or_else_of_columns_that_stay(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int NOT NULL, n int CHECK (n > 0), s string DEFAULT 'x')")
    acid.sql("CREATE OR REPLACE TABLE d.t PARTITIONED BY (n) AS SELECT 'a' AS more, 1 AS id, 5 AS n")
    assert {one.columns for one in acid.connection.table("d", "t").constraints} == {("id",), ("n",)}
    for values in ("('b', NULL, 1)", "('b', 1, -1)"):
        with pytest.raises(HiveAcidError, match=r"NOT NULL|CHECK|constraint"):
            acid.sql(f"INSERT INTO d.t VALUES {values}")
    with pytest.raises(HiveAcidError, match=r"of d\.t"):  # its rows have to meet them, too
        acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS more, CAST(NULL AS int) AS id, 5 AS n")
    assert rows_of(acid.table("d.t")) == ["('a', 1, 5)"]
    acid.sql("CREATE OR REPLACE TABLE d.t (id int, n int CHECK (n > 7))")
    assert [one.expression for one in acid.connection.table("d", "t").constraints] == ["n > 7"]
    acid.sql("INSERT INTO d.t VALUES (NULL, 8)")


def test_the_former_one_can_be_brought_back(spark: Any, metastore: Callable[..., str]) -> None:
    with hive_acid.spark.session(spark, metastore(**{"metastore.catalog.undrop.window": "1h"})) as acid:
        acid.create_database("d")
        acid.sql("CREATE TABLE d.t (id int) PARTITIONED BY (p int)")
        acid.sql("INSERT INTO d.t VALUES (1, 1)")
        acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name")
        acid.sql("ALTER TABLE d.t RENAME TO d.new")
        acid.connection.undrop_table("d", "t")
        assert rows_of(acid.table("d.t")) == ["(1, 1)"]
        assert rows_of(acid.table("d.new")) == ["('a',)"]


def test_a_place_may_be_named(divided: AcidSession, tmp_path: Path) -> None:
    divided.sql(f"CREATE OR REPLACE TABLE d.t LOCATION '{tmp_path}/one' AS SELECT * FROM d.t")
    assert divided.connection.table("d", "t").location.endswith("/one")
    assert rows_of(divided.table("d.t")) == BEFORE
    with pytest.raises(HiveAcidError, match=r"which was chosen for it.*so name one"):
        divided.sql(BY_V)
    with pytest.raises(HiveAcidError, match="in use"):
        divided.sql(BY_V.replace(" AS ", f" LOCATION '{tmp_path}/one' AS ", 1))
    divided.sql(BY_V.replace(" AS ", f" LOCATION '{tmp_path}/two' AS ", 1))
    assert rows_of(divided.table("d.t")) == AFTER
    assert [found.name for found in tmp_path.iterdir() if found.name in ("one", "two")] == ["two"]


def test_a_temporary_table(divided: AcidSession) -> None:
    divided.sql("CREATE TEMPORARY TABLE d.s (id int, p int)")
    divided.sql("INSERT INTO d.s VALUES (1, 2)")
    divided.sql("CREATE OR REPLACE TEMPORARY TABLE d.s PARTITIONED BY (p) AS SELECT * FROM d.s")
    assert rows_of(divided.table("d.s")) == ["(1, 2)"]
    assert divided.connection.call("get_all_tables", "d") == ["t"]


# --- who sees what --------------------------------------------------------------------------------------------------


def test_what_fails_leaves_the_table_and_nothing_else(divided: AcidSession, tmp_path: Path) -> None:
    before, there = sorted((tmp_path / "warehouse/d.db").iterdir()), divided.connection.table("d", "t")
    with pytest.raises(Exception, match="here it ends"):
        divided.sql(
            "CREATE OR REPLACE TABLE d.t PARTITIONED BY (v) TBLPROPERTIES ('x' = '2') AS "
            "SELECT if(id > 1, raise_error('here it ends'), id) AS id, v FROM d.t"
        )
    assert divided.connection.table("d", "t") == there
    assert rows_of(divided.table("d.t")) == BEFORE
    assert sorted((tmp_path / "warehouse/d.db").iterdir()) == before


def test_a_block_keeps_its_definition(divided: AcidSession) -> None:
    with pytest.raises(TransactionClosedError, match="before the block or after it"), divided.transaction():
        divided.sql(BY_V)
    assert rows_of(divided.table("d.t")) == BEFORE


def test_a_snapshot_of_before_keeps_its_rows_or_is_told_so(divided: AcidSession, other: AcidSession) -> None:
    with divided.snapshot():
        seen = divided.table("d.t")
        other.sql(BY_V)
        assert rows_of(seen) == BEFORE
        with pytest.raises(TableChangedError, match="is another table now than at first"):
            divided.table("d.t")
    assert rows_of(divided.table("d.t")) == AFTER
    with pytest.raises(TableChangedError, match="is another table now"):
        seen.delete("id = 1")


def test_a_snapshot_that_has_not_read_it_is_told_so(divided: AcidSession, other: AcidSession) -> None:
    """It sees no row of the new one, and the former one is gone."""
    with divided.snapshot():
        other.sql(BY_V)
        with pytest.raises(SnapshotOutdatedError, match="was given other columns"):
            divided.table("d.t")
    assert rows_of(divided.table("d.t")) == AFTER


@pytest.mark.parametrize("keys", ["v", "p, v", "id, v", ""])
@pytest.mark.parametrize("where", [None, "p = 1"])
def test_a_read_that_meets_it_is_of_one_of_them_or_fails(
    divided: AcidSession, other: AcidSession, monkeypatch: pytest.MonkeyPatch, keys: str, where: str | None
) -> None:
    """It has the definition of the former one when it asks for partitions."""
    places, todo = divided.connection.partition_places, [f"PARTITIONED BY ({keys})" if keys else ""]

    def asked(table: Table) -> list[PartitionPlace] | None:
        if todo:
            other.sql(f"CREATE OR REPLACE TABLE d.t {todo.pop()} AS SELECT 's' AS s, id, v, p FROM d.t")
        return places(table)

    monkeypatch.setattr(divided.connection, "partition_places", asked)
    with pytest.raises(TableChangedError):
        divided.table("d.t", where=where).collect()
    assert divided.table("d.t").count() == 2


Once = Callable[[str, Callable[[], object]], None]


@pytest.mark.parametrize(
    "statement", ["INSERT INTO d.t VALUES (3, 'c', 3)", "UPDATE d.t SET v = 'z'", "DELETE FROM d.t WHERE id = 1"]
)
@pytest.mark.parametrize("moment", ["begin", "call"])
def test_a_statement_that_has_begun_before_fails_or_is_of_the_new_one(
    divided: AcidSession, other: AcidSession, between: Once, statement: str, moment: str
) -> None:
    between(moment, lambda: other.sql(BY_V))
    try:
        divided.sql(statement)
    except (HiveAcidError, TableChangedError):
        assert rows_of(divided.table("d.t")) == AFTER
    else:
        expected = {"UPDATE": ["(11, 'z')", "(12, 'z')"], "DELETE": AFTER}[statement[:6]]
        assert rows_of(divided.table("d.t")) == expected


@pytest.mark.parametrize(
    "meanwhile",
    [
        "INSERT INTO d.t VALUES (3, 'c', 3)",
        "UPDATE d.t SET v = 'z'",
        "TRUNCATE TABLE d.t",
        "CREATE OR REPLACE TABLE d.t AS SELECT 'z' AS v, 7 AS id",
        "CREATE OR REPLACE TABLE d.t PARTITIONED BY (id) AS SELECT 'z' AS v, 7 AS id",
        "ALTER TABLE d.t ADD COLUMNS (more int)",
        "ALTER TABLE d.t RENAME TO d.u",
        "DROP TABLE d.t",
    ],
)
def test_what_is_done_between_its_snapshot_and_its_lock(
    divided: AcidSession, other: AcidSession, between: Once, meanwhile: str
) -> None:
    """It is of the table as that is then, or fails: a row is neither lost nor there twice."""
    between("begin", lambda: other.sql(meanwhile))
    try:
        divided.sql(BY_V)
    except HiveAcidError:
        name = "d.u" if "RENAME" in meanwhile else "d.t"
        expected = None if "DROP" in meanwhile else rows_of(divided.table(name))
        assert expected is None or expected == rows_of(other.table(name))
    else:
        expected = {
            "INSERT": [*AFTER, "(13, 'c')"],
            "UPDATE": ["(11, 'z')", "(12, 'z')"],
            "TRUNCA": [],
            "CREATE": ["(17, 'z')"],
            "ALTER ": AFTER,
        }[meanwhile[:6]]
        assert rows_of(divided.table("d.t")) == expected
    assert not [name for name in divided.connection.call("get_all_tables", "d") if name not in ("t", "u")]


def test_a_compaction_of_the_former_one_does_no_harm(divided: AcidSession) -> None:
    divided.sql("ALTER TABLE d.t PARTITION (p = 1) COMPACT 'major'")
    divided.sql(BY_V)
    assert rows_of(divided.table("d.t")) == AFTER
    divided.sql("UPDATE d.t SET id = id + 1")
    divided.sql("ALTER TABLE d.t PARTITION (v = 'a') COMPACT 'major'")
    assert rows_of(divided.table("d.t")) == ["(12, 'a')", "(13, 'b')"]


def test_two_at_once(divided: AcidSession) -> None:
    """Each has its lock alone, and the second one replaces what the first one has made."""
    failures: list[Exception] = []

    def succeed(key: str) -> None:
        try:
            divided.sql(f"CREATE OR REPLACE TABLE d.t PARTITIONED BY ({key}) AS SELECT 1 AS id, 'z' AS {key}")
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=succeed, args=(key,)) for key in ("x", "y", "z")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = divided.table("d.t")
    assert found.columns[1] in ("x", "y", "z")
    assert [tuple(row) for row in found.collect()] == [(1, "z")]


@pytest.mark.skipif(OVER_CONNECT, reason="a stream of a table is not there over Connect")
def test_a_stream_of_the_table_ends(divided: AcidSession, tmp_path: Path) -> None:
    stream = divided.read_stream("d.t").writeStream.format("memory").queryName("seen_of_former")
    query = stream.option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        query.processAllAvailable()
        divided.sql(BY_V)
        with pytest.raises(StreamingQueryException, match=r"is another table|dropped"):
            query.processAllAvailable()
    finally:
        query.stop()
    assert divided.spark.table("seen_of_former").count() == 2


def test_history_goes_on(divided: AcidSession) -> None:
    divided.sql(BY_V)
    divided.sql("INSERT INTO d.t VALUES (20, 'c')")
    assert [row.operation for row in divided.history("d.t").collect()]


@pytest.fixture
def other(acid: AcidSession) -> Iterator[AcidSession]:
    """Another client of the same metastore."""
    with hive_acid.spark.session(acid.spark, acid.connection.uri) as session:
        yield session


@pytest.fixture
def between(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> Once:
    """Have something done once, right after the session has begun a transaction, or before its next call."""

    def arrange(moment: str, do: Callable[[], object]) -> None:
        done, todo = getattr(acid.connection, moment), [do]

        def first(*given: Any, **options: Any) -> Any:
            if moment == "call" and todo:
                todo.pop()()
            found = done(*given, **options)
            if todo:
                todo.pop()()
            return found

        monkeypatch.setattr(acid.connection, moment, first)

    return arrange
