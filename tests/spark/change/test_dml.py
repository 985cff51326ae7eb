"""UPDATE and DELETE, to the letter of Hive's own talk and beyond."""

from datetime import date
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import ColumnError, MergeCardinalityError, WriteConflictError
from hive_acid.format.hashing import bucket_number
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of
from tests.spark.compaction import compact_table

BUCKET_0 = 536870912


def test_the_tables_of_hives_own_talk(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"a": "int", "b": "string"})
    table = acid.table("d.t")
    assert table.insert(spark.createDataFrame([(100, "foo"), (200, "xyz"), (300, "bee")], "a int, b string")) == 3
    assert table.delete("a = 200") == 1
    assert table.update({"b": "'bar'"}, where="a = 300") == 1

    rows = [(tuple(r["ROW__ID"]), r["a"], r["b"]) for r in acid.table("d.t", row_id=True).collect()]
    assert sorted(rows) == [((1, BUCKET_0, 0), 100, "foo"), ((3, BUCKET_0, 0), 300, "bar")]
    found = check_table(location_of(acid, "d.t"))
    assert {
        name: {file: list(map(tuple, events)) for file, events in files.items()} for name, files in found.items()
    } == {
        "delta_0000001_0000001_0000": {
            "bucket_00000": [
                (0, 1, BUCKET_0, 0, 1, (100, "foo")),
                (0, 1, BUCKET_0, 1, 1, (200, "xyz")),
                (0, 1, BUCKET_0, 2, 1, (300, "bee")),
            ]
        },
        "delete_delta_0000002_0000002_0000": {"bucket_00000": [(2, 1, BUCKET_0, 1, 2, None)]},
        "delete_delta_0000003_0000003_0000": {"bucket_00000": [(2, 1, BUCKET_0, 2, 3, None)]},
        "delta_0000003_0000003_0000": {"bucket_00000": [(0, 3, BUCKET_0, 0, 3, (300, "bar"))]},
    }
    assert table.count() == 0, "a frame stays with its snapshot"


@pytest.fixture
def numbers(acid: AcidSession, spark: SparkSession) -> Any:
    """Ids 0..99 in two partitions, n = id."""
    acid.create_table("d.t", {"id": "int", "n": "bigint"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "id n", "int(id % 2) p"))
    return acid


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


def test_conditions_may_be_columns_text_or_absent(numbers: Any, spark: SparkSession) -> None:
    assert numbers.update("d.t", {"n": F.col("n") * 2}, F.col("id") < 10) == 10
    assert numbers.update("d.t", {"N": "n + p"}, "t.p = 1") == 50
    assert numbers.delete("d.t", F.col("t.id") >= 50) == 50
    spark.createDataFrame([(1,), (2,)], "k int").createOrReplaceTempView("keys_of_a_view")
    assert numbers.delete("d.t", "id IN (SELECT k FROM keys_of_a_view)") == 2
    expected = [(i, (i * 2 if i < 10 else i) + i % 2, i % 2) for i in range(50) if i not in (1, 2)]
    assert read(numbers) == sorted(expected)
    assert numbers.update("d.t", {"n": F.lit(None)}) == 48
    assert numbers.delete("d.t") == 48
    assert read(numbers) == []
    check_table(location_of(numbers, "d.t"))


def test_rows_for_which_the_condition_is_unknown_stay(numbers: Any) -> None:
    numbers.update("d.t", {"n": "NULL"}, "id = 0")
    assert numbers.delete("d.t", "n < 1000") == 99
    assert read(numbers) == [(0, None, 0)]


def test_several_columns_are_set_from_the_old_row(numbers: Any) -> None:
    assert numbers.update("d.t", {"id": "int(n)", "n": "id + 1"}, "id = 5") == 1
    assert (5, 6, 1) in read(numbers)


