"""The words of operators' statements, and a reader of their clauses; Python's own library is all it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hive_acid.errors import SqlError
from hive_acid.tokens import SHOWN_LENGTH, Token, TokenReader

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
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class Words(TokenReader):
    """Reads the words of an operator's statement."""

    def __init__(self, text: str) -> None:
        super().__init__(text, _tokens(text))

    def sees_identifier(self) -> bool:
        """Whether a name comes next; of digits alone, what has a dot behind it is one."""
        return super().sees_identifier() or (self.peek().isdigit() and self.peek(1) == ".")

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

    def identifier_or_string(self, what: str) -> str:
        """A name, or one written as a text in quotes."""
        return self.string(what) if self.sees_string() else self.identifier(what)

    def string(self, what: str) -> str:
        """A text in quotes, its escapes resolved."""
        if not self.sees_string():
            raise self.error(f"{what} in quotes was expected")
        return self._next().value

    def value(self) -> str | None:
        """A constant as the text of a partition's name; None for null."""
        if self.accept("NULL"):
            return None
        sign = "-" if self.accept("-") else ""
        if not sign and self.peek() in ("DATE", "TIMESTAMP"):
            self._at += 1
        if self.sees_string() and not sign:
            return self._next().value
        word = self.peek()
        if not _NUMBER.fullmatch(word) and (sign or word not in ("TRUE", "FALSE")):
            raise self.error("a constant was expected: a text in quotes, a number, a date or NULL")
        return sign + self._next().value.lower()

    def clause_text(self, start: str, *ends: str) -> str:
        """The text of a clause whose first word was stepped over, up to one of `ends` outside of brackets."""
        first, depth = self._at - 1, 0
        self.expect("BY")
        while not self.at_end and (depth or self.peek() not in ends):
            depth += (self.peek() == "(") - (self.peek() == ")")
            self._at += 1
        if self._at == first + 2:
            raise self.error(f"{start} needs a column")
        return self.text[self._tokens[first].start : self._tokens[self._at - 1].end]


def _tokens(text: str) -> list[Token]:
    """The words, literals and signs without the last semicolon. Raises SqlError for what is none of these."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise SqlError(f"the statement cannot be split into words here: {text[at : at + SHOWN_LENGTH]}")
        if match.lastgroup != "space":
            found.append(_token(match))
        at = match.end()
    if found and found[-1].word == ";":
        found.pop()
    return found


def _token(match: re.Match[str]) -> Token:
    raw, start, end = match[0], match.start(), match.end()
    if match.lastgroup == "string":
        value = _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[1]) if m[1] else m[0][0], raw[1:-1])
        return Token("", value, True, start, end)
    if match.lastgroup == "quoted":
        return Token("", raw[1:-1].replace("``", "`"), False, start, end)
    return Token(raw.upper(), raw, False, start, end)
