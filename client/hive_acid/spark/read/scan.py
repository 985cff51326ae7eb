"""The one scan of ACID files: every reader, change and compaction sees them through `scan`.

ORC recognises a file by the six ACID columns and, as soon as Spark asks for fewer, wraps the request a second time and
fails. So every scan keeps all six, by a filter that names them and is never false (data-path.md §1.1). For the user's
row it names a ghost column that no file has: it costs no bytes and leaves Spark free to prune all others. Spark cannot
push this filter, and need not open the file once more to find that out.

Ids that nobody needs are asked for under names that ORC takes for theirs and Spark does not: see `_unread`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from types import MappingProxyType
from urllib.parse import quote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.filesystem import files
from hive_acid.format.names import Directory
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.format.rows import ID_COLUMNS
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.conditions.orc.row_filter import ROW_FILTER_OPTIONS, row_filter
from hive_acid.spark.conditions.orc.sarg import search_options
from hive_acid.spark.conditions.predicates import Predicate, restricted
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.jvm.sources import as_of, loaded, reader_of
from hive_acid.spark.read.unpushed import has_guards
from hive_acid.spark.values.quoting import quoted

ROW_COLUMN = "row"

PATH_COLUMN = "__acid_path"
PLACE_COLUMN = "__acid_place"
"""Which partition a row is in, as `place_text` has it."""

_GHOST = "__acid_ghost"
_ID_TYPES = (t.IntegerType(), t.LongType(), t.IntegerType(), t.LongType(), t.LongType())
_BUCKET, _WRITER = ID_COLUMNS[2], ID_COLUMNS[-1]
_DOTLESS = str.maketrans("iI", "ıı")
_MOST_LISTED_AT_ONCE = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTED_BY_ITSELF, _MOST_LOCAL = 32, 4_096
_LISTED_PER_TASK, _LEAST_LISTING_TASKS = 64, 8
_PLAIN = re.compile(r"[A-Za-z0-9_.=/-]*")
_QUOTABLE = re.compile(r"[ -&(-\[\]-~]*")
_LOCAL = re.compile(r"\A(file:)?/+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?")
_NOT_ESCAPED = "/=!~*'():@&+$,;"
"""What stands for itself in the URIs of Hadoop's paths beside letters and digits."""

_GLOB = re.compile(r"([\\*?\[\]{}^,])")


@dataclass(frozen=True, slots=True)
class ScanDirectory:
    """A data directory to scan: its full path, what its name says, and whether all its rows are visible.

    `files` are the full paths of the files to read, None if they are not known. They are all in the directory if that
    is `whole`. Other files of the same names have another `stamp`.
    """

    path: str
    directory: Directory
    all_visible: bool
    files: tuple[str, ...] | None = None
    whole: bool = True
    stamp: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """What Spark has to read: some files, or the directory."""
        return (self.path,) if self.files is None or self.whole else self.files


