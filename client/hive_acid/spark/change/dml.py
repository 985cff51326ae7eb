"""UPDATE and DELETE: one scan of the table, at most one shuffle of the changed rows, one job that writes events.

Of a small DELETE the job only finds the rows: the client writes the events (`hive_acid.spark.change.driver_write`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.format.orc.deletes import DeleteEvents
from hive_acid.ids import WriteId
from hive_acid.spark.change.changes import Replaced, change_events, deletions
from hive_acid.spark.change.driver_write import GaveUp, driver_changes, driver_deletes, why_not_written_here
from hive_acid.spark.change.source import Join, KeptSource, kept, matched
from hive_acid.spark.change.whole_files import WholeFiles, whole_files
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.expressions import Expression, expression, left_of, text_of
from hive_acid.spark.conditions.failures import cannot_fail
from hive_acid.spark.conditions.fields import whole_columns
from hive_acid.spark.conditions.predicates import Predicate, all_of, predicate_of, refusal_of
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.change_plan import ChangeFacts, DeletedBy, InsteadPlan, change_plan, deleted_by
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.tasks import Tasks
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.literal_hoisting import with_hoisted_literals, with_hoisted_values
from hive_acid.spark.read.skipping import meet_all
from hive_acid.spark.read.table_frame import KEY_COLUMNS
from hive_acid.spark.read.undivided import beside, filtered
from hive_acid.spark.values.assign import assign, is_stored_as_is, row_struct
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import key_text
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write.constraints import checked
from hive_acid.spark.write.layout import Layout, layout_of
from hive_acid.spark.write.planned import Planned
from hive_acid.spark.write.statement import Context, DeletedRows, Statement, analysed, column_errors
from hive_acid.write.staging import DELETE, INSERT, Values
from hive_acid.write.table_write import TableWrite


def delete(
    context: Context,
    begun: TableWrite,
    where: Expression | None = None,
    *,
    join: Join | None = None,
    target_alias: str | None = None,
) -> Planned[int]:
    """Delete the rows for which `where` is true, all rows without it; gives their number.

    `where` may name columns by `target_alias`, by default the table's own name. With `join`, rows are deleted that
    match at least one row of its source, and `where` may name columns of both.

    Raises ColumnError for an unknown column.
    """
    statement, table = Statement(context, begun), begun.table
    known: DeletedRows | None = None
    left_out = source = condition = whole = None
    if join is not None:
        rows, source = _matching(statement, join, where)
    else:
        condition = _Condition.of(statement, where, target_alias)
        whole = condition.whole_files()
        rows, known, left_out = condition.of_delete()
    moved = source is not None and not source.is_broadcast
    facts = ChangeFacts(
        None if moved else statement.tasks,
        source.join if source is not None else None,
        deletes_only=True,
        file_is_statement=layout_of(table) is Layout.STATEMENTS,
        whole_files=whole.files if whole is not None else 0,
        reads_nothing=statement.reads_nothing,
    )
    plan = change_plan("DELETE from", table.full_name, facts, context.limits, deleted=left_out)

    def run() -> int:
        write = statement.write()
        found: Mapping[Values, DeleteEvents] | GaveUp = {}
        if statement.reads_nothing or (source is not None and not source.rows):
            return statement.change(_with_whole(whole, write.write_id, {}), {}, write).deletes
        left = rows
        if plan.by_client:
            with column_errors(table), statement.reading():
                found = driver_deletes(rows, statement.keys, write.write_id, context.limits, known)
            if not isinstance(found, GaveUp):
                return statement.change(_with_whole(whole, write.write_id, found), {}, write).deletes
            tell(InsteadPlan(plan.verb, plan.table, found.why))
        if condition is not None and (known is not None or whole is not None):
            statement.read_only(None)
            left = condition.of_target(narrow=True)
        changes = deletions(left, statement.keys, row_type(table.columns))
        written = change_events(changes, table, write, deletes_only=True, in_place=plan.in_place)
        return statement.run(written, write).deletes

    return Planned(plan, run, 0)


def _with_whole(
    whole: WholeFiles | None, write_id: WriteId, events: Mapping[Values, DeleteEvents]
) -> Mapping[Values, DeleteEvents]:
    """Some events, and those by which a write deletes all rows of whole files."""
    return events if whole is None else whole.events(write_id, events)


def update(
    context: Context,
    begun: TableWrite,
    set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
    where: Expression | None = None,
    *,
    target_alias: str | None = None,
) -> Planned[int]:
    """Give the rows for which `where` is true the values of `set`, computed from their old ones; gives their number.

    Expressions may name columns by `target_alias`, by default the table's own name. ``a.b`` in `set` is a field of the
    struct ``a``. A row whose partition columns change moves to that partition.

    Raises ColumnError for an unknown column in `set` or a value that does not fit, UnsupportedTableError for a table
    that is CLUSTERED by the hash of Hive 2.
    """
    statement, table = Statement(context, begun), begun.table
    statement.refuse_clustered("UPDATE")
    assignments = Assignments.of(table, set, target_alias or table.name)
    rows = assignments.applied_to(_Condition.of(statement, where, target_alias).of_target(), statement.keys)
    facts = ChangeFacts(
        statement.tasks,
        of_all_rows=where is None,
        unwritable=partial(why_not_written_here, context.spark, table),
        clustered=bool(table.bucket_columns),
        file_is_statement=layout_of(table) is Layout.STATEMENTS,
    )
    plan = change_plan("UPDATE of", table.full_name, facts, context.limits)

    def run() -> int:
        write = statement.write()
        if statement.reads_nothing:
            return statement.change({}, {}, write).inserts
        if plan.by_client:
            with column_errors(table), statement.reading():
                changes = driver_changes(rows, table, write.write_id, context.limits)
            if not isinstance(changes, GaveUp):
                return statement.change(changes.deletes, changes.inserts, write).inserts
            tell(InsteadPlan(plan.verb, plan.table, changes.why))
        events = change_events(rows.changes(), table, write, in_place=plan.in_place)
        return statement.run(events, write).inserts

    return Planned(plan, run, 0)


@dataclass(frozen=True, slots=True)
class _Condition:
    """The `where` of a statement on its target, by whose `alias` it may name columns.

    `wanted` is what it surely says; whether it `may_fail` for some row is known of all rows in the files that are read.
    """

    statement: Statement
    where: Expression | None
    alias: str
    wanted: Predicate | None
    may_fail: bool

    @classmethod
    def of(cls, statement: Statement, where: Expression | None, target_alias: str | None) -> _Condition:
        """The alias is the table's own name, unless another is given."""
        table = statement.table
        alias = target_alias or table.name
        wanted = predicate_of(where, table, target_alias, ask=ask_of(statement.context.spark))
        may_fail = where is None or not cannot_fail(where, table, alias, statement.spans(wanted))
        return cls(statement, where, alias, wanted, may_fail)

    def whole_files(self) -> WholeFiles | None:
        """The files of which all rows are deleted, if tails tell them: these are left out of what is read then.

        None also where many tasks would read the others.
        """
        statement, refusal = self.statement, None
        if self.where is not None:
            ask = ask_of(statement.context.spark)
            refusal = refusal_of(self.where, statement.table, self.alias, ask=ask)
            if refusal is None:
                return None
        found = whole_files(statement.listed(self.wanted), refusal)
        if found is not None:
            statement.read_only(found.rest)
            if statement.tasks.way is Tasks.FEW or statement.reads_nothing:
                return found
            statement.read_only(None)
        return None

    def of_target(self, *, narrow: bool = False) -> DataFrame:
        """The rows for which it is true; `narrow` is what `read_rows` takes."""
        with column_errors(self.statement.table):
            if not self.may_fail:
                rows = self.statement.target(wanted=self.wanted, chosen=True, early=self.asked_of, narrow=narrow)
                return rows.alias(self.alias)
            target = self.statement.target(wanted=self.wanted, chosen=self.where is not None, narrow=narrow)
        return self.asked_of(target)

    def asked_of(self, rows: DataFrame) -> DataFrame:
        """Those of some rows of `target` for which it is true; what all of its partitions meet is not asked."""
        table, where = self.statement.table, self.where
        if where is not None and table.partition_keys:
            names = [partition.name for partition in self.statement.listed(self.wanted).partitions]
            if self.statement.context.skipping:
                where = left_of(where, partial(meet_all, table, names, alias=self.alias))
        return _where(rows, where, table, self.alias)

    def of_delete(self) -> tuple[DataFrame, DeletedRows | None, Choice[DeletedBy]]:
        """As `of_target`, or with rows that are deleted already, and which these are.

        The latter where they are known to the client, and the condition cannot fail for rows that are gone: the query
        need not find out which these are then.
        """
        left_out = deleted_by(may_fail=self.may_fail, limits=self.statement.context.limits)
        if left_out.way is DeletedBy.CLIENT:
            found, left_out = self.statement.target_with_deleted(self.wanted)
            if found is not None:
                return self.asked_of(found[0]), found[1], left_out
        return self.of_target(narrow=True), None, left_out


