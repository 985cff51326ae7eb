"""The statements of those who keep a metastore running: SHOW, ABORT and COMPACT, from text to what they ask for.

Hive's grammar, with its clauses in any order (transactions.md §4.2, §4.3). One parser serves ``metastore sql`` and
``acid.sql``; it knows no table and no metastore: `hive_acid.operators.execution` carries out what is found here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hive_acid.errors import SqlError
from hive_acid.operators.words import Parts, Words
from hive_acid.tokens import LARGEST_COUNT

KINDS = ("minor", "major", "rebalance")
STATES = {
    "initiated": "i",
    "working": "w",
    "ready for cleaning": "r",
    "failed": "f",
    "succeeded": "s",
    "did not initiate": "a",
    "refused": "c",
    "aborted": "x",
}
"""States of compactions in Hive's words, and the letter by which the metastore is asked for them."""
ORDER_COLUMNS = {
    "compactionid": "ID",
    "dbname": "DATABASE",
    "tabname": "TABLE",
    "partname": "PARTITION",
    "type": "TYPE",
    "state": "STATE",
    "enqueuetime": "ENQUEUE_TIME",
    "starttime": "START",
    "duration": "DURATION",
    "hadoopjobid": "HADOOP_JOB_ID",
    "errormessage": "ERROR_MESSAGE",
    "workerhost": "WORKER_ID",
    "workerid": "WORKER_ID",
    "initiatorhost": "INITIATOR_ID",
    "initiatorid": "INITIATOR_ID",
    "poolname": "POOL_NAME",
    "txnid": "TXN_ID",
    "nexttxnid": "NEXT_TXN_ID",
    "committime": "COMMIT_TIME",
    "hightestwriteid": "HIGHEST_WRITE_ID",
    "highestwriteid": "HIGHEST_WRITE_ID",
    "bytesbefore": "BYTES_BEFORE",
    "bytesafter": "BYTES_AFTER",
}
"""Columns of SHOW COMPACTIONS that it can be ordered by, and their names in `show_compact`."""
_CLAUSES = ("POOL", "TYPE", "STATUS", "ORDER", "LIMIT")


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table and, if `partition` names some, those of its partitions that have these values (None for null)."""

    table: Parts
    partition: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class ShowTransactions:
    """``SHOW TRANSACTIONS``."""


@dataclass(frozen=True, slots=True)
class ShowLocks:
    """``SHOW LOCKS``: all, those in a database, or on a table or partition."""

    database: Parts | None = None
    target: NamedTable | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class ShowCompactions:
    """``SHOW COMPACTIONS``; `order` are columns in the words of `show_compact`, each with whether it descends."""

    id: int | None = None
    database: Parts | None = None
    target: NamedTable | None = None
    pool: str | None = None
    type: str | None = None
    status: str | None = None
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class AbortTransactions:
    """``ABORT TRANSACTIONS``."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AbortCompactions:
    """``ABORT COMPACTIONS``."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Compact:
    """``ALTER TABLE … COMPACT``; `order_by` is the clause as it was written, its two words included."""

    target: NamedTable
    kind: str
    wait: bool = False
    buckets: int | None = None
    order_by: str | None = None
    pool: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


OperatorStatement = ShowTransactions | ShowLocks | ShowCompactions | AbortTransactions | AbortCompactions | Compact


def parse(text: str) -> OperatorStatement:
    """What a statement asks for. Raises SqlError, with the place, for a text that is none or is not well formed."""
    words = Words(text)
    if words.accept("SHOW", "TRANSACTIONS"):
        found: OperatorStatement = ShowTransactions()
    elif words.accept("SHOW", "LOCKS"):
        found = _show_locks(words)
    elif words.accept("SHOW", "COMPACTIONS"):
        found = _show_compactions(words)
    elif words.accept("ABORT", "TRANSACTIONS"):
        found = AbortTransactions(_ids(words, "a transaction's id"))
    elif words.accept("ABORT", "COMPACTIONS"):
        found = AbortCompactions(_ids(words, "a compaction's id"))
    elif words.accept("ALTER", "TABLE"):
        found = _compact(words)
    else:
        raise words.error(
            "SHOW TRANSACTIONS, SHOW LOCKS, SHOW COMPACTIONS, ABORT TRANSACTIONS, ABORT COMPACTIONS or "
            "ALTER TABLE … COMPACT was expected"
        )
    words.finish()
    return found


def status_letter(status: str) -> str:
    """The letter of a compaction's state in Hive's words. Raises SqlError for what is none."""
    words = " ".join(status.lower().replace("_", " ").split())
    if words == "ready for clean":  # as some of Hive's own texts have it
        words = "ready for cleaning"
    if words not in STATES:
        raise SqlError(f"there is no compaction status '{status}': give one of {', '.join(STATES)}")
    return STATES[words]


# --- the statements ------------------------------------------------------------------------------


def _show_locks(words: Words) -> ShowLocks:
    database = target = None
    if words.accept("DATABASE") or words.accept("SCHEMA"):
        database = words.parts("a database's name")
    elif not words.at_end and not words.sees("EXTENDED"):
        target = _target(words)
    return ShowLocks(database, target, words.accept("EXTENDED"))


def _show_compactions(words: Words) -> ShowCompactions:
    if words.accept("COMPACTIONID"):
        words.expect("=")
        return ShowCompactions(id=words.integer("a compaction's id"))
    database = target = None
    if words.accept("DATABASE") or words.accept("SCHEMA"):
        database = words.parts("a database's name")
    elif words.accept("TABLE") or not (words.at_end or words.sees_clause(*_CLAUSES)):
        target = _target(words)
    pool = kind = status = limit = None
    order: tuple[tuple[str, bool], ...] = ()
    for clause in words.clauses(*_CLAUSES):
        if clause == "POOL":
            pool = words.string("the pool")
        elif clause == "TYPE":
            kind = _kind(words, words.string("the type").lower(), (*KINDS, "abort_txn_cleanup"))
        elif clause == "STATUS":
            status = words.string("the status")
            status_letter(status)
        elif clause == "ORDER":
            words.expect("BY")
            order = _order(words)
        else:
            limit = words.integer("a number of rows", most=LARGEST_COUNT)
    return ShowCompactions(None, database, target, pool, kind, status, order, limit)


def _order(words: Words) -> tuple[tuple[str, bool], ...]:
    found = []
    while True:
        column = _order_column(words, words.identifier_or_string("a column").lower())
        descends = not words.accept("ASC") and words.accept("DESC")
        if words.accept("NULLS"):  # those without a value come last, whatever is said
            words.one_of("FIRST", "LAST")
        found.append((column, descends))
        if not words.accept(","):
            return tuple(found)


def _order_column(words: Words, name: str) -> str:
    """A column of SHOW COMPACTIONS, or of Hive's tables behind it, in the words of `show_compact`."""
    column = ORDER_COLUMNS.get(name, name.removeprefix("cc_").removeprefix("cq_").upper())
    if column not in ORDER_COLUMNS.values():
        raise words.error(f"compactions have no column '{name}': give one of {', '.join(ORDER_COLUMNS)}", -1)
    return column


