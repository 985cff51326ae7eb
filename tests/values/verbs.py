"""A walk of verbs: every way to write to a table by a key of some type, beside a model of its rows in Python.

The key is a partition column, a bucket column, or a plain one. After each statement the rows are compared with the
model, to the last bit, and which rows a condition means is asked of plain Spark as well, on a copy.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.catalog.partition_values import java_text
from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table
from tests.values.findings import Findings
from tests.values.rows.compared import can_be_merged, compared, keys
from tests.values.rows.conditions import Condition, Conditions
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import INTEGER_BITS, is_text, sql_of, stored
from tests.values.rows.literals import day_text, quoted_text, time_text
from tests.values.rows.tables import DUMMY, FORMS, KEYS, can_be_key, stored_as
from tests.values.sessions.settings import Settings
from tests.values.sessions.under import under

KINDS_OF_TABLE = ("partitions", "partitions", "buckets", "columns", *FORMS)
_COLUMNS = ("id", "hit", "k")
_LOADED = 14


class _Row(NamedTuple):
    hit: int
    k: Any


class Verbs:
    """Statements on tables of one server, each table with a key of a type."""

    def __init__(self, spark: SparkSession, uri: str, findings: Findings | None = None) -> None:
        self.findings = findings or Findings()
        self._spark = spark
        self._acid = hive_acid.spark.session(spark, uri)
        self._plain = hive_acid.spark.session(spark, uri, settings=DUMMY)
        self._acid.create_database("v", if_not_exists=True)

    def close(self) -> None:
        self._acid.close()
        self._plain.close()

    def step(
        self,
        seed: int,
        form: str | None = None,
        kind: str | None = None,
        statements: int = 10,
        settings: Settings | None = None,
    ) -> None:
        """Some statements on a new table.

        Of conditions, to which `settings` may give another meaning, those are taken then on which plain Spark and the
        model agree.
        """
        with under(self._spark, settings or {}):
            self._step(random.Random(seed), seed, form, kind, statements, by_model=not settings)

    def _step(
        self, chance: random.Random, seed: int, form: str | None, kind: str | None, statements: int, *, by_model: bool
    ) -> None:
        form = form or chance.choice(KINDS_OF_TABLE)
        kind = kind or chance.choice(KEYS)
        acid = self._plain if form.startswith("plain") else self._acid
        told = _Told(
            self._spark, acid, f"v.{form.replace(' ', '_')}_{seed}", form, kind, chance, self.findings, by_model
        )
        told.create()
        for _ in range(statements):
            if not told.one():
                break
        acid.drop_table(told.name)


class _Told:
    """One table, the model of its rows by id, and the statements that change both."""

    def __init__(
        self,
        spark: SparkSession,
        acid: AcidSession,
        name: str,
        form: str,
        kind: str,
        chance: random.Random,
        findings: Findings,
        by_model: bool,
    ) -> None:
        self.name, self._by_model = name, by_model
        self._spark, self._acid, self._form, self._kind = spark, acid, form, kind
        self._chance, self._findings = chance, findings
        self._rows: dict[int, _Row] = {}
        self._next = 0
        self._is_partitioned = form not in ("buckets", "columns")
        self._models = [value.model for value in stored(kind) if not self._is_partitioned or can_be_key(value.model)]
        self._statement = ""

    def create(self) -> None:
        columns = {"id": "int", "hit": "int"}
        by: dict[str, Any] = {}
        if self._is_partitioned:
            by = {"partitioned_by": {"k": self._kind}, "properties": FORMS.get(self._form)}
        else:
            columns["k"] = self._kind
        if self._form == "buckets":
            by = {"clustered_by": ["k"], "buckets": 3}
        self._acid.create_table(self.name, columns, stored_as=stored_as(self._form), **by)
        self._acid.insert(self.name, self._frame(self._new(_LOADED)))
        self._statement = "load"
        self._is_right()

    def one(self) -> bool:
        """One statement; whether the table is as it ought to be then."""
        verbs: list[Callable[[], None]] = [self._insert]
        if not self._form.startswith("plain"):
            verbs += [self._overwrite]
            if self._is_partitioned:
                verbs += [self._insert_partition, self._overwrite_partition, self._truncate, self._drop]
                verbs += [self._add, self._refused]
        if self._form not in FORMS:
            verbs += [self._update, self._update, self._delete, self._merge, self._merge, self._merge, self._replace]
            verbs += [self._move, self._sink, self._compact]
        if self._form.startswith("insert only") and not self._form.endswith("json"):
            verbs += [self._compact]
        verb = self._chance.choice(verbs)
        self._statement = verb.__name__
        before = dict(self._rows)
        try:
            verb()
            return self._is_right()
        except _SkippedError:
            self._rows = before
            return True
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            self._tell(f"{type(error).__name__}: {' '.join(lines[:3])[:500]}")
            return False

    # --- what there is -------------------------------------------------------------------------

    def _new(self, count: int, models: Sequence[Any] | None = None) -> dict[int, _Row]:
        """New rows, which the model has from now on."""
        made = {}
        for _ in range(count):
            self._next += 1
            made[self._next] = _Row(self._chance.randrange(100), self._chance.choice(models or self._models))
        self._rows |= made
        return made

    def _frame(self, rows: Mapping[int, _Row], columns: Sequence[str] = _COLUMNS) -> DataFrame:
        values = [f"({number}, {row.hit}, {sql_of(self._kind, row.k)})" for number, row in rows.items()] or [
            f"(0, 0, {sql_of(self._kind, None)})"
        ]
        frame = self._spark.sql(f"SELECT * FROM VALUES {', '.join(values)} AS v({', '.join(_COLUMNS)})")
        return frame.where("id > 0").select(*columns)

    def _is_right(self) -> bool:
        found = rows_of(self._acid.table(self.name).select(*_COLUMNS), ["int", "int", self._kind])
        got = sorted(repr((number, hit, exactly(k))) for number, hit, k in found)
        ought = sorted(repr((number, row.hit, exactly(row.k))) for number, row in self._rows.items())
        self._findings.compared["verbs"] += len(ought)
        if got != ought:
            missing, more = [of for of in ought if of not in got], [of for of in got if of not in ought]
            self._tell(f"rows are wrong: missing {missing[:4]}, too many {more[:4]} ({len(ought)} and {len(got)})")
        return got == ought

    def _tell(self, words: str) -> None:
        condition = Condition(self._statement, frozenset({"k"}), None)
        self._findings.tell("verbs", self.name, condition, {"k": self._kind}, words)

    def _expect(self, what: str, got: int, ought: int) -> None:
        if got != ought:
            self._tell(f"{what}: {got} rows are said to be changed, not {ought}")

    def _condition(self) -> tuple[str, set[int]]:
        """A condition of which the model knows what it means, as plain Spark does, and the ids that it is true for."""
        makes = Conditions(self._chance, {"k": self._kind, "id": "int"})
        for _ in range(20):
            made = makes.some() if self._chance.random() < 0.3 else makes.leaf("k")
            if made.truth is None:
                continue
            try:
                rows = {number: {"id": number, "k": row.k} for number, row in self._rows.items()}
                ids = {number for number, row in rows.items() if made.truth(row) is True}
            except KeyError:
                continue
            if self._kind.startswith("char") and not self._by_model and re.search(r"[\\\"]|''|r'", made.text):
                continue  # Texts that settings give another meaning; plain Spark has another rule for a char.
            if not self._kind.startswith("char"):
                try:
                    found = self._frame(self._rows).where(made.text).select("id").collect()
                except Exception:
                    continue  # Spark refuses it
                if not self._by_model and {of[0] for of in found} != ids:
                    continue
                self._findings.judge("plain Spark", "rows", made, {"k": self._kind}, rows, ids, {of[0] for of in found})
            return made.text, ids
        raise _SkippedError

    def _models_there(self) -> list[Any]:
        return list({repr(exactly(row.k)): row.k for row in self._rows.values()}.values())

    def _in_partition(self, model: Any) -> set[int]:
        return {number for number, row in self._rows.items() if exactly(row.k) == exactly(model)}

    def _value(self, model: Any) -> str:
        """A partition's value as SQL has it in PARTITION."""
        kind, chance = self._kind, self._chance
        if model is None:
            return chance.choice(("NULL", "null"))
        forms = [sql_of(kind, model)]
        if is_text(kind):
            is_plain = "${" not in model and (self._by_model or not {*model} & {*"\\'"})
            forms += [quoted_text(model)] if is_plain else []
        elif kind in INTEGER_BITS:
            forms += [str(model), f"'{model}'", f"'{'-' if model < 0 else ''}0{abs(model)}'", f"{model}L"]
            forms = forms[: -1 if model == -(2**63) else None]
        elif kind.startswith("decimal"):
            forms += [f"{model:f}BD", f"'{model:f}'", f"'{model:f}{'0' if '.' in f'{model:f}' else '.0'}'"]
        elif kind in ("float", "double"):
            forms += [f"'{java_text(model, is_single=kind == 'float')}'"]
        elif kind == "boolean":
            forms += [str(model).lower(), f"'{str(model).upper()}'", f"'{int(model)}'"]
        elif kind == "date":
            forms += [f"date'{day_text(model)}'", f"'{day_text(model)}'"]
        elif kind == "timestamp":
            forms += [f"timestamp'{time_text(model)}'", f"'{time_text(model)}'"]
        elif kind == "binary":
            forms += [f"X'{model.hex()}'"]
        return chance.choice(forms)

    # --- statements ----------------------------------------------------------------------------

    def _sql(self, text: str) -> DataFrame:
        self._statement = text
        return self._acid.sql(text)

    def _insert(self) -> None:
        rows = self._new(self._chance.choice((1, 3, 8)))
        frame = self._frame(rows)
        if self._chance.random() < 0.5 or self._form.startswith("plain"):
            self._expect("insert", self._acid.insert(self.name, frame), len(rows))
        else:
            frame.createOrReplaceTempView("given")
            self._sql(f"INSERT INTO {self.name} SELECT * FROM given")

    def _insert_partition(self) -> None:
        rows = self._new(2, [self._chance.choice(self._models)])
        self._frame(rows).createOrReplaceTempView("given")
        value = self._value(next(iter(rows.values())).k)
        self._sql(f"INSERT INTO {self.name} PARTITION (k = {value}) SELECT id, hit FROM given")

    def _overwrite(self) -> None:
        models = self._chance.sample(self._models, min(2, len(self._models)))
        before = dict(self._rows)
        rows = self._new(3, models)
        if self._is_partitioned:
            self._rows = before
            for row in rows.values():
                for number in self._in_partition(row.k):
                    del self._rows[number]
            self._rows |= rows
        else:
            self._rows = dict(rows)
        frame = self._frame(rows)
        if self._chance.random() < 0.5:
            self._expect("overwrite", self._acid.overwrite(self.name, frame), len(rows))
        else:
            frame.createOrReplaceTempView("given")
            partition = " PARTITION (k)" if self._is_partitioned and self._chance.random() < 0.5 else ""
            self._sql(f"INSERT OVERWRITE {self.name}{partition} SELECT * FROM given")

    def _overwrite_partition(self) -> None:
        model = self._chance.choice(self._models)
        for number in self._in_partition(model):
            del self._rows[number]
        rows = self._new(self._chance.choice((0, 2)), [model])
        frame = self._frame(rows, ("id", "hit"))
        if self._chance.random() < 0.3 and self._kind not in ("date", "timestamp"):
            self._statement = f"overwrite(partition={model!r})"
            self._expect("overwrite", self._acid.overwrite(self.name, frame, partition={"k": model}), len(rows))
        else:
            frame.createOrReplaceTempView("given")
            value = self._value(model)
            self._sql(f"INSERT OVERWRITE TABLE {self.name} PARTITION (k = {value}) SELECT id, hit FROM given")

    def _truncate(self) -> None:
        self._remove("TRUNCATE TABLE {} PARTITION (k = {})")

    def _drop(self) -> None:
        self._remove("ALTER TABLE {} DROP PARTITION (k = {})")

    def _add(self) -> None:
        """A partition that is there stays as it is, and a new one is empty."""
        value = self._value(self._chance.choice(self._models))
        self._sql(f"ALTER TABLE {self.name} ADD IF NOT EXISTS PARTITION (k = {value})")

    def _refused(self) -> None:
        """A value that is none of the key's type, or a statement that is not understood: nothing happens."""
        value = self._chance.choice(_WRONG.get(self._kind, ("'x'",)))
        there = self._value(self._chance.choice(self._models))
        statements = [
            f"INSERT INTO {self.name} PARTITION (k = {value}) SELECT 0, 0",
            f"INSERT OVERWRITE {self.name} PARTITION (k = {value}) SELECT 0, 0",
            f"INSERT OVERWRITE TABLE {self.name} PARTITION (k = {value}) IF NOT EXISTS SELECT 0, 0",
            f"TRUNCATE TABLE {self.name} PARTITION (k = {value})",
            f"ALTER TABLE {self.name} DROP PARTITION (k = {value})",
            f"ALTER TABLE {self.name} ADD PARTITION (k = {value})",
            f"ALTER TABLE {self.name} PARTITION (k = {there}) RENAME TO PARTITION (k = {value})",
        ]
        if self._kind in ("string", "binary"):
            statements = [f"ALTER TABLE {self.name} DROP PARTITION (l <= {there})"]
        statement = self._chance.choice(statements)
        try:
            self._sql(statement)
        except HiveAcidError:
            return
        self._tell("is not refused")

    def _remove(self, statement: str) -> None:
        if not self._rows:
            raise _SkippedError
        model = self._chance.choice(self._models_there())
        for number in self._in_partition(model):
            del self._rows[number]
        self._sql(statement.format(self.name, self._value(model)))

    def _update(self) -> None:
        where, ids = self._condition()
        hit = self._chance.randrange(100, 200)
        self._statement = f"update hit where {where}"
        if self._chance.random() < 0.5:
            self._expect("update", self._acid.update(self.name, {"hit": str(hit)}, where), len(ids))
        else:
            self._sql(f"UPDATE {self.name} SET hit = {hit} WHERE {where}")
        self._rows |= {number: self._rows[number]._replace(hit=hit) for number in ids}

    def _move(self) -> None:
        """The key itself is assigned: rows go to another partition."""
        where, ids = self._condition()
        if self._form == "buckets" and not ids:
            raise _SkippedError
        model = self._chance.choice(self._models)
        self._statement = f"update k = {model!r} where {where}"
        self._expect("update", self._acid.update(self.name, {"k": sql_of(self._kind, model)}, where), len(ids))
        self._rows |= {number: self._rows[number]._replace(k=model) for number in ids}

    def _delete(self) -> None:
        where, ids = self._condition()
        self._statement = f"delete where {where}"
        if self._chance.random() < 0.5:
            self._expect("delete", self._acid.delete(self.name, where), len(ids))
        else:
            self._sql(f"DELETE FROM {self.name} WHERE {where}")
        for number in ids:
            del self._rows[number]

    def _replace(self) -> None:
        """The rows that a condition is true for are replaced by others."""
        where, ids = self._condition()
        models = [self._rows[number].k for number in ids]
        if "id" in re.findall(r"\w+", where.lower()) or not ids:
            raise _SkippedError
        for number in ids:
            del self._rows[number]
        rows = self._new(self._chance.choice((0, 2)), models)
        frame = self._frame(rows)
        self._statement = f"overwrite where {where}"
        if self._chance.random() < 0.5:
            self._expect("overwrite", self._acid.overwrite(self.name, frame, where=where), len(rows))
        else:
            frame.createOrReplaceTempView("given")
            self._sql(f"INSERT INTO {self.name} REPLACE WHERE {where} SELECT * FROM given")

    def _source(self, count: int, *, with_null: bool = False) -> tuple[str, dict[int, Any], DataFrame]:
        """Rows with keys that are all different, of the key's type or one that compares with it: the type, the keys by
        number, and a frame of both.
        """
        others = [of for of in KEYS if of != self._kind and can_be_merged(self._kind, of)]
        of = self._chance.choice(others) if others and self._chance.random() < 0.3 else self._kind
        by = keys(self._kind, of)
        if by is None:
            raise _SkippedError
        models = [value.model for value in stored(of)[1:] if not self._is_partitioned or can_be_key(value.model)]
        if of == self._kind and self._rows:
            models += [k for k in self._models_there() if k is not None] * 3
        given = self._chance.choices(models, k=count)
        distinct = list({by[1](model): model for model in given}.values())
        numbered: dict[int, Any] = dict(enumerate([*distinct, *([None] if with_null else [])], 1))
        rows = ", ".join(f"({number}, {sql_of(of, model)})" for number, model in numbered.items())
        return of, numbered, self._spark.sql(f"SELECT * FROM VALUES {rows} AS s(n, v)")

    def _merge(self) -> None:
        of, given, source = self._source(self._chance.choice((1, 4, 12)), with_null=self._chance.random() < 0.3)
        operator = self._chance.choice(("=", "=", "=", "<=>"))
        if self._kind.startswith("char") and operator == "<=>":
            operator = "="
        more, holds = self._chance.choice(_AND_ON)
        matches = {
            number: n
            for n, model in given.items()
            for number, row in self._rows.items()
            if compared(self._kind, row.k, operator, of, model) and holds(number, n)
        }
        on = f"t.k {operator} s.v" if self._chance.random() < 0.8 else f"s.v {operator} t.k"
        on = more.format(on)
        how = self._chance.choice(("update", "delete", "move"))
        if how == "move" and of != self._kind:
            how = "update"
        inserts = of == self._kind and self._chance.random() < 0.6
        by_source = self._chance.choice((None, None, "update", "delete"))
        self._statement = f"merge on {on} ({of}) {how} {inserts=} {by_source=}: {list(given.values())!r:.200}"
        in_sql = self._chance.random() < 0.4
        clauses = [{
            "delete": "WHEN MATCHED THEN DELETE",
            "move": "WHEN MATCHED THEN UPDATE SET hit = s.n + 500, t.k = s.v",
            "update": "WHEN MATCHED THEN UPDATE SET t.hit = n + 500",
        }[how]]  # fmt: skip
        builder = self._acid.merge(self.name, source, on)
        if how == "delete":
            builder = builder.whenMatchedDelete()
        else:
            builder = builder.whenMatchedUpdate(set={"hit": "s.n + 500", **({"k": "s.v"} if how == "move" else {})})
        if inserts:
            start = self._next = self._next + 100
            builder = builder.whenNotMatchedInsert(values={"id": f"s.n + {start}", "hit": "s.n", "k": "s.v"})
            self._next += len(given)
            clauses += [f"WHEN NOT MATCHED THEN INSERT (k, id, hit) VALUES (v, s.n + {start}, s.n)"]
        if by_source == "delete":
            builder = builder.whenNotMatchedBySourceDelete("t.id % 3 = 0")
            clauses += ["WHEN NOT MATCHED BY SOURCE AND t.id % 3 = 0 THEN DELETE"]
        elif by_source == "update":
            builder = builder.whenNotMatchedBySourceUpdate(set={"hit": "t.hit + 1"})
            clauses += ["WHEN NOT MATCHED BY SOURCE THEN UPDATE SET hit = hit + 1"]
        if in_sql:
            source.createOrReplaceTempView("given")
            text = f"MERGE INTO {self.name} AS t USING given AS s ON {on} {' '.join(clauses)}"
            (found,) = self._acid.sql(text).collect()
            counts = (found.num_inserted_rows, found.num_updated_rows, found.num_deleted_rows)
        else:
            counts = builder.execute()
        updated = deleted = 0
        for number, row in dict(self._rows).items():
            if number in matches and how == "delete":
                deleted += 1
                del self._rows[number]
            elif number in matches:
                updated += 1
                n = matches[number]
                self._rows[number] = _Row(n + 500, given[n] if how == "move" else row.k)
            elif by_source == "delete" and number % 3 == 0:
                deleted += 1
                del self._rows[number]
            elif by_source == "update":
                updated += 1
                self._rows[number] = row._replace(hit=row.hit + 1)
        new = {n: k for n, k in given.items() if n not in matches.values()} if inserts else {}
        self._rows |= {n + start: _Row(n, k) for n, k in new.items()}
        ought = (len(new), updated, deleted)
        if tuple(counts) != ought:
            self._tell(f"merge says {tuple(counts)}, not {ought}")

    def _compact(self) -> None:
        """The files change, and no row does."""
        kind = self._chance.choice(("minor", "major"))
        self._statement = f"compact {kind}"
        compact_table(self._spark, self._acid, self.name, kind)

    def _sink(self) -> None:
        """A batch of an upsert stream by the key."""
        of, given, source = self._source(4)
        if of != self._kind:
            raise _SkippedError
        matches = {
            number: n
            for n, model in given.items()
            for number, row in self._rows.items()
            if compared(self._kind, row.k, "=", of, model)
        }
        if len(set(matches.values())) < len(matches):
            raise _SkippedError  # it gives all of them one id, which would be no key of the model's
        start = self._next = self._next + 100
        self._next += len(given)
        batch = source.select((F.col("n") + start).alias("id"), F.col("n").alias("hit"), F.col("v").alias("k"))
        self._acid.sink(self.name, query=f"q{start}", mode="upsert", keys=["k"])(batch, 0)
        for number in matches:
            del self._rows[number]
        self._rows |= {n + start: _Row(n, k) for n, k in given.items()}


