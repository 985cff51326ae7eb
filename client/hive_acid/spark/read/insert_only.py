"""Insert-only tables: the snapshot chooses directories, Spark's own readers read their files (acid-format.md §2.4).

So they read those of plain tables, of which no snapshot chooses.
Rows have no ids and are seen or not by whole directories. Columns are found as Hive finds them in plain tables of the
format: by name in ORC, Parquet, Avro and JSON, by place in text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.snapshot import RangeValidity, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DataFile, stamp_of
from hive_acid.spark.conditions.orc.sarg import search_options
from hive_acid.spark.conditions.predicates import Predicate
from hive_acid.spark.jvm.sources import as_of, loaded, reader_of
from hive_acid.spark.plans.read_plan import DirectoriesPlan
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.legacy.capitals import minds_case, refuse_capitals
from hive_acid.spark.read.legacy.originals import path_of
from hive_acid.spark.read.listing import PartitionState, TableState
from hive_acid.spark.read.quoted_text import CSV_SIGNS, Signs, fields_of
from hive_acid.spark.read.scan import PATH_COLUMN, literal_path, names_files, partition_texts
from hive_acid.spark.read.unpushed import unpushed
from hive_acid.spark.values import json_values
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import declared, is_char, shown
from hive_acid.spark.values.types import row_type, spark_type
from hive_acid.spark.values.wall_clock import DATED

Format = TypeVar("Format")


@dataclass(slots=True)
class _Found:
    """Files to read: their paths as Spark takes them, or those of their directories, and all of them.

    `search` are the options by which ORC leaves out row groups. The files of a snapshot last, and no others.
    """

    search: Mapping[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    files: list[DataFile] = field(default_factory=list)
    lasts: bool = True


Reader = Callable[[SparkSession, Table, _Found, int], DataFrame]
"""The columns of a table out of files that lie so many levels below their partition, and `PATH_COLUMN`."""

_HEADER_LINES = ("skip.header.line.count", "skip.footer.line.count")
_ENCODING, _REST = "serialization.encoding", "serialization.last.column.takes.rest"
_BYTES = 128
"""Java's bytes go up to here: a greater number is none to Hive, but begins with a character."""

_LINES = "TextInputFormat"
"""Others have a SerDe of lines, too, as SequenceFileInputFormat, and their files are none of text."""

_LINE = "value"
_ENDS_OF_LINES = {"n": "\n", "r": "\r"}
"""By what they are written as behind an escape."""

_WORDS: Mapping[type[t.DataType], str] = {
    t.BooleanType: "(?i)^(?:true|false)$",
    t.IntegralType: "^[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+)$",
    t.DecimalType: "^[+-]?[0-9.][0-9.eE+-]*$",
    t.FractionalType: "[0-9]|^[+-]?(?:NaN|Infinity)$",
}
"""What Hive takes for a value of a type. The fraction of a whole number is cut off."""


_KNOWN = "which Spark does not read: it reads ORC, Parquet, Avro (with its package spark-avro), JSON, delimited text"


def read_table(spark: SparkSession, state: TableState, *, wanted: Predicate | None = None) -> DataFrame:
    """The rows that the snapshot sees: the table's columns, then its partition columns.

    Of ORC files the row groups are left out in which no row is `wanted`. Raises UnsupportedTableError for a format that
    is not read here, FormatError for a directory of which only some writes are visible.
    """
    table = state.table
    read = by_format(table, _READERS, _KNOWN)
    asked = search_options(wanted, [one.name for one in table.columns]) if wanted is not None and state.skipping else {}
    tell(state.plan([DirectoriesPlan(len(state.partitions))], skips_groups=bool(asked) and read is _orc))
    told_by_path = [partition for partition in state.partitions if partition.is_told_by_path]
    directories = [partition.directory for partition in told_by_path]
    texts = [F.expr(text) for text in partition_texts(len(table.partition_keys), table.location, directories)]
    parts = [
        _shown(read(spark, table, found, levels), table, texts)
        for levels, found in _paths(spark, told_by_path, state.write_ids, asked)
    ]
    for partition in state.partitions:
        if not partition.is_told_by_path:
            values = [F.lit(value).cast("string") for _, value in parse_partition_name(partition.name)]
            parts += [
                _shown(read(spark, table, found, levels), table, values)
                for levels, found in _paths(spark, [partition], state.write_ids, asked)
            ]
    if parts:
        return reduce(DataFrame.unionByName, parts)
    return declared(spark.createDataFrame([], row_type(table.all_columns)), table.all_columns)


