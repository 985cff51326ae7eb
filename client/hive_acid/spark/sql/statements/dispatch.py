"""From a text to the statement that it is: its first words decide."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame

from hive_acid.errors import NoSuchObjectError, SqlError
from hive_acid.spark.plans.telling import heard_plans
from hive_acid.spark.snapshots.blocks import Blocks
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.frames import named_frames
from hive_acid.spark.sql.mentions import mentions_ours, refuse_hives_columns
from hive_acid.spark.sql.names import CurrentDatabase, DatabaseOfSession, DatabaseOfThread, Names
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements import (
    change,
    insert,
    merge,
    operate,
    privileges,
    repair,
    session_words,
    show,
    transactions,
    transfer,
    upkeep,
)
from hive_acid.spark.sql.statements.definitions import alter, create, databases, views
from hive_acid.spark.sql.statements.explain import explains, shown_locks, shown_plan
from hive_acid.spark.sql.statements.script import substituted
from hive_acid.spark.sql.tokens import DATABASE_WORDS, Cursor
from hive_acid.spark.verbs.keys import KeyVerbs

_QUERIES = frozenset({"SELECT", "VALUES", "TABLE", "("})
_CHANGES = frozenset({"UPDATE", "DELETE", "MERGE"})
_CHANGES_ROWS = _CHANGES | {"INSERT", "FROM"}
_KINDS_OF_TABLES = frozenset({"TRANSACTIONAL", "MANAGED", "EXTERNAL", "TEMPORARY", "TEMP"})
_SPARKS = frozenset({"RESET", "ADD", "LIST", "DECLARE", "CALL"})
"""Statements that concern Spark's session alone."""

_Handler = Callable[[Run, Cursor], DataFrame | None]

_STATEMENTS: dict[str, _Handler] = {
    "INSERT": insert.insert,
    "FROM": insert.multi_insert,
    "UPDATE": change.update,
    "DELETE": change.delete,
    "MERGE": merge.merge,
    "TRUNCATE": upkeep.truncate,
    "ANALYZE": upkeep.analyze,
    "MSCK": repair.repair,
    "REPAIR": repair.repair,
    "LOAD": transfer.load_data,
    "EXPORT": transfer.export,
    "IMPORT": transfer.import_,
    "SHOW": show.show,
    "DESCRIBE": show.describe,
    "DESC": show.describe,
    "USE": show.use,
    "ABORT": operate.operate,
    "COMMENT": databases.comment_on,
    "GRANT": privileges.grant,
    "REVOKE": privileges.revoke,
    "CACHE": session_words.cache,
    "UNCACHE": session_words.uncache,
    "REFRESH": session_words.refresh,
    "CLEAR": session_words.clear,
    "SET": session_words.set_,
}
_OF_TRANSACTIONS: dict[str, _Handler] = {
    "BEGIN": transactions.begin,
    "START": transactions.begin,
    "COMMIT": transactions.commit,
    "ROLLBACK": transactions.rollback,
    "SAVEPOINT": transactions.savepoint,
}
_OF_TABLES: dict[str, _Handler] = {
    "CREATE": create.create_table,
    "DROP": create.drop_table,
    "ALTER": alter.alter_table,
}
_OF_DATABASES: dict[str, _Handler] = {
    "CREATE": databases.create_database,
    "DROP": databases.drop_database,
    "ALTER": databases.alter_database,
}
_SAID_OTHERWISE: dict[str, str] = {
    "VACUUM": "files that no snapshot needs are removed by the metastore's Cleaner",
    "OPTIMIZE": "say ALTER TABLE t COMPACT 'major' AND WAIT",
    "RESTORE": "a table that was dropped comes back by acid.connection.undrop_table; of rows there is no history",
    "LOCK": "locks are taken by each statement, and kept until the end of a transaction of several: say BEGIN",
    "UNLOCK": "locks end with their transaction; ABORT TRANSACTIONS ends somebody's",
    "DFS": "it is Hive's shell's: use hdfs dfs, or your own file system's tools",
    "RELOAD": "functions are Spark's here: CREATE TEMPORARY FUNCTION",
    "KILL": "ABORT TRANSACTIONS ends somebody's transaction",
    "REPL": "a catalogue moves by `metastore export` and `import`, a table by EXPORT TABLE and IMPORT TABLE",
    "REPLACE": "say MERGE INTO, or INSERT INTO t REPLACE USING (columns)",
    "UPSERT": "say MERGE INTO, or INSERT INTO t REPLACE USING (columns)",
    "PREPARE": "acid.sql(text, arguments) takes arguments for :name or ?",
    "EXECUTE": "acid.sql(text, arguments) runs a text, with arguments for :name or ?",
    "CONVERT": "acid.convert_table makes a plain table of ORC files a transactional one",
    "UNDROP": "a table that was dropped comes back by acid.connection.undrop_table",
    "CLONE": "say CREATE TABLE … AS SELECT",
    "COPY": "say LOAD DATA INPATH, or INSERT INTO … SELECT from the files",
    "UNLOAD": "say INSERT OVERWRITE DIRECTORY 'path' USING parquet SELECT …",
}
"""What is no statement here, and what to do instead."""

