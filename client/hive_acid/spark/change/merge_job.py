"""How a MERGE runs: the source is computed once and kept, the target is read once, all events are written in one job.

A join finds the pairs of target rows and source rows, and with clauses BY SOURCE the target rows without one. For the
source rows that are in no pair, those that an insert clause takes join the pairs in one shuffle by source row: one
that meets a pair there is not inserted. Where both sides of the join are shuffled by what ON compares anyway, it is an
outer one, which tells them by itself. So nothing is read or kept twice (data-path.md §5).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError, MergeCardinalityError
from hive_acid.spark.change.changes import REPEATED, UPDATES, Replaced, SourceColumns, change_events
from hive_acid.spark.change.dml import moved_key
from hive_acid.spark.change.driver_write import GaveUp, driver_changes, why_not_written_here
from hive_acid.spark.change.merge import Clause, MergeBuilder, RowCounts
from hive_acid.spark.change.new_matches import NewMatches
from hive_acid.spark.change.source import SOURCE_ROW, KeptSource, kept, matched
from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.expressions import Expression, expression, text_of
from hive_acid.spark.conditions.predicates import Predicate, all_of, any_of, predicate_of
from hive_acid.spark.jvm.frames.observed import told_counts
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.change_plan import ChangeFacts, InsteadPlan, change_plan
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.literal_hoisting import LITERAL_COLUMN, hoisted_by
from hive_acid.spark.read.table_frame import KEY_COLUMNS, partition_columns
from hive_acid.spark.read.undivided import beside
from hive_acid.spark.values.assign import assign, is_stored_as_is
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import key_text
from hive_acid.spark.values.types import spark_type
from hive_acid.spark.write.constraints import checked
from hive_acid.spark.write.layout import Layout, layout_of
from hive_acid.spark.write.planned import Planned
from hive_acid.spark.write.statement import Context, EventCounts, Statement, analysed, column_errors
from hive_acid.write.staging import DELETE, INSERT
from hive_acid.write.table_write import TableWrite

_CLAUSE = "__acid_clause"
_KINDS = "__acid_kinds"
_RAW = "__acid_new_"
_NEW_ROW = "__acid_row"
_GROUP = "__acid_group"
_IS_PAIR = "__acid_is_pair"
_IS_MARK = "__acid_is_mark"

_OF_SOURCE = f"hash({SOURCE_ROW})"
"""A whole number of each source row."""

_NAME = r"([A-Za-z_]\w*|`(?:[^`]|``)+`)"
_FIELD = re.compile(rf"{_NAME}\.{_NAME}", re.ASCII)
"""A column with the name of its table, which needs no parser of its own."""


def merge(context: Context, begun: TableWrite, builder: MergeBuilder, verb: str) -> Planned[RowCounts]:
    """Plan a merge, for which its source is computed; `verb` is what errors call it.

    Raises ColumnError, and UnsupportedTableError for new rows of a table that is CLUSTERED by the hash of Hive 2; its
    run raises MergeCardinalityError.
    """
    statement, table = Statement(context, begun), begun.table
    inserts = bool(builder.not_matched) or any(clause.values is not None for clause in builder.clauses)
    if inserts:
        statement.refuse_clustered(verb)
    with column_errors(table):
        source = kept(
            builder.join,
            table,
            context.limits,
            asked=builder.asked(table),
            once=bool(builder.matched),
            is_computed=context.computes_sources,
        )
        rows = _Merge(statement, builder, source)
        once = bool(builder.matched) and not source.is_unique
        changes = bool(builder.matched or builder.by_source)
        facts = ChangeFacts(
            statement.tasks if source.is_broadcast else None,
            source.join,
            source.rows,
            of_all_rows=bool(builder.by_source),
            deletes_only=not inserts,
            unwritable=partial(why_not_written_here, context.spark, table),
            merges=True,
            inserts=bool(builder.not_matched),
            only_inserts=not (changes or table.partition_keys or table.bucket_columns),
            clustered=bool(table.bucket_columns),
            file_is_statement=layout_of(table) is Layout.STATEMENTS,
            once=once,
        )
        plan = change_plan(f"{verb} of", table.full_name, facts, context.limits)
        # Of rows that are not inserted after all, none breaks a constraint.
        found = rows.candidates() if plan.by_client and not table.enforced else rows.changed()
        analysed(found.frame)

    def run() -> RowCounts:
        # Clauses BY SOURCE are for rows that meet none of its rows, too.
        meets_none = not source.rows and not builder.by_source
        if meets_none or (statement.reads_nothing and not builder.not_matched):
            return _row_counts(statement.change({}, {}, statement.write()), 0)
        if builder.not_matched:
            NewMatches.look(context, begun, partial(matched, join=builder.join, source=source.joined(), table=table))
        write = statement.write()
        changed = found
        if plan.by_client:
            with column_errors(table), statement.reading(joined=True):
                brought = driver_changes(found, table, write.write_id, context.limits)
            if not isinstance(brought, GaveUp):
                if once:
                    _refuse_repeated(table, brought.repeated, verb)
                counts = statement.change(brought.deletes, brought.inserts, write)
                return _row_counts(counts, brought.updates)
            tell(InsteadPlan(plan.verb, plan.table, brought.why))
            changed = rows.changed()
        if facts.only_inserts and plan.in_place:
            events = changed.insertions(table, write)
        else:
            events = change_events(
                changed.changes(), table, write, deletes_only=not inserts, once=once, in_place=plan.in_place
            )

        @cache
        def counted() -> Mapping[str, int]:
            return told_counts(events.counts, "nothing was changed; run the statement again")

        counts = statement.run(events, write, check=lambda: _refuse_repeated(table, counted().get(REPEATED, 0), verb))
        return _row_counts(counts, counted().get(UPDATES, 0))

    return Planned(plan, run, RowCounts(0, 0, 0))


def _refuse_repeated(table: Table, repeated: int, verb: str) -> None:
    if repeated:
        raise MergeCardinalityError(
            f"{verb} of {table.full_name}: {repeated} of its rows match more than one source row, so "
            "which values they get would be chance. Make the source's rows unique in what ON compares"
        )


def _row_counts(counts: EventCounts, updated: int) -> RowCounts:
    return RowCounts(inserted=counts.inserts - updated, updated=updated, deleted=counts.deletes - updated)


class _Merge:
    """The frames of one merge. What is not the user's is SQL: a call to the JVM for each part would take long."""

    def __init__(self, statement: Statement, builder: MergeBuilder, source: KeptSource) -> None:
        self._statement = statement
        self._table = statement.table
        self._builder = builder
        self._source = source
        self._names = builder.join.names(self._table)
        self._of_target, self._of_source = builder.join.target_alias.lower(), builder.join.source_alias.lower()

    def changed(self) -> Replaced:
        """All rows that are changed or new, with what becomes of each."""
        if not self._builder.not_matched:
            return self._replaced(self._pairs().where(f"{_KINDS} IS NOT NULL"))
        if self._source.is_shuffled_by_key and not self._builder.by_source:
            return self._replaced(self._met_or_new().where(f"{_KINDS} IS NOT NULL"))
        return self._replaced(self._without_matched(self._pairs_and_candidates))

    def candidates(self) -> Replaced:
        """As `changed`, with new rows of which some are not to be inserted: it is to be found out of which."""
        if self._builder.not_matched:
            return self._replaced(self._pairs_and_candidates, SourceColumns(SOURCE_ROW, _IS_PAIR))
        return self.changed()

    @cached_property
    def _pairs_and_candidates(self) -> DataFrame:
        return self._pairs().unionByName(self._candidates())

    def _replaced(self, rows: DataFrame, source: SourceColumns | None = None) -> Replaced:
        rows = self._checked(rows)
        new_keys = [quoted(_new_key(key)) for key in self._table.partition_keys]
        values = [f"{_NEW_ROW}.{quoted(column.name)}" for column in self._table.columns]
        return Replaced(rows, _KINDS, self._statement.keys, new_keys, values, _NEW_ROW, source)

    def _checked(self, rows: DataFrame) -> DataFrame:
        """`rows`, of which new ones that break a constraint fail the job."""
        if not self._table.enforced:
            return rows
        columns = [f"{_NEW_ROW}.{quoted(of.name)} AS {quoted(of.name)}" for of in self._table.columns]
        columns += [f"{quoted(_typed_key(key))} AS {quoted(key.name)}" for key in self._table.partition_keys]
        return checked(self._table, projected(rows, "*", *columns), _NEW_ROW, f"{_NEW_ROW} IS NOT NULL")

    def _typed_keys(self, value: Callable[[catalog.Column], str]) -> list[str]:
        """The values of partition keys in new rows, where constraints may ask for them."""
        keys = self._table.partition_keys if self._table.enforced else ()
        return [f"{value(key)} AS {quoted(_typed_key(key))}" for key in keys]

    def _pairs(self) -> DataFrame:
        """Target rows with what becomes of each, and the source row that says so; nothing for those left alone."""
        builder, table = self._builder, self._table
        taken, clauses = self._joined("left" if builder.by_source else "inner", f"{SOURCE_ROW} IS NOT NULL")
        if builder.by_source:
            first = len(clauses)
            clauses += (
                self._hoisted(_with_condition(one, builder.join.meant_alone, table), LITERAL_COLUMN, self._of_target)
                for one in builder.resolved(builder.by_source, table)
            )
            taken = self._with_raw_values_by_source(taken, clauses, first)
        new = _NewRow(table, taken, clauses, self._target_column)
        keys = (
            moved_key(key, self._target_column(key), text, new.value(key)) if new.assigns(key) else text
            for key, text in zip(table.partition_keys, self._statement.keys, strict=True)
        )
        return projected(
            new.frame,
            SOURCE_ROW,
            f"true AS {_IS_PAIR}",
            f"{_kinds(clauses)} AS {_KINDS}",
            *self._statement.keys,
            *(f"{text} AS {quoted(_new_key(key))}" for text, key in zip(keys, table.partition_keys, strict=True)),
            *self._typed_keys(new.value),
            *KEY_COLUMNS,
            f"{new.row()} AS {_NEW_ROW}",
        )

    def _joined(self, how: str, is_pair: str) -> tuple[DataFrame, list[Clause]]:
        """The target joined with the source, with the clauses that are for pairs and what they make of these."""
        builder, table = self._builder, self._table
        target = self._statement.target(wanted=self._wanted(), chosen=not builder.by_source)
        meant = builder.join.meant(builder.join.on, table)
        on = expression(builder.join.hoisted(meant, table))
        pairs = beside(target, meant).alias(builder.join.target_alias).join(self._source.joined(), on, how)
        clauses = [
            self._hoisted(
                _with_condition(one, builder.join.meant, table), LITERAL_COLUMN, self._of_target, self._of_source
            )
            for one in builder.resolved(builder.matched, table)
        ]
        return _with_raw_values(_with_clause(pairs, clauses, is_pair), clauses), clauses

    def _met_or_new(self) -> DataFrame:
        """As `_pairs` and `_candidates`, without those that are not to be inserted.

        A source row that meets no row of the table comes alone. Clauses that insert know the source alone, so the
        columns of the table get names of ours before.
        """
        table = self._table
        is_pair = f"{KEY_COLUMNS[0]} IS NOT NULL"
        taken, matched = self._joined("right", is_pair)
        raw = [quoted(name) for name in taken.columns if name.startswith(_RAW)]
        old = [f"{self._target_column(column)} AS {quoted(_old(column))}" for column in table.all_columns]
        ids = [_CLAUSE, *self._statement.keys, *KEY_COLUMNS]
        alone = projected(taken, f"{quoted(self._source.alias)}.*", *raw, *old, *ids)
        inserts = self._inserting()
        clauses, first = [*matched, *inserts], len(matched)
        with _clauses_know("NOT MATCHED THEN INSERT", "the source alone, not the rows of the table", table):
            chosen = F.coalesce(F.col(_CLAUSE), _clause(inserts, f"{KEY_COLUMNS[0]} IS NULL", first))
            found = alone.withColumn(_CLAUSE, chosen).where(f"{_CLAUSE} IS NOT NULL")
            found = analysed(_with_raw_values(found, clauses, first))
        # Of rows that are new the table's columns are null.
        new = _NewRow(table, found, clauses, lambda column: quoted(_old(column)))
        keys = []
        for key, text in zip(table.partition_keys, self._statement.keys, strict=True):
            value = new.value(key)
            moved = moved_key(key, quoted(_old(key)), text, value) if new.assigns(key) else text
            keys.append(f"if({is_pair}, {moved}, {key_text(key, value)}) AS {quoted(_new_key(key))}")
        return projected(
            new.frame,
            SOURCE_ROW,
            f"{is_pair} AS {_IS_PAIR}",
            f"if({is_pair}, {_kinds(matched)}, array('{INSERT}')) AS {_KINDS}",
            *self._statement.keys,
            *keys,
            *self._typed_keys(new.value),
            *KEY_COLUMNS[:-1],
            f"if({is_pair}, {KEY_COLUMNS[-1]}, {SOURCE_ROW}) AS {KEY_COLUMNS[-1]}",
            f"{new.row()} AS {_NEW_ROW}",
        )

    def _with_raw_values_by_source(self, taken: DataFrame, clauses: Sequence[Clause], first: int) -> DataFrame:
        """`taken` with what the clauses BY SOURCE make of rows without a source row; `first` is the number of theirs.

        They know the columns of the table alone, so those of the source are left out before. Raises ColumnError for an
        expression that names one of them.
        """
        target = quoted(self._builder.join.target_alias)
        ours = [quoted(name) for name in taken.columns if name.startswith(_RAW) or name in (SOURCE_ROW, _CLAUSE)]
        alone = projected(taken, f"{target}.*", *ours)
        with _clauses_know("NOT MATCHED BY SOURCE", "the rows of the table alone, not the source", self._table):
            chosen = F.coalesce(F.col(_CLAUSE), _clause(clauses[first:], f"{SOURCE_ROW} IS NULL", first))
            return analysed(_with_raw_values(alone.withColumn(_CLAUSE, chosen), clauses, first))

    def _wanted(self) -> Predicate | None:
        """What is known of the target rows that matter: they match, or a clause BY SOURCE takes them.

        Without insert clauses it does not matter what a match is that no clause takes.
        """
        builder = self._builder
        taken = None if builder.not_matched else self._taken(builder.matched, builder.join.source.columns)
        matched = all_of((self._source.matched, taken))
        if not builder.by_source:
            return matched
        by_source = self._taken(builder.by_source, ())
        return any_of((matched, by_source)) if builder.matched or builder.not_matched else by_source

    def _taken(self, clauses: Sequence[Clause], beside: Sequence[str]) -> Predicate | None:
        """What is known of the target rows that one of the clauses takes, which know the columns `beside`, too."""
        alias = self._builder.join.target_alias
        ask = ask_of(self._builder.join.source.sparkSession)
        return any_of(predicate_of(clause.condition, self._table, alias, beside, ask=ask) for clause in clauses)

    def _candidates(self) -> DataFrame:
        """The source rows that an insert clause takes if they match nothing, in the shape of `_pairs`.

        They have no identity but their number, which keeps them in order.
        """
        table, clauses = self._table, self._inserting()
        source = self._source.frame.alias(self._source.alias)
        unassigned = [
            F.lit(None).cast(spark_type(column.type)).alias(_old(column))
            for column in table.all_columns
            if any(column.name not in (clause.values or {}) for clause in clauses)
        ]
        with _clauses_know("NOT MATCHED THEN INSERT", "the source alone, not the rows of the table", table):
            taken = _with_clause(source, clauses, "true").where(f"{_CLAUSE} IS NOT NULL")
            taken = analysed(_with_raw_values(taken.select("*", *unassigned) if unassigned else taken, clauses))
        new = _NewRow(table, taken, clauses, lambda column: quoted(_old(column)))
        return projected(
            new.frame,
            SOURCE_ROW,
            f"false AS {_IS_PAIR}",
            f"array('{INSERT}') AS {_KINDS}",
            *(f"CAST(NULL AS string) AS {name}" for name in partition_columns(table)),
            *(f"{key_text(key, new.value(key))} AS {quoted(_new_key(key))}" for key in table.partition_keys),
            *self._typed_keys(new.value),
            f"CAST(NULL AS bigint) AS {KEY_COLUMNS[0]}",
            f"CAST(NULL AS int) AS {KEY_COLUMNS[1]}",
            f"{SOURCE_ROW} AS {KEY_COLUMNS[2]}",
            f"{new.row()} AS {_NEW_ROW}",
        )

    def _inserting(self) -> list[Clause]:
        """The clauses that insert, as they are asked of the source alone."""
        resolved = self._builder.resolved(self._builder.not_matched, self._table)
        return [self._hoisted(one, _OF_SOURCE, self._of_source) for one in resolved]

    def _without_matched(self, rows: DataFrame) -> DataFrame:
        """`rows` less the candidates whose source row is in a pair, and less the pairs that change nothing.

        To tell, a pair goes where its source row goes as a mark without content; with its content it goes anywhere, so
        that one source row with many matches does not bring them all to one task.
        """
        anywhere = f"-1 - shiftrightunsigned(xxhash64({', '.join((*KEY_COLUMNS, *self._statement.keys))}), 1)"
        marked = projected(
            rows,
            "*",
            f"explode(CASE WHEN NOT {_IS_PAIR} OR {SOURCE_ROW} IS NULL THEN array(false) "
            f"WHEN {_KINDS} IS NULL THEN array(true) ELSE array(true, false) END) AS {_IS_MARK}",
        )
        kept_columns = [quoted(name) for name in rows.columns if name not in (SOURCE_ROW, _NEW_ROW)]
        grouped = projected(
            marked,
            *kept_columns,
            _IS_MARK,
            f"CASE WHEN NOT {_IS_MARK} THEN {_NEW_ROW} END AS {_NEW_ROW}",
            f"CASE WHEN {_IS_MARK} OR NOT {_IS_PAIR} THEN {SOURCE_ROW} ELSE {anywhere} END AS {_GROUP}",
        )
        met = projected(grouped, "*", f"max({_IS_MARK}) OVER (PARTITION BY {_GROUP}) AS __acid_met")
        return met.where(f"NOT {_IS_MARK} AND ({_IS_PAIR} OR NOT __acid_met)")

    def _hoisted(self, clause: Clause, column: str, *knows: str) -> Clause:
        """`clause`, which `knows` these aliases, with its literals out of the code that Spark generates
        (`literal_hoisting`).
        """
        clause = replace(clause, knows=frozenset(knows))
        if clause.all_columns and clause.condition is None:
            return clause

        def meant(given: Expression) -> Expression:
            text = text_of(given)
            return given if text is None else hoisted_by(text, self._names, column)

        values = clause.values
        if values is not None and not clause.all_columns:
            values = {name: meant(value) for name, value in values.items()}
        return replace(clause, condition=None if clause.condition is None else meant(clause.condition), values=values)

    def _target_column(self, column: catalog.Column) -> str:
        return f"{quoted(self._builder.join.target_alias)}.{quoted(column.name)}"


