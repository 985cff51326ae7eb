"""ORC files that a table takes in as they are: found, checked against the table's columns, and named.

The checks read the files' footers alone. A file that passes gives the same values through the table as it gives by
itself; all others are refused, since nobody would look at them again before they are read (acid-format.md §5.5).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from hive_acid.catalog.table import ORC_INPUT, Table
from hive_acid.errors import ColumnError, FormatError, NoFilesError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import MAX_BUCKET, claims_to_be_data, is_hidden, parse_original_file
from hive_acid.format.orc.file import ACID_FIELDS
from hive_acid.format.orc.tail import Tail

_NUMBERED = re.compile(r"_col[0-9]+")
_WIDER = {
    "tinyint": ("smallint", "int", "bigint"),
    "smallint": ("int", "bigint"),
    "int": ("bigint",),
    "float": ("double",),
}
"""What a type may be read as without loss."""

_PACKINGS = frozenset({".gz", ".bz2", ".deflate", ".snappy", ".lz4", ".zst"})
"""Endings of files that Hadoop's codecs have packed."""


def find_files(path: str) -> list[DataFilePath]:
    """The files to take in: the one at `path`, or all in that directory, in the order of their names.

    Raises NoFilesError if there is none, FormatError for directories in the directory.
    """
    name = path.rstrip("/").rpartition("/")[2]
    parent = files.parent(path)
    entries = files.list_tree(path)
    if not entries:
        beside = [entry for entry in files.list_tree(parent, max_depth=1) if entry.path == name]
        if not beside:
            raise NoFilesError(f"there are no files to take in at {path}")
        return [DataFilePath(path.rstrip("/"), beside[0].size, beside[0].modified_ms)]
    found = []
    for entry in entries:
        if is_hidden(entry.path):
            continue
        if entry.is_directory or "/" in entry.path:
            claimed = claims_to_be_data(entry.path)
            advice = "it holds an ACID table: export that one, or insert its rows" if claimed else "name it by itself"
            raise FormatError(f"{path} has a directory in it, {entry.path.partition('/')[0]}: {advice}")
        found.append(DataFilePath.of(path, entry))
    if not found:
        raise NoFilesError(f"there are no files to take in at {path}")
    return found


def check_files(table: Table, found: Sequence[DataFilePath]) -> None:
    """Whether the files, which a table with ORC files is to take in, have its columns.

    Raises FormatError for one that is no ORC file or has the ACID columns, ColumnError for one with other columns,
    UnsupportedTableError if files of the table are not ORC and cannot be looked into.
    """
    if table.input_format != ORC_INPUT:
        if table.is_full_acid:
            raise UnsupportedTableError(f"{table.full_name} does not store ORC files: {table.input_format}")
        return
    for file, tail in zip(found, SHARED.read(found), strict=True):
        _check_columns(table, file.path, tail)


def _check_columns(table: Table, path: str, tail: Tail) -> None:
    names = tail.names()
    if names[: len(ACID_FIELDS)] == tuple(name for name, _ in ACID_FIELDS):
        raise FormatError(
            f"{path} is a file of an ACID table: its rows have ids of that table's writes. Export that table and "
            "import it, or insert its rows"
        )
    keys = {key.name for key in table.partition_keys} & {name.lower() for name in names}
    if keys:
        raise ColumnError(
            f"{path} has the column {min(keys)}, which is a partition key of {table.full_name}: its value is the "
            "directory's. Insert the rows with acid.insert"
        )
    if len(names) > len(table.columns):
        raise ColumnError(f"{path} has {len(names)} columns, {table.full_name} has {len(table.columns)}")
    for place, (name, column) in enumerate(zip(names, table.columns, strict=False)):
        if name.lower() != column.name and _NUMBERED.fullmatch(name) is None:
            raise ColumnError(
                f"column {place + 1} of {path} is {name}, and that of {table.full_name} is {column.name}: columns are "
                "read by their places. Insert the rows with acid.insert, where they meet by name"
            )
        child = tail.types[0].children[place]
        has, wants = tail.hive_type(child).lower(), _compact(column.type)
        if not _fits(has, wants):
            raise ColumnError(
                f"column {column.name} of {path} is {has}, and that of {table.full_name} is {column.type}: insert the "
                "rows with acid.insert, where they are cast"
            )


def _compact(hive_type: str) -> str:
    """A type without blanks but those inside a name, in lower case; synonyms as ORC has them."""
    text = re.sub(r"\s*([<>(),:])\s*", r"\1", hive_type.strip().lower())
    return {"integer": "int", "double precision": "double", "decimal": "decimal(10,0)"}.get(text, text)


def _fits(has: str, wants: str) -> bool:
    if has == wants or wants in _WIDER.get(has, ()):
        return True
    given, wanted = _parts(has), _parts(wants)
    if given[0] == wanted[0] == "decimal":
        return given[1][1] == wanted[1][1] and given[1][0] <= wanted[1][0]
    if wanted[0] == "string":
        return given[0] in ("varchar", "char")
    return given[0] == wanted[0] == "varchar" and given[1][0] <= wanted[1][0]


def _parts(hive_type: str) -> tuple[str, tuple[int, ...]]:
    """``("decimal", (10, 2))``: a primitive type and its numbers."""
    kind, _, rest = hive_type.partition("(")
    numbers = rest.rstrip(")").split(",") if rest else []
    return kind, tuple(int(number) for number in numbers if number.isdigit())


def new_names(table: Table, found: Sequence[DataFilePath]) -> list[str]:
    """The names that the files get in the table, as Hive numbers them; in a CLUSTERED one they keep their bucket.

    Packed ones of text and JSON keep the ending by which readers unpack them.

    Raises UnsupportedTableError if the names do not tell the buckets.
    """
    if not table.bucket_columns:
        endings = ["" if table.input_format == ORC_INPUT else _packing(file.path) for file in found]
        return [
            _name(place % (MAX_BUCKET + 1), place // (MAX_BUCKET + 1)) + ending for place, ending in enumerate(endings)
        ]
    names = []
    copies: dict[int, int] = {}
    for file in found:
        bucket = parse_original_file(file.path.rpartition("/")[2])
        if bucket is None or not 0 <= bucket < table.buckets:
            raise UnsupportedTableError(
                f"{table.full_name} is CLUSTERED BY ({', '.join(table.bucket_columns)}) INTO {table.buckets} BUCKETS, "
                f"and the name of {file.path} tells no bucket, as 000000_0 does: insert its rows with acid.insert"
            )
        names.append(_name(bucket, copies.get(bucket, 0)))
        copies[bucket] = copies.get(bucket, 0) + 1
    return names


def _packing(path: str) -> str:
    ending = os.path.splitext(path)[1]
    return ending if ending in _PACKINGS else ""


def _name(bucket: int, copy: int) -> str:
    return f"{bucket:06d}_0" + (f"_copy_{copy}" if copy else "")
