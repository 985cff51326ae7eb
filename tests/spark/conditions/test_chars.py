"""CHAR columns: blanks at the end do not count, wherever a value meets one, as in Hive and in Spark's own tables."""

import re
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError, MergeCardinalityError, SqlError
from hive_acid.spark import AcidSession
from tests.sampling import Sample
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.placed import BUCKET_0, commit_writes, write_events

VALUES = ["ab", "abcd", "", None, "a", "a\t", " ab", "éé", "\U0001f600", "ab c", "AB"]
SOME = {value for value in VALUES if value is not None}

BY_SPARK = [
    "c = 'ab'", "c = 'ab  '", "c = 'ab       '", "'ab' = c", "c <> 'ab'", "c <=> 'ab'", "NOT (c = 'ab')", "c > 'ab'",
    "c >= 'ab'", "c < 'ab'", "c <= 'ab'", "c IN ('ab', 'x')", "c NOT IN ('ab', 'abcdefg')", "c = ''", "c > ''",
    "c = 'a\t'", "c < 'a'", "c LIKE 'ab%'", "length(c) = 4", "rtrim(c) = 'ab'", "c = concat('a', 'b')", "c IS NULL",
    "CASE c WHEN 'ab' THEN true END", "c = 'é' OR c = 'éé'", "c = '\U0001f600'", "c = wide", "c = 'a''b' OR c = 'ab'",
]  # fmt: skip
"""Conditions that mean the same to a table of Spark's own."""

BY_HIVE = {
    "c BETWEEN 'ab' AND 'ab'": {"ab"},
    "c BETWEEN 'ab  ' AND 'ab'": {"ab"},
    "c BETWEEN 'a\t' AND 'a'": {"a", "a\t"},
    "c NOT BETWEEN 'ab' AND 'b'": SOME - {"ab", "abcd", "ab c"},
    "c = name": SOME,
    "name = c": SOME,
    "t.c <> name": set(),
    "c <= name AND `c` >= t.name": SOME,
    "c = concat(name, '')": SOME,
    'c = name AND c <> "x"': SOME,
    'c BETWEEN "ab" AND "ab"': {"ab"},
    "c = name OR name = 'say \"x\"'": SOME,
    r"c BETWEEN 'ab' AND 'ab' OR name = 'it\'s'": {"ab"},
    r"name <> 'a\\' AND c BETWEEN 'ab' AND 'ab'": {"ab"},
    r"c = name AND name NOT IN ('\'', '\\\'', 'x\"', '\\', 'C:\\d')": SOME,
    r"name = 'x\' OR c = \'ab' OR c BETWEEN 'ab' AND 'ab'": {"ab"},
    r"""c BETWEEN 'ab' AND 'ab' OR name = "it\"s " || '\\' """: {"ab"},
    r"c = name AND name <> r'\'": SOME,
    "c IN (name, 'x')": SOME,
    "c IN ('ab', NULL)": {"ab"},
    "c IN ('ab  ', 'AB ', NULL)": {"ab", "AB"},
    "CASE WHEN c BETWEEN 'ab' AND 'ab' THEN c = name ELSE c = 'abcd' END": {"ab", "abcd"},
    "CASE c WHEN name THEN true END": SOME,
    "CASE name WHEN 'x' THEN false WHEN c THEN true END": SOME,
    "nullif(c, 'ab') IS NULL AND c IS NOT NULL": {"ab"},
    "nullif(c, '') IS NULL AND nullif(name, c) IS NULL AND id < 3": {""},
    "nullif(c, 'x') = 'ab'": {"ab"},
    "equal_null(c, name) AND NOT equal_null(c, 'ab')": {*VALUES} - {"ab"},
    "c IS DISTINCT FROM name": set(),
    "decode(c, 'x', false, name, true, false)": {*VALUES},
    "nvl2(c, c, 'x') = 'ab'": {"ab"},
    "(c, id) IN (('ab', 0), ('abcd', 0), ('AB  ', 10))": {"ab", "AB"},
    "(id, c) = (0, 'ab') OR (c, name) < ('AC', 'z')": {"ab", "", "AB", " ab", None},
    "struct(c, id) = struct(name, id)": {*VALUES},
    "named_struct('k', c) <=> named_struct('k', 'ab')": {"ab"},
    "array_contains(array(wide, c), 'ab')": {"ab"},
    "array_contains(array('ab', 'abcd'), c)": {"ab", "abcd"},
    "map('ab', 1, 'AB', 2)[c] = 2": {"AB"},
    "element_at(map('ab', 1), c) IS NOT NULL": {"ab"},
    "map_contains_key(map('ab', 1), c)": {"ab"},
    "c LIKE 'ab'": {"ab"},
    "c LIKE '_b'": {"ab"},
    "c LIKE 'ab%' AND c NOT LIKE 'ab %'": {"ab", "abcd"},
    "NOT c LIKE 'a%' AND upper(c) LIKE '%B'": {" ab", "AB"},
    "t.c LIKE ANY ('AB', '%cd') OR c LIKE SOME ('x')": {"abcd", "AB"},
    "c LIKE ALL ('%b', 'a%')": {"ab"},
    "c ILIKE 'Ab'": {"ab", "AB"},
    "c LIKE '_b' ESCAPE '/' AND c NOT LIKE '%/%%' ESCAPE '/'": {"ab"},
    "c RLIKE 'b$'": {"ab", " ab"},
    "c REGEXP '^.{2}$'": {"ab", "a\t", "éé", "AB"},
    "name LIKE c": SOME,
    "'ab' LIKE c OR coalesce(c, 'x') LIKE 'abc_'": {"ab", "abcd"},
}
"""Conditions that need Hive's rule where Spark has none, and the values for which they are true."""


