"""The source of a MERGE, UPDATE … FROM or DELETE … USING: computed once, kept and measured, then joined.

A source that would give other rows the second time is therefore used as one. What is learnt of it while it is computed
decides how it is joined, and which files of the target can hold a match at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.spark.change.brought_rows import brought_rows
from hive_acid.spark.conditions.booleans import names_of, no_rows, refuse_non_boolean
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.expressions import Expression, equal_columns, expression, text_of
from hive_acid.spark.conditions.predicates import MOST_VALUES, Predicate, all_of, between, one_of, predicate_of
from hive_acid.spark.conditions.sql_tokens import Names, known_names
from hive_acid.spark.jvm.frames.fetched import received, sent
from hive_acid.spark.jvm.frames.kept_rows import kept_rows
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.change_plan import SourceJoin, source_by, source_of_any_size
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.read.literal_hoisting import LITERAL_COLUMN, with_hoisted_conjuncts
from hive_acid.spark.read.undivided import beside
from hive_acid.spark.values.argument_checks import check_condition, check_frame
from hive_acid.spark.values.assign import total
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import is_char
from hive_acid.spark.values.types import check_distinct, column_type, refuse_our_names, spark_type

SOURCE_ROW = "__acid_source_row"
"""The number of a source row, by which it is told apart from equal ones."""

_VALUE_BYTES = 16
_MOST_COUNTED = 200_000
"""Of so many rows it is counted whether their keys are distinct."""

_BYTES = "__acid_bytes"
_KEY = "__acid_key_{}".format
_WORD = re.compile(r"\w+")
_PLAIN = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ALL_COLUMNS = re.compile(r"[.(,]\s*\*|^\s*\*")
"""A star that stands for columns, and does not multiply."""

_Keys = Sequence[tuple[Column, str]]
"""Columns of the table, and what the source calls its own, where ON compares them without a conversion."""


@dataclass(frozen=True, slots=True)
class Join:
    """What a statement joins its table with: a source, a condition, and what both are called in it."""

    source: DataFrame
    on: Expression
    target_alias: str = "t"
    source_alias: str = "s"

    def meant(self, condition: Expression, table: Table) -> Expression:
        """A condition on rows of both, for Spark, with the CHAR columns of `table` compared by Hive's rule."""
        return without_blanks(condition, table, self.target_alias, self.source, self.source_alias)

    def names(self, table: Table) -> Names:
        """What `literal_hoisting` knows of the names of both."""
        fields = self.source.schema.fields
        columns = [Column(field.name, field.dataType.simpleString()) for field in fields]
        return known_names({self.target_alias: table.all_columns, self.source_alias: columns})

    def hoisted(self, condition: Expression, table: Table) -> Expression:
        """A condition on rows of both, with the literals beside the table's own columns out of Spark's code."""
        if not isinstance(condition, str):
            return condition
        names, own = self.names(table), {column.name for column in table.all_columns}
        alias = self.target_alias.lower()
        return with_hoisted_conjuncts(condition, {"": own.intersection(names[""]), alias: names[alias]}, LITERAL_COLUMN)

    def check_boolean(self, spark: SparkSession, table: Table, *conditions: Expression | None) -> None:
        """Raise ColumnError for a condition on rows of both that is not boolean."""

        def rows() -> DataFrame:
            return no_rows(spark, table, self.target_alias).crossJoin(self.source.alias(self.source_alias))

        for condition in conditions:
            refuse_non_boolean(condition, [*names_of(table), *self.source.columns], rows)

    def meant_alone(self, condition: Expression, table: Table) -> Expression:
        """As `meant`, of a condition on rows of the table alone."""
        return without_blanks(condition, table, self.target_alias)


def joined(source: DataFrame, on: Expression | None, target_alias: str | None, source_alias: str) -> Join:
    """The join of a statement with a source. Raises TypeError for what is none, ColumnError without a condition."""
    check_frame("source", source)
    check_condition("on", on)
    if on is None:
        raise ColumnError('a source needs a condition that joins it with the table: on="t.id = s.id"')
    return Join(source, on, target_alias or "t", source_alias)


def joined_if_any(
    source: DataFrame | None, on: Expression | None, target_alias: str | None, source_alias: str
) -> Join | None:
    """The join of an UPDATE … FROM or DELETE … USING, None of a statement on the table alone.

    Raises what `joined` does, and ColumnError for a condition without a source: the statement would be on all rows.
    """
    if source is None and on is not None:
        raise ColumnError("on joins the table with a source, and none is given: add source=frame, or use where")
    return None if source is None else joined(source, on, target_alias, source_alias)


