"""Insert-only tables of any format: read by the snapshot, like any ACID table."""

import json
import random
import re
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import FormatError, TableNotAcidError, UnsupportedTableError
from hive_acid.spark import AcidSession
from hive_acid.spark.read.quoted_text import Signs
from hive_acid.wire import ttypes
from tests.spark.checker import location_of
from tests.spark.conftest import OVER_CONNECT
from tests.spark.placed import commit_writes
from tests.spark.plans import scans

INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
_HIVE = "org.apache.hadoop.hive"
FORMATS = {
    "orc": (f"{_HIVE}.ql.io.orc.OrcInputFormat", f"{_HIVE}.ql.io.orc.OrcSerde"),
    "parquet": (
        f"{_HIVE}.ql.io.parquet.MapredParquetInputFormat",
        f"{_HIVE}.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "json": ("org.apache.hadoop.mapred.TextInputFormat", f"{_HIVE}.serde2.JsonSerDe"),
    "text": ("org.apache.hadoop.mapred.TextInputFormat", f"{_HIVE}.serde2.lazy.LazySimpleSerDe"),
    "csv": ("org.apache.hadoop.mapred.TextInputFormat", f"{_HIVE}.serde2.OpenCSVSerde"),
    "avro": (f"{_HIVE}.ql.io.avro.AvroContainerInputFormat", f"{_HIVE}.serde2.avro.AvroSerDe"),
    "rc": (f"{_HIVE}.ql.io.RCFileInputFormat", f"{_HIVE}.serde2.columnar.LazyBinaryColumnarSerDe"),
}


def create(
    acid: AcidSession, kind: Any, columns: Any, keys: Any = (), serde_parameters: Any = None, **properties: Any
) -> Any:
    input_format, serde = FORMATS[kind]
    table = Table(
        "d",
        "t",
        tuple(Column(*pair) for pair in columns.items()),
        tuple(Column(*pair) for pair in dict(keys).items()),
        {**INSERT_ONLY, **properties},
        input_format=input_format,
    ).to_wire("me")
    table.sd.serdeInfo = ttypes.SerDeInfo(serializationLib=serde, parameters=serde_parameters or {})
    acid.connection.call("create_table", table)
    return location_of(acid, "d.t")


def rows(acid: AcidSession) -> Any:
    return sorted(tuple(row) for row in acid.table("d.t").collect())


@pytest.mark.parametrize("kind", ["orc", "parquet", "json"])
def test_spark_formats(acid: AcidSession, spark: SparkSession, kind: Any) -> None:
    columns = {"id": "int", "name": "string", "tags": "array<string>", "at": "timestamp"}
    at = create(acid, kind, columns)
    commit_writes(acid, "d.t", 4, aborted=(2,))
    frame = spark.range(12).selectExpr(
        "cast(id AS int) id",
        "concat('n', id) name",
        "array('a', cast(id AS string)) tags",
        "timestamp'2020-01-01 10:00:00' at",
    )
    for write_id in (1, 2):
        part = frame.where(f"id % 4 = {write_id}")
        part.write.format(kind).save(str(at / f"delta_000000{write_id}_000000{write_id}_0000"))
    union = at / "delta_0000004_0000004_0000" / "HIVE_UNION_SUBDIR_1"
    frame.where("id % 4 = 0").write.format(kind).save(str(union))
    found = acid.table("d.t")
    assert sorted(row.id for row in found.collect()) == [0, 1, 4, 5, 8, 9]
    row = found.where("id = 8").collect()[0]
    assert (row.name, row.tags, str(row.at)) == ("n8", ["a", "8"], "2020-01-01 10:00:00")
    if kind != "json":
        assert all("Batched: true" in one.text for one in scans(found.select("id", "name")))


def test_partitions_and_a_base(acid: AcidSession, spark: SparkSession) -> None:
    at = create(acid, "parquet", {"id": "int"}, {"p": "string", "q": "int"})
    commit_writes(acid, "d.t", 3)
    table = acid.connection.table("d", "t")
    names = [table.partition_name(values) for values in (("a b", "1"), ("x%y", "2"), (None, "3"))]
    acid.connection.add_partitions(table, {name: f"file:{at}/{name}" for name in names})
    for number, name in enumerate(names):
        for write_id in (1, 3):
            frame = spark.createDataFrame([(10 * write_id + number,)], "id int").coalesce(1)
            frame.write.parquet(str(at / name / f"delta_000000{write_id}_000000{write_id}_0000"))
    spark.createDataFrame([(99,)], "id int").write.parquet(str(at / names[0] / "base_0000002"))
    everything = {(99, "a b", 1), (30, "a b", 1), (11, "x%y", 2), (31, "x%y", 2), (12, None, 3), (32, None, 3)}
    found = acid.table("d.t")
    assert {tuple(row) for row in found.collect()} == everything
    assert sum(one.files for one in scans(found.where("p = 'x%y'"))) == 2


def test_delimited_text(acid: AcidSession, spark: SparkSession) -> None:
    columns = {"id": "int", "name": "string", "price": "decimal(6,2)", "day": "date", "data": "binary"}
    at = create(acid, "text", columns, serde_parameters={"field.delim": "|", "escape.delim": "\\"})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    lines = [r"1|a\|b\\|1.50|2020-01-02|eHk=", r"2|\N|\N|\N|\N", "3", "x|y|z|w|", r"5||7|1500-03-01||more"]
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("\n".join(lines) + "\n")
    found = {row.name: row for row in acid.table("d.t").collect()}
    assert tuple(found["a|b\\"])[2:] == (pytest.approx(1.5), found["a|b\\"].day, bytearray(b"xy"))
    assert str(found["a|b\\"].day) == "2020-01-02"
    assert tuple(found["y"]) == (None, "y", None, None, bytearray(b""))
    assert (found[""].id, str(found[""].day)) == (5, "1500-03-01")
    assert acid.table("d.t").where("name IS NULL").count() == 2


def test_text_with_hives_defaults(acid: AcidSession) -> None:
    at = create(acid, "text", {"id": "int", "name": "string"}, serde_parameters={"serialization.format": "1"})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text('1\x01say "hi", ok\n2\x01\\N\n')
    assert rows(acid) == [(1, 'say "hi", ok'), (2, None)]


def test_properties_of_the_table_go_before_those_of_its_serde(acid: AcidSession) -> None:
    """As Hive has it; TBLPROPERTIES is where most say what stands for null."""
    given = {"field.delim": "|", "serialization.null.format": "-"}
    at = create(acid, "text", {"id": "int", "name": "string"}, (), given, **{"serialization.null.format": ""})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("1|\n2|-\n|x\n")
    found = sorted((tuple(row) for row in acid.table("d.t").collect()), key=str)
    assert found == [(1, None), (2, "-"), (None, "x")]


@pytest.mark.parametrize(
    ("name", "value"), [("serialization.encoding", "GBK"), ("serialization.last.column.takes.rest", "true")]
)
def test_text_that_would_be_read_as_another_is_refused(
    acid: AcidSession, spark: SparkSession, name: Any, value: Any
) -> None:
    at = create(acid, "text", {"id": "int", "name": "string"}, (), {"field.delim": "|", name: value})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("1|x\n")
    frame = spark.createDataFrame([(1, "x")], "id int, name string")
    for verb in (lambda: acid.table("d.t").collect(), lambda: acid.insert("d.t", frame)):
        with pytest.raises(UnsupportedTableError, match=name.replace(".", r"\.")):
            verb()


def test_quoted_text(acid: AcidSession) -> None:
    """An empty field is an empty text, what is missing is null, and each line is a row."""
    at = create(acid, "csv", {"id": "string", "name": "string"})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    lines = ['1,"a,b"', "2,c", ',""', "3", "", " ", '4,"x""y"', '5,"C:\\new"', '"6,7', "8,9,10"]
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("\n".join(lines) + "\n")
    expected = {
        ("1", "a,b"),
        ("2", "c"),
        ("", ""),
        ("3", None),
        (None, None),
        (" ", None),
        ("4", 'x"y'),
        ("5", "C:new"),
    }
    found = [tuple(row) for row in acid.table("d.t").collect()]
    assert {*found} == expected | {("8", "9")}
    assert len(found) == len(lines)
    assert acid.table("d.t").where("name = ''").count() == 1


def by_hive(spark: SparkSession, types: dict[str, str], told: dict[str, str]) -> Any:
    """What LazySimpleSerDe itself, which Spark has among its libraries, reads from a line."""
    jvm: Any = spark._jvm
    serde, properties = jvm.org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe(), jvm.java.util.Properties()
    named = {"columns": ",".join(types), "columns.types": ":".join(types.values())}
    for name, value in (named | told).items():
        properties.setProperty(name, value)
    serde.initialize(jvm.org.apache.hadoop.conf.Configuration(), properties)
    inspector = serde.getObjectInspector()
    fields = list(inspector.getAllStructFieldRefs())
    to_java = jvm.org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils.copyToStandardJavaObject

    def read(line: str) -> tuple[Any, ...]:
        row = serde.deserialize(jvm.org.apache.hadoop.io.Text(line))
        values = ((inspector.getStructFieldData(row, field), field.getFieldObjectInspector()) for field in fields)
        return tuple(to_java(*value) for value in values)

    return read


OF_DELIMITERS = [("|", None), ("|", "\\"), (",", "^"), ("\x01", "$")]


@pytest.mark.parametrize(("delimiter", "escape"), OF_DELIMITERS, ids=repr)
def test_delimited_text_is_what_hives_serde_reads(
    acid: AcidSession, spark: SparkSession, delimiter: str, escape: str | None
) -> None:
    """Random lines."""
    told = {"field.delim": delimiter} | ({"escape.delim": escape} if escape else {})
    types = dict.fromkeys(["a", "b", "c"], "string")
    read = by_hive(spark, types, told)
    chance = random.Random(f"{delimiter} {escape}")
    sign = escape or "\\"
    of = [delimiter, delimiter, sign, sign, "a", "r", "n", "N", " ", "é", "\U0001f600", "\t", "\u2028"]
    lines = {"".join(chance.choices(of, k=chance.randrange(9))) for _ in range(700)} | {r"\N", rf"a{delimiter}\N"}
    at = create(acid, "text", types, (), told)
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("".join(f"{line}\n" for line in sorted(lines)))
    found = sorted((tuple(row) for row in acid.table("d.t").collect()), key=str)
    assert found == sorted(map(read, lines), key=str)


WORDS = re.split(
    "/",
    "/ /1/ 1/1 /\t1/+1/-1/-0/01/1.5/1./.5/-.5/./-/1.5.1/1e3/1e400/1d/0x10/1,000/1_0/\uff11/NaN/nan/Infinity/+Infinity"
    "/inf/-inf/127/128/-129/128.5/2147483648/9223372036854775807.9/99999999999999999999/true/TRUE/t/T/yes/no/f"
    "/ true/true /null/on/10:00/2020-01-02",
)
NUMBERS = ["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(20,2)"]


def test_values_of_delimited_text_are_those_of_hive(acid: AcidSession, spark: SparkSession) -> None:
    """Spark's casts take more for a boolean or a number than Hive does, and no fraction for a whole number."""
    types = {f"c{place}": kind for place, kind in enumerate(NUMBERS)}
    told = {"field.delim": "|"}
    at = create(acid, "text", types, (), told)
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    lines = ["|".join([word] * len(types)) for word in WORDS]
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("".join(f"{line}\n" for line in lines))
    read = by_hive(spark, types, told)

    def shown(row: Any) -> tuple[Any, ...]:
        *simple, decimal = row
        return (*map(str, simple), None if decimal is None else str(Decimal(str(decimal)).normalize()))

    as_float = [f"double(string({name}))" if kind == "float" else name for name, kind in types.items()]
    found = [shown(row) for row in acid.table("d.t").selectExpr(*as_float).collect()]
    assert sorted(found, key=str) == sorted(map(shown, map(read, lines)), key=str)


@pytest.mark.parametrize("kind", ["text", "json", "csv"])
def test_a_time_without_a_day_is_none_of_today(acid: AcidSession, spark: SparkSession, kind: str) -> None:
    at = create(acid, kind, {"d": "date", "t": "timestamp"}, serde_parameters={"field.delim": ","})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    texts = ["10:00:00", "12:30", "T1:2", "2020", "2020-01", "2020-1-2", "2020-01-02 03:04:05.123456", "0001-01-01"]
    lines = [json.dumps({"d": text, "t": text}) if kind == "json" else f"{text},{text}" for text in texts]
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("".join(f"{line}\n" for line in lines))
    found = acid.table("d.t").selectExpr("string(d)", "string(t)").collect()
    expected: list[Any] = [(None, None)] * 5 + [("2020-01-02", "2020-01-02 00:00:00")]
    expected += [("2020-01-02", "2020-01-02 03:04:05.123456"), ("0001-01-01", "0001-01-01 00:00:00")]
    assert sorted(map(tuple, found), key=str) == sorted(expected, key=str)


OF_QUOTES = [
    Signs(",", '"', "\\"),
    Signs(";", "'", "\\"),
    Signs("\t", '"', "|"),
    Signs("^", "]", "-"),
    Signs(",", '"', "a"),
]


@pytest.mark.parametrize("signs", OF_QUOTES, ids=str)
def test_quoted_text_is_what_hives_parser_reads(acid: AcidSession, spark: SparkSession, signs: Any) -> None:
    """Random lines beside opencsv itself, which Spark has among its libraries."""
    create_reader, text = spark._jvm.au.com.bytecode.opencsv.CSVReader, spark._jvm.java.io.StringReader  # type: ignore[union-attr]
    chance = random.Random(" ".join(signs))
    of = [*signs, *signs[:2], signs.quote, "a", " ", "é", "\U0001f600", "b", "\u2003"]
    lines = {"".join(chance.choices(of, k=chance.randrange(9))) for _ in range(600)}
    whole = ["", "x", *(text.translate(str.maketrans(',"\\', "".join(signs))) for text in
             ('"x"', '"x""y"', '"\\"\\\\"', '"a,b"', ' "x"', "\\N", '""', '""""'))]  # fmt: skip
    lines |= {signs.separator.join(chance.choices(whole, k=4)) for _ in range(200)}
    told = dict(zip(("separatorChar", "quoteChar", "escapeChar"), signs, strict=True))
    at = create(acid, "csv", {f"c{place}": "string" for place in range(10)}, (), told)
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("".join(f"{line}\n" for line in sorted(lines)))

    def read(line: Any) -> Any:
        fields = list(create_reader(text(line), *signs).readNext() or [])
        return (*fields, *[None] * 10)[:10]

    found = sorted((tuple(row) for row in acid.table("d.t").collect()), key=str)
    assert found == sorted(map(read, lines), key=str)


def test_quoted_text_of_any_length(acid: AcidSession) -> None:
    at = create(acid, "csv", {"a": "string", "b": "string"})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    lines = ['"' + 'x""y' * 300_000 + '",b', "x" * 1_000_000 + ",b", ' "' + "xy" * 5_000 + '",b']
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("\n".join(lines))
    found = acid.table("d.t").selectExpr("length(a)", "b").collect()
    assert sorted(map(tuple, found)) == [(10_001, "b"), (900_000, "b"), (1_000_000, "b")]


def test_quoted_text_of_signs_that_hive_does_not_take(acid: AcidSession) -> None:
    at = create(acid, "csv", {"a": "string"}, (), {"quoteChar": "\\"})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("a\n")
    with pytest.raises(UnsupportedTableError, match="lines cannot be told"):
        acid.table("d.t").collect()


def test_json_lines_of_another_writer(acid: AcidSession) -> None:
    at = create(acid, "json", {"id": "int", "at": "timestamp"})
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    lines = [json.dumps({"id": 1, "at": "2020-01-01 10:00:00", "more": [1]}), json.dumps({"id": None})]
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("\n".join(lines))
    assert sorted(map(str, acid.table("d.t").collect())) == [
        "Row(id=1, at=datetime.datetime(2020, 1, 1, 10, 0))", "Row(id=None, at=None)"
    ]  # fmt: skip


def test_what_is_refused(acid: AcidSession, spark: SparkSession) -> None:
    at = create(acid, "orc", {"id": "int"})
    with pytest.raises(TableNotAcidError, match="its rows have no ROW__ID"):
        acid.table("d.t", row_id=True)
    assert acid.table("d.t").dtypes == [("id", "int")]
    assert acid.table("d.t").count() == 0
    commit_writes(acid, "d.t", 2, aborted=(2,))
    spark.range(3).select(F.col("id").cast("int")).write.orc(str(at / "delta_0000001_0000002"))
    with pytest.raises(FormatError, match="only some of the writes"):
        _ = acid.table("d.t").schema
    with pytest.raises(TableNotAcidError, match="insert-only"):
        acid.delete("d.t", "id = 1")


@pytest.mark.parametrize(
    ("kind", "columns", "properties", "words"),
    [
        ("rc", {"id": "int"}, {}, "RCFileInputFormat"),
        ("avro", {"id": "int"}, {}, "(?i)avro"),
        ("text", {"id": "int", "tags": "array<int>"}, {}, "nested columns .tags."),
        ("text", {"id": "int"}, {"skip.header.line.count": "1"}, "skip.header.line.count"),
    ],
)
def test_formats_that_are_not_read(acid: AcidSession, kind: Any, columns: Any, properties: Any, words: Any) -> None:
    at = create(acid, kind, columns, **properties)
    commit_writes(acid, "d.t", 1)
    (at / "delta_0000001_0000001_0000").mkdir()
    (at / "delta_0000001_0000001_0000" / "000000_0").write_text("1")
    # A client of Spark Connect hears of a format that its server lacks when the frame is looked at, from Spark.
    expected = (UnsupportedTableError, AnalysisException) if OVER_CONNECT else UnsupportedTableError
    with pytest.raises(expected, match=words):
        _ = acid.table("d.t").columns