@pytest.fixture
def chars(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"id": "int", "c": "char(4)", "wide": "char(6)", "name": "string"})
    rows = [(n, value, value, value) for n, value in enumerate(VALUES)]
    acid.insert("d.t", spark.createDataFrame(rows, "id int, c string, wide string, name string"))
    return acid


def ids(frame: Any) -> Any:
    return sorted(row.id for row in frame.select("id").collect())


def test_conditions_are_those_of_a_table_of_sparks_own(
    chars: Any, spark: SparkSession, tmp_path: Path, sample: Sample
) -> None:
    spark.sql(f"CREATE TABLE own (id int, c char(4), wide char(6), name string) USING orc LOCATION '{tmp_path}/own'")
    try:
        chars.table("d.t").write.insertInto("own")
        for condition in sample.of(BY_SPARK):
            expected = ids(spark.table("own").where(condition))
            assert ids(chars.table("d.t").where(condition)) == expected, condition
            assert ids(chars.sql(f"SELECT id FROM d.t WHERE {condition}")) == expected, condition
            assert ids(chars.table("d.t").select("*").where(condition)) == expected, condition
        assert ids(chars.sql("SELECT id FROM d.t WHERE c = :v", args={"v": "ab"})) == [0]
        for column in (F.col("c") == "ab", F.col("c") <= F.lit("ab"), F.col("c").between("ab", "ab")):
            assert ids(chars.table("d.t").where(column)) == ids(spark.table("own").where(column)) != []
        frame = chars.table("d.t")
        assert ids(frame.where(frame.c.isin("ab", "x"))) == [0]
        joined = frame.alias("a").join(frame.alias("b"), F.expr("a.c = b.wide")).selectExpr("a.id")
        assert ids(joined) == [n for n, value in enumerate(VALUES) if value is not None]
    finally:
        spark.sql("DROP TABLE own")


MARKED = [condition for condition in [*BY_SPARK, *BY_HIVE] if not set('\\"') & set(condition) and "''" not in condition]
"""Of the conditions those whose texts can be found by their quotes."""


