"""The words of a statement with their places in its text, and a cursor that reads them.

Clauses are taken out of a statement as slices of its own text, never written anew from a syntax tree: what Spark is
asked is what the user wrote, but for the names of tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from hive_acid.errors import SqlError

_STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_WORD = re.compile(r"[^\W\d]\w*|\d+\w*[^\W\d]\w*", re.UNICODE)
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_SHOWN_LENGTH = 40


class _Tokenizer(Spark.Tokenizer):
    """Spark's words, also after those (SHOW, EXPLAIN, RENAME …) whose statements sqlglot does not look into."""

    COMMANDS: ClassVar[set[TokenType]] = set()


@dataclass(frozen=True, slots=True)
class Token:
    """A word, literal or sign: `word` in upper case, empty for literals and quoted names; `value` without quotes."""

    word: str
    value: str
    is_string: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name of one or more parts as it stands in a statement, with its place there."""

    parts: tuple[str, ...]
    start: int
    end: int

    def __str__(self) -> str:
        return ".".join(self.parts)


def tokens_of(text: str) -> list[Token]:
    """The tokens of `text`, without comments. Raises SqlError for a quote or comment that does not end."""
    try:
        found = _Tokenizer(dialect="spark").tokenize(text)
    except SqlglotError as error:
        raise SqlError(f"the statement cannot be split into words: {str(error).splitlines()[0]}") from error
    tokens: list[Token] = []
    for token in found:
        if tokens and token.start < tokens[-1].end:  # a number's suffix comes as a cast of its own
            continue
        tokens += _split(token, text)
    return tokens


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


class Cursor:
    """Reads the tokens of a statement, one after the other; `words` of its methods are keywords in upper case."""

    def __init__(self, text: str, tokens: Sequence[Token] | None = None) -> None:
        self.text = text
        self._tokens = tokens_of(text) if tokens is None else tokens
        self._at = 0

    # --- where it stands -----------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The place of the next token, the end of the text if there is none."""
        return self._tokens[self._at].start if self._at < len(self._tokens) else len(self.text)

    @property
    def at_end(self) -> bool:
        """Whether nothing follows but a semicolon."""
        rest = self._tokens[self._at :]
        return not rest or (len(rest) == 1 and rest[0].word == ";")

    def peek(self, offset: int = 0) -> str:
        """The next word, or the one `offset` further; empty at the end and for literals and quoted names."""
        at = self._at + offset
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""

    def sees(self, *words: str) -> bool:
        """Whether `words` come next."""
        return all(self.peek(offset) == word for offset, word in enumerate(words))

    def error(self, message: str) -> SqlError:
        """An error that tells the place of the next token."""
        if self.at_end:
            return SqlError(f"{message}, at the end of the statement")
        shown = self.text[self.start : self.start + _SHOWN_LENGTH].splitlines()[0]
        line = self.text.count("\n", 0, self.start) + 1
        column = self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1
        return SqlError(f"{message}, at line {line}, column {column}: {shown}")

    # --- words ---------------------------------------------------------------------------------

    def accept(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        if self.sees(*words):
            self._at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Step over `words`. Raises SqlError if something else comes."""
        if not self.accept(*words):
            raise self.error(f"{' '.join(words)} was expected")

    def one_of(self, *words: str) -> str:
        """Step over one of `words` and return it. Raises SqlError if something else comes."""
        word = self.peek()
        if word not in words:
            raise self.error(f"{', '.join(words[:-1])} or {words[-1]} was expected" if words[1:] else f"no {words[0]}")
        self._at += 1
        return word

    def finish(self) -> None:
        """Raises SqlError unless the statement ends here; several in one text are not taken."""
        self.accept(";")
        if self._at < len(self._tokens):
            if self.peek(-1) == ";":
                raise self.error("one statement at a time: another one follows")
            raise self.error("the statement is not understood from here on")

    # --- names and literals --------------------------------------------------------------------

    def identifier(self, what: str = "a name") -> str:
        """A plain or quoted name, without its quotes."""
        if not self.sees_identifier():
            raise self.error(f"{what} was expected")
        return self._next().value

    def sees_identifier(self) -> bool:
        """Whether a plain or quoted name comes next."""
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        return not token.is_string and (not token.word or _WORD.fullmatch(token.word) is not None)

    def name(self, what: str = "a table's name") -> Name:
        """A name of parts with dots between."""
        start = self.start
        parts = [self.identifier(what)]
        while self.accept("."):
            parts.append(self.identifier(what))
        return Name(tuple(parts), start, self._tokens[self._at - 1].end)

    def string(self, what: str) -> str:
        """A string literal's value; ``'it''s'`` has a quote in it, and literals with space between are one."""
        found = ""
        end: int | None = None
        while self._at < len(self._tokens) and self._tokens[self._at].is_string:
            token = self._next()
            found += ("'" if end == token.start else "") + token.value
            end = token.end
        if end is None:
            raise self.error(f"{what} in quotes was expected")
        return found

    def sees_string(self) -> bool:
        """Whether a string literal comes next."""
        return self._at < len(self._tokens) and self._tokens[self._at].is_string

    def integer(self, what: str) -> int:
        """A whole number."""
        if not self.peek().isdigit():
            raise self.error(f"{what} was expected")
        return int(self._next().value)

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

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token