def _compact(words: Words) -> Compact:
    target = _target(words)
    words.expect("COMPACT")
    kind = _kind(words, words.string("the kind of compaction").lower(), KINDS)
    wait, buckets, order_by, pool = False, None, None, None
    given: Mapping[str, str] = {}
    for clause in words.clauses("AND", "CLUSTERED", "ORDER", "POOL", "WITH"):
        if clause == "AND":
            words.expect("WAIT")
            wait = True
        elif clause == "CLUSTERED":
            words.expect("INTO")
            buckets = words.integer("a number of buckets", most=LARGEST_COUNT)
            if buckets < 1:
                raise words.error("there must be at least one bucket")
            words.expect("BUCKETS")
        elif clause == "ORDER":
            order_by = words.clause_text("ORDER BY", "AND", "CLUSTERED", "POOL", "WITH")
        elif clause == "POOL":
            pool = words.string("the pool")
        else:
            words.expect("OVERWRITE")
            words.expect("TBLPROPERTIES")
            given = _properties(words)
    if kind != "rebalance" and (buckets is not None or order_by is not None):
        raise SqlError(f"CLUSTERED INTO and ORDER BY are for COMPACT 'rebalance': COMPACT '{kind}' moves no row")
    return Compact(target, kind, wait, buckets, order_by, pool, given)


def _kind(words: Words, kind: str, known: tuple[str, ...]) -> str:
    if kind not in known:
        raise words.error(f"'{kind}' is no kind of compaction: give one of {', '.join(known)}", -1)
    return kind


def _target(words: Words) -> NamedTable:
    table = words.parts("a table's name")
    return NamedTable(table, _partition(words) if words.accept("PARTITION") else None)


def _partition(words: Words) -> Mapping[str, str | None]:
    values: dict[str, str | None] = {}
    words.expect("(")
    while True:
        key = words.identifier("a partition key").lower()
        if key in values:
            raise words.error(f"PARTITION names {key} twice", -1)
        words.expect("=")
        values[key] = words.value()
        if not words.accept(","):
            words.expect(")")
            return values


def _properties(words: Words) -> Mapping[str, str]:
    found: dict[str, str] = {}
    words.expect("(")
    while True:
        key = words.string("a property's name")
        words.expect("=")
        found[key] = words.string("a property's value")
        if not words.accept(","):
            words.expect(")")
            return found


def _ids(words: Words, what: str) -> tuple[int, ...]:
    ids = [words.integer(what)]
    while not words.at_end:
        words.accept(",")
        ids.append(words.integer(what))
    return tuple(ids)