def read_plain(spark: SparkSession, table: Table, directories: Sequence[str]) -> DataFrame:
    """The rows of the files in the directories of a plain table's partitions, or in its own, an empty path.

    Raises UnsupportedTableError as `read_table`, and for directories in them, which Hive reads or not by its settings.
    """
    read = by_format(table, _READERS, _KNOWN)
    places = [files.join(table.location, directory) if directory else table.location for directory in directories]
    found = _Found(lasts=False)
    for place, entries in zip(places, files.list_trees(places, 1), strict=True):
        refuse_within(table, place, entries)
        seen = [entry for entry in entries if not entry.path.startswith(("_", "."))]
        found.files += [DataFile(entry.path, entry.size, None, entry.modified_ms) for entry in seen]
        found.paths += [literal_path(files.join(place, entry.path)) for entry in seen]
    if not found.paths:
        return declared(spark.createDataFrame([], row_type(table.all_columns)), table.all_columns)
    texts = partition_texts(len(table.partition_keys), table.location, directories)
    return _shown(read(spark, table, found, 1), table, list(map(F.expr, texts)))


def refuse_within(table: Table, place: str, entries: Iterable[files.FileEntry]) -> None:
    """Raise UnsupportedTableError for a directory among the files of a plain table that lie at `place`.

    Hive reads what is in it or not by its settings, and Spark takes one that is called ``k=v`` for all that there is,
    also ``_k=v``, which is hidden to others.
    """
    for entry in entries:
        is_hidden = entry.path.startswith(".") or (entry.path.startswith("_") and "=" not in entry.path)
        if entry.is_directory and not is_hidden:
            raise UnsupportedTableError(
                f"{table.full_name} has the directory {entry.path} in {place}, where files should be"
            )


def _paths(
    spark: SparkSession,
    partitions: Sequence[PartitionState],
    write_ids: ValidWriteIdList,
    search: Mapping[str, str] | None = None,
) -> list[tuple[int, _Found]]:
    """The files that are visible, by how many levels they lie below their partition."""
    found: defaultdict[int, _Found] = defaultdict(lambda: _Found(search or {}))
    count = sum(len(of.files) for partition in partitions for of in partition.state.data)
    named = names_files(spark, count) or minds_case(spark)
    for partition in partitions:
        for directory in partition.state.data:
            at = files.join(partition.location, directory.name)
            _check_whole(at, directory, write_ids)
            flat = all(file.path.count("/") == 1 for file in directory.files)
            if directory.files and flat and not named:
                found[2].paths.append(literal_path(at))
                found[2].files += directory.files
                continue
            for file in directory.files:
                of_level = found[file.path.count("/") + 1]
                of_level.paths.append(literal_path(files.join(partition.location, file.path)))
                of_level.files.append(file)
    return sorted(found.items())


def data_files(spark: SparkSession, partition: PartitionState, write_ids: ValidWriteIdList) -> list[str]:
    """The full paths of the files with rows of a partition, as Spark's readers take them."""
    return [path for _, found in _paths(spark, [partition], write_ids) for path in found.paths]


