"""Search arguments: the JVM reads what is written here, and ORC skips row groups by it."""

import base64
import datetime as dt
import random
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.spark import AcidSession
from hive_acid.spark.change import dml
from hive_acid.spark.change.driver_write import driver_deletes
from hive_acid.spark.conditions.orc.sarg import ARGUMENT_OPTION, MOST_LEAVES, NAMES_OPTION, search_options
from hive_acid.spark.conditions.predicates import AllOf, AnyOf, Comparison, NullTest, OneOf, Operator
from tests.spark.plans import scans

LONG_NAME = "a_name_" + "x" * 70
COLUMNS = ["k", "name", "x", "price", "flag", "day", "at", LONG_NAME, "an odd name"]


def compare(column: Any, operator: Any, value: Any) -> Any:
    return Comparison(column, Operator(operator), value)


WORDS = {
    "equal": (compare("k", "=", 5), "leaf-(EQUALS k 5)"),
    "less": (compare("k", "<", -(2**40)), f"leaf-(LESS_THAN k {-(2**40)})"),
    "at most": (compare("k", "<=", 63), "leaf-(LESS_THAN_EQUALS k 63)"),
    "greater": (compare("k", ">", 64), "(not leaf-(LESS_THAN_EQUALS k 64))"),
    "at least": (compare("k", ">=", 2**63 - 1), f"(not leaf-(LESS_THAN k {2**63 - 1}))"),
    "list": (OneOf("k", (-65, 8191, 2**40)), f"leaf-(IN k -65 8191 {2**40})"),
    "list of one": (OneOf("k", (7,)), "(and (not leaf-(LESS_THAN k 7)) leaf-(LESS_THAN_EQUALS k 7))"),
    "null": (NullTest("name", True), "leaf-(IS_NULL name)"),
    "not null": (NullTest("name", False), "(not leaf-(IS_NULL name))"),
    "texts": (OneOf("name", ("", "a", "é", "日本", "\ud7ff", "y" * 70)), f"leaf-(IN name  a é 日本 \ud7ff {'y' * 70})"),
    "zero": (compare("x", "=", 0.0), "(and (not leaf-(LESS_THAN x -0.0)) leaf-(LESS_THAN_EQUALS x 0.0))"),
    "less than a zero": (compare("x", "<", -0.0), "leaf-(LESS_THAN x 0.0)"),
    "at least a zero": (compare("x", ">=", 0.0), "(not leaf-(LESS_THAN x -0.0))"),
    "list with a zero": (OneOf("x", (-1.0, 0.0)), "leaf-(IN x -1.0 -0.0 0.0)"),
    "one bound of the last day": (
        AllOf((compare("day", ">=", dt.date.max), compare("day", "<=", dt.date.max))),
        "(not leaf-(LESS_THAN day 9999-12-30))",
    ),
    "text of nul": (compare("name", "=", "a\0b"), "leaf-(EQUALS name a\0b)"),
    "double": (compare("x", "<", 1.5), "leaf-(LESS_THAN x 1.5)"),
    "decimal": (
        compare("price", "=", Decimal("1000.50")),
        "(and (not leaf-(LESS_THAN price 1000.5)) leaf-(LESS_THAN_EQUALS price 1000.5))",
    ),
    "list of decimals": (
        OneOf("price", (Decimal("-1e3"), Decimal("0.00"), Decimal("12345678901234567890.123456789012345678"))),
        "(and (not leaf-(LESS_THAN price -1000))"
        " leaf-(LESS_THAN_EQUALS price 12345678901234567890.123456789012345678))",
    ),
    "no decimal": (compare("price", "<", Decimal("0.00")), "leaf-(LESS_THAN price 0)"),
    "boolean": (compare("flag", "=", False), "leaf-(EQUALS flag false)"),
    "long name": (compare(LONG_NAME, "=", 1), f"leaf-(EQUALS {LONG_NAME} 1)"),
    "day": (
        compare("day", "=", dt.date(1969, 12, 31)),
        "(and (not leaf-(LESS_THAN day 1969-12-30)) leaf-(LESS_THAN_EQUALS day 1970-01-01))",
    ),
    "times": (
        AllOf(
            (compare("at", ">=", dt.datetime(2020, 1, 2, 3, 4, 5)), compare("at", "<", dt.datetime(1969, 12, 30, 23)))
        ),
        "(and (not leaf-(LESS_THAN at 2020-01-01 03:04:05.0)) leaf-(LESS_THAN at 1969-12-31 23:00:00.0))",
    ),
    "one bound of the last time": (
        AllOf((compare("at", ">=", dt.datetime(9999, 12, 31)), compare("at", "<=", dt.datetime(9999, 12, 31, 1)))),
        "(not leaf-(LESS_THAN at 9999-12-30 00:00:00.0))",
    ),
    "tree": (
        AllOf((compare("k", ">=", 1), AnyOf((compare("k", "<", 9), NullTest("name", True), compare("k", "=", 1))))),
        "(and (not leaf-(LESS_THAN k 1)) (or leaf-(LESS_THAN k 9) leaf-(IS_NULL name) leaf-(EQUALS k 1)))",
    ),
    "unknown part": (AllOf((compare("k", "=", 1), compare("other", "=", 1))), "leaf-(EQUALS k 1)"),
    "unknown alternative": (
        AllOf((compare("k", "=", 1), AnyOf((compare("k", "=", 2), compare("an odd name", "=", 1))))),
        "leaf-(EQUALS k 1)",
    ),
}


