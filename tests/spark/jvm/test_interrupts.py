"""Errors that a signal's handler raises within a statement: nothing is written, and Spark answers as before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm import job_settings
from hive_acid.spark.jvm.interrupts import cancelled_with_errors
from hive_acid.transactions.states import TransactionState
from hive_acid.transactions.transaction import Transaction
from tests.interrupts import interrupted
from tests.waiting import until

pytestmark = pytest.mark.spark
ENOUGH_S = 1.0
TASK_S = 20


class TimeIsUp(BaseException):
    """As schedulers raise them, so that no ``except Exception`` holds it up."""


def slow(spark: SparkSession) -> DataFrame:
    """Rows whose job takes long."""

    @F.udf("bigint")
    def slept(number: int) -> int:
        time.sleep(TASK_S)
        return number

    return spark.range(0, 2, 1, 2).select("id", slept("id").alias("v"))


InterruptedStatement = Callable[[AcidSession, DataFrame], Any]
STATEMENTS: dict[str, InterruptedStatement] = {
    "insert": lambda acid, frame: acid.insert("d.t", frame),
    "overwrite": lambda acid, frame: acid.overwrite("d.t", frame),
    "merge": lambda acid, frame: acid.merge("d.t", frame, "t.id = s.id").whenMatchedUpdateAll().execute(),
    "block": lambda acid, frame: _block(acid, frame),
}


def _block(acid: AcidSession, frame: DataFrame) -> None:
    with acid.transaction():
        acid.update("d.t", {"v": "5"})
        acid.insert("d.t", frame)


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeIsUp, SystemExit])
@pytest.mark.parametrize("name", STATEMENTS)
def test_an_interrupted_statement_ends_with_its_job(
    acid: AcidSession, spark: SparkSession, name: str, error: type[BaseException]
) -> None:
    acid.create_table("d.t", {"id": "bigint", "v": "bigint"})
    acid.insert("d.t", spark.sql("SELECT 1L AS id, 10L AS v"))
    own = spark.conf.get("spark.sql.shuffle.partitions")
    began = time.monotonic()
    with interrupted(error, ENOUGH_S):
        STATEMENTS[name](acid, slow(spark))
    assert time.monotonic() - began < TASK_S / 2
    # py4j would give these the answers to the calls before.
    assert (spark.range(7).count(), spark.conf.get("spark.sql.shuffle.partitions")) == (7, own)
    assert [tuple(row) for row in acid.table("d.t").collect()] == [(1, 10)]
    assert acid.insert("d.t", spark.sql("SELECT 2L AS id, 20L AS v")) == 1
    tracker = spark.sparkContext.statusTracker()
    until(lambda: not tracker.getActiveJobsIds(), TASK_S / 2)
    assert not spark.sparkContext.getJobTags()
    shown = acid.sql("SHOW TRANSACTIONS").collect()
    assert [row.state for row in shown if row.state != "ABORTED"] == []


def test_jobs_of_others_go_on(spark: SparkSession) -> None:
    """Also those of a transaction with the same number, which is another metastore's."""
    assert spark.sparkContext  # over Connect there is none, and jobs are cancelled otherwise
    with ThreadPoolExecutor(1) as pool:

        def other() -> int:
            with cancelled_with_errors(spark, "transaction-1"):
                running.set()
                return len(spark.range(0, 4, 1, 2).rdd.map(_slept).collect())

        running = threading.Event()
        count = pool.submit(other)
        assert running.wait(10)
        until(spark.sparkContext.statusTracker().getActiveJobsIds)
        with pytest.raises(ValueError, match="the statement's"), cancelled_with_errors(spark, "transaction-1"):
            raise ValueError("the statement's")
        assert count.result() == 4


def test_an_interrupted_setting_does_not_stay(acid: AcidSession, spark: SparkSession, monkeypatch: Any) -> None:
    key = "spark.sql.constraintPropagation.enabled"
    for method in ("set", "unset"):
        with monkeypatch.context() as patched:
            kind = type(spark.conf)
            real = getattr(kind, method)
            calls: list[Any] = []

            def interrupting(conf: Any, *arguments: Any, real: Any = real, calls: Any = calls) -> None:
                calls.append(arguments)
                if len(calls) == 1:
                    raise KeyboardInterrupt
                real(conf, *arguments)

            patched.setattr(kind, method, interrupting)
            with pytest.raises(KeyboardInterrupt), job_settings.configured(spark, {key: "false"}):
                pass
        assert spark.conf.get(key) == "true"
        with job_settings.configured(spark, {key: "false"}):
            assert spark.conf.get(key) == "false"
        assert spark.conf.get(key) == "true"


def test_a_second_interrupt_leaves_no_transaction(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    transaction: Transaction
    with pytest.raises(KeyboardInterrupt), acid.transaction() as transaction:
        transaction.on_abort(_interrupt)
        raise HiveAcidError("the first one")
    assert transaction.state is TransactionState.ABORTED
    shown = acid.sql("SHOW TRANSACTIONS").collect()
    assert [row.state for row in shown] == ["ABORTED"]


def _slept(row: Any) -> Any:
    time.sleep(0.5)
    return row.id


def _interrupt() -> None:
    raise KeyboardInterrupt
