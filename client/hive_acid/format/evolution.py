"""Columns by position: under which names the columns of a table stand in its older files (acid-format.md §3.5).

A column is what stands at its place: Hive and Trino rename a column in the metastore and leave the files as they are.
Columns are added at the end and never moved or dropped, so a file has the first columns of its table, under the names
of its day.
"""

from __future__ import annotations

from collections.abc import Sequence

RENAMED = "hive_acid.columns.renamed"
"""The table parameter by which our metastore says that a column was renamed once; it is never taken away."""


def is_marked_renamed(parameters: dict[str, str]) -> bool:
    """Whether the metastore has seen a column of the table renamed."""
    return parameters.get(RENAMED, "").lower() == "true"


def stands_under(columns: Sequence[str], in_file: Sequence[str]) -> tuple[str | None, ...]:
    """For each of the table's `columns` its name in a file that has `in_file`, None where the file ends before it."""
    return tuple(in_file[position] if position < len(in_file) else None for position in range(len(columns)))


def agree(columns: Sequence[str], in_file: Sequence[str]) -> bool:
    """Whether a file may be read by the table's names: each of its columns has the name of its place, in any case."""
    return len(in_file) <= len(columns) and all(
        one.lower() == other.lower() for one, other in zip(columns, in_file, strict=False)
    )


def is_known_by_name(columns: Sequence[str], in_file: Sequence[str]) -> bool:
    """Whether all columns of a file without ACID columns are the table's by their names, whatever their order.

    Such files were written by name, as Spark does: of a table without renamed columns they are read so.
    """
    names = [name.lower() for name in in_file]
    return len(set(names)) == len(names) and set(names) <= {column.lower() for column in columns}
