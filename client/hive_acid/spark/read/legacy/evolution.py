"""Under which names files have the columns of their table, where columns were renamed (acid-format.md §3.5).

Spark finds columns by name, and reads those that it does not find as null, so whoever reads an older file by the
table's present names loses a renamed column in silence. ORC's own reading by position is no way out: within `row` it
counts the columns that Spark asks for, not those of the table. So names are learnt from the tails of files: of all
files where the metastore has seen a column renamed; otherwise, since a table may have come from elsewhere, of the
oldest file, and of all if that one has other names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.evolution import agree, is_known_by_name, is_marked_renamed, stands_under
from hive_acid.format.orc.file import ACID_FIELDS
from hive_acid.format.orc.tail import Tail
from hive_acid.format.state import DataDirectory, DataFile
from hive_acid.spark.jvm.sources import reader_of
from hive_acid.spark.read.legacy.capitals import is_lower, minds_case, refused
from hive_acid.spark.read.legacy.originals import Names
from hive_acid.spark.read.scan import ROW_COLUMN, literal_path

Place = tuple[str, DataDirectory]
"""A partition's location, and one of its directories."""


def names_in_directories(spark: SparkSession, table: Table, places: Sequence[Place]) -> dict[str, Names]:
    """The names in the files with ACID columns of each directory, by its full path, where they are not the table's.

    Raises UnsupportedTableError for files that cannot be read, or that differ within one directory.
    """
    found = {
        files.join(at, of.name): [DataFilePath.of(at, file) for file in of.files if file.size] for at, of in places
    }
    found = {directory: of for directory, of in found.items() if of}
    if not found:
        return {}
    columns = [column.name for column in table.columns]
    if not is_marked_renamed(table.parameters):
        oldest = min((file for of in found.values() for file in of), key=lambda file: (file.modified_ms, file.path))
        if agree(columns, _names(spark, [oldest], within_row=True)[0]):
            return {}
    flat = [file for of in found.values() for file in of]
    known = dict(zip(flat, _names(spark, flat, within_row=True), strict=True))
    differing: dict[str, Names] = {}
    for directory, of in found.items():
        longest = max((known[file] for file in of), key=len)
        if any(known[file] != longest[: len(known[file])] for file in of):
            raise UnsupportedTableError(f"files in {directory} have different columns, and one write made them")
        if not agree(columns, longest):
            differing[directory] = stands_under(columns, longest)
    return differing


def names_in_originals(
    spark: SparkSession, table: Table, location: str, found: Iterable[DataFile]
) -> Mapping[str, Names]:
    """The names in files without ACID columns, by their full paths; who made them is not known, so all are looked at.

    Raises UnsupportedTableError for files that cannot be read, or that do have ACID columns, and for fields of structs
    that Spark would not find in a session that minds case.
    """
    wanted = [DataFilePath.of(location, file) for file in found]
    columns = [column.name for column in table.columns]
    renamed = is_marked_renamed(table.parameters)
    acid = {name.lower() for name, _ in ACID_FIELDS}
    names: dict[str, Names] = {}
    for file, in_file in zip(wanted, _names(spark, wanted, within_row=False), strict=True):
        if acid <= {name.lower() for name in in_file}:
            raise UnsupportedTableError(f"{file.path} has ACID columns, but not the name of such a file (bucket_00000)")
        if is_known_by_name(columns, in_file) and not renamed:
            by_name = {name.lower(): name for name in (*in_file, *filter(is_lower, in_file))}
            names[file.path] = tuple(by_name.get(column.lower()) for column in columns)
        else:
            names[file.path] = stands_under(columns, in_file)
    return names


def _names(spark: SparkSession, wanted: Sequence[DataFilePath], *, within_row: bool) -> list[tuple[str, ...]]:
    try:
        tails = SHARED.read(wanted)
    except FormatError:
        # A compression that needs a library which is not there, or no ORC file: Spark knows.
        return [_names_by_spark(spark, file.path, within_row=within_row) for file in wanted]
    if not within_row:
        _refuse_capitals(spark, wanted, tails)
        return [tail.names() for tail in tails]
    return [() if (row := tail.column(ROW_COLUMN)) is None else tail.names(row) for tail in tails]


def _refuse_capitals(spark: SparkSession, wanted: Sequence[DataFilePath], tails: Sequence[Tail]) -> None:
    """Raise UnsupportedTableError for fields of structs with capitals, if the session minds case.

    Columns are asked for by their names in the file; of fields Spark would make nulls, which an UPDATE would keep.
    """
    for file, tail in zip(wanted, tails, strict=True):
        within = [name for of in tail.types[1:] for name in of.names if not is_lower(name)]
        if within and minds_case(spark):
            raise refused(f"{file.path} has a field {within[0]}")


def _names_by_spark(spark: SparkSession, path: str, *, within_row: bool) -> tuple[str, ...]:
    try:
        schema = reader_of(spark, "orc").load(literal_path(path)).schema
    except Exception as error:  # of the JVM, which comes as py4j's or, by way of Connect, as PySpark's own
        raise UnsupportedTableError(f"{path} cannot be read as an ORC file: {str(error).splitlines()[0]}") from error
    if within_row:
        row = next((field.dataType for field in schema.fields if field.name.lower() == ROW_COLUMN), None)
        return tuple(row.names) if isinstance(row, t.StructType) else ()
    return tuple(schema.names)
