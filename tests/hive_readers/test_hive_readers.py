"""What our writers leave is read by Hive 4's own classes, with the ROW__IDs and rows that our reader gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.format.rows import RowId
from hive_acid.spark import AcidSession
from hive_acid.transactions.states import TransactionKind
from tests.hive_readers.readers import HiveReaders, Snapshot
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_snapshot
from tests.spark.compaction import compact_table

COLUMNS = {"id": "int", "v": "bigint", "s": "string"}


def rows(acid: AcidSession, first: int, last: int, value: int = 0) -> Any:
    return acid.spark.range(first, last).selectExpr("int(id) id", f"id + {value} v", "concat('s', id) s")


def inserts(acid: AcidSession) -> None:
    acid.insert("d.t", rows(acid, 0, 20).repartition(3))
    acid.insert("d.t", rows(acid, 20, 25))


def updates(acid: AcidSession) -> None:
    inserts(acid)
    acid.update("d.t", {"v": "v + 1"}, "id % 4 = 0")
    acid.delete("d.t", "id % 5 = 0")


def merge(acid: AcidSession) -> None:
    inserts(acid)
    builder = acid.merge("d.t", rows(acid, 15, 30, 100), "t.id = s.id").whenMatchedDelete("s.id % 2 = 0")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


def statements(acid: AcidSession) -> None:
    """A transaction whose later statements change rows of its earlier ones."""
    acid.insert("d.t", rows(acid, 0, 10).repartition(2))
    with acid.transaction():
        acid.insert("d.t", rows(acid, 10, 20).repartition(2))
        acid.update("d.t", {"s": "'changed'"}, "id >= 8 AND id < 14")
        acid.delete("d.t", "id IN (3, 9, 15)")


def aborted(acid: AcidSession) -> None:
    """Beside what a killed writer has left."""
    inserts(acid)
    with pytest.raises(ZeroDivisionError), acid.transaction() as transaction:
        acid.update("d.t", {"v": "-1"}, "id < 10")
        transaction._undo.clear()
        raise ZeroDivisionError
    acid.delete("d.t", "id = 7")


def minor(acid: AcidSession) -> None:
    updates(acid)
    compact_table(acid.spark, acid, "d.t", "minor")
    acid.delete("d.t", "id = 21")


def major(acid: AcidSession) -> None:
    updates(acid)
    compact_table(acid.spark, acid, "d.t", "major")
    acid.update("d.t", {"s": "'after'"}, "id IN (3, 22)")


def rebalance(acid: AcidSession) -> None:
    updates(acid)
    compact_table(acid.spark, acid, "d.t", "rebalance", buckets=4)
    acid.update("d.t", {"s": "'after'"}, "id IN (3, 22)")
    acid.delete("d.t", "id = 14")


def rebalance_in_an_order(acid: AcidSession) -> None:
    updates(acid)
    compact_table(acid.spark, acid, "d.t", "rebalance", buckets=3, order_by="v DESC")
    acid.delete("d.t", "id IN (3, 22)")
    compact_table(acid.spark, acid, "d.t", "minor")
    acid.delete("d.t", "id = 14")


def overwrite(acid: AcidSession) -> None:
    updates(acid)
    acid.overwrite("d.t", rows(acid, 50, 60))
    acid.delete("d.t", "id = 55")


def multi_insert(acid: AcidSession) -> None:
    builder = acid.multi_insert(rows(acid, 0, 10)).into("d.t", where="id < 5")
    builder.into("d.t", where="id >= 5").execute()


def load_data(acid: AcidSession) -> None:
    inserts(acid)
    path = str(acid.connection.table("d", "t").location) + "-loose"
    rows(acid, 60, 70).coalesce(1).write.orc(path)
    acid.load_data("d.t", path)
    acid.delete("d.t", "id = 65")


KINDS = (
    *(inserts, updates, merge, statements, aborted, minor, major, rebalance, rebalance_in_an_order),
    *(overwrite, multi_insert, load_data),
)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.maven
@pytest.mark.parametrize("write", KINDS)
def test_rows_and_their_ids(acid: AcidSession, hive: HiveReaders, write: Callable[[AcidSession], None]) -> None:
    acid.create_table("d.t", COLUMNS)
    write(acid)
    # Hive's planner, which is not here, gives the vectorized reader what it needs to know of loaded files.
    check_both(acid, hive, by_batches=write is not load_data)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.maven
def test_compactions_that_neither_shuffle_nor_sort(acid: AcidSession, hive: HiveReaders, by_bucket: list[int]) -> None:
    acid.create_table("d.t", COLUMNS)
    minor(acid)
    check_both(acid, hive)
    acid.insert("d.t", rows(acid, 30, 60).repartition(3))
    acid.update("d.t", {"v": "v + 1"}, "id % 6 = 0")
    compact_table(acid.spark, acid, "d.t", "major")
    acid.delete("d.t", "id = 33")
    assert sum(by_bucket) == 6, "three buckets, twice"
    check_both(acid, hive)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.maven
def test_compactions_that_write_no_row(acid: AcidSession, hive: HiveReaders, kept: list[str]) -> None:
    """Files become parts of new ones as they are, and the client merges the delete events."""
    acid.create_table("d.t", COLUMNS)
    with limited(acid, **WRITTEN):  # Spark's files and the client's do not become one
        updates(acid)
    acid.insert("d.t", rows(acid, 30, 60).repartition(3))
    acid.delete("d.t", "id = 33")
    compact_table(acid.spark, acid, "d.t", "minor")
    assert not kept
    check_both(acid, hive)
    acid.insert("d.t", rows(acid, 60, 90).repartition(3))
    acid.delete("d.t", "id = 63")
    compact_table(acid.spark, acid, "d.t", "major")
    check_both(acid, hive)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.maven
def test_a_clustered_table(acid: AcidSession, hive: HiveReaders) -> None:
    acid.create_table("d.t", COLUMNS, clustered_by=("id",), buckets=3)
    updates(acid)
    check_both(acid, hive)


def check_both(acid: AcidSession, hive: HiveReaders, *, by_batches: bool = True) -> None:
    """Both of Hive's readers give what ours gives."""
    check_snapshot(acid, "d.t")
    table = acid.connection.table("d", "t")
    expected = {
        RowId(*row[0]): "{" + ", ".join(map(str, row[1:])) + "}" for row in acid.table("d.t", row_id=True).collect()
    }
    with acid.connection.begin(TransactionKind.READ) as transaction:
        snapshot = Snapshot(transaction.snapshot, transaction.write_ids("d", "t"))
        assert hive.rows(table.location, snapshot, COLUMNS) == expected
        vectors = hive.vectors(table.location, snapshot, COLUMNS) if by_batches else None
    assert not by_batches or vectors == sorted(
        (str(row.id), str(row.v), f'"{row.s}"') for row in acid.table("d.t").collect()
    )