def deleted(rows: DataFrame, *, table: Table, where: Expression | None, join: Join | None) -> DataFrame:
    """Those of some rows of a table that a `delete` with a source, or with a condition on the table's name, deletes."""
    if join is not None:
        return matched(rows, join=join, source=join.source.alias(join.source_alias), table=table)
    return _where(rows, where, table, table.name)


def _where(target: DataFrame, where: Expression | None, table: Table, alias: str) -> DataFrame:
    target = target.alias(alias)
    if where is None:
        return target
    with column_errors(table):
        meant = without_blanks(where, table, alias)
        hoisted = with_hoisted_literals(target.sparkSession, meant, table, alias) if isinstance(meant, str) else meant
        return analysed(filtered(target, hoisted))


def _matching(statement: Statement, join: Join, where: Expression | None) -> tuple[DataFrame, KeptSource]:
    """The rows of a statement's target for which some row of the source fulfils ON and `where`; and the source."""
    with column_errors(statement.table):
        context = statement.context
        source = kept(join, statement.table, context.limits, asked=[where], is_computed=context.computes_sources)
        parts = [join.on] if where is None else [join.on, where]
        meant = (join.hoisted(join.meant(part, statement.table), statement.table) for part in parts)
        condition = reduce(and_, map(expression, meant))
        said = predicate_of(where, statement.table, join.target_alias, join.source.columns, ask=ask_of(context.spark))
        wanted = all_of((source.matched, said))
        rows = beside(statement.target(wanted=wanted, chosen=True), parts)
        target = rows.alias(join.target_alias)
        return analysed(target.join(source.joined(), condition, "left_semi")), source


