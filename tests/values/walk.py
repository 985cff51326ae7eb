"""A walk: random conditions on random tables, each asked in all ways.

Plain Spark evaluates all conditions of a step as columns of one frame over the copy, our reads without skipping as
columns of one frame over the table. With skipping each condition goes where it decides what is read: to a filter, a
statement of SQL, an UPDATE, a DELETE. Beside that files and row groups are asked which they would leave out, for all
conditions, without Spark.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow.orc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.predicates import predicate_of, restricted
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.skipping import pruned
from tests.values.findings import Findings
from tests.values.rows.compared import can_be_merged, compared, keys
from tests.values.rows.conditions import Condition, Conditions
from tests.values.rows.hostile import sql_of, stored
from tests.values.rows.tables import COPY, KEYED, KINDS, LAYOUTS, Placed, Tables
from tests.values.sessions.row_groups import RowGroups
from tests.values.sessions.settings import Settings
from tests.values.sessions.under import under

_MOST_FILES = 12
"""Row groups are asked of tables with at most so many files."""


class _GivenUpError(Exception):
    """Leaves a transaction, which is rolled back."""


class Walk:
    """One walk over the tables of one server."""

    def __init__(self, spark: SparkSession, uri: str, directory: Path) -> None:
        self.findings = Findings()
        self._spark = spark
        self._tables = Tables(spark, uri, directory)
        self._places: dict[str, dict[int, tuple[str, int]]] = {}
        self._groups = RowGroups(spark)
        self._by_model = True

    def close(self) -> None:
        self._tables.close()

    def step(
        self,
        seed: int,
        layout: str | None = None,
        conditions: int = 120,
        asked: int = 12,
        settings: Settings | None = None,
    ) -> None:
        """Some conditions on a table; `asked` of them by statements, the rest without.

        Under `settings`, which may give them another meaning, only plain Spark says what is right.
        """
        self._by_model = not settings
        with under(self._spark, settings or {}):
            self._step(random.Random(seed), layout, conditions, asked)

    def _step(self, chance: random.Random, layout: str | None, conditions: int, asked: int) -> None:
        if layout is None:
            layout = chance.choice(LAYOUTS if chance.random() < 0.7 else KEYED)
        placed = self._tables.table(layout)
        is_ansi = self._spark.conf.get("spark.sql.ansi.enabled") == "true"
        makes = Conditions(chance, placed.kinds, is_ansi=is_ansi)
        if " by " in layout and chance.random() < 0.7:
            key = next(name for name, kind in KINDS.items() if kind == layout.partition(" by ")[2])
            makes = Conditions(chance, {key: placed.kinds[key], "v_int": "int"}, is_ansi=is_ansi)
        some_conditions = [makes.some() for _ in range(conditions)]
        if not self._by_model:
            some_conditions = [_in_words(one) for one in some_conditions]
        known = self._truths(placed, some_conditions)
        self._without_skipping(placed, known)
        others = (makes.some() for _ in range(conditions * 4 if self._by_model else 0))
        more = {one: ids for one in others if (ids := _modelled(one, placed))}
        self._without_spark(placed, known | more)
        some = chance.sample(list(known), min(asked, len(known)))
        self._selected(chance, placed, {one: known[one] for one in some})
        if placed.changes and asked:
            self._changed(chance, placed, {one: known[one] for one in chance.sample(list(known), min(4, len(known)))})
            self._merged(chance, placed)

    # --- what is right -------------------------------------------------------------------------

    def _truths(self, placed: Placed, conditions: Iterable[Condition]) -> dict[Condition, frozenset[int]]:
        """The ids of the rows for which each condition is true, by plain Spark and by the model."""
        given = list(conditions)
        by_spark = self._evaluated(self._spark.table(COPY), given)
        known = {}
        for condition in given:
            found = by_spark.get(condition)
            model = _modelled(condition, placed) if self._by_model else None
            if found is None and not condition.by_hive:
                continue
            if found is not None and model is not None and not condition.by_hive:
                ids = found & placed.rows.keys()
                self.findings.judge("plain Spark", COPY, condition, placed.kinds, placed.rows, model, ids)
            if model is not None:
                known[condition] = model
            elif found is not None and not condition.by_hive:
                known[condition] = found & placed.rows.keys()
        return known

    def _evaluated(self, frame: DataFrame, conditions: Sequence[Condition]) -> dict[Condition, frozenset[int]]:
        """The ids for which each is true, all in one query; those that Spark refuses are left out."""
        try:
            columns = [_expression(condition, at).alias(f"is_{at}") for at, condition in enumerate(conditions)]
            table = frame.select("id", *columns).toArrow()
        except Exception:
            if len(conditions) == 1:
                return {}
            half = len(conditions) // 2
            return self._evaluated(frame, conditions[:half]) | self._evaluated(frame, conditions[half:])
        ids = table.column("id").to_pylist()
        return {
            condition: frozenset(
                of for of, is_true in zip(ids, table.column(at + 1).to_pylist(), strict=True) if is_true
            )
            for at, condition in enumerate(conditions)
        }

    # --- reading -------------------------------------------------------------------------------

    def _without_skipping(self, placed: Placed, known: dict[Condition, frozenset[int]]) -> None:
        frame: DataFrame = (self._tables.plain if placed.is_plain else self._tables.off).table(placed.name)
        if placed.repeats > 1:
            frame = frame.where("id >= 0").dropDuplicates(["id"])
        # As a column of a frame, and not in a filter or statement of ours, such a condition goes by Spark's rules.
        asked = {condition: expected for condition, expected in known.items() if not condition.by_hive}
        found = self._evaluated(frame, list(asked))
        for condition, expected in asked.items():
            if condition in found:
                self._judge("skipping off", placed, condition, expected, found[condition])
            else:
                self.findings.tell("skipping off", placed.name, condition, placed.kinds, "Spark refuses it")

    def _selected(self, chance: random.Random, placed: Placed, known: dict[Condition, frozenset[int]]) -> None:
        """With skipping, by filters and statements, all in one query."""
        acid, parts, ways = self._tables.plain if placed.is_plain else self._tables.on, [], []
        for at, condition in enumerate(known):
            given = condition.given(as_column=chance.random() < 0.3)
            way = chance.choice(("filter", "where", "sql", "sql", "parameters", "frame"))
            try:
                if way == "filter":
                    frame = acid.table(placed.name).filter(given)
                elif way == "frame":
                    frame = self._of_frame(chance, acid.table(placed.name), given)
                elif way == "parameters" and condition.with_parameters:
                    text, values = condition.with_parameters
                    frame = acid.sql(f"SELECT id FROM {placed.name} WHERE {text}", dict(values))
                elif way == "where" or isinstance(given, Column):
                    frame = acid.table(placed.name, where=given)
                else:
                    number = chance.randrange(len(_QUERIES))
                    query = _QUERIES[number]
                    if placed.repeats > 1 and query.count("{0}") > 1:
                        query = _QUERIES[0]
                    way = f"query {number}"
                    frame = acid.sql(query.format(placed.name, given))
                parts.append(frame.select(F.lit(at).alias("at"), "id").groupBy("at", "id").count())
            except Exception as error:
                self.findings.tell(way, placed.name, condition, placed.kinds, f"{given} -> {_words(error)}")
            ways.append(way)
        if not parts:
            return
        try:
            rows = reduce(DataFrame.unionAll, parts).collect()
        except Exception as error:
            self.findings.tell(
                "select", placed.name, next(iter(known)), placed.kinds, f"of {len(known)}: {_words(error)}"
            )
            return
        for at, (condition, expected) in enumerate(known.items()):
            got = {row["id"]: row["count"] for row in rows if row["at"] == at}
            self._judge(ways[at], placed, condition, expected, got)
            if cut := [of for of, count in got.items() if count != placed.repeats]:
                self.findings.tell(ways[at], placed.name, condition, placed.kinds, f"not all rows of ids {cut[:3]}")

    def _of_frame(self, chance: random.Random, frame: DataFrame, given: Column | str) -> DataFrame:
        """What is asked of a frame or of a view of it."""
        how = chance.choice(("alias", "twice", "selected", "view", "formatted", "renamed"))
        if how == "alias":
            return frame.alias("x").where(given)
        if how == "twice":
            return frame.where("id IS NOT NULL").filter(given).filter("id > -10")
        if how == "selected" or isinstance(given, Column):
            return frame.select("*").filter(given)
        if how == "renamed":
            return frame.withColumnRenamed("hit", "hits").filter(given)
        if how == "formatted" and "{" not in given and "}" not in given:
            return self._spark.sql(f"SELECT id FROM {{given}} WHERE {given}", given=frame)
        frame.createOrReplaceTempView("values_view")
        return self._spark.sql(f"SELECT id FROM values_view WHERE {given}")

    def _without_spark(self, placed: Placed, known: dict[Condition, frozenset[int]]) -> None:
        """Which files and row groups a statement would leave out."""
        acid = self._tables.on
        table = acid.connection.table(*placed.name.split("."))
        if not table.is_full_acid:
            return  # of others Spark's own readers decide what they read
        names = [column.name for column in table.columns]
        with acid.snapshot():
            state = acid._context.state(acid._blocks.current().transaction, table)  # type: ignore[union-attr]
            places = self._places.get(placed.name) or self._located(placed, state)
            self._places[placed.name] = places
            few = len({path for path, _ in places.values()}) <= _MOST_FILES
            for at, (condition, expected) in enumerate(known.items()):
                try:
                    said = predicate_of(condition.given(as_column=at % 2 == 1), table, ask=ask_of(self._spark))
                    if said is None:
                        continue
                    paths = set(_paths(pruned(state, said)))
                    kept: set[int] = {of for of, (path, _) in places.items() if path in paths}
                    self._judge("files", placed, condition, expected & kept | expected, expected & kept)
                    of_row = restricted(said, names)
                    if few and of_row is not None:
                        self._ask_groups(placed, condition, expected, of_row, names, places)
                except Exception as error:
                    self.findings.tell("files", placed.name, condition, placed.kinds, _words(error))

    def _ask_groups(
        self, placed: Placed, condition: Condition, expected: frozenset[int], predicate: Any, names: list[str],
        places: dict[int, tuple[str, int]],
    ) -> None:  # fmt: skip
        kept: set[int] = set()
        for file in {path for path, _ in places.values()}:
            ranges = self._groups.kept(file, predicate, names)
            kept |= {
                of for of, (path, place) in places.items()
                if path == file and (ranges is None or any(place in found for found in ranges))
            }  # fmt: skip
        self._judge("row groups", placed, condition, expected, expected & kept)

    def _located(self, placed: Placed, state: TableState) -> dict[int, tuple[str, int]]:
        """The file and the first place in it of each row, by its id."""
        acid = self._tables.on
        rows = acid.table(placed.name, row_id=True).selectExpr("id", "ROW__ID.*").collect()
        wanted = {(row["writeId"], row["bucketId"], row["rowId"]): row["id"] for row in rows}
        found: dict[int, tuple[str, int]] = {}
        for path in _paths(state):
            read = pyarrow.orc.ORCFile(path).read(columns=["originalTransaction", "bucket", "rowId"])
            for place, key in enumerate(zip(*(column.to_pylist() for column in read.columns), strict=True)):
                if key in wanted:
                    found.setdefault(wanted[key], (path, place))
        return found

    # --- changing ------------------------------------------------------------------------------

    def _changed(self, chance: random.Random, placed: Placed, known: dict[Condition, frozenset[int]]) -> None:
        """UPDATE by all but the last condition, DELETE by the last, in a transaction that is rolled back."""
        acid = self._tables.on
        *updated, deleted = known
        expected = dict.fromkeys(placed.rows, 0)
        at, condition = 0, deleted
        try:
            with acid.transaction():
                for at, condition in enumerate(updated, 1):
                    given = condition.given(as_column=chance.random() < 0.3)
                    if isinstance(given, str) and chance.random() < 0.6:
                        acid.sql(chance.choice(_UPDATES).format(placed.name, at, given))
                    elif chance.random() < 0.3:
                        acid.table(placed.name).update({"hit": str(at)}, given)
                    else:
                        acid.update(placed.name, {"hit": str(at)}, given)
                    expected |= dict.fromkeys(known[condition], at)
                condition = deleted
                given = deleted.given(as_column=chance.random() < 0.3)
                if isinstance(given, str) and chance.random() < 0.6:
                    acid.sql(chance.choice(_DELETES).format(placed.name, given))
                else:
                    acid.delete(placed.name, given)
                frame = acid.table(placed.name).selectExpr("id", "coalesce(hit, 0) AS hit").collect()
                raise _GivenUpError
        except _GivenUpError:
            pass
        except Exception as error:
            self.findings.tell("change", placed.name, condition, placed.kinds, _words(error))
            return
        got = {row["id"]: max(row["hit"], 0) for row in frame}
        twice = [of for of, count in Counter(row["id"] for row in frame).items() if count > 1]
        if twice:
            self.findings.tell("change", placed.name, condition, placed.kinds, f"rows are there twice: {twice[:5]}")
        self._judge("delete", placed, deleted, known[deleted], placed.rows.keys() - got.keys())
        for number, condition in enumerate(updated, 1):
            left = {of for of, hit in expected.items() if hit == number and of in got}
            self._judge("update", placed, condition, left, {of for of, hit in got.items() if hit == number})

    def _merged(self, chance: random.Random, placed: Placed) -> None:
        """A MERGE by values of a column's type, or of one that compares with it."""
        acid = self._tables.on
        name = chance.choice(list(placed.kinds))
        kind = placed.kinds[name]
        others = [of for of in placed.kinds.values() if of != kind and can_be_merged(kind, of)]
        of = chance.choice(others) if others and chance.random() < 0.4 else kind
        by = keys(kind, of)
        if by is None or not self._by_model:
            return
        given = chance.sample(stored(of)[1:], min(chance.choice((1, 3, 40)), len(stored(of)) - 1))
        models = {by[1](value.model): value.model for value in given}
        columns = ", ".join(f"({number}, {sql_of(of, model)})" for number, model in enumerate(models.values(), 1))
        source = self._spark.sql(f"SELECT * FROM VALUES {columns} AS s(n, v)")
        inserts = of == kind and placed.repeats == 1
        condition = Condition(f"MERGE ON t.{name} = s.v, {of}: {list(models.values())!r:.200}", frozenset({name}), None)
        expected = {
            row_id: number
            for number, model in enumerate(models.values(), 1)
            for row_id, row in placed.rows.items()
            if compared(kind, row[name], "=", of, model)
        }
        new = {1000 + number for number in range(1, len(models) + 1) if number not in expected.values()}
        try:
            with acid.transaction():
                builder = acid.merge(placed.name, source, f"t.{name} = s.v").whenMatchedUpdate(set={"hit": "s.n"})
                if inserts:
                    values = dict.fromkeys((*KINDS,), "NULL")
                    values = {of: value for of, value in values.items() if of in placed.kinds}
                    builder = builder.whenNotMatchedInsert(
                        values={**values, "id": "s.n + 1000", name: "s.v", "hit": "s.n"}
                    )
                counts = builder.execute()
                frame = acid.table(placed.name).selectExpr("id", "coalesce(hit, 0) AS hit").collect()
                raise _GivenUpError
        except _GivenUpError:
            pass
        except Exception as error:
            self.findings.tell("merge", placed.name, condition, placed.kinds, _words(error))
            return
        got = {row["id"]: row["hit"] for row in frame if row["hit"] > 0}
        ought = expected | ({of: of - 1000 for of in new} if inserts else {})
        rows = {**placed.rows, **{of: {} for of in new}}
        wrong = {of for of in ought.keys() | got.keys() if ought.get(of) != got.get(of)}
        judged = replace(placed, rows=rows)
        self._judge("merge", judged, condition, ought.keys(), (got.keys() - wrong) | (got.keys() - ought.keys()))
        if counts.updated != len(expected):
            words = f"{counts.updated} rows are said to be updated, not {len(expected)}"
            self.findings.tell("merge", placed.name, condition, placed.kinds, words)

    def _judge(
        self, way: str, placed: Placed, condition: Condition, expected: Collection[int], got: Collection[int]
    ) -> None:
        self.findings.judge(way, placed.name, condition, placed.kinds, placed.rows, expected, got)


