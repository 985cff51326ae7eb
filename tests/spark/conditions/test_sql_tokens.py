"""Tokens of SQL: which literals may as well be columns, and what is not understood."""

from time import perf_counter

import pytest

from hive_acid.catalog.table import Column
from hive_acid.spark.conditions.sql_tokens import conjuncts, is_plain, known_names, placed, tokens_of

NAMES = known_names(
    {
        "T": (Column("i", "int"), Column("s", "char(3)"), Column("d", "decimal(10,2)"), Column("interval", "int")),
        "o": (Column("J", "bigint"), Column("s", "string")),
    }
)


def varying(expression: str) -> list[str]:
    tokens = tokens_of(expression)
    assert is_plain(tokens, NAMES), expression
    return [token.text for token in placed(tokens) if token.may_vary and token.text[0].isdecimal()]


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("5", ["5"]),
        ("-5", ["5"]),
        ("5 + 6", []),
        ("i + 5", ["5"]),
        ("5 * -i", ["5"]),
        ("i * 3 + 4", ["3", "4"]),
        ("i + 3 * 4", []),
        ("i - 3 - -4", ["3", "4"]),
        ("3 * 4 = i", []),
        ("1 = 1 AND i = 5", ["5"]),
        ("(i = 5 OR 1 = 0) AND i <> 7", ["5", "7"]),
        ("i BETWEEN 5 AND 7 AND 1 < 2", ["5", "7"]),
        ("5 BETWEEN i AND 7", []),
        ("NOT (5 BETWEEN i + j AND 7) OR i NOT BETWEEN 5 AND 6", ["5", "6"]),
        ("NOT i IN (1, 2)", ["1", "2"]),
        ("i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]),
        ("i IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11) OR i = 12", ["12"]),
        ("if(i > 5, 1, 2) = 3", ["5", "1", "2", "3"]),
        ("if(1 > 2, i, 5) = 3", []),
        ("pmod(hash(5), 7) = i", []),
        ("right('5', 1) = '3' AND abs(t.i) < 4", ["4"]),
        ("(3) / 7 <=> i", []),
        ("CAST(i AS bigint) = 5 AND CAST(6 AS int) = i", ["5"]),
        ("CASE WHEN i > 5 THEN 6 ELSE 7 END = 8", ["5", "6", "7", "8"]),
        ("i = 5 <=> null", []),
        ("interval = 5", ["5"]),
        ("t.i + J > 5 and o.j < 6 and t.s = o.s", ["5", "6"]),
    ],
)
def test_literals_beside_columns_may_vary(expression: str, found: list[str]) -> None:
    assert varying(expression) == found


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "",
            " ",
            "d = 5",
            "i = 5.5",
            "x = 5",
            "u.i = 5",
            "s = 5",
            "t.j = 5",
            "o.i = 5",
            "t.t.i = 5",
            "now(3) = i",
            "abs(i).j = 5",
            "5(i) = 7",
            "i = :p",
            "i[5] = 1",
            "interval 5 day",
            "i = 5 -- x",
        ),
        *("i = 5 /* x */", "round(i, 1) = 5", "i = (SELECT 5)", "CAST(i AS decimal(5, 2)) = 1", 'i = "5"', "i = 1e3"),
        *("`abs`(i) = 5", "i i = 5", "filter(i, x -> x = 5)", "i = '\\\\'", "DATE '2020-1-1' = i"),
    ],
)
def test_others_are_not_plain(expression: str) -> None:
    assert not is_plain(tokens_of(expression), NAMES)


@pytest.mark.parametrize(
    ("condition", "parts"),
    [
        ("i = 5", ["i = 5"]),
        ("i = 5 AND (j = 6 AND s = 'a') and s = 'b'", ["i = 5 ", "AND", " (j = 6 AND s = 'a') ", "and", " s = 'b'"]),
        ("i BETWEEN 5 AND 6 AND j = 7", ["i BETWEEN 5 AND 6 ", "AND", " j = 7"]),
        ("i NOT BETWEEN (5) AND 6 OR j = 7 AND i = 1", ["i NOT BETWEEN (5) AND 6 OR j = 7 AND i = 1"]),
        (
            "CASE WHEN i = 1 AND j = 2 THEN 3 END = 4 AND (i = 5 OR j = 6)",
            ["CASE WHEN i = 1 AND j = 2 THEN 3 END = 4 ", "AND", " (i = 5 OR j = 6)"],
        ),
    ],
)
def test_conjuncts(condition: str, parts: list[str]) -> None:
    assert ["".join(part) for part in conjuncts(tokens_of(condition))] == parts


def test_long_conditions_take_no_longer_for_each_token() -> None:
    condition = " OR ".join(f"i + 1 = {number} AND 2 < i" for number in range(20_000))
    tokens = tokens_of(condition)
    assert is_plain(tokens, NAMES)
    start = perf_counter()
    assert sum(token.may_vary for token in placed(tokens)) > 100_000
    assert perf_counter() - start < 5
