"""Filter pushdown: frames of a table read less when they are filtered, since each condition reaches a scan of its own.

What can be pruned has to be known when a scan is built: `filter` therefore builds another scan of the same snapshot,
which knows of the condition, and puts the same conditions on it. To Spark its columns are others than those of the
first scan. So once a condition has been pushed down, the columns that a frame is asked for (``frame.k``,
``frame["k"]``) are given by name, and mean those of either; and a frame whose columns have been asked for before is
filtered as any other frame.

A classic frame of a snapshot of its own is planned when it is first used (`unplanned`): who filters it, or counts it,
has not paid for a scan of all. Its snapshot, its locks and the table's definition are those of when it was made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from hive_acid.catalog.table import Table
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.constants import ask_of
from hive_acid.spark.conditions.expressions import left_of
from hive_acid.spark.conditions.predicates import Predicate, all_of, predicate_of
from hive_acid.spark.conditions.trees import is_of_connect
from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.frames.narrowing import names_moment
from hive_acid.spark.jvm.frames.scala import have_columns_in_common, identified
from hive_acid.spark.jvm.running import check_running
from hive_acid.spark.jvm.session_settings import SessionSettings
from hive_acid.spark.read.partitions.reach import Reachable
from hive_acid.spark.read.skipping import meet_all
from hive_acid.spark.read.totals.extremes import Extreme, Totals
from hive_acid.spark.read.undivided import beside, filtered
from hive_acid.spark.snapshots.holding import hold
from hive_acid.spark.snapshots.lease import Lease
from hive_acid.spark.values.quoting import quoted

Frame = TypeVar("Frame", bound=DataFrame)

_NUMBERS = itertools.count()


@dataclass(slots=True)
class Family:
    """The frames of one snapshot of a table: the alias that all have, and what has been done with them."""

    alias: str = field(default_factory=lambda: f"__acid_table_{next(_NUMBERS)}")
    columns_given: bool = False
    has_pushed_down: bool = False


@dataclass(frozen=True, slots=True)
class Pushdown:
    """How a frame came about: `read` builds a scan of what is wanted, and the conditions were put on it.

    `totals` are of all rows, with the extremes that are asked for, if they are known without reading rows. `lease`
    keeps the files, if anything does. `settings` are those under which the conditions mean what they do, and the texts
    of partitions the times that they are.
    """

    table: Table
    read: Callable[[Predicate | None], DataFrame]
    totals: Callable[[Sequence[Extreme]], Totals | None]
    settings: SessionSettings
    lease: Lease | None = None
    reachable: Reachable | None = None
    """What a join may leave out partitions of."""

    partitions: Callable[[Predicate | None], Sequence[str]] | None = None
    """The names of those that are read for what is wanted, if their keys may answer conditions."""

    wanted: Predicate | None = None
    conditions: tuple[Column | str, ...] = ()
    family: Family = field(default_factory=Family)

    def frame(self) -> DataFrame:
        """The rows of the snapshot that meet the conditions."""
        frame = self.read(self.wanted).alias(self.family.alias)
        if self.lease is not None:
            hold(frame, self.lease, self.family.alias)
        for condition in self.conditions:
            left = condition if self.partitions is None else left_of(condition, self.holds)
            if left is not None:
                frame = filtered(frame, left)
        return frame

    def holds(self, condition: Column | str) -> bool:
        """Whether a condition is surely true of all rows that are read, as the keys of their partitions tell.

        To ask each row for it would take bytes of its file's path, and code that is compiled for its values.
        """
        if self.partitions is None:
            return False
        return meet_all(self.table, self.partitions(self.wanted), condition, self.family.alias)

    def planned_later(self, spark: SparkSession) -> Any:
        """As `frame`, under the session's time zone of when the frame was made."""
        with self.settings.zone_of(spark):
            return self.frame()

    def with_condition(self, spark: SparkSession, condition: object) -> Pushdown | None:
        """With one more condition; None if it says nothing that a scan could use."""
        if not isinstance(condition, Column | str) or self.family.columns_given:
            return None
        if isinstance(condition, Column) and is_of_connect(condition):
            # It may name another frame as its own, which is found out too late.
            return None
        said = predicate_of(condition, self.table, self.family.alias, ask=ask_of(spark))
        if said is None:
            return None
        return replace(self, wanted=all_of((self.wanted, said)), conditions=(*self.conditions, self.meant(condition)))

    def meant(self, condition: Column | str) -> Column | str:
        """A condition, for Spark, with the CHAR columns of the table compared by Hive's rule."""
        if isinstance(condition, Column) and is_of_connect(condition):
            return condition
        return without_blanks(condition, self.table, self.family.alias)

    def filtered(self, spark: SparkSession, condition: Column | str) -> DataFrame | None:
        """The frame with one more condition, of a scan of its own; None where the one that is there does as well, and
        where the session has been set otherwise since: the frame stays what it was.
        """
        pushdown = self.with_condition(spark, condition)
        if pushdown is None or not self.settings.are_those_of(spark):
            return None
        try:
            frame = pushdown.frame()
        except AnalysisException:
            # It names a column in a way that only one very frame understands, or that none does.
            return None
        self.family.has_pushed_down = True
        made = of_kind(PushdownFrame, frame)
        made._pushdown = pushdown
        made._session = spark
        return made

    def joined(self, frame: PushdownFrame, other: DataFrame, on: Any, how: str | None) -> DataFrame | None:
        """The join of `frame`, which is this one, planned when it is used; None if all partitions are read for it.

        If columns of the frame have been given, they are columns of the join.
        """
        spark, own = frame.sparkSession, DataFrame.join
        reachable = self.reachable
        if reachable is None or names_moment(str(on)) or not self.settings.are_those_of(spark):
            return None
        standing = reachable.standing(spark)
        if standing is None:
            return None
        like = frame if self.family.columns_given else None
        if like is not None and have_columns_in_common(like, other):
            return None

        def placed(rows: DataFrame) -> DataFrame:
            return rows if like is None else identified(rows, like).alias(self.family.alias)

        def planned_with(rows: DataFrame) -> DataFrame:
            return own(placed(standing.alias(self.family.alias)), rows, on, how)

        beside = other._pushdown if isinstance(other, PushdownFrame) else None
        is_narrow = None if beside is None else bool(beside.conditions)
        if not reachable.is_narrowed(planned_with, other, is_narrow=is_narrow):
            return None

        def planned() -> DataFrame:
            with self.settings.zone_of(spark):
                reach, rows = reachable.reach(planned_with, other)
                if reach is None:
                    return own(frame, other, on, how)
                return own(placed(replace(self, wanted=all_of((self.wanted, reach))).frame()), rows, on, how)

        if like is None:
            self.family.has_pushed_down = True
        made = unplanned(JoinedFrame, spark)
        made._plan = planned
        return made

    def column(self, name: str) -> Column:
        """A column of whichever of the family's frames it is used on."""
        return F.col(f"{quoted(self.family.alias)}.{name}")