@dataclass(frozen=True, slots=True)
class KeptSource:
    """The rows of a source with their numbers (`SOURCE_ROW`), as they were when it was computed.

    There are `rows` of them, and `join` is how they are joined. `matched` is what is known of each target row that
    matches one of them; `is_unique` says that none can match two.
    """

    frame: DataFrame
    alias: str
    rows: int
    join: Choice[SourceJoin]
    matched: Predicate | None
    is_unique: bool = False
    has_keys: bool = False

    @property
    def is_broadcast(self) -> bool:
        """Whether the rows of the table stay in the tasks that read them."""
        return self.join.way is not SourceJoin.SHUFFLED

    @property
    def is_shuffled_by_key(self) -> bool:
        """Whether rows of both sides meet in the tasks of a key: of a condition that compares none, all meet all."""
        return self.join.way is SourceJoin.SHUFFLED and self.has_keys

    def joined(self) -> DataFrame:
        """The frame to join with, under its alias; broadcast if it is small."""
        return (F.broadcast(self.frame) if self.is_broadcast else self.frame).alias(self.alias)


def kept(
    join: Join,
    table: Table,
    limits: Limits,
    *,
    asked: Iterable[Expression | None] | None = None,
    once: bool = False,
    is_computed: bool = True,
) -> KeptSource:
    """Compute the source of a join with `table`, and measure it.

    Only columns are kept that ON may mean, or one of the expressions `asked` of pairs, all if these are not known. With
    `once` it is looked at whether a row of the table can match two of the source. One that is not computed, since
    the statement is only explained, is of any size. Raises ColumnError for a source with two columns of one name, or
    with one that has the name of ours.
    """
    check_distinct(name.lower() for name in join.source.columns)
    refuse_our_names(join.source.columns)
    keys = list(_comparable_keys(join, table))
    source = join.source if asked is None else _narrow(join, asked)
    numbered = projected(source, "*", f"monotonically_increasing_id() AS {SOURCE_ROW}")
    said = predicate_of(join.on, table, join.target_alias, join.source.columns, ask=ask_of(join.source.sparkSession))
    if not is_computed:
        return KeptSource(numbered, join.source_alias, 0, source_of_any_size(limits), said)
    # Measured when it is kept: what is learnt has to be of the very rows. (An observation would not reach a client of
    # Spark Connect from a checkpoint.)
    frame = kept_rows(numbered)
    found = _few(frame, source, keys, limits) or _many(frame, source, keys)
    how = source_by(found.rows, found.size_bytes + found.rows * _VALUE_BYTES, limits)
    unique = found.is_unique
    if unique is None and once and keys and how.way is SourceJoin.BROADCAST and found.rows <= _MOST_COUNTED:
        unique = _is_unique(frame, keys)
    bounds = all_of((said, *found.bounds))
    return KeptSource(frame, join.source_alias, found.rows, how, bounds, bool(once and keys and unique), bool(keys))


def _narrow(join: Join, asked: Iterable[Expression | None]) -> DataFrame:
    """The source with those of its columns that ON or `asked` expressions name, in any way in which a text may."""
    texts = [text_of(one) for one in (join.on, *asked) if one is not None]
    known = [text for text in texts if text is not None]
    columns = join.source.columns
    if len(known) < len(texts) or any(map(_ALL_COLUMNS.search, known)):
        return join.source
    words = {word.lower() for text in known for word in _WORD.findall(text)}
    named = [name for name in columns if name.lower() in words or not _PLAIN.fullmatch(name)]
    if len(named) == len(columns):
        return join.source
    return projected(join.source, *map(quoted, named or columns[:1]))


class _Measured(NamedTuple):
    """What is known of the rows of a source: how many there are, how large they are, and where the keys lie.

    `is_unique` says that no two have the same keys, None if nobody has looked. Those with a null among them match
    nothing, and do not count.
    """

    rows: int
    size_bytes: int
    is_unique: bool | None
    bounds: Sequence[Predicate | None]


def _few(frame: DataFrame, source: DataFrame, keys: _Keys, limits: Limits) -> _Measured | None:
    """Of the kept rows of a source, by their keys, which are brought here; None if there are more than a few.

    So nothing is shuffled, and Spark compiles one small program.
    """
    from pyarrow import compute

    types = [spark_type(column.type) for column, _ in keys]
    names = [_KEY(position) for position in range(len(keys))]
    columns = dict(zip(names, map(sent, _names(keys), types), strict=True))
    # How long texts are is not known.
    has_texts = any(isinstance(of, t.StringType) for of in types)
    most = min(MOST_VALUES, limits.driver_rows) if has_texts else limits.driver_rows
    brought = brought_rows(frame, {_BYTES: _bytes(source), **columns}, most)
    if brought is None:
        return None
    known = brought.select(names).drop_null()
    distinct = known.group_by(names).aggregate([]) if names else known
    bounds = [
        _bound(column, brought.column(name), of) for (column, _), name, of in zip(keys, names, types, strict=True)
    ]
    size_bytes = int(compute.sum(brought.column(_BYTES)).as_py() or 0)
    return _Measured(brought.num_rows, size_bytes, distinct.num_rows == known.num_rows, bounds)