@pytest.mark.parametrize("blanks", ["", "  "])
def test_a_parameter_means_what_its_text_does(chars: Any, blanks: Any, sample: Sample) -> None:
    """Of each condition every text is a parameter, named or not, or one of several ways to write it down."""
    for condition in sample.of(MARKED):
        kept = "" if re.search("LIKE|REGEXP|concat", condition) else blanks
        texts = [text + kept for text in re.findall("'([^']*)'", condition)]
        query = "SELECT id FROM d.t WHERE " + re.sub("'[^']*'", "{}", condition)
        expected = ids(chars.sql(query.format(*(f"'{text}'" for text in texts))))
        named = {f"p{n}": text for n, text in enumerate(texts)}
        assert ids(chars.sql(query.format(*(f":{name}" for name in named)), named)) == expected, condition
        assert ids(chars.sql(query.format(*"?" * len(texts)) + " AND ? = 7", [*texts, 7])) == expected, condition
        assert ids(chars.sql(query.format(*(f'r"{text}"' for text in texts)))) == expected, condition


@pytest.mark.parametrize("condition", ["c = :v", "c IN (:v, NULL)", "c BETWEEN :v AND :v", "(c, id) = (:v, 11)"])
def test_a_parameter_may_have_quotes(chars: Any, spark: SparkSession, condition: Any) -> None:
    """Of such texts our literals are no literals to Spark."""
    chars.insert("d.t", spark.sql("""SELECT 11 AS id, "it's" AS c, 'x' AS wide, 'x' AS name"""))
    given = {"v": "it's "}
    assert ids(chars.sql(f"SELECT id FROM d.t WHERE {condition}", given)) == [11]
    assert chars.sql(f"UPDATE d.t SET wide = 'y' WHERE {condition}", given).collect()[0][0] == 1
    assert chars.sql(f"DELETE FROM d.t WHERE {condition}", given).collect()[0][0] == 1


def test_columns_may_be_arguments(chars: Any) -> None:
    """As those of Spark's own `sql`: they stay what they are, and Spark compares them as it does constants."""
    assert ids(chars.sql("SELECT id FROM d.t WHERE c = :v AND id < :n", {"v": F.lit("ab "), "n": F.lit(9)})) == [0]
    assert ids(chars.sql("SELECT id FROM d.t WHERE c = ? AND id < ?", [F.lit("ab "), 9])) == [0]
    with pytest.raises(SqlError, match="Column can be given to queries only"):
        chars.sql("DELETE FROM d.t WHERE c = :v", {"v": F.lit("ab")})


@pytest.mark.parametrize("writer", ["here", "elsewhere"])
def test_conditions_by_hives_rule(chars: Any, writer: Any, sample: Sample) -> None:
    if writer == "elsewhere":  # Trino and Hive, with any number of blanks
        chars.drop_table("d.t")
        chars.create_table("d.t", {"id": "int", "c": "char(4)", "wide": "char(6)", "name": "string"})
        file = commit_writes(chars, "d.t", 1) / "delta_0000001_0000001_0000" / "bucket_00000"
        row = pyarrow.struct([("id", pyarrow.int32()), *((of, pyarrow.string()) for of in ("c", "wide", "name"))])
        texts = [(n, None if value is None else value + " " * (n % 3), value) for n, value in enumerate(VALUES)]
        rows = [{"id": n, "c": c, "wide": c, "name": name} for n, c, name in texts]
        write_events(file, [(0, 1, BUCKET_0, n, 1, of) for n, of in enumerate(rows)], row)
    for condition in sample.of(BY_HIVE):
        expected = [n for n, value in enumerate(VALUES) if value in BY_HIVE[condition]]  # type: ignore[operator]
        frame = chars.table("d.t")
        assert ids(frame.where(condition.replace("t.", ""))) == expected, condition
        assert ids(chars.sql(f"SELECT id FROM d.t WHERE {condition}")) == expected, condition
        assert chars.update("d.t", {"wide": "'x'"}, where=condition) == len(expected), condition
    assert chars.update("d.t", {"wide": "'x'"}, where=F.col("c") == F.col("name")) == len(SOME)
    for column in (F.col("c").like("_b"), F.col("c").rlike("^.b$"), F.col("c").ilike("_B") & (F.col("id") < 9)):
        assert chars.update("d.t", {"wide": "'x'"}, where=column) == 1, column
    assert ids(chars.sql("SELECT a.id FROM d.t a JOIN d.t b ON a.c = b.name")) == ids(
        chars.table("d.t").where("c IS NOT NULL")
    )
    assert chars.delete("d.t", "c <> name OR c <> 'ab'") == len(SOME) - 1
    assert ids(chars.table("d.t")) == [0, 3]


