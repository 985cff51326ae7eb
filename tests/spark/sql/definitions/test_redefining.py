"""CREATE OR REPLACE TABLE with other columns or buckets: definition and rows change by one commit, or neither does."""

import random
import threading
from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.connection import Connection
from hive_acid.errors import (
    HiveAcidError,
    InvalidOperationError,
    MetaError,
    SnapshotOutdatedError,
    TransactionClosedError,
)
from hive_acid.format.properties import REPLACED
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.spark.conftest import OVER_CONNECT

SEEDS = 6
KINDS = {
    "plain": "",
    "partitioned": "PARTITIONED BY (p)",
    "bucketed": "CLUSTERED BY (k) INTO 3 BUCKETS",
    "both": "PARTITIONED BY (p) CLUSTERED BY (k) INTO 2 BUCKETS",
    "insert-only": "TBLPROPERTIES ('transactional_properties' = 'insert_only')",
}
TYPES: dict[str, tuple[Any, ...]] = {
    "int": (0, -1, 2**31 - 1, None),
    "bigint": (2**63 - 1, -(2**63), None),
    "string": ("", " a", "ä€𝄞", "'\\%_", None),
    "char(4)": ("ab", "", "ab  ", None),
    "decimal(38,18)": (Decimal("99999999999999999999.999999999999999999"), Decimal(0), None),
    "date": (date(9999, 12, 31), date(1, 1, 1), None),
    "timestamp": (datetime(1970, 1, 1), datetime(2300, 2, 28, 23, 59, 59, 999999), None),
    "double": (-0.0, float("inf"), 5e-324, None),
    "boolean": (True, False, None),
    "binary": (b"", b"\x00\xff", None),
    "array<int>": ([], [1, None], None),
    "struct<a:int,b:string>": ((1, "x"), (None, None), None),
    "map<string,int>": ({}, {"k": 1}, None),
}


def rows_of(frame: DataFrame, chars: Collection[str] = ()) -> list[str]:
    """All rows, as text; of `chars` the blanks behind count for nothing."""
    kept = [F.rtrim(F.col(name)).alias(name) if name in chars else F.col(name) for name in frame.columns]
    return sorted(str(tuple(row)) for row in frame.select(*kept).collect())


class Replaced:
    """A table that is replaced again and again, and what plain Spark makes of the same rows."""

    def __init__(self, acid: AcidSession, kind: str, seed: int) -> None:
        self.acid, self.kind, self.random = acid, kind, random.Random(f"{kind}{seed}")
        self.rows: list[tuple[Any, ...]] = []
        self.columns: list[tuple[str, str]] = []

    def replace(self) -> None:
        """Have rows of columns that may have the names of others before, at other places and of other types."""
        names = self.random.sample("abcdef", self.random.randint(1, 5))
        self.columns = [("k", "int"), *((name, self.random.choice(list(TYPES))) for name in names)]
        self.random.shuffle(self.columns)
        if "PARTITIONED" in KINDS[self.kind]:
            self.columns.append(("p", "string"))
        self.rows = [self.row(number) for number in range(self.random.choice((0, 1, 30)))]
        if self.random.random() < 0.5 or any(of == "char(4)" for _, of in self.columns):
            defined = ", ".join(f"{name} {of}" for name, of in self.columns)
            self.acid.sql(f"CREATE OR REPLACE TABLE d.t ({defined}) {KINDS[self.kind]}")
            assert self.acid.table("d.t").isEmpty()
            self.acid.insert("d.t", self.frame(self.rows))
        else:
            self.frame(self.rows).createOrReplaceTempView("source")
            self.acid.sql(f"CREATE OR REPLACE TABLE d.t {KINDS[self.kind]} AS SELECT * FROM source")

    def row(self, key: int) -> tuple[Any, ...]:
        return tuple(
            key if name == "k" else self.random.choice(("1", "b c")) if name == "p" else self.random.choice(TYPES[of])
            for name, of in self.columns
        )

    def frame(self, rows: list[tuple[Any, ...]]) -> DataFrame:
        """As Spark has them."""
        schema = ", ".join(f"{name} {of}".replace("char(4)", "string") for name, of in self.columns)
        return self.acid.spark.createDataFrame(rows, schema)

    def check(self) -> None:
        found = self.acid.table("d.t")
        assert [field.name for field in found.schema] == [name for name, _ in self.columns]
        chars = [name for name, of in self.columns if of == "char(4)"]
        assert rows_of(found, chars) == rows_of(self.frame(self.rows), chars)

    def change(self) -> None:
        """One of the statements that the kind of table has."""
        key = next(place for place, (name, _) in enumerate(self.columns) if name == "k")
        what = self.random.choice(("insert", "delete", "update") if self.kind != "insert-only" else ("insert",))
        if what == "insert":
            new = [self.row(1000 + number) for number in range(3)]
            self.acid.insert("d.t", self.frame(new))
            self.rows += new
        elif what == "delete":
            self.acid.delete("d.t", "k % 3 = 0")
            self.rows = [row for row in self.rows if row[key] % 3]
        elif not KINDS[self.kind].count("CLUSTERED"):
            self.acid.update("d.t", {"k": "k + 7"})
            self.rows = [tuple(one + 7 if at == key else one for at, one in enumerate(row)) for row in self.rows]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_that_spark_has(acid: AcidSession, kind: str, seed: int) -> None:
    model, frames = Replaced(acid, kind, seed), list[tuple[DataFrame, list[Any]]]()
    identity = 0
    for _ in range(4):
        model.replace()
        model.check()
        identity = identity or acid.connection.table("d", "t").id
        for _ in range(2):
            model.change()
            model.check()
        frames.append((acid.table("d.t"), rows_of(acid.table("d.t"))))
    assert acid.connection.table("d", "t").id == identity
    for frame, rows in frames:
        assert rows_of(frame) == rows, "who has read the table keeps what he has read"


