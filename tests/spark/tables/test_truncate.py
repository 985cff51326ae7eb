"""TRUNCATE: rows go at once or with their transaction, and readers keep what they see."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, NoSuchObjectError, UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(name).collect())


@pytest.fixture
def filled(acid: AcidSession, spark: SparkSession) -> Any:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int", "q": "string"})
    acid.insert("d.t", spark.range(4).selectExpr("int(id) id", "int(id % 2) p", "if(id < 2, 'a', null) q"))
    return acid


def test_a_table_or_some_partitions_are_emptied(filled: Any) -> None:
    before = filled.table("d.t")
    filled.truncate("d.t", {"p": 1})
    assert read(filled) == [(0, 0, "a"), (2, 0, None)]
    filled.truncate("d.t", {"p": 0, "q": None})
    assert read(filled) == [(0, 0, "a")]
    filled.truncate("d.t")
    assert read(filled) == []
    assert before.count() == 4
    assert len(filled.table("d.t").partitions()) == 4
    check_table(location_of(filled, "d.t"))
    with pytest.raises(NoSuchObjectError, match="p=9"):
        filled.truncate("d.t", {"p": 9})
    with pytest.raises(ColumnError, match="must name its partition keys"):
        filled.truncate("d.t", {"q": "a"})


def test_within_a_transaction_rows_go_with_its_commit(filled: Any, spark: SparkSession) -> None:
    with pytest.raises(KeyError), filled.transaction():
        filled.truncate("d.t", {"p": 1})
        assert len(read(filled)) == 2
        raise KeyError
    assert len(read(filled)) == 4
    assert list(location_of(filled, "d.t").rglob("base_*")) == []
    more = spark.createDataFrame([(9, 1, "a")], "id int, p int, q string")
    with filled.transaction():
        filled.insert("d.t", more)
        filled.truncate("d.t", {"p": 1})
        filled.overwrite("d.t", more)
        assert read(filled) == [(0, 0, "a"), (2, 0, None), (9, 1, "a")]
        filled.truncate("d.t", {"p": 1, "q": "a"})
    assert read(filled) == [(0, 0, "a"), (2, 0, None)]
    with pytest.raises(UnsupportedTableError, match="has overwritten"), filled.transaction():
        filled.truncate("d.t")
        filled.insert("d.t", more)
    assert read(filled) == [(0, 0, "a"), (2, 0, None)]
