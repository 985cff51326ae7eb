"""Plain tables are filled: the same statements on ours and on Spark's own tables leave the same rows."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import (
    ColumnError,
    HiveAcidError,
    LockTimeoutError,
    TableNotAcidError,
    UnsupportedTableError,
)
from hive_acid.spark import AcidSession
from hive_acid.transactions.locks import plain_component
from hive_acid.transactions.states import TransactionKind
from hive_acid.wire import ttypes
from tests.values.sessions.under import under

PLAIN = "TBLPROPERTIES ('transactional'='false')"
FORMATS = ["STORED AS ORC", "STORED AS PARQUET", "STORED AS JSONFILE", "STORED AS TEXTFILE"]
COLUMNS = "id int, c char(4), v varchar(5), x double, n decimal(6,3), at timestamp, `a b` string, day date, k string"
VALUES = {
    "id": ["1", "-7", "NULL", "2147483647"],
    "c": ["'ab'", "'abcd'", "''", "NULL", "'  b'"],
    "v": ["'ab'", "'é,\"x'", "''", "NULL", "' b '"],
    "x": ["-0.0D", "0.0D", "double('NaN')", "double('-inf')", "1e308D", "NULL"],
    "n": ["0.000", "-999.999", "1.5", "NULL"],
    "at": ["TIMESTAMP '2026-11-29 08:00:00.123456'", "TIMESTAMP '1969-12-31 23:59:58'", "NULL"],
    "a b": ["'a,b'", "'\\\\'", "'ü\\t'", "NULL", "'__HIVE'", "'{}'"],
    "day": ["DATE '9999-12-31'", "DATE '0001-01-01'", "DATE '2026-11-29'", "NULL"],
    "k": ["'x'", "'x/y=z'", "'50%'", "' '", "'ü\\\"'", "NULL", "'A'", "'a'", "'1'", "'01'"],
}


@pytest.fixture
def twin(spark: SparkSession) -> Iterator[Callable[[str], str]]:
    """Makes a table of Spark's own in its default database; it goes with the test."""
    names: list[str] = []

    def make(by: str) -> str:
        name = f"default.twin_{random.getrandbits(48):x}"
        spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING parquet {by}")
        names.append(name)
        return name

    yield make
    for name in names:
        spark.sql(f"DROP TABLE {name}")


def told(frame: Any) -> list[str]:
    """All values as they are: both zeros, and blanks."""
    return sorted(repr(tuple(row)) for row in frame.collect())


def _rows(chance: random.Random, names: list[str]) -> str:
    """Rows out of hostile values."""
    parts = [
        ", ".join(f"{chance.choice(VALUES[name])} AS `{name}`" for name in names) for _ in range(chance.randint(1, 4))
    ]
    return " UNION ALL ".join(f"SELECT {part}" for part in parts)


def _statement(chance: random.Random, keys: list[str]) -> str:
    """An INSERT of some form, with {t} for the table."""
    verb = chance.choice(["INSERT INTO", "INSERT INTO", "INSERT OVERWRITE"])
    names, clause = [*VALUES], ""
    if keys and chance.random() < 0.7:
        static = keys[: chance.randint(0, len(keys))]
        spec = [f"{key}={chance.choice(VALUES[key])}" if key in static else key for key in keys]
        clause, names = f"PARTITION ({', '.join(spec)})", [name for name in names if name not in static]
    elif chance.random() < 0.3:
        chance.shuffle(names)
        clause = f"({', '.join(f'`{name}`' for name in names)})"
    if chance.random() < 0.15:
        return f"{verb} {{t}} {clause} SELECT * FROM ({_rows(chance, names)}) WHERE false"
    return f"{verb} {{t}} {clause} {_rows(chance, names)}"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("keys", [[], ["k"], ["day", "k"]])