_NO_OBJECTS: dict[str, str] = {
    "INDEX": "there are none: row groups are skipped by what files tell of their values",
    "MACRO": "say CREATE TEMPORARY FUNCTION, as Spark has it",
    "SCHEDULED": "statements are run at their times by a scheduler of yours (cron, Airflow)",
    "RESOURCE": "resource plans are HiveServer2's",
    "WORKLOAD": "resource plans are HiveServer2's",
    "DATACONNECTOR": "other systems are read by Spark's sources",
    "CONNECTOR": "other systems are read by Spark's sources",
    "REMOTE": "other systems are read by Spark's sources",
    "CATALOG": "the metastore has the catalogue `hive`; others are Spark's settings spark.sql.catalog.…",
    "BRANCH": "rows have one history: `with acid.snapshot():` holds a state for several reads",
    "TAG": "rows have one history: `with acid.snapshot():` holds a state for several reads",
}
"""What CREATE, ALTER and DROP make nothing of here, and why or what to say instead."""


class Sql:
    """Runs statements for a session; each thread has a current database of its own, unless `current` is given.

    With `beside_spark` they are those of Spark's own `sql`: one that names nothing of the metastore, and that is not
    understood here, is Spark's.
    """

    def __init__(
        self, acid: KeyVerbs, blocks: Blocks, current: CurrentDatabase | None = None, *, beside_spark: bool = False
    ) -> None:
        self._acid = acid
        self._blocks = blocks
        self._beside_spark = beside_spark
        self.current = DatabaseOfThread() if current is None else current

    def names(self) -> Names:
        """What names mean that stand alone, as in a statement."""
        return Names(self._acid, self.current, beside_spark=self._beside_spark)

    def run(self, text: str, arguments: Arguments = None, frames: Mapping[str, Any] | None = None) -> DataFrame:
        """The rows of the one statement that `text` is; in braces it may name `frames`.

        Raises SqlError for what is not understood.
        """
        if not isinstance(text, str):
            raise SqlError(f"a statement is a text, and not of type {type(text).__name__}")
        with named_frames(self._acid.spark, text, frames or {}) as (named, given):
            run = Run(self._acid, self._blocks, self.current, arguments, frames=given, beside_spark=self._beside_spark)
            return _run_beside_spark(run, named) if self._beside_spark else run_statement(run, named)


def _run_beside_spark(run: Run, text: str) -> DataFrame:
    """As `run_statement`, of a text that Spark runs if it names nothing of the metastore."""
    try:
        done = run_statement(run, text)
        moves = text.lstrip()[:3].upper() == "SET"
    except (SqlError, NoSuchObjectError) as ours:
        if run.names.makes_ours or mentions_ours(run.names, text) or _executes_ours(run.names, text):
            raise
        done = _by_spark(run, text, ours)
        moves = text.lstrip()[:3].upper() in ("SET", "USE")
    if moves and isinstance(run.current, DatabaseOfSession):
        run.current.follow_if_moved(run.spark)
    return done


_NAMES_BY_TEXT = re.compile(r"\bIDENTIFIER\s*\(|\bEXECUTE\s+IMMEDIATE\b", re.IGNORECASE).search
"""What has names in texts, in which nobody but Spark finds a table; of one that it does not find it knows not why."""


def _executes_ours(names: Names, text: str) -> bool:
    """Whether EXECUTE IMMEDIATE is of a text that names anything of the metastore, which Spark would not find."""
    cursor = Cursor(text)
    return cursor.accept("EXECUTE", "IMMEDIATE") and cursor.sees_string() and mentions_ours(names, cursor.string("SQL"))


def _by_spark(run: Run, text: str, ours: Exception) -> DataFrame:
    """What Spark makes of a statement that is refused here; if it does not know it either, what was said here.

    Of a text that begins as no statement, and of a query, Spark tells.
    """
    try:
        return run.untouched(text)
    except ParseException:
        if _is_known(substituted(run.spark, text)):
            raise ours from None
        raise
    except AnalysisException as error:
        if isinstance(ours, SqlError) and error.getCondition() == "TABLE_OR_VIEW_NOT_FOUND" and _NAMES_BY_TEXT(text):
            raise ours from None
        raise


def _is_known(text: str) -> bool:
    """Whether a statement, or the one behind its EXPLAIN, is of a kind of which it is said here what is wrong."""
    try:
        cursor = Cursor(text)
    except SqlError:
        return False
    try:
        if cursor.sees("EXPLAIN"):
            explains(cursor)
        kind = _kind(cursor)
    except SqlError:
        return cursor.again().sees("EXPLAIN")  # of what only Hive's planner tells
    return kind in _STATEMENTS or kind in _OF_TABLES or kind in _SAID_OTHERWISE or kind in _OF_TRANSACTIONS


