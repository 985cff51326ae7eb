"""`df.mergeInto` of frames of a session that is joined: Spark's words for `AcidSession.merge`."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.change.merge import MergeBuilder
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.enabled.joined import EnabledSession, WriteTarget
from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.values.quoting import quoted

_NO_ALIAS = ("source", "s")


class JoinedMerge:
    """As Spark's `MergeIntoWriter`. The table is called by its name, the source by its alias."""

    def __init__(self, acid: EnabledSession, target: WriteTarget, frame: DataFrame, condition: Any) -> None:
        assert target.table is not None
        alias = alias_of(frame)
        source = alias or next(name for name in _NO_ALIAS if name != target.called.lower())
        self._frame, self._alias = frame, source
        self._builder = acid.merge(
            target.table, frame, self.meant(condition), target_alias=target.called, source_alias=source
        )

    def whenMatched(self, condition: Expression | None = None) -> WhenMatched:  # noqa: N802 - Spark's names
        """Begin a clause for rows of the table that a row of the source matches."""
        return WhenMatched(self, self._builder, condition)

    def whenNotMatched(self, condition: Expression | None = None) -> WhenNotMatched:  # noqa: N802
        """Begin a clause for rows of the source that match none of the table."""
        return WhenNotMatched(self, self._builder, condition)

    def whenNotMatchedBySource(self, condition: Expression | None = None) -> WhenNotMatchedBySource:  # noqa: N802
        """Begin a clause for rows of the table that no row of the source matches."""
        return WhenNotMatchedBySource(self, self._builder, condition)

    def meant(self, given: Any) -> Any:
        """A condition or a value, in which columns that are bound to the source are named by its alias.

        Over Connect a bound column is one of that very frame, and what is merged is made of it.
        """
        return _named(given, _plans_of(self._frame), quoted(self._alias))

    def withSchemaEvolution(self) -> JoinedMerge:  # noqa: N802
        """Add columns that the source has and the table lacks."""
        self._builder.withSchemaEvolution()
        return self

    def merge(self) -> None:
        """Run it. Raises what `MergeBuilder.execute` does."""
        self._builder.execute()


class _Clause:
    def __init__(self, merge: JoinedMerge, builder: MergeBuilder, condition: Expression | None) -> None:
        self._merge, self._builder, self._condition = merge, builder, merge.meant(condition)

    def _values(self, assignments: Mapping[str, Expression]) -> dict[str, Expression]:
        return {name: self._merge.meant(value) for name, value in assignments.items()}


class WhenMatched(_Clause):
    """What is done to rows that match."""

    def updateAll(self) -> JoinedMerge:  # noqa: N802
        """All columns get the source's values."""
        self._builder.whenMatchedUpdateAll(self._condition)
        return self._merge

    def update(self, assignments: Mapping[str, Expression]) -> JoinedMerge:
        """Columns get these values."""
        self._builder.whenMatchedUpdate(self._condition, self._values(assignments))
        return self._merge

    def delete(self) -> JoinedMerge:
        """They go."""
        self._builder.whenMatchedDelete(self._condition)
        return self._merge


class WhenNotMatched(_Clause):
    """What is done with rows of the source that match nothing."""

    def insertAll(self) -> JoinedMerge:  # noqa: N802
        """They are inserted, all columns by name."""
        self._builder.whenNotMatchedInsertAll(self._condition)
        return self._merge

    def insert(self, assignments: Mapping[str, Expression]) -> JoinedMerge:
        """Rows with these values are inserted."""
        self._builder.whenNotMatchedInsert(self._condition, self._values(assignments))
        return self._merge


class WhenNotMatchedBySource(_Clause):
    """What is done to rows of the table that no row of the source matches."""

    def updateAll(self) -> JoinedMerge:  # noqa: N802
        """Refused: no row of the source has values for them. Raises UnsupportedTableError."""
        raise UnsupportedTableError("whenNotMatchedBySource().updateAll(): no row of the source has values: use update")

    def update(self, assignments: Mapping[str, Expression]) -> JoinedMerge:
        """Columns get these values."""
        self._builder.whenNotMatchedBySourceUpdate(self._condition, self._values(assignments))
        return self._merge

    def delete(self) -> JoinedMerge:
        """They go."""
        self._builder.whenNotMatchedBySourceDelete(self._condition)
        return self._merge


def _plans_of(frame: DataFrame) -> frozenset[int]:
    """The numbers by which columns of Connect are bound to a frame, or to what it is only another name for."""
    found = set()
    plan: Any = vars(frame).get("_plan")
    while plan is not None:
        found.add(plan._plan_id)
        plan = plan._child if type(plan).__name__ == "SubqueryAlias" else None
    return frozenset(found)


def _named(given: Any, plans: frozenset[int], alias: str) -> Any:
    """A part of an expression of Connect, with names in the place of columns that are bound to one of `plans`."""
    if isinstance(given, list | tuple):
        return type(given)(_named(one, plans, alias) for one in given)
    if not plans or not isinstance(given, _parts_of_expressions()):
        return given
    words = vars(given)
    made: Any = copy.copy(given)
    if words.get("_plan_id") in plans and "_unparsed_identifier" in words:
        made._plan_id, made._unparsed_identifier = None, f"{alias}.{words['_unparsed_identifier']}"
        return made
    vars(made).update({name: _named(value, plans, alias) for name, value in words.items()})
    return made


def _parts_of_expressions() -> tuple[type, ...]:
    """The classes of Connect of which expressions are made."""
    from pyspark.sql.connect.column import Column
    from pyspark.sql.connect.expressions import Expression as Part

    return Column, Part


def alias_of(frame: DataFrame) -> str | None:
    """The name that `DataFrame.alias` has given to a frame last; None if there is none, or only one of ours."""
    of_frame: Any = frame
    if (of_jvm := frame_in_jvm(frame)) is not None:
        plan = of_jvm.queryExecution().logical()
        found = plan.alias() if plan.getClass().getSimpleName() == "SubqueryAlias" else None
    else:
        found = getattr(of_frame._plan, "_alias", None)
    return None if not isinstance(found, str) or found.startswith("__acid_") else found
