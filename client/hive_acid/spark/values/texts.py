"""Texts of limited length, CHAR and VARCHAR, as they are stored and as they are shown; all as SQL.

Blanks at the end of a CHAR mean nothing. A column of that type is shown with its whole length and says so to Spark,
which then compares it with texts and with other such columns as that of a table of its own. Inside of arrays, maps and
structs Spark has no such rule: there a CHAR has no blanks at its end, so that it equals the text that was meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column
from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.frames.projection import with_metadata
from hive_acid.spark.values.leaves import changed
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import DECLARED, text_length


def shown(hive_type: str, value: str) -> str:
    """`value`, read from a file for a column of this type, as Hive shows it: a char has its whole length.

    Other engines leave its blanks out, and a column may have become wider (acid-format.md §3.5).
    """
    text = text_length(hive_type)
    if text is not None:
        return f"rpad({value}, {text[1]}, ' ')" if text[0] == "char" else value
    return changed(hive_type, value, lambda kind, found: f"rtrim({found})" if _is_char(kind) else None) or value


def declared(frame: DataFrame, columns: Iterable[Column]) -> DataFrame:
    """`frame`, of which those of its columns that are CHAR say so to Spark."""
    chars = {column.name: column.type for column in columns if is_char(column)}
    if not chars:
        return frame
    if frame_in_jvm(frame) is not None:
        return with_metadata(frame, {name: (quoted(name), {DECLARED: type_}) for name, type_ in chars.items()})
    # Over Connect a column that is replaced loses what its alias says.
    marked = {name: F.col(quoted(name)).alias(name, metadata={DECLARED: type_}) for name, type_ in chars.items()}
    return frame.select(*(marked.get(name, quoted(name)) for name in frame.columns))


def is_char(column: Column) -> bool:
    """Whether a column is of type CHAR."""
    return _is_char(column.type)


def _is_char(hive_type: str) -> bool:
    text = text_length(hive_type)
    return text is not None and text[0] == "char"


def fitted(hive_type: str, value: str, failure: Callable[[str], str]) -> str:
    """`value` as it is stored in a column of this type; a text that is too long becomes `failure` of it."""

    def limited(of: str, found: str) -> str | None:
        limit = text_length(of)
        if limit is None:
            return None
        kind, length = limit
        stored = f"rtrim({found})" if kind == "char" else f"substring({found}, 1, {length})"
        return f"CASE WHEN char_length(rtrim({found})) > {length} THEN {failure(found)} ELSE {stored} END"

    text = text_length(hive_type)
    stored = changed(hive_type, value, limited) or value
    return f"rpad({stored}, {text[1]}, ' ')" if text is not None and text[0] == "char" else stored
