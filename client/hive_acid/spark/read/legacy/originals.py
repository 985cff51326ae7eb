"""Files without ACID columns: those from before the table was transactional, and those that LOAD DATA moved in.

Their rows have ids nevertheless, which every reader makes in the same way (acid-format.md §5.5): write id and
statement of the directory (both 0 for files from before), the bucket in the file's name, and the row's number
through all files of that bucket in the directory, in the order of their paths. The files do not change, so neither do
the ids.

For names that Hive does not know it has no ids (bucket -1). A file named by Spark gets the number of Spark's task as
its bucket, so that deletes and the first compaction are distributed as the table is; any other gets bucket 0. Within a
bucket they are counted behind the files with Hive's names, whose rows thereby have the ids that Hive gives them.

Spark splits files and packs the pieces by size, so a row's number is found by a window over the place of its piece in
the file and its place in the task that reads the piece: right wherever the pieces are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog import table as catalog
from hive_acid.filesystem import files
from hive_acid.format import rows
from hive_acid.format.names import MAX_BUCKET, parse_directory, parse_original_file
from hive_acid.format.rows import ID_COLUMNS
from hive_acid.format.state import DataFile, stamp_of
from hive_acid.spark.jvm.sources import as_of, loaded, reader_of
from hive_acid.spark.read.scan import PATH_COLUMN, ROW_COLUMN, literal_path, undo_percent
from hive_acid.spark.read.unpushed import METADATA
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import row_type, spark_type

Names = tuple[str | None, ...]
"""Under which name a file has each of the table's columns, None for those that it has not."""

_TASK = re.compile(r"part-([0-9]+)-.+")
_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://[^/]*)?")
_FILE, _START, _NTH = "__acid_file", "__acid_start", "__acid_nth"
_KNOWN = {
    "__acid_at": "string",
    "__acid_counted": "int",
    "__acid_position": "int",
    "__acid_write_id": "bigint",
    "__acid_bucket": "int",
}
_AT, _COUNTED, _POSITION, _WRITE_ID, _BUCKET = _KNOWN
_LEVELS = 2
"""A file with ACID columns is two levels below its partition: the directory of its write, and itself."""


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """A file without ACID columns, by its full path, `levels` below its partition's directory.

    Its rows have `write_id` and `bucket_property`; they are counted through all files with the same `counted` in the
    order of `position`. `names` are those of the table's columns in it.
    """

    path: str
    levels: int
    counted: tuple[str, int]
    position: tuple[bool, str]
    write_id: int
    bucket_property: int
    names: Names
    stamp: int


def original_files(location: str, found: Iterable[DataFile], names: Mapping[str, Names]) -> list[OriginalFile]:
    """Files of one partition directory at `location`; `names` by their full paths."""
    return [_original_file(location, file, names[files.join(location, file.path)]) for file in found]


def _original_file(location: str, file: DataFile, names: Names) -> OriginalFile:
    path = file.path
    name = path.rpartition("/")[2]
    directory = parse_directory(path.partition("/")[0])
    bucket = parse_original_file(name)
    task = _TASK.fullmatch(name)
    number = bucket if bucket is not None else int(task[1]) if task else 0
    property_ = rows.encode_bucket(number % (MAX_BUCKET + 1), (directory.statement_id or 0) if directory else 0)
    return OriginalFile(
        path=files.join(location, path),
        levels=path.count("/") + 1,
        counted=(files.join(location, directory.name) if directory else location, property_),
        position=(bucket is None, path),
        write_id=directory.max_write_id if directory else 0,
        bucket_property=property_,
        names=names,
        stamp=stamp_of([file]),
    )


def original_events(
    spark: SparkSession, columns: Sequence[catalog.Column], found: Sequence[OriginalFile], *, with_ids: bool = True
) -> DataFrame:
    """The rows of files as `scan` gives those of ACID files: the five ids, `row`, and the file's path.

    The path is given as if the file lay in the directory of a write. Without `with_ids` those of rows are null, and the
    files are read as any ORC file: in batches, filters pushed down.
    """
    alike: dict[tuple[Names, int], list[OriginalFile]] = {}
    for file in found:
        alike.setdefault((file.names, file.levels), []).append(file)
    parts = [_plain(spark, columns, names, levels, some, with_ids=with_ids) for (names, levels), some in alike.items()]
    read = reduce(DataFrame.unionByName, parts)
    if with_ids:
        return _numbered(spark, read, found)
    kinds = ("bigint", "int", "bigint", "bigint")
    no_ids = [F.lit(None).cast(kind).alias(name) for name, kind in zip(ID_COLUMNS[1:], kinds, strict=True)]
    return read.select(F.lit(rows.INSERT).alias("operation"), *no_ids, ROW_COLUMN, PATH_COLUMN)


