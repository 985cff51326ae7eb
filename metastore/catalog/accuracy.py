"""The parameters by which a table or partition says what is known of its data: basic statistics and their accuracy.

``COLUMN_STATS_ACCURATE`` is a text of JSON, ``{"BASIC_STATS":"true","COLUMN_STATS":{"a":"true"}}``: whether the number
of rows and the like are right, and the columns whose statistics are. Clients read it before they answer a query from
statistics alone, so what is not sure must not stand there. Pure functions over parameters.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

ACCURATE = "COLUMN_STATS_ACCURATE"
NUM_FILES = "numFiles"
TOTAL_SIZE = "totalSize"
BASIC_FIGURES = ("numRows", "rawDataSize", NUM_FILES, TOTAL_SIZE, "numFilesErasureCoded")
DO_NOT_UPDATE = "DO_NOT_UPDATE_STATS"
"""Key of an environment context, which some clients put among the parameters: the client keeps the statistics itself.
Never stored."""
GENERATED_BY = "STATS_GENERATED"
"""Key of an environment context: TASK if the client has just computed the statistics that it sends."""
ONLY = "hive_acid.statistics.only"
"""Key of an environment context, true if an alteration means the statistics alone. Ours: a client that sends a whole
definition to tell a number would else undo what another one has altered since it read that definition."""

_BASIC, _COLUMNS = "BASIC_STATS", "COLUMN_STATS"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What is accurate: the basic statistics, and those of columns (names in lower case)."""

    basic: bool = False
    columns: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str | None) -> Self:
        """What a value of the parameter says; nothing if it is absent or unreadable, as clients take it."""
        try:
            found = json.loads(text or "{}")
        except ValueError:
            return cls()
        if found is True:
            return cls(basic=True)  # the form of Hive 1
        if not isinstance(found, dict):
            return cls()
        columns = found.get(_COLUMNS)
        names = columns.items() if isinstance(columns, dict) else ()
        return cls(_is_true(found.get(_BASIC)), frozenset(name.lower() for name, value in names if _is_true(value)))

    @classmethod
    def of(cls, parameters: Mapping[str, str]) -> Self:
        """What the parameters of a table or partition say."""
        return cls.parse(parameters.get(ACCURATE))

    def with_columns(self, columns: Collection[str]) -> Self:
        return replace(self, columns=self.columns | frozenset(columns))

    def without_columns(self, columns: Collection[str]) -> Self:
        return replace(self, columns=self.columns - frozenset(columns))

    def applied(self, parameters: Mapping[str, str]) -> dict[str, str]:
        """The parameters saying this; without the key if nothing is accurate."""
        rest = {key: value for key, value in parameters.items() if key != ACCURATE}
        return {**rest, ACCURATE: str(self)} if self.basic or self.columns else rest

    def __str__(self) -> str:
        said: dict[str, object] = {_BASIC: "true"} if self.basic else {}
        if self.columns:
            said[_COLUMNS] = dict.fromkeys(sorted(self.columns), "true")
        return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def with_statistics(parameters: Mapping[str, str], sent: Mapping[str, str]) -> dict[str, str]:
    """`parameters` with the basic figures, and what is said of their accuracy, as `sent`."""
    figures = {key: sent[key] for key in (*BASIC_FIGURES, ACCURATE) if key in sent}
    return {**{key: value for key, value in parameters.items() if key != ACCURATE}, **figures}


def storable(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters without the wish to be left alone, which some clients put there."""
    return {key: value for key, value in parameters.items() if key != DO_NOT_UPDATE}


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"