def test_updated_rows_can_be_updated_and_deleted_again(numbers: Any) -> None:
    for _ in range(3):
        assert numbers.update("d.t", {"n": "n + 100"}, "id = 7") == 1
    assert (7, 307, 1) in read(numbers)
    assert numbers.delete("d.t", "id = 7") == 1
    assert len(read(numbers)) == 99
    assert numbers.delete("d.t", "id = 7") == 0
    check_table(location_of(numbers, "d.t"))


def test_a_value_is_computed_once_per_row(numbers: Any) -> None:
    numbers.update("d.t", {"n": "cast(rand() * 1000000 AS int)"})
    assert len({row[1] for row in read(numbers)}) > 50


def test_bad_updates_are_refused_and_leave_nothing(numbers: Any) -> None:
    before = check_table(location_of(numbers, "d.t"))
    for change, said in (
        ({"p": "'x'"}, r"d\.t\.p"),
        ({"nothing": "1"}, "no column nothing"),
        ({"n": "'x'"}, r"d\.t\.n"),
        ({"n": "date'2020-01-01'"}, r"d\.t\.n is bigint"),
        ({"id": "n + 100000000000"}, r"d\.t\.id"),
        ({"n": "nothing + 1"}, "nothing"),
        ({"n": "1 +"}, r"statement on d\.t: .*(?i:syntax)"),
        ({"n": "1", "N": "2"}, "given twice"),
        ({}, "sets no column"),
        *(
            ({"n": of}, "generator")
            for of in (
                "explode(array(1, 2))",
                "explode_outer(array())",
                "stack(2, 1, 2)",
                "inline(array(struct(1)))",
                F.explode(F.array(F.lit(1), F.lit(2))),
            )
        ),
        ({"p": "explode(array(p))"}, "generator"),
    ):
        with pytest.raises(ColumnError, match=said):
            numbers.update("d.t", change)
        with pytest.raises(ColumnError, match=said):
            numbers.update("d.t", change, "id < 10")
    with pytest.raises(ColumnError, match="nothing"):
        numbers.delete("d.t", "nothing = 1")
    for blank in ("", " ", "\t\n"):
        with pytest.raises(ColumnError, match=r"statement on d\.t: .*(?i:syntax)"):
            numbers.delete("d.t", blank)
        with pytest.raises(ColumnError, match=r"statement on d\.t: .*(?i:syntax)"):
            numbers.update("d.t", {"n": "1"}, blank)
    assert check_table(location_of(numbers, "d.t")) == before
    assert len(read(numbers)) == 100


