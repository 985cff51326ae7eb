"""How query files and their results are read: what is counted depends on it."""

from typing import Any

import pytest
from pyspark.sql import Row

from tests.hive_queries.answers import Answers, lines_of, normal
from tests.hive_queries.texts import changed_by, data_sets_of, is_of_shell, statements_of

FILE = """--! qt:dataset:first,second
set a.b=c; -- don't count; this
SELECT '--;', "it\\";s", `a;b` /* ; */ FROM t;
!ls; SELECT /*+ HINT */ 1 - 2 / 3
"""


def test_a_file_has_statements() -> None:
    assert data_sets_of(FILE) == ["first", "second"]
    assert statements_of(FILE) == [
        "set a.b=c",
        'SELECT \'--;\', "it\\";s", `a;b`  FROM t',
        "!ls",
        "SELECT /*+ HINT */ 1 - 2 / 3",
    ]


@pytest.mark.parametrize("statement", ["set x", "dfs -ls", "!x", "ADD  JAR y", "reset", "delete file z"])
def test_words_to_the_shell(statement: str) -> None:
    assert is_of_shell(statement)
    assert not is_of_shell("delete from t")
    assert not is_of_shell("settle")


def test_what_a_statement_changes() -> None:
    assert changed_by("CREATE TABLE IF NOT EXISTS d.`T` (a int)") == {"t"}
    assert changed_by("FROM x INSERT INTO TABLE a SELECT 1 INSERT OVERWRITE b SELECT 2") == {"a", "b"}
    assert changed_by("SELECT 1 FROM t") == set()


ANSWERED = """PREHOOK: query: CREATE TABLE t
(a int)
PREHOOK: type: X
POSTHOOK: query: CREATE TABLE t
(a int)
POSTHOOK: type: X
PREHOOK: query: select *
from t
PREHOOK: Input: t
#### A masked pattern was here ####
POSTHOOK: query: select *
from t
POSTHOOK: Input: t
#### A masked pattern was here ####
2.50\tb
1\tNULL
"""


def test_a_query_has_an_answer() -> None:
    answers = Answers(ANSWERED)
    assert answers.to("SELECT nothing") is None
    answer = answers.to("SELECT *  FROM t;")
    assert answer is not None
    assert not answer.is_masked
    assert normal(answer.lines) == normal(lines_of([(1, None), (2.5, "b")])) == ["1\tNULL", "2.5\tb"]


@pytest.mark.parametrize(
    ("value", "line"),
    [(True, "true"), ([1, None], "[1,null]"), ({"k": "v"}, '{"k":"v"}'), (Row(a=1, b="x"), '{"a":1,"b":"x"}'),
     (b"x", "x"), ("two\nlines", "two")],
)  # fmt: skip
def test_values_are_shown_as_hive_shows_them(value: Any, line: str) -> None:
    assert lines_of([(value,)])[0] == line


def test_numbers_have_one_form() -> None:
    """A float in Python has more digits than Hive shows, and a decimal of Hive's fewer than ours."""
    assert normal(["3.140000104904175\t2.50\t1.0", "4294967297\tNaN"]) == normal(["3.14\t2.5\t1", "4294967297\tNaN"])
    assert normal(["4294967297"]) != normal(["4294967296"])
