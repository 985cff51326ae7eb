"""Partition filters such as ``d >= "2020" and (hr) in (1, 2)``, translated to a condition of the database.

The grammar is that of metastore-wire.md §5, "Filters". Integer keys compare by value, all others as text, which is
right for dates written as ISO says. A superset of the partitions would do for Spark, which filters again.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Numeric, and_, case, cast, literal, not_, or_, tuple_

from hive_acid.errors import MetaError
from metastore.catalog.models import Column
from metastore.catalog.schema import PARTITION

_MAX_LENGTH = 1_000_000
_MAX_DEPTH = 100
_INTEGER_TYPES = frozenset({"tinyint", "smallint", "int", "bigint"})
_INTEGER = re.compile(r"-?\d+")

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<date>\d{4}-\d\d-\d\d)
      | (?P<number>-?\d+)
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`[^`]+`)
      | (?P<word>\w+)
      | (?P<sign><=>|<=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE | re.DOTALL,
)

_OPERATORS: dict[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Token(NamedTuple):
    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


_END = _Token("end", "")


def filter_condition(text: str, keys: Sequence[Column]) -> ColumnElement[bool]:
    """The condition on a row of `partition` that the filter states; no text is no condition.

    Raises MetaError for text that is not of the grammar, or names something that is not a partition column.
    """
    if not isinstance(text, str) or len(text) > _MAX_LENGTH:
        raise MetaError(f"a partition filter is UTF-8 text of at most {_MAX_LENGTH} characters")
    parser = _Parser(text, keys)
    return parser.whole() if text.strip() else literal(True)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise MetaError(f"cannot read the partition filter at '{text[at : at + 20].strip()}'")
        tokens.append(_Token(match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens of one filter."""

    def __init__(self, text: str, keys: Sequence[Column]) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._keys = {key.name.lower(): (position, key) for position, key in enumerate(keys, start=1)}

    def whole(self) -> ColumnElement[bool]:
        found = self._any_of()
        if self._peek() is not _END:
            raise self._malformed()
        return found

    def _any_of(self) -> ColumnElement[bool]:
        found = [self._all_of()]
        while self._take_word("or"):
            found.append(self._all_of())
        return or_(*found)

    def _all_of(self) -> ColumnElement[bool]:
        found = [self._expression()]
        while self._take_word("and"):
            found.append(self._expression())
        return and_(*found)

    def _expression(self) -> ColumnElement[bool]:
        if self._peek().text != "(":
            return self._comparison()
        if self._is_key_list():
            return self._membership()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise MetaError(f"the partition filter is nested deeper than {_MAX_DEPTH}")
        self._expect("(")
        found = self._any_of()
        self._expect(")")
        self._depth -= 1
        return found

    def _comparison(self) -> ColumnElement[bool]:
        if self._peek().kind in ("text", "number", "date") or self._starts_typed_constant():
            constant = self._constant()
            sign = self._operator()
            return self._compare(self._key(), _FLIPPED.get(sign, sign), constant)
        key = self._key()
        negated = self._take_word("not")
        if self._take_word("between"):
            low = self._constant()
            if not self._take_word("and"):
                raise self._malformed()
            found = and_(self._compare(key, ">=", low), self._compare(key, "<=", self._constant()))
            return not_(found) if negated else found
        if self._peek().is_word("in"):
            return self._one_of([key], negated)
        if negated:
            raise self._malformed()
        return self._compare(key, self._operator(), self._constant())

    def _is_key_list(self) -> bool:
        """Whether ``(key) in`` or ``(struct(a, b)) in`` stands here rather than a bracketed condition."""
        after = self._peek(1)
        return after.is_word("struct") or (after.kind in ("word", "quoted") and self._peek(2).text == ")")

    def _membership(self) -> ColumnElement[bool]:
        self._expect("(")
        if self._take_word("struct"):
            keys = self._list(self._key)
        else:
            keys = [self._key()]
        self._expect(")")
        return self._one_of(keys, self._take_word("not"))

    def _one_of(self, keys: list[str], negated: bool) -> ColumnElement[bool]:
        if not self._take_word("in"):
            raise self._malformed()
        rows = self._list(self._constant if len(keys) == 1 else self._struct)
        if len(keys) == 1:
            operands = [self._operands(keys[0], row) for row in rows]
            found = or_(*(left == right for left, right in operands))
        else:
            if any(len(row) != len(keys) for row in rows):
                raise self._malformed()
            pairs = [[self._operands(*pair) for pair in zip(keys, row, strict=True)] for row in rows]
            found = or_(*(tuple_(*(p[0] for p in row)) == tuple_(*(p[1] for p in row)) for row in pairs))
        return not_(found) if negated else found

    def _struct(self) -> list[str]:
        self._take_word("const")
        if not self._take_word("struct"):
            raise self._malformed()
        return self._list(self._constant)

    def _list(self, item: Callable[[], Any]) -> list[Any]:
        self._expect("(")
        found = [item()]
        while self._peek().text == ",":
            self._expect(",")
            found.append(item())
        self._expect(")")
        return found

    def _starts_typed_constant(self) -> bool:
        return self._peek().is_word("date", "timestamp") and self._peek(1).kind in ("text", "date")

    def _constant(self) -> str:
        if self._starts_typed_constant():
            self._next()
        token = self._next()
        if token.kind in ("number", "date"):
            return token.text
        if token.kind != "text":
            raise self._malformed(token)
        return token.text[1:-1]

    def _key(self) -> str:
        token = self._next()
        name = token.text.strip("`").lower()
        if token.kind not in ("word", "quoted"):
            raise self._malformed(token)
        if name not in self._keys:
            raise MetaError(f"'{name}' in the partition filter is not a partition column: those are {list(self._keys)}")
        return name

    def _operator(self) -> str:
        token = self._next()
        if token.is_word("like") or (token.kind == "sign" and token.text in _OPERATORS):
            return token.text.lower()
        raise self._malformed(token)

    def _compare(self, key: str, sign: str, constant: str) -> ColumnElement[bool]:
        if sign == "like":
            position, _ = self._keys[key]
            return PARTITION.c["values"][position].regexp_match(_like_regex(constant))
        left, right = self._operands(key, constant)
        return _OPERATORS[sign](left, right)

    def _operands(self, key: str, constant: str) -> tuple[ColumnElement[Any], Any]:
        """Both sides of a comparison: numbers if the key is an integer and the constant too, else text."""
        position, column = self._keys[key]
        value = PARTITION.c["values"][position]
        if column.type.lower() not in _INTEGER_TYPES or not _INTEGER.fullmatch(constant):
            return value.collate("C"), literal(constant)
        number = case((value.regexp_match(r"^-?\d+$"), cast(value, Numeric)))  # null for the default partition
        return number, literal(int(constant), Numeric)

    def _peek(self, ahead: int = 0) -> _Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _take_word(self, word: str) -> bool:
        if self._peek().is_word(word):
            self._at += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        token = self._next()
        if token.text != sign or token.kind != "sign":
            raise self._malformed(token)

    def _malformed(self, token: _Token | None = None) -> MetaError:
        return MetaError(f"malformed partition filter near '{(token or self._peek()).text}': {self._text[:200]}")


def _like_regex(pattern: str) -> str:
    """A LIKE pattern of either generation: ``%`` and ``_`` with backslash escapes, or Java's ``.*``."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith(".*", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            parts.append(re.escape(pattern[at + 1]))
            at += 2
        else:
            parts.append({"%": ".*", "_": "."}.get(pattern[at]) or re.escape(pattern[at]))
            at += 1
    return f"^{''.join(parts)}$"