def test_one_file_per_bucket_whatever_the_number_of_tasks(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        acid.insert("d.t", spark.range(400).repartition(8).selectExpr("int(id) id", "int(id % 3) p"))
        acid.insert("d.t", spark.range(400, 800).repartition(8).selectExpr("int(id) id", "int(id % 3) p"))
        assert acid.update("d.t", {"id": "-id"}, "id % 5 = 0") == 160
        assert acid.delete("d.t", "id % 7 = 0") == 115
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    found = check_table(location_of(acid, "d.t"))
    assert len(found["p=0/delete_delta_0000003_0000003_0000"]) == 8
    values = [-i if i % 5 == 0 else i for i in range(800) if i % 7]
    assert [row[0] for row in read(acid)] == sorted(values)


def test_a_row_moves_when_its_partition_column_is_updated(numbers: Any, spark: SparkSession) -> None:
    assert numbers.update("d.t", {"p": "7 + p", "n": "-n"}, "id < 4") == 4
    assert numbers.update("d.t", {"p": "p"}, "id = 10") == 1
    assert numbers.update("d.t", {"p": F.lit(None)}, "id = 99") == 1
    expected = [(i, -i if i < 4 else i, None if i == 99 else i % 2 + 7 * (i < 4)) for i in range(100)]
    assert sorted(map(tuple, numbers.table("d.t").collect()), key=str) == sorted(expected, key=str)
    assert numbers.table("d.t").partitions() == ["p=0", "p=1", "p=7", "p=8", "p=__HIVE_DEFAULT_PARTITION__"]
    found = check_table(location_of(numbers, "d.t"))
    assert "p=0/delta_0000002_0000002_0000" not in found, "what has moved is not in its old partition"
    assert numbers.delete("d.t", "p = 7") == 2
    other = hive_acid.spark.session(spark, numbers.connection)

    def lose() -> None:
        with numbers.transaction():
            numbers.update("d.t", {"p": "8"}, "id = 22")
            other.delete("d.t", "id = 22")

    with pytest.raises(WriteConflictError):
        lose()
    with numbers.transaction():
        numbers.update("d.t", {"p": "8"}, "id = 20")
        other.delete("d.t", "id = 21")
        other.insert("d.t", spark.createDataFrame([(200, 200, 8)], "id int, n bigint, p int"))
    assert {r.id for r in numbers.table("d.t").where("p = 8").collect()} == {1, 3, 20, 200}


def test_update_from_a_source(numbers: Any, spark: SparkSession) -> None:
    source = spark.createDataFrame([(1, 1000, 0), (2, 2000, 9), (500, 1, 1)], "k int, v int, q int")
    assert numbers.update("d.t", {"n": "s.v + t.n", "p": "q"}, "t.id > 0", source=source, on="t.id = s.k") == 2
    assert {row for row in read(numbers) if row[1] >= 1000} == {(1, 1001, 0), (2, 2002, 9)}
    assert numbers.update("d.t", {"n": F.col("x.v")}, source=source, on="d.id = x.k AND x.v < 1500", target_alias="d",
                          source_alias="x") == 1  # fmt: skip
    assert (1, 1000, 0) in read(numbers)
    with pytest.raises(MergeCardinalityError, match=r"UPDATE of d\.t: 2 of its rows match more than one"):
        numbers.update("d.t", {"n": "s.v"}, source=source.union(source), on="t.id = s.k")
    with pytest.raises(ColumnError, match="condition that joins"):
        numbers.update("d.t", {"n": "s.v"}, source=source)
    with pytest.raises(ColumnError, match="sets no column"):
        numbers.update("d.t", {}, source=source, on="t.id = s.k")
    assert (1, 1000, 0) in read(numbers)
    check_table(location_of(numbers, "d.t"))


def test_delete_using_a_source(numbers: Any, spark: SparkSession) -> None:
    source = spark.range(40).selectExpr("int(id % 10) k", "id v")
    assert numbers.delete("d.t", "s.v > 10 AND t.p = 1", source=source, on="t.id = s.k") == 5
    assert numbers.delete("d.t", source=source, on=F.col("t.id") == F.col("s.k")) == 5
    assert numbers.delete("d.t", source=source.where("k > 100"), on="t.id = s.k") == 0
    assert [row[0] for row in read(numbers)] == list(range(10, 100))
    with pytest.raises(ColumnError, match="nothing"):
        numbers.delete("d.t", source=source, on="t.id = s.nothing")
    check_table(location_of(numbers, "d.t"))


def test_subqueries_in_conditions(numbers: Any, spark: SparkSession) -> None:
    spark.createDataFrame([(1, 5), (2, 6), (None, 7)], "k int, v int").createOrReplaceTempView("source")
    assert numbers.delete("d.t", "EXISTS (SELECT 1 FROM source s WHERE s.k = t.id)") == 2
    assert numbers.update("d.t", {"n": "-1"}, "id = (SELECT max(v) FROM source)") == 1
    assert numbers.update("d.t", {"n": "(SELECT min(v) FROM source)"}, "id IN (SELECT v FROM source)") == 3
    assert numbers.delete("d.t", "id NOT IN (SELECT k FROM source)") == 0, "null is in it"
    with numbers.transaction():
        numbers.insert("d.t", spark.createDataFrame([(300, 5, 0)], "id int, n bigint, p int"))
        numbers.table("d.t").createOrReplaceTempView("seen")
        assert numbers.delete("d.t", "id < (SELECT max(id) FROM seen) - 201") == 97
    assert [row[:2] for row in read(numbers)] == [(99, 99), (300, 5)]
    check_table(location_of(numbers, "d.t"))


@pytest.mark.parametrize("by", ["the client", "a job"])
def test_columns_may_be_called_as_those_of_events(acid: AcidSession, spark: SparkSession, by: Any) -> None:
    """A job writes where there is a nested column."""
    odd = ["kind", "file", "key0", "operation", "bucket", "rowid", "row", "originaltransaction", "currenttransaction"]
    odd += ["value", "s", "t", "source", "target", "row__id", "null"]
    names = ["id", *odd]
    nested = {"nested": "array<int>"} if by == "a job" else {}
    acid.create_table("d.t", {**dict.fromkeys(names, "int"), **nested}, partitioned_by={"p": "int"})

    def frame(ids: Any, plus: Any) -> Any:
        values = [f"int(id) * 100 + {plus + place} `{name}`" for place, name in enumerate(names[1:])]
        return spark.range(*ids).selectExpr("int(id) id", *values, *(["array(1) nested"] if nested else []), "0 p")

    acid.insert("d.t", frame((0, 10), 0))
    rows = {row.id: {**row.asDict()} for row in frame((0, 10), 0).collect()}

    def read() -> Any:
        return {row.id: row.asDict() for row in acid.table("d.t").collect()}

    for place, name in enumerate(odd):
        condition = f"`{name}` = {300 + place}"
        assert acid.update("d.t", {f"`{name}`": f"`{name}` + 7", "p": "1"}, condition) == 1, name
        rows[3] |= {name: rows[3][name] + 7, "p": 1}
    assert acid.update("d.t", {"p": "p + 1"}) == 10
    rows = {at: {**row, "p": row["p"] + 1} for at, row in rows.items()}
    assert read() == rows
    assert acid.delete("d.t", "kind = 500 AND t.row = 506") == 1
    del rows[5]
    source = frame((8, 12), 50)
    merged = acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll("s.kind > t.kind")
    assert tuple(merged.whenNotMatchedInsertAll("s.file > 0").execute()) == (2, 2, 0)
    rows |= {row.id: row.asDict() for row in source.collect()}
    assert read() == rows
    merged = acid.merge("d.t", source.where("id = 8"), "t.kind = s.kind").whenMatchedUpdate(set={"kind": "s.s + t.t"})
    assert tuple(merged.whenNotMatchedBySourceDelete("operation < 400").execute()) == (0, 1, 4)
    rows = {at: row for at, row in rows.items() if row["operation"] >= 400}
    rows[8] |= {"kind": rows[8]["s"] + rows[8]["t"]}
    assert read() == rows
    compact_table(spark, acid, "d.t", "major")
    assert read() == rows


def test_rows_of_the_same_transaction_are_changed_and_deleted(numbers: Any, spark: SparkSession) -> None:
    with numbers.transaction():
        numbers.insert("d.t", spark.createDataFrame([(200, 0, 0), (201, 0, 1)], "id int, n bigint, p int"))
        assert numbers.update("d.t", {"n": "n + 1", "p": "1 - p"}, "id >= 200") == 2
        assert numbers.update("d.t", {"n": "n + 1"}, "id >= 200") == 2
        assert numbers.delete("d.t", "id = 200 OR id = 0") == 2
        assert numbers.delete("d.t", "id = 200 OR id = 0") == 0
    assert [row for row in read(numbers) if row[0] >= 200] == [(201, 2, 0)]
    assert len(read(numbers)) == 100
    check_table(location_of(numbers, "d.t"))


def test_rows_of_a_clustered_table_are_placed_by_their_hash(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "n": "int"}, partitioned_by={"p": "int"}, clustered_by=("id",), buckets=3)
    table = acid.connection.table("d", "t")
    acid.insert("d.t", spark.range(30).selectExpr("int(id) id", "0 n", "int(id % 2) p"))
    assert acid.update("d.t", {"id": "id + 100", "n": "1"}, "id % 3 = 0") == 10
    source = spark.createDataFrame([(1, 5, 1), (900, 6, 0), (901, 6, 2)], "id int, n int, p int")
    assert tuple(
        acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    ) == (2, 1, 0)
    assert acid.delete("d.t", "id = 900") == 1
    rows = [(i + 100, 1, i % 2) if i % 3 == 0 else (i, 5 if i == 1 else 0, i % 2) for i in range(30)]
    assert read(acid) == sorted([*rows, (901, 6, 2)])
    for path, files in check_table(location_of(acid, "d.t")).items():
        if "delete_delta" not in path:
            for name, events in files.items():
                buckets = {bucket_number(["int"], event.row[:1], table.buckets) for event in events}
                assert buckets == {int(name[-5:])}, path