def scan(
    spark: SparkSession,
    row: t.StructType,
    directories: Sequence[ScanDirectory],
    write_ids: ValidWriteIdList,
    *,
    with_path: bool = False,
    wanted: Predicate | None = None,
    stored: Mapping[str, bool] = MappingProxyType({}),
    ids: Sequence[str] = ID_COLUMNS,
) -> DataFrame:
    """The visible events in `directories`, none of which may hold a file that is not an ACID one.

    Columns are the five ids and `row` with the fields of `row`; if asked for, the file's path (`PATH_COLUMN`,
    URI-encoded), from which `partition_texts` derives partition columns. Without directories the frame is empty. Row
    groups in which no row is `wanted`, which speaks of the fields of `row`, are left out; take the fields by
    `row_fields` then. Other rows that are not `wanted` are left out, too, where ORC can be asked row by row: of fields
    that all files have `stored` in their own type, which says whether one may be null. Of the ids those that are not
    among `ids` may be null.
    """
    whole = [directory for directory in directories if directory.all_visible]
    partial = [directory for directory in directories if not directory.all_visible]
    parts = []
    if whole or not partial:
        parts.append(_events(spark, row, whole, with_path, wanted, stored, ids))
    if partial:
        found = _events(spark, row, partial, with_path, wanted, stored, (*ids, _WRITER))
        parts.append(found.where(_is_current(partial, write_ids)))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def _events(
    spark: SparkSession,
    row: t.StructType,
    directories: Sequence[ScanDirectory],
    with_path: bool,
    wanted: Predicate | None,
    stored: Mapping[str, bool],
    ids: Sequence[str],
) -> DataFrame:
    said = restricted(wanted, row.names)
    timed = {field.name for field in row.fields if isinstance(field.dataType, t.TimestampType)}
    timeless = restricted(said, frozenset(row.names) - timed)
    fields = {field.name: field.dataType for field in row.fields if field.name in stored}
    row = t.StructType([*row.fields, t.StructField(_GHOST, t.BooleanType())])
    asked = [name if name in ids else _unread(name) for name in ID_COLUMNS]
    first = None
    search = search_options(timeless, row.names) if timeless is not None else {}
    if timeless is not None and search:
        nullable = frozenset(name for name, may_be_null in stored.items() if may_be_null)
        field_of = partial(_row_field, operation=quoted(asked[0]))
        first = row_filter(timeless, fields, nullable, field_of, partial(hoisted, column=_BUCKET))
    if said is not None and first is None and said != timeless:
        search = search_options(said, row.names)  # of times ORC is asked for row groups, not row by row
    kinds = [*_ID_TYPES, row]
    names = [*ID_COLUMNS, ROW_COLUMN, *([PATH_COLUMN] if with_path else [])]
    if not directories:
        nothing = [F.lit(None).cast(kind) for kind in (*kinds, t.StringType())]
        return spark.range(0).select(*(of.alias(name) for of, name in zip(nothing, names, strict=False)))
    paths = [literal_path(path) for path in _paths(spark, directories)]
    schema = t.StructType([t.StructField(*field) for field in zip((*asked, ROW_COLUMN), kinds, strict=True)])
    with configured(spark, _listed_in_few_tasks(paths)):
        reader = as_of(reader_of(spark, "orc"), hash(tuple(directory.stamp for directory in directories)))
        read = loaded(reader.options(**search, **(ROW_FILTER_OPTIONS if first else {})).schema(schema), paths)
    all_columns = _never_false(map(quoted, asked))
    events = read.where(f"({all_columns}) AND {first}" if first else all_columns)
    told = [_told(quoted(name)) if name in ids else quoted(name) for name in asked]
    columns = [*told, ROW_COLUMN, "_metadata.file_path"]
    return projected(events, *(f"{of} AS {name}" for of, name in zip(columns, names, strict=False)))


def _paths(spark: SparkSession, directories: Sequence[ScanDirectory]) -> list[str]:
    """What Spark reads: directories, or files of them.

    Over Connect it lists directories whenever the frame is used, and would not miss files of one that is being removed
    just then. So if there are few files, these are named.
    """
    found = [path for directory in directories for path in directory.files or directory.paths]
    if names_files(spark, len(found)):
        return found
    return [path for directory in directories for path in directory.paths]


def names_files(spark: SparkSession, number: int) -> bool:
    """Whether Spark is to be given so many files rather than their directories."""
    return number <= _LISTED_BY_ITSELF and "_jsparkSession" not in vars(spark)


def _unread(name: str) -> str:
    """`name` as ORC takes it for itself and Spark does not, so that nothing of the column is read, and it is null.

    ORC compares the names of a request's columns with those of an event without regard to case, by which a dotless i
    is an I. Spark compares names in lower case, by which it is none, and takes the column for one that is in no file:
    what ORC is told to include is without it. A Spark that took them for the same would read the column; an ORC that
    told them apart would refuse the request. There is no such letter for `bucket`.
    """
    return name.translate(_DOTLESS)


def _never_false(ids: Iterable[str]) -> str:
    """The filter that keeps all six columns of an event, of which the first five are called `ids`, as SQL."""
    operation, *others = ids
    return f"{operation} IS NULL OR {operation} <> -1 OR hash({', '.join(others)}, {ROW_COLUMN}.{_GHOST}) = 0"