def test_same_statements_same_rows(
    acid: AcidSession, spark: SparkSession, twin: Callable[[str], str], form: str, keys: list[str]
) -> None:
    by = f"PARTITIONED BY ({', '.join(keys)})" if keys else ""
    theirs = twin(by)
    columns = {name.strip(): kind for name, kind in (one.rsplit(" ", 1) for one in COLUMNS.split(", "))}
    free = ", ".join(f"{name} {kind}" for name, kind in columns.items() if name not in keys)
    typed = ", ".join(f"{key} {columns[key]}" for key in keys)
    acid.sql(f"CREATE TABLE d.p ({free}) {f'PARTITIONED BY ({typed})' if keys else ''} {form} {PLAIN}")
    chance = random.Random(f"{form} {keys}")
    with under(spark, {"spark.sql.sources.partitionOverwriteMode": "dynamic"}):
        for _ in range(12):
            statement = _statement(chance, keys)
            spark.sql(statement.replace("{t}", theirs))
            acid.sql(statement.replace("{t}", "d.p"))
            assert told(acid.sql("SELECT * FROM d.p")) == told(spark.sql(f"SELECT * FROM {theirs}")), statement
    at = Path(acid.connection.table("d", "p").location.removeprefix("file:"))
    assert not [path for path in at.rglob("*") if path.name.startswith("_")], "nothing is left of the writes"


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_loaded(acid: AcidSession, spark: SparkSession, tmp_path: Path, form: str) -> None:
    acid.sql(f"CREATE TABLE d.s (id int, v string) {form} {PLAIN}")
    acid.sql("INSERT INTO d.s VALUES (1, 'a'), (2, NULL)")
    at = Path(acid.connection.table("d", "s").location.removeprefix("file:"))

    def given(name: str) -> str:
        place = tmp_path / name
        place.mkdir()
        assert len(sorted(at.glob("part*"))) == 2
        for number, file in enumerate(sorted(at.glob("part*"))):
            (place / f"{number}.bin" if number else place / "same").write_bytes(file.read_bytes())
        return str(place)

    acid.sql(f"CREATE TABLE d.p (id int, v string) PARTITIONED BY (k string) {form} {PLAIN}")
    for name, words in (("one", "INTO"), ("two", "INTO"), ("three", "OVERWRITE INTO")):
        place = given(name)
        acid.sql(f"LOAD DATA INPATH '{place}' {words} TABLE d.p PARTITION (k='x y')")
        assert not list(Path(place).iterdir())
        times = 2 if name == "two" else 1
        meant = [(1, "a", "x y"), (2, None, "x y")] * times
        assert sorted(map(tuple, acid.table("d.p").collect()), key=str) == sorted(meant, key=str)
    acid.sql(f"LOAD DATA LOCAL INPATH '{given('four')}/same' INTO TABLE d.p PARTITION (k='z')")
    assert (tmp_path / "four" / "same").exists()
    assert acid.table("d.p", where="k = 'z'").count() == 1
    with pytest.raises(ColumnError, match="partition"):
        acid.sql(f"LOAD DATA INPATH '{tmp_path}/four' INTO TABLE d.p")


@pytest.mark.parametrize("form", ["ORC", "PARQUET", "JSONFILE"])
def test_directories_among_files_are_no_rows(acid: AcidSession, spark: SparkSession, form: str) -> None:
    """Spark took one that is called as a partition for the only one, and the rows of the table were not there."""
    acid.sql(f"CREATE TABLE d.u (id int) STORED AS {form} {PLAIN}")
    acid.sql(f"CREATE TABLE d.p (id int) PARTITIONED BY (k int) STORED AS {form} {PLAIN}")
    acid.sql("INSERT INTO d.u VALUES (1)")
    acid.sql("INSERT INTO d.p VALUES (1, 1), (2, 2)")
    kind = form.removesuffix("FILE").lower()
    for table, below in (("d.u", "k=1"), ("d.u", "_k=1"), ("d.u", "sub"), ("d.p", "k=1/j=2"), ("d.p", "k=2/sub")):
        place = Path(acid.connection.table("d", table[2:]).location.removeprefix("file:"), below)
        spark.sql("SELECT 9 AS id").write.format(kind).save(str(place))
        for read in (lambda name: acid.table(name), lambda name: acid.sql(f"SELECT * FROM {name}")):
            with pytest.raises(UnsupportedTableError, match=rf"{table} has the directory {place.name}/ in"):
                read(table).collect()
        place.rename(place.with_name(f".{place.name}"))
    assert [tuple(row) for row in acid.table("d.u").collect()] == [(1,)]
    assert sorted(map(tuple, acid.table("d.p").collect())) == [(1, 1), (2, 2)]
    spark.sql("SELECT 9 AS id").write.format(kind).save(acid.connection.table("d", "p").location + "/other/deep")
    assert acid.table("d.p").count() == 2, "beside partitions there may be anything"


