"""The words of a statement with their places in its text, and a reader that steps through them.

Two make tokens of a text: `hive_acid.operators.words` for the statements of operators, with Python's own library
alone, and `hive_acid.spark.sql.tokens` for Spark's SQL, with sqlglot's tokenizer. What reads them is one, and so are
its errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hive_acid.errors import SqlError

LARGEST_ID, LARGEST_COUNT = 2**63 - 1, 2**31 - 1
"""As the metastore's calls take them: ids of 64 bits, and numbers of rows and buckets of 32."""
SHOWN_LENGTH = 40
"""So many letters an error shows of the text from where it is wrong."""

_WORD = re.compile(r"[^\W\d]\w*|\d+\w*[^\W\d]\w*", re.UNICODE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, literal or sign: `word` in upper case, empty for literals and quoted names; `value` without quotes."""

    word: str
    value: str
    is_string: bool
    start: int
    end: int


class TokenReader:
    """Reads the tokens of a statement, one after the other; `words` of its methods are keywords in upper case."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0

    # --- where it stands -----------------------------------------------------------------------

    @property
    def start(self) -> int:
        """The place of the next token, the end of the text if there is none."""
        return self._tokens[self._at].start if self._at < len(self._tokens) else len(self.text)

    @property
    def at_end(self) -> bool:
        """Whether nothing follows but a semicolon."""
        rest = self._tokens[self._at : self._at + 2]
        return not rest or (len(rest) == 1 and rest[0].word == ";")

    def peek(self, offset: int = 0) -> str:
        """The next word, or the one `offset` further; empty at the end and for literals and quoted names."""
        at = self._at + offset
        return self._tokens[at].word if 0 <= at < len(self._tokens) else ""

    def sees(self, *words: str) -> bool:
        """Whether `words` come next."""
        return all(self.peek(offset) == word for offset, word in enumerate(words))

    def sees_identifier(self) -> bool:
        """Whether a plain or quoted name comes next."""
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        return not token.is_string and (not token.word or _WORD.fullmatch(token.word) is not None)

    def sees_string(self) -> bool:
        """Whether a string literal comes next."""
        return self._at < len(self._tokens) and self._tokens[self._at].is_string

    def error(self, message: str, offset: int = 0) -> SqlError:
        """An error that tells the place of the next token, or of the one `offset` further."""
        if offset == 0 and self.at_end:
            return SqlError(f"{message}, at the end of the statement")
        start = self._tokens[self._at + offset].start
        shown = self.text[start : start + SHOWN_LENGTH].splitlines()[0]
        line, column = self.text.count("\n", 0, start) + 1, start - self.text.rfind("\n", 0, start)
        return SqlError(f"{message}, at line {line}, column {column}: {shown}")

    # --- what it steps over: raises SqlError if something else comes ---------------------------------

    def accept(self, *words: str) -> bool:
        """Step over `words` if they come next."""
        if self.sees(*words):
            self._at += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Step over `words`."""
        if not self.accept(*words):
            raise self.error(f"{' '.join(words)} was expected")

    def one_of(self, *words: str) -> str:
        """Step over one of `words` and return it."""
        word = self.peek()
        if word not in words:
            raise self.error(f"{', '.join(words[:-1])} or {words[-1]} was expected" if words[1:] else f"no {words[0]}")
        self._at += 1
        return word

    def identifier(self, what: str = "a name") -> str:
        """A plain or quoted name, without its quotes; `what` tells an error what was expected."""
        if not self.sees_identifier():
            raise self.error(f"{what} was expected")
        return self._next().value

    def parts(self, what: str) -> tuple[str, ...]:
        """The parts of a name with dots between."""
        found = [self.identifier(what)]
        while self.accept("."):
            found.append(self.identifier(what))
        return tuple(found)

    def integer(self, what: str, *, most: int = LARGEST_ID) -> int:
        """A whole number that is not negative, and not more than `most`."""
        digits = self.peek()
        if not digits.isdecimal():
            raise self.error(f"{what} was expected")
        if len(digits) > len(str(most)) or int(digits) > most:
            raise self.error(f"{what} is {most} at most")
        return int(self._next().value)

    def finish(self) -> None:
        """Refuses whatever follows; several statements in one text are not taken."""
        self.accept(";")
        if self._at < len(self._tokens):
            if self.peek(-1) == ";":
                raise self.error("one statement at a time: another one follows")
            raise self.error("the statement is not understood from here on")

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token