@pytest.fixture
def nested(acid: AcidSession, spark: SparkSession) -> Any:
    """Structs in structs, one of them null, and a column with a dot in its name."""
    kind = "struct<a:int,b:string,c:struct<x:bigint,`y z`:date>>"
    acid.create_table("d.t", {"id": "int", "s": kind.replace("`", ""), "s.a": "int"})
    rows = [(1, (1, "one", (10, date(2020, 1, 1))), 7), (2, None, 7), (3, (3, None, None), 7)]
    acid.insert("d.t", spark.createDataFrame(rows, f"id int, s {kind}, `s.a` int"))
    return acid


def test_fields_of_structs_are_set(nested: Any, spark: SparkSession) -> None:
    def structs() -> Any:
        return [row.s and row.s.asDict(recursive=True) for row in nested.table("d.t").orderBy("id").collect()]

    assert nested.update("d.t", {"S.B": "upper(s.b)", "`s`.c.`Y z`": F.lit(date(1999, 9, 9))}, "id <> 2") == 2
    assert structs() == [
        {"a": 1, "b": "ONE", "c": {"x": 10, "y z": date(1999, 9, 9)}},
        None,
        {"a": 3, "b": None, "c": {"x": None, "y z": date(1999, 9, 9)}},
    ]
    # What is named as a column is one.
    assert nested.update("d.t", {"s.a": "id"}) == 3
    assert [row["s.a"] for row in nested.table("d.t").orderBy("id").collect()] == [1, 2, 3]
    assert nested.update("d.t", {"`s`.a": "t.s.a + 1", "s.c.x": "5"}, "id = 1") == 1
    assert structs()[0] == {"a": 2, "b": "ONE", "c": {"x": 5, "y z": date(1999, 9, 9)}}
    # A struct that was null has one value then, as a literal of the whole struct would.
    assert nested.update("d.t", {"s.b": "'new'"}, "s IS NULL") == 1
    assert structs()[1] == {"a": None, "b": "new", "c": None}
    check_table(location_of(nested, "d.t"))