@pytest.mark.parametrize("on", ["t.c = s.c", "s.c=t.`c` AND t.id >= 0", "column", "t.c = concat(s.c, '')"])
def test_sources_of_texts_match(chars: Any, spark: SparkSession, on: Any) -> None:
    given = [("ab", 10), ("abcd   ", 11), ("a", 12), ("zz ", 13), ("abcdefg", 14), (None, 15)]
    source = spark.createDataFrame(given, "c string, n int").where("n <> 14")
    condition = F.col("t.c") == F.col("s.c") if on == "column" else on
    longer = spark.createDataFrame(given, "c string, n int")
    assert chars.update("d.t", {"id": "s.n"}, source=longer, on=condition) == 3 if "concat" not in on else True
    merging = chars.merge("d.t", source, on=condition)
    counts = merging.whenMatchedUpdate(set={"name": "s.c"}).whenNotMatchedInsert(
        values={"id": "n", "c": "s.c", "wide": "s.c", "name": "s.c"}
    ).execute()  # fmt: skip
    matched = 3 if "concat" not in on else 2  # the blanks of an expression are its own
    assert (counts.updated, counts.inserted) == (matched, 5 - matched)
    names = {row.name for row in chars.table("d.t").where("c IN ('abcd', 'zz')").collect()}
    assert names == ({"abcd   ", "zz "} if matched == 3 else {"abcd", "abcd   ", "zz "})
    assert chars.delete("d.t", source=source.where("n < 13"), on=condition) >= matched


def test_two_rows_of_a_source_that_differ_in_blanks_are_one_match_too_many(chars: Any, spark: SparkSession) -> None:
    source = spark.createDataFrame([("ab",), ("ab ",)], "c string")
    for by_spark in (False, True):
        with pytest.raises(MergeCardinalityError):
            merging = chars.merge("d.t", source, on="t.c = s.c").whenMatchedDelete()
            if by_spark:
                with limited(chars, **WRITTEN):
                    merging.execute()
            else:
                merging.execute()


