"""A reader of Prometheus' text form, strict enough to find what a real one would refuse."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

_LINE = re.compile(r'([a-zA-Z_:][\w:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?[\d.e+-]+|\+Inf|NaN)')
_LABEL = re.compile(r'([a-zA-Z_]\w*)="((?:[^"\\\n]|\\[\\"n])*)"')
_SUFFIXES = {"summary": ("_sum", "_count"), "histogram": ("_bucket", "_sum", "_count")}

Series = tuple[str, tuple[tuple[str, str], ...]]


def get(port: int, path: str) -> tuple[int, str, str]:
    """Status, content type and text."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


def parsed(text: str) -> dict[Series, float]:
    """The values by name and labels; every line, type and group is checked."""
    assert text.endswith("\n")
    values: dict[Series, float] = {}
    types: dict[str, str] = {}
    current = explained = ""
    for line in text.splitlines():
        if line.startswith("# HELP "):
            _, _, explained, meaning = line.split(" ", 3)
            assert meaning, f"{explained} is not explained"
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == explained, f"{current} is not explained"
            assert current not in types, f"{current} comes in two groups"
            types[current] = kind
        else:
            match = _LINE.fullmatch(line)
            assert match, line
            name, labels, value = match[1], match[2] or "", match[3]
            suffixes = _SUFFIXES.get(types[current], ("",))
            assert name in [current + suffix for suffix in suffixes], line
            series = name, tuple(_LABEL.findall(labels))
            assert series not in values, f"{line} comes twice"
            values[series] = float(value)
    return values


def names(text: str) -> set[str]:
    """The names of all series."""
    return {name for name, _ in parsed(text)}