class _OfRunning:
    """An attribute of a frame without which nothing can be done with it: it is there as long as Spark runs."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, frame: object, owner: type | None = None) -> Any:
        if frame is None:
            return self
        words = vars(frame)
        if self._name not in words:
            raise AttributeError(self._name)
        check_running(words["_session"])
        return words[self._name]

    def __set__(self, frame: object, value: Any) -> None:
        vars(frame)[self._name] = value


class _OfPlan(_OfRunning):
    """The frame of the JVM, which is planned when it is first asked for."""

    def __get__(self, frame: object, owner: type | None = None) -> Any:
        words = {} if frame is None else vars(frame)
        if "_sc" in words and self._name not in words and isinstance(frame, PushdownFrame):
            check_running(frame._session)
            words[self._name] = frame_in_jvm(frame._planned())
        return super().__get__(frame, owner)


class PushdownFrame(DataFrame):
    """A frame whose filters decide what is read. After `spark.stop()` it raises SparkStoppedError."""

    _pushdown: Pushdown | None = None
    _session: Any = _OfRunning()
    _sc: Any = _OfRunning()
    _jdf: Any = _OfPlan()

    def _planned(self) -> Any:
        """The frame as it is planned now; None for one that has been."""
        return self._pushdown and self._pushdown.planned_later(self._session)

    @property
    def schema(self) -> StructType:
        """As every frame's; why it cannot be planned is not told as something wrong with a type."""
        frame_in_jvm(self)
        return super().schema

    def filter(self, condition: Column | str) -> DataFrame:
        """As every frame's; what surely does not meet the condition is not read."""
        check_running(self.sparkSession)
        if self._pushdown is None or not isinstance(condition, Column | str):
            return super().filter(condition)
        found = None if self.is_cached else self._pushdown.filtered(self.sparkSession, condition)
        if found is not None:
            return found
        meant = self._pushdown.meant(condition)
        rows: DataFrame = beside(self, meant)
        return super().filter(meant) if rows is self else rows.filter(meant)

    def where(self, condition: Column | str) -> DataFrame:
        """As `filter`."""
        return self.filter(condition)

    def join(self, other: DataFrame, on: Any = None, how: str | None = None) -> DataFrame:
        """As every frame's; partitions of the table that a small `other` frame does not reach are not read."""
        check_running(self.sparkSession)
        found = None
        if self._pushdown is not None and on is not None and not self.is_cached and isinstance(other, DataFrame):
            found = self._pushdown.joined(self, other, on, how)
        return super().join(other, on, how) if found is None else found

    def count(self) -> int:
        """As every frame's; nothing is read where the files' tails tell the number."""
        check_running(self.sparkSession)
        known = self.known_totals(())
        return super().count() if known is None else known.rows

    def known_totals(self, asked: Sequence[Extreme]) -> Totals | None:
        """How many rows there are, and some extremes, if the files' tails tell it."""
        if self._pushdown is None or self._pushdown.wanted or self._pushdown.conditions or self.is_cached:
            return None
        return self._pushdown.totals(asked)

    def __getitem__(self, item: Any) -> Any:
        check_running(self.sparkSession)
        if self._pushdown is None or not isinstance(item, int | str):
            return super().__getitem__(item)
        if self._pushdown.family.has_pushed_down:
            return self._pushdown.column(quoted(self.columns[item]) if isinstance(item, int) else item)
        self._pushdown.family.columns_given = True
        return super().__getitem__(item)

    def __getattr__(self, name: str) -> Any:
        if (session := vars(self).get("_session")) is not None:
            check_running(session)
        found: Any = super().__getattr__(name)
        pushdown = self.__dict__.get("_pushdown")
        if pushdown is None or not isinstance(found, Column):
            return found
        if pushdown.family.has_pushed_down:
            return pushdown.column(quoted(name))
        pushdown.family.columns_given = True
        return found


class JoinedFrame(PushdownFrame):
    """A join that is planned when it is used: rows of the other frame tell then which partitions are read."""

    _plan: Callable[[], DataFrame]

    def _planned(self) -> DataFrame:
        return self._plan()


def unplanned(wanted: type[Frame], spark: SparkSession) -> Frame:
    """A classic frame of the class `wanted`, which is planned when it is first used."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    frame: Any = Classic(None, spark)
    made = of_kind(wanted, frame)
    del vars(made)["_jdf"]
    return made


def of_kind(wanted: type[Frame], frame: DataFrame) -> Frame:
    """`frame` as an object of the class `wanted` and of the class that it has."""
    name, words = wanted.__name__, {"__doc__": wanted.__doc__, "__module__": wanted.__module__}
    kind = type(name, (wanted, type(frame)), words)
    made: Frame = object.__new__(kind)
    made.__dict__.update(frame.__dict__)
    return made
