"""CHARs within arrays, maps and structs: compared by Hive's rule in all words for them."""

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.spark import AcidSession


def ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


OPERATORS = {"<": str.__lt__, "<=": str.__le__, ">": str.__gt__, ">=": str.__ge__, "=": str.__eq__, "<>": str.__ne__}

ELEMENTS = (
    "get(a, 0)",
    "a[0]",
    "(a)[0]",
    "((a)[(0)])",
    "element_at(a, 1)",
    "try_element_at(a, -1)",
    "m['k']",
    "m['(k']",
    "element_at(m, 'k')",
    "array_max(a)",
    "array_min(a)",
    "map_values(m)[0]",
    "map_keys(k)[0]",
    "k[c]",
    "element_at(k, rtrim(c))",
    "coalesce(k[c], a[0])",
    "reverse(a)[0]",
    "slice(a, 1, 1)[0]",
    "sort_array(a, false)[0]",
    "array_sort(a)[0]",
    "array_distinct(a)[0]",
    "filter(a, x -> x IS NOT NULL)[0]",
    "n[0].c",
    "get(n, 0).c",
    "element_at(n, 1).b[0]",
    "s.b[0]",
    "s.c",
    "d.t.a[0]",
    "t.s.b[0]",
)
"""Ways to say what stands in the one CHAR of an array, a map or a struct."""

OVER_ALL = (
    "exists(a, x -> x {} {})",
    "forall(a, x -> x {} {})",
    "size(filter(a, x -> x {} {})) = 1",
    "exists(n, x -> x.c {} {})",
    "exists(n, x -> exists(x.b, y -> y {} {}))",
    "array_contains(transform(a, x -> x {} {}), true)",
    "size(map_filter(m, (k, v) -> v {} {})) > 0",
    "transform_values(m, (k, v) -> v {} {})['k']",
)


TEXTS = ["a", "a\t", "a\t ", "ab", "a b", "b", "", "ä", "00"]


@pytest.fixture
def nested(acid: AcidSession, spark: SparkSession) -> AcidSession:
    """With a table of `TEXTS` in CHARs by themselves and in arrays, maps and structs."""
    inner = "struct<c:char(3),b:array<char(3)>>"
    columns = {"c": "char(3)", "a": "array<char(3)>", "m": "map<string,char(3)>", "k": "map<char(3),char(3)>"}
    acid.create_table("d.t", {"id": "int", **columns, "s": inner, "n": f"array<{inner}>"})
    given = spark.createDataFrame(list(enumerate(TEXTS)), "id int, c string")
    struct = "named_struct('c', c, 'b', array(c))"
    shown = ("id", "c", "array(c) a", "map('k', c, '(k', c) m", "map(c, c) k", f"{struct} s", f"array({struct}) n")
    acid.insert("d.t", given.selectExpr(*shown))
    return acid


def test_orders_of_nested_chars(nested: AcidSession) -> None:
    """All comparisons of what lies in other values, as Python has them of texts with blanks to the same length."""
    chance, wrong = random.Random(5), []
    for condition, ids_in in (of for form in (*ELEMENTS, *OVER_ALL) for of in orders_of(form, chance)):
        ways: list[Callable[[], DataFrame]] = [
            lambda where=condition: nested.sql(f"SELECT id FROM d.t WHERE {where}"),
            lambda where=condition: nested.sql(f"SELECT id FROM d.t AS t WHERE id >= 0 AND ({where})"),
            lambda where=condition: nested.table("d.t", where=where),
            lambda where=condition: nested.table("d.t").filter(where),
            lambda where=condition: nested.table("d.t").where(F.expr(where)),
        ]
        others = [way for prefix, way in (("d.t.", [0]), ("t.", [0, 1])) if prefix in condition]
        way = chance.choice(others[0] if others else range(len(ways)))
        try:
            found: Any = ids(ways[way]())
        except Exception as error:
            found = str(error)[:200]
        if found != ids_in:
            wrong.append((way, condition, found, ids_in))
    assert not wrong, "\n".join(map(str, wrong))


def test_orders_of_nested_chars_as_columns(nested: AcidSession) -> None:
    frame, chance, wrong = nested.table("d.t"), random.Random(6), []
    columns: list[Column] = [
        F.col("a")[0],
        F.col("a").getItem(0),
        F.col("m")["k"],
        F.col("m")["(k"],
        F.col("k")[F.col("c")],
        F.col("s")["c"],
        F.col("s").getField("b")[0],
        F.col("s.c"),
        F.get("a", F.lit(0)),
        F.element_at("a", -1),
        F.element_at("m", "k"),
        F.col("n")[0]["c"],
        frame.a[0],
        frame.s.c,
        frame["s"]["b"][0],
        frame["s.b"][0],
    ]
    for at, (sign, test) in itertools.product(range(len(columns)), OPERATORS.items()):
        text = chance.choice(TEXTS)
        asked = getattr(columns[at], test.__name__)(text + " " * chance.randrange(3))
        expected = [number for number, value in enumerate(TEXTS) if test(value.ljust(9), text.ljust(9))]
        asked = asked if chance.random() < 0.5 else asked & (F.col("id") >= 0)
        if (found := ids(frame.where(asked))) != expected:
            wrong.append((at, sign, text, found, expected))
    assert not wrong, "\n".join(map(str, wrong))


def orders_of(form: str, chance: random.Random) -> Iterator[tuple[str, list[int]]]:
    """Conditions by `form`, with the numbers of those of `TEXTS` for which each is true."""

    def true(test: Callable[[str], bool]) -> list[int]:
        return [at for at, text in enumerate(TEXTS) if test(text.ljust(9))]

    is_element = "{}" not in form
    for sign, test in OPERATORS.items():
        text = chance.choice(TEXTS)
        literal = chance.choice((f"'{text}'", f"'{text}  '", f'"{text}"'))
        ids_in = true(lambda value, test=test, text=text: test(value, text.ljust(9)))
        yield f"{form} {sign} {literal}" if is_element else form.format(sign, literal), ids_in
    if is_element:
        yield f"{form} BETWEEN 'a\t' AND 'ab '", true(lambda value: "a\t".ljust(9) <= value <= "ab".ljust(9))
        yield f"{form} LIKE 'a%b'", true(lambda value: value.strip() in ("ab", "a b"))
        yield f"lower({form}) IN ('ab  ', 'a\t ')", true(lambda value: value.rstrip(" ") in ("ab", "a\t"))