def moved_key(key: Column, old: str, old_text: str, new: str) -> str:
    """The text of a partition `key` that is assigned: as it was where the value is, so that the row stays; all as SQL.

    A partition may be named by another text than Spark has for its value, ``p=01`` for 1. Zeros of both signs are equal
    and have partitions of their own.
    """
    same = f"{new} <=> {old}"
    if key.type in ("float", "double"):
        same += f" AND CAST({new} AS string) <=> CAST({old} AS string)"
    return f"if({same}, {old_text}, {key_text(key, new)})"


@dataclass(frozen=True, slots=True)
class Assignments:
    """New values by column name, in lower case; columns that are not named keep their value."""

    table: Table
    values: Mapping[str, Expr]

    @classmethod
    def of(cls, table: Table, given: Mapping[str, Expression], alias: str) -> Assignments:
        """Those given by the names of columns and fields, for rows that are called `alias`.

        Raises ColumnError for a name that is unknown or given twice.
        """
        if not given:
            raise ColumnError(f"UPDATE of {table.full_name} sets no column")
        values = whole_columns(table, given, alias)
        return cls(table, {name: _one_value(value, table, alias) for name, value in values.items()})

    def applied_to(self, frame: DataFrame, keys: Sequence[str]) -> Replaced:
        """The rows of `frame` with new values; `keys` are its columns with the texts of the partition keys.

        The raw new values are columns of their own, so that each is computed once per row.
        """
        columns = [column for column in self.table.all_columns if column.name in self.values]
        with column_errors(self.table):
            raw = frame.withColumns({_new(name): value for name, value in self.values.items()})
            types = {field.name: field.dataType for field in raw.schema.fields}
        stored, names = [], {}
        for column in columns:
            given = names[column.name] = _new(column.name)
            if not is_stored_as_is(self.table, column, types[given]):
                names[column.name] = _stored(column.name)
                value = assign(frame.sparkSession, self.table, column, quoted(given), types[given])
                stored.append(f"{value} AS {quoted(_stored(column.name))}")
        values = [quoted(names.get(of.name, of.name)) for of in self.table.columns]
        made = projected(raw, "*", *stored) if stored else raw
        new_keys = [
            moved_key(key, quoted(key.name), text, quoted(names[key.name])) if key.name in names else text
            for key, text in zip(self.table.partition_keys, keys, strict=True)
        ]
        if self.table.enforced:
            new = (f"{quoted(names.get(of.name, of.name))} AS {quoted(of.name)}" for of in self.table.all_columns)
            texts = [f"{text} AS {_moved(at)}" for at, text in enumerate(new_keys)]
            made = projected(made, *new, *keys, *KEY_COLUMNS, *texts)
            made = checked(self.table, made)
            new_keys = [_moved(at) for at in range(len(new_keys))]
            values = [quoted(of.name) for of in self.table.columns]
        kinds = f"array('{DELETE}', '{INSERT}')"
        return Replaced(made, kinds, keys, new_keys, values, row_struct(self.table, values))


def _one_value(value: Expression, table: Table, alias: str) -> Expr:
    """A value of which Spark does not make several rows, or none, as it would of explode and its like.

    A text without a call has none of these.
    """
    text = text_of(value)
    if text is None:
        return F.coalesce(expression(value))
    meant = expression(with_hoisted_values(text, table, alias))
    return F.coalesce(meant) if "(" in text else meant


def _new(name: str) -> str:
    return f"__acid_new_{name}"


def _moved(position: int) -> str:
    return f"__acid_moved_{position}"


def _stored(name: str) -> str:
    return f"__acid_stored_{name}"
