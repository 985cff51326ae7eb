"""The texts of partition keys out of a file's path: by its bytes where they are known, and as good where not."""

from typing import Any
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.read.scan import PATH_COLUMN, partition_texts, place_text, place_texts

FILE = "delta_0000001_0000001_0000/bucket_00000"


def texts(spark: SparkSession, depth: Any, root: Any, paths: Any, directories: Any) -> Any:
    """What is found in `paths`, which is the same as at the end of each path."""
    frame = spark.createDataFrame([(path,) for path in paths], [PATH_COLUMN])
    found = [
        frame.selectExpr(*partition_texts(depth, at, directories), place_text(depth, at, directories))
        for at in (root, "elsewhere://x/y")
    ]
    assert "cast(substring(cast" in str(found[0]._jdf.queryExecution().analyzed()).lower()
    one, other = ([tuple(row) for row in each.collect()] for each in found)
    assert one == other
    assert [place for *_, place in one] == place_texts(directories)
    assert len({*place_texts(directories), ""}) == len(directories) + 1
    return [tuple(each) for *each, _ in one]


@pytest.mark.parametrize("root", ["file:/lake/d.db/t", "file:///lake/d.db/t/", "/lake/d.db/t"])
@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        (["day=2024-01-01", "day=2024-01-02"], [("2024-01-01",), ("2024-01-02",)]),
        (["month=1", "month=12"], [("1",), ("12",)]),
        (["y=2024/month=1", "y=2024/month=12", "y=2024/month=2"], [("2024", "1"), ("2024", "12"), ("2024", "2")]),
        (["a=1/b=1", "a=12/b=1", "a=1/b=12"], [("1", "1"), ("12", "1"), ("1", "12")]),
        (["month=1", "month=__HIVE_DEFAULT_PARTITION__"], [("1",), (None,)]),
        (["y=2024/m=1/d=01", "y=2023/m=12/d=31"], [("2024", "1", "01"), ("2023", "12", "31")]),
        (["a=xyz/b=x", "a=y/b=xy"], [("xyz", "x"), ("y", "xy")]),
        (["a=1/b=1", "A=2/bb=2"], [("1", "1"), ("2", "2")]),
        (["a=x y%2Fz", "a=+%41"], [("x y/z",), ("+A",)]),
        (["k=5", "k=120", "k=121"], [("5",), ("120",), ("121",)]),
        (["k=1", "k=1-a", "k=1-ab"], [("1",), ("1-a",), ("1-ab",)]),
        (["k=12/m=1", "k=12/m=11", "k=1/m=1"], [("12", "1"), ("12", "11"), ("1", "1")]),
        (["k=only"], [("only",)]),
    ],
)
def test_texts_are_found_in_paths(spark: SparkSession, root: Any, directories: Any, expected: Any) -> None:
    uris = [directory.replace("%", "%25").replace(" ", "%20") for directory in directories]
    depth = len(expected[0])
    assert texts(spark, depth, root, [f"file:/lake/d.db/t/{at}/{FILE}" for at in uris], directories) == expected


def test_a_path_that_spark_writes_otherwise_is_read_from_its_end(spark: SparkSession) -> None:
    directories = ["k=one", "k=seven"]
    for written in ("file:///lake/t", "hdfs://nn:8020/lake/t", "file:/lake/tt"):
        paths = [f"{written}/{at}/{FILE}" for at in directories]
        assert texts(spark, 1, "/lake/t", paths, directories) == [("one",), ("seven",)]


def test_roots_that_are_not_ascii_or_have_quotes_are_read_from_the_end(spark: SparkSession) -> None:
    for root in ("/lake/\u00e9t\u00e9", "/lake/it's", "/lake/{a}*"):
        frame = spark.createDataFrame([(f"file:{root}/k=v/{FILE}",)], [PATH_COLUMN])
        asked = *partition_texts(1, root, ["k=v"]), place_text(1, root, ["k=v", "k=w"])
        assert [*frame.selectExpr(*asked).collect()[0]] == ["v", "v"]


@pytest.mark.parametrize("value", ["ä%2F", "%C3%A4", "日本", "a\u00a0b", "e\u0301" * 20])
def test_places_are_told_apart_whatever_their_names_begin_with(spark: SparkSession, value: str) -> None:
    """Spark may write a name that is not ASCII in another length than ours."""
    directories = [f"p={value}/q={number}" for number in range(3)]
    in_uri = [directory.replace("%", "%25") for directory in directories]
    for written in (in_uri, [quote(directory, safe="/=") for directory in directories]):
        paths = [(f"file:/lake/t/{at}/{FILE}",) for at in written]
        frame = spark.createDataFrame(paths, [PATH_COLUMN]).selectExpr(place_text(2, "/lake/t", directories))
        found = [row[0] for row in frame.collect()]
        assert len({*found, ""}) == 4, found


@pytest.mark.parametrize(
    ("directories", "bytes_"),
    [(["m=1", "m=10", "m=12"], 2), (["d=2024-01-01", "d=2024-01-12"], 1), (["k=5", "k=120", "k=121"], None)],
)
def test_what_tells_partitions_apart_is_a_few_bytes(directories: Any, bytes_: Any) -> None:
    """Where they tell, since to look for the end of a text takes as long again."""
    assert ("substring_index(cast" in place_text(1, "/lake/t", directories)) is (bytes_ is None)
    if bytes_:
        assert {len(place) for place in place_texts(directories)} == {bytes_}


def test_files_are_pruned_by_the_key_in_their_path(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"month": "int"})
    acid.insert("d.t", spark.range(24).selectExpr("cast(id AS int) AS id", "cast(id % 12 AS int) AS month"))
    found = acid.table("d.t").where("month + 0 = 11")
    assert "cast(substring(cast" in str(found._jdf.queryExecution().analyzed()).lower()
    assert sorted(row.id for row in found.collect()) == [11, 23]
    plan = found._jdf.queryExecution().executedPlan()
    assert "file_path" in str(plan.collectLeaves().head())


def test_no_key_and_no_partition_have_no_text(spark: SparkSession) -> None:
    assert partition_texts(0, "/lake/t", []) == []
    frame = spark.range(1).selectExpr(*partition_texts(2, "/lake/t", []), place_text(2, "/lake/t", []))
    assert [*frame.collect()[0]] == [None] * 3


@pytest.mark.parametrize("kind", ["string", "binary"])
def test_bytes_that_no_name_holds_are_refused(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": kind})

    def frame(*values: Any) -> Any:
        return spark.sql(" UNION ALL ".join(f"SELECT {at} id, CAST({of} AS {kind}) p" for at, of in enumerate(values)))

    def read() -> Any:
        return sorted(tuple(row) for row in acid.table("d.t").selectExpr("id", "hex(p)").collect())

    good = ["X'61'", "X'C3A9'", "X'F09F9880'", "X'252F'"]
    acid.insert("d.t", frame(*good))
    expected = [(at, of[2:-1]) for at, of in enumerate(good)]
    for bad in ("X'FF'", "X'61C3'", "X'00'", "X'610062'"):
        words = "cannot be a value of partition key p"
        with pytest.raises(ColumnError, match=words):
            acid.insert("d.t", frame("X'61'", bad))
        with pytest.raises(ColumnError, match=words):
            acid.update("d.t", {"p": f"CAST({bad} AS {kind})"}, "id = 1")
        with pytest.raises(ColumnError, match=words):
            acid.merge("d.t", frame(bad), "t.p = s.p").whenNotMatchedInsertAll().execute()
        assert read() == expected