def read_by_java(spark: SparkSession, options: Any) -> Any:
    """The argument as the JVM's Kryo reads it, and how it is written again."""
    java = spark.sparkContext._gateway.jvm  # type: ignore[union-attr]
    argument = java.java.util.Base64.getDecoder().decode(options[ARGUMENT_OPTION])
    kind = java.java.lang.Class.forName("org.apache.hadoop.hive.ql.io.sarg.SearchArgumentImpl")
    return java.com.esotericsoftware.kryo.Kryo().readObject(java.com.esotericsoftware.kryo.io.Input(argument), kind)


@pytest.mark.parametrize("name", WORDS)
def test_the_jvm_reads_what_is_meant(spark: SparkSession, name: Any) -> None:
    predicate, words = WORDS[name]
    options = search_options(predicate, COLUMNS)
    found = read_by_java(spark, options)
    assert found.toString() == words
    leaves = found.getLeaves()
    assert [leaves[at].getId() for at in range(len(leaves))] == list(range(len(leaves)))
    assert {leaves[at].getColumnName() for at in range(len(leaves))} == set(options[NAMES_OPTION].split(","))


def test_bytes_are_those_of_java(spark: SparkSession) -> None:
    """One argument byte for byte, made by ORC's own builder."""
    java = spark.sparkContext._gateway.jvm  # type: ignore[union-attr]
    factory = java.org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory
    long = java.org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf.Type.LONG
    built = factory.newBuilder().equals("k", long, 5_000_000_000).build()
    out = java.com.esotericsoftware.kryo.io.Output(100_000)
    java.com.esotericsoftware.kryo.Kryo().writeObject(out, built)
    ours = base64.b64decode(search_options(compare("k", "=", 5_000_000_000), ["k"])[ARGUMENT_OPTION])
    # Java's enumerations stand there once and are then referred to; the second tree is the first one again.
    theirs = bytes(out.toBytes())
    assert ours[: theirs.index(b"ArrayLis")] == theirs[: theirs.index(b"ArrayLis")]


def test_decimals_are_those_of_java(spark: SparkSession) -> None:
    """Every field of a decimal as ORC's own has it: digits of one to three longs, places on both sides, signs."""
    java = spark.sparkContext._gateway.jvm  # type: ignore[union-attr]
    chance = random.Random(7)
    texts = ["0", "0.00", "-0.5", "10", "1e3", "9" * 38, "-" + "9" * 16, "1" + "0" * 32, "0." + "0" * 37 + "1"]
    for _ in range(60):
        digits, scale = chance.randint(1, 38), chance.randint(0, 38)
        texts.append(
            str(chance.choice((1, -1)) * Decimal(chance.randint(0, 10**digits - 1)).scaleb(-min(scale, digits)))
        )
    for text in texts:
        found = read_by_java(spark, search_options(compare("price", "<", Decimal(text)), COLUMNS)).getLeaves()[0]
        kryo, theirs = java.com.esotericsoftware.kryo.Kryo, java.org.apache.hadoop.hive.serde2.io.HiveDecimalWritable
        written = []
        for one in (found.getLiteral(), theirs(f"{Decimal(text):f}")):
            out = java.com.esotericsoftware.kryo.io.Output(1_000)
            kryo().writeObject(out, one)
            written.append(bytes(out.toBytes()))
        assert written[0] == written[1], text


@pytest.mark.parametrize(
    "predicate",
    [
        compare("day", "=", dt.date(1500, 1, 1)), compare("day", "<", dt.date.min), compare("day", "<=", dt.date.max),
        compare("name", "=", "𝄞"), compare("name", ">", "\uffff"), compare("name", "<", "a\ue000"),
        OneOf("name", ("a", "𝄞")), OneOf("day", (dt.date.min, dt.date.max)),
    ],
)  # fmt: skip
def test_what_java_has_in_another_order_is_not_asked(predicate: Any) -> None:
    """Days of the Julian calendar, and texts that are in another order as UTF-16 than as UTF-8."""
    assert search_options(predicate, COLUMNS) == {}


