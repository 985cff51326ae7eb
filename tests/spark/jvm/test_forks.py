"""A child that was forked from a process with a session: Spark is the parent's, the metastore is for both."""

from __future__ import annotations

import gc
from collections.abc import Callable

import hive_acid.spark
from hive_acid.errors import OtherProcessError
from hive_acid.spark import AcidSession
from hive_acid.transactions.transaction import Transaction
from tests.forks import bounded, status_of


def test_spark_is_refused_in_a_child_and_goes_on_in_the_parent(acid: AcidSession) -> None:
    spark = acid.spark
    acid.create_table("d.t", {"id": "int", "name": "string"})
    acid.create_table("d.gone", {"id": "int"})
    acid.insert("d.t", spark.createDataFrame([(1, "a")], "id int, name string"))
    frame = acid.table("d.t")
    merging = acid.merge("d.t", frame, "t.id = s.id").whenMatchedDelete()
    held = acid.transaction()
    uses: list[Callable[[], object]] = [
        lambda: acid.spark,
        lambda: acid.table("d.t"),
        lambda: acid.table("d.t", where="id = 1"),
        lambda: acid.sql("SELECT 1"),
        lambda: acid.insert("d.t", frame),
        lambda: frame.insert(frame),
        lambda: frame.update({"name": "'b'"}),
        lambda: frame.delete("id = 1"),
        lambda: acid.overwrite("d.t", frame),
        lambda: merging.execute(),
        lambda: acid.analyze("d.t"),
        lambda: acid.load_data("d.t", "/nowhere"),
        lambda: hive_acid.spark.session(spark, acid.connection.uri),
    ]

    def work() -> int:
        for number, use in enumerate(uses):
            try:
                use()
            except OtherProcessError:
                continue
            return 10 + number
        acid.create_table("d.made", {"id": "int"})
        acid.drop_table("d.gone")
        acid.rename_table("d.made", "d.renamed")
        acid.truncate("d.renamed")
        acid.close()
        return 0

    # A frame that is forgotten in the child ends no snapshot of the parent's; what py4j says there is its own matter.
    gc.disable()
    try:
        assert status_of(bounded(work)) == 0
    finally:
        gc.enable()
    assert [tuple(row) for row in frame.collect()] == [(1, "a")]
    assert acid.table("d.renamed").count() == 0
    with held as transaction:
        acid.update("d.t", {"name": "'c'"})
        assert status_of(bounded(lambda: _commits(transaction))) == 0
    assert [tuple(row) for row in acid.table("d.t").collect()] == [(1, "c")]


def _commits(transaction: Transaction) -> int:
    try:
        transaction.commit()
    except OtherProcessError:
        return 0
    return 1
