"""The words of a statement with their places in its text, and a cursor that reads them.

Clauses are taken out of a statement as slices of its own text, never written anew from a syntax tree: what Spark is
asked is what the user wrote, but for the names of tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from hive_acid.errors import SqlError
from hive_acid.tokens import Token, TokenReader

DATABASE_WORDS = ("DATABASE", "SCHEMA", "NAMESPACE")
"""What a database is called in statements."""

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_KEPT_LENGTH = 20_000
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class _Tokenizer(Spark.Tokenizer):
    """Spark's words, also after those (SHOW, EXPLAIN, RENAME …) whose statements sqlglot does not look into."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, slots=True)
class Name:
    """A name of one or more parts as it stands in a statement, with its place there."""

    parts: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        return ".".join(self.parts)

    @property
    def parent(self) -> Name:
        """The name without its last part."""
        return Name(self.parts[:-1], self.start, self.end)


def tokens_of(text: str) -> Sequence[Token]:
    """The tokens of `text`, without comments. Raises SqlError for a quote or comment that does not end.

    Those of the last texts are kept, unless they are long, since a statement is read by several.
    """
    return _kept_tokens_of(text) if len(text) <= _KEPT_LENGTH else _tokens_of(text)


@lru_cache(maxsize=16)
def _kept_tokens_of(text: str) -> Sequence[Token]:
    return _tokens_of(text)


def _tokens_of(text: str) -> Sequence[Token]:
    try:
        found = _Tokenizer(dialect="spark").tokenize(text)
    except SqlglotError as error:
        raise SqlError(f"the statement cannot be split into words: {str(error).splitlines()[0]}") from error
    tokens: list[Token] = []
    for token in found:
        if tokens and token.start < tokens[-1].end:  # a number's suffix comes as a cast of its own
            continue
        tokens += _split(token, text)
    return tuple(tokens)


def _split(token: Any, text: str) -> list[Token]:
    """One token, or the words of one such as ``GROUP BY``."""
    start, end = token.start, token.end + 1
    raw = text[start:end]
    if token.token_type in _STRINGS:
        return [Token("", token.text, True, start, end)]
    if raw.startswith("`"):
        return [Token("", raw[1:-1].replace("``", "`"), False, start, end)]
    return [
        Token(part[0].upper(), part[0], False, start + part.start(), start + part.end())
        for part in re.finditer(r"\S+", raw)
    ]


class Cursor(TokenReader):
    """Reads the tokens of a statement of Spark's SQL, and cuts slices out of it."""

    def __init__(self, text: str, tokens: Sequence[Token] | None = None) -> None:
        super().__init__(text, tokens_of(text) if tokens is None else tokens)

    def skip(self) -> None:
        """Step over whatever comes next."""
        self._next()

    # --- names and literals --------------------------------------------------------------------

    def name(self, what: str = "a table's name") -> Name:
        """A name of parts with dots between."""
        start = self.start
        return Name(self.parts(what), start, self._tokens[self._at - 1].end)

    def string(self, what: str) -> str:
        """A string literal's value; ``'it''s'`` has a quote in it, and literals one after the other are one."""
        found = ""
        end: int | None = None
        while self._at < len(self._tokens) and self._tokens[self._at].is_string:
            token = self._next()
            is_one = end == token.start and self.text[end - 1] == self.text[end]
            found += (self.text[token.start] if is_one else "") + token.value
            end = token.end
        if end is None:
            raise self.error(f"{what} in quotes was expected")
        return found

    def again(self) -> Cursor:
        """The same tokens from the first one on."""
        return Cursor(self.text, self._tokens)

    # --- slices --------------------------------------------------------------------------------

    def until(self, *words: str, of_types: bool = False) -> Cursor:
        """What comes before the first of `words` outside of all brackets and CASEs, or before the end.

        `of_types` says that angles are brackets too.
        """
        first, depth, cases = self._at, 0, 0
        while self._at < len(self._tokens):
            word = self.peek()
            if depth == cases == 0 and (word == ";" or (word in words and not self._is_inside_operator(word))):
                break
            if word in _CLOSING and depth == 0:
                break
            depth += (word in _OPENING) - (word in _CLOSING)
            if of_types:
                depth += word.count("<") - word.count(">")
            if self.peek(-1) != ".":
                cases += (word == "CASE") - (word == "END" and cases > 0)
            self._at += 1
        return self._slice(first, self._at)

    def parentheses(self, what: str) -> Cursor:
        """What stands in the parentheses that come next."""
        if not self.accept("("):
            raise self.error(f"{what} in parentheses was expected")
        inside = self.until()
        self.expect(")")
        return inside

    def items(self, what: str, *, of_types: bool = False) -> list[Cursor]:
        """The items of a list in parentheses."""
        return self.parentheses(what).separated(what, of_types=of_types)

    def separated(self, what: str, *, of_types: bool = False) -> list[Cursor]:
        """All that follows, cut at the commas outside of brackets; `of_types` as for `until`."""
        found = [self.until(",", of_types=of_types)]
        while self.accept(","):
            found.append(self.until(",", of_types=of_types))
        for item in found:
            if not item.source:
                raise self.error(f"{what}: an item is empty")
        return found

    @property
    def source(self) -> str:
        """The text of the whole slice."""
        return self.text[self._tokens[0].start : self._tokens[-1].end] if self._tokens else ""

    def rest(self) -> str:
        """The text of all that follows, without the last semicolon; the cursor is then at the end."""
        first = self._at
        self._at = len(self._tokens)
        if self.peek(-1) == ";" and self._at > first:
            self._at -= 1
        inside = self._slice(first, self._at)
        return inside.source

    def _slice(self, first: int, last: int) -> Cursor:
        end = self._tokens[last].start if last < len(self._tokens) else len(self.text)
        return Cursor(self.text[:end], self._tokens[first:last])

    def _is_inside_operator(self, word: str) -> bool:
        """Whether FROM belongs to IS DISTINCT FROM, or a word follows a dot and is a name's part."""
        return self.peek(-1) == "." or (word == "FROM" and self.peek(-1) == "DISTINCT")