_AND_ON: Sequence[tuple[str, Callable[[int, int], bool]]] = (
    *([("{0}", lambda number, n: True)] * 5),
    ("{0} AND t.id % 2 = 0", lambda number, n: number % 2 == 0),
    ("t.id > 5 AND {0}", lambda number, n: number > 5),
    ("{0} AND s.n > 1", lambda number, n: n > 1),
    ("({0}) IS TRUE", lambda number, n: True),
    ("coalesce({0}, false)", lambda number, n: True),
    ("{0} AND t.id <> s.n", lambda number, n: number != n),
    ("NOT (NOT ({0}))", lambda number, n: True),
    ("{0} AND 1 = 0", lambda number, n: False),
)
"""What stands beside the keys in a MERGE's ON, and which rows by number still match which of the source."""

_WRONG: Mapping[str, tuple[str, ...]] = {
    "tinyint": ("'x'", "128", "'-129'", "1.5", "1e0", "true", "date'2024-01-01'"),
    "smallint": ("'x'", "32768", "'1.0'", "X'31FF'"),
    "int": ("'x'", "2147483648", "'1e3'", "'0x10'", "'١'"),
    "bigint": ("'x'", "9223372036854775808", "9223372036854775808D", "'1L'"),
    "decimal(5,2)": ("'x'", "1000", "'999.995'", "'NaN'", "1e3D"),
    "decimal(38,18)": ("'x'", "'1e20'", "true"),
    "decimal(38,38)": ("'x'", "1", "'-1.0'"),
    "boolean": ("'x'", "2", "'tr'", "1.0"),
    "varchar(6)": ("'1234567'", "1234567"),
    "char(4)": ("'12345'", "'   xy'", "12345"),
    "date": ("'x'", "'2024-02-30'", "'24-1-1'", "20240101", "'2024-01-01x'"),
    "timestamp": ("'x'", "'2024-02-30 00:00:00'", "'2024-01-01 25:00:00'", "1704067200"),
    "float": ("'x'", "'1,5'", "true"),
    "double": ("'x'", "'1e'", "'0x1p3'", "date'2024-01-01'"),
}
"""Constants that are no value of a partition key of a type."""


class _SkippedError(Exception):
    """A statement that says nothing here."""
