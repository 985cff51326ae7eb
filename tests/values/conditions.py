"""Conditions on columns of all types: as SQL text, as a Column where there is one, and what they are for a row.

Some say what the model does not know, such as casts to text or functions: these are compared between our reads and
plain Spark only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column
from pyspark.sql import functions as F

from tests.values.compared import MIRRORED, OPERATORS, both, compared, either, like, neither
from tests.values.hostile import INTEGER_BITS, inner, is_text, stored
from tests.values.literals import ABSENT, NULL, Literal, literal, quoted_text

Row = Mapping[str, Any]
"""The values of a row by the names of their columns."""

Truth = Callable[[Row], bool | None]

MANY = 12
"""Spark looks for a value in a list of more than ten in another way."""


@dataclass(frozen=True)
class Condition:
    """A condition; `truth` is None where the model does not know it, and `column` where only text says it.

    `by_hive` says that plain Spark is not asked: it pads no char that stands between others, or in nested columns.
    """

    text: str
    columns: frozenset[str]
    truth: Truth | None
    column: Callable[[], Column] | None = None
    by_hive: bool = False

    def given(self, *, as_column: bool) -> Column | str:
        """What a verb is given: text where there is no Column of it, or PySpark makes none of a value."""
        if not as_column or self.column is None:
            return self.text
        try:
            return self.column()
        except IllegalArgumentException:
            return self.text


class Conditions:
    """Random conditions on the columns of a table, which are given by name and type."""

    def __init__(self, chance: random.Random, kinds: Mapping[str, str]) -> None:
        self._chance = chance
        self._kinds = kinds

    def some(self, depth: int = 2) -> Condition:
        """A leaf, or several joined."""
        dice = self._chance.random()
        if not depth or dice < 0.6:
            name = self._chance.choice(list(self._kinds))
            return self.leaf(name)
        if dice < 0.7:
            return _not(self.some(depth - 1))
        one, other = self.some(depth - 1), self.some(depth - 1)
        return (_and if dice < 0.85 else _or)(one, other)

    def leaf(self, name: str) -> Condition:
        """A condition on one column."""
        kind, chance = self._kinds[name], self._chance
        if inner(kind)[0]:
            return self._nested(name, kind)
        dice = chance.random()
        if dice < 0.08:
            return _null_test(name, is_null=chance.random() < 0.5)
        if dice < 0.25:
            return self._in(name, kind)
        if dice < 0.35:
            return self._between(name, kind)
        if dice < 0.45 and is_text(kind):
            return self._like(name, kind)
        if dice < 0.50 and kind == "boolean":
            return Condition(self._written(name), frozenset({name}), lambda row: row[name], lambda: F.col(name))
        if dice < 0.60:
            return self._converted(name, kind)
        return self._comparison(name, kind)

    def _written(self, name: str) -> str:
        """The column's name as users write it."""
        return self._chance.choice((name, name, name, f"`{name}`", name.upper(), f"({name})"))

    def _comparison(self, name: str, kind: str) -> Condition:
        operator = self._chance.choice(list(OPERATORS))
        value = NULL if self._chance.random() < 0.04 else literal(self._chance, kind)
        written, of = self._written(name), frozenset({name})
        if self._chance.random() < 0.2:
            text = f"{value.sql} {MIRRORED.get(operator, operator)} {written}"
        else:
            text = f"{written} {operator} {value.sql}"
        return Condition(
            text,
            of,
            lambda row: compared(kind, row[name], operator, value.kind, value.model),
            _if_given((value,), lambda lits: _BY_COLUMN[operator](F.col(name), lits[0])),
        )

    def _in(self, name: str, kind: str) -> Condition:
        count = self._chance.choice((1, 1, 2, 3, MANY))
        values = [literal(self._chance, kind) for _ in range(count)]
        # Of values of several types Spark makes one that fits all, the column too.
        of = values[0].kind
        values = [value for value in values if value.kind == of and _is_spelled_alike(value, values[0])]
        if self._chance.random() < 0.15 and not kind.startswith("char"):  # Spark pads no char beside a list with null
            values.append(NULL)
        is_in = self._chance.random() < 0.7
        text = f"{self._written(name)} {'' if is_in else 'NOT '}IN ({', '.join(value.sql for value in values)})"

        def truth(row: Row) -> bool | None:
            found = reduce(either, (compared(kind, row[name], "=", value.kind, value.model) for value in values))
            return found if is_in else neither(found)

        def column(lits: Sequence[Any]) -> Column:
            found = F.col(name).isin(*lits)
            return found if is_in else ~found

        return Condition(text, frozenset({name}), truth, _if_given(values, column))

    def _between(self, name: str, kind: str) -> Condition:
        given = [literal(self._chance, kind) for _ in range(8)]
        if kind.startswith("char"):
            # Of a char between other expressions than plain texts the rules are Spark's, by which it has its blanks.
            given = [NULL, *(value for value in given if value.sql.startswith("'"))]
        low = given[-1]
        high = next((value for value in given if _is_spelled_alike(value, low)), low)
        is_in = self._chance.random() < 0.8
        text = f"{self._written(name)} {'' if is_in else 'NOT '}BETWEEN {low.sql} AND {high.sql}"

        def truth(row: Row) -> bool | None:
            found = both(
                compared(kind, row[name], ">=", low.kind, low.model),
                compared(kind, row[name], "<=", high.kind, high.model),
            )
            return found if is_in else neither(found)

        def column(lits: Sequence[Any]) -> Column:
            found = F.col(name).between(*lits)
            return found if is_in else ~found

        of_char = kind.startswith("char")
        return Condition(text, frozenset({name}), truth, _if_given((low, high), column), by_hive=of_char)

    def _like(self, name: str, kind: str) -> Condition:
        texts = [value.model for value in self._chance.sample(stored(kind), 8)]
        text = next((text for text in texts if text and "${" not in text), "a")
        escaped = "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in text)
        cut = self._chance.randrange(len(text) + 1)
        begin = "".join(f"\\{sign}" if sign in "\\%_" else sign for sign in text[:cut])
        pattern = self._chance.choice(
            (escaped, f"{begin}%", f"%{escaped}", "%", "_", f"{begin}_", f"%{escaped}%", "", text.replace("\\", "%"))
        )
        is_like = self._chance.random() < 0.8
        sql = f"{self._written(name)} {'' if is_like else 'NOT '}LIKE {quoted_text(pattern)}"

        def truth(row: Row) -> bool | None:
            found = like(row[name], pattern)
            return found if is_like else neither(found)

        # Spark matches a char with all its blanks; the model does not say what is right.
        of_char = kind.startswith("char")
        return Condition(
            sql,
            frozenset({name}),
            None if of_char else truth,
            lambda: F.col(name).like(pattern) if is_like else ~F.col(name).like(pattern),
        )

    def _converted(self, name: str, kind: str) -> Condition:
        """A condition on what is made of the column."""
        chance, of, written = self._chance, frozenset({name}), self._written(name)
        operator = chance.choice(list(OPERATORS))
        casts: dict[str, str] = {
            **dict.fromkeys(INTEGER_BITS, "double"),
            "float": "double",
            "date": "timestamp",
            "tinyint": "bigint",
            "varchar(6)": "string",
            "string": "string",
        }
        if kind in casts and chance.random() < 0.5:
            value, to = literal(chance, kind), casts[kind]
            if value.kind != kind:
                value = Literal(f"CAST({written} AS {kind})", kind, ...)
            if value.model is not ...:
                return Condition(
                    f"CAST({written} AS {to}) {operator} CAST({value.sql} AS {to})",
                    of,
                    lambda row: compared(to, _as(to, kind, row[name]), operator, to, _as(to, kind, value.model)),
                )
        value = Literal(chance.choice(stored(kind)).sql, kind, ...)
        texts = [
            f"CAST({written} AS string) {operator} CAST({value.sql} AS string)",
            f"coalesce({written}, {value.sql}) {operator} {value.sql}",
            f"if({written} IS NULL, false, {written} {operator} {value.sql})",
            f"hash({written}) % 2 = 0",
            f"CASE WHEN {written} {operator} {value.sql} THEN 1 ELSE 0 END = 1",
        ]
        if is_text(kind):
            texts += [f"upper({written}) {operator} upper({value.sql})", f"length({written}) {operator} 2"]
        if kind in ("float", "double"):
            texts += [f"isnan({written})", f"-{written} {operator} {value.sql}"]
        return Condition(chance.choice(texts), of, None)

    def _nested(self, name: str, kind: str) -> Condition:
        """A condition on a nested column: on a field, an element, or all of it."""
        of, chance = frozenset({name}), self._chance
        shape, parts = inner(kind)
        if chance.random() < 0.2:
            return _null_test(name, is_null=chance.random() < 0.5)
        if shape == "struct":
            at = chance.randrange(len(parts))
            field, _, kind_of_field = parts[at].partition(":")
            if not inner(kind_of_field)[0]:
                value, operator = _without_blanks(chance, kind_of_field), chance.choice(list(OPERATORS))
                return Condition(
                    f"{name}.{field} {operator} {value.sql}",
                    of,
                    lambda row: compared(
                        kind_of_field, None if row[name] is None else row[name][at], operator, value.kind, value.model
                    ),
                    by_hive=kind_of_field.startswith("char"),
                )
        if shape == "array" and not inner(parts[0])[0]:
            value, operator = _without_blanks(chance, parts[0]), chance.choice(list(OPERATORS))
            return Condition(
                f"get({name}, 0) {operator} {value.sql}",
                of,
                lambda row: compared(parts[0], row[name][0] if row[name] else None, operator, value.kind, value.model),
                by_hive=parts[0].startswith("char"),
            )
        text = f"{name}.a IS NULL" if shape == "struct" else f"size({name}) > 1"
        return Condition(text, of, None)


