"""The least and greatest values of columns in SQL: out of tails where they tell, and the same as rows say."""

import random
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT

TYPES = {
    "a": ("bigint", ("9223372036854775807", "-9223372036854775808", "0", "7", "NULL")),
    "b": ("int", ("2147483647", "-2147483648", "0", "NULL")),
    "c": ("tinyint", ("127Y", "-128Y", "0Y", "NULL")),
    "d": ("decimal(20,4)", ("9999999999999999.9999", "-0.0001", "0", "12.5", "NULL")),
    "e": ("date", ("DATE '9999-12-31'", "DATE '1900-01-01'", "DATE '0001-01-01'", "DATE '1582-10-04'", "NULL")),
    "f": ("string", ("''", "'ä'", "'Z'", "repeat('ÿ', 2000)", "NULL")),
    "g": ("double", ("double('NaN')", "-0.0D", "0.0D", "double('-Infinity')", "1.5D", "NULL")),
    "h": ("timestamp", ("TIMESTAMP '2024-03-31 02:30:00.123456'", "TIMESTAMP '1969-12-31 23:59:58.5'", "NULL")),
    "i": ("boolean", ("true", "false", "NULL")),
}
KEYS = {
    "p": ("int", ("1", "20", "NULL")),
    "q": ("date", ("DATE '2024-02-29'", "DATE '1500-01-01'", "NULL")),
    "r": ("string", ("'a/b'", "'Ä'", "'z'", "NULL")),
}
FROM_TAILS = "SELECT min(a), max(a), MIN(b) least, max(t.d), count(*), max(e) FROM d.t"


@pytest.mark.parametrize("seed", range(2))
def test_extremes_are_those_of_rows_whatever_has_been_done(acid: AcidSession, spark: SparkSession, seed: int) -> None:
    choice = random.Random(seed)
    keys = {} if seed == 0 else {name: KEYS[name][0] for name in ("p", "q", "r")[: choice.randrange(1, 4)]}
    columns = {name: kind for name, (kind, _) in TYPES.items()}
    acid.create_table("d.t", columns, partitioned_by=keys)
    asked = ", ".join(f"min({name}), max({name})" for name in (*columns, *keys))
    for step in range(8):
        match choice.randrange(6) if step else 0:
            case 0 | 1:
                acid.insert("d.t", _rows(spark, choice, [*columns, *keys]))
            case 2:
                acid.delete("d.t", f"pmod(hash(a, b, d, e, f), {choice.randrange(2, 5)}) = 0")
            case 3:
                extreme = choice.choice(("max", "min"))
                for row in acid.table("d.t").selectExpr(f"{extreme}(b)").where("true").collect():
                    acid.delete("d.t", f"b <=> {'NULL' if row[0] is None else f'int({row[0]})'}")
            case 4:
                acid.update("d.t", {"b": "b DIV 2", "d": "NULL"}, f"pmod(a, 3) = {choice.randrange(3)}")
            case 5 if not keys:
                compact_table(spark, acid, "d.t", choice.choice(("minor", "major")))
        some = ", ".join(f"{choice.choice(('min', 'max'))}({name})" for name in choice.sample([*columns, *keys], 2))
        told = ", ".join(f"{choice.choice(('min', 'max'))}({name})" for name in choice.sample([*"abcde", *keys], 2))
        for text in (f"count(*), {asked}", some, told):
            found, read = acid.sql(f"SELECT {text} FROM d.t"), acid.sql(f"SELECT {text} FROM d.t LIMIT 9")
            assert _text(found) == _text(read), (step, text)


def _rows(spark: SparkSession, choice: random.Random, names: list[str]) -> DataFrame:
    values = TYPES | KEYS
    lines = [
        ", ".join(f"CAST({choice.choice(values[name][1])} AS {values[name][0]}) AS {name}" for name in names)
        for _ in range(choice.randrange(1, 5))
    ]
    return spark.sql(" UNION ALL ".join(f"SELECT {line}" for line in lines))


def _text(frame: DataFrame) -> str:
    """Each value as Spark writes it: -0.0 is not 0.0, and no day is too early for Python."""
    return str(frame.selectExpr(*(f"string(`{name}`)" for name in frame.columns)).collect())


def _plan(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
def test_no_row_is_read_for_them(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {name: TYPES[name][0] for name in "abdefgh"}, partitioned_by={"p": "int"})
    made = "SELECT id a, int(id) b, id d, date_add('2020-01-01', int(id)) e, 'x' f, 1D g, now() h, int(id % 2) p"
    acid.insert("d.t", spark.sql(f"{made} FROM range(10)"))
    found = acid.sql(FROM_TAILS)
    assert found.columns == ["min(a)", "max(a)", "least", "max(d)", "count(1)", "max(e)"]
    assert [str(value) for value in found.collect()[0]] == ["0", "9", "0", "9.0000", "10", "2020-01-10"]
    assert "Scan orc" not in _plan(found)
    assert "Scan orc" not in _plan(acid.sql("SELECT max(p) FROM d.t"))
    for read in (
        "max(f)",
        "max(g)",
        "max(h)",
        "max(a + 1)",
        "max(DISTINCT a)",
        "max(a) FILTER (WHERE b > 1)",
        "sum(a)",
    ):
        assert "Scan orc" in _plan(acid.sql(f"SELECT {read} FROM d.t")), read


@pytest.mark.skipif(OVER_CONNECT, reason="asks for the plan")
def test_a_file_that_has_lost_rows_is_read_where_it_might_tell_the_extreme(
    acid: AcidSession, spark: SparkSession
) -> None:
    acid.create_table("d.t", {"a": "bigint"})
    for first in (0, 100, 200):
        acid.insert("d.t", spark.range(first, first + 100).coalesce(1).selectExpr("id AS a"))
    acid.delete("d.t", "a = 150")
    assert "Scan orc" not in _plan(acid.sql("SELECT min(a), max(a) FROM d.t"))
    acid.delete("d.t", "a = 299")
    assert "Scan orc" not in _plan(acid.sql("SELECT min(a), count(*) FROM d.t"))
    greatest = acid.sql("SELECT max(a) FROM d.t")
    assert greatest.collect() == [(298,)]
    assert "Scan orc" in _plan(greatest)
    acid.delete("d.t", "a >= 200")
    assert acid.sql("SELECT max(a), count(*) FROM d.t").collect() == [(199, 199)]


def test_a_column_that_has_been_changed_is_the_tables_type(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"a": "int", "b": "int", "d": "decimal(6,2)"})
    acid.sql("INSERT INTO d.t VALUES (1, 5, 1.25), (2, NULL, 9999.99)")
    acid.sql("ALTER TABLE d.t CHANGE a a bigint")
    acid.sql("ALTER TABLE d.t CHANGE b renamed int")
    acid.sql("ALTER TABLE d.t CHANGE d d decimal(10,4)")
    acid.sql("ALTER TABLE d.t ADD COLUMNS (n int)")
    for text in (
        "min(a), max(a), max(T.D)",
        "min(renamed), max(renamed)",
        "min(d), max(D)",
        "min(n), max(n), count(*)",
    ):
        found, read = acid.sql(f"SELECT {text} FROM d.t"), acid.sql(f"SELECT {text} FROM d.t LIMIT 9")
        assert found.dtypes == read.dtypes
        assert found.collect() == read.collect()
