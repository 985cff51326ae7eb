"""Values of partition keys: one text for each, whatever it is written as, and none for what only stands for null."""

from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from hive_acid.catalog import Column, Table
from hive_acid.errors import ColumnError, HiveAcidError, UnsupportedTableError
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.partition_values import known_text, partition_text
from hive_acid.streaming import ArrowWriter, StreamingConnection
from tests.spark.checker import check_table, location_of

INSERT_ONLY = {"transactional_properties": "insert_only"}


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("int", 1, "1"), ("int", "01", "1"), ("int", " +7 ", "7"), ("bigint", "-0", "0"), ("tinyint", "128", None),
        ("int", "1.5", None), ("int", "one", None), ("string", "01", "01"), ("string", True, "true"),
        ("date", "2020-1-1", "2020-01-01"), ("date", date(2020, 1, 1), "2020-01-01"), ("date", "2020-13-01", None),
        ("date", datetime(2020, 1, 1, 5), "2020-01-01"), ("date", "today", None), ("boolean", "TRUE", "true"),
        ("boolean", False, "false"), ("boolean", "1", None), ("decimal(5,2)", "1.5", "1.50"),
        ("decimal(5,2)", Decimal(1), "1.00"), ("decimal(5,2)", "1000", None), ("decimal(5,0)", "1E2", "100"),
        ("char(4)", "ab", "ab  "), ("char(4)", "ab      ", "ab  "), ("varchar(4)", "ab ", "ab "),
        ("varchar(2)", "abc", None), ("timestamp", "2020-01-01 10:00:00.500", "2020-01-01 10:00:00.5"),
        ("timestamp", "2020-01-01", "2020-01-01 00:00:00"), ("timestamp", "2020-01-01T10:00:00+02:00", None),
        ("string", DEFAULT_PARTITION, None), ("char(30)", DEFAULT_PARTITION + "  ", None),
        ("string", DEFAULT_PARTITION.lower(), DEFAULT_PARTITION.lower()),
    ],
)  # fmt: skip
def test_texts(kind, given, text):
    table = Table("d", "t", (), (Column("p", kind),))
    if text is None:
        with pytest.raises(ColumnError, match=r"d\.t"):
            partition_text(table, table.partition_keys[0], given)
    else:
        assert partition_text(table, table.partition_keys[0], given) == text
        assert known_text(kind, text) == text


def test_null_has_no_text():
    table = Table("d", "t", (), (Column("p", "int"),))
    assert partition_text(table, table.partition_keys[0], None) is partition_text(table, table.partition_keys[0], "")
    assert known_text("int", None) is None
    assert known_text("int", "x") == "x", "others may have named it so"


def rows(acid, name="d.t"):
    return sorted((tuple(row) for row in acid.table(name).collect()), key=str)


