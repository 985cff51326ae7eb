"""Plain tables that SQL makes: with their rows, sorted within buckets, with skewed values; beside Spark's own."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.catalog.table import Table
from hive_acid.errors import (
    AlreadyExistsError,
    ColumnError,
    SqlError,
    TransactionClosedError,
    UnsupportedTableError,
)
from hive_acid.spark import AcidSession
from hive_acid.spark.tables import plain
from tests.spark.sql.definitions.test_storage import wire_of

PLAIN = "TBLPROPERTIES ('transactional'='false')"
ROWS = "SELECT CAST(id AS int) AS id, concat('v', id) AS v, CAST(id % 3 AS int) AS p FROM range(10)"


def place_of(acid: AcidSession, table: str = "x") -> Path:
    return Path(acid.connection.table("d", table).location.removeprefix("file:"))


def told(acid: AcidSession) -> list[str]:
    return sorted(acid.connection.call("get_all_tables", "d"))


@pytest.mark.parametrize("form", ["PARQUET", "ORC"])
@pytest.mark.parametrize("keys", ["", "PARTITIONED BY (p)"])
@pytest.mark.parametrize("external", [False, True])
def test_a_plain_table_is_made_with_its_rows(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, form: str, keys: str, external: bool
) -> None:
    kind = f"LOCATION '{tmp_path}/x'" if external else PLAIN
    acid.sql("CREATE TABLE d.source (id int, v string, p int)")
    acid.sql(f"INSERT INTO d.source {ROWS}")
    (counts,) = acid.sql(
        f"CREATE {'EXTERNAL ' * external}TABLE d.x {keys} STORED AS {form} {kind} AS SELECT * FROM d.source"
    ).collect()
    assert counts.num_inserted_rows == 10
    table = acid.connection.table("d", "x")
    assert table.table_type == ("EXTERNAL_TABLE" if external else "MANAGED_TABLE")
    assert not table.is_transactional
    assert [key.name for key in table.partition_keys] == (["p"] if keys else [])
    assert len(acid.connection.partition_names(table)) == (3 if keys else 0)
    found = spark.read.format(form.lower()).load(str(place_of(acid)))
    assert sorted(map(tuple, found.select("id", "v", "p").collect())) == sorted(map(tuple, spark.sql(ROWS).collect()))
    with pytest.raises(AlreadyExistsError):
        acid.sql(f"CREATE TABLE d.x STORED AS {form} {PLAIN} AS SELECT 1 AS id")
    acid.sql(f"CREATE TABLE IF NOT EXISTS d.x STORED AS {form} {PLAIN} AS SELECT 1 AS id")
    assert found.count() == 10


def test_a_plain_table_that_cannot_be_filled_is_not_there(acid: AcidSession, tmp_path: Path) -> None:
    for kind, start in ((PLAIN, "CREATE TABLE"), (f"LOCATION '{tmp_path}/x'", "CREATE EXTERNAL TABLE")):
        with pytest.raises(Exception, match="here"):
            acid.sql(f"{start} d.x STORED AS PARQUET {kind} AS SELECT CAST(raise_error('here') AS int) AS a")
        assert told(acid) == []
    assert not any((tmp_path / "x").iterdir())
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "some").write_text("somebody's")
    for start, kind in (("CREATE TABLE", PLAIN), ("CREATE EXTERNAL TABLE", "")):
        with pytest.raises(UnsupportedTableError, match=r"has files in it, among which the rows of d\.x"):
            acid.sql(f"{start} d.x STORED AS ORC LOCATION '{tmp_path}/full' {kind} AS SELECT 1 AS a")
    assert (tmp_path / "full" / "some").read_text() == "somebody's"
    with pytest.raises(UnsupportedTableError, match=r"SequenceFileInputFormat .*which is not written"):
        acid.sql(f"CREATE TABLE d.x STORED AS SEQUENCEFILE {PLAIN} AS SELECT 1 AS a")
    with pytest.raises(UnsupportedTableError, match="Spark would not write its buckets"):
        acid.sql(f"CREATE TABLE d.x CLUSTERED BY (a) INTO 2 BUCKETS {PLAIN} AS SELECT 1 AS a")
    with acid.transaction(), pytest.raises(TransactionClosedError, match="before the block or after it"):
        acid.sql(f"CREATE TABLE d.x {PLAIN} AS SELECT 1 AS a")
    plan = acid.sql(f"EXPLAIN CREATE TABLE d.x {PLAIN} AS SELECT 1 AS a").collect()[0].plan
    assert "CREATE TABLE AS d.x" in plan
    assert told(acid) == []


def test_a_file_that_another_puts_there_meanwhile_stays(
    acid: AcidSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inserted(context: object, table: Table, frame: object) -> int:
        (tmp_path / "x").mkdir(exist_ok=True)
        (tmp_path / "x" / "another's").write_text("rows")
        raise RuntimeError("here")

    monkeypatch.setattr(plain, "insert", inserted)
    with pytest.raises(RuntimeError, match="here"):
        acid.sql(f"CREATE EXTERNAL TABLE d.x STORED AS PARQUET LOCATION '{tmp_path}/x' AS SELECT 1 AS a")
    assert told(acid) == []
    assert (tmp_path / "x" / "another's").read_text() == "rows"


SAID: dict[str, tuple[list[tuple[str, int]], list[str], list[list[str]], bool]] = {
    f"(a int, b string) CLUSTERED BY (a) SORTED BY (b DESC, a) INTO 4 BUCKETS {PLAIN}": (
        [("b", 0), ("a", 1)],
        [],
        [],
        False,
    ),
    "(a int, b string) SKEWED BY (a) ON (1, -5, '7')": ([], ["a"], [["1"], ["-5"], ["7"]], False),
    "(a int, b string) SKEWED BY (B, a) ON (('it''s', 1), ('x,)', 2))": (
        [],
        ["b", "a"],
        [["it's", "1"], ["x,)", "2"]],
        False,
    ),
    f"(a int, b string) SKEWED BY (b) ON ('x') STORED AS DIRECTORIES STORED AS ORC {PLAIN}": (
        [],
        ["b"],
        [["x"]],
        True,
    ),
}
"""What is written behind a name, and order, skewed columns, values and directories that the metastore tells."""


@pytest.mark.parametrize("text", SAID)
def test_order_and_skewed_values_are_stored_as_hive_has_them(acid: AcidSession, text: str) -> None:
    acid.sql(f"CREATE TABLE d.x {text}")
    wire = wire_of(acid)
    skew = wire.sd.skewedInfo
    order = [(one.col, one.order) for one in wire.sd.sortCols]
    assert (order, skew.skewedColNames, skew.skewedColValues, wire.sd.storedAsSubDirectories) == SAID[text]
    described = {row.col_name: row.data_type for row in acid.sql("DESCRIBE FORMATTED d.x").collect()}
    assert ("Sorted by" in described, "Skewed by" in described) == (bool(order), not order)
    (shown,) = (row[0] for row in acid.sql("SHOW CREATE TABLE d.x").collect())
    acid.sql("CREATE TABLE d.y LIKE d.x")
    like: Any = wire_of(acid, "y").sd
    assert (like.sortCols, like.skewedInfo) == (wire.sd.sortCols, skew)
    acid.sql("DROP TABLE d.x")
    acid.sql(shown)
    assert wire_of(acid) == wire, "what is shown can be pasted back"


REFUSED = {
    "(a int) CLUSTERED BY (a) SORTED BY (a) INTO 2 BUCKETS": (UnsupportedTableError, "cannot be SORTED BY"),
    "(a int) CLUSTERED BY (a) SORTED BY (a) INTO 2 BUCKETS TBLPROPERTIES ('transactional_properties'='insert_only')": (
        UnsupportedTableError,
        "cannot be SORTED BY",
    ),
    f"(a int) CLUSTERED BY (a) SORTED BY (b) INTO 2 BUCKETS {PLAIN}": (ColumnError, "SORTED BY of d.x names b"),
    f"(a int) CLUSTERED BY (a) SORTED BY (a UP) INTO 2 BUCKETS {PLAIN}": (SqlError, "column 56"),
    "(a int) SKEWED BY (a) ON (1) STORED AS DIRECTORIES": (UnsupportedTableError, "cannot be STORED AS DIRECTORIES"),
    "(a int) SKEWED BY (b) ON (1)": (ColumnError, "SKEWED BY of d.x names b"),
    "(a int) PARTITIONED BY (p int) SKEWED BY (p) ON (1)": (ColumnError, "SKEWED BY of d.x names p"),
    "(a int, b int) SKEWED BY (a, b) ON (1)": (ColumnError, "each value in ON has 2 parts"),
    "(a int) SKEWED BY (a) ON (1 + 1)": (SqlError, "a skewed value is a text, a number or a boolean"),
    "(a int) SKEWED BY (a) ON (rand())": (SqlError, "a skewed value is a text, a number or a boolean"),
    "(a int) STORED AS DIRECTORIES": (SqlError, "follows the values of SKEWED BY"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_files_would_contradict_is_refused(acid: AcidSession, text: str) -> None:
    kind, words = REFUSED[text]
    with pytest.raises(kind, match=words):
        acid.sql(f"CREATE TABLE d.x {text}")
    assert told(acid) == []


@pytest.mark.parametrize("text", [text for text in SAID if PLAIN in text])
def test_what_files_would_contradict_does_not_become_transactional(acid: AcidSession, text: str) -> None:
    acid.sql(f"CREATE TABLE d.x {text}")
    for kind in ("'transactional'='true'", "'transactional'='true', 'transactional_properties'='insert_only'"):
        with pytest.raises(UnsupportedTableError, match="which is of plain tables"):
            acid.sql(f"ALTER TABLE d.x SET TBLPROPERTIES ({kind})")
    assert not acid.connection.table("d", "x").is_transactional


def test_skewed_values_of_an_acid_table_change_no_row(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.x (a int, b string) SKEWED BY (a) ON (1)")
    acid.sql("INSERT INTO d.x VALUES (1, 'x'), (2, 'y')")
    acid.sql("ALTER TABLE d.x ADD COLUMNS (c int)")
    acid.sql("UPDATE d.x SET c = a")
    assert sorted(map(tuple, acid.table("d.x").collect())) == [(1, "x", 1), (2, "y", 2)]
    assert wire_of(acid).sd.skewedInfo.skewedColValues == [["1"]]


def test_a_renamed_column_is_skewed_and_sorted_by_its_new_name(acid: AcidSession) -> None:
    acid.sql(
        f"CREATE TABLE d.x (a int, b int) CLUSTERED BY (a) SORTED BY (b) INTO 2 BUCKETS SKEWED BY (b) ON (1) {PLAIN}"
    )
    acid.sql("ALTER TABLE d.x RENAME COLUMN b TO c")
    wire = wire_of(acid)
    assert [one.col for one in wire.sd.sortCols] == ["c"]
    assert wire.sd.skewedInfo.skewedColNames == ["c"]
