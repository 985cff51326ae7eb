"""``PARTITION (day = '2024-01-01', kind)`` as values of a table's partition keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException

from hive_acid.catalog.partition_values import known_text, partition_text
from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.expressions import expression
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import PARTITION_NAME, typed_partitions

_COMPARISONS = ("<", "<=", ">", ">=", "<>", "!=")
_TEXT_TYPES = re.compile(r"string|(var)?char\(.*")


@dataclass(frozen=True, slots=True)
class PartitionClause:
    """Values of the keys that have one, as text or None for null; `dynamic` are the keys named without a value."""

    table: Table
    static: Mapping[str, str | None]
    dynamic: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether the values are those of one partition."""
        return len(self.static) == len(self.table.partition_keys) > 0

    @property
    def name(self) -> str:
        """The partition's name, ``k=v/…``. Raises ColumnError if a key has no value."""
        if not self.is_whole:
            keys = ", ".join(key.name for key in self.table.partition_keys) or "none"
            raise ColumnError(f"PARTITION of {self.table.full_name} must give each of its keys ({keys}) a value")
        return self.table.partition_name([self.static[key.name] for key in self.table.partition_keys])

    def covered(self, names: Iterable[str]) -> list[str]:
        """Those of the partitions `names` that have the values given."""
        types = {key.name: key.type for key in self.table.partition_keys}

        def known(name: str) -> dict[str, str | None]:
            return {key: known_text(types[key], value) for key, value in parse_partition_name(name)}

        return [name for name in names if self.static.items() <= known(name).items()]


def partition_clause(run: Run, table: Table, inside: Cursor) -> PartitionClause:
    """What stands in the parentheses of PARTITION. Raises ColumnError for what is no partition key, or given twice."""
    static: dict[str, str | None] = {}
    dynamic: list[str] = []
    keys = {key.name: key for key in table.partition_keys}
    for item in inside.again().separated("PARTITION"):
        name = item.identifier("a partition key").lower()
        if name not in keys:
            raise ColumnError(f"{name} is no partition key of {table.full_name} ({', '.join(keys) or 'it has none'})")
        if name in static or name in dynamic:
            raise ColumnError(f"PARTITION of {table.full_name} names {name} twice")
        if item.accept("=") or item.accept("=="):
            static[name] = partition_text(table, keys[name], _value(run, item, keys[name].type))
        else:
            dynamic.append(name)
        item.finish()
    return PartitionClause(table, static, tuple(dynamic))


def partitions_where(run: Run, table: Table, inside: Cursor, names: Sequence[str]) -> list[str]:
    """Those of the partitions `names` that are meant in the parentheses of PARTITION, where keys may be compared:
    ``(day < '2024-01-01', kind = 'a')``.

    Raises ColumnError as `partition_clause`, for a key without a value, and for values that do not compare.
    """
    conditions = []
    covered = list(names)
    for item in inside.separated("PARTITION"):
        ahead = Cursor(item.source)
        key = ahead.identifier("a partition key").lower()
        sign = next((sign for sign in _COMPARISONS if ahead.accept(sign)), None)
        if sign is not None:
            if key not in {of.name for of in table.partition_keys}:
                raise ColumnError(f"{key} is no partition key of {table.full_name}")
            conditions.append(f"({quoted(key)} {sign} ({ahead.rest()}\n))")
            continue
        spec = partition_clause(run, table, Cursor(item.source))
        if spec.dynamic:
            raise ColumnError(f"PARTITION of {table.full_name} needs a value for {', '.join(spec.dynamic)}")
        covered = spec.covered(covered)
    return _compared(run, table, covered, " AND ".join(conditions)) if conditions else covered


def _compared(run: Run, table: Table, names: Sequence[str], condition: str) -> list[str]:
    """Those of the partitions `names` of whose values a condition is true, as Spark compares them."""
    if not names:
        return []
    meant = without_blanks(condition, table)
    try:
        chosen = typed_partitions(run.spark, table, names).alias(table.name).where(expression(meant))
        return [row[0] for row in chosen.select(PARTITION_NAME).collect()]
    except PySparkException as error:
        raise ColumnError(f"PARTITION of {table.full_name}: {str(error).splitlines()[0]}") from error


def parenthesized_partition(cursor: Cursor) -> Cursor | None:
    """What stands in the parentheses of PARTITION, if that comes next."""
    return cursor.parentheses("a partition") if cursor.accept("PARTITION") else None


def static_values(run: Run, table: Table, inside: Cursor | None) -> Mapping[str, str | None] | None:
    """The values in the parentheses of PARTITION, None if there was none. Raises ColumnError as `partition_clause`."""
    return None if inside is None else partition_clause(run, table, inside).static


def _value(run: Run, item: Cursor, hive_type: str) -> str | None:
    """A constant as a text: Spark computes it. What it means to the key is not Spark's to say, which without ANSI makes
    null, or another number, of what is none of the key's type.
    """
    text = item.rest()
    if _TEXT_TYPES.fullmatch(hive_type) and (value := _plain_string(text)) is not None:
        return value
    found = f"CAST(({text}\n) AS STRING)"
    # Bytes that are no text must not come here as one: a client of Spark Connect could not read the answer.
    valid = f"is_valid_utf8({found})"
    try:
        is_text, value = run.spark.sql(f"SELECT {valid}, if({valid}, {found}, null)").collect()[0]
    except PySparkException as error:
        words = str(error).strip().splitlines()[0]
        raise ColumnError(f"'{text}' is no constant, as a value of a partition key is: {words}") from error
    if is_text is False:
        raise ColumnError(f"bytes that are no UTF-8 cannot be a value of a partition key: {text}")
    return None if value is None else str(value)


def _plain_string(text: str) -> str | None:
    cursor = Cursor(text)
    if not cursor.sees_string() or "\\" in text:
        return None
    value = cursor.string("a value")
    return value if cursor.at_end else None