_QUERIES = (
    "SELECT id FROM {0} WHERE {1}",
    "SELECT x.id FROM {0} AS x WHERE {1}",
    "SELECT id FROM (SELECT * FROM {0}) WHERE {1}",
    "WITH w AS (SELECT * FROM {0} WHERE {1}) SELECT id FROM w",
    "WITH w AS (SELECT * FROM {0}) SELECT id FROM w WHERE {1}",
    "SELECT id FROM {0} WHERE id IN (SELECT id FROM {0} WHERE {1})",
    "FROM {0} SELECT id WHERE {1}",
    "FROM {0} |> WHERE {1} |> SELECT id",
    "SELECT id FROM {0} WHERE {1} UNION ALL SELECT id FROM {0} WHERE 1 = 0",
    "SELECT x.id FROM {0} AS x WHERE EXISTS (SELECT 1 FROM {0} AS y WHERE y.id = x.id AND y.id IN "
    "(SELECT id FROM {0} WHERE {1}))",
    "SELECT id FROM {0} LEFT JOIN (SELECT 1 AS one_) ON true WHERE {1}",
    "SELECT id FROM {0} JOIN (SELECT 1 AS one_) ON {1}",
    "SELECT z.id FROM (SELECT id FROM {0} WHERE {1}) z RIGHT JOIN (SELECT id AS i FROM {0}) y ON y.i = z.id "
    "WHERE z.id IS NOT NULL",
    "SELECT id FROM {0} WHERE CASE WHEN {1} THEN true ELSE false END",
)
"""Queries of a table by a condition."""

