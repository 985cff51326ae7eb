"""Insert-only and plain tables of all formats, written and read under a setting, and read without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hive_acid.spark import AcidSession
from tests.values.rows.conditions import Row
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.tables import FORMS, KINDS, SIMPLE_KINDS, Tables, breaks_lines, column_of, stored_as
from tests.values.sessions.settings import Settings
from tests.values.sessions.under import under


def wrong_forms(tables: Tables, settings: Settings, prefix: str) -> Iterator[tuple[str, int, str]]:
    """For each form its name, how many values were compared, and what is wrong with its rows, which may be nothing."""
    for number, (form, properties) in enumerate(FORMS.items()):
        name = f"{prefix}_{number}"
        acid = tables.plain if form.startswith("plain") else tables.on
        kinds = SIMPLE_KINDS if form.endswith("text") else KINDS
        key = column_of("date")
        rows = {of: row for of, row in tables.rows.items() if not form.endswith("text") or not _breaks(row.values())}
        acid.create_table(
            name,
            {"id": "int", **{of: kind for of, kind in kinds.items() if of != key}},
            partitioned_by={key: "date"},
            properties=properties,
            stored_as=stored_as(form),
        )
        frame = tables.frame(kinds).drop("hit").where(f"id IN ({', '.join(map(str, rows))})")
        wrong = []
        try:
            with under(tables.spark, settings):
                acid.insert(name, frame)
                wrong += [f"under it: {of}" for of in _differences(acid, name, kinds, rows)]
            wrong += [f"without it: {of}" for of in _differences(acid, name, kinds, rows)]
            with under(tables.spark, settings):
                wrong += [f"where: {of}" for of in _found(acid, name, rows)]
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {str(error)[:300]}")
        acid.drop_table(name)
        yield form, 2 * len(rows) * len(kinds), "; ".join(wrong)


def _breaks(values: Iterable[Any]) -> bool:
    return any(map(breaks_lines, values))


def _differences(acid: AcidSession, name: str, kinds: Mapping[str, str], rows: Mapping[int, Row]) -> Iterator[str]:
    found = {row[0]: row[1:] for row in rows_of(acid.table(name).select("id", *kinds), ["int", *kinds.values()])}
    if found.keys() != rows.keys():
        yield f"rows {sorted(found.keys() ^ rows.keys())[:5]}"
    for at, (column, kind) in enumerate(kinds.items()):
        other = [
            (of, rows[of][column], found[of][at])
            for of in sorted(found.keys() & rows.keys())
            if exactly(found[of][at]) != exactly(rows[of][column])
        ]
        if other:
            yield f"{kind}: {len(other)} values, such as {other[:2]!s:.200}"


def _found(acid: AcidSession, name: str, rows: Mapping[int, Row]) -> Iterator[str]:
    """Rows are found by some conditions that a reader may be asked by."""
    tests = {
        "v_int = 2147483647": lambda row: row["v_int"] == 2**31 - 1,
        "v_string = 'ab'": lambda row: row["v_string"] == "ab",
        "v_char_4 = 'ab'": lambda row: row["v_char_4"] == "ab",
        "v_date = date'9999-12-31'": lambda row: row["v_date"] == 2932896,
        "v_double = 0": lambda row: row["v_double"] == 0,
        "v_boolean": lambda row: row["v_boolean"] is True,
        "v_decimal_5_2 = 0.01": lambda row: row["v_decimal_5_2"] is not None and float(row["v_decimal_5_2"]) == 0.01,
        "v_timestamp < timestamp'1900-01-01 00:00:00'": lambda row: (row["v_timestamp"] or 0) < -2208988800000000,
    }
    found = acid.table(name).selectExpr("id", *(f"{of} AS c{at}" for at, of in enumerate(tests))).collect()
    for at, (text, test) in enumerate(tests.items()):
        ought = {of for of, row in rows.items() if test(row)}
        for how, ids in (
            ("column", {row.id for row in found if row[f"c{at}"]}),
            ("where", {row.id for row in acid.table(name).where(text).select("id").collect()}),
        ):
            if ids != ought:
                yield f"{how} {text}: {sorted(ids ^ ought)[:5]}"
