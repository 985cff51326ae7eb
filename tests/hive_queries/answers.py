"""What Hive has answered, as its test results have it, and our rows in the same form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_ASKED, _DONE = "PREHOOK: query:", "POSTHOOK: query:"
_HOOKS = ("PREHOOK:", "POSTHOOK:")
_MASKED = "masked pattern"
_WARNED = "Warning: "
_LONGEST_SEARCH = 60
"""So many statements of the file may have no answer, before one that has."""


@dataclass(slots=True)
class Answer:
    """The text of a statement, and the lines of its rows."""

    statement: str
    lines: list[str] = field(default_factory=list)

    @property
    def is_masked(self) -> bool:
        """Whether what differs from run to run is not told."""
        return any("ask" in line and "###" in line for line in self.lines)


class Answers:
    """Those of one file, asked for in the order of its statements."""

    def __init__(self, text: str) -> None:
        self._left = list(_answers(text))

    def to(self, statement: str) -> Answer | None:
        """The answer to a statement; None if the file has none."""
        for at, answer in enumerate(self._left[:_LONGEST_SEARCH]):
            if _bare(answer.statement) == _bare(statement):
                self._left = self._left[at + 1 :]
                return answer
        return None


def _answers(text: str) -> Iterator[Answer]:
    answer, where = Answer(""), ""
    for line in text.splitlines():
        if line.startswith(_ASKED):
            yield answer
            answer, where = Answer(line[len(_ASKED) :]), "asked"
        elif line.startswith(_HOOKS):
            where = "" if not line.startswith("POSTHOOK:") else "done" if line.startswith(_DONE) else "rows"
        elif where == "asked":
            answer.statement += "\n" + line
        elif where == "rows" and not line.startswith(_WARNED) and (answer.lines or _MASKED not in line):
            # The place of the rows is masked, too.
            answer.lines.append(line)
    yield answer


def _bare(statement: str) -> str:
    return re.sub(r"\s+", "", statement).rstrip(";").lower()


def normal(lines: Iterable[str]) -> list[str]:
    """Lines of rows in one order, numbers in one form."""
    return sorted("\t".join(map(_number, line.split("\t"))) for line in lines if line.strip())


def _number(text: str) -> str:
    """A number in the digits that a float has; others are as they are."""
    try:
        value = float(text)
    except ValueError:
        return text.strip()
    return text.strip() if re.fullmatch(r"\s*-?\d+\s*", text) else f"{value:.7g}" if value % 1 else f"{value:.0f}"


def lines_of(rows: Iterable[Iterable[Any]]) -> list[str]:
    """Rows as Hive's shell prints them."""
    return [line for row in rows for line in "\t".join(_text(value, "NULL") for value in row).split("\n")]


def _text(value: Any, null: str = "null") -> str:
    match value:
        case None:
            return null
        case bool():
            return str(value).lower()
        case datetime():
            return value.isoformat(" ").rstrip("0") if value.microsecond else value.isoformat(" ")
        case bytes() | bytearray():
            return bytes(value).decode(errors="replace")
        case Mapping():
            return "{" + ",".join(f"{_within(key)}:{_within(one)}" for key, one in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_within, value)) + "]"
        case tuple():
            names = getattr(value, "__fields__", range(len(value)))
            fields = (f'"{name}":{_within(one)}' for name, one in zip(names, value, strict=True))
            return "{" + ",".join(fields) + "}"
    return str(value)


def _within(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _text(value)