def _bound(column: Column, values: Any, of: t.DataType) -> Predicate | None:
    """That a column has one of some values, a column of Arrow, that were `sent` of a type."""
    from pyarrow import compute

    distinct = values.unique()
    if len(distinct) <= MOST_VALUES:
        return one_of(column, (received(value, of) for value in distinct.to_pylist()))
    ends = compute.min_max(distinct).as_py()
    return between(column, received(ends["min"], of), received(ends["max"], of))


def _many(frame: DataFrame, source: DataFrame, keys: _Keys) -> _Measured:
    """Of the kept rows of a source, by a query."""
    names, types = _names(keys), [spark_type(column.type) for column, _ in keys]
    # All as SQL, since a call to the JVM for each part of each expression takes long for a wide source.
    ends = (
        f"{sent(f'{end}({name})', of)} AS {what}_{position}"
        for position, (name, of) in enumerate(zip(names, types, strict=True))
        for what, end in (("low", "min"), ("high", "max"))
    )
    found = projected(frame, "count(1) AS rows", f"sum({_bytes(source)}) AS bytes", *ends).collect()[0]
    bounds = [
        between(column, *(received(found[f"{end}_{position}"], types[position]) for end in ("low", "high")))
        for position, (column, _) in enumerate(keys)
    ]
    return _Measured(int(found["rows"]), int(found["bytes"] or 0), None, bounds)


def _is_unique(frame: DataFrame, keys: _Keys) -> bool:
    """Whether no two of the kept rows of a source have the same keys.

    It takes a shuffle of all keys, which pays if they are few and changed rows need none then. These do if the source
    is not broadcast, and whether a row is changed twice is found out where they meet.
    """
    names = _names(keys)
    known = f"count_if({' AND '.join(f'{name} IS NOT NULL' for name in names)})"
    found = projected(frame, f"count(DISTINCT {', '.join(names)}) AS distinct_keys", f"{known} AS known_keys")
    of = found.collect()[0]
    return bool(of["distinct_keys"] == of["known_keys"])


def _names(keys: _Keys) -> list[str]:
    """The SQL of the source's keys, as they are compared."""
    return [f"rtrim({quoted(key)})" if is_char(column) else quoted(key) for column, key in keys]


def matched(rows: DataFrame, *, join: Join, source: DataFrame, table: Table) -> DataFrame:
    """Those of some rows of a table that match one of the source of a join, which has its alias already."""
    meant = join.meant(join.on, table)
    return beside(rows, meant).alias(join.target_alias).join(source, expression(meant), "left_semi")


def _comparable_keys(join: Join, table: Table) -> Iterator[tuple[Column, str]]:
    """The target's column and the source's name for its own, where ON compares them without a conversion."""
    target = {column.name: column for column in table.all_columns}
    fields = _fields(join.source)
    for name, key in equal_columns(join.on, join.target_alias, join.source_alias, [*target, *join.source.columns]):
        if name in target and key in fields and _is_comparable(target[name], fields[key]):
            yield target[name], fields[key].name


def _is_comparable(column: Column, field: t.StructField) -> bool:
    left, right = spark_type(column.type), field.dataType
    if right == t.StringType() and is_char(Column(field.name, column_type(field))) and not is_char(column):
        return False  # with a CHAR texts are compared without the blanks at their ends
    if isinstance(left, t.IntegralType):
        return isinstance(right, t.IntegralType)
    return isinstance(left, t.DateType | t.DecimalType | t.StringType) and left == right


def _fields(frame: DataFrame) -> dict[str, t.StructField]:
    """The fields of a frame by name in lower case, but those whose name is not theirs alone."""
    fields = frame.schema.fields
    names = [field.name.lower() for field in fields]
    return {name: field for name, field in zip(names, fields, strict=True) if names.count(name) == 1}


def _bytes(source: DataFrame) -> str:
    """The SQL of about how much a row takes in memory."""
    fixed, sizes = 0, []
    for field in _fields(source).values():
        name = quoted(field.name)
        if isinstance(field.dataType, t.StringType | t.BinaryType):
            sizes.append(f"octet_length({name})")
        elif isinstance(field.dataType, t.ArrayType | t.MapType | t.StructType):
            sizes.append(f"octet_length(cast({name} AS string))")
        else:
            fixed += _VALUE_BYTES
    return total([f"{fixed}L", *(f"coalesce({size}, 0)" for size in sizes)])
