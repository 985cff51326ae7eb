"""MSCK REPAIR TABLE, RECOVER and EXCHANGE PARTITION, UPDATE STATISTICS: the catalogue beside the file system."""

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, FormatError, HiveAcidError, MetaError, SqlError, UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT

PLAIN = "STORED AS PARQUET TBLPROPERTIES ('transactional'='false')"
VALUES = ["a", "b c", "x%2Fy", "%25", "ü", "q'", "1", "01", "__HIVE_DEFAULT_PARTITION__", "a%3Ab", "-", "0x1"]
STRAY = ["_tmp/q=1", ".hive-staging/q=1", "p=z", "q=1/p=z", "p=z/r=1", "pz/q=1"]
"""Directories that are no partitions."""


def names(acid: AcidSession, table: str = "pt") -> list[str]:
    return [row[0] for row in acid.sql(f"SHOW PARTITIONS d.{table}").collect()]


def place_of(acid: AcidSession, table: str) -> Path:
    return Path(acid.connection.table("d", table).location.removeprefix("file:"))


@pytest.fixture
def plain(acid: AcidSession) -> AcidSession:
    acid.sql(f"CREATE TABLE d.pt (id int) PARTITIONED BY (p string, q int) {PLAIN}")
    return acid


@pytest.mark.skipif(OVER_CONNECT, reason="the oracle is a table of the session's own")
@pytest.mark.parametrize("seed", range(4))
def test_a_repair_finds_what_sparks_own_finds(plain: AcidSession, spark: SparkSession, seed: int) -> None:
    """Directories are made and removed, and both are asked again, for more, for less and for both."""
    chance, place = random.Random(seed), place_of(plain, "pt")
    spark.sql("DROP TABLE IF EXISTS found_by_spark")
    spark.sql(
        f"CREATE TABLE found_by_spark (id int, p string, q int) USING parquet PARTITIONED BY (p, q) LOCATION '{place}'"
    )
    try:
        for _ in range(6):
            for _ in range(chance.randrange(5)):
                path = place / f"p={chance.choice(VALUES)}" / f"q={chance.choice(['1', '02', '-7'])}"
                path.mkdir(parents=True, exist_ok=True)
                if chance.random() < 0.7:
                    spark.range(1).selectExpr("CAST(id AS int) AS id").write.mode("append").parquet(str(path))
            (place / chance.choice(STRAY)).mkdir(parents=True, exist_ok=True)
            there = sorted(place.glob("p=*/q=*"))
            for path in chance.sample(there, len(there) // 4):
                for file in path.iterdir():
                    file.unlink()
                path.rmdir()
            what = chance.choice(["", " ADD PARTITIONS", " DROP PARTITIONS", " SYNC PARTITIONS"])
            start = chance.choice(["MSCK REPAIR", "REPAIR"])
            plain.sql(f"{start} TABLE d.pt{what}")
            spark.sql(f"{start} TABLE found_by_spark{what}")
            wanted = sorted(row[0] for row in spark.sql("SHOW PARTITIONS found_by_spark").collect())
            assert names(plain) == wanted
            assert set(plain.connection.partitions(plain.connection.table("d", "pt"))) == set(wanted)
        plain.sql("ALTER TABLE d.pt RECOVER PARTITIONS")
        spark.sql("ALTER TABLE found_by_spark RECOVER PARTITIONS")
        assert names(plain) == sorted(row[0] for row in spark.sql("SHOW PARTITIONS found_by_spark").collect())
    finally:
        spark.sql("DROP TABLE found_by_spark")


def test_some_are_meant_and_all_can_be_told(plain: AcidSession) -> None:
    place = place_of(plain, "pt")
    (place / "p=" / "q=1").mkdir(parents=True)
    plain.sql("ALTER TABLE d.pt ADD PARTITION (p='gone', q=1) PARTITION (p='gone', q=7)")
    for path in (place / "p=gone").iterdir():
        path.rmdir()
    for q in (1, 5, 9):
        (place / "p=new" / f"q={q}").mkdir(parents=True)
    told = [tuple(row) for row in plain.sql("MSCK TABLE d.pt").collect()]
    assert told == [
        ("p=gone/q=1", "the file system"),
        ("p=gone/q=7", "the file system"),
        ("p=new/q=1", "the metastore"),
        ("p=new/q=5", "the metastore"),
        ("p=new/q=9", "the metastore"),
    ]
    assert len(names(plain)) == 2, "nothing was done"
    assert "REGISTER PARTITIONS d.pt" in plain.sql("EXPLAIN MSCK REPAIR TABLE d.pt").collect()[0].plan
    plain.sql("MSCK REPAIR TABLE d.pt SYNC PARTITIONS (q > 4)")
    assert names(plain) == ["p=gone/q=1", "p=new/q=5", "p=new/q=9"]
    plain.sql("MSCK REPAIR TABLE d.pt DROP PARTITIONS PARTITION (p = 'other')")
    plain.sql("MSCK REPAIR TABLE d.pt")
    assert names(plain) == ["p=gone/q=1", "p=new/q=1", "p=new/q=5", "p=new/q=9"]


def test_a_partition_with_a_place_of_its_own_stays_where_it_is(plain: AcidSession, tmp_path: Path) -> None:
    place, table = place_of(plain, "pt"), plain.connection.table("d", "pt")
    (tmp_path / "far").mkdir()
    plain.connection.add_partitions(
        table, {"p=a/q=1": f"file:{tmp_path}/far", "p=b/q=1": f"file:{place}/p=x/q=1", "p=c/q=1": f"file:{tmp_path}/no"}
    )
    (tmp_path / "no").rmdir()
    for name in ("p=a/q=1", "p=x/q=1"):
        (place / name).mkdir(parents=True, exist_ok=True)
    plain.sql("MSCK REPAIR TABLE d.pt SYNC PARTITIONS")
    assert names(plain) == ["p=a/q=1", "p=b/q=1"]
    assert plain.connection.partitions(table)["p=a/q=1"].endswith("/far")


def test_what_cannot_be_repaired_is_said(plain: AcidSession) -> None:
    place = place_of(plain, "pt")
    plain.sql(f"CREATE TABLE d.whole (id int) {PLAIN}")
    with pytest.raises(UnsupportedTableError, match=r"d\.whole has no partitions"):
        plain.sql("MSCK REPAIR TABLE d.whole")
    (place / "p=a" / "q=no").mkdir(parents=True)
    with pytest.raises(ColumnError, match=r"d\.pt\.q is int, and 'no' is none"):
        plain.sql("MSCK REPAIR TABLE d.pt")
    (place / "p=a" / "q=no").rmdir()
    (place / "P=a" / "q=1").mkdir(parents=True)
    (place / "p=a" / "q=1").mkdir(parents=True)
    with pytest.raises(FormatError, match="are of one partition, p=a/q=1"):
        plain.sql("MSCK REPAIR TABLE d.pt")
    plain.sql("ALTER TABLE d.pt ADD PARTITION (p='b', q=1)")
    place.rename(place.with_name("away"))
    with pytest.raises(UnsupportedTableError, match=r"the directory of d\.pt, is not there"):
        plain.sql("MSCK REPAIR TABLE d.pt DROP PARTITIONS")
    assert names(plain) == ["p=b/q=1"], "a file system that is away has lost nothing"
    with pytest.raises(SqlError, match="PARTITIONS"):
        plain.sql("MSCK REPAIR TABLE d.pt ADD")


def test_files_beside_an_acid_table_become_no_rows(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.at (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO d.at VALUES (1, 1), (2, 2), (3, 3)")
    place = place_of(acid, "at")
    kept = acid.table("d.at")
    acid.sql("ALTER TABLE d.at DROP PARTITION (p = 1)")
    assert (place / "p=1").exists()
    acid.sql("MSCK REPAIR TABLE d.at SYNC PARTITIONS")
    assert names(acid, "at") == ["p=2", "p=3"], "what a drop has left is no partition"
    assert kept.count() == 3
    (place / "p=7").mkdir()
    acid.sql("MSCK REPAIR TABLE d.at")
    assert names(acid, "at") == ["p=2", "p=3", "p=7"]
    (place / "p=8" / "delta_0000001_0000001_0000").mkdir(parents=True)
    (place / "p=8" / "delta_0000001_0000001_0000" / "bucket_00000").write_bytes(b"others")
    with pytest.raises(FormatError, match=r"p=8 has files in it, of which nobody knows.*ADD PARTITION … LOCATION"):
        acid.sql("ALTER TABLE d.at RECOVER PARTITIONS")
    assert names(acid, "at") == ["p=2", "p=3", "p=7"]
    (place / "p=7").rmdir()
    acid.sql("MSCK REPAIR TABLE d.at DROP PARTITIONS")
    assert names(acid, "at") == ["p=2", "p=3"]
    assert sorted(row.id for row in acid.table("d.at").collect()) == [2, 3]


def test_partitions_are_exchanged_between_plain_tables(plain: AcidSession, spark: SparkSession) -> None:
    plain.sql("CREATE TABLE d.taking LIKE d.pt")
    place = place_of(plain, "pt")
    for p, q in (("a", 1), ("a", 2), ("__HIVE_DEFAULT_PARTITION__", 1)):
        spark.range(3).selectExpr("CAST(id AS int) AS id").write.parquet(str(place / f"p={p}" / f"q={q}"))
    plain.sql("MSCK REPAIR TABLE d.pt")
    plain.sql("ALTER TABLE d.taking EXCHANGE PARTITION (p='a', q=2) WITH TABLE d.pt")
    assert names(plain, "taking") == ["p=a/q=2"]
    plain.sql("ALTER TABLE d.taking EXCHANGE PARTITION (p=NULL) WITH TABLE d.pt")
    assert names(plain, "taking") == ["p=__HIVE_DEFAULT_PARTITION__/q=1", "p=a/q=2"]
    assert names(plain) == ["p=a/q=1"]
    moved = place_of(plain, "taking") / "p=a" / "q=2"
    assert spark.read.parquet(str(moved)).count() == 3
    assert not (place / "p=a" / "q=2").exists()
    plain.sql("CREATE TABLE d.at (id int) PARTITIONED BY (p string, q int)")
    for taking, giving in (("at", "pt"), ("pt", "at")):
        with pytest.raises(SqlError, match="EXCHANGE PARTITION is of plain tables"):
            plain.sql(f"ALTER TABLE d.{taking} EXCHANGE PARTITION (p='a') WITH TABLE d.{giving}")
    with pytest.raises(MetaError, match="no partition of"):
        plain.sql("ALTER TABLE d.taking EXCHANGE PARTITION (p='nothere') WITH TABLE d.pt")
    with pytest.raises(ColumnError, match="needs a value for p"):
        plain.sql("ALTER TABLE d.taking EXCHANGE PARTITION (p) WITH TABLE d.pt")


def test_figures_are_stored_for_planners_and_not_answered_with(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    acid.sql(f"CREATE TABLE d.plain (id int) {PLAIN}")
    acid.sql("CREATE TABLE d.at (id int) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO d.t VALUES (1), (2)")
    acid.sql("INSERT INTO d.at VALUES (1, 1), (2, 2)")

    def told(table: str) -> dict[str, str]:
        return acid.connection.table("d", table).parameters

    acid.sql("ANALYZE TABLE d.t COMPUTE STATISTICS")
    assert "BASIC_STATS" in told("t")["COLUMN_STATS_ACCURATE"]
    for table in ("t", "plain"):
        acid.sql(f"ALTER TABLE d.{table} UPDATE STATISTICS SET ('numRows' = '1000', 'RAWDATASIZE' = 8)")
        assert (told(table)["numRows"], told(table)["rawDataSize"]) == ("1000", "8")
        assert "BASIC_STATS" not in told(table).get("COLUMN_STATS_ACCURATE", "")
    assert acid.sql("SELECT count(*) FROM d.t").collect()[0][0] == 2
    acid.sql("INSERT INTO d.t VALUES (3)")
    assert told("t")["numRows"] == "1000", "what is not counted is not added to"
    acid.sql("ANALYZE TABLE d.t COMPUTE STATISTICS")
    assert told("t")["numRows"] == "3"

    def of_partition(name: str) -> Any:
        return acid.connection.call("get_partition_by_name", "d", "at", name).parameters

    others = of_partition("p=2")
    acid.sql("ALTER TABLE d.at PARTITION (p = 1) UPDATE STATISTICS SET ('numRows' = '77')")
    assert of_partition("p=1")["numRows"] == "77"
    assert "BASIC_STATS" not in of_partition("p=1").get("COLUMN_STATS_ACCURATE", "")
    assert of_partition("p=2") == others
    for text in ("('numRows' = 'many')", "('numRows' = '-1')", "('rows' = '1')", "('EXTERNAL' = '1')"):
        with pytest.raises(SqlError, match="UPDATE STATISTICS takes whole numbers for numRows"):
            acid.sql(f"ALTER TABLE d.t UPDATE STATISTICS SET {text}")
    with pytest.raises(SqlError, match="answers queries out of the statistics of columns"):
        acid.sql("ALTER TABLE d.t UPDATE STATISTICS FOR COLUMN id SET ('numDVs' = '2')")
    with pytest.raises(HiveAcidError, match="p=9"):
        acid.sql("ALTER TABLE d.at PARTITION (p = 9) UPDATE STATISTICS SET ('numRows' = '1')")