def run_statement(run: Run, text: str) -> DataFrame:
    """Run the one statement that `text` is; its rows, or what it counts.

    Raises SqlError for what is not understood, and what the verb behind the statement raises.
    """
    text = substituted(run.spark, text)
    cursor = Cursor(text)
    if cursor.at_end:
        raise SqlError("there is no statement in the text")
    kind = _kind(Cursor(text))
    if "__" in text:
        refuse_hives_columns(run.names, text)
    if kind in _QUERIES:
        return run.query(_whole(cursor))
    if kind == "EXPLAIN":
        return _explain(run, text)
    handler = _handler(kind, cursor)
    if handler is not None:
        changed = run.with_literals()
        done = handler(changed, Cursor(run.bound(text)))
        if done is not None:
            return done
    return run.of_spark(text)


def _kind(cursor: Cursor) -> str:
    """The word that says what the statement does: behind its CTEs, and FROM only before an INSERT."""
    if cursor.accept("WITH"):
        cursor.until("FROM", "INSERT", *_QUERIES - {"("}, *_CHANGES)
        # CTEs may be followed by a query in parentheses, which is passed over with theirs.
        if cursor.at_end:
            return "SELECT"
    if cursor.accept("FROM"):
        cursor.until("INSERT")
        return "FROM" if cursor.sees("INSERT") else "SELECT"
    return cursor.peek()


def _handler(kind: str, cursor: Cursor) -> _Handler | None:
    """What runs a statement of this kind; None if it is Spark's. Raises SqlError for one that nobody knows."""
    if kind in _STATEMENTS:
        return _STATEMENTS[kind]
    if kind in _OF_TRANSACTIONS:
        if kind == "BEGIN" and not transactions.is_begun_by(cursor):
            raise cursor.error(
                "BEGIN with statements behind it is a compound statement of Spark's, which knows no tables of the "
                "metastore: acid.sql_script runs several statements, with semicolons between, also behind BEGIN"
            )
        return _OF_TRANSACTIONS[kind]
    if kind in _OF_TABLES:
        words = [cursor.peek(offset) for offset in range(1, 6)]
        named = words[2:] if kind == "CREATE" and words[:2] == ["OR", "REPLACE"] else words
        if named[0] == "TABLE" or (kind == "CREATE" and named[0] in _KINDS_OF_TABLES and "TABLE" in named[1:3]):
            return _OF_TABLES[kind]
        if words[0] in DATABASE_WORDS and kind in _OF_DATABASES:
            return _OF_DATABASES[kind]
        if "VIEW" in words[:3] and "MATERIALIZED" in words[:2]:
            raise cursor.error("materialized views are not made here: CREATE TABLE … AS SELECT keeps rows")
        if kind in ("CREATE", "DROP") and words[0] == "ROLE":
            return privileges.create_role if kind == "CREATE" else privileges.drop_role
        what = words[1] if words[0] in ("TEMPORARY", "TEMP") else words[0]
        if what in _NO_OBJECTS:
            raise cursor.error(f"{kind} {what}: {_NO_OBJECTS[what]}")
        if kind == "CREATE" and "VIEW" in words:
            return views.create_view
        if words[0] == "VIEW":
            return views.drop_view if kind == "DROP" else views.alter_view
        return None
    if kind in _SPARKS:
        return None
    if kind in _SAID_OTHERWISE:
        raise cursor.error(f"{kind} is no statement here: {_SAID_OTHERWISE[kind]}")
    known = ", ".join(sorted({"SELECT", "WITH", "EXPLAIN", *_STATEMENTS, *_OF_TABLES, *_OF_TRANSACTIONS}))
    raise cursor.error(f"the statement begins with none of {known}")


def _explain(run: Run, text: str) -> DataFrame:
    """EXPLAIN of a statement: what Spark says, which ways are taken, or which locks are asked for. Nothing happens."""
    cursor = Cursor(text)
    words, of_locks = explains(cursor)
    if cursor.at_end:
        raise cursor.error("a statement was expected")
    statement = re.sub(r"\S", " ", text[: cursor.start]) + text[cursor.start :]
    cursor = Cursor(statement)
    kind = _kind(Cursor(statement))
    with heard_plans() as heard:
        if kind in _QUERIES:
            query = run.prepared(_whole(cursor), before=words, is_whole=True)
            if of_locks:
                return shown_locks(run, query.tables)
            told = query.frame()
        else:
            handler = _handler(kind, cursor)
            explaining = run.explaining(words, changes_rows=kind in _CHANGES_ROWS)
            done = None if handler is None else handler(explaining, Cursor(run.bound(statement)))
            if of_locks:
                return shown_locks(explaining)
            told = run.of_spark(words + statement.strip()) if done is None else done
    return shown_plan(run, told, heard, kind)


def _whole(cursor: Cursor) -> str:
    """The rest as one query, without a semicolon at its end. Raises SqlError for several statements."""
    query = cursor.until().source
    cursor.finish()
    return query