def test_nested_chars(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table(
        "d.t", {"id": "int", "s": "struct<c:char(4),v:varchar(4)>", "a": "array<char(4)>", "m": "map<char(4),char(2)>"}
    )
    values = "named_struct('c', concat('ab', blanks), 'v', concat('ab', blanks)) s, array(concat('ab', blanks), null) a"
    given = spark.createDataFrame([(n, " " * n) for n in range(6)], "id int, blanks string")
    frame = given.selectExpr(
        "id", values.split(", array")[0], "array" + values.split(", array")[1], "map(concat('ab', blanks), blanks) m"
    )
    acid.insert("d.t", frame)
    for condition in (
        "s.c = 'ab'", "s.c = 'ab '", "s.c <=> 'ab  '", "a[0] = 'ab'", "get(a, 0) IN ('ab  ', 'x')", "m['ab'] = ''",
        "array_contains(a, 'ab')", "s.c IN ('ab', 'x')", "s.c BETWEEN 'ab ' AND 'ab'", "s.c > 'ab\t' AND s.c < 'b '",
    ):  # fmt: skip
        assert acid.table("d.t").where(condition).count() == 6, condition
        assert acid.update("d.t", {"id": "id"}, where=condition) == 6, condition
    assert [len(row.v) for row in acid.table("d.t").orderBy("id").select("s.v").collect()] == [2, 3, 4, 4, 4, 4]
    for long in ("named_struct('c', 'abcde', 'v', '')", "named_struct('c', '', 'v', 'abcde')"):
        with pytest.raises(ColumnError, match="longer"):
            acid.insert("d.t", spark.sql(f"SELECT 1 id, {long} s, null a, null m"))
    null = spark.sql("SELECT 9 id, null s, array(null) a, null m")
    acid.insert("d.t", null)
    assert [tuple(row) for row in acid.table("d.t").where("id = 9").collect()] == [(9, None, [None], None)]


def test_char_partition_keys(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"c": "char(4)"})
    acid.insert("d.t", spark.createDataFrame([(1, "ab"), (2, "ab  "), (3, "cd"), (4, None)], "id int, c string"))
    acid.sql("INSERT INTO d.t PARTITION (c = 'ab') VALUES (5)")
    assert ids(acid.table("d.t").where("c = 'ab'")) == [1, 2, 5]
    assert ids(acid.sql("SELECT id FROM d.t WHERE c IN ('ab') AND c BETWEEN 'ab' AND 'ab'")) == [1, 2, 5]
    outside = "NOT (c BETWEEN 'aa' AND 'ac ') AND (c) > 'ab ' AND 'x' >= c AND 'cd ' LIKE 'cd%' AND (c LIKE 'cd')"
    assert ids(acid.sql(f"SELECT id FROM d.t WHERE {outside}")) == [3]
    assert ids(acid.sql("SELECT id FROM d.t AS x WHERE (x.c BETWEEN 'aa ' AND 'ac') AND NOT x.c LIKE 'cd'")) == [
        1,
        2,
        5,
    ]
    source = spark.createDataFrame([("ab", 7), ("ef", 8)], "c string, n int")
    counts = (
        acid.merge("d.t", source, on="t.c = s.c")
        .whenMatchedUpdate(set={"c": "s.c"})
        .whenNotMatchedInsert(values={"id": "n", "c": "s.c"})
        .execute()
    )
    assert (counts.updated, counts.inserted) == (3, 1)
    assert len(acid.sql("SHOW PARTITIONS d.t").collect()) == 4
    assert acid.delete("d.t", "c <> 'ab'") == 2
    acid.overwrite("d.t", spark.sql("SELECT 9 AS id"), partition={"c": "ab"})
    assert ids(acid.table("d.t")) == [4, 9]


def test_rows_are_replaced_where_a_char_says_so(chars: Any, spark: SparkSession) -> None:
    row = spark.sql("SELECT 50 id, 'ab' c, '' wide, 'ab' name")
    for where in ("c = 'ab'", "c BETWEEN 'ab' AND 'ab'", "c = name AND c BETWEEN 'ab' AND 'ab '"):
        chars.overwrite("d.t", row, where=where)
        assert ids(chars.table("d.t")) == [*range(1, len(VALUES)), 50], where
        row = row.union(row).distinct()


def test_keys_of_streams(chars: Any, spark: SparkSession) -> None:
    sink = chars.sink("d.t", keys=["c"], mode="upsert", query="q", order_by="id")
    batch = spark.createDataFrame(
        [(20, "ab", "", "new"), (21, "ab ", "", "newer")], "id int, c string, wide string, name string"
    )
    sink(batch, 0)
    assert [(row.id, row.name) for row in chars.table("d.t").where("c = 'ab'").collect()] == [(21, "newer")]