@pytest.mark.parametrize("kind", ["string", "char(30)"])
def test_the_text_that_stands_for_null_is_refused(acid, spark, tmp_path, kind):
    """It would be read as null, and meet the rows of null in one directory."""
    acid.create_table("d.t", {"id": "int", "v": "string"}, partitioned_by={"p": kind})
    acid.create_table("d.i", {"id": "int", "v": "string"}, partitioned_by={"p": kind}, properties=INSERT_ONLY)
    acid.insert("d.t", spark.createDataFrame([(1, "a", "x"), (2, "b", None)], "id int, v string, p string"))
    before = rows(acid)
    bad = spark.createDataFrame([(1, "z", DEFAULT_PARTITION), (5, "y", None)], "id int, v string, p string")
    bad.createOrReplaceTempView("bad")
    one = spark.sql("SELECT 9 AS id, 'n' AS v")
    one.coalesce(1).write.orc(str(tmp_path / "files"))
    spec, quoted = {"p": DEFAULT_PARTITION}, f"'{DEFAULT_PARTITION}'"

    def merge():
        return acid.merge("d.t", bad, "t.id = s.id")

    def streamed(static):
        stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=static)
        with stream, stream.transaction():
            stream.write(bad.drop("p").toArrow() if static else bad.toArrow())

    paths = {
        "insert": lambda: acid.insert("d.t", bad),
        "insert evolved": lambda: acid.insert("d.t", bad, schema_evolution=True),
        "insert-only": lambda: acid.insert("d.i", bad),
        "insert-only overwrite": lambda: acid.overwrite("d.i", bad),
        "insert-only partition": lambda: acid.overwrite("d.i", one, partition=spec),
        "overwrite": lambda: acid.overwrite("d.t", bad),
        "overwrite partition": lambda: acid.overwrite("d.t", one, partition=spec),
        "overwrite where": lambda: acid.overwrite("d.t", bad, where="id > 0"),
        "update": lambda: acid.update("d.t", {"p": quoted}, "id = 1"),
        "update everything": lambda: acid.update("d.t", {"p": F.lit(DEFAULT_PARTITION)}),
        "update from": lambda: acid.update("d.t", {"p": "s.p"}, source=bad, on="t.id = s.id"),
        "merge update": lambda: merge().whenMatchedUpdateAll().execute(),
        "merge insert": lambda: (
            acid.merge("d.t", bad, "t.id = s.id + 100").whenNotMatchedInsertAll().execute()
        ),
        "merge both": lambda: merge().whenMatchedUpdateAll().whenNotMatchedInsertAll().execute(),
        "merge by source": lambda: merge().whenNotMatchedBySourceUpdate(None, {"p": quoted}).execute(),
        "create as": lambda: acid.create_table_as("d.x", bad, partitioned_by=["p"]),
        "multi-insert": lambda: acid.multi_insert(bad).into("d.t").into("d.i").execute(),
        "multi-insert partition": lambda: acid.multi_insert(one).into("d.t", partition=spec).execute(),
        "sink": lambda: acid.sink("d.t", query="a")(bad, 0),
        "upsert": lambda: acid.sink("d.t", query="u", mode="upsert", keys=["id"])(bad, 0),
        "load": lambda: acid.load_data("d.t", str(tmp_path / "files"), partition=spec, copy=True),
        "partition's name": lambda: acid.add_partitions("d.t", {"p=%5F_HIVE_DEFAULT_PARTITION__": None}),
        "truncate": lambda: acid.truncate("d.t", spec),
        "stream": lambda: streamed({}),
        "stream's partition": lambda: streamed(spec),
        "INSERT": lambda: acid.sql("INSERT INTO d.t SELECT * FROM bad"),
        "INSERT VALUES": lambda: acid.sql(f"INSERT INTO d.t VALUES (1, 'z', {quoted})"),
        "INSERT PARTITION": lambda: acid.sql(f"INSERT INTO d.t PARTITION (p = {quoted}) VALUES (1, 'z')"),
        "INSERT OVERWRITE": lambda: acid.sql(f"INSERT OVERWRITE d.t PARTITION (p = {quoted}) VALUES (1, 'z')"),
        "UPDATE": lambda: acid.sql(f"UPDATE d.t SET p = {quoted}"),
        "MERGE": lambda: acid.sql(
            "MERGE INTO d.t USING bad AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET p = s.p "
            "WHEN NOT MATCHED THEN INSERT *"
        ),
        "ADD PARTITION": lambda: acid.sql(f"ALTER TABLE d.t ADD PARTITION (p = {quoted})"),
        "DROP PARTITION": lambda: acid.sql(f"ALTER TABLE d.t DROP PARTITION (p = {quoted})"),
        "LOAD DATA": lambda: acid.sql(f"LOAD DATA INPATH '{tmp_path}/files' INTO TABLE d.t PARTITION (p = {quoted})"),
    }  # fmt: skip
    taken = {}
    for name, path in paths.items():
        try:
            taken[name] = path()
        except HiveAcidError as error:
            if DEFAULT_PARTITION not in str(error):
                taken[name] = str(error)
    assert taken == {}
    assert rows(acid) == before
    assert rows(acid, "d.i") == []
    assert not acid.connection.call("get_tables", "d", "x")
    check_table(location_of(acid, "d.t"))