_UPDATES = (
    "UPDATE {0} SET hit = {1} WHERE {2}",
    "UPDATE {0} AS x SET x.hit = {1} WHERE {2}",
    "UPDATE {0} SET hit = {1} WHERE id IN (SELECT id FROM {0} WHERE {2})",
    "WITH w AS (SELECT id FROM {0} WHERE {2}) UPDATE {0} SET hit = {1} WHERE id IN (SELECT id FROM w)",
    "MERGE INTO {0} AS t USING (SELECT 1 AS n_) AS s ON {2} WHEN MATCHED THEN UPDATE SET hit = {1}",
    "MERGE INTO {0} AS t USING (SELECT 1 AS n_) AS s ON t.id IS NOT NULL "
    "WHEN MATCHED AND ({2}) THEN UPDATE SET hit = {1}",
    "MERGE INTO {0} AS t USING (SELECT -99 AS n_) AS s ON t.id = s.n_ "
    "WHEN NOT MATCHED BY SOURCE AND ({2}) THEN UPDATE SET hit = {1}",
    "MERGE INTO {0} AS t USING (SELECT id AS n_ FROM {0} WHERE {2}) AS s ON t.id = s.n_ "
    "WHEN MATCHED THEN UPDATE SET t.hit = {1}",
)
_DELETES = (
    "DELETE FROM {0} WHERE {1}",
    "DELETE FROM {0} AS x WHERE {1}",
    "DELETE FROM {0} WHERE EXISTS (SELECT 1 FROM (SELECT id AS i_ FROM {0} WHERE {1}) WHERE i_ = id)",
    "WITH w AS (SELECT id FROM {0} WHERE {1}) DELETE FROM {0} WHERE id IN (SELECT id FROM w)",
    "MERGE INTO {0} AS t USING (SELECT 1 AS n_) AS s ON {1} WHEN MATCHED THEN DELETE",
)


def _paths(state: TableState) -> list[str]:
    """The paths of a state's data files."""
    found = (f"{part.location}/{file.path}" for part in state.partitions for file in part.data_files)
    return ["/" + path.removeprefix("file:").lstrip("/") for path in found]


def _in_words(condition: Condition) -> Condition:
    """A condition as text alone if settings may give its literals another meaning than their values have."""
    if any(sign in condition.text for sign in ("\\", "''", '"')):
        return replace(condition, column=None, with_parameters=None)
    return condition


def _modelled(condition: Condition, placed: Placed) -> frozenset[int] | None:
    if condition.truth is None:
        return None
    try:
        return frozenset(of for of, row in placed.rows.items() if condition.truth(row) is True)
    except KeyError:
        return None


def _expression(condition: Condition, at: int) -> Column:
    given = condition.given(as_column=at % 2 == 1)
    return F.expr(given) if isinstance(given, str) else given


def _words(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:3])[:400]}"