def test_what_is_made_of_a_frame_has_its_chars(acid: AcidSession, spark: SparkSession) -> None:
    """As texts they would have the blanks at their ends, and a condition would not find them."""
    acid.create_table("d.t", {"id": "int", "c": "char(4)"})
    acid.insert("d.t", spark.sql("SELECT 1 id, 'ab' c UNION ALL SELECT 2, 'abcd'"))
    acid.create_table_as("d.a", acid.table("d.t"))
    acid.sql("CREATE TABLE d.b AS SELECT *, id AS n FROM d.t")
    acid.create_table_as("d.c", acid.table("d.t"), partitioned_by=["c"])
    acid.create_table("d.e", {"id": "int"})
    acid.insert("d.e", acid.table("d.t"), schema_evolution=True)
    acid.create_table("d.f", {"id": "int"})
    acid.merge("d.f", acid.table("d.t"), "t.id = s.id").withSchemaEvolution().whenNotMatchedInsertAll().execute()
    for name in "abcef":
        table = acid.connection.table("d", name)
        assert {of.name: of.type for of in (*table.columns, *table.partition_keys)}["c"] == "char(4)", name
        assert ids(acid.table(f"d.{name}").where("c = 'ab'")) == [1], name
        assert acid.delete(f"d.{name}", "c = 'ab'") == 1
    acid.create_table_as("d.g", acid.table("d.t").selectExpr("id", "rtrim(c) c"))
    assert acid.connection.table("d", "g").columns[1].type == "string"


