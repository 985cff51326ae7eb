"""Partition filters such as ``d >= "2020" and (hr) in (1, 2)``: their text, read into conditions.

The grammar is that of wire.md §5.5, and what is close to it: ``key in (…)`` without brackets,
``key is [not] null``, ``not`` in front, numbers with a fraction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hive_acid.errors import MetaError
from metastore.catalog.models import Column
from metastore.catalog.partition.conditions import (
    Comparison,
    Condition,
    IsNull,
    KeyNames,
    Literal,
    Membership,
    Negation,
    as_all_of,
    as_any_of,
    between,
    comparisons,
)

MAX_LENGTH = 1_000_000
MAX_DEPTH = 100
MAX_COMPARISONS = 1_000
"""Those of one key with values, joined by OR, are one. The database plans each of them, which takes a millisecond."""

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<date>\d{4}-\d\d-\d\d(?!\w))
      | (?P<number>-?\d+(?:\.\d+)?(?!\w))
      | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
      | (?P<quoted>`(?:[^`]|``)+`)
      | (?P<word>\w+)
      | (?P<sign><=|>=|<>|!=|==|[=<>(),])
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPELLINGS = {"==": "=", "<>": "!="}
_SIGNS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">="})
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""A comparison whose sides change places."""


class _FilterToken(NamedTuple):
    kind: str
    text: str

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words

    @property
    def is_constant(self) -> bool:
        return self.kind in ("text", "number", "date")


_END = _FilterToken("end", "")


def filter_condition(text: str, keys: Sequence[Column]) -> Condition:
    """The condition that the filter states; no text is no condition.

    Raises MetaError for text that is not of the grammar, or names something that is not a partition column.
    """
    return parsed(text, KeyNames(keys).checked)


def parsed(text: str, checked: Callable[[str], str]) -> Condition:
    """The condition that a filter states, of partitions or of tables.

    `checked` makes a key of its name in the text, or raises MetaError, which other text raises that cannot be read.
    """
    if not isinstance(text, str) or len(text) > MAX_LENGTH:
        raise MetaError(f"a filter is UTF-8 text of at most {MAX_LENGTH} characters")
    if "\0" in text:
        raise MetaError("a filter has no zero bytes")
    found = _Parser(text, checked).whole() if text.strip() else Literal(True)
    if comparisons(found) > MAX_COMPARISONS:
        raise MetaError(
            f"a filter has at most {MAX_COMPARISONS} comparisons: write equalities as a list, key in (…), which is "
            "one, or ask several times"
        )
    return found


def _tokens(text: str) -> list[_FilterToken]:
    tokens: list[_FilterToken] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise MetaError(f"cannot read the filter at '{text[at : at + 20].strip()}'")
        tokens.append(_FilterToken(match.lastgroup or "", match[match.lastgroup or 0]))
        at = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens of one filter."""

    def __init__(self, text: str, checked: Callable[[str], str]) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._checked = checked

    def whole(self) -> Condition:
        found = self._any_of()
        if self._peek() is not _END:
            raise self._malformed()
        return found

    def _any_of(self) -> Condition:
        found = [self._all_of()]
        while self._take_word("or"):
            found.append(self._all_of())
        return as_any_of(found)

    def _all_of(self) -> Condition:
        found = [self._expression()]
        while self._take_word("and"):
            found.append(self._expression())
        return as_all_of(found)

    def _expression(self) -> Condition:
        if self._peek().is_word("not") and self._starts_expression(1):
            return self._deeper(self._negation)
        if self._peek().text != "(":
            return self._comparison()
        return self._membership() if self._is_key_list() else self._deeper(self._bracketed)

    def _deeper(self, read: Callable[[], Condition]) -> Condition:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise MetaError(f"the filter is nested deeper than {MAX_DEPTH}")
        found = read()
        self._depth -= 1
        return found

    def _negation(self) -> Condition:
        self._next()
        return Negation(self._expression())

    def _bracketed(self) -> Condition:
        self._expect("(")
        found = self._any_of()
        self._expect(")")
        return found

    def _starts_expression(self, ahead: int) -> bool:
        """Whether a condition begins there: otherwise ``not`` is the name of a key."""
        token = self._peek(ahead)
        return (
            token.text == "("
            or token.is_constant
            or (token.kind in ("word", "quoted") and not token.is_word("between", "in", "like", "is"))
        )

    def _comparison(self) -> Condition:
        if self._peek().is_constant or self._starts_typed_constant():
            constant = self._constant()
            sign = self._operator()
            return Comparison(self._key(), FLIPPED.get(sign, sign), constant)
        key = self._key()
        if self._take_word("is"):
            negated = self._take_word("not")
            if not self._take_word("null"):
                raise self._malformed()
            return Negation(IsNull(key)) if negated else IsNull(key)
        negated = self._take_word("not")
        if self._take_word("between"):
            low = self._constant()
            if not self._take_word("and"):
                raise self._malformed()
            found = between(key, low, self._constant())
            return Negation(found) if negated else found
        if self._peek().is_word("in"):
            return self._one_of([key], negated)
        if negated:
            raise self._malformed()
        return Comparison(key, self._operator(), self._constant())

    def _is_key_list(self) -> bool:
        """Whether ``(key) in`` or ``(struct(a, b)) in`` stands here rather than a bracketed condition."""
        after = self._peek(1)
        if after.is_word("struct") and self._peek(2).text == "(":
            return True
        return after.kind in ("word", "quoted") and self._peek(2).text == ")"

    def _membership(self) -> Condition:
        self._expect("(")
        if self._peek().is_word("struct") and self._peek(1).text == "(":
            self._next()
            keys = self._list(self._key)
        else:
            keys = [self._key()]
        self._expect(")")
        return self._one_of(keys, self._take_word("not"))

    def _one_of(self, keys: list[str], negated: bool) -> Condition:
        if not self._take_word("in"):
            raise self._malformed()
        rows = self._list((lambda: [self._constant()]) if len(keys) == 1 else self._struct)
        if any(len(row) != len(keys) for row in rows):
            raise self._malformed()
        found = Membership(tuple(keys), tuple(map(tuple, rows)))
        return Negation(found) if negated else found

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
        if not token.is_constant:
            raise self._malformed(token)
        return token.text[1:-1] if token.kind == "text" else token.text

    def _key(self) -> str:
        token = self._next()
        if token.kind == "quoted":
            return self._checked(token.text[1:-1].replace("``", "`"))
        if token.kind != "word":
            raise self._malformed(token)
        return self._checked(token.text)

    def _operator(self) -> str:
        token = self._next()
        if token.is_word("like") or (token.kind == "sign" and token.text in _SIGNS):
            return _SPELLINGS.get(token.text, token.text.lower())
        raise self._malformed(token)

    def _peek(self, ahead: int = 0) -> _FilterToken:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else _END

    def _next(self) -> _FilterToken:
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

    def _malformed(self, token: _FilterToken | None = None) -> MetaError:
        return MetaError(f"malformed filter near '{(token or self._peek()).text}': {self._text[:200]}")
