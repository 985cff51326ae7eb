"""The operators' statements, from text to what they ask for."""

from typing import Any

import pytest

from hive_acid.errors import SqlError
from hive_acid.operators.statements import (
    STATES,
    AbortCompactions,
    AbortTransactions,
    Compact,
    NamedTable,
    ShowCompactions,
    ShowLocks,
    ShowTransactions,
    parse,
    status_letter,
)

T = NamedTable(("d", "t"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SHOW TRANSACTIONS", ShowTransactions()),
        ("show transactions ;", ShowTransactions()),
        ("SHOW LOCKS", ShowLocks()),
        ("SHOW LOCKS EXTENDED", ShowLocks(extended=True)),
        ("SHOW LOCKS d.t", ShowLocks(target=T)),
        ("SHOW LOCKS d.t EXTENDED", ShowLocks(target=T, extended=True)),
        ("SHOW LOCKS `d`.`t` PARTITION (P = 1)", ShowLocks(target=NamedTable(("d", "t"), {"p": "1"}))),
        ("SHOW LOCKS DATABASE d EXTENDED", ShowLocks(("d",), extended=True)),
        ("SHOW LOCKS SCHEMA c.d", ShowLocks(("c", "d"))),
        ("SHOW COMPACTIONS", ShowCompactions()),
        ("SHOW COMPACTIONS COMPACTIONID = 7", ShowCompactions(id=7)),
        ("SHOW COMPACTIONS DATABASE d", ShowCompactions(database=("d",))),
        ("SHOW COMPACTIONS SCHEMA d LIMIT 3", ShowCompactions(database=("d",), limit=3)),
        ("SHOW COMPACTIONS d.t", ShowCompactions(target=T)),
        ("SHOW COMPACTIONS TABLE d.t", ShowCompactions(target=T)),
        ("SHOW COMPACTIONS pool", ShowCompactions(target=NamedTable(("pool",)))),
        ("SHOW COMPACTIONS type TYPE 'major'", ShowCompactions(target=NamedTable(("type",)), type="major")),
        ("SHOW COMPACTIONS type.limit", ShowCompactions(target=NamedTable(("type", "limit")))),
        ("SHOW COMPACTIONS POOL 'p' TYPE 'MINOR'", ShowCompactions(pool="p", type="minor")),
        ("SHOW COMPACTIONS STATUS \"ready for cleaning\"", ShowCompactions(status="ready for cleaning")),
        ("SHOW COMPACTIONS ORDER BY dbname", ShowCompactions(order=(("DATABASE", False),))),
        (
            "SHOW COMPACTIONS ORDER BY 'starttime' DESC NULLS LAST, cq_state, HightestWriteId ASC LIMIT 1",
            ShowCompactions(order=(("START", True), ("STATE", False), ("HIGHEST_WRITE_ID", False)), limit=1),
        ),
        ("ABORT TRANSACTIONS 1", AbortTransactions((1,))),
        ("ABORT TRANSACTIONS 1 2, 3", AbortTransactions((1, 2, 3))),
        ("ABORT COMPACTIONS 4 5", AbortCompactions((4, 5))),
        ("ALTER TABLE d.t COMPACT 'minor'", Compact(T, "minor")),
        ("ALTER TABLE d.t COMPACT 'MAJOR' AND WAIT", Compact(T, "major", wait=True)),
        (
            "ALTER TABLE d.t PARTITION (a='x''y', b=-1, c=NULL, d=DATE '2024-01-02',e=TRUE,f='a\\'b')\nCOMPACT 'major'",
            Compact(
                NamedTable(
                    ("d", "t"), {"a": "x'y", "b": "-1", "c": None, "d": "2024-01-02", "e": "true", "f": "a'b"}
                ),
                "major",
            ),
        ),
        (
            "ALTER TABLE d.t COMPACT 'rebalance' CLUSTERED INTO 8 BUCKETS ORDER BY a DESC, if(b, 1, 2) /**/ AND WAIT"
            " POOL 'p' WITH OVERWRITE TBLPROPERTIES ('compactor.spark.cores'='2', \"tblprops.x\"='y')",
            Compact(
                T,
                "rebalance",
                wait=True,
                buckets=8,
                order_by="ORDER BY a DESC, if(b, 1, 2)",
                pool="p",
                properties={"compactor.spark.cores": "2", "tblprops.x": "y"},
            ),
        ),
        ("ALTER TABLE d.t COMPACT 'major' POOL 'p' AND WAIT -- now", Compact(T, "major", wait=True, pool="p")),
    ],
)  # fmt: skip
def test_what_is_asked_for(text: str, found: Any) -> None:
    assert parse(text) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1", "SHOW TRANSACTIONS, SHOW LOCKS, .* was expected, at line 1, column 1: SELECT 1"),
        ("", "was expected, at the end of the statement"),
        ("SHOW TRANSACTIONS now", "not understood from here on, at line 1, column 19: now"),
        ("SHOW LOCKS d.t PARTITION p=1", r"\( was expected, at line 1, column 26"),
        ("SHOW LOCKS d.t PARTITION (p=1, P=2)", "names p twice"),
        ("SHOW LOCKS d.t PARTITION (p=f(1))", "a constant was expected: a text in quotes, a number, a date or NULL"),
        ("SHOW LOCKS d.t PARTITION (p)", "= was expected"),
        ("SHOW LOCKS DATABASE", "a database's name was expected, at the end"),
        ("SHOW COMPACTIONS TYPE 'large'", "'large' is no kind of compaction: give one of minor, major, rebalance"),
        ("SHOW COMPACTIONS STATUS 'lost'", "no compaction status 'lost': give one of initiated, working"),
        ("SHOW COMPACTIONS POOL 'a' POOL 'b'", "POOL is given twice, at line 1, column 27"),
        ("SHOW COMPACTIONS ORDER BY secret", "no column 'secret': give one of compactionid, dbname, .*: secret"),
        ("SHOW COMPACTIONS LIMIT 1.5", "a number of rows was expected"),
        ("SHOW COMPACTIONS LIMIT -1", "a number of rows was expected"),
        ("ABORT TRANSACTIONS", "a transaction's id was expected, at the end"),
        ("ABORT TRANSACTIONS 9223372036854775808", "a transaction's id is 9223372036854775807 at most, at line 1"),
        ("SHOW COMPACTIONS LIMIT 2147483648", "a number of rows is 2147483647 at most"),
        (
            "ALTER TABLE t COMPACT 'rebalance' CLUSTERED INTO 99999999999 BUCKETS",
            "a number of buckets is 2147483647",
        ),
        ("ABORT TRANSACTIONS 1, x", "a transaction's id was expected, at line 1, column 23: x"),
        ("ALTER TABLE d.t COMPACT minor", "the kind of compaction in quotes was expected"),
        ("ALTER TABLE d.t COMPACT 'minor' AND", "WAIT was expected, at the end"),
        ("ALTER TABLE d.t COMPACT 'minor' ORDER BY a", "for COMPACT 'rebalance': COMPACT 'minor' moves no row"),
        ("ALTER TABLE d.t COMPACT 'rebalance' ORDER BY", "ORDER BY needs a column"),
        ("ALTER TABLE d.t COMPACT 'rebalance' CLUSTERED INTO 0 BUCKETS", "at least one bucket"),
        ("ALTER TABLE d.t COMPACT 'major' WITH OVERWRITE TBLPROPERTIES ('a')", "= was expected"),
        ("ALTER TABLE d.t RENAME TO u", "COMPACT was expected"),
        ("SHOW LOCKS 'open", "cannot be split into words here: 'open"),
        ("SHOW LOCKS\n  d.t\n  at all", "line 3, column 3: at all"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        parse(text)


def test_states_have_the_letters_of_the_wire() -> None:
    assert [status_letter(words.upper().replace(" ", "_")) for words in STATES] == list(STATES.values())
    assert status_letter("Ready  for clean") == "r"
