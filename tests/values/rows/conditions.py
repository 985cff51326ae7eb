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

from tests.values.rows.compared import MIRRORED, OPERATORS, both, compared, either, like, neither
from tests.values.rows.hostile import INTEGER_BITS, inner, is_text, stored
from tests.values.rows.literals import ABSENT, NULL, Literal, literal, quoted_text

Row = Mapping[str, Any]
"""The values of a row by the names of their columns."""

Truth = Callable[[Row], bool | None]

MANY = 12
"""Spark looks for a value in a list of more than ten in another way."""


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition; `truth` is None where the model does not know it, and `column` where only text says it.

    `by_hive` says that plain Spark is not asked: it pads no char that stands between others, or in nested columns.
    `with_parameters` is the same text with values taken out of it, and these by name.
    """

    text: str
    columns: frozenset[str]
    truth: Truth | None
    column: Callable[[], Column] | None = None
    by_hive: bool = False
    with_parameters: tuple[str, Mapping[str, Any]] | None = None

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

    def __init__(self, chance: random.Random, kinds: Mapping[str, str], *, is_ansi: bool = True) -> None:
        """`is_ansi` says that Spark refuses what it cannot cast: then no column meets texts that are no such values."""
        self._chance = chance
        self._kinds = kinds
        self._is_ansi = is_ansi

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
        if (dice := chance.random()) < 0.30:
            other = self._beside(name, kind) if dice < 0.1 else None
            return other or (self._otherwise(name, kind) if dice < 0.24 else self._mixed(name, kind))
        dice = chance.uniform(0.08, 1)
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
            with_parameters=_parameters((value,), lambda names: f"{written} {operator} {names[0]}"),
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
        written = f"{self._written(name)} {'' if is_in else 'NOT '}IN"
        text = f"{written} ({', '.join(value.sql for value in values)})"

        def truth(row: Row) -> bool | None:
            found = reduce(either, (compared(kind, row[name], "=", value.kind, value.model) for value in values))
            return found if is_in else neither(found)

        def column(lits: Sequence[Any]) -> Column:
            found = F.col(name).isin(*lits)
            return found if is_in else ~found

        return Condition(
            text,
            frozenset({name}),
            truth,
            _if_given(values, column),
            with_parameters=_parameters(values, lambda names: f"{written} ({', '.join(names)})"),
        )

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

        # Spark matches a char with all its blanks.
        of_char = kind.startswith("char")

        def truth(row: Row) -> bool | None:
            text = row[name]
            found = like(text.rstrip(" ") if of_char and text is not None else text, pattern)
            return found if is_like else neither(found)

        def column() -> Column:
            return F.col(name).like(pattern) if is_like else ~F.col(name).like(pattern)

        is_clear = not (of_char and any(sign in pattern for sign in "\\'\""))
        return Condition(sql, frozenset({name}), truth, column if is_clear else None, by_hive=of_char)

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

    def _beside(self, name: str, kind: str) -> Condition | None:
        """The column beside another one; None where Spark knows no comparison of the two."""
        chance = self._chance
        kinds = {of: other for of, other in self._kinds.items() if of != name and _can_meet(kind, other)}
        if not kinds:
            return None
        other = chance.choice(list(kinds))
        operator, of_other = chance.choice(list(OPERATORS)), kinds[other]
        is_text_of_hive = kind.startswith("char") or of_other.startswith("char")
        return Condition(
            f"{self._written(name)} {operator} {self._written(other)}",
            frozenset({name, other}),
            lambda row: compared(kind, row[name], operator, of_other, row[other]),
            lambda: _BY_COLUMN[operator](F.col(name), F.col(other)),
            by_hive=is_text_of_hive and kind != of_other,
        )

    def _otherwise(self, name: str, kind: str) -> Condition:
        """A comparison in one of its rarer forms."""
        chance, written, of = self._chance, self._written(name), frozenset({name})
        value, more = literal(chance, kind), literal(chance, kind)
        if kind.startswith("char"):
            plain = [one for one in (literal(chance, kind) for _ in range(30)) if one.sql.startswith("'")]
            value, more = (plain * 2)[:2] if plain else (Literal("'ab'", "string", "ab"),) * 2
        if not _is_spelled_alike(value, more):
            more = value

        def equal(row: Row) -> bool | None:
            return compared(kind, row[name], "=", value.kind, value.model)

        def distinct(row: Row) -> bool:
            return not compared(kind, row[name], "<=>", value.kind, value.model)

        def one_of(row: Row) -> bool | None:
            return either(equal(row), compared(kind, row[name], "=", more.kind, more.model))

        forms: list[tuple[str, Truth]] = [
            (f"{written} IS DISTINCT FROM {value.sql}", distinct),
            (f"{written} IS NOT DISTINCT FROM {value.sql}", lambda row: not distinct(row)),
            (f"{written} != {value.sql}", lambda row: neither(equal(row))),
            (f"{written} == {value.sql}", equal),
            (f"! ({written} = {value.sql})", lambda row: neither(equal(row))),
            (f"NOT {written} = {value.sql}", lambda row: neither(equal(row))),
            (f"({written} = {value.sql}) IS TRUE", lambda row: equal(row) is True),
            (f"({written} = {value.sql}) IS NOT TRUE", lambda row: equal(row) is not True),
            (f"({written} = {value.sql}) IS FALSE", lambda row: equal(row) is False),
            (f"({written} = {value.sql}) IS UNKNOWN", lambda row: equal(row) is None),
            (f"{written} = {value.sql} IS NULL", lambda row: equal(row) is None),
            (f"({written} = {value.sql}) = false", lambda row: neither(equal(row))),
            (f"({written} = {value.sql}) <=> true", lambda row: equal(row) is True),
            (f"coalesce({written} = {value.sql}, true)", lambda row: equal(row) is not False),
            (f"nvl({written} = {value.sql}, false)", lambda row: equal(row) is True),
            (f"CASE WHEN {written} = {value.sql} THEN true END", lambda row: equal(row) or None),
            (f"if({written} = {value.sql}, true, false)", lambda row: equal(row) is True),
            (f"{written} = {value.sql} OR false", equal),
            (f"NOT ({written} = {value.sql} OR {written} = {more.sql})", lambda row: neither(one_of(row))),
            (f"{written} = {value.sql} OR {written} <=> {more.sql}", lambda row: either(
                equal(row), compared(kind, row[name], "<=>", more.kind, more.model))),
            (f"{written} BETWEEN {value.sql} AND {written}", lambda row: both(
                compared(kind, row[name], ">=", value.kind, value.model),
                None if row[name] is None else True)),
            (f"isnull({written}) OR {written} = {value.sql}", lambda row: row[name] is None or equal(row)),
            (f"isnotnull({written})", lambda row: row[name] is not None),
            (f"{written} <=> NULL", lambda row: row[name] is None),
            (f"NULL <=> {written}", lambda row: row[name] is None),
            (f"NOT ({written} IS NULL)", lambda row: row[name] is not None),
            (f"NOT {written} IS NOT NULL", lambda row: row[name] is None),
            (f"true AND {written} = {value.sql} AND 1 = 1", equal),
            (f"{written} = {value.sql} AND false", lambda row: both(equal(row), False)),
            (f"{written} = {value.sql} AND NULL", lambda row: both(equal(row), None)),
        ]  # fmt: skip
        if kind.startswith("char"):
            text, truth = chance.choice(forms)
            return Condition(text, of, truth, by_hive=True)
        of_kind, another = (chance.choice(stored(kind)).sql for _ in range(2))  # Spark casts nothing within others
        of_spark = [
            f"({written}, 1) = ({of_kind}, 1)",
            f"({written}, 1) IN (({of_kind}, 1), ({another}, 1))",
            f"nullif({written}, {value.sql}) IS NULL",
            f"array_contains(array({of_kind}), {written})",
            f"exists(array({value.sql}, {more.sql}), x -> x = {written})",
            f"decode({written}, {of_kind}, 1, 0) = 1",
            f"CASE {written} WHEN {value.sql} THEN true ELSE false END",
        ]
        if chance.random() < 0.25:
            return Condition(chance.choice(of_spark), of, None)
        text, truth = chance.choice(forms)
        return Condition(text, of, truth)

    def _mixed(self, name: str, kind: str) -> Condition:
        """The column beside a constant of another family, or what is made of it beside one: as plain Spark has it."""
        chance, written = self._chance, self._written(name)
        operator, beside = chance.choice(list(OPERATORS)), chance.choice(_BESIDE.get(_family(kind), ("NULL",)))
        texts = [f"{written} {operator} {beside}"] * 3
        texts += [form.format(written, operator) for form in _FORMS.get(_family(kind), ())]
        if not self._is_ansi:
            beside = chance.choice(_BESIDE_WITHOUT_ANSI.get(_family(kind), ("NULL",)))
            listed = ", ".join(chance.sample(_BESIDE_WITHOUT_ANSI.get(_family(kind), ("NULL", "1")), 2))
            texts += [f"{written} {operator} {beside}"] * 6 + [f"{written} IN ({listed})"] * 2
        return Condition(chance.choice(texts), frozenset({name}), None)

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


def _can_meet(kind: str, other: str) -> bool:
    """Whether two columns are compared without a cast that may fail, and texts only with texts."""
    if inner(kind)[0] or inner(other)[0]:
        return False
    return _family(kind) == _family(other) or {kind, other} == {"date", "timestamp"}


def _family(kind: str) -> str:
    if kind in INTEGER_BITS or kind.startswith("decimal") or kind in ("float", "double"):
        return "number"
    if kind.startswith("char"):
        return "char"
    return "text" if is_text(kind) else kind


def _parameters(
    values: Sequence[Literal], text: Callable[[Sequence[str]], str]
) -> tuple[str, Mapping[str, Any]] | None:
    """A text with parameters in the place of values, and the values by their names; None if one cannot be given."""
    if any(value.given is ABSENT or value.given is None for value in values):
        return None
    names = [f"given_{at}" for at in range(len(values))]
    given = {name: value.given for name, value in zip(names, values, strict=True)}
    return text([f":{name}" for name in names]), given


_BESIDE: Mapping[str, tuple[str, ...]] = {
    "number": ("NULL", "300", "-129", "32768", "2147483648", "99999999999999999999", "1e2", "1e-40", "1e300", "'5'",
               "' 5 '", "'-1'", "5 - 4", "0.1 + 0.2", "1 / 3", "-(-1)", "+1", "CAST(1 AS smallint)", "abs(-1)",
               "int(1)", "1.0000000000000000000000000000001",
               "12345678901234567890123456789012345678"),
    "text": ("NULL", "'a' || 'b'", "concat('a', 'b')", "'a' 'b'", "upper('ab')", "char(97)", "CAST(1 AS string)",
             "repeat('x', 1100)", "rpad('x', 1024, 'x')", "lower('AB')", "trim(' ab ')", "current_user()"),
    "date": ("NULL", "date'2024-02-28' + 1", "date_add(date'2024-02-28', 1)", "date'2024-02-28' + interval '1' day",
             "make_date(2024, 2, 29)", "current_date()", "now()", "current_timestamp() - interval '1' day",
             "trunc(date'2024-02-29', 'MM')", "last_day(date'2024-02-01')", "'2024'", "'2024-02'", "'2024-2-29'",
             "'9999-12-31'", "'+2024-02-29'", "' 2024-02-29 '", "date'0001-01-01' - 1", "to_date('2024-02-29')",
             "date'9999-12-31' + interval '1' day", "timestamp_ntz'2024-02-29 12:00:00'"),
    "timestamp": ("NULL", "now()", "current_date()", "timestamp'2024-02-29 00:00:00' + interval '1' hour",
                  "'2024'", "'2024-02'", "'2024-02-29'", "'2024-02-29T00:00:00Z'", "'2024-02-29 00:00:00+02:00'",
                  "timestamp'2024-02-29 00:00:00 Europe/Berlin'", "to_timestamp('2024-02-29')", "'1900-01-01'",
                  "timestamp_seconds(0)", "timestamp_millis(-1)", "date_trunc('month', timestamp'2024-02-29 01:02:03')",
                  "timestamp'1969-12-31 23:59:59.5'", "timestamp'1582-10-10 00:00:00'", "'9999-12-31 23:59:59.999999'"),
    "boolean": ("NULL", "'true'", "'f'", "'YES'", "'0'", "(1 = 1)", "(NOT true)", "true AND NULL"),
    "binary": ("NULL", "X''", "CAST('a' AS binary)", "to_binary('61', 'hex')", "unhex('FF')", "encode('a', 'utf-8')"),
    "char": ("NULL",),
}  # fmt: skip
"""Constants that stand beside a column, by the family of its type, with ANSI on as well."""

_BESIDE_WITHOUT_ANSI: Mapping[str, tuple[str, ...]] = {
    "number": ("'abc'", "''", "'1.5'", "'1e2'", "true", "false", "'0x1'", "'NaN'", "'5L'", "' '", "date'1970-01-02'",
               "timestamp'1970-01-01 00:00:01'"),
    "text": ("0", "1", "1.0", "1e0", "1L", "1BD", "true", "false", "date'1970-01-01'",
             "timestamp'1970-01-01 00:00:00'", "X'61'", "5 - 4"),
    "date": ("'x'", "''", "'2024-02-30'", "0", "1", "X'61'", "'2024-02-29 12:34:56'", "'epoch'"),
    "timestamp": ("'x'", "''", "0", "1", "1.5", "'2024-02-30'", "'12:00:00'"),
    "boolean": ("'x'", "''", "0", "1", "2", "1.0", "'2'"),
    "binary": ("'a'", "''", "'ÿ'", "97", "true"),
    "char": ("NULL", "NULL"),
}  # fmt: skip
"""And with ANSI off: casts of either side that may fail become null."""

_FORMS: Mapping[str, tuple[str, ...]] = {
    "number": ("-CAST({0} AS double) {1} 1", "CAST({0} AS double) + 1 {1} 2", "CAST({0} AS double) * 0 {1} 0",
               "{0} IN (1, 1.0, 1e0)", "{0} IN (NULL)", "{0} NOT IN (0, NULL)", "{0} % 2 = 0", "sign({0}) {1} -1",
               "least({0}, 1) {1} 1", "greatest({0}, 0) {1} 0", "CAST({0} AS string) LIKE '1%'",
               "{0} BETWEEN 1 AND 0", "{0} BETWEEN -1 AND 1.5", "{0} > 0 AND {0} < 3",
               "try_cast({0} AS tinyint) {1} 1", "bit_length(CAST({0} AS string)) {1} 8", "{0} = {0}", "{0} <> {0}"),
    "text": ("{0} RLIKE '^a'", "{0} ILIKE 'A%'", "{0} NOT ILIKE 'A%'", "{0} LIKE ANY ('a%', '%b')",
             "{0} LIKE ALL ('a%', '%b')", "{0} NOT LIKE ANY ('a%', '%b')", "{0} NOT LIKE ALL ('a%', 'b%')",
             "{0} LIKE 'a/_b' ESCAPE '/'", "{0} LIKE 'a|%%' ESCAPE '|'", "startswith({0}, 'a')", "endswith({0}, ' ')",
             "contains({0}, 'b')", "{0} || 'x' {1} 'ax'", "substr({0}, 1, 1) {1} 'a'", "trim({0}) {1} 'ab'",
             "lower({0}) {1} 'ab'", "{0} COLLATE UTF8_LCASE {1} 'AB'", "{0} {1} 'AB' COLLATE UTF8_LCASE",
             "collate({0}, 'UNICODE_CI') {1} 'Ab'", "{0} COLLATE UTF8_LCASE IN ('AB', 'B')",
             "{0} COLLATE UNICODE_AI {1} 'A'", "{0} COLLATE UTF8_BINARY_RTRIM {1} 'a'", "{0} = 'AB' COLLATE UNICODE_CI",
             "ascii({0}) {1} 97", "position('b', {0}) > 0", "{0} BETWEEN 'b' AND 'a'", "{0} IN ('a', NULL)",
             "{0} REGEXP 'b$'", "split({0}, 'b')[0] {1} 'a'", "{0} = {0}", "hash({0}) {1} hash('ab')"),
    "date": ("year({0}) {1} 2024", "month({0}) {1} 2", "date_add({0}, 1) {1} date'2024-03-01'",
             "{0} + 1 {1} date'2024-03-01'",
             "{0} - interval '1' day {1} date'2024-02-28'", "datediff({0}, date'2024-02-29') {1} 0",
             "date_format({0}, 'yyyy-MM') {1} '2024-02'", "unix_date({0}) {1} 0", "extract(year FROM {0}) {1} 2024",
             "{0} - date'2024-02-29' {1} interval '0' day", "trunc({0}, 'YEAR') {1} date'2024-01-01'",
             "weekday({0}) {1} 3", "{0} BETWEEN date'2024-01-01' AND '2024-12-31'", "dayofyear({0}) {1} 60",
             "{0} IN ('2024-02-29', date'1970-01-01')", "months_between({0}, date'2024-02-29') {1} 0",
             "{0} >= '2024-01-01' AND {0} < '2025-01-01'", "CAST({0} AS string) {1} '2024-02-29'"),
    "timestamp": ("year({0}) {1} 2024", "hour({0}) {1} 0",
                  "{0} + interval '1' second {1} timestamp'2024-02-29 00:00:01'",
                  "date({0}) {1} date'2024-02-29'", "date_format({0}, 'yyyy-MM-dd') {1} '2024-02-29'",
                  "date_trunc('day', {0}) {1} timestamp'2024-02-29 00:00:00'", "unix_micros({0}) {1} 0",
                  "{0} - timestamp'2024-02-29 00:00:00' {1} interval '0' second", "extract(second FROM {0}) {1} 0",
                  "{0} BETWEEN '2024-01-01' AND '2024-12-31'", "{0} IN (timestamp'2024-02-29 00:00:00', '1970-01-01')",
                  "{0} >= date'2024-02-29' AND {0} < date'2024-03-01'", "to_date({0}) {1} date'1970-01-01'",
                  "CAST({0} AS string) {1} '2024-02-29 00:00:00'",
                  "CAST({0} AS timestamp_ntz) {1} timestamp_ntz'1970-01-01 00:00:00'"),
    "boolean": ("NOT {0}", "{0} IS TRUE", "{0} IS NOT FALSE", "{0} IS UNKNOWN", "{0} AND true", "{0} OR NULL",
                "({0}) = true", "int({0}) {1} 1", "{0} IN (true, NULL)", "if({0}, false, true)", "{0} <=> false",
                "{0} {1} (NOT true)", "! {0}"),
    "binary": ("length({0}) {1} 1", "hex({0}) {1} 'FF'", "{0} IN (X'FF', X'61')", "{0} BETWEEN X'00' AND X'80'",
               "base64({0}) {1} 'YQ=='", "{0} || X'00' {1} X'6100'", "substr({0}, 1, 1) {1} X'61'"),
}  # fmt: skip


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