def test_null_and_the_empty_text_are_one_partition(acid, spark):
    """As Hive has it; a row that stays in its partition is not moved by it."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "string"})
    acid.create_table("d.i", {"id": "int"}, partitioned_by={"p": "string"}, properties=INSERT_ONLY)
    both = spark.createDataFrame([(1, None), (2, ""), (3, " ")], "id int, p string")
    expected = [(1, None), (2, None), (3, " ")]
    assert (acid.insert("d.t", both), acid.insert("d.i", both)) == (3, 3)
    assert rows(acid) == rows(acid, "d.i") == expected
    merge = acid.merge("d.t", both.selectExpr("id + 1 AS id", "p"), "t.id = s.id")
    assert tuple(merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()) == (1, 2, 0)
    assert rows(acid) == [(1, None), (2, None), (3, None), (4, " ")]
    acid.update("d.t", {"p": "''"}, "id = 4")
    acid.update("d.t", {"p": "if(id = 1, '', NULL)"})
    assert acid.overwrite("d.t", spark.sql("SELECT 7 AS id"), partition={"p": ""}) == 1
    assert rows(acid) == [(7, None)]
    with StreamingConnection(acid.connection, "d.t", ArrowWriter()) as stream, stream.transaction():
        stream.write(both.toArrow())
    assert rows(acid) == sorted([*expected, (7, None)], key=str)
    assert sorted(acid.table("d.t").partitions()) == ["p= ", f"p={DEFAULT_PARTITION}"]


WRITTEN_OTHERWISE = {
    # A key's type: a value in Spark's SQL, and texts and values that mean it.
    "int": ("1", ["1", "01", "+1", 1]),
    "date": ("date'2020-01-02'", ["2020-01-02", "2020-1-2", date(2020, 1, 2)]),
    "boolean": ("true", ["true", "TRUE", True]),
    "decimal(6,2)": ("1.5", ["1.50", "1.5", "01.500", Decimal("1.5")]),
    "char(4)": ("'ab'", ["ab", "ab  ", "ab      "]),
    "string": ("'a/b=c%25 ü'", ["a/b=c%25 ü"]),
}


@pytest.mark.parametrize("kind", WRITTEN_OTHERWISE)
def test_a_partition_is_found_whatever_its_value_is_written_as(acid, spark, tmp_path, kind):
    value, texts = WRITTEN_OTHERWISE[kind]
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": kind})
    spark.range(1).selectExpr("int(id) id").coalesce(1).write.orc(str(tmp_path / "files"))
    acid.insert("d.t", spark.sql(f"SELECT 1 AS id, {value} AS p"))
    (name,) = acid.table("d.t").partitions()
    one = spark.sql("SELECT 2 AS id")
    for text in texts:
        spec = {"p": text}
        said = f"'{text}'"
        assert acid.overwrite("d.t", one, partition=spec) == 1
        assert acid.table("d.t").count() == 1, f"{text!r}: what was there is replaced"
        assert acid.load_data("d.t", str(tmp_path / "files"), partition=spec, copy=True) == 1
        assert acid.sql(f"INSERT INTO d.t PARTITION (p = {said}) VALUES (3)").collect() == [(1, 1)]
        assert acid.multi_insert(one).into("d.t", partition=spec).execute() == [1]
        stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=spec)
        with stream, stream.transaction():
            stream.write(one.toArrow())
        assert acid.table("d.t").partitions() == [name], text
        assert acid.table("d.t").where(f"p = {value}").count() == acid.table("d.t").count()
        acid.truncate("d.t", spec)
        assert acid.table("d.t").count() == 0, f"{text!r}: truncated"
        acid.insert("d.t", spark.sql(f"SELECT 1 AS id, {value} AS p"))
        acid.sql(f"ALTER TABLE d.t DROP PARTITION (p = {said})")
        assert acid.table("d.t").partitions() == []
        acid.sql(f"ALTER TABLE d.t ADD PARTITION (p = {said})")
        assert acid.table("d.t").partitions() == [name]


NAMED_BY_OTHERS = {
    # A key's type: how another engine has named the partition, the value in Spark's SQL, and as it is given.
    "int": ("01", "1", 1),
    "char(4)": ("ab", "'ab'", "ab"),
    "date": ("2020-1-2", "date'2020-01-02'", date(2020, 1, 2)),
    "decimal(6,2)": ("1.5", "1.5", "1.50"),
    "timestamp": ("2020-01-02 00:00:00.0", "timestamp'2020-01-02 00:00:00'", "2020-01-02 00:00:00"),
}


def named_by_others(acid, kind, *texts, properties=None):
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": kind}, properties=properties)
    table = acid.connection.table("d", "t")
    names = [table.partition_name([text]) for text in texts]
    acid.connection.add_partitions(table, {name: f"{table.location}/{name}" for name in names})
    return names


@pytest.mark.parametrize("properties", [None, INSERT_ONLY])
@pytest.mark.parametrize("kind", NAMED_BY_OTHERS)
def test_rows_go_to_the_partition_that_others_have_named(acid, spark, tmp_path, kind, properties):
    """Hive and ours are one partition: what is inserted is where its rows are, and an overwrite replaces those."""
    text, value, given = NAMED_BY_OTHERS[kind]
    names = named_by_others(acid, kind, text, properties=properties)
    spark.range(1).selectExpr("int(id) id").coalesce(1).write.orc(str(tmp_path / "files"))
    one, whole = spark.sql("SELECT 2 AS id"), spark.sql(f"SELECT 2 AS id, {value} AS p")
    acid.insert("d.t", whole)
    acid.sql(f"INSERT INTO d.t PARTITION (p = '{given}') VALUES (3)")
    acid.sql(f"INSERT OVERWRITE d.t PARTITION (p = '{given}') IF NOT EXISTS VALUES (4)")
    acid.add_partitions("d.t", {acid.connection.table("d", "t").partition_name([str(given)]): None}, if_not_exists=True)
    assert acid.load_data("d.t", str(tmp_path / "files"), partition={"p": given}, copy=True) == 1
    ids = [0, 2, 3]
    if properties is None:
        wall_clock = whole.withColumn("p", F.col("p").cast("timestamp_ntz")) if kind == "timestamp" else whole
        for static in ({"p": given}, {}):
            stream = StreamingConnection(acid.connection, "d.t", ArrowWriter(), static_partition=static)
            with stream, stream.transaction():
                stream.write((one if static else wall_clock).toArrow())
        assert acid.update("d.t", {"p": value}) == 5
        acid.merge("d.t", spark.sql(f"SELECT 5 AS id, {value} AS p"), "t.id = s.id").whenNotMatchedInsertAll().execute()
        ids = [0, 2, 2, 2, 3, 5]
    assert sorted(row.id for row in acid.table("d.t").collect()) == ids
    assert acid.table("d.t").partitions() == names
    for partition, frame in (({"p": given}, one), (None, whole), ({"p": given}, one.limit(0))):
        acid.insert("d.t", whole)
        acid.overwrite("d.t", frame, partition=partition)
        assert [row.id for row in acid.table("d.t").collect()] == [row.id for row in frame.collect()]
    assert acid.table("d.t").partitions() == names


@pytest.mark.parametrize("kind", NAMED_BY_OTHERS)
def test_an_overwrite_of_two_partitions_of_one_value_is_refused(acid, spark, kind):
    """It would leave the rows of the other one."""
    text, value, given = NAMED_BY_OTHERS[kind]
    table = Table("d", "t", (), (Column("p", kind),))
    named_by_others(acid, kind, text, partition_text(table, table.partition_keys[0], given))
    acid.insert("d.t", spark.sql(f"SELECT 1 AS id, {value} AS p"))
    for partition in ({"p": given}, None):
        with pytest.raises(UnsupportedTableError, match="of the same values"):
            acid.overwrite("d.t", spark.sql(f"SELECT 2 AS id, {value} AS p"), partition=partition)
    assert [row.id for row in acid.table("d.t").collect()] == [1]
    acid.truncate("d.t", {"p": given})
    assert acid.table("d.t").count() == 0
