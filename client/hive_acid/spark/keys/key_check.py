"""Whether rows that a statement has written have primary keys of their own.

The check looks at the files that are in place, before the commit: what a source would give the second time does not
matter. Their keys are compared with each other, and with those of the rows that the table has by now, which are more
than the transaction sees: one of them that was added since is a conflict, and no duplicate. Rows that others add after
that are looked at as the transaction commits (`transactions/changed_rows.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Table
from hive_acid.errors import DuplicateKeyError, HiveAcidError, WriteConflictError
from hive_acid.filesystem import files
from hive_acid.format.state import DataDirectory
from hive_acid.spark.conditions.predicates import MOST_VALUES, Predicate, all_of, between, one_of
from hive_acid.spark.jvm.frames.fetched import received, sent
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.keys.key_columns import are_null, key_name, keys_of, names_of, told, with_same
from hive_acid.spark.keys.rows_since import MOST_WRITES, rows_since
from hive_acid.spark.limits import Limits
from hive_acid.spark.read.listing import PartitionState, TableState, table_state
from hive_acid.spark.read.skipping import with_files_pruned
from hive_acid.spark.read.table_frame import KEY_COLUMNS, read_rows
from hive_acid.spark.values.types import spark_type
from hive_acid.transactions.changed_rows import Since
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.same_partitions import key_is_of_partitions
from hive_acid.write.table_write import Published

_MOST_BROADCAST = 1_000_000
"""So many keys at most are sent to each task that reads the table."""

_TOLD = 3
_COUNT = "__acid_count"
_TEXT = "__acid_text"

Places = Callable[[Predicate | None], Mapping[str, str]]
"""Gives where the partitions are that may have wanted rows, by their names; of a table without partitions none."""


@dataclass(frozen=True)
class KeyCheck:
    """The check of one transaction's rows in a table that has a primary key."""

    spark: SparkSession
    transaction: Transaction
    table: Table
    places: Places
    skipping: bool
    limits: Limits

    def check(self, published: Sequence[Published]) -> None:
        """Compare the keys of rows in directories that are in place, and have the commit compare them once more.

        Raises DuplicateKeyError for a row without a key, or with that of another one; WriteConflictError if that was
        added since the transaction began.
        """
        since = self.transaction.since(*self._name)
        keys = keys_of(self._written(since, published), self.table.key)
        names = [key_name(position) for position in range(len(self.table.key))]
        grouped = keys.groupBy(*names).agg(F.count(F.lit(1)).alias(_COUNT))
        found = self._measured(grouped)
        if not found["keys"]:
            return
        self._refuse_alike(found)
        self.transaction.changed.look_before_commit(".".join(self._name), self.why_not_apart, name="keys")
        if self.table.is_successor:  # all of its rows are these
            return
        wanted = self._wanted(grouped, found)
        there = keys_of(
            read_rows(self.spark, self._others(since, published, wanted), wanted=wanted),
            self.table.key,
            f"{KEY_COLUMNS[0]} AS {KEY_COLUMNS[0]}",
        )
        few = F.broadcast(grouped) if found["keys"] <= _MOST_BROADCAST else grouped
        same = with_same(there, few, self.table.key)
        rows = projected(same, KEY_COLUMNS[0], f"{told(self.table.key)} AS {_TEXT}").limit(_TOLD).collect()
        if rows:
            self._refuse_taken(rows, since)

    def why_not_apart(self, since: Since, places: Mapping[str, str]) -> str | None:
        """Why rows of others that have become visible `since` may have keys of the transaction's own; None if not.

        `places` are the partitions to which it has written. Raises OSError where files cannot be read.
        """
        writes = since.others(MOST_WRITES)
        if writes is None:
            return "there are too many new rows to compare their keys"
        if not writes or not places:
            return None
        try:
            others = places if self._is_of_places else self.places(None)
            own, theirs = self._rows_of(since, [since.own], places), self._rows_of(since, writes, others)
            same = with_same(theirs, own, self.table.key)
            rows = projected(same, f"{told(self.table.key)} AS {_TEXT}").limit(_TOLD).collect()
        except HiveAcidError as error:
            return f"new rows cannot be read: {error}"
        if not rows:
            return None
        return f"both have added rows of the primary key {'; '.join(sorted({row[_TEXT] for row in rows}))}"

    @property
    def _name(self) -> tuple[str, str]:
        """The database and the name by which the transaction has a write id."""
        database, _, name = self.table.full_name.rpartition(".")
        return database, name

    @property
    def _is_of_places(self) -> bool:
        return key_is_of_partitions(self.table)

    def _rows_of(self, since: Since, writes: Sequence[int], places: Mapping[str, str]) -> DataFrame:
        rows = rows_since(*(self.spark, self.table, since, writes, places), skipping=self.skipping, limits=self.limits)
        return keys_of(rows, self.table.key)

    # --- what there is --------------------------------------------------------------------------

    def _written(self, since: Since, published: Sequence[Published]) -> DataFrame:
        own = _directories(published)
        places = {one.partition: files.parent(one.directory) for one in published if one.partition}
        return read_rows(self.spark, self._state(since, places, lambda at, found: (at, found) in own), with_ids=False)

    def _others(self, since: Since, published: Sequence[Published], wanted: Predicate | None) -> TableState:
        own, places = _directories(published), self.places(wanted if self.skipping else None)
        state = self._state(since, places, lambda at, found: (at, found) not in own, originals=True)
        return with_files_pruned(state, wanted)

    def _state(
        self,
        since: Since,
        places: Mapping[str, str],
        chosen: Callable[[str, str], bool],
        *,
        originals: bool = False,
    ) -> TableState:
        """The table by now, with the directories of rows that are `chosen` by partition and name."""

        def of(partition: PartitionState) -> PartitionState:
            def is_chosen(found: DataDirectory) -> bool:
                return chosen(partition.name, found.name)

            return partition.with_data(is_chosen, originals=originals)

        state = table_state(self.table, places, since.now, since.snapshot, only_these=bool(self.table.partition_keys))
        return replace(state, partitions=tuple(map(of, state.partitions)), skipping=self.skipping, limits=self.limits)

    # --- what of it is alike --------------------------------------------------------------------

    def _measured(self, grouped: DataFrame) -> Any:
        """What there is of keys: how many, which lack a value or come twice, and their ends."""
        key = self.table.key
        text, null = told(key), f"({are_null(key)})"
        ends = [
            f"{sent(f'{end}({key_name(position)})', spark_type(column.type))} AS {what}_{position}"
            for position, column in enumerate(key)
            for what, end in (("low", "min"), ("high", "max"))
        ]
        return projected(
            grouped,
            "count(1) AS keys",
            f"coalesce(sum(if({null}, {_COUNT}, 0)), 0) AS nulls",
            f"min(if({null}, {text}, NULL)) AS a_null",
            f"count_if({_COUNT} > 1) AS repeated",
            f"min(if({_COUNT} > 1, {text}, NULL)) AS first",
            f"max(if({_COUNT} > 1, {text}, NULL)) AS last",
            *ends,
        ).collect()[0]

    def _wanted(self, grouped: DataFrame, found: Any) -> Predicate | None:
        """What is known of a row that has one of the keys."""
        types = [spark_type(column.type) for column in self.table.key]
        if found["keys"] <= MOST_VALUES:
            values = (sent(key_name(position), of) for position, of in enumerate(types))
            rows = projected(grouped, *values).collect()
            return all_of(
                one_of(column, (received(row[at], types[at]) for row in rows))
                for at, column in enumerate(self.table.key)
            )
        return all_of(
            between(column, *(received(found[f"{end}_{at}"], types[at]) for end in ("low", "high")))
            for at, column in enumerate(self.table.key)
        )

    def _refuse_alike(self, found: Any) -> None:
        if found["nulls"]:
            raise DuplicateKeyError(
                f"{found['nulls']} new rows of {self.table.full_name} have no value in a column of its primary key "
                f"({names_of(self.table.key)}), such as {found['a_null']}"
            )
        if found["repeated"]:
            some = "; ".join(dict.fromkeys((found["first"], found["last"])))
            raise DuplicateKeyError(
                f"{found['repeated']} values of the primary key ({names_of(self.table.key)}) of "
                f"{self.table.full_name} come more than once in the new rows, such as {some}"
            )

    def _refuse_taken(self, rows: Sequence[Any], since: Since) -> None:
        some = "; ".join(sorted({row[_TEXT] for row in rows}))
        key = names_of(self.table.key)
        if all(not since.before.is_valid(row[0]) for row in rows):
            raise WriteConflictError(
                f"write conflict: since transaction {self.transaction.id} began, another one has added rows to "
                f"{self.table.full_name} with values of its primary key ({key}) that it adds, too: {some}. Nothing was "
                "written; run the statement again on fresh data."
            )
        raise DuplicateKeyError(
            f"{self.table.full_name} has rows with values of its primary key ({key}) that new rows have, too, such as "
            f"{some}: leave these out, or say what becomes of them, by ON CONFLICT or a MERGE"
        )


def _directories(published: Sequence[Published]) -> set[tuple[str, str]]:
    """Partitions and names of directories."""
    return {(one.partition, one.directory.rstrip("/").rpartition("/")[2]) for one in published}