def test_a_name_in_quotes_is_a_columns(nested: Any) -> None:
    with pytest.raises(ColumnError, match=r"no column `s\.b`"):
        nested.sql("UPDATE d.t SET `s.b` = 'x'")
    nested.sql("UPDATE d.t SET `s.A` = 5, s.a = 6 WHERE id = 1")
    nested.sql("MERGE INTO d.t t USING (SELECT 3 id, 8 `s.a`) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET `s.a` = 8")
    nested.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO d.t t USING (SELECT 2 id, 'n' `c.d`) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET `c.d` = s.`c.d`"
    )
    found = nested.sql("SELECT id, s.a, `s.a`, `c.d` FROM d.t").collect()
    assert sorted(map(tuple, found)) == [(1, 6, 5, None), (2, None, 7, "n"), (3, 3, 8, None)]


def test_a_merge_and_a_source_set_fields(nested: Any, spark: SparkSession) -> None:
    source = spark.createDataFrame([(1, "x"), (3, "y"), (4, "z")], "id int, b string")
    merged = nested.merge("d.t", source, "t.id = s.id", target_alias="t").whenMatchedUpdate("t.id = 1", {"s.b": "s.b"})
    assert tuple(merged.whenNotMatchedBySourceUpdate(set={"s.c.x": "t.id"}).execute()) == (0, 2, 0)
    assert nested.update("d.t", {"s.a": "100", "s.b": "k.b"}, source=source, on="t.id = k.id", source_alias="k") == 2
    found = {row.id: (row.s.a, row.s.b, row.s.c and row.s.c.x) for row in nested.table("d.t").collect()}
    assert found == {1: (1, "x", 10), 2: (None, None, 2), 3: (3, "y", None)}
    with pytest.raises(ColumnError, match=r"no column s\.b"):
        nested.merge("d.t", source, "t.id = s.id").whenNotMatchedInsert(values={"s.b": "s.b"}).execute()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"s.nothing": "1"}, "no field nothing in struct<"),
        ({"s.b.x": "1"}, "no field x in string"),
        ({"id.x": "1"}, "no field x in int"),
        ({"x.y": "1"}, r"no column x\.y"),
        ({"s..b": "1"}, "no name of a column"),
        ({"s": "null", "s.b": "'b'"}, "given twice"),
        ({"s.b": "'b'", "s": "null"}, "given twice"),
        ({"s.c": "null", "s.c.x": "1"}, "given twice"),
        ({"s.b": "'b'", "S.B": "'b'"}, "given twice"),
        ({"s.c.x": "'no number'"}, "no number"),
    ],
)
def test_fields_that_cannot_be_set(nested: Any, change: Any, said: Any) -> None:
    before = check_table(location_of(nested, "d.t"))
    with pytest.raises(ColumnError, match=said):
        nested.update("d.t", change)
    assert check_table(location_of(nested, "d.t")) == before


