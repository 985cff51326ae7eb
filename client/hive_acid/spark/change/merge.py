"""MERGE, in the words of Delta's builder: WHEN clauses, then `execute`. `hive_acid.spark.change.merge_job` runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import SparkSession

from hive_acid.catalog import table as catalog
from hive_acid.catalog.constraints import in_parentheses
from hive_acid.catalog.table import Table
from hive_acid.display.html_table import html_table
from hive_acid.errors import ColumnError
from hive_acid.spark.change.source import Join
from hive_acid.spark.conditions.booleans import refuse_non_boolean, refuse_non_boolean_of
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.conditions.fields import assigns_to, names_meant, whole_columns
from hive_acid.spark.values.argument_checks import check_condition, check_values
from hive_acid.spark.values.assign import lacking, wider
from hive_acid.spark.values.completion import completed
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import check_distinct, spark_type
from hive_acid.transactions.locks import Operation


class RowCounts(NamedTuple):
    """How many rows a merge has inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int

    def _repr_html_(self) -> str:
        """A small table, as notebooks show it."""
        return html_table(self._fields, [self])


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN clause: its condition, and the values it assigns; None deletes the row.

    With `all_columns`, the values are the source's, for all columns. `knows` are the aliases of what it may speak of,
    in lower case, once that has been decided.
    """

    condition: Expression | None
    values: Mapping[str, Expression] | None
    all_columns: bool = False
    knows: frozenset[str] = frozenset()


@dataclass
class MergeBuilder:
    """A MERGE in the making. Clauses apply in the order given, the first of its kind whose condition holds decides.

    Conditions and values are Columns or SQL text over the two aliases of `join`. Nothing happens before `execute`,
    which takes `table` as it is then.
    """

    table: Table
    join: Join
    run: Callable[[MergeBuilder], RowCounts]
    matched: list[Clause] = field(default_factory=list)
    not_matched: list[Clause] = field(default_factory=list)
    by_source: list[Clause] = field(default_factory=list)
    evolves: bool = False
    left_out: frozenset[str] = frozenset()
    """Columns of the source, in lower case, that schema evolution does not add."""

    def whenMatchedUpdate(  # noqa: N802 - Delta's names
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,  # noqa: A002
    ) -> MergeBuilder:
        """Give a matched row the values of `set`; it moves to another partition if they say so.

        ``a.b`` in `set` is a field of the struct ``a``.
        """
        return self._add(self.matched, Clause(condition, set or {}))

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Give a matched row the source's values for all columns; partition columns that the source lacks stay."""
        return self._add(self.matched, Clause(condition, {}, all_columns=True))

    def whenMatchedDelete(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Delete a matched row."""
        return self._add(self.matched, Clause(condition, None))

    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Expression | None = None, values: Mapping[str, Expression] | None = None
    ) -> MergeBuilder:
        """Insert a source row that matches nothing; columns that `values` does not name become null."""
        return self._add(self.not_matched, Clause(condition, values or {}))

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Insert a source row that matches nothing, with the source's values for all columns."""
        return self._add(self.not_matched, Clause(condition, {}, all_columns=True))

    def whenNotMatchedBySourceUpdate(  # noqa: N802
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,  # noqa: A002
    ) -> MergeBuilder:
        """Give a row of the table that no source row matches the values of `set`, computed from its old ones."""
        return self._add(self.by_source, Clause(condition, set or {}))

    def whenNotMatchedBySourceDelete(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Delete a row of the table that no source row matches."""
        return self._add(self.by_source, Clause(condition, None))

    def withSchemaEvolution(self) -> MergeBuilder:  # noqa: N802
        """Add columns that the source has and the table lacks, if a clause takes all columns or assigns them.

        They are added at the table's end before the merge, and stay even if it fails. Clauses that take all columns
        then need not find all of the table's in the source: an inserted row has null there, an updated one keeps its
        value. The same holds for the fields of structs, but within arrays and maps those that the source lacks become
        null.
        """
        self.evolves = True
        return self

    def execute(self) -> RowCounts:
        """Run the merge.

        Raises MergeCardinalityError when two source rows would change the same target row, ColumnError for columns and
        values that do not fit; the table is then as it was.
        """
        if not self.clauses:
            raise ColumnError(f"MERGE into {self.table.full_name} has no clause: add whenMatched… or whenNotMatched…")
        return self.run(self)

    @property
    def operations(self) -> tuple[Operation, tuple[Operation, ...]]:
        """What it does to rows: UPDATE, also where it only inserts, or DELETE where it only deletes; and what else."""
        deletes = {clause.values is None for clause in (*self.matched, *self.by_source)}
        inserts = (Operation.INSERT,) if self.not_matched else ()
        if deletes == {True}:
            return Operation.DELETE, inserts
        return Operation.UPDATE, (Operation.DELETE, *inserts) if True in deletes else inserts

    def keeps_keys(self, table: Table) -> bool:
        """Whether all new rows have the primary key of a row that they replace."""
        if self.not_matched or any(clause.all_columns for clause in self.clauses):
            return False
        return not any(assigns_to(table.key, clause.values or {}) for clause in self.clauses)

    def check_booleans(self, spark: SparkSession, table: Table) -> None:
        """Raise ColumnError for a condition that is not boolean, by the columns that the table has had once."""
        self.join.check_boolean(spark, table, self.join.on, *(one.condition for one in self.matched))
        source = self.join.source
        for clause in self.not_matched:
            refuse_non_boolean(clause.condition, source.columns, lambda: source.alias(self.join.source_alias))
        for clause in self.by_source:
            refuse_non_boolean_of(spark, clause.condition, table, self.join.target_alias)

    @property
    def clauses(self) -> list[Clause]:
        """The clauses of all kinds."""
        return [*self.matched, *self.not_matched, *self.by_source]

    def asked(self, table: Table) -> Iterator[Expression | None]:
        """What the clauses ask of a pair, or of a source row, of `table` as it is by now."""
        for clauses in (self.matched, self.not_matched, self.by_source):
            for clause in self.resolved(clauses, table):
                yield clause.condition
                yield from (clause.values or {}).values()

    def new_columns(self, table: Table) -> Sequence[catalog.Column]:
        """The columns that schema evolution adds to the table, and those whose structs get more fields by it.

        Raises ColumnError for a type that it cannot have.
        """
        named = {of for clause in self.clauses for name in clause.values or {} for of in names_meant(name)}
        everything = any(clause.all_columns for clause in self.clauses)
        fields = [
            one
            for one in self.join.source.schema.fields
            if (everything or one.name.lower() in named) and one.name.lower() not in self.left_out
        ]
        return [*lacking(table, fields), *wider(table, fields)]

    def resolved(self, clauses: Sequence[Clause], table: Table) -> list[Clause]:
        """Clauses with their values by column name in lower case; `table` is the table as it is by now.

        Raises ColumnError for names that are unknown or given twice, and for columns that the source lacks.
        """
        return [self._resolved(clause, table, inserts=clauses is self.not_matched) for clause in clauses]

    def _resolved(self, clause: Clause, table: Table, *, inserts: bool) -> Clause:
        if clause.values is None:
            return clause
        if clause.all_columns:
            given = self._all(table, inserts=inserts)
            return Clause(clause.condition, {**_defaults(table, inserts=inserts), **given}, all_columns=True)
        if not clause.values and not inserts:
            raise ColumnError(f"UPDATE of {table.full_name} sets no column")
        if not inserts:
            return Clause(clause.condition, whole_columns(table, clause.values, self.join.target_alias))
        _checked_names(table, clause.values)
        given = {name.lower(): value for name, value in clause.values.items()}
        return Clause(clause.condition, {**_defaults(table, inserts=inserts), **given})

    def _add(self, clauses: list[Clause], clause: Clause) -> MergeBuilder:
        check_condition("condition", clause.condition)
        check_values("set or values", clause.values)
        if clauses and clauses[-1].condition is None:
            raise ColumnError("a clause follows one without condition: it could never apply")
        clauses.append(clause)
        return self

    def _all(self, table: Table, *, inserts: bool) -> dict[str, Expression]:
        given = {name.lower(): name for name in self.join.source.columns}
        defaults = _defaults(table, inserts=inserts)
        needed = () if self.evolves else [column for column in table.columns if column.name not in defaults]
        keys = [key for key in table.partition_keys if inserts and key.name not in defaults]
        if missing := [column.name for column in (*needed, *keys) if column.name not in given]:
            raise ColumnError(
                f"the source of the MERGE into {table.full_name} has no column {', '.join(missing)}: "
                "name the values to assign instead of all, or ask for schema evolution, by which an updated row keeps "
                "its value there and a new one has null"
            )
        columns = [column for column in table.all_columns if column.name in given]
        values = {column.name: self.source_column(given[column.name]) for column in columns}
        if not self.evolves:
            return dict(values)
        target = quoted(self.join.target_alias)
        return {
            column.name: completed(
                values[column.name],
                self.join.source.schema[given[column.name]].dataType,
                spark_type(column.type),
                None if inserts else f"{target}.{quoted(column.name)}",
            )
            for column in columns
        }

    def source_column(self, name: str) -> str:
        """A column of the source by its name there."""
        return f"{quoted(self.join.source_alias)}.{quoted(name)}"


def _defaults(table: Table, *, inserts: bool) -> dict[str, str]:
    """What new rows have in columns that a clause does not name, if not null."""
    return {name: in_parentheses(value) for name, value in table.defaults.items()} if inserts else {}


def _checked_names(table: Table, given: Iterable[str]) -> None:
    """Raise ColumnError for a name that is unknown or given twice."""
    names = [name.lower() for name in given]
    check_distinct(names)
    if unknown := sorted({*names} - {column.name for column in table.all_columns}):
        raise ColumnError(f"{table.full_name} has no column {', '.join(unknown)}")
