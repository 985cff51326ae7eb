"""Texts of limited length, CHAR and VARCHAR, as they are stored and as they are shown; all as SQL.

Blanks at the end of a CHAR mean nothing. A column of that type is shown with its whole length and says so to Spark,
which then compares it with texts and with other such columns as that of a table of its own. Inside of arrays, maps and
structs Spark has no such rule: there a CHAR has no blanks at its end, so that it equals the text that was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import Column
from hive_acid.format.hashing import type_parts
from hive_acid.spark.quoting import quoted
from hive_acid.spark.types import text_length

_DECLARED = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark's analyser looks for the length of a column that is a string to it."""


def shown(hive_type: str, value: str) -> str:
    """`value`, read from a file for a column of this type, as Hive shows it: a char has its whole length.

    Other engines leave its blanks out, and a column may have become wider (acid-format.md §3.5).
    """
    text = text_length(hive_type)
    if text is not None:
        return f"rpad({value}, {text[1]}, ' ')" if text[0] == "char" else value
    return _nested(hive_type, value, lambda kind, _, found: f"rtrim({found})" if kind == "char" else found) or value


def declared(frame: DataFrame, columns: Iterable[Column]) -> DataFrame:
    """`frame`, of which those of its columns that are CHAR say so to Spark."""
    chars = {column.name: column.type for column in columns if is_char(column)}
    if not chars:
        return frame
    # Names are put by their places: a name may have dots in it.
    return frame.select(
        *(
            F.col(quoted(name)).alias(name, metadata={_DECLARED: chars[name]}) if name in chars else quoted(name)
            for name in frame.columns
        )
    )


def is_char(column: Column) -> bool:
    """Whether a column is of type CHAR."""
    text = text_length(column.type)
    return text is not None and text[0] == "char"


def fitted(hive_type: str, value: str, failure: Callable[[str], str]) -> str:
    """`value` as it is stored in a column of this type; a text that is too long becomes `failure` of it."""

    def limited(kind: str, length: int, found: str) -> str:
        stored = f"rtrim({found})" if kind == "char" else f"substring({found}, 1, {length})"
        return f"CASE WHEN char_length(rtrim({found})) > {length} THEN {failure(found)} ELSE {stored} END"

    text = text_length(hive_type)
    if text is None:
        return _nested(hive_type, value, limited) or value
    stored = limited(*text, value)
    return f"rpad({stored}, {text[1]}, ' ')" if text[0] == "char" else stored


def _nested(hive_type: str, value: str, text: Callable[[str, int, str], str], depth: int = 0) -> str | None:
    """`value` with `text` of each text of limited length in it: of its type, length and SQL. None if there is none."""
    if (limit := text_length(hive_type)) is not None:
        made = text(*limit, value)
        return None if made == value else made
    name, inner = type_parts(hive_type)
    one, two = f"__acid_text_{depth}", f"__acid_text_{depth}_of"
    if name == "array":
        element = _nested(inner[0], one, text, depth + 1)
        return element and f"transform({value}, {one} -> {element})"
    if name == "map":
        key, held = _nested(inner[0], one, text, depth + 1), _nested(inner[1], two, text, depth + 1)
        keys = f"transform_keys({value}, ({one}, {two}) -> {key})" if key else value
        return f"transform_values({keys}, ({one}, {two}) -> {held})" if held else key and keys
    if name == "struct":
        return _struct(value, [part.partition(":")[::2] for part in inner], text, depth)
    return None


def _struct(
    value: str, fields: Sequence[tuple[str, str]], text: Callable[[str, int, str], str], depth: int
) -> str | None:
    found = [(quoted(name.strip().lower()), kind) for name, kind in fields]
    made = [_nested(kind, f"({value}).{name}", text, depth) for name, kind in found]
    if not any(made):
        return None
    parts = (f"{new or f'({value}).{name}'} AS {name}" for (name, _), new in zip(found, made, strict=True))
    return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(parts)}) END"