def _check_whole(at: str, directory: DataDirectory, write_ids: ValidWriteIdList) -> None:
    """Raise FormatError if only some of a directory's rows are visible. A compaction has left out aborted writes."""
    of = directory.directory
    aborted = len(write_ids.aborted_in(of.min_write_id, of.max_write_id))
    is_whole = of.visibility_txn_id and aborted and not write_ids.open_in(of.min_write_id, of.max_write_id)
    if directory.validity is not RangeValidity.ALL and not is_whole:
        raise FormatError(f"only some of the writes in {at} are visible: rows of an insert-only table tell none")


def _shown(frame: DataFrame, table: Table, texts: list[Column]) -> DataFrame:
    keys = zip(texts, table.partition_keys, strict=True)
    names = [(column.type, quoted(column.name)) for column in table.columns]
    rows = frame.select(
        *(F.expr(f"{shown(kind, name)} AS {name}") for kind, name in names),
        *(text.try_cast(spark_type(key.type)).alias(key.name) for text, key in keys),
    )
    padded = {key.name: F.expr(shown(key.type, quoted(key.name))) for key in table.partition_keys if is_char(key)}
    # Connect takes no empty list of columns.
    rows = rows.withColumns(padded) if padded else rows
    return declared(rows, table.all_columns)


def by_format(table: Table, known: Mapping[str, Format], otherwise: str) -> Format:
    """What is `known` of a table's input format, or of its lines' SerDe, by the last parts of their names.

    Raises UnsupportedTableError, in which `otherwise` says what the matter is with all others.
    """
    input_format, serde = table.input_format.rpartition(".")[2], table.serde.rpartition(".")[2]
    found = known.get(serde if input_format == _LINES else input_format)
    if found is None:
        raise UnsupportedTableError(
            f"{table.full_name} has input format {table.input_format or '(none)'} with {table.serde or 'no SerDe'}, "
            + otherwise
        )
    return found


def _by_spark(kind: str) -> Reader:
    def read(spark: SparkSession, table: Table, found: _Found, levels: int) -> DataFrame:
        refuse_capitals(spark, table, kind, found.paths)
        source = _loaded(table, reader_of(spark, kind).schema(row_type(table.columns)), found)
        return source.select("*", path_of(source, table.columns, levels))

    return read


def _orc(spark: SparkSession, table: Table, found: _Found, levels: int) -> DataFrame:
    refuse_capitals(spark, table, "orc", found.paths)
    reader = reader_of(spark, "orc").options(**found.search)
    source = _loaded(table, reader.schema(row_type(table.columns)), found)
    return unpushed(source, table.columns, path_of(source, table.columns, levels))


def _loaded(table: Table, source: DataFrameReader, found: _Found) -> DataFrame:
    try:
        return loaded(as_of(source, stamp_of(found.files), lasts=found.lasts), found.paths)
    except AnalysisException as error:
        raise UnsupportedTableError(f"{table.full_name} cannot be read: {str(error).splitlines()[0]}") from error


def _json(spark: SparkSession, table: Table, found: _Found, levels: int) -> DataFrame:
    fields = [
        t.StructField(field.name, json_values.type_of_lines(field.dataType)) for field in row_type(table.columns).fields
    ]
    read = _loaded(table, reader_of(spark, "json").schema(t.StructType(fields)), found)
    values = (f"{json_values.read(column)} AS {quoted(column.name)}" for column in table.columns)
    return read.select(*map(F.expr, values), path_of(read, table.columns, levels))


# --- text ----------------------------------------------------------------------------------------


class Delimiters(NamedTuple):
    """Between the fields of a line, before a delimiter that is part of a text (if anything), and in place of null."""

    field: str
    escape: str | None
    null: str


