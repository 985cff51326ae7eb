"""The words of EXPLAIN, and what it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame

from hive_acid.spark.plans.telling import Plan, text_of
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor

_SPARKS = ("EXTENDED", "FORMATTED", "CODEGEN", "COST")
_HIVES = frozenset(
    {"AST", "CBO", "JOINCOST", "DEPENDENCY", "AUTHORIZATION", "VECTORIZATION", "REWRITE", "REOPTIMIZATION"}
    | {"DEBUG", "DDL", "OPERATOR", "LOGICAL"}
)


def explains(cursor: Cursor) -> tuple[str, bool]:
    """The words of EXPLAIN that come next, as Spark has them, and whether the statement's locks are asked for.

    Raises SqlError for what only Hive's planner tells.
    """
    cursor.expect("EXPLAIN")
    found, of_locks = ["EXPLAIN"], False
    while cursor.peek() in _SPARKS or cursor.sees("LOCKS"):
        word = cursor.one_of(*_SPARKS, "LOCKS")
        of_locks = of_locks or word == "LOCKS"
        found += [word] if word != "LOCKS" else []
    if cursor.peek() in _HIVES or (cursor.sees("ANALYZE") and cursor.peek(1) not in ("TABLE", "TABLES")):
        raise cursor.error(
            f"EXPLAIN {cursor.peek()} tells of Hive's planner, which there is not here: EXPLAIN alone, EXTENDED, "
            "FORMATTED, CODEGEN and COST tell Spark's plans, LOCKS the locks"
        )
    return " ".join((*found, "")), of_locks


def shown_locks(run: Run, read: Iterable[str] = ()) -> DataFrame:
    """The locks of a statement that is explained, which also reads the tables `read`."""
    run.locks.use(read)
    return _plan(run, run.locks.lines())


def shown_plan(run: Run, told: DataFrame, heard: Sequence[Plan], kind: str) -> DataFrame:
    """What Spark has told of a statement, if it has, and the plans of ours that were heard meanwhile."""
    by_spark = told.collect()[0][0] if told.columns == ["plan"] else ""
    if by_spark and not heard:
        return told
    ours = text_of(heard) or _NOTHING.get(kind, f"{kind} asks the metastore, and changes nothing")
    return _plan(run, [*([by_spark] if by_spark else []), f"== ACID Plan ==\n{ours}\n"])


_OF_TRANSACTIONS = "It is of the transaction of this thread, and changes no rows by itself"
_NOTHING = {
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "ROLLBACK", "SET"), _OF_TRANSACTIONS),
    "INSERT": "Nothing is done: the partition is there",
    "USE": "USE is of this session alone",
    "ALTER": "The metastore is asked, as an operator would",
    "ABORT": "The metastore is asked, as an operator would",
}
"""What is said where no plan is told."""


def _plan(run: Run, lines: Iterable[str]) -> DataFrame:
    return run.rows(["plan"], [["\n".join(lines)]])
