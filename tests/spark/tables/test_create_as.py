"""CREATE TABLE AS SELECT: a table with its rows, or no table."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid import connect
from hive_acid.errors import AlreadyExistsError, ColumnError, InvalidObjectError
from hive_acid.spark.session import AcidSession
from hive_acid.transactions.locks import Operation, write_component
from tests.spark.checker import check_table, location_of


def tables(acid: AcidSession) -> Any:
    return acid.connection.call("get_all_tables", "d")


def test_a_table_is_made_of_a_query(acid: AcidSession, spark: SparkSession) -> None:
    frame = spark.range(10).selectExpr("int(id) id", "id % 2 AS odd", "DATE'2020-01-01' AS day")
    assert acid.create_table_as("d.t", frame, partitioned_by=["odd"], properties={"a": "b"}) == 10
    table = acid.connection.table("d", "t")
    assert [(column.name, column.type) for column in table.columns] == [("id", "int"), ("day", "date")]
    assert [key.name for key in table.partition_keys] == ["odd"]
    assert table.is_full_acid
    assert table.parameters["a"] == "b"
    assert acid.table("d.t").partitions() == ["odd=0", "odd=1"]
    assert sorted(row.id for row in acid.table("d.t").collect()) == list(range(10))
    assert len(check_table(location_of(acid, "d.t"))) == 2
    with pytest.raises(AlreadyExistsError):
        acid.create_table_as("d.t", frame)
    assert acid.table("d.t").count() == 10


def test_a_failure_leaves_no_table_and_no_files(acid: AcidSession, spark: SparkSession) -> None:
    failing = spark.range(10).selectExpr("CASE WHEN id < 9 THEN id ELSE raise_error('no') END AS id")
    with pytest.raises(Exception, match="no"):
        acid.create_table_as("d.t", failing)
    assert tables(acid) == []
    assert acid.create_table_as("d.t", spark.range(3)) == 3
    assert acid.table("d.t").count() == 3


def test_an_aborted_block_leaves_no_table(acid: AcidSession, spark: SparkSession) -> None:
    with pytest.raises(KeyError), acid.transaction():
        acid.create_table_as("d.t", spark.range(3))
        assert acid.table("d.t").count() == 3
        raise KeyError
    assert tables(acid) == []
    with acid.transaction():
        acid.create_table_as("d.t", spark.range(3))
        acid.update("d.t", {"id": "id + 10"}, "id = 1")
    assert sorted(row.id for row in acid.table("d.t").collect()) == [0, 2, 11]


def test_the_table_that_a_dead_client_left_is_replaced(acid: AcidSession, spark: SparkSession) -> None:
    dead = acid.connection.begin()
    acid.create_table("d.t", {"id": "bigint"}, properties={"hive_acid.created_by_txn": str(dead.id)})
    dead.write_id("d", "t")
    with pytest.raises(AlreadyExistsError):
        acid.create_table_as("d.t", spark.range(3))
    dead.abort()
    assert acid.table("d.t").count() == 0
    assert acid.create_table_as("d.t", spark.range(3)) == 3
    assert acid.table("d.t").count() == 3


def test_a_left_table_that_somebody_has_used_since_stays(acid: AcidSession, spark: SparkSession) -> None:
    dead = acid.connection.begin()
    acid.create_table("d.t", {"id": "bigint"}, properties={"hive_acid.created_by_txn": str(dead.id)})
    dead.write_id("d", "t")
    dead.abort()
    acid.insert("d.t", spark.range(1))
    with pytest.raises(AlreadyExistsError):
        acid.create_table_as("d.t", spark.range(3))
    assert acid.table("d.t").count() == 1


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_what_somebody_else_has_put_into_a_table_stays_when_its_maker_fails(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, when: Any
) -> None:
    class FailedError(Exception): ...

    other = AcidSession(spark, connect(acid.connection.uri))

    def insert(*_: Any) -> None:
        if when == "before":
            other.insert("d.t", spark.range(100, 102))
        else:
            begun.append(connect(acid.connection.uri).begin())
            begun[0].lock(write_component("d", "t", Operation.INSERT))
            begun[0].write_id("d", "t")
        raise FailedError

    begun: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(acid, "insert", insert)
        with pytest.raises(FailedError):
            acid.create_table_as("d.t", spark.range(3))
    assert tables(acid) == ["t"]
    if when == "before":
        assert sorted(row.id for row in acid.table("d.t").collect()) == [100, 101]
    for transaction in begun:
        transaction.abort()
        assert acid.create_table_as("d.t", spark.range(3)) == 3, "nobody has used it in the end"


def test_types_that_no_table_has_are_refused(acid: AcidSession, spark: SparkSession) -> None:
    with pytest.raises(ColumnError, match="interval"):
        acid.create_table_as("d.t", spark.sql("SELECT INTERVAL '1' DAY AS i"))
    with pytest.raises(InvalidObjectError):
        acid.create_table_as("nowhere.t", spark.range(1))
    assert tables(acid) == []
