"""The tables of a walk: random shapes, values of their types, and both as SQL text."""

from __future__ import annotations

import datetime
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, SparkSession

Row = Mapping[str, Any]
"""A row: role of a column, which is its first name, to its value."""

WORDS = (None, "a", "b", "it's", "ä \N{SNOWMAN}", "", "x" * 40)
PLACES = (None, "a b", "x/y=%z", "ä+1")
FIELDS = {"a": "int", "b": "string"}
STRUCT = f"struct<{','.join(map(':'.join, FIELDS.items()))}>"
EXTRAS = {
    "bigint": (None, 0, -(2**63), 2**63 - 1),
    "double": (None, -0.5, 1e300),
    "decimal(12,2)": (None, Decimal("0.00"), Decimal("-1234567890.12"), Decimal("7.50")),
    "date": (None, datetime.date(1899, 12, 31), datetime.date(2024, 2, 29)),
    "timestamp": (None, "1899-12-31 23:59:59", "2024-02-29 01:02:03.000004"),
    "boolean": (None, True, False),
    "array<int>": (None, [], [1, None, 3]),
    STRUCT: (None, (1, None), (None, "b")),
    "varchar(8)": (None, "eight ch", ""),
    "char(4)": (None, "ab", "", "abcd"),
    "binary": (None, b"", b"\0\xff"),
    "decimal(38,18)": (None, Decimal("0E-18"), Decimal("12345678901234567890.123456789012345678")),
    "float": (None, 0.5, float("-inf")),
    "map<string,int>": (None, {}, {"a": 1, "it's": None}),
}
"""Types of columns that no condition speaks of, with some of their values."""

KEY_VALUES: Mapping[str, Sequence[Any]] = {
    "int": (0, 1, 2, None),
    "bigint": (-(2**63), 2**63 - 1, None),
    "string": PLACES,
    "date": (datetime.date(1500, 1, 1), datetime.date(2024, 2, 29), None),
    "boolean": (True, False, None),
}
"""Of partition keys: few, so that rows meet."""


@dataclass(frozen=True)
class Shape:
    """How a table is made: `id` and `v` are int, `s` is string, the others are of any type.

    Where `is_keyed`, `id` is its primary key, which is enforced.
    """

    columns: Mapping[str, str]
    keys: Mapping[str, str]
    buckets: int = 0
    is_keyed: bool = False

    @classmethod
    def random(cls, chance: random.Random) -> Shape:
        """One of the many."""
        kinds = chance.sample(list(EXTRAS), chance.randint(0, 3))
        columns = {"id": "int", "v": "int", "s": "string"} | {f"c{i}": kind for i, kind in enumerate(kinds)}
        keys = chance.choice(
            ({}, {}, {"p": "int"}, {"p": "int"}, {"p": "int", "q": "string"}, {"q": "string"},
             {"d": "date"}, {"b": "boolean", "p": "int"}, {"g": "bigint"})
        )  # fmt: skip
        return cls(columns, keys, 3 if chance.random() < 0.3 else 0, chance.random() < 0.5)


@dataclass
class Columns:
    """The columns of a table as they are now: role to present name, and role to type; keys keep their names."""

    names: dict[str, str]
    types: dict[str, str]
    keys: dict[str, str]
    buckets: int = 0
    is_keyed: bool = False
    added: int = field(default=0)

    @classmethod
    def of(cls, shape: Shape) -> Columns:
        names = {role: role for role in shape.columns}
        return cls(names, dict(shape.columns), dict(shape.keys), shape.buckets, shape.is_keyed)

    @property
    def roles(self) -> list[str]:
        return [*self.types, *self.keys]

    def name(self, role: str) -> str:
        return self.names.get(role, role)

    def type(self, role: str) -> str:
        return self.types[role] if role in self.types else self.keys[role]

    def partition_of(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[key] for key in self.keys)


def value_of(chance: random.Random, kind: str) -> Any:
    """Any value of a type."""
    if kind == "int":
        return chance.choice((None, *range(100), *range(100)))
    return chance.choice(WORDS if kind == "string" else EXTRAS[kind])


def key_value(chance: random.Random, kind: str) -> Any:
    """A value of a partition key."""
    return chance.choice(KEY_VALUES[kind])


def key_text(value: Any) -> str | None:
    """A value of a partition key as PARTITION and the names of partitions have it."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def literal(value: Any, kind: str) -> str:
    """A value as SQL text of exactly its type."""
    if value is None:
        return f"CAST(NULL AS {_spark(kind)})"
    if kind.startswith("array"):
        return f"CAST(array({', '.join(literal(one, 'int') for one in value)}) AS {kind})"
    if kind.startswith("struct"):
        fields = (f"'{name}', {literal(one, of)}" for (name, of), one in zip(FIELDS.items(), value, strict=True))
        return f"named_struct({', '.join(fields)})"
    if kind.startswith("map"):
        pairs = (f"{literal(key, 'string')}, {literal(one, 'int')}" for key, one in value.items())
        return f"CAST(map({', '.join(pairs)}) AS {kind})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str) and kind != "timestamp":
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"CAST('{value}' AS {_spark(kind)})"


def frame_of(spark: SparkSession, columns: Columns, rows: Sequence[Row], roles: Sequence[str]) -> DataFrame:
    """`rows` as a frame with the columns of `roles`, under their present names."""
    names = [f"`{columns.name(role)}`" for role in roles]
    if not rows:
        nothing = (f"CAST(NULL AS {_spark(columns.type(r))}) AS {n}" for r, n in zip(roles, names, strict=True))
        return spark.sql(f"SELECT {', '.join(nothing)} WHERE false")
    values = (f"({', '.join(literal(row[role], columns.type(role)) for role in roles)})" for row in rows)
    return spark.sql(f"SELECT * FROM VALUES {', '.join(values)} AS given({', '.join(names)})")


def plain(value: Any) -> Any:
    """A value that Spark returned as the model has it."""
    if isinstance(value, tuple):
        return tuple(plain(one) for one in value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, bytearray):
        return bytes(value)
    return value


def _spark(kind: str) -> str:
    return "string" if kind.startswith(("varchar", "char")) else kind