class _NewRow:
    """New rows by the clauses that take them, as SQL over `frame`; `old` gives what no clause assigns.

    `raw` has the values of `_with_raw_values`.
    """

    def __init__(
        self, table: Table, raw: DataFrame, clauses: Sequence[Clause], old: Callable[[catalog.Column], str]
    ) -> None:
        self._table = table
        self._clauses = clauses
        self._old = old
        types = {field.name: field.dataType for field in raw.schema.fields}
        columns = {column.name: column for column in table.all_columns}
        self._assigning = [number for number, clause in enumerate(clauses) if clause.values is not None]
        self._stored: dict[tuple[int, str], str] = {}
        converted = []
        for number, clause in enumerate(clauses):
            for name in clause.values or {}:
                given = _new(number, name, clause)
                self._stored[number, name] = quoted(given)
                if not is_stored_as_is(table, columns[name], types[given]):
                    # Of a clause that does not apply a value is null and takes no part: it may not fit.
                    applied = f"CASE WHEN {_CLAUSE} = {number} THEN {quoted(given)} END"
                    stored = assign(raw.sparkSession, table, columns[name], applied, types[given])
                    self._stored[number, name] = quoted(f"{_RAW}{number}_{name}_stored")
                    converted.append(f"{stored} AS {self._stored[number, name]}")
        self.frame = projected(raw, "*", *converted) if converted else raw

    def assigns(self, column: catalog.Column) -> bool:
        """Whether a clause gives the column a value."""
        return any(column.name in (clause.values or {}) for clause in self._clauses)

    def value(self, column: catalog.Column) -> str:
        """The column's value by the clause that applies."""
        given = [
            f"WHEN {number} THEN {self._stored[number, column.name]}"
            for number, clause in enumerate(self._clauses)
            if column.name in (clause.values or {})
        ]
        if not given:
            return self._old(column)
        # Where no clause applies nobody asks for a value, nor where one deletes. (Of a key it becomes a text.)
        found = {self._stored.get((number, column.name)) for number in self._assigning}
        if len(found) == 1 and None not in found and column in self._table.columns:
            return str(found.pop())
        otherwise = f" ELSE {self._old(column)}" if len(given) < len(self._clauses) else ""
        return f"CASE {_CLAUSE} {' '.join(given)}{otherwise} END"

    def row(self) -> str:
        """The new row as a struct, null where the clause deletes and where none applies."""
        assigning = _numbers(self._assigning)
        fields = (f"{self.value(column)} AS {quoted(column.name)}" for column in self._table.columns)
        return f"CASE WHEN {_CLAUSE} IN ({assigning}) THEN struct({', '.join(fields)}) END"


