"""A story of a table with one column of most types, told by every verb; what it has to hold is known in Python."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import day, micros, sql_of

COLUMNS = {
    "id": "int",
    "s": "string",
    "c": "char(4)",
    "vc": "varchar(6)",
    "x": "double",
    "f": "float",
    "m": "decimal(20,4)",
    "b": "boolean",
    "d": "date",
    "t": "timestamp",
    "raw": "binary",
    "a b": "bigint",
    "st": "struct<a:int,b:string>",
    "ar": "array<string>",
    "mp": "map<string,timestamp>",
}
KEYS = {"p": "string", "q": "timestamp"}
ALL = {**COLUMNS, **KEYS}
FLAT = {name: kind for name, kind in COLUMNS.items() if "<" not in kind}

Row = dict[str, Any]
ODD = ("it's", "a\\b", "\\n", '"q"', "", "%_", "x\ny", "ä\U0001f600", "${x}", "`", "\\'", "x" * 600)
TIMES = (micros("0001-01-01 00:00:00"), micros("1900-01-01 00:00:00"), micros("2024-03-31 01:30:00"), 1, None)
DAYS = (day("0001-01-01"), day("1500-01-01"), day("9999-12-31"), None)


_TENTHOUSANDTH = Decimal("0.0001")


def row(number: int) -> Row:
    """A row by its number."""
    text = ODD[number % len(ODD)]
    return {
        "id": number,
        "s": text,
        "c": ("ab", "", "abcd", None, "a b")[number % 5],
        "vc": (text[:6], None)[number % 3 == 2],
        "x": (0.1, -0.0, float("nan"), float("inf"), 5e-324, None)[number % 6],
        "f": (0.5, -0.0, float("-inf"), None)[number % 4],
        "m": None if number % 7 == 6 else (number - 3) * _TENTHOUSANDTH,
        "b": (True, False, None)[number % 3],
        "d": DAYS[number % len(DAYS)],
        "t": TIMES[number % len(TIMES)],
        "raw": (text.encode(), b"\0\xff", None)[number % 3],
        "a b": (2**63 - 1, -(2**63), number, None)[number % 4],
        "st": (None if number % 2 else number, text),
        "ar": ((text, None), (), None)[number % 3],
        "mp": (((text, TIMES[number % len(TIMES)]),), None)[number % 2],
        "p": ("x", "it's \\ %", None)[number % 3],
        "q": (micros("2024-03-31 01:30:00"), micros("1999-12-31 23:59:59.5"))[number % 2],
    }


def told(spark: SparkSession, acid: AcidSession, name: str, *, keys: bool, nested: bool) -> Iterator[tuple[str, bool]]:
    """Tell the story on a new table, with `keys` in partitions; after each verb, its name and if all is as it ought."""
    columns = COLUMNS if nested else FLAT
    kinds = {**columns, **(KEYS if keys else {})}
    acid.create_table(name, columns, partitioned_by=KEYS if keys else {})
    content: dict[int, Row] = {}

    def frame(*numbers: int, **changed: Any) -> DataFrame:
        rows = [{**row(number), **changed} for number in numbers]
        texts = [", ".join(f"{sql_of(kind, of[key])} AS `{key}`" for key, kind in kinds.items()) for of in rows]
        return spark.sql(" UNION ALL ".join(f"SELECT {text}" for text in texts))

    def is_right() -> bool:
        found = rows_of(acid.table(name).select(*(f"`{key}`" for key in kinds)), list(kinds.values()))
        ought = [tuple(of[key] for key in kinds) for of in content.values()]
        return sorted(map(repr, map(exactly, found))) == sorted(map(repr, map(exactly, ought)))

    acid.insert(name, frame(*range(12)))
    content |= {number: row(number) for number in range(12)}
    yield "insert", is_right()

    found = acid.update(name, {"s": "concat(s, '!')"}, "id IN (3, 4)")
    content |= {number: {**content[number], "s": content[number]["s"] + "!"} for number in (3, 4)}
    yield "update", found == 2

    acid.sql(
        f"UPDATE {name} SET m = m + 1, d = DATE'2024-02-29', t = TIMESTAMP'2024-02-29 01:02:03.000004' WHERE id = 5"
    )
    content[5] |= {"m": content[5]["m"] + 1, "d": day("2024-02-29"), "t": micros("2024-02-29 01:02:03.000004")}

    found = acid.delete(name, "id = 7 OR x < -1")
    del content[7]
    yield "delete", found == 1 and is_right()

    source = frame(*range(9, 15), b=None)
    counts = (
        acid.merge(name, source, "t.id = s.id")
        .whenMatchedDelete("s.id = 10")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )
    content |= {number: {**row(number), "b": None} for number in range(9, 15)}
    del content[10]
    yield "merge", tuple(counts) == (3, 2, 1) and is_right()

    acid.sink(name, query="q", mode="upsert", keys=["id"])(frame(1, 20, s="sunk"), 0)
    content |= {number: {**row(number), "s": "sunk"} for number in (1, 20)}
    yield "sink", is_right()

    frame(31, 8).createOrReplaceTempView("story")
    acid.sql(f"INSERT INTO {name} SELECT * FROM story WHERE id = 31")
    acid.sql(
        f"MERGE INTO {name} AS t USING story ON t.id = story.id WHEN MATCHED AND t.id = 8 THEN UPDATE SET s = 'eight' "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    content |= {31: row(31), 8: {**content[8], "s": "eight"}}
    acid.sql(f"DELETE FROM {name} WHERE s = :text AND id < 3", {"text": ODD[2]})
    del content[2]
    odd = acid.sql(f"SELECT id FROM {name} WHERE s = :text ORDER BY id", {"text": ODD[7]}).collect()
    yield "SQL", [found["id"] for found in odd] == [number for number in content if content[number]["s"] == ODD[7]]

    if keys:
        frame(*range(40, 44)).createOrReplaceTempView("story")
        named = ", ".join(f"`{key}`" for key in columns)
        for number, spec in enumerate(_SPECS, 40):
            verb, given = ("OVERWRITE TABLE", "") if "DATE" in spec else ("INTO", ", q" if spec.endswith("q") else "")
            acid.sql(f"INSERT {verb} {name} PARTITION ({spec}) SELECT {named}{given} FROM story WHERE id = {number}")
            moment = "2024-03-31 00:00:00" if "DATE" in spec else "2024-03-31 01:30:00"
            content[number] = {**row(number), "p": "one", "q": micros(moment)}
        acid.sql(f"ALTER TABLE {name} ADD PARTITION (p = 'two', q = '2024-03-31')")
        yield "PARTITION", is_right()

        for statement in _OF_A_PARTITION:
            for value in ("'nonsense'", "'2024-02-30'", "5", "true"):
                text = statement.format(name=name, named=named, spec=f"p = 'one', q = {value}")
                yield text, _is_refused(acid, text)
        text = f"ALTER TABLE {name} PARTITION (p = 'two', q = '2024-03-31') RENAME TO PARTITION (p = 'one', q = '2024')"
        acid.sql(text)
        yield text, is_right()

        acid.sql(f"TRUNCATE TABLE {name} PARTITION (p = 'one', q = '2024-03-31 01:30:00.0')")
        for number in range(40, 43):
            del content[number]
        yield "TRUNCATE", is_right()
        acid.sql(f"ALTER TABLE {name} DROP PARTITION (q = TIMESTAMP'2024-03-31 00:00:00', p = 'one')")
        del content[43]
        yield "DROP PARTITION", is_right()

    compact_table(spark, acid, name, "minor")
    compact_table(spark, acid, name, "major")
    yield "compaction", is_right()

    frames = [acid.table(name, where=of).selectExpr(f"{at} AS at", "id") for at, of in enumerate(_CONDITIONS)]
    asked = reduce(DataFrame.unionAll, frames).collect()
    for at, (condition, right) in enumerate(_CONDITIONS.items()):
        ids = {found["id"] for found in asked if found["at"] == at}
        yield f"where {condition}", ids == {number for number, of in content.items() if right(of)}

    acid.overwrite(name, frame(2, 30), partition=None)
    if keys:
        places = {(row(number)["p"], row(number)["q"]) for number in (2, 30)}
        content = {number: of for number, of in content.items() if (of["p"], of["q"]) not in places}
    else:
        content = {}
    content |= {number: row(number) for number in (2, 30)}
    yield "overwrite", is_right()


def _is_refused(acid: AcidSession, statement: str) -> bool:
    try:
        acid.sql(statement)
    except HiveAcidError:
        return True
    return False


_SPECS = (
    "p = 'one', q = TIMESTAMP'2024-03-31 01:30:00'",
    "q = '2024-03-31 01:30:00.000', p = 'one'",
    "p = 'one', q",
    "p = 'one', q = DATE'2024-03-31'",
)
"""Of partitions: typed, not typed, with a value of each row, and of another type that means a time."""

_OF_A_PARTITION = (
    "INSERT INTO {name} PARTITION ({spec}) SELECT {named} FROM story",
    "INSERT OVERWRITE {name} PARTITION ({spec}) SELECT {named} FROM story",
    "INSERT OVERWRITE {name} PARTITION ({spec}) IF NOT EXISTS SELECT {named} FROM story",
    "TRUNCATE TABLE {name} PARTITION ({spec})",
    "ALTER TABLE {name} ADD PARTITION ({spec})",
    "ALTER TABLE {name} DROP PARTITION ({spec})",
)

_CONDITIONS = {
    "id = 1": lambda of: of["id"] == 1,
    "s = 'sunk'": lambda of: of["s"] == "sunk",
    "c = 'ab'": lambda of: of["c"] == "ab",
    "m > 0.5": lambda of: of["m"] is not None and of["m"] > 0.5,
    "x = 0": lambda of: of["x"] == 0,
    "d = date'9999-12-31'": lambda of: of["d"] == day("9999-12-31"),
    "t >= timestamp'2024-01-01 00:00:00'": lambda of: of["t"] is not None and of["t"] > micros("2024-01-01 00:00:00"),
    "`a b` = 9223372036854775807": lambda of: of["a b"] == 2**63 - 1,
}