@pytest.mark.parametrize("condition", ["1", "v", "v + 1", "id AND v = 1", "NOT 1", "'1'"])
def test_what_is_no_condition_is_refused_in_the_user_s_words(
    acid: AcidSession, spark: SparkSession, condition: Any
) -> None:
    acid.create_table("d.t", {"id": "int", "v": "int"})
    acid.insert("d.t", spark.sql("SELECT 1 AS id, 1 AS v"))
    for verb in (
        lambda: acid.update("d.t", {"v": "2"}, condition),
        lambda: acid.delete("d.t", condition),
        lambda: acid.sql(f"UPDATE d.t SET v = 2 WHERE {condition}"),
        lambda: acid.sql(f"DELETE FROM d.t WHERE {condition}"),
        lambda: acid.update("d.t", {"v": "nope"}, "id = 1"),
        lambda: acid.update("d.t", {"v": "2"}, "nope = 1"),
    ):
        with pytest.raises(ColumnError) as refused:
            verb()
        assert "__acid" not in str(refused.value)
        assert "array(" not in str(refused.value)
    assert acid.table("d.t").collect() == [(1, 1)]


@pytest.mark.parametrize("kind", ["float", "double"])
def test_zeros_of_both_signs_are_values_of_a_partition_key(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    acid.create_table("d.zero", {"id": "int"}, partitioned_by={"k": kind})
    acid.insert("d.zero", spark.sql(f"SELECT 1 AS id, CAST(0 AS {kind}) AS k"))
    minus = f"CAST('-0.0' AS {kind})"
    assert acid.update("d.zero", {"k": minus}, "k = 0") == 1
    assert [str(row.k) for row in acid.table("d.zero").collect()] == ["-0.0"]
    source = spark.sql(f"SELECT 1 AS id, CAST(0 AS {kind}) AS k")
    acid.merge("d.zero", source, "t.k = s.k").whenMatchedUpdateAll().execute()
    assert [str(row.k) for row in acid.table("d.zero").collect()] == ["0.0"]