def _kinds(clauses: Sequence[Clause]) -> str:
    """What happens to a row of the table by the clause that takes it; null where none does."""
    deleted = _numbers(number for number, clause in enumerate(clauses) if clause.values is None)
    return (
        f"CASE WHEN {_CLAUSE} IN ({deleted}) THEN array('{DELETE}') "
        f"WHEN {_CLAUSE} IS NOT NULL THEN array('{DELETE}', '{INSERT}') END"
    )


def _numbers(numbers: Iterable[int]) -> str:
    """A list for IN, which may be empty."""
    return ", ".join(map(str, numbers)) or "-1"


def _with_condition(clause: Clause, meant: Callable[[Expression, Table], Expression], table: Table) -> Clause:
    return clause if clause.condition is None else replace(clause, condition=meant(clause.condition, table))


def _with_clause(rows: DataFrame, clauses: Sequence[Clause], kind: str) -> DataFrame:
    """`rows` of a kind with the number of the first clause whose condition holds."""
    if len(clauses) == 1 and clauses[0].condition is None:
        return projected(rows, "*", f"CASE WHEN {kind} THEN 0 END AS {_CLAUSE}")
    return rows.withColumn(_CLAUSE, _clause(clauses, kind))


def _clause(clauses: Sequence[Clause], kind: str, first: int = 0) -> Column:
    """The number of the first clause whose condition holds for a row of this kind, null where none does.

    `first` is the number of the first of them.
    """
    chosen = F.lit(None).cast("int")
    for number, clause in reversed(list(enumerate(clauses, first))):
        holds = F.expr(kind) if clause.condition is None else F.expr(kind) & expression(clause.condition)
        chosen = F.when(holds, number).otherwise(chosen)
    return chosen


