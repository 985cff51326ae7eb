"""Texts before they are statements: several with semicolons between, and ``${name}``, which stands for a setting of the
session: Spark replaces it in what it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from hive_acid.errors import SqlError
from hive_acid.spark.jvm.session_settings import is_on
from hive_acid.spark.sql.tokens import tokens_of

_BLANK_LINES = re.compile(r"\n\s*\n")
_SHOWN_LENGTH = 2_000

_SETTING = "spark.sql.variable.substitute"
_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}")
_OF_SESSION = frozenset({None, "spark", "sparkconf", "hivevar", "hiveconf"})


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement of a script: its number from 1 on, the line in which it begins, and its text.

    Blanks stand before it, so that lines and columns are those of the script.
    """

    number: int
    line: int
    text: str

    def failed(self, error: Exception) -> str:
        """What is said of an error of this statement."""
        said = _BLANK_LINES.sub("\n", str(error).strip())[:_SHOWN_LENGTH]
        return f"statement {self.number}, in line {self.line}: {said or type(error).__name__}"


def statements_of(script: str) -> Iterator[ScriptStatement]:
    """The statements of a text; semicolons in texts, names and comments part none. Raises SqlError, as `tokens_of`."""
    number, first, end = 0, None, 0
    for token in (*tokens_of(script), None):
        if token is not None and token.word != ";":
            first, end = token.start if first is None else first, token.end
        elif first is not None:
            number += 1
            before = script.rfind("\n", 0, first) + 1
            line = script.count("\n", 0, first)
            yield ScriptStatement(number, line + 1, "\n" * line + " " * (first - before) + script[first:end])
            first = None


def substituted(spark: SparkSession, text: str) -> str:
    """`text` with the values of its variables, as Spark would have it: nothing for what is no setting.

    Those of Spark's process (``${env:HOME}``) stay, for Spark to replace. Raises SqlError for one that means itself.
    """
    if "${" not in text or not is_on(spark, _SETTING, default=True):
        return text
    return _replaced(text, spark.conf.getAll, ())


def _replaced(text: str, settings: Mapping[str, str], within: tuple[str, ...]) -> str:
    def value(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        if kind not in _OF_SESSION:
            return found[0]
        if name in within:
            raise SqlError(f"the variable {name} stands for itself")
        return _replaced(settings.get(name, ""), settings, (*within, name))

    return _VARIABLE.sub(value, text)