def delimiters(table: Table) -> Delimiters:
    """Those of a table with Hive's LazySimpleSerDe.

    Raises UnsupportedTableError for such as leave open what a line means, and for what Spark cannot follow.
    """
    of = _told_to_serde(table)
    found = Delimiters(
        _separator(of.get("field.delim") or of.get("serialization.format"), "\x01"),
        _separator(of["escape.delim"], "\\") if "escape.delim" in of else None,
        of.get("serialization.null.format", r"\N"),
    )
    if of.get(_REST, "").lower() == "true":
        raise UnsupportedTableError(f"{table.full_name} has the property {_REST}, which Spark cannot follow")
    signs = {found.field, found.escape, *"\r\n"}
    is_end = found.escape is not None and {found.field, found.escape} & _ENDS_OF_LINES.keys()
    is_told = len(signs) == 4 and not signs & {*found.null} - {found.escape} and not is_end
    if not is_told or not re.fullmatch(_field_of(found), found.null):
        raise UnsupportedTableError(
            f"{table.full_name}: its lines cannot be told, with {found.field!r} between fields, {found.null!r} for "
            f"null{'' if found.escape is None else f', and {found.escape!r} before a delimiter in a text'}"
        )
    return found


def _told_to_serde(table: Table) -> Mapping[str, str]:
    """What a SerDe of text is told: its own parameters and the table's, which go before, as in Hive.

    Raises UnsupportedTableError for an encoding that is not Spark's.
    """
    of = {**table.serde_parameters, **table.parameters}
    encoding = of.get(_ENCODING, "UTF-8")
    if encoding.upper() not in ("UTF-8", "UTF8", "US-ASCII"):
        raise UnsupportedTableError(f"{table.full_name} has text in {encoding} ({_ENCODING}): here it is UTF-8")
    return of


def _field_of(between: Delimiters) -> str:
    """The pattern of a field.

    It gives nothing back: Java's stack would have a frame for each character of a text.
    """
    if between.escape is None:
        return f"[^{re.escape(between.field)}]*+"
    escape = re.escape(between.escape)
    plain = f"[^{escape}{re.escape(between.field)}]*+"
    return f"{plain}(?:{escape}(?s:.){plain})*+"


def _delimited(spark: SparkSession, table: Table, found: _Found, levels: int) -> DataFrame:
    """Lines of Hive's LazySimpleSerDe: fields between delimiters, at their places."""
    refuse_header(table)
    if nested := [one.name for one in table.columns if _is_nested(spark_type(one.type))]:
        raise UnsupportedTableError(f"{table.full_name}: nested columns ({', '.join(nested)}) are not read from text")
    between = delimiters(table)
    source = _loaded(table, reader_of(spark, "text"), found)
    lines = source.select(_LINE, path_of(source, (), levels))
    fields = _fields(F.col(_LINE), between)
    texts = [F.nullif(F.get(fields, F.lit(place)), F.lit(between.null)) for place in range(len(table.columns))]
    if between.escape is not None:
        texts = [_unescaped(text, between.escape) for text in texts]
    values = [
        _value(text, spark_type(column.type)).alias(column.name)
        for text, column in zip(texts, table.columns, strict=True)
    ]
    return lines.select(*values, PATH_COLUMN)


def _fields(line: Column, between: Delimiters) -> Column:
    delimiter = re.escape(between.field)
    if between.escape is None:
        return F.split(line, delimiter, -1)
    # One that has nothing behind it stands for itself.
    escape = re.escape(between.escape)
    plain = f"[^{escape}]*+"
    double = _in_replacement(between.escape) * 2
    whole = F.regexp_replace(line, f"(?s)^({plain}(?:{escape}.{plain})*+){escape}$", f"$1{double}")
    # With one more delimiter each field, the last one too, is followed by one that is not escaped.
    field = f"({_field_of(between)}){delimiter}"
    return F.regexp_extract_all(F.concat(whole, F.lit(between.field)), F.lit(field), F.lit(1))


def _unescaped(text: Column, escape: str) -> Column:
    """A field as it is meant: an escape with `n` or `r` is the end of a line, with any other sign it is that sign."""
    of = re.escape(escape)
    for sign, meant in _ENDS_OF_LINES.items():
        before = f"(?s)\\G((?:[^{of}]|{of}[^{sign}])*+)"
        found = F.regexp_replace(text, f"{before}{of}{sign}", f"$1{meant}")
        text = F.when(text.contains(escape + sign), found).otherwise(text)
    return F.regexp_replace(text, f"(?s){of}(.)", "$1")


