"""Transactions of several statements: BEGIN, START TRANSACTION, COMMIT, ROLLBACK and SET AUTOCOMMIT.

They enter and end the blocks that ``with acid.transaction():`` enters and leaves.
"""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql import DataFrame

from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor

_LEVELS = {"SNAPSHOT": "snapshot", "READ COMMITTED": "read committed"}
_OTHER_LEVELS = ("READ UNCOMMITTED", "REPEATABLE READ", "SERIALIZABLE")
_MODES = (";", "TRANSACTION", "WORK", "READ", "ISOLATION")
_VALUES = {"TRUE": True, "FALSE": False}


def is_begun_by(cursor: Cursor) -> bool:
    """Whether BEGIN begins a transaction here, and no compound statement of Spark's."""
    rest = cursor.again()
    rest.expect("BEGIN")
    return rest.at_end or rest.peek() in _MODES


def begin(run: Run, cursor: Cursor) -> DataFrame:
    """``BEGIN [TRANSACTION | WORK] [READ ONLY | READ WRITE] [ISOLATION LEVEL SNAPSHOT | READ COMMITTED]``.

    START TRANSACTION begins one, too. Raises TransactionClosedError if the thread is in a transaction already.
    """
    if cursor.accept("START"):
        cursor.expect("TRANSACTION")
    else:
        cursor.expect("BEGIN")
        if not cursor.accept("TRANSACTION"):
            cursor.accept("WORK")
    access: str | None = None
    level: str | None = None
    while not (cursor.at_end or cursor.sees(";")):
        if access is None and cursor.accept("READ"):
            access = cursor.one_of("ONLY", "WRITE")
        elif level is None and cursor.accept("ISOLATION", "LEVEL"):
            level = _level(cursor)
        else:
            raise cursor.error("READ ONLY, READ WRITE, ISOLATION LEVEL … or the end was expected")
        if cursor.accept(",") and (cursor.at_end or cursor.sees(";")):
            raise cursor.error("READ ONLY, READ WRITE or ISOLATION LEVEL … was expected")
    if access == "ONLY" and level == _LEVELS["READ COMMITTED"]:
        raise cursor.error("a READ ONLY transaction is one SNAPSHOT: for READ COMMITTED leave READ ONLY out")
    cursor.finish()
    if not run.explains:
        run.acid.begin_transaction(read_only=access == "ONLY", isolation=level)
    return run.nothing()


def _level(cursor: Cursor) -> str:
    for words, level in _LEVELS.items():
        if cursor.accept(*words.split()):
            return level
    for words in _OTHER_LEVELS:
        if cursor.sees(*words.split()):
            raise cursor.error(f"ISOLATION LEVEL {words} is none of hive-acid's: there are SNAPSHOT and READ COMMITTED")
    raise cursor.error("SNAPSHOT or READ COMMITTED was expected")


def commit(run: Run, cursor: Cursor) -> DataFrame:
    """``COMMIT [WORK]``. Raises what `Blocks.end` raises."""
    return _end(run, cursor, "COMMIT")


def rollback(run: Run, cursor: Cursor) -> DataFrame:
    """``ROLLBACK [WORK]``. Raises what `Blocks.end` raises."""
    return _end(run, cursor, "ROLLBACK")


def _end(run: Run, cursor: Cursor, word: str) -> DataFrame:
    cursor.expect(word)
    if not cursor.accept("WORK"):
        cursor.accept("TRANSACTION")
    if cursor.sees("TO"):
        _refuse_savepoints(cursor)
    if cursor.sees("AND"):
        raise cursor.error(f"{word} AND CHAIN is not done: say {word}, then BEGIN")
    cursor.finish()
    if not run.explains:
        run.acid.end_transaction(commit=word == "COMMIT")
    return run.nothing()


def savepoint(run: Run, cursor: Cursor) -> NoReturn:
    """Raises SqlError: there are none to be named."""
    _refuse_savepoints(cursor)


def _refuse_savepoints(cursor: Cursor) -> NoReturn:
    raise cursor.error(
        "savepoints have no names here: a statement that fails leaves nothing of itself, and the transaction goes on"
    )


def set_autocommit(run: Run, cursor: Cursor) -> DataFrame | None:
    """``SET AUTOCOMMIT [=] TRUE | FALSE``, of this thread; what it is, without a value. None for another SET."""
    if not cursor.accept("AUTOCOMMIT"):
        return None
    if cursor.at_end:
        shown = [] if run.explains else [["autocommit", str(run.acid.autocommit).lower()]]
        return run.rows(["key", "value"], shown)
    cursor.accept("=")
    value = _VALUES[cursor.one_of(*_VALUES)]
    cursor.finish()
    if not run.explains:
        run.acid.set_autocommit(value)
    return run.nothing()
