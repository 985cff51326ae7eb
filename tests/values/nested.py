"""A walk of verbs by what lies in other values: fields of structs, elements of arrays, values of maps.

Conditions, assignments, keys of a MERGE and structs that become wider, beside a model of the rows in Python. A char has
no blanks there, and is compared without those of a text beside it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.values.findings import Findings
from tests.values.rows.compared import OPERATORS, compared, keys
from tests.values.rows.conditions import Condition
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import SIMPLE, sql_of, stored
from tests.values.sessions.settings import Settings
from tests.values.sessions.under import under

_LOADED = 12
_FORMS: tuple[Mapping[str, Any], ...] = ({}, {"partitioned_by": {"p": "int"}})


class _Row(NamedTuple):
    """A row by its leaves: `a` and `c` in a struct and one within it, the array's elements, the map's items by key.

    `more` are the values of fields that the struct was given later, in their order.
    """

    hit: int
    a: Any
    c: Any
    elements: tuple[Any, ...] | None
    items: tuple[tuple[str, Any], ...] | None
    more: tuple[int | None, ...] = ()


class Nested:
    """Statements on tables of one server, each with values of a type in a struct, an array and a map."""

    def __init__(self, spark: SparkSession, uri: str, findings: Findings | None = None) -> None:
        self.findings = findings or Findings()
        self._spark = spark
        self._acid = hive_acid.spark.session(spark, uri)
        self._acid.create_database("n", if_not_exists=True)

    def close(self) -> None:
        self._acid.close()

    def step(self, seed: int, kind: str | None = None, statements: int = 10, settings: Settings | None = None) -> None:
        """Some statements on a new table."""
        chance = random.Random(seed)
        with under(self._spark, settings or {}):
            told = _Told(self._spark, self._acid, f"n.t{seed}", kind or chance.choice(SIMPLE), chance, self.findings)
            told.create()
            for _ in range(statements):
                if not told.one():
                    break
            self._acid.drop_table(told.name)


class _Told:
    """One table, the model of its rows by id, and the statements that change both."""

    def __init__(
        self, spark: SparkSession, acid: AcidSession, name: str, kind: str, chance: random.Random, findings: Findings
    ) -> None:
        self.name = name
        self._spark, self._acid, self._kind = spark, acid, kind
        self._chance, self._findings = chance, findings
        self._rows: dict[int, _Row] = {}
        self._next = 0
        self._added = 0
        self._statement = ""
        self._models = [value.model for value in stored(kind)]
        self._form = chance.choice(_FORMS)

    @property
    def _struct(self) -> str:
        more = "".join(f",e{number}:int" for number in range(self._added))
        return f"struct<a:{self._kind},b:string,i:struct<c:{self._kind},d:int>{more}>"

    @property
    def _columns(self) -> dict[str, str]:
        return {
            "id": "int", "hit": "int", "st": self._struct, "ar": f"array<{self._kind}>",
            "mp": f"map<string,{self._kind}>",
        }  # fmt: skip

    def create(self) -> None:
        self._acid.create_table(self.name, self._columns, **self._form)
        self._statement = "load"
        self._acid.insert(self.name, self._frame(self._new(_LOADED)))
        self._is_right()

    def one(self) -> bool:
        """One statement; whether the table is as it ought to be then."""
        verbs: list[Callable[[], None]] = [
            self._insert, self._update_field, self._update_field, self._update_whole, self._delete, self._merge,
            self._merge, self._widen, self._evolve, self._compact, self._select, self._select,
        ]  # fmt: skip
        verb = self._chance.choice(verbs)
        self._statement = verb.__name__
        try:
            verb()
            return self._is_right()
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            self._tell(f"{type(error).__name__}: {' '.join(lines[:3])[:500]}")
            return False

    # --- what there is -------------------------------------------------------------------------

    def _new(self, count: int) -> dict[int, _Row]:
        chance, made = self._chance, {}
        for _ in range(count):
            self._next += 1
            some = chance.sample(self._models, min(3, len(self._models)))
            elements = chance.choice((None, (), tuple(some[:1]), tuple(some)))
            items = chance.choice((None, (), (("x", some[0]),), (("x", some[0]), ("y ", some[-1]))))
            more = tuple(chance.choice((None, number)) for number in range(self._added))
            made[self._next] = _Row(
                chance.randrange(100), chance.choice(self._models), chance.choice(self._models), elements, items, more
            )
        self._rows |= made
        return made

    def _values(self, number: int, row: _Row, *, turned: bool) -> list[str]:
        """The SQL of a row's columns; fields of the struct may be the other way round."""
        more = [f"'e{at}', {sql_of('int', value)}" for at, value in enumerate(row.more)]
        inner = [f"'c', {sql_of(self._kind, row.c)}", f"'d', {number}"]
        fields = [f"'a', {sql_of(self._kind, row.a)}", f"'b', 'b{number}'", f"'i', named_struct({', '.join(inner)})"]
        fields = (fields + more)[:: -1 if turned else 1]
        return [
            str(number), str(row.hit), f"named_struct({', '.join(fields)})",
            self._array(row.elements), self._map(row.items),
        ]  # fmt: skip

    def _array(self, elements: tuple[Any, ...] | None) -> str:
        return sql_of(f"array<{self._kind}>", elements)

    def _map(self, items: tuple[tuple[str, Any], ...] | None) -> str:
        return sql_of(f"map<string,{self._kind}>", items)

    def _frame(self, rows: Mapping[int, _Row]) -> DataFrame:
        names, turned = list(self._columns), self._chance.random() < 0.5
        key = ["id % 2 AS p"] if self._form else []
        selects = []
        for of, row in rows.items():
            values = zip(self._values(of, row, turned=turned), names, strict=True)
            selects.append("SELECT " + ", ".join(f"{value} AS {name}" for value, name in values))
        return self._spark.sql(" UNION ALL ".join(selects)).selectExpr("*", *key)

    def _is_right(self) -> bool:
        columns = self._columns
        found = rows_of(self._acid.table(self.name).select(*columns), list(columns.values()))
        got = sorted(repr(exactly(row)) for row in found)
        ought = sorted(
            repr(exactly((of, row.hit, (row.a, f"b{of}", (row.c, of), *row.more), row.elements, row.items)))
            for of, row in self._rows.items()
        )
        self._findings.compared["nested"] += len(ought)
        if got != ought:
            missing, more = [of for of in ought if of not in got], [of for of in got if of not in ought]
            counted = f"({len(ought)} and {len(got)})"
            self._tell(f"rows are wrong: missing {missing[:2]!s:.300}, too many {more[:2]!s:.300} {counted}")
        return got == ought

    def _tell(self, words: str) -> None:
        self._findings.tell(
            "nested", self.name, Condition(self._statement, frozenset({"k"}), None), {"k": self._kind}, words
        )

    def _expect(self, got: int, ought: int) -> None:
        if got != ought:
            self._tell(f"{got} rows are said to be changed, not {ought}")

    def _condition(self) -> tuple[str, set[int]]:
        """A condition on something within a value, and the ids that it is true for."""
        chance, kind = self._chance, self._kind
        places: list[tuple[str, Callable[[_Row], Any]]] = [
            ("st.a", lambda row: row.a), ("ST.A", lambda row: row.a), ("st.i.c", lambda row: row.c),
            ("`st`.`i`.`c`", lambda row: row.c), ("get(ar, 0)", lambda row: row.elements[0] if row.elements else None),
            ("mp['x']", lambda row: dict(row.items or ()).get("x")),
            ("try_element_at(mp, 'y ')", lambda row: dict(row.items or ()).get("y ")),
            ("try_element_at(ar, -1)", lambda row: row.elements[-1] if row.elements else None),
        ]  # fmt: skip
        place, of = chance.choice(places)
        some = chance.sample(self._models[1:], min(3, len(self._models) - 1))
        how = chance.choice(("compared", "compared", "in", "null", "contains", "between", "exists"))
        if how == "null":
            return f"{place} IS NULL", {number for number, row in self._rows.items() if of(row) is None}
        if how in ("contains", "exists"):
            text = f"array_contains(ar, {sql_of(kind, some[0])})"
            if how == "exists":
                text = f"exists(ar, x -> x = {sql_of(kind, some[0])})"
            return text, self._true(lambda row: any(self._equal(one, some[0]) for one in row.elements or ()))
        if how == "in":
            listed = ", ".join(sql_of(kind, one) for one in some)
            return f"{place} IN ({listed})", self._true(lambda row: any(self._equal(of(row), one) for one in some))
        if how == "between" and keys(kind, kind):
            low, high = some[0], some[-1]
            return (
                f"{place} BETWEEN {sql_of(kind, low)} AND {sql_of(kind, high)}",
                self._true(
                    lambda row: (
                        compared(kind, of(row), ">=", kind, low) is True
                        and compared(kind, of(row), "<=", kind, high) is True
                    )
                ),
            )
        operator = chance.choice(list(OPERATORS))
        return (
            f"{place} {operator} {sql_of(kind, some[0])}",
            self._true(lambda row: compared(kind, of(row), operator, kind, some[0]) is True),
        )

    def _true(self, test: Callable[[_Row], bool]) -> set[int]:
        return {number for number, row in self._rows.items() if test(row)}

    def _equal(self, one: Any, other: Any) -> bool:
        return compared(self._kind, one, "=", self._kind, other) is True

    # --- statements ----------------------------------------------------------------------------

    def _sql(self, text: str) -> DataFrame:
        self._statement = text
        return self._acid.sql(text)

    def _select(self) -> None:
        where, ids = self._condition()
        if self._chance.random() < 0.5:
            found = self._sql(f"SELECT id FROM {self.name} WHERE {where}").collect()
        else:
            self._statement = f"where {where}"
            found = self._acid.table(self.name).where(where).select("id").collect()
        got = {row.id for row in found}
        if got != ids:
            shown = {of: self._rows.get(of) for of in sorted(got ^ ids)[:2]}
            self._tell(f"missing {sorted(ids - got)}, too many {sorted(got - ids)}: {shown!s:.300}")

    def _insert(self) -> None:
        frame = self._frame(self._new(2))
        if self._chance.random() < 0.5:
            self._acid.insert(self.name, frame)
        else:
            frame.createOrReplaceTempView("given_nested")
            self._sql(f"INSERT INTO {self.name} SELECT * FROM given_nested")

    def _update_field(self) -> None:
        where, ids = self._condition()
        model, hit = self._chance.choice(self._models), self._chance.randrange(100, 200)
        field = self._chance.choice(("a", "c"))
        name = {"a": "st.a", "c": "st.i.c"}[field]
        value = sql_of(self._kind, model)
        self._statement = f"update {name} = {value} where {where}"
        if self._chance.random() < 0.5:
            self._expect(self._acid.update(self.name, {name: value, "hit": str(hit)}, where), len(ids))
        else:
            self._sql(f"UPDATE {self.name} SET {name} = {value}, hit = {hit} WHERE {where}")
        self._rows |= {number: self._rows[number]._replace(hit=hit, **{field: model}) for number in ids}

    def _update_whole(self) -> None:
        """The struct by its fields in another order, or an array and a map by each other's values."""
        where, ids = self._condition()
        some = tuple(self._chance.sample(self._models, 2))
        if self._chance.random() < 0.5:
            items = (("x", some[0]), ("z", some[1]))
            self._sql(f"UPDATE {self.name} SET ar = {self._array(some)}, mp = {self._map(items)} WHERE {where}")
            self._rows |= {number: self._rows[number]._replace(elements=some, items=items) for number in ids}
        else:
            more = "".join(f", 'e{at}', st.e{at}" for at in range(self._added))
            swapped = f"named_struct('i', named_struct('d', id, 'c', st.a){more}, 'b', st.b, 'a', st.i.c)"
            self._sql(f"UPDATE {self.name} SET st = {swapped} WHERE {where}")
            self._rows |= {
                number: self._rows[number]._replace(a=self._rows[number].c, c=self._rows[number].a) for number in ids
            }

    def _delete(self) -> None:
        where, ids = self._condition()
        if self._chance.random() < 0.5:
            self._statement = f"delete where {where}"
            self._expect(self._acid.delete(self.name, where), len(ids))
        else:
            self._sql(f"DELETE FROM {self.name} WHERE {where}")
        for number in ids:
            del self._rows[number]

    def _merge(self) -> None:
        """By a field, an element or a map's value."""
        kind, chance = self._kind, self._chance
        by = keys(kind, kind)
        if by is None:
            return
        there = [row.a for row in self._rows.values() if row.a is not None]
        some = chance.sample(self._models[1:], min(3, len(self._models) - 1)) + there[:2]
        given = dict(enumerate({by[0](model): model for model in some}.values(), 1))
        place, of = chance.choice(
            (
                ("t.st.a", lambda row: row.a), ("t.st.i.c", lambda row: row.c),
                ("get(t.ar, 0)", lambda row: row.elements[0] if row.elements else None),
                ("t.mp['x']", lambda row: dict(row.items or ()).get("x")),
            )
        )  # fmt: skip
        matches = {
            number: n for n, model in given.items() for number, row in self._rows.items()
            if self._equal(of(row), model)
        }  # fmt: skip
        values = ", ".join(f"({n}, named_struct('v', {sql_of(kind, model)}))" for n, model in given.items())
        source = self._spark.sql(f"SELECT * FROM VALUES {values} AS s(n, w)")
        inserts = chance.random() < 0.5
        self._statement = f"merge on {place} = s.w.v"
        builder = self._acid.merge(self.name, source, f"{place} = s.w.v").whenMatchedUpdate(
            set={"hit": "s.n + 500", "st.i.c": "s.w.v"}
        )
        start = self._next = self._next + 100
        self._next += len(given)
        if inserts:
            nulls = "".join(f", 'e{at}', cast(NULL AS int)" for at in range(self._added))
            number = f"s.n + {start}"
            inner = f"named_struct('c', s.w.v, 'd', {number}){nulls}"
            made = {
                "id": number, "hit": "s.n", "ar": "array(s.w.v)", "mp": "NULL",
                "st": f"named_struct('a', s.w.v, 'b', concat('b', {number}), 'i', {inner})",
                **({"p": f"({number}) % 2"} if self._form else {}),
            }  # fmt: skip
            builder = builder.whenNotMatchedInsert(values=made)
        counts = builder.execute()
        for number, n in matches.items():  # type: ignore[assignment]
            self._rows[number] = self._rows[number]._replace(hit=n + 500, c=given[n])  # type: ignore[index]
        new = {n: model for n, model in given.items() if n not in matches.values()} if inserts else {}
        nothing = (None,) * self._added
        self._rows |= {n + start: _Row(n, model, model, (model,), None, nothing) for n, model in new.items()}
        if tuple(counts) != (len(new), len(matches), 0):
            self._tell(f"merge says {tuple(counts)}, not {(len(new), len(matches), 0)}")

    def _widen(self) -> None:
        """The struct gets another field, by ALTER."""
        self._added += 1
        self._rows = {number: row._replace(more=(*row.more, None)) for number, row in self._rows.items()}
        self._sql(f"ALTER TABLE {self.name} CHANGE COLUMN st st {self._struct}")

    def _evolve(self) -> None:
        """Rows with another field of the struct, which are merged or inserted with schema evolution."""
        chance = self._chance
        self._added += 1
        self._rows = {number: row._replace(more=(*row.more, None)) for number, row in self._rows.items()}
        ids = chance.sample(sorted(self._rows), min(2, len(self._rows)))
        before = dict(self._rows)
        new = self._new(1)
        changed = {
            of: self._rows[of]._replace(hit=7, a=chance.choice(self._models), more=(*before[of].more[:-1], of))
            for of in ids
        }
        if chance.random() < 0.5:
            self._frame(new).createOrReplaceTempView("given_nested")
            self._sql(f"INSERT WITH SCHEMA EVOLUTION INTO {self.name} SELECT * FROM given_nested")
            return
        self._frame(changed | new).createOrReplaceTempView("given_nested")
        self._sql(
            f"MERGE WITH SCHEMA EVOLUTION INTO {self.name} AS t USING given_nested AS s ON t.id = s.st.i.d "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        self._rows |= changed

    def _compact(self) -> None:
        kind = self._chance.choice(("minor", "major"))
        self._statement = f"compact {kind}"
        compact_table(self._spark, self._acid, self.name, kind)