def _in_replacement(sign: str) -> str:
    return "\\" + sign if sign in "\\$" else sign


def _value(text: Column, kind: t.DataType) -> Column:
    """The value that Hive reads from a text: Spark's casts take more, as `yes`, `inf`, and a time of today."""
    if isinstance(kind, t.StringType):
        return text
    if isinstance(kind, t.BinaryType):
        return F.unbase64(text)
    words = next((words for of, words in _WORDS.items() if isinstance(kind, of)), DATED)
    if isinstance(kind, t.IntegralType):
        sign, whole = (F.regexp_extract(text, pattern, 1) for pattern in ("^([+-]?)", "^[+-]?([0-9]*)"))
        found = F.when(text.contains("."), F.concat(sign, F.lit("0"), whole)).otherwise(text)
    else:
        found = text
    return F.when(text.rlike(words), found).try_cast(kind)


def _quoted_text(spark: SparkSession, table: Table, found: _Found, levels: int) -> DataFrame:
    """Lines of Hive's OpenCSVSerde: all columns are text, quotes may stand around them."""
    refuse_header(table)
    signs = _signs(table)
    source = _loaded(table, reader_of(spark, "text"), found)
    lines = source.select(fields_of(F.col(_LINE), signs).alias(_LINE), path_of(source, (), levels))
    texts = [F.get(F.col(_LINE), F.lit(place)) for place in range(len(table.columns))]
    kinds = [spark_type(column.type) for column in table.columns]
    values = [
        (text.cast(kind) if isinstance(kind, t.BinaryType) else _value(text, kind)).alias(column.name)
        for text, kind, column in zip(texts, kinds, table.columns, strict=True)
    ]
    return lines.select(*values, PATH_COLUMN)


def _signs(table: Table) -> Signs:
    """Those of a table with Hive's OpenCSVSerde. Raises UnsupportedTableError for such as Hive does not take."""
    of = _told_to_serde(table)
    escape = of.get("escapeChar") or CSV_SIGNS.quote
    # The quote is what Hive takes for no escape that anybody has asked for.
    escape = CSV_SIGNS.escape if escape[0] == CSV_SIGNS.quote else escape[0]
    separator, quote = (of.get("separatorChar") or CSV_SIGNS.separator)[0], (of.get("quoteChar") or CSV_SIGNS.quote)[0]
    if len({separator, quote, escape}) < len(Signs._fields) or not {separator, quote, escape}.isdisjoint("\r\n"):
        raise UnsupportedTableError(
            f"{table.full_name}: its lines cannot be told, with {separator!r} between, {quote!r} around fields and "
            f"{escape!r} for escapes"
        )
    return Signs(separator, quote, escape)


def refuse_header(table: Table) -> None:
    """Raise UnsupportedTableError for text files of which some lines are no rows."""
    if lines := [name for name in _HEADER_LINES if table.parameters.get(name, "0") != "0"]:
        raise UnsupportedTableError(f"{table.full_name} has the property {lines[0]}, which Spark cannot follow")


def _separator(given: str | None, default: str) -> str:
    """A separator as Hive writes it into the SerDe's parameters: a character, or its number."""
    if not given:
        return default
    return chr(int(given)) if re.fullmatch(r"[0-9]+", given) and int(given) < _BYTES else given[0]


def _is_nested(kind: t.DataType) -> bool:
    return isinstance(kind, t.ArrayType | t.MapType | t.StructType)


_READERS: Mapping[str, Reader] = {
    "OrcInputFormat": _orc,
    "MapredParquetInputFormat": _by_spark("parquet"),
    "AvroContainerInputFormat": _by_spark("avro"),
    "JsonSerDe": _json,
    "LazySimpleSerDe": _delimited,
    "OpenCSVSerde": _quoted_text,
}
"""By the last part of the input format's name, or, of text files, of the SerDe's."""