def _without_blanks(chance: random.Random, kind: str) -> Literal:
    """A value beside a nested one: a char has no blanks at its end there, and equals no text that has some."""
    values = (literal(chance, kind) for _ in iter(int, 1))
    return next(value for value in values if not kind.startswith("char") or value.model == value.model.rstrip(" "))


def _as(to: str, kind: str, model: Any) -> Any:
    if model is None:
        return None
    if to == "timestamp" and kind == "date":
        return model * 86_400_000_000
    return float(model) if to == "double" else model


def _is_spelled_alike(one: Literal, other: Literal) -> bool:
    """Whether both make Spark compare in the same type."""
    return one.kind == other.kind and (one.sql[:1] in "'\"" or one.sql[:2] == "r'") == (
        other.sql[:1] in "'\"" or other.sql[:2] == "r'"
    )


def _if_given(values: Sequence[Literal], make: Callable[[Sequence[Any]], Column]) -> Callable[[], Column] | None:
    if any(value.given is ABSENT for value in values):
        return None
    return lambda: make([F.lit(value.given) for value in values])


_BY_COLUMN: dict[str, Callable[[Column, Any], Column]] = {
    "=": lambda column, value: column == value,
    "<=>": lambda column, value: column.eqNullSafe(value),
    "<>": lambda column, value: column != value,
    "<": lambda column, value: column < value,
    "<=": lambda column, value: column <= value,
    ">": lambda column, value: column > value,
    ">=": lambda column, value: column >= value,
}


