"""A second process with a Spark of its own: it loses a write conflict, and it is killed in the middle of a write.

Commands come as JSON lines on stdin, answers go as JSON lines to stdout.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hive_acid.spark
from hive_acid.demo import spark as demo_spark
from hive_acid.errors import HiveAcidError


def main() -> int:
    """Serve commands until stdin ends.

    The arguments are the metastore's address and a directory for Spark's log and scratch files.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints must not mix with the answers

    def answer(**words: Any) -> None:
        answers.write(json.dumps(words) + "\n")
        answers.flush()

    spark = demo_spark.start("hive-acid demo, second writer", Path(sys.argv[2]), memory="1g")
    acid = hive_acid.spark.session(spark, metastore=sys.argv[1])
    answer(ready=True)
    lines = _commands()
    for command in lines:
        try:
            with acid.transaction() as transaction:
                table = acid.table("nyc.flights")
                if command["do"] == "update":
                    table.update(set=command["set"], where=command["where"])
                else:
                    table.insert(spark.createDataFrame([tuple(command["row"])], table.schema).coalesce(1))
                answer(written=transaction.id)
                next(lines)  # the other process speaks when it has committed; or kills this one
            answer(committed=True)
        except HiveAcidError as error:
            answer(error=type(error).__name__, words=str(error))
    spark.stop()
    return 0


def _commands() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


if __name__ == "__main__":
    sys.exit(main())
