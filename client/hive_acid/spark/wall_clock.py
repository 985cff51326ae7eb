"""Times as texts in files: the wall clock of the session's zone, as Hive writes it."""

from __future__ import annotations

from hive_acid.spark.assign import text_value


def wall_clock(value: str, where: str) -> str:
    """The SQL of the text of a timestamp, SQL as well; `where` is the column that errors name.

    One that would be read as another time, in the hour that clocks go back to, fails the statement.
    """
    text = f"CAST({value} AS string)"
    words = text_value(f"its text would be another time, as clocks go back then, for {where}: ")
    same = f"try_cast({text} AS timestamp_ltz) <=> {value}"
    return f"CASE WHEN {same} THEN {text} ELSE raise_error(concat({words}, {text})) END"