KINDS = {"plain": PLAIN, "insert-only": "TBLPROPERTIES ('transactional_properties'='insert_only')"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_file_keeps_its_packing(acid: AcidSession, spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """By the end of its name a reader knows how to unpack it."""
    spark.sql("SELECT 'a\\u00011' AS line").coalesce(1).write.option("compression", "gzip").text(str(tmp_path / "gz"))
    acid.sql(f"CREATE TABLE d.p (v string, id int) STORED AS TEXTFILE {KINDS[kind]}")
    acid.sql(f"LOAD DATA INPATH '{tmp_path}/gz' INTO TABLE d.p")
    assert [tuple(row) for row in acid.table("d.p").collect()] == [("a", 1)]
    spark.sql("SELECT 7 AS id").coalesce(1).write.option("compression", "bzip2").json(str(tmp_path / "bz"))
    acid.sql(f"CREATE TABLE d.j (id int) STORED AS JSONFILE {KINDS[kind]}")
    acid.sql(f"LOAD DATA INPATH '{tmp_path}/bz' INTO TABLE d.j")
    assert [tuple(row) for row in acid.table("d.j").collect()] == [(7,)]


@pytest.mark.parametrize("keys", ["", "PARTITIONED BY (k string)"])
def test_what_fails_leaves_nothing(acid: AcidSession, keys: str) -> None:
    columns = "id int" if keys else "id int, k string"
    acid.sql(f"CREATE TABLE d.p ({columns}) {keys} STORED AS PARQUET {PLAIN}")
    acid.sql("INSERT INTO d.p VALUES (1, 'a')")
    at = Path(acid.connection.table("d", "p").location.removeprefix("file:"))
    before = sorted(at.rglob("*"))
    for words in ("INTO", "OVERWRITE"):
        with pytest.raises(HiveAcidError):
            acid.sql(
                f"INSERT {words} d.p SELECT IF(i = 9, raise_error('no'), i), 'b' FROM (SELECT explode(array(8, 9)) i)"
            ).collect()
        assert sorted(at.rglob("*")) == before
    assert [tuple(row) for row in acid.table("d.p").collect()] == [(1, "a")]


def test_what_fails_halfway_is_taken_back(acid: AcidSession) -> None:
    """One partition's files are in place, and the other's have none."""
    acid.sql(f"CREATE TABLE d.p (id int) PARTITIONED BY (k string) STORED AS ORC {PLAIN}")
    acid.sql("INSERT INTO d.p VALUES (1, 'a'), (2, 'b')")
    at = Path(acid.connection.table("d", "p").location.removeprefix("file:"))
    for file in (at / "k=b").iterdir():
        file.unlink()
    (at / "k=b").rmdir()
    (at / "k=b").write_text("a file")
    for words in ("INTO", "OVERWRITE"):
        with pytest.raises((OSError, HiveAcidError)):
            acid.sql(f"INSERT {words} d.p VALUES (3, 'a'), (4, 'b')")
        (at / "k=b").unlink()
        (at / "k=b").mkdir()
        assert [tuple(row) for row in acid.table("d.p").collect()] == [(1, "a")]
        (at / "k=b").rmdir()
        (at / "k=b").write_text("a file")


def test_an_overwrite_may_read_its_table(acid: AcidSession) -> None:
    acid.sql(f"CREATE TABLE d.p (id int, k string) STORED AS PARQUET {PLAIN}")
    acid.sql("INSERT INTO d.p VALUES (1, 'a'), (2, 'b')")
    acid.sql("INSERT OVERWRITE d.p SELECT id + 10, k FROM d.p WHERE id > 1")
    assert [tuple(row) for row in acid.table("d.p").collect()] == [(12, "b")]
    acid.sql("FROM d.p s INSERT OVERWRITE d.p SELECT s.id, 'c' INSERT INTO d.p SELECT s.id + 1, s.k")
    assert sorted(map(tuple, acid.table("d.p").collect())) == [(12, "c"), (13, "b")]


def test_conditions_name_whole_partitions(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql(f"CREATE TABLE d.p (id int) PARTITIONED BY (k char(3), m int) STORED AS ORC {PLAIN}")
    acid.sql("INSERT INTO d.p VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 2), (4, NULL, NULL)")
    acid.sql("INSERT INTO d.p REPLACE WHERE k = 'a' AND m > 1 VALUES (5, 'a', 3)")
    assert sorted(map(tuple, acid.table("d.p").select("id", "m").collect()), key=str) == [
        (1, 1),
        (3, 2),
        (4, None),
        (5, 3),
    ]
    new = spark.createDataFrame([(6, None, None)], "id int, k string, m int")
    acid.overwrite("d.p", new, where="k IS NULL")
    assert {row.id for row in acid.table("d.p").collect()} == {1, 3, 5, 6}
    with pytest.raises(ColumnError, match="not one of those"):
        acid.overwrite("d.p", new, where="m = 2")
    with pytest.raises(UnsupportedTableError, match=r"plain table.*partition columns \(k, m\)"):
        acid.overwrite("d.p", new, where="id = 6")
    acid.overwrite("d.p", new, where="true")
    assert {row.id for row in acid.table("d.p").collect()} == {6}
    acid.sql(f"CREATE TABLE d.u (id int) STORED AS ORC {PLAIN}")
    acid.sql("INSERT INTO d.u VALUES (1)")
    acid.overwrite("d.u", spark.sql("SELECT 2 AS id"), where="1 = 1")
    assert [row.id for row in acid.table("d.u").collect()] == [2]
    acid.overwrite("d.u", spark.sql("SELECT 3 AS id WHERE false"), where="false")
    assert [row.id for row in acid.table("d.u").collect()] == [2]


def test_what_is_somebody_elses_stays(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "data"
    (place / "other").mkdir(parents=True)
    (place / "other" / "rows").write_text("rows")
    acid.sql(f"CREATE EXTERNAL TABLE d.p (id int) STORED AS ORC LOCATION '{place}'")
    acid.sql("INSERT INTO d.p VALUES (1)")
    with pytest.raises(UnsupportedTableError, match="directory other/ in"):
        acid.sql("INSERT OVERWRITE d.p VALUES (2)")
    assert (place / "other" / "rows").read_text() == "rows"
    (place / "other").rename(tmp_path / "other")
    assert [row.id for row in acid.table("d.p").collect()] == [1]
    acid.sql(f"CREATE TABLE d.q (id int) PARTITIONED BY (k int) STORED AS ORC {PLAIN}")
    at = acid.connection.table("d", "q").location
    spark.sql("SELECT 9 AS id").write.orc(f"{at}/k=1")
    with pytest.raises(UnsupportedTableError, match=r"has rows of d\.q, though there is no partition k=1"):
        acid.sql("INSERT INTO d.q VALUES (1, 1)")
    acid.sql("INSERT INTO d.q VALUES (1, 2)")
    acid.sql("INSERT OVERWRITE d.q VALUES (2, 1)")
    assert sorted(map(tuple, acid.table("d.q").collect())) == [(1, 2), (2, 1)]
    elsewhere = tmp_path / "elsewhere"
    spark.sql("SELECT 9 AS id").write.orc(str(elsewhere))
    table = acid.connection.table("d", "q")
    acid.connection.add_partitions(table, {"k=7": f"file:{elsewhere}"})
    for words in ("INTO", "OVERWRITE"):
        with pytest.raises(UnsupportedTableError, match=r"partition k=7 of d\.q lies at"):
            acid.sql(f"INSERT {words} d.q VALUES (2, 7)")
    assert list(elsewhere.glob("part*"))


def test_partitions_of_other_names_are_met(acid: AcidSession, spark: SparkSession) -> None:
    """As Hive may have named them: a write goes to the partition of its value."""
    acid.sql(f"CREATE TABLE d.p (id int) PARTITIONED BY (k int) STORED AS PARQUET {PLAIN}")
    table = acid.connection.table("d", "p")
    acid.connection.add_partitions(table, {"k=01": f"{table.location}/k=01"})
    acid.sql("INSERT INTO d.p VALUES (1, 1)")
    acid.sql("INSERT INTO d.p PARTITION (k=1) VALUES (2)")
    assert acid.connection.partition_names(table) == ["k=01"]
    assert sorted(map(tuple, acid.table("d.p").collect())) == [(1, 1), (2, 1)]
    acid.overwrite("d.p", spark.sql("SELECT 3 AS id, 1 AS k"), where="true")
    assert [tuple(row) for row in acid.table("d.p").collect()] == [(3, 1)]


def test_numbers_of_rows_are_not_believed_any_more(acid: AcidSession) -> None:
    """Hive answers a count of a plain table from what the metastore has."""
    acid.sql(f"CREATE TABLE d.p (id int) PARTITIONED BY (k int) STORED AS ORC {PLAIN}")
    acid.sql("INSERT INTO d.p VALUES (1, 1)")
    counted = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "numRows": "1"}
    wire = acid.connection.wire_table("d", "p")
    wire.parameters |= counted
    its_own = ttypes.EnvironmentContext(properties={"STATS_GENERATED": "TASK"})
    acid.connection.call("alter_table_with_environment_context", "d", "p", wire, its_own)
    part = acid.connection.call("get_partition_by_name", "d", "p", "k=1")
    part.parameters = counted
    acid.connection.call("alter_partitions_with_environment_context", "d", "p", [part], its_own)
    assert "COLUMN_STATS_ACCURATE" in acid.connection.call("get_partition_by_name", "d", "p", "k=1").parameters
    acid.sql("INSERT INTO d.p VALUES (2, 1)")
    assert "COLUMN_STATS_ACCURATE" not in acid.connection.call("get_partition_by_name", "d", "p", "k=1").parameters
    assert "COLUMN_STATS_ACCURATE" not in acid.connection.wire_table("d", "p").parameters


def test_overwrites_wait_for_one_another(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql(f"CREATE TABLE d.p (id int) STORED AS ORC {PLAIN}")
    impatient = hive_acid.spark.session(spark, acid.connection, lock_timeout_ms=200)
    with acid.connection.begin(TransactionKind.WRITE) as transaction:
        transaction.lock(plain_component("d", "p"))
        acid.sql("INSERT INTO d.p VALUES (1)")
        with pytest.raises(LockTimeoutError, match=r"d\.p"):
            impatient.sql("INSERT OVERWRITE d.p VALUES (2)")
    assert [row.id for row in acid.table("d.p").collect()] == [1]


def test_refused_by_a_sentence(acid: AcidSession) -> None:
    acid.sql(f"CREATE TABLE d.b (id int) CLUSTERED BY (id) INTO 2 BUCKETS STORED AS ORC {PLAIN}")
    with pytest.raises(UnsupportedTableError, match=r"d\.b is CLUSTERED BY"):
        acid.sql("INSERT INTO d.b VALUES (1)")
    acid.sql(f"CREATE TABLE d.s (id string) STORED AS SEQUENCEFILE {PLAIN}")
    with pytest.raises(UnsupportedTableError, match="SequenceFile"):
        acid.sql("INSERT INTO d.s VALUES ('1')")
    acid.sql(f"CREATE TABLE d.p (id int) STORED AS ORC {PLAIN}")
    for words in ("UPDATE d.p SET id = 1", "MERGE INTO d.p USING d.p s ON p.id = s.id WHEN MATCHED THEN DELETE"):
        with pytest.raises(TableNotAcidError, match="convert_table"):
            acid.sql(words)
    told = acid.sql("EXPLAIN INSERT OVERWRITE d.p VALUES (1)").collect()[0][0]
    assert "since the table is plain" in told
    assert acid.table("d.p").count() == 0
