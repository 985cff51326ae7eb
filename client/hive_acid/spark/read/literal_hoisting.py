"""Literal hoisting: expressions in a form of which Spark generates the same code whatever numbers are in them.

Spark writes numbers, dates and times into the Java that it generates, and a class that differs in one is compiled by
Janino and then by the JVM again: for ``id = 17`` after ``id = 16`` that is half of the cost of a small statement, and a
quarter to a half of one that looks at two million rows. So they are put where `events.constant` puts write ids. What is
not surely understood stays as it is: a number also tells Spark precisions, places and widths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession

from hive_acid.catalog.table import Table
from hive_acid.spark.conditions.failures import DAYS_AS_TEXTS, compares_as_they_are, texts_beside
from hive_acid.spark.conditions.sql_tokens import (
    DAY,
    NOW,
    NUMBER,
    SHORT_NUMBER,
    TEXT_OF_TIME,
    TIME,
    Names,
    compares,
    conjuncts,
    is_plain,
    known_names,
    placed,
    tokens_of,
)
from hive_acid.spark.jvm.session_settings import is_on
from hive_acid.spark.read.scan import hoisted
from hive_acid.spark.read.table_frame import KEY_COLUMNS

_, LITERAL_COLUMN, _ = KEY_COLUMNS
"""A whole number of each row of a table, by which its literals seem to be computed."""

_LITERALS = (NUMBER, DAY, TIME, NOW)
_AS_TIME: Mapping[str, str] = {"date": "DATE {}", "timestamp": "CAST({} AS TIMESTAMP_LTZ)"}
"""What Spark makes of a text beside a column of the type."""

_HOISTED = re.compile(
    r"array\((\d+(?:\.\d+)?(?:E-?\d+)?[LD]?|(?:DATE|TIMESTAMP|TIMESTAMP_NTZ) '[-\d:. ]+'"
    r"|CAST\('[-\d:. ]+' AS TIMESTAMP\)|\w+\(\))\)\[coalesce\(\((?:\w+|hash\(\w+\)) & 0\), 0\)\]"
)


def with_hoisted_literals(spark: SparkSession, condition: str, table: Table, alias: str) -> str:
    """`condition`, SQL text about the frame of `read_rows`, with its literals out of the code; or just as it is.

    These are whole numbers, doubles, dates and times in conditions of columns and functions that are known here, and
    whole numbers and dates that are compared with what is one, whatever else there is: they mean the same, and their
    types stay. So are texts that are compared with dates or timestamps, unless the session has Spark compare them as
    texts. `alias` may stand before a column.
    """
    tokens = tokens_of(condition)
    # What is no condition is Spark's to refuse, as it is written.
    plain = is_plain(tokens, known_names({alias: table.all_columns})) and compares(tokens)
    if not tokens or not (plain or compares_as_they_are(condition, table, alias)):
        return condition
    as_time = _as_time(spark, condition, table, alias)
    patterns = _LITERALS if plain else (SHORT_NUMBER, DAY)
    changed = []
    for token, is_side, may_vary in placed(tokens):
        if is_side and may_vary and as_time is not None and TEXT_OF_TIME.fullmatch(token):
            changed.append(hoisted(as_time.format(token), LITERAL_COLUMN))
        else:
            changed.append(_hoisted(token, LITERAL_COLUMN, *patterns) if (may_vary if plain else is_side) else token)
    return "".join(changed)


def with_hoisted_values(value: str, table: Table, alias: str) -> str:
    """As `with_hoisted_literals`, of a value that an UPDATE gives a column."""
    return hoisted_by(value, known_names({alias: table.all_columns}), LITERAL_COLUMN)


def hoisted_by(expression: str, names: Names, column: str) -> str:
    """`expression`, SQL text of columns that `names` has, with its literals out of the code; or just as it is.

    `column` is SQL of a whole number of each row.
    """
    tokens = tokens_of(expression)
    if not is_plain(tokens, names):
        return expression
    return "".join(_hoisted(of.text, column, *_LITERALS) if of.may_vary else of.text for of in placed(tokens))


def with_hoisted_conjuncts(condition: str, names: Names, column: str) -> str:
    """`condition`, of what AND joins, with the literals of those parts out of the code that `hoisted_by` understands.

    So an equation of two tables, which is how they are joined, stays one of two where `names` are those of one.
    """
    parts = conjuncts(tokens_of(condition))
    return "".join(hoisted_by("".join(part), names, column) for part in parts) or condition


def with_literals_put_back(words: str) -> str:
    """What Spark says of an expression with hoisted literals, with these as they were written."""
    return _HOISTED.sub(r"\1", words)


def _as_time(spark: SparkSession, condition: str, table: Table, alias: str) -> str | None:
    """The time that Spark makes of the texts that are compared, as SQL with a place for one; None if they stay."""
    if TEXT_OF_TIME.search(condition) is None or is_on(spark, DAYS_AS_TEXTS):
        return None
    return _AS_TIME.get(texts_beside(condition, table, alias) or "")


def _hoisted(token: str, column: str, *patterns: re.Pattern[str]) -> str:
    return hoisted(token, column) if any(pattern.fullmatch(token) for pattern in patterns) else token
