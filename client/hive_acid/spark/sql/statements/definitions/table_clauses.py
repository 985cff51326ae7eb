"""The clauses of CREATE TABLE, behind the new table's name and columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hive_acid.catalog.constraints import Constraint
from hive_acid.catalog.table import Column, Skew
from hive_acid.errors import SqlError
from hive_acid.spark.sql.columns import comment, names, properties
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.definitions.constraints import column_element
from hive_acid.spark.sql.statements.definitions.storage import Storage, accept_storage
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.tokens import LARGEST_COUNT

OUR_FORMAT = "ORC"
"""The format of a table of which none is said."""

OURS = (None, OUR_FORMAT, "HIVE_ACID")
"""What stands behind USING where a table is the metastore's."""

EXTERNAL = "EXTERNAL_TABLE"

_REFUSED: dict[tuple[str, ...], str] = {
    ("CLUSTER", "BY"): "rows are placed by CLUSTERED BY (columns) INTO n BUCKETS",
    ("FILE", "FORMAT"): "say STORED AS",
    ("PARTITIONED", "BY", "SPEC"): "partitions have values of columns: PARTITIONED BY (column type)",
    ("DEFAULT", "COLLATION"): "texts are compared by their bytes",
    ("WITH", "SERDEPROPERTIES"): "they follow ROW FORMAT SERDE 'class'",
    ("WITH", "ROW"): "views that keep rows, and row filters, are not made here",
}
"""Clauses of others that have no meaning here, and what to say instead."""


_PLAIN_VALUE = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|true|false", re.IGNORECASE)


@dataclass
class TableClauses:
    """What the clauses behind a new table's name and columns say; a source of Spark's is not ours to make."""

    columns: list[Column]
    keys: list[Column] = field(default_factory=list)
    key_names: list[str] = field(default_factory=list)
    clustered_by: list[str] = field(default_factory=list)
    buckets: int | None = None
    sorted_by: list[tuple[str, bool]] = field(default_factory=list)
    skew: Skew | None = None
    location: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    provider: str | None = None
    storage: Storage = field(default_factory=Storage)
    external: bool = False
    constraints: list[Constraint] = field(default_factory=list)

    def words(self) -> dict[str, Any]:
        """The arguments of `create_table`, beside the name and the columns."""
        return {
            "partitioned_by": [key.name for key in self.keys] or self.key_names,
            "clustered_by": self.clustered_by,
            "buckets": self.buckets,
            "sorted_by": self.sorted_by,
            "skew": self.skew,
            "properties": self.properties,
            "location": self.location,
            "stored_as": self.storage.form or OUR_FORMAT,
            "serde_properties": self.storage.serde_properties,
        }


def table_clauses(run: Run, cursor: Cursor, found: TableClauses) -> TableClauses:
    """What the clauses say that come next is added to a definition."""
    while not cursor.at_end and not cursor.sees("AS") and cursor.peek() not in ("SELECT", "WITH", "FROM", "VALUES"):
        if (refused := next((words for words in _REFUSED if cursor.sees(*words)), None)) is not None:
            raise cursor.error(f"{' '.join(refused)}: {_REFUSED[refused]}")
        if accept_storage(cursor, found.storage):
            continue
        if cursor.accept("PARTITIONED", "BY"):
            _partitioned_by(run, cursor, found)
        elif cursor.accept("CLUSTERED", "BY"):
            found.clustered_by = names(cursor, "bucket columns")
            if cursor.accept("SORTED", "BY"):
                found.sorted_by = _sorted_by(cursor)
            cursor.expect("INTO")
            found.buckets = cursor.integer("a number of buckets", most=LARGEST_COUNT)
            cursor.expect("BUCKETS")
        elif cursor.accept("SKEWED", "BY"):
            found.skew = _skewed_by(cursor)
        elif cursor.accept("USING"):
            found.provider = cursor.name("a format").parts[-1].upper()
        elif cursor.accept("LOCATION"):
            found.location = cursor.string("a location")
        elif cursor.accept("TBLPROPERTIES"):
            found.properties |= properties(cursor)
        elif (text := comment(cursor)) is not None:
            found.properties["comment"] = text
        elif found.provider not in OURS and cursor.accept("OPTIONS"):
            properties(cursor)
        else:
            raise cursor.error(
                "of CREATE TABLE's clauses PARTITIONED BY, CLUSTERED BY … INTO n BUCKETS, SKEWED BY, ROW FORMAT, "
                "STORED AS, LOCATION, COMMENT, TBLPROPERTIES and AS are understood"
            )
    return found


def _sorted_by(cursor: Cursor) -> list[tuple[str, bool]]:
    """``(column [ASC | DESC], …)``."""
    found = []
    for item in cursor.items("columns to sort by"):
        name = item.identifier("a column").lower()
        ascending = item.accept("ASC") or not item.accept("DESC")
        item.finish()
        found.append((name, ascending))
    return found


def _skewed_by(cursor: Cursor) -> Skew:
    """``(column, …) ON (value, …) [STORED AS DIRECTORIES]``; of several columns each value is a list of its own."""
    columns = tuple(names(cursor, "skewed columns"))
    cursor.expect("ON")
    values = tuple(
        tuple(_skewed_value(one) for one in item.items("values")) if item.sees("(") else (_skewed_value(item),)
        for item in cursor.items("skewed values")
    )
    return Skew(columns, values, cursor.accept("STORED", "AS", "DIRECTORIES"))


def _skewed_value(item: Cursor) -> str:
    """A text or a number, as a text."""
    wrong = item.error("a skewed value is a text, a number or a boolean")
    is_text = item.sees_string()
    value = item.string("a value") if is_text else item.rest()
    if not item.at_end or not (is_text or _PLAIN_VALUE.fullmatch(value)):
        raise wrong
    return value


def _partitioned_by(run: Run, cursor: Cursor, definition: TableClauses) -> None:
    """Typed columns as Hive has them, or names of columns as Spark has them."""
    inside = cursor.parentheses("partition columns")
    while True:
        if inside.peek(1) == "(":
            raise inside.error("partitions have values of columns, not of functions: add a column, and fill it")
        if inside.peek(1) in ("", ",") and not inside.sees_string():
            definition.key_names.append(inside.identifier("a partition column").lower())
        else:
            key, constraints = column_element(run, inside)
            definition.keys.append(key)
            definition.constraints += constraints
        if not inside.accept(","):
            break
    inside.finish()
    if definition.keys and definition.key_names:
        raise SqlError("PARTITIONED BY takes columns with types, or names of columns, not some of each")
