"""The words of an operator's statement, and a reader that steps through them; Python's own library is all it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hive_acid.errors import SqlError

Parts = tuple[str, ...]
"""A name as it is written: its parts between the dots, without quotes."""

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>\d+(?:\.\d+)?(?![\w.]))
      | (?P<word>\w+)
      | (?P<sign>[-+.,=();*])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_SHOWN_LENGTH = 40


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """The token in upper case if it may be a keyword, a number or a sign, else nothing."""
        return "" if self.kind in ("string", "quoted") else self.text.upper()


class Words:
    """Reads the words of a statement one after the other; keywords are given in upper case."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether nothing follows."""
        return self._at >= len(self._tokens)

    def peek(self, offset: int = 0) -> str:
        """The next word, or the one `offset` further; empty at the end and for literals and quoted names."""
        at = self._at + offset
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""

    def sees(self, *words: str) -> bool:
        """Whether `words` come next."""
        return all(self.peek(offset) == word for offset, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        if self.sees(*words):
            self._at += len(words)
            return True
        return False

    def expect(self, word: str) -> None:
        """Step over `word`. Raises SqlError if something else comes, as all methods below do."""
        if not self.accept(word):
            raise self.error(f"{word} was expected")

    def one_of(self, *words: str) -> str:
        """Step over one of `words` and return it."""
        word = self.peek()
        if word not in words:
            raise self.error(f"{' or '.join(words)} was expected")
        self._at += 1
        return word

    def sees_clause(self, *words: str) -> bool:
        """Whether a clause begins here that one of `words` introduces, rather than a name that is such a word."""
        is_last = self._at + 1 == len(self._tokens)
        return self.peek() in words and not is_last and self.peek(1) not in (".", "PARTITION", *words)

    def clauses(self, *words: str) -> Iterator[str]:
        """The first words of the clauses up to the end, each stepped over. Raises SqlError for one given twice."""
        seen: set[str] = set()
        while not self.at_end:
            clause = self.one_of(*words)
            if clause in seen:
                raise self.error(f"{clause} is given twice", -1)
            seen.add(clause)
            yield clause

    def identifier(self, what: str) -> str:
        """A plain or quoted name, without its quotes; `what` tells an error what was expected."""
        token = self._next(what, "word", "quoted")
        return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text

    def identifier_or_string(self, what: str) -> str:
        """A name, or one written as a text in quotes."""
        is_string = not self.at_end and self._tokens[self._at].kind == "string"
        return self.string(what) if is_string else self.identifier(what)

    def name(self, what: str) -> Parts:
        """A name of parts with dots between."""
        parts = [self.identifier(what)]
        while self.accept("."):
            parts.append(self.identifier(what))
        return tuple(parts)

    def string(self, what: str) -> str:
        """A text in quotes, its escapes resolved."""
        token = self._next(f"{what} in quotes", "string")
        return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]) if m[1] else m[0][0], token.text[1:-1])

    def integer(self, what: str) -> int:
        """A whole number that is not negative."""
        token = self._next(what, "number")
        if not token.text.isdigit():
            raise self.error(f"{what} was expected", -1)
        return int(token.text)

    def value(self) -> str | None:
        """A constant as the text of a partition's name; None for null."""
        if self.accept("NULL"):
            return None
        sign = "-" if self.accept("-") else ""
        if not sign and self.peek() in ("DATE", "TIMESTAMP"):
            self._at += 1
        token = self._next("a constant", "string", "number", *(() if sign else ("word",)))
        if token.kind == "string":
            self._at -= 1
            return self.string("a constant")
        if token.kind == "word" and token.word not in ("TRUE", "FALSE"):
            raise self.error("a constant was expected: a text in quotes, a number, a date or NULL", -1)
        return sign + token.text.lower()

    def clause_text(self, start: str, *ends: str) -> str:
        """The text of a clause whose first word was stepped over, up to one of `ends` outside of brackets."""
        first, depth = self._at - 1, 0
        self.expect("BY")
        while not self.at_end and (depth or self.peek() not in ends):
            depth += (self.peek() == "(") - (self.peek() == ")")
            self._at += 1
        if self._at == first + 2:
            raise self.error(f"{start} needs a column")
        return self._text[self._tokens[first].start : self._tokens[self._at - 1].end]

    def finish(self) -> None:
        """Refuses whatever follows."""
        if not self.at_end:
            raise self.error("the statement is not understood from here on")

    def error(self, message: str, offset: int = 0) -> SqlError:
        """An error that tells the place of the next token, or of the one `offset` further."""
        at = self._at + offset
        if at >= len(self._tokens):
            return SqlError(f"{message}, at the end of the statement")
        start = self._tokens[at].start
        shown = self._text[start : start + _SHOWN_LENGTH].splitlines()[0]
        line, column = self._text.count("\n", 0, start) + 1, start - self._text.rfind("\n", 0, start)
        return SqlError(f"{message}, at line {line}, column {column}: {shown}")

    def _next(self, what: str, *kinds: str) -> _Token:
        if self.at_end or self._tokens[self._at].kind not in kinds:
            raise self.error(f"{what} was expected")
        self._at += 1
        return self._tokens[self._at - 1]


def _tokens(text: str) -> list[_Token]:
    """The words, literals and signs without the last semicolon. Raises SqlError for what is none of these."""
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SqlError(f"the statement cannot be split into words here: {text[at : at + _SHOWN_LENGTH]}")
        if match.lastgroup != "space":
            found.append(_Token(match.lastgroup or "", match[0], at, match.end()))
        at = match.end()
    if found and found[-1].text == ";":
        found.pop()
    return found