def test_more_buckets_and_others(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, v string) CLUSTERED BY (id) INTO 2 BUCKETS")
    acid.sql("INSERT INTO d.t SELECT id, id FROM range(50)")
    for clauses, columns, buckets in (
        ("CLUSTERED BY (v) INTO 5 BUCKETS", ("v",), 5),
        ("", (), -1),
        ("CLUSTERED BY (id) INTO 3 BUCKETS", ("id",), 3),
    ):
        acid.sql(f"CREATE OR REPLACE TABLE d.t {clauses} AS SELECT * FROM d.t")
        there = acid.connection.table("d", "t")
        assert (there.bucket_columns, there.buckets if there.bucket_columns else -1) == (columns, buckets)
        assert acid.table("d.t").count() == 50
        assert acid.table("d.t", where="v = '7'").count() == 1
        acid.sql("UPDATE d.t SET v = v WHERE id < 10")
        assert acid.table("d.t").count() == 50


@pytest.mark.parametrize("name", ["p=01", "p=1"])
def test_a_partition_that_is_named_otherwise_is_replaced_once(acid: AcidSession, name: str) -> None:
    """Its rows and the base that empties what gets none are of one partition, whatever its name is."""
    acid.sql("CREATE TABLE d.t (id int) PARTITIONED BY (p int)")
    acid.connection.call("append_partition_by_name", "d", "t", name)
    acid.sql("INSERT INTO d.t VALUES (1, 1), (2, 2)")
    acid.sql("CREATE OR REPLACE TABLE d.t PARTITIONED BY (p) AS SELECT 'a' AS s, 1 AS p")
    assert rows_of(acid.table("d.t")) == rows_of(acid.sql("SELECT * FROM VALUES ('a', 1) AS v(s, p)"))
    acid.sql("INSERT OVERWRITE d.t PARTITION (p = 1) SELECT 'b'")
    assert rows_of(acid.table("d.t")) == rows_of(acid.sql("SELECT * FROM VALUES ('b', 1) AS v(s, p)"))
    assert set(acid.connection.partition_names(acid.connection.table("d", "t"))) == {name, "p=2"}


def test_properties_come_with_it_and_none_of_what_is_ours_is_shown(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int) TBLPROPERTIES ('x' = '1', 'y' = '1')")
    acid.sql("CREATE OR REPLACE TABLE d.t (name string) COMMENT 'new' TBLPROPERTIES ('x' = '2')")
    assert acid.table("d.t").isEmpty()
    there = acid.connection.table("d", "t")
    assert there.parameters.items() >= {"x": "2", "y": "1", "comment": "new"}.items()
    shown = acid.sql("SHOW CREATE TABLE d.t").collect()[0][0]
    assert REPLACED in there.parameters
    assert REPLACED not in shown
    acid.sql("DROP TABLE d.t")
    acid.sql(shown)
    assert acid.table("d.t").columns == ["name"]


