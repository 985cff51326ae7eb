"""Blocks that are entered on one thread and left on another, as generators and pools of threads do."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import TransactionClosedError
from hive_acid.spark import AcidSession


@pytest.mark.parametrize("kind", ["transaction", "snapshot"])
@pytest.mark.parametrize("fails", [False, True])
def test_a_block_that_another_thread_has_left_is_over(
    acid: AcidSession, spark: SparkSession, kind: Any, fails: Any
) -> None:
    acid.create_database("db", if_not_exists=True)
    acid.create_table("db.t", {"id": "bigint"})
    table = acid.table("db.t")
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        block = ExitStack()
        one.submit(block.enter_context, getattr(acid, kind)()).result()
        if kind == "transaction":
            one.submit(table.insert, spark.range(1)).result()
        with pytest.raises(TransactionClosedError, match="nest"):
            one.submit(ExitStack().enter_context, acid.transaction()).result()
        error = ValueError("what the block raised") if fails else None
        other.submit(block.__exit__, type(error) if error else None, error, None).result()
        assert one.submit(table.insert, spark.range(7, 8)).result() == 1
        seen = one.submit(lambda: sorted(row.id for row in acid.table("db.t").collect())).result()
        assert seen == [7] if fails or kind == "snapshot" else [0, 7]
        with one.submit(acid.transaction).result():
            table.insert(spark.range(8, 9))