def _listed_in_few_tasks(paths: Sequence[str]) -> dict[str, str]:
    """The settings by which Spark lists local `paths` by itself, and others in tasks of many each.

    It would have a task for each, which costs ten times what it lists.
    """
    if len(paths) <= _LISTED_BY_ITSELF:
        return {}
    if len(paths) <= _MOST_LOCAL and all(map(files.is_local, paths)):
        return {_MOST_LISTED_AT_ONCE: str(_MOST_LOCAL)}
    return {_LISTING_TASKS: str(max(_LEAST_LISTING_TASKS, len(paths) // _LISTED_PER_TASK))}


def literal_path(path: str) -> str:
    """A path as Spark's reader takes it, which would understand some characters as patterns."""
    return _GLOB.sub(r"\\\1", path)


def _is_current(directories: Sequence[ScanDirectory], write_ids: ValidWriteIdList) -> Column:
    """The row test of partly visible directories (acid-format.md §2.3)."""
    lowest = min(found.directory.min_write_id for found in directories)
    highest = max(found.directory.max_write_id for found in directories)
    invalid = [i for i in (*write_ids.open_ids, *write_ids.aborted_ids) if lowest <= i <= highest]
    current = F.col("currentTransaction")
    return (current <= write_ids.high_water_mark) & ~current.isin(invalid)


def row_fields(names: Sequence[str]) -> list[str]:
    """The user's columns out of `row`, as SQL, in a form that lets Spark prune them, and keeps it from pushing filters.

    It would push them under a name by which ORC finds no statistics, read each file's tail twice for it, and replace
    the search argument of the scan (data-path.md §1.2). So many columns have no guards that their events are to stand
    behind a sample (`unpushed`).
    """
    return [_row_field(name) if has_guards(names) else f"{ROW_COLUMN}.{quoted(name)}" for name in names]


def _told(name: str) -> str:
    """An id of an event, which is never null, in a form in which Spark pushes no comparison of it, as SQL.

    Of a comparison of the column itself, and of arithmetic with it, Spark would conclude that it is not null, and ask
    ORC for that. ORC takes the name for one inside `row`: it has statistics of another column, or of none, and fails
    where it is to ask each row (data-path.md §1.2). And what Spark asks replaces the search argument of the scan.
    """
    return f"coalesce({name}, 0)"


def _row_field(name: str, operation: str = "operation") -> str:
    return f"if({operation} = -1, null, {ROW_COLUMN}.{quoted(name)})"


def hoisted(number: str, column: str) -> str:
    """The number in a list, at a place that takes a column to compute; Spark still moves the condition to the scan.

    So it is not in the code that Spark generates. Of a place that is null without the column Spark would conclude that
    it is not null, and push that, which replaces the search argument of the scan.
    """
    return f"array({number})[coalesce({column} & 0, 0)]"


def partition_texts(depth: int, root: str, directories: Sequence[str]) -> list[str]:
    """The text of each of `depth` partition keys out of `PATH_COLUMN`, null for the default partition, as SQL.

    `directories` are all those of partitions in the scan, ``k=v/k2=v2``, which lie below `root`.

    The file's path is a URI, and below that the metastore's own escapes are in the directory's name: two layers of
    ``%XX``, in both of which a ``+`` is a plus. They are undone for every row, so only where some name needs it.
    """
    if not depth or not directories:
        return ["cast(NULL AS string)"] * depth
    escaped = not all(map(_PLAIN.fullmatch, directories))
    with_default = any(DEFAULT_PARTITION in directory for directory in directories)
    return [
        _partition_text(text, escaped=escaped, with_default=with_default) for text in written_texts(root, directories)
    ]


def _partition_text(text: str, *, escaped: bool, with_default: bool) -> str:
    name = undo_percent(text) if escaped else text
    undone = undo_percent(name) if escaped else name
    return f"if({name} = '{DEFAULT_PARTITION}', NULL, {undone})" if with_default else undone


def written_texts(root: str, directories: Sequence[str]) -> list[str]:
    """The text of each partition key as it stands in `PATH_COLUMN`, as SQL."""
    depth = directories[0].count("/") + 1
    below = (f"substring_index({PATH_COLUMN}, '/', {position - depth - 2})" for position in range(depth))
    at_end = [_text_of(f"substring_index({at}, '/', 1)") for at in below]
    written = [uri_text(directory) for directory in directories]
    return [_by_bytes(root, directories, *texts) for texts in zip(_texts_from(root, written), at_end, strict=True)]


def place_texts(directories: Sequence[str]) -> list[str]:
    """What `PLACE_COLUMN` is in each of some `directories` with known URIs: what tells each from all others."""
    common, length = _telling(directories)
    if length is None:
        return [uri_text(directory)[common:] for directory in directories]
    return [f"{uri_text(directory)}/"[common : common + length] for directory in directories]


def _telling(directories: Sequence[str]) -> tuple[int, int | None]:
    """How many bytes all of `directories` begin with alike, and how many behind them tell each from all others.

    The latter only if each directory, with the slash behind it, has so many; else None.
    """
    written = [f"{uri_text(directory)}/" for directory in directories]
    shortest = min(map(len, written))
    same = takewhile(lambda pair: pair[0] == pair[1], zip(min(written), max(written), strict=False))
    common = min(sum(1 for _ in same), shortest - 2)
    lengths = range(1, shortest - common + 1)
    told = (length for length in lengths if len({text[common : common + length] for text in written}) == len(written))
    return common, next(told, None)


def place_text(depth: int, root: str, directories: Sequence[str]) -> str:
    """Which of `directories` of `depth` partition keys `PATH_COLUMN` is in, as SQL; for others as `partition_texts`."""
    if not directories:
        return "cast(NULL AS string)"
    at_end = f"substring_index(substring_index({PATH_COLUMN}, '/', {-depth - 2}), '/', {depth})"
    if not all(map(has_known_uri, directories)):
        return at_end  # what they begin with alike has another length, or a part of what tells them is among it
    common, length = _telling(directories)
    begin = _first(root) + common
    if length is not None:
        at_end = f"substring(concat({at_end}, '/'), {common + 1}, {length})"
        return _by_bytes(root, directories, _bytes(begin, length), at_end)
    sizes = {len(uri_text(directory)) - common for directory in directories}
    slashes = depth - uri_text(directories[0])[:common].count("/")
    return _by_bytes(root, directories, _up_to_slash(begin, sizes, slashes), f"substring({at_end}, {common + 1})")


def _by_bytes(root: str, directories: Sequence[str], text: str, otherwise: str) -> str:
    """`text`, which is at a known place of paths below `root`, as SQL; if the place is not known `otherwise`.

    Spark looks for a character in a string by comparing it with each byte, which takes it 700 ns for a row's path; to
    take bytes from where they are known to begin takes 50. What is known of the path is checked for each row, since
    Spark may write the URI of `root` in another way.
    """
    prefix = f"{_uri(root)}/"
    if not _QUOTABLE.fullmatch(prefix) or not all(map(has_known_uri, directories)):
        return otherwise
    return f"if(startswith({PATH_COLUMN}, '{prefix}'), {text}, {otherwise})"


def _first(root: str) -> int:
    """At which byte of a path, from 1, the directories of partition keys begin."""
    return len(_uri(root)) + 2


def _up_to_slash(begin: int, sizes: set[int], slashes: int = 1) -> str:
    """The text that begins at a byte, has one of `sizes`, and ends before the last of some slashes."""
    if len(sizes) == 1:
        return _bytes(begin, max(sizes))
    # With the slash behind the longest text, each one is followed by a slash.
    return f"substring_index({_bytes(begin, max(sizes) + 1)}, '/', {slashes})"


def _texts_from(root: str, directories: Sequence[str]) -> list[str]:
    """The texts of partition keys in a path below `root`, as SQL."""
    parts = [[part.partition("=") for part in directory.split("/")] for directory in directories]
    longest = max(map(len, directories)) + 1
    begin: int | None = _first(root)
    texts = []
    for position in range(len(parts[0])):
        keys = {len(part[position][0]) for part in parts}
        sizes = {len(part[position][2]) for part in parts}
        if begin is None or len(keys) > 1:
            begin = None
            up_to = f"substring_index({_bytes(_first(root), longest)}, '/', {position + 1})"
            texts.append(_text_of(f"substring_index({up_to}, '/', -1)"))
        else:
            begin += max(keys) + 1
            texts.append(_up_to_slash(begin, sizes))
            begin = begin + max(sizes) + 1 if len(sizes) == 1 else None
    return texts


def _bytes(begin: int, length: int) -> str:
    return f"cast(substring(cast({PATH_COLUMN} AS binary), {begin}, {length}) AS string)"


def _text_of(directory: str) -> str:
    return f"substring_index({directory}, '=', -1)"


def _uri(path: str) -> str:
    """A full path as Spark has it in most cases."""
    path = _LOCAL.sub("file:/", path.rstrip("/"))
    scheme = _SCHEME.match(path)
    begin = scheme.end() if scheme else 0
    return path[:begin] + uri_text(path[begin:])


def has_known_uri(path: str) -> bool:
    """Whether `uri_text` is right for a part of a path."""
    return path.isascii() and path.isprintable()


def uri_text(path: str) -> str:
    """A part of a path as Hadoop writes it in a URI."""
    return quote(path, safe=_NOT_ESCAPED)


def undo_percent(text: str) -> str:
    """A text in which some bytes are written as ``%XX``, without that, as SQL."""
    return f"url_decode(replace({text}, '+', '%2B'))"