def _with_raw_values(taken: DataFrame, clauses: Sequence[Clause], first: int = 0) -> DataFrame:
    """`taken` with the raw values of the clauses from the `first` as columns of their own.

    They are computed only where the clause applies, but for columns as they are, which several clauses may share; those
    of the clauses before are there.
    """
    texts: dict[str, str] = {}
    columns: dict[str, Column] = {}
    there = {_new(number, name, of) for number, of in enumerate(clauses[:first]) for name in of.values or {}}
    for number, clause in enumerate(clauses[first:], first):
        for name, value in (clause.values or {}).items():
            given = _new(number, name, clause)
            if given in there:
                continue
            if (column := _column(value, clause)) is not None:
                texts[given] = column
            elif clause.all_columns:
                texts[given] = f"CASE WHEN {_CLAUSE} = {number} THEN {value} END"
            else:
                columns[given] = F.when(F.expr(f"{_CLAUSE} = {number}"), expression(value))
    found = projected(taken, "*", *(f"{of} AS {quoted(given)}" for given, of in texts.items())) if texts else taken
    return found.withColumns(columns) if columns else found


@contextmanager
def _clauses_know(clauses: str, what: str, table: Table) -> Iterator[None]:
    """Spark's complaints about names within the block become a ColumnError that says which names there are."""
    try:
        with column_errors(table):
            yield
    except ColumnError as error:
        raise ColumnError(f"{error} (clauses WHEN {clauses} know {what})") from error


def _new(number: int, name: str, clause: Clause) -> str:
    """The column with the raw value that the clause of a number gives a column."""
    column = _column((clause.values or {})[name], clause)
    return f"{_RAW}{number}_{name}" if column is None else f"{_RAW}of_{column.lower()}"


def _column(value: Expression, clause: Clause) -> str | None:
    """The value of a clause if it is a column as it is, by an alias that the clause knows, as SQL; else None."""
    found = _FIELD.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    alias, name = (part[1:-1].replace("``", "`") if part.startswith("`") else part for part in found.groups())
    return f"{quoted(alias)}.{quoted(name)}" if alias.lower() in clause.knows else None


def _old(column: catalog.Column) -> str:
    return f"__acid_old_{column.name}"


def _typed_key(key: catalog.Column) -> str:
    return f"__acid_typed_key_{key.name}"


def _new_key(key: catalog.Column) -> str:
    return f"__acid_new_key_{key.name}"
