"""The tables of a walk: the same rows in files of all kinds, and a copy of them in Parquet that plain Spark reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.streaming import ArrowWriter, StreamingConnection
from tests.spark.compaction import compact_table
from tests.values.rows.conditions import Row
from tests.values.rows.hostile import SIMPLE, TYPES, stored
from tests.values.sessions.under import under

COPY = "copy_of_values"
DUMMY = {"hive.txn.manager": "DummyTxnManager"}
GROUP_ROWS = 1000
"""As few rows as a row group of ORC can have."""

KEYS = ("tinyint", "smallint", "int", "bigint", "decimal(5,2)", "decimal(38,18)", "decimal(38,38)", "boolean", "string",
        "varchar(6)", "char(4)", "date", "timestamp", "float", "double", "binary")  # fmt: skip
"""Types of partition keys and bucket columns."""

FORMS = {
    "insert only parquet": {"transactional_properties": "insert_only"},
    "insert only text": {"transactional_properties": "insert_only", "field.delim": ",", "escape.delim": "\\"},
    "insert only json": {"transactional_properties": "insert_only"},
    "insert only": {"transactional_properties": "insert_only"},
    "plain orc": {"transactional": "false"},
    "plain parquet": {"transactional": "false"},
}
"""Tables of which no row is changed, by their properties."""


def column_of(kind: str) -> str:
    """The name of the column of a type."""
    return "v_" + re.sub(r"\W+", "_", kind).strip("_")


KINDS = {column_of(kind): kind for kind in TYPES}
"""Columns with hostile values, by name."""

SIMPLE_KINDS = {column_of(kind): kind for kind in SIMPLE}


@dataclass(frozen=True)
class Placed:
    """A table: its name, the types of its columns that conditions speak of, its rows by id, and rows of one id.

    `is_plain` says that a session without transactions reads it.
    """

    name: str
    kinds: Mapping[str, str]
    rows: Mapping[int, Row]
    repeats: int = 1
    changes: bool = True
    is_plain: bool = False


class Tables:
    """Makes tables when they are asked for; they stay as they are then."""

    def __init__(self, spark: SparkSession, uri: str, directory: Path) -> None:
        self.spark = spark
        self.on = hive_acid.spark.session(spark, uri)
        self.off = hive_acid.spark.session(spark, uri, skipping=False)
        self.plain = hive_acid.spark.session(spark, uri, settings=DUMMY)
        self.on.create_database("d")
        self._uri = uri
        self._made: dict[str, Placed] = {}
        self.rows = {
            number: {name: of[number % len(of)].model for name, of in _VALUES.items()} for number in range(_COUNT)
        }
        fields = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
        spark.sql(f"DROP TABLE IF EXISTS {COPY}")
        spark.sql(f"CREATE TABLE {COPY} (id int, {fields}) USING parquet LOCATION '{directory / 'copy'}'")
        self.frame().createOrReplaceTempView("values_given")
        spark.sql(f"INSERT INTO {COPY} SELECT id, {', '.join(KINDS)} FROM values_given")

    def close(self) -> None:
        self.on.close()
        self.off.close()
        self.plain.close()
        self.spark.sql(f"DROP TABLE IF EXISTS {COPY}")

    def frame(self, kinds: Iterable[str] = KINDS, repeats: int = 1) -> DataFrame:
        """The rows as a frame, each `repeats` times, ids in order."""
        columns = [
            f"element_at(array({', '.join(value.sql for value in _VALUES[name])}), "
            f"cast(place % {len(_VALUES[name])} AS int) + 1) AS {name}"
            for name in kinds
        ]
        places = self.spark.range(0, _COUNT * repeats, 1, 1).selectExpr(f"id div {repeats} AS place")
        return places.selectExpr("cast(place AS int) AS id", "cast(NULL AS int) AS hit", *columns)

    def table(self, layout: str) -> Placed:
        """A table by its layout; see `LAYOUTS`."""
        if layout not in self._made:
            name, _, kind = layout.partition(" by ")
            form = next((form for form in FORMS if name.startswith(form)), None)
            if form is not None:
                self._made[layout] = self._grown(form, kind or None, many=name.endswith("many"))
            else:
                self._made[layout] = getattr(self, f"_{name.replace(' ', '_')}")(*([kind] if kind else []))
        return self._made[layout]

    # --- layouts -------------------------------------------------------------------------------

    def _create(self, name: str, kinds: Mapping[str, str], **options: Any) -> str:
        self.on.create_table(f"d.{name}", {"id": "int", "hit": "int", **kinds}, **options)
        return f"d.{name}"

    def _one(self) -> Placed:
        name = self._create("one", KINDS)
        self.on.insert(name, self.frame())
        return Placed(name, KINDS, self.rows)

    def _many(self) -> Placed:
        """A file for each row."""
        name = self._create("many", SIMPLE_KINDS)
        self.on.insert(name, self.frame(SIMPLE_KINDS).repartitionByRange(_COUNT, "id"))
        return Placed(name, SIMPLE_KINDS, self.rows)

    def _groups(self) -> Placed:
        """A row group for each row, which is there many times."""
        name = self._create("groups", SIMPLE_KINDS)
        with under(self.spark, {"orc.row.index.stride": str(GROUP_ROWS)}):
            self.on.insert(name, self.frame(SIMPLE_KINDS, GROUP_ROWS))
        return Placed(name, SIMPLE_KINDS, self.rows, GROUP_ROWS, changes=False)

    def _filtered(self) -> Placed:
        """As `_groups`, with a bloom filter for each column of each group."""
        name = self._create("filtered", SIMPLE_KINDS, properties={"orc.bloom.filter.columns": "*"})
        with under(self.spark, {"orc.row.index.stride": str(GROUP_ROWS)}):
            self.on.insert(name, self.frame(SIMPLE_KINDS, GROUP_ROWS))
        return Placed(name, SIMPLE_KINDS, self.rows, GROUP_ROWS, changes=False)

    def _changed(self, name: str = "changed") -> Placed:
        """Rows of Spark's writer and of the client's, which are the new versions of some; a third is deleted."""
        made = self._create(name, SIMPLE_KINDS)
        for part in range(3):
            self.on.insert(made, self.frame(SIMPLE_KINDS).where(f"id % 3 = {part}").repartitionByRange(2, "id"))
        self.on.update(made, {"hit": "-1"}, "id % 4 = 1")
        self.on.update(made, {"hit": "-2"}, "id % 8 = 1")
        self.on.delete(made, "id % 3 = 2")
        return Placed(made, SIMPLE_KINDS, self._some(lambda number: number % 3 != 2))

    def _minor(self) -> Placed:
        placed = self._changed("minor")
        compact_table(self.spark, self.on, placed.name, "minor")
        return placed

    def _major(self) -> Placed:
        placed = self._changed("major")
        compact_table(self.spark, self.on, placed.name, "major")
        return placed

    def _streamed(self) -> Placed:
        """Rows that a stream of Arrow tables has written; it takes no fraction of a second before 1970."""
        name = self._create("streamed", SIMPLE_KINDS)
        taken = self._some(lambda number: _can_be_streamed(self.rows[number][column_of("timestamp")]))
        with StreamingConnection(self._uri, name, ArrowWriter()) as stream:
            for part in range(4):
                given = f"id % 4 = {part} AND id IN ({', '.join(map(str, taken))})"
                rows = self.frame(SIMPLE_KINDS).where(given).toArrow()
                naive = [
                    pa.field(of.name, pa.timestamp("us") if pa.types.is_timestamp(of.type) else of.type)
                    for of in rows.schema
                ]
                rows = rows.cast(pa.schema(naive))
                with stream.transaction():
                    stream.write(rows)
        return Placed(name, SIMPLE_KINDS, taken)

    def _partitions(self, kind: str) -> Placed:
        """A partition for each value of a type that can be one."""
        key = column_of(kind)
        kinds = {name: of for name, of in SIMPLE_KINDS.items() if name != key}
        name = self._create(f"partitions_{key}", kinds, partitioned_by={key: kind})
        rows = self._some(lambda number: can_be_key(self.rows[number][key]))
        given = self.frame(SIMPLE_KINDS)
        self.on.insert(name, given.where(f"id IN ({', '.join(map(str, rows))})"))
        return Placed(name, SIMPLE_KINDS, rows)

    def _buckets(self, kind: str) -> Placed:
        key = column_of(kind)
        name = self._create(f"buckets_{key}", SIMPLE_KINDS, clustered_by=[key], buckets=4)
        self.on.insert(name, self.frame(SIMPLE_KINDS))
        return Placed(name, SIMPLE_KINDS, self.rows)

    def _grown(self, form: str, key_kind: str | None, *, many: bool) -> Placed:
        """A table of one of `FORMS`: in one file, in many, or with a partition for each value of a type."""
        is_simple = many or key_kind or form.endswith("text")
        kinds, key = (SIMPLE_KINDS if is_simple else KINDS), column_of(key_kind) if key_kind else None
        rows = self._some(lambda number: key is None or can_be_key(self.rows[number][key]))
        if form.endswith("text"):
            rows = {number: row for number, row in rows.items() if not any(map(breaks_lines, row.values()))}
        acid = self.plain if form.startswith("plain") else self.on
        name = f"d.{form.replace(' ', '_')}_{key or ('many' if many else 'one')}"
        acid.create_table(
            name,
            {"id": "int", "hit": "int", **{of: kind for of, kind in kinds.items() if of != key}},
            partitioned_by={key: key_kind} if key and key_kind else {},
            properties=FORMS[form],
            stored_as=stored_as(form),
        )
        given = self.frame(kinds).where(f"id IN ({', '.join(map(str, rows))})")
        acid.insert(name, given.repartitionByRange(_COUNT, "id") if many else given)
        return Placed(name, kinds, rows, changes=False, is_plain=acid is self.plain)

    def _some(self, wanted: Callable[[int], bool]) -> dict[int, Row]:
        return {number: row for number, row in self.rows.items() if wanted(number)}


_VALUES = {name: stored(kind) for name, kind in KINDS.items()}
_COUNT = max(map(len, _VALUES.values()))


def stored_as(form: str) -> str:
    """What the files of one of `FORMS` are."""
    return {"parquet": "PARQUET", "text": "TEXTFILE", "json": "JSONFILE"}.get(form.rpartition(" ")[2], "ORC")


def breaks_lines(value: Any) -> bool:
    """Whether a value is a text of several lines, which no line of a text file holds."""
    return isinstance(value, str) and ("\n" in value or "\r" in value)


def _can_be_streamed(micros: int | None) -> bool:
    return micros is None or micros >= 0 or micros % 1_000_000 == 0


_LONGEST_KEY = 180


def can_be_key(value: Any) -> bool:
    """Whether a partition can have the value as it is.

    Hive takes an empty text there for null, and no file system has names with a NUL or what is no UTF-8, or long ones.
    """
    text = value.decode(errors="replace") if isinstance(value, bytes) else value
    if isinstance(text, str) and len(text.encode()) > _LONGEST_KEY:
        return False
    return text != "" and not (isinstance(text, str) and ("\0" in text or "\ufffd" in text))


LAYOUTS = ("one", "many", "groups", "filtered", "changed", "minor", "major", "streamed",
           *FORMS, *(f"{form} many" for form in FORMS))  # fmt: skip
KEYED = tuple(f"{what} by {kind}" for what in ("partitions", "buckets", *FORMS) for kind in KEYS)