def test_constraints_of_columns_that_stay_stay(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int NOT NULL, n int CHECK (n > 0), s string DEFAULT 'x')")
    acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS more, 1 AS id")
    with pytest.raises(HiveAcidError, match="NOT NULL"):
        acid.sql("INSERT INTO d.t VALUES ('b', NULL)")
    acid.sql("INSERT INTO d.t VALUES (NULL, 2)")
    assert {one.columns for one in acid.connection.table("d", "t").constraints} <= {("id",)}


def test_what_fails_changes_nothing(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, c char(3)) TBLPROPERTIES ('x' = '1')")
    acid.sql("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")
    with pytest.raises(Exception, match="here it ends"):
        acid.sql(
            "CREATE OR REPLACE TABLE d.t TBLPROPERTIES ('x' = '2') AS "
            "SELECT CAST(if(id > 1, raise_error('here it ends'), c) AS string) AS other FROM d.t"
        )
    there = acid.connection.table("d", "t")
    assert ([column.name for column in there.columns], there.parameters["x"]) == (["id", "c"], "1")
    assert rows_of(acid.table("d.t"), ["c"]) == rows_of(
        acid.sql("SELECT * FROM VALUES (1, 'a'), (2, 'b') AS v(id, c)"), ["c"]
    )


def test_a_block_keeps_its_definition(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    with pytest.raises(TransactionClosedError, match="before the block or after it"), acid.transaction():
        acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name")
    assert acid.table("d.t").columns == ["id"]


def test_a_snapshot_of_before_is_told_so(acid: AcidSession, other: AcidSession) -> None:
    """Its rows are there, but what the metastore tells of them is of later ones."""
    acid.sql("CREATE TABLE d.t (id int)")
    acid.sql("INSERT INTO d.t VALUES (1)")
    with acid.snapshot():
        other.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name")
        with pytest.raises(SnapshotOutdatedError, match="was given other columns"):
            acid.table("d.t")
    assert acid.table("d.t").columns == ["name"]


def test_a_statement_that_has_begun_before_fails_or_begins_again(
    acid: AcidSession, other: AcidSession, between: Callable[[str, Callable[[], object]], None]
) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    acid.sql("INSERT INTO d.t VALUES (1)")
    between("begin", lambda: other.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name"))
    with pytest.raises(HiveAcidError):
        acid.sql("UPDATE d.t SET id = id + 1")
    assert rows_of(acid.table("d.t")) == rows_of(acid.sql("VALUES ('a')"))


def test_a_read_that_meets_it_begins_again(
    acid: AcidSession, other: AcidSession, between: Callable[[str, Callable[[], object]], None]
) -> None:
    """Its snapshot does not see the rows that the columns, which it asks for after it, are of."""
    acid.sql("CREATE TABLE d.t (id int)")
    acid.sql("INSERT INTO d.t VALUES (1)")
    between("begin", lambda: other.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name"))
    assert rows_of(acid.table("d.t")) == rows_of(acid.sql("VALUES ('a')"))


@pytest.fixture
def other(acid: AcidSession) -> Iterator[AcidSession]:
    """Another client of the same metastore."""
    with hive_acid.spark.session(acid.spark, acid.connection.uri) as session:
        yield session


@pytest.fixture
def between(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], object]], None]:
    """Have something done once, right after the session has begun a transaction."""

    def arrange(moment: str, do: Callable[[], object]) -> None:
        begin, todo = acid.connection.begin, [do]

        def begun(*given: Any, **options: Any) -> Any:
            found = begin(*given, **options)
            if todo:
                todo.pop()()
            return found

        monkeypatch.setattr(acid.connection, moment, begun)

    return arrange


