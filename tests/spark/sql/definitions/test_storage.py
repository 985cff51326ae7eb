"""CREATE TABLE with Hive's words for storage: what is made, shown and made again, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import HiveAcidError, SqlError, UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT

PLAIN = "TBLPROPERTIES ('transactional'='false')"
GROWS = "TBLPROPERTIES ('transactional_properties'='insert_only')"
MANAGED, EXTERNAL = "MANAGED_TABLE", "EXTERNAL_TABLE"
LAZY, CSV = "LazySimpleSerDe", "OpenCSVSerde"

MADE: dict[str, tuple[str, str, str, dict[str, str]]] = {
    f"TABLE d.x (a int, b string) STORED AS SEQUENCEFILE {PLAIN}": (
        MANAGED,
        "SequenceFileInputFormat",
        LAZY,
        {},
    ),
    f"TABLE d.x (a int) STORED AS RCFILE {PLAIN}": (
        MANAGED,
        "RCFileInputFormat",
        "LazyBinaryColumnarSerDe",
        {},
    ),
    "EXTERNAL TABLE d.x (a int) STORED AS PARQUET": (
        EXTERNAL,
        "MapredParquetInputFormat",
        "ParquetHiveSerDe",
        {},
    ),
    "EXTERNAL TABLE d.x (a int) COMMENT 'c' PARTITIONED BY (p date) STORED AS ORC": (
        EXTERNAL,
        "OrcInputFormat",
        "OrcSerde",
        {},
    ),
    "EXTERNAL TABLE IF NOT EXISTS d.x (a int, b string) ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\t'": (
        EXTERNAL,
        "TextInputFormat",
        LAZY,
        {"field.delim": "\t", "serialization.format": "\t"},
    ),
    "TABLE d.x (a int, b array<string>, c map<string,int>) ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\001' "
    "ESCAPED BY '\\\\' COLLECTION ITEMS TERMINATED BY ';' MAP KEYS TERMINATED BY ':' "
    f"LINES TERMINATED BY '\\n' NULL DEFINED AS '' STORED AS TEXTFILE {PLAIN}": (
        MANAGED,
        "TextInputFormat",
        LAZY,
        {
            "field.delim": "\x01",
            "serialization.format": "\x01",
            "escape.delim": "\\",
            "collection.delim": ";",
            "colelction.delim": ";",
            "mapkey.delim": ":",
            "line.delim": "\n",
            "serialization.null.format": "",
        },
    ),
    f"TABLE d.x (a int, b string) ROW FORMAT SERDE 'org.apache.hadoop.hive.serde2.{CSV}' "
    f"WITH SERDEPROPERTIES ('separatorChar'=';', 'quoteChar'='\\'') STORED AS TEXTFILE {PLAIN}": (
        MANAGED,
        "TextInputFormat",
        CSV,
        {"separatorChar": ";", "quoteChar": "'"},
    ),
    "TABLE d.x (a int) ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.orc.OrcSerde' STORED AS INPUTFORMAT "
    "'org.apache.hadoop.hive.ql.io.orc.OrcInputFormat' OUTPUTFORMAT "
    "'org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat'": (
        MANAGED,
        "OrcInputFormat",
        "OrcSerde",
        {},
    ),
    f"TABLE d.x (a int) STORED AS INPUTFORMAT 'org.x.In' OUTPUTFORMAT 'org.x.Out' {PLAIN}": (
        MANAGED,
        "In",
        LAZY,
        {},
    ),
    "TABLE d.x (a int) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS ORC": (
        MANAGED,
        "OrcInputFormat",
        "OrcSerde",
        {"field.delim": ",", "serialization.format": ","},
    ),
    f"TABLE d.x (a int) STORED AS 'avro' {GROWS}": (MANAGED, "AvroContainerInputFormat", "AvroSerDe", {}),
}
"""What is written behind CREATE, and the type, the input format, the SerDe and what that is told of the table."""


def wire_of(acid: AcidSession, name: str = "x") -> Any:
    """What the metastore keeps, without what each table has of its own."""
    wire = acid.connection.wire_table("d", name)
    wire.id = wire.createTime = wire.writeId = None
    wire.parameters = {key: value for key, value in wire.parameters.items() if key != "transient_lastDdlTime"}
    return wire


@pytest.mark.parametrize("text", MADE)
def test_a_table_is_stored_as_it_says(acid: AcidSession, text: str) -> None:
    kind, of_input, serde, told = MADE[text]
    acid.sql(f"CREATE {text}")
    wire = wire_of(acid)
    assert wire.tableType == kind
    assert wire.sd.inputFormat.rpartition(".")[2] == of_input
    assert wire.sd.serdeInfo.serializationLib.rpartition(".")[2] == serde
    assert wire.sd.serdeInfo.parameters == {"serialization.format": "1", **told}
    assert acid.connection.table("d", "x").is_transactional == ("false" not in text and kind == MANAGED)
    (shown,) = (row[0] for row in acid.sql("SHOW CREATE TABLE d.x").collect())
    acid.sql("DROP TABLE d.x")
    acid.sql(shown)
    assert wire_of(acid) == wire, "what is shown can be pasted back"
    acid.sql("CREATE TABLE d.y LIKE d.x")
    like = wire_of(acid, "y")
    assert (like.sd.cols, like.sd.serdeInfo, like.tableType) == (wire.sd.cols, wire.sd.serdeInfo, wire.tableType)
    assert acid.connection.table("d", "y").is_transactional == acid.connection.table("d", "x").is_transactional


def test_like_takes_clauses_and_views(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TABLE d.t (a int COMMENT 'c', b string) PARTITIONED BY (p int)")
    acid.sql("CREATE VIEW d.v AS SELECT a, p FROM d.t")
    acid.sql(f"CREATE EXTERNAL TABLE d.e LIKE d.t STORED AS PARQUET LOCATION '{tmp_path}/e' TBLPROPERTIES ('k'='v')")
    external = acid.connection.table("d", "e")
    assert (external.table_type, external.is_transactional) == (EXTERNAL, False)
    assert external.columns == acid.connection.table("d", "t").columns
    assert external.parameters["k"] == "v"
    acid.sql("CREATE TABLE d.of_view LIKE d.v")
    of_view = acid.connection.table("d", "of_view")
    assert of_view.is_full_acid
    assert [(one.name, one.type) for one in of_view.columns] == [("a", "int"), ("p", "int")]
    acid.sql(f"CREATE TABLE d.text LIKE d.t ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' {GROWS}")
    acid.sql("INSERT INTO d.text VALUES (1, 'x', 2)")
    assert acid.table("d.text").collect() == [(1, "x", 2)]


def test_text_between_delimiters_is_read_as_written(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.sql(
        "CREATE TABLE d.x (a int, b string) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' "
        f"NULL DEFINED AS 'nil' STORED AS TEXTFILE {GROWS}"
    )
    rows = [(1, "a,b"), (2, None), (3, "x\\y"), (4, "nils"), (5, "")]
    acid.insert("d.x", spark.createDataFrame(rows, "a int, b string").coalesce(1))
    assert sorted(acid.sql("SELECT * FROM d.x").collect()) == rows
    (file,) = (row.path for row in acid.sql("SELECT path FROM d.x.files").collect())
    lines = Path(file.removeprefix("file:")).read_text().splitlines()
    assert lines == ["1,a\\,b", "2,nil", "3,x\\\\y", "4,nils", "5,"]
    given = tmp_path / "given"
    given.mkdir()
    (given / "rows.csv").write_text("6,six\n7,nil\n")
    acid.sql(f"LOAD DATA INPATH '{given}' INTO TABLE d.x")
    assert sorted(acid.table("d.x").where("a > 5").collect()) == [(6, "six"), (7, None)]


def test_an_external_table_keeps_its_files(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/rows")
    acid.sql(f"CREATE EXTERNAL TABLE d.x (id bigint) STORED AS PARQUET LOCATION '{tmp_path}/rows'")
    assert sorted(map(tuple, acid.sql("SELECT * FROM d.x").collect())) == [(0,), (1,), (2,)]
    acid.sql("DROP TABLE d.x")
    assert spark.read.parquet(f"{tmp_path}/rows").count() == 3
    acid.sql(f"CREATE TABLE d.x (id bigint) STORED AS PARQUET LOCATION '{tmp_path}/rows' {PLAIN}")


ORC_ALONE = "full-ACID tables are STORED AS ORC"
REFUSED = {
    "EXTERNAL TABLE d.x (a int)": "has to say how its files are STORED AS",
    "EXTERNAL TABLE d.x (a int) STORED AS ORC TBLPROPERTIES ('transactional'='true')": "cannot be transactional",
    "EXTERNAL TRANSACTIONAL TABLE d.x (a int) STORED AS ORC": "neither TRANSACTIONAL nor MANAGED",
    "TABLE d.x (a int) ROW FORMAT DELIMITED FIELDS TERMINATED BY ','": rf"{ORC_ALONE}.*TEXTFILE.*insert_only.*'false'",
    "TABLE d.x (a int) STORED AS SEQUENCEFILE": rf"{ORC_ALONE}. One STORED AS SEQUENCEFILE is .*'false'",
    "TABLE d.x (a int) STORED AS INPUTFORMAT 'a.In' OUTPUTFORMAT 'a.Out'": rf"{ORC_ALONE}.*INPUTFORMAT 'a.In'",
    f"TABLE d.x (a int) STORED AS SEQUENCEFILE {GROWS}": "STORED AS SEQUENCEFILE is not written here: ORC, PARQUET",
    f"TABLE d.x (a int) ROW FORMAT SERDE 'a.b.C' {GROWS}": "SerDe 'a.b.C' is not written here",
    "TABLE d.x (a int) STORED AS FOO": "STORED AS FOO is not written here: ORC, PARQUET, AVRO, TEXTFILE, JSONFILE are",
    "TABLE d.x (a int) STORED BY ICEBERG": "STORED BY: tables of other systems .* column 26",
    "TABLE d.x (a int) CLUSTER BY (a)": "CLUSTER BY: rows are placed by CLUSTERED BY .* column 26",
    "TABLE d.x (a int) PARTITIONED BY (bucket(4, a))": "not of functions: .* column 42",
    "TABLE d.x (a int) PARTITIONED BY SPEC (bucket(4, a))": "PARTITIONED BY SPEC: partitions have values of columns",
    "TABLE d.x LIKE FILE ORC '/tmp/x'": "LIKE FILE reads no columns here",
    "TABLE d.x LIKE d.t USING parquet": "leave USING out",
    "TABLE d.x LIKE d.nothere": "the metastore has no table d.nothere",
    "TABLE d.x (a int) ROW FORMAT NONSENSE": "DELIMITED or SERDE 'class' was expected.*column 37",
    f"TABLE d.x (a int) ROW FORMAT DELIMITED LINES TERMINATED BY ';' {PLAIN}": "LINES TERMINATED BY takes .* column 67",
    "TABLE d.x (a int) ROW FORMAT DELIMITED ROW FORMAT DELIMITED": "ROW FORMAT is given twice",
    "TABLE d.x (a int) NONSENSE": "of CREATE TABLE's clauses .* column 26: NONSENSE",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_no_meaning_here_is_refused_by_its_name(acid: AcidSession, text: str) -> None:
    acid.sql("CREATE TABLE d.t (a int)")
    with pytest.raises(HiveAcidError, match=REFUSED[text]):
        acid.sql(f"CREATE {text}")
    assert acid.connection.call("get_all_tables", "d") == ["t"]


@pytest.mark.skipif(OVER_CONNECT, reason="a client of Connect gets errors with names")
def test_a_source_that_spark_does_not_have_is_said_in_a_line(acid: AcidSession) -> None:
    for text in ("CREATE TABLE d.x (a int) USING delta", "CREATE TABLE d.x USING iceberg AS SELECT 1 AS a"):
        with pytest.raises(SqlError, match=r"Spark says: \[DATA_SOURCE_NOT_FOUND\].*(delta|iceberg)"):
            acid.sql(text)


def test_verbs_know_the_same_words(acid: AcidSession) -> None:
    acid.create_table("d.x", {"a": "int"}, external=True, stored_as="textfile", serde_properties={"field.delim": ","})
    assert wire_of(acid).sd.serdeInfo.parameters == {"serialization.format": "1", "field.delim": ","}
    with pytest.raises(UnsupportedTableError, match="cannot be transactional"):
        acid.create_table("d.y", {"a": "int"}, external=True, properties={"transactional": "true"})