def _plain(
    spark: SparkSession,
    columns: Sequence[catalog.Column],
    names: Names,
    levels: int,
    found: Sequence[OriginalFile],
    *,
    with_ids: bool,
) -> DataFrame:
    present = [catalog.Column(name, column.type) for name, column in zip(names, columns, strict=True) if name]
    reader = as_of(reader_of(spark, "orc"), hash(tuple(file.stamp for file in found)))
    # By the very names of the file: the session may mind case (`spark.sql.caseSensitive`).
    as_named = t.StructType(
        [t.StructField(of.name, field.dataType) for of, field in zip(present, row_type(present).fields, strict=True)]
    )
    frame = loaded(reader.schema(as_named), [literal_path(file.path) for file in found])
    values = [
        (F.col(quoted(name)) if name else F.lit(None).cast(spark_type(column.type))).alias(column.name.lower())
        for name, column in zip(names, columns, strict=True)
    ]
    place = [
        of_file(frame, present, "file_path").alias(_FILE),
        of_file(frame, present, "file_block_start").alias(_START),
        F.monotonically_increasing_id().alias(_NTH),
    ]
    path = path_of(frame, present, levels)
    return frame.select(F.struct(*values).alias(ROW_COLUMN), path, *(place if with_ids else ()))


def path_of(source: DataFrame, columns: Iterable[catalog.Column], levels: int) -> Column:
    """`PATH_COLUMN` of files that lie `levels` below their partition, as if they lay in the directory of a write.

    `source` is the frame of the files, which have these `columns`.
    """
    file = of_file(source, columns, "file_path")
    path = file if levels == _LEVELS else F.regexp_replace(file, f"(?:/[^/]*){{{levels}}}$", "/_" * _LEVELS)
    return path.alias(PATH_COLUMN)


def of_file(source: DataFrame, columns: Iterable[catalog.Column], what: str) -> Column:
    """What Spark knows of the file of a row, which is in a column of its own, also beside another one of that name."""
    if any(column.name.lower() == METADATA for column in columns):
        return source.metadataColumn(METADATA).getField(what)
    return F.col(f"{METADATA}.{what}")


def _numbered(spark: SparkSession, read: DataFrame, found: Sequence[OriginalFile]) -> DataFrame:
    """`read` with the ids of its rows."""
    counted = {group: number for number, group in enumerate(sorted({file.counted for file in found}))}
    ordered = sorted(found, key=lambda file: file.position)
    places = [
        dict(
            zip(_KNOWN, (_bare(file.path), counted[file.counted], at, file.write_id, file.bucket_property), strict=True)
        )
        for at, file in enumerate(ordered)
    ]
    fields = ",".join(f"{name}:{kind}" for name, kind in _KNOWN.items())
    known = spark.range(1).select(F.inline(F.from_json(F.lit(json.dumps(places)), f"array<struct<{fields}>>")))
    bare = F.regexp_replace(F.expr(undo_percent(_FILE)), f"^{_PLACE.pattern}", "")
    unknown = F.raise_error(F.concat(F.lit("rows of a file that was not asked for: "), _FILE)).cast("int")
    placed = read.join(F.broadcast(known), bare == F.col(_AT), "left")
    before = (
        Window.partitionBy(_COUNTED)
        .orderBy(_POSITION, _START, _NTH)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    number: Column = F.count(F.lit(1)).over(before) - 1
    return placed.withColumn(_COUNTED, F.coalesce(_COUNTED, unknown)).select(
        F.lit(rows.INSERT).alias("operation"),
        F.col(_WRITE_ID).alias("originalTransaction"),
        F.col(_BUCKET).alias("bucket"),
        number.alias("rowId"),
        F.col(_WRITE_ID).alias("currentTransaction"),
        ROW_COLUMN,
        PATH_COLUMN,
    )


def _bare(path: str) -> str:
    """A path without scheme and authority, which Spark and the metastore may write in several ways."""
    return re.sub(r"/+", "/", _PLACE.sub("", path, count=1))