@pytest.mark.parametrize("kind", ["string", "varchar(9)", "char(2)", "char(9)"])
def test_chars_of_a_source_meet_texts(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    """Whichever side the CHAR is on: a MERGE would insert what is there."""
    acid.create_table("d.s", {"c": "char(4)", "n": "int"})
    acid.insert("d.s", spark.sql("SELECT 'ab' c, 1 n UNION ALL SELECT 'cd', 2"))
    acid.create_table("d.t", {"id": "int", "v": kind})
    acid.insert("d.t", spark.sql("SELECT 1 id, 'ab' v UNION ALL SELECT 2, 'x'"))
    for on in ("t.v = s.c", "s.c = v AND n > 0", "t.v IN (s.c)", F.col("t.v") == F.col("s.c")):
        merge = acid.merge("d.t", acid.table("d.s"), on).whenMatchedUpdate(set={"id": "t.id + 10"})
        assert tuple(merge.whenNotMatchedInsert("s.c <> 'cd'", {"id": "n", "v": "c"}).execute()) == (0, 1, 0), on
    acid.sql("MERGE INTO d.t USING d.s s ON t.v = s.c WHEN MATCHED THEN UPDATE SET id = 100")
    assert acid.update("d.t", {"id": "t.id + n"}, source=acid.table("d.s"), on="v = c") == 1
    assert ids(acid.table("d.t")) == [2, 101]
    assert acid.delete("d.t", source=acid.table("d.s"), on="t.v = s.c AND s.c = 'ab'") == 1
    assert ids(acid.table("d.t")) == [2]


SUBQUERIES = {
    "c IN (SELECT c FROM d.o)": {"ab", "abcd"},
    "c IN (SELECT wide FROM d.o)": {"ab", "abcd"},
    "c IN (SELECT k FROM d.o)": {"ab", "abcd"},
    "name IN (SELECT c FROM d.o)": {"ab", "abcd"},
    "name IN (SELECT wide FROM o WHERE n < 9)": {"ab", "abcd"},
    "c NOT IN (SELECT k FROM d.o WHERE k IS NOT NULL)": SOME - {"ab", "abcd"},
    "c NOT IN (SELECT c FROM o WHERE c IS NOT NULL)": SOME - {"ab", "abcd"},
    "c IN (SELECT c FROM o UNION ALL SELECT k FROM o)": {"ab", "abcd"},
    "c IN (SELECT DISTINCT x.wide FROM o AS x WHERE x.n < 9)": {"ab", "abcd"},
    "upper(c) IN (SELECT upper(c) FROM d.o)": {"ab", "abcd", "AB"},
    "c = (SELECT max(c) FROM d.o WHERE n = 1)": {"ab"},
    "c = (SELECT max(wide) FROM o WHERE n = 1)": {"ab"},
    "(SELECT k FROM d.o WHERE n = 1) = c": {"ab"},
    "c <= (SELECT max(k) FROM o WHERE n = 1) AND c >= (SELECT c FROM d.o WHERE n = 1)": {"ab"},
    "name = (SELECT min(wide) FROM o WHERE n = 1)": {"ab"},
    "EXISTS (SELECT 1 FROM d.o WHERE o.k = t.c)": {"ab", "abcd"},
    "EXISTS (SELECT 1 FROM o WHERE o.k = t.c)": {"ab", "abcd"},
    "EXISTS (SELECT 1 FROM o WHERE t.name = o.c)": {"ab", "abcd"},
    "NOT EXISTS (SELECT 1 FROM o WHERE o.wide = t.c) AND t.c IS NOT NULL": SOME - {"ab", "abcd"},
    "c = upper(wide)": {"", "AB"} | {value for value in SOME if value.upper() == value},
    "c = concat(c, '')": SOME,
    "c = rtrim(c)": SOME,
    "c = ltrim(c)": SOME - {" ab", ""},
    "c = substring(c, 1, 2)": {value for value in SOME if len(value) == 2},
    "c = coalesce(wide, name)": SOME,
    "c = CASE WHEN id >= 0 THEN wide ELSE name END": SOME,
}
"""Conditions with subqueries and functions, and the values for which they are true."""


def test_names_that_need_quotes(acid: AcidSession, spark: SparkSession) -> None:
    columns = {"id": "bigint", "a.b": "char(4)", "a b": "char(6)", "a": "struct<b:string>", "order": "char(4)"}
    acid.create_database("odd")
    acid.create_table("odd.t", columns)
    rows = spark.sql("SELECT 1L id, 'ab' `a.b`, 'ab' `a b`, struct('x') a, 'ab' `order`")
    assert acid.insert("odd.t", rows) == 1
    found = acid.table("odd.t").where("`a.b` = 'ab' AND `a b` = 'ab' AND a.b = 'x' AND `order` = `a.b`")
    assert [tuple(row) for row in found.collect()] == [(1, "ab  ", "ab    ", ("x",), "ab  ")]
    name = F.col("`a b`")
    for chosen in (name == F.col("`a.b`"), name.between("ab", "ab"), name.isin("ab") & (F.col("id") > 0)):
        assert acid.table("odd.t").where(chosen).count() == 1
    given = spark.sql("SELECT 2L id, 'ab' `x y`, 'ab' `a\"b`")
    for condition in (
        't.`a b` = s.`a"b` AND t.`a.b` = s.`x y`',
        't.`a b` = s.`x y` AND t.`order` <> "x"',
        F.col("t.`a b`") == F.col('s.`a"b`'),
        (F.col("t.`order`") == F.col("s.`x y`")) & (F.col("s.id") == 2),
    ):
        assert acid.merge("odd.t", given, condition).whenMatchedUpdate(set={"id": "t.id"}).execute().updated == 1
    assert acid.update("odd.t", {"`a.b`": "`order`"}, "`a b` = `a.b`") == 1
    assert acid.delete("odd.t", "`a.b` = 'ab' AND `order` = `a.b`") == 1


def test_subqueries_and_functions_of_chars(chars: Any, spark: SparkSession) -> None:
    """`o` is a table, and a view of it: its texts have other lengths to Spark."""
    chars.create_table("d.o", {"n": "int", "c": "char(4)", "wide": "char(6)", "k": "string"})
    rows = [(1, "ab", "ab", "ab"), (2, "abcd", "abcd", "abcd "), (9, None, None, None)]
    chars.insert("d.o", spark.createDataFrame(rows, "n int, c string, wide string, k string"))
    chars.table("d.o").createOrReplaceTempView("o")
    expected = {of: [n for n, value in enumerate(VALUES) if value in values] for of, values in SUBQUERIES.items()}
    asked = [chars.sql(f"SELECT {at} AS at, id FROM d.t AS t WHERE {of}") for at, of in enumerate(expected)]
    rows = reduce(DataFrame.unionAll, asked).collect()
    found = {of: sorted(row.id for row in rows if row["at"] == at) for at, of in enumerate(expected)}
    assert found == expected
    with chars.transaction():
        for at, (condition, right) in enumerate(expected.items()):
            verb = "UPDATE d.t AS t SET wide = wide" if at % 3 else "DELETE FROM d.t AS t"
            if at % 3 or not right:
                assert chars.sql(f"{verb} WHERE {condition}").collect()[0][0] == len(right), condition
    assert chars.sql(f"DELETE FROM d.t AS t WHERE {next(iter(expected))}").collect()[0][0] == 2


JOINED = (
    "d.t JOIN o ON t.c = o.name",
    "(SELECT id, c AS k FROM d.t) q JOIN o ON q.k = o.name",
    "(SELECT t.* FROM d.t WHERE id >= 0) AS t(id, k, w, n) JOIN o ON k = o.name",
    "q JOIN o ON q.c = o.name",
    "r JOIN o ON o.name IN (r.a, 'x')",
    "d.t JOIN (SELECT name AS k FROM o) o ON (t.c, 1) = (o.k, 1) AND k IS NOT NULL",
    "d.t WHERE (c, id) IN (SELECT name, n FROM o)",
    "d.t WHERE (id, name) IN (SELECT o.n, q.c FROM q JOIN o ON q.id = o.n)",
)


@pytest.mark.parametrize("rows", JOINED)
def test_chars_of_queries_meet_texts(chars: Any, spark: SparkSession, rows: Any) -> None:
    """A column of a query, or of a CTE, is the table's to whoever asks that."""
    spark.createDataFrame(list(enumerate(VALUES)), "n int, name string").createOrReplaceTempView("o")
    ctes = "WITH q AS (SELECT * FROM d.t), r(id, a) AS (SELECT id, c FROM q)"
    query = f"{ctes} SELECT id FROM {rows}"
    assert ids(chars.sql(query)) == [n for n, value in enumerate(VALUES) if value is not None]


def test_a_join_by_name_of_a_char_and_a_text_is_refused(chars: Any, spark: SparkSession) -> None:
    spark.createDataFrame([("ab",)], "c string").createOrReplaceTempView("o")
    for join in ("JOIN o USING (c)", "NATURAL JOIN o", "LEFT ANTI JOIN (SELECT c FROM o) AS x USING (c)"):
        for of in ("d.t", "(SELECT * FROM d.t) AS q"):
            with pytest.raises(SqlError, match="by the name c would compare a CHAR"):
                chars.sql(f"SELECT * FROM {of} {join}")
    assert len(ids(chars.sql("SELECT id FROM d.t JOIN (SELECT c FROM d.t WHERE id < 3) AS q USING (c)"))) == 3
    assert ids(chars.sql("SELECT id FROM d.t JOIN o ON t.c = o.c")) == [0]


def test_chars_of_views_meet_those_of_tables(chars: Any) -> None:
    """A view of a frame has the whole length of its CHAR, to Spark: without blanks on one side nothing would match."""
    chars.table("d.t").createOrReplaceTempView("v")
    some = [n for n, value in enumerate(VALUES) if value is not None]
    for on in ("t.c = v.c", "t.c = v.wide", "t.name = v.c", "v.c = t.wide", "t.c = v.name"):
        assert ids(chars.sql(f"SELECT t.id FROM d.t AS t JOIN v ON {on}")) == some, on