def _null_test(name: str, *, is_null: bool) -> Condition:
    return Condition(
        f"{name} IS {'' if is_null else 'NOT '}NULL",
        frozenset({name}),
        lambda row: (row[name] is None) is is_null,
        lambda: F.col(name).isNull() if is_null else F.col(name).isNotNull(),
    )


def _not(one: Condition) -> Condition:
    of = one.truth
    made = one.column
    return Condition(
        f"NOT ({one.text})",
        one.columns,
        None if of is None else lambda row: neither(of(row)),
        None if made is None else lambda: ~made(),
        one.by_hive,
    )


def _and(one: Condition, other: Condition) -> Condition:
    return _joined(one, other, "AND", both, lambda left, right: left & right)


def _or(one: Condition, other: Condition) -> Condition:
    return _joined(one, other, "OR", either, lambda left, right: left | right)


def _joined(
    one: Condition,
    other: Condition,
    word: str,
    by: Callable[[bool | None, bool | None], bool | None],
    columns: Callable[[Column, Column], Column],
) -> Condition:
    left, right = one.truth, other.truth
    left_column, right_column = one.column, other.column
    return Condition(
        f"({one.text}) {word} ({other.text})",
        one.columns | other.columns,
        None if left is None or right is None else lambda row: by(left(row), right(row)),
        None if left_column is None or right_column is None else lambda: columns(left_column(), right_column()),
        one.by_hive or other.by_hive,
    )