class TestTheCommit:
    """What the server asks before it stores the definition."""

    @pytest.fixture(autouse=True)
    def table(self, acid: AcidSession) -> None:
        acid.sql("CREATE TABLE d.t (id int) PARTITIONED BY (p string)")
        acid.sql("INSERT INTO d.t VALUES (1, 'a')")

    def request(self, connection: Connection, **changed: Any) -> Any:
        wire = connection.call("get_table_req", ttypes.GetTableRequest(dbName="d", tblName="t")).table
        wire.sd.cols = [ttypes.FieldSchema(name="n", type="bigint")]
        for name, value in changed.items():
            setattr(wire.sd if name == "cols" else wire, name, value)
        return wire

    @pytest.mark.parametrize(
        ("changed", "error", "words"),
        [
            ({}, MetaError, "has no write id of d.t"),
            ({"partitionKeys": []}, InvalidOperationError, "partition columns"),
            ({"tableName": "nosuch"}, HiveAcidError, "nosuch"),
            ({"parameters": {}}, MetaError, "cannot be unset"),
            ({"cols": [ttypes.FieldSchema(name="n", type="nosuchtype")]}, InvalidOperationError, "nosuchtype"),
            ({"cols": [ttypes.FieldSchema(name="p", type="int")]}, InvalidOperationError, "twice"),
        ],
    )
    def test_what_cannot_be_stored_commits_nothing(
        self, acid: AcidSession, changed: dict[str, Any], error: type[HiveAcidError], words: str
    ) -> None:
        before = acid.connection.table("d", "t")
        with acid.connection.begin() as transaction:
            if changed:
                transaction.write_id("d", changed.get("tableName", "t"))
            transaction.replace_with_commit(before.id, self.request(acid.connection, **changed))
            with pytest.raises(error, match=words):
                transaction.commit()
            transaction.abort()
        assert acid.connection.table("d", "t") == before

    def test_another_table_is_left_alone(self, acid: AcidSession) -> None:
        with acid.connection.begin() as transaction:
            transaction.write_id("d", "t")
            transaction.replace_with_commit(12345, self.request(acid.connection))
            with pytest.raises(InvalidOperationError, match="is another table now"):
                transaction.commit()
            transaction.abort()

    @pytest.mark.parametrize("is_later", [False, True])
    def test_others_who_write_are_in_the_way(self, acid: AcidSession, is_later: bool) -> None:
        """Also who has committed, by the definition that goes, under a larger write id: it would be read by the new."""
        before = acid.connection.table("d", "t")
        with acid.connection.begin() as transaction, acid.connection.begin() as theirs:
            if is_later:
                transaction.write_id("d", "t")
                theirs.write_id("d", "t")
                theirs.commit()
            else:
                theirs.write_id("d", "t")
                transaction.write_id("d", "t")
            transaction.replace_with_commit(before.id, self.request(acid.connection))
            with pytest.raises(MetaError, match=r"others write to d\.t"):
                transaction.commit()
            transaction.abort()
        assert acid.connection.table("d", "t") == before

    def test_who_was_given_up_is_not_in_the_way(self, acid: AcidSession) -> None:
        with acid.connection.begin() as transaction, acid.connection.begin() as theirs:
            transaction.write_id("d", "t")
            theirs.write_id("d", "t")
            theirs.abort()
            transaction.replace_with_commit(acid.connection.table("d", "t").id, self.request(acid.connection))
        assert [column.name for column in acid.connection.table("d", "t").columns] == ["n"]

    def test_two_at_once(self, acid: AcidSession) -> None:
        """Each has its lock alone: one after the other, whatever they bring along."""
        failures: list[Exception] = []

        def replace(name: str) -> None:
            try:
                acid.sql(f"CREATE OR REPLACE TABLE d.t PARTITIONED BY (p) AS SELECT 1 AS {name}, 'z' AS p")
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=replace, args=(name,)) for name in ("x", "y", "z")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        found = acid.table("d.t")
        assert found.columns[0] in ("x", "y", "z")
        assert [tuple(row) for row in found.collect()] == [(1, "z")]


def test_a_handle_goes_on(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    handle = acid.table("d.t")
    acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name")
    assert handle.update({"name": "concat(name, 'b')"}) == 1
    assert rows_of(acid.table("d.t")) == rows_of(acid.sql("VALUES ('ab')"))


@pytest.mark.skipif(OVER_CONNECT, reason="a stream of a table is not there over Connect")
def test_a_stream_of_the_table_says_so(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    acid.sql("INSERT INTO d.t VALUES (1)")
    stream = acid.read_stream("d.t").writeStream.format("memory").queryName("seen")
    query = stream.option("checkpointLocation", str(tmp_path / "c")).start()
    try:
        query.processAllAvailable()
        acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 'a' AS name")
        with pytest.raises(StreamingQueryException, match="has other columns than when its stream was begun"):
            query.processAllAvailable()
    finally:
        query.stop()