def test_what_cannot_be_asked() -> None:
    assert search_options(compare("other", "=", 1), COLUMNS) == {}
    assert search_options(compare("an odd name", "=", 1), COLUMNS) == {}
    assert search_options(AnyOf(tuple(compare("k", "=", i) for i in range(MOST_LEAVES + 1))), COLUMNS) == {}


ROWS = 200_000


@pytest.fixture
def sorted_rows(acid: AcidSession, spark: SparkSession) -> Any:
    """20 row groups in two files, sorted by k; every other column follows it."""
    types = {"k": "bigint", "name": "string", "x": "double", "day": "date", "part": "int", "flag": "boolean"}
    acid.create_table("d.t", types)
    rows = spark.range(0, ROWS, 1, 2).selectExpr(
        "id AS k",
        "lpad(id, 8, '0') AS name",
        "id / 2 AS x",
        "date_add(date'2000-01-01', cast(id / 100 AS int)) AS day",
        "cast(null AS int) AS part",
        "id < 10000 AS flag",
    )
    for half in (f"k < {ROWS // 2}", f"k >= {ROWS // 2}"):
        acid.insert("d.t", rows.where(half).sortWithinPartitions("k").coalesce(1))
    return acid


RANGES = {
    "k between 150100 and 150300": 10_000,
    "k >= 99990 and k < 100010": 20_000,
    "k = 7": 10_000,
    "k in (7, 199999)": 20_000,
    "name = '00000007'": 10_000,
    "x < 2.5": 10_000,
    "day = date'2000-01-02'": 10_000,
    "flag": 10_000,
    "k < 5 or name > '00199990'": 20_000,
    "k > 5 and k = 8 and part is null": 10_000,
    "k = -1": 0,
}


def test_row_groups_are_skipped(sorted_rows: Any, spark: SparkSession) -> None:
    plain = sorted_rows.table("d.t").toDF(*sorted_rows.table("d.t").columns)
    for condition, most in RANGES.items():
        frame = sorted_rows.table("d.t", where=condition)
        (found,) = scans(frame.select("x")) or [None]  # type: ignore[list-item]
        if found is not None:
            assert found.rows <= most, (condition, found.rows)
            assert "Batched: true" in found.text
        assert frame.count() == plain.where(condition).count(), condition
        chained = sorted_rows.table("d.t").where(condition)
        assert sum(scan.rows for scan in scans(chained)) <= most, condition
    everything = sorted_rows.table("d.t").where("k % 2 = 0")
    assert sum(scan.rows for scan in scans(everything)) == ROWS


def test_deletes_and_updates_are_seen_behind_skipping(sorted_rows: Any) -> None:
    acid = sorted_rows
    acid.delete("d.t", "k between 150100 and 150199")
    acid.update("d.t", {"k": "k + 1000000"}, "k between 150200 and 150249")
    assert acid.table("d.t", where="k between 150100 and 150300").count() == 51
    assert acid.table("d.t", where="k > 1000000").count() == 50
    assert acid.table("d.t").where(F.col("k") == 1_150_200).collect()[0].name == "00150200"
    assert acid.table("d.t").count() == ROWS - 100


def test_without_the_vectorised_reader(sorted_rows: Any, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.orc.enableVectorizedReader", "false")
    try:
        frame = sorted_rows.table("d.t", where="k between 150100 and 150300")
        assert sum(scan.rows for scan in scans(frame)) <= 10_000
        assert frame.count() == 201
    finally:
        spark.conf.unset("spark.sql.orc.enableVectorizedReader")


@pytest.mark.parametrize("condition", ["k BETWEEN 60000 AND 60009", "k = 60000"])
def test_a_change_skips_row_groups_before_and_behind_deletes(
    sorted_rows: Any, monkeypatch: pytest.MonkeyPatch, condition: Any
) -> None:
    """A condition whose numbers are hidden gives Spark nothing to push, which would replace the search argument."""
    seen = []

    def spied(rows: Any, *args: Any) -> Any:
        seen.extend(scans(rows))
        return driver_deletes(rows, *args)

    monkeypatch.setattr(dml, "driver_deletes", spied)
    acid = sorted_rows
    assert acid.delete("d.t", condition) > 0
    assert acid.delete("d.t", condition) == 0
    assert len(seen) == 2
    assert all(scan.rows <= 20_000 and "PushedFilters" not in scan.text for scan in seen), seen
