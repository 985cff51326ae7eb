"""From a table's state to a DataFrame: data files less the rows that visible delete events name.

A delete event is matched by its whole key over all delete files of its partition, whatever file it lies in
(acid-format.md §2.8). The join is by one long that mixes the key, since Spark's hash tables are fastest for that, and
the columns of the key are compared behind it: keys that mix to the same long cost time and never rows. Directories
that no visible delete event can reach are read without a join.

Partitions whose paths tell their values are read together; one that lies elsewhere is read by itself, and so are files
without ACID columns, files with former names of columns, and partitions of Hive before version 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.format.deletion_bitmap import RowRange
from hive_acid.format.names import Directory
from hive_acid.format.rows import DELETE, ID_COLUMNS, KEY
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.format.state import DataFile
from hive_acid.spark.conditions.predicates import Predicate, restricted
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import (
    LEFT_TO_CALLER,
    Analysis,
    DeleteFacts,
    Deletes,
    PlacePlan,
    Reach,
    ReadPlan,
    Scans,
    deletes_by,
    scans_for,
)
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.deleted import Asked, Deleted, LookUp, deleted_rows, facts_of, look_up_of
from hive_acid.spark.read.legacy.evolution import names_in_directories, names_in_originals
from hive_acid.spark.read.legacy.originals import Names, OriginalFile, original_events, original_files
from hive_acid.spark.read.legacy.pre_hive_3_deltas import hold_updates, latest_events, may_hold_updates
from hive_acid.spark.read.listing import PartitionState, TableState
from hive_acid.spark.read.scan import (
    PLACE_COLUMN,
    ROW_COLUMN,
    ScanDirectory,
    has_known_uri,
    hoisted,
    partition_texts,
    place_text,
    place_texts,
    row_fields,
    scan,
)
from hive_acid.spark.read.skipping import stored_as_declared, touched_by_deletes
from hive_acid.spark.read.unpushed import behind_sample, has_guards
from hive_acid.spark.values.assign import sql_type
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import declared, shown
from hive_acid.spark.values.types import row_type, spark_type

ROW_ID = "ROW__ID"
"""The name under which Hive shows a row's identity."""

_ID_FIELDS = ("writeId", "bucketId", "rowId")

KEY_COLUMNS = ("__acid_write_id", "__acid_bucket", "__acid_row_id")
"""A row's identity within its partition, in the order in which files are sorted."""


def partition_columns(table: Table) -> list[str]:
    """The hidden columns that hold the text of each partition key, as it stands in the partition's name."""
    return [f"__acid_part_{position}" for position in range(len(table.partition_keys))]


def has_row_ids(table: Table) -> bool:
    """Whether `ROW_ID` means the identity of a table's rows: a column of that name goes before it."""
    return table.is_full_acid and all(column.name != ROW_ID.lower() for column in table.all_columns)


def columns_of_rows(table: Table, *, row_id: bool = False) -> t.StructType:
    """The columns of `read_table`, as Spark has them."""
    types = (t.LongType(), t.IntegerType(), t.LongType())
    ids = t.StructType([t.StructField(*of) for of in zip(_ID_FIELDS, types, strict=True)])
    return t.StructType([*([t.StructField(ROW_ID, ids)] if row_id else []), *row_type(table.all_columns).fields])


def read_table(
    spark: SparkSession, state: TableState, *, row_id: bool = False, wanted: Predicate | None = None
) -> DataFrame:
    """The rows that the snapshot sees: the table's columns, then its partition columns.

    With `row_id`, a first column `ROW_ID` as Hive has it: ``struct<writeId, bucketId, rowId>``.
    """
    frame, plan = planned_table(spark, state, row_id=row_id, wanted=wanted)
    tell(plan)
    return frame


def planned_table(
    spark: SparkSession,
    state: TableState,
    *,
    row_id: bool = False,
    wanted: Predicate | None = None,
    analysis: Choice[Analysis] | None = None,
) -> tuple[DataFrame, ReadPlan]:
    """As `read_table`, with the plan, which is not told; `analysis` says why Spark analyses one now."""
    ids = [f"struct({', '.join(map('{} AS {}'.format, KEY, _ID_FIELDS))}) AS {ROW_ID}"] if row_id else []
    return _rows(_Reading(spark, state, wanted, ids), with_ids=row_id, analysis=analysis)


def read_rows(
    spark: SparkSession,
    state: TableState,
    *,
    with_ids: bool = True,
    wanted: Predicate | None = None,
    in_one_scan: bool = False,
    early: Choosing | None = None,
    with_deleted: bool = False,
    narrow: bool = False,
) -> DataFrame:
    """As `read_table`, with the hidden columns that a change needs: `KEY_COLUMNS` and `partition_columns`.

    Unless `with_ids`, the former may be null: rows of files without ACID columns are not numbered then. Of rows that
    are not `wanted` there may be some, or none. With `in_one_scan`, for who keeps few rows, files that deletes do not
    reach are read with the others: asking of few rows whether they are deleted costs less than a scan of its own.
    `early` chooses some of the rows. It is asked of those, too, that are deleted, so it may fail for none; which these
    are is found out of fewer rows then. `with_deleted` is for who knows the deleted rows (`deleted_from`) and leaves
    them out afterwards, `narrow` for who needs no columns but those of `wanted`: ORC is not to ask it row by row.
    """
    ids = [*map("{} AS {}".format, KEY, KEY_COLUMNS), *partition_columns(state.table)]
    frame, plan = _rows(
        _Reading(spark, state, wanted, ids, in_one_scan, early, with_deleted, narrow), with_ids=with_ids
    )
    tell(plan)
    return frame


def deleted_from(spark: SparkSession, state: TableState) -> Deleted | None:
    """The rows that are deleted from each partition, in their order; None if one has updates among its inserts."""
    if any(has_pre_hive_3_updates(spark, partition) for partition in state.partitions):
        return None
    deletes = [(partition, partition.state.delete_deltas) for partition in state.partitions]
    return deleted_rows(deletes, state.write_ids, state.limits)


Choosing = Callable[[DataFrame], DataFrame]
"""What keeps some of the rows of `read_rows`, and all of their columns."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is read of a table. `ids` are the columns before the table's own, as SQL over ids and partition texts."""

    spark: SparkSession
    state: TableState
    hint: Predicate | None
    ids: Sequence[str]
    in_one_scan: bool = False
    early: Choosing | None = None
    with_deleted: bool = False
    narrow: bool = False
    stored: Mapping[str, bool] = field(default_factory=dict)
    """Columns of `wanted` that all files have as they are declared, and whether they may be null."""

    def chosen(self, rows: DataFrame) -> DataFrame:
        """What `early` keeps of some rows."""
        return self.early(rows) if self.early is not None else rows

    @property
    def wanted(self) -> Predicate | None:
        """By what row groups are skipped."""
        return self.hint if self.state.skipping else None

    def split(self, partitions: Iterable[PartitionState]) -> _Split:
        """The partitions by what deletes can reach."""
        return _split(partitions, self.state, with_deleted=self.with_deleted)


def _rows(reading: _Reading, *, with_ids: bool, analysis: Choice[Analysis] | None = None) -> tuple[DataFrame, ReadPlan]:
    state = reading.state
    if not reading.narrow:
        reading = replace(reading, stored=stored_as_declared(state, reading.wanted))
    told_by_path = tuple(found for found in state.partitions if found.is_told_by_path)
    together = _PartitionGroup(reading, told_by_path)
    apart = [_PartitionGroup(reading, (found,)) for found in state.partitions if not found.is_told_by_path]
    plans: list[PlacePlan] = []
    parts = [part for place in (together, *apart) for part in place.rows(plans, with_ids=with_ids)]
    skips_groups = restricted(reading.wanted, [column.name for column in state.table.columns]) is not None
    plan = state.plan(plans, skips_groups=skips_groups, analysis=analysis)
    return reduce(DataFrame.unionByName, parts) if parts else together.no_rows(), plan


@dataclass(frozen=True, slots=True)
class _PartitionGroup:
    """Partitions that are read together: all those whose paths tell their values, or one that lies elsewhere."""

    reading: _Reading
    partitions: tuple[PartitionState, ...]

    def rows(self, plans: list[PlacePlan], *, with_ids: bool) -> list[DataFrame]:
        """The frames that together are these partitions' part of the table; how it is read is added to `plans`."""
        pre_hive_3 = [partition for partition in self.partitions if has_pre_hive_3_updates(self._spark, partition)]
        others = [partition for partition in self.partitions if partition not in pre_hive_3]
        split = self.reading.split(others)
        # A join with the deletes of one partition does not ask for the partition first.
        can_join = len(self.partitions) == 1 or len(split.deleted_from) > 1
        with ThreadPoolExecutor(1, thread_name_prefix="look-up") as pool:
            # While this process reads delete files, the JVM lists data files.
            asked = pool.submit(self._look_up, split, others).result if split.deleted_from else _nothing_asked
            reached, unreached = split.numbers
            scans = self._scans(split, asked, can_join=can_join)
            # Spark 4.1 and 4.2 put all rows of several scans into rows of another kind; 4.3 needs one program less.
            if scans is not None and scans.way is Scans.ONE:
                split.touched += split.untouched
                split.untouched = []
            renamed = names_in_directories(
                self._spark, self._table, [(at.location, found) for at in self.partitions for found in at.with_ids]
            )
            untouched = self._events(split.untouched, renamed, self.reading.wanted, KEY if with_ids else ())
            if split.untouched_originals:
                untouched.append(self._originals(split.untouched_originals, with_ids=with_ids))
            touched = self._events(split.touched, renamed, self.reading.wanted, KEY)
            if split.touched_originals:
                touched.append(self._originals(split.touched_originals, with_ids=True))
            deletes = self._deletes_by(split, asked())
            parts = [self._chosen(events) for events in untouched]
            parts += self._without(touched, split, deletes, asked().look_up)
        if others:
            name = self._name(others)
            reach, gone = tuple(dict.fromkeys(split.reach)), sum(map(len, split.gone.values()))
            plans.append(PlacePlan(name, len(others), reached, unreached, deletes, scans, reach, gone=gone))
        return [*parts, *(self._latest(partition, renamed, plans) for partition in pre_hive_3)]

    def _scans(self, split: _Split, asked: Callable[[], Asked], *, can_join: bool) -> Choice[Scans] | None:
        """How many scans there are; None where all files are of one kind. It is only asked for what it takes."""
        if not split.touched:
            return None
        keeps_few = self.reading.in_one_scan
        return scans_for(keeps_few=keeps_few, can_join=can_join, looked_up=None) or scans_for(
            keeps_few=keeps_few, can_join=can_join, looked_up=asked().look_up is not None
        )

    def _deletes_by(self, split: _Split, asked: Asked) -> Choice[Deletes]:
        """How deleted rows are kept out."""
        if self.reading.with_deleted:
            return LEFT_TO_CALLER
        if not split.deleted_from:
            return deletes_by(None, self._state.limits)
        return deletes_by(asked.known, self._state.limits)

    def _name(self, partitions: Sequence[PartitionState]) -> str:
        """What partitions of this place are called in a plan."""
        if not self._table.partition_keys:
            return "table"
        if self._is_elsewhere or len(partitions) == 1:
            return f"partition {partitions[0].name}"
        return f"{len(partitions):,} partitions"

    def no_rows(self) -> DataFrame:
        """An empty part."""
        return self._shown(self._scan([]))

    @property
    def _spark(self) -> SparkSession:
        return self.reading.spark

    @property
    def _state(self) -> TableState:
        return self.reading.state

    @property
    def _table(self) -> Table:
        return self._state.table

    @property
    def _is_elsewhere(self) -> bool:
        return any(not partition.is_told_by_path for partition in self.partitions)

    @property
    def _is_told_by_name(self) -> bool:
        """Whether all rows have the same keys, so that no row's path is looked into."""
        return self._is_elsewhere or len(self.partitions) == 1

    def _scan(
        self,
        found: Sequence[ScanDirectory],
        columns: Sequence[catalog.Column] | None = None,
        wanted: Predicate | None = None,
        ids: Sequence[str] = ID_COLUMNS,
    ) -> DataFrame:
        row = row_type(self._table.columns if columns is None else columns)
        with_path = bool(self._table.partition_keys) and not self._is_told_by_name
        stored = self.reading.stored
        events = scan(
            self._spark, row, found, self._state.write_ids, with_path=with_path, wanted=wanted, stored=stored, ids=ids
        )
        if row.fields and not has_guards(self._table.columns):
            events = behind_sample(events)
        return self._with_texts(events)

    def _events(
        self,
        found: Sequence[ScanDirectory],
        renamed: Mapping[str, Names],
        wanted: Predicate | None = None,
        ids: Sequence[str] = ID_COLUMNS,
    ) -> list[DataFrame]:
        """The events in directories: one frame for those with the table's names, one for each set of others."""
        by_names: dict[Names | None, list[ScanDirectory]] = {}
        for directory in found:
            by_names.setdefault(renamed.get(directory.path), []).append(directory)
        return [
            self._scan(of, wanted=wanted, ids=ids) if names is None else self._renamed(of, names, ids)
            for names, of in by_names.items()
        ]

    def _renamed(self, found: Sequence[ScanDirectory], names: Names, ids: Sequence[str]) -> DataFrame:
        columns = self._table.columns
        present = [catalog.Column(name, of.type) for name, of in zip(names, columns, strict=True) if name]
        events = self._scan(found, present, ids=ids)
        fields = [
            (F.col(ROW_COLUMN).getField(name.lower()) if name else F.lit(None).cast(spark_type(of.type))).alias(of.name)
            for name, of in zip(names, columns, strict=True)
        ]
        others = [name for name in events.columns if name not in (*ID_COLUMNS, ROW_COLUMN)]
        return events.select(*ID_COLUMNS, F.struct(*fields).alias(ROW_COLUMN), *others)

    def _originals(self, found: Sequence[tuple[PartitionState, Sequence[DataFile]]], *, with_ids: bool) -> DataFrame:
        known: list[OriginalFile] = []
        for partition, of in found:
            names = names_in_originals(self._spark, self._table, partition.location, of)
            known += original_files(partition.location, of, names)
        return self._with_texts(original_events(self._spark, self._table.columns, known, with_ids=with_ids))

    def _with_texts(self, events: DataFrame) -> DataFrame:
        """The events, whose file's path is known, with the texts of their partition's keys instead."""
        names = partition_columns(self._table)
        if not names:
            return events
        if self._is_told_by_name:
            values = self.partitions[0].values
            known = [F.lit(value).cast("string").alias(name) for value, name in zip(values, names, strict=True)]
            return events.select(*ID_COLUMNS, ROW_COLUMN, *known)
        below = len(names), self._table.location, [partition.directory for partition in self.partitions]
        texts = zip((*partition_texts(*below), place_text(*below)), (*names, PLACE_COLUMN), strict=True)
        return projected(events, *ID_COLUMNS, ROW_COLUMN, *(f"{text} AS {name}" for text, name in texts))

    def _look_up(self, split: _Split, partitions: Sequence[PartitionState]) -> Asked:
        """How to find out which events in `partitions` are of rows that `split` has deletes for, without a join."""
        deletes = [(partition, partition.state.delete_deltas) for partition in split.deleted_from]
        gone = [split.gone.get(partition.name, ()) for partition in split.deleted_from]
        if len(partitions) == 1:
            return look_up_of(deletes, self._state.write_ids, self._state.limits, gone=gone)
        directories = [partition.directory for partition in self.partitions]
        if not all(map(has_known_uri, directories)):
            return Asked(facts_of(deletes, placed=False), None)
        places = dict(zip((found.name for found in self.partitions), place_texts(directories), strict=True))
        of_deletes = [places.pop(partition.name) for partition in split.deleted_from]
        every = [*of_deletes, *places.values()]
        return look_up_of(deletes, self._state.write_ids, self._state.limits, every, gone)

    def _without(
        self, parts: Sequence[DataFrame], split: _Split, deletes: Choice[Deletes], look_up: LookUp | None
    ) -> list[DataFrame]:
        """The rows of events of `split.touched` less those that its delete events name."""
        if not parts:
            return []
        if look_up is not None:
            assert deletes.way is Deletes.LOOK_UP
            if self.reading.early is None:
                return [self._shown(look_up.without_deleted(events)) for events in parts]
            chosen = (self.reading.early(self._shown(events, look_up.hidden)) for events in parts)
            return [look_up.of_chosen(rows, KEY_COLUMNS) for rows in chosen]
        found = _deletes(self._scan(split.deletes, ()))
        several = len(split.deleted_from) > 1
        broadcast = deletes.way is Deletes.BROADCAST_JOIN
        joined = (anti_join(events, found, several=several, broadcast=broadcast) for events in parts)
        return [self._chosen(events) for events in joined]

    def _latest(self, partition: PartitionState, renamed: Mapping[str, Names], plans: list[PlacePlan]) -> DataFrame:
        """The rows of a partition that has updates among its inserts."""
        split = _split([partition], self._state)
        if split.untouched_originals or split.touched_originals:
            raise UnsupportedTableError(
                f"{partition.location} has files from before the table was ACID, and updates of their rows by Hive "
                "before version 3: let that Hive run a major compaction first"
            )
        events = reduce(DataFrame.unionByName, self._events([*split.untouched, *split.touched], renamed))
        latest = latest_events(events)
        asked = self._look_up(split, [partition]) if split.deletes else _nothing_asked()
        deletes = deletes_by(asked.known if split.deletes else None, self._state.limits)
        plans.append(PlacePlan(self._name([partition]), 1, *split.numbers, deletes, latest=True))
        return self._without([latest], split, deletes, asked.look_up)[0] if split.deletes else self._chosen(latest)

    def _chosen(self, events: DataFrame) -> DataFrame:
        """The rows of events, of which none is deleted, that are chosen."""
        return self.reading.chosen(self._shown(events))

    def _shown(self, events: DataFrame, hidden: Sequence[str] = ()) -> DataFrame:
        """The rows of events, with some more of their columns."""
        table, texts = self._table, partition_columns(self._table)
        values = zip(table.columns, row_fields([column.name for column in table.columns]), strict=True)
        # As SQL, since a call to the JVM for each part of each expression takes long for a wide table.
        rows = projected(
            events,
            *self.reading.ids,
            *(f"{shown(column.type, value)} AS {quoted(column.name)}" for column, value in values),
            *(
                f"{shown(key.type, self._value_of_key(key, text))} AS {quoted(key.name)}"
                for text, key in zip(texts, table.partition_keys, strict=True)
            ),
            *hidden,
        )
        return declared(rows, table.all_columns)

    def _value_of_key(self, key: catalog.Column, text: str) -> str:
        """A key's value by its text, as SQL; that of one partition is out of the code that Spark generates."""
        value = f"try_cast({text} AS {sql_type(spark_type(key.type))})"
        return hoisted(value, "bucket") if self._is_told_by_name else value


def _nothing_asked() -> Asked:
    """Of what nothing is deleted from."""
    return Asked(DeleteFacts(), None)


def delete_events(spark: SparkSession, directories: Sequence[ScanDirectory], write_ids: ValidWriteIdList) -> DataFrame:
    """The visible delete events in `directories`."""
    return _deletes(scan(spark, t.StructType([]), directories, write_ids))


def _deletes(events: DataFrame) -> DataFrame:
    """Those of events that delete."""
    return events.where(F.col("operation") == DELETE)


@dataclass(slots=True)
class _Split:
    """Data without reachable deletes, data with them, and those deletes, which are of the partitions `deleted_from`.

    `reach` is how it was found out which files deletes reach, of each partition that has some, and `gone` the rows of
    those files, by partition, of which all rows are deleted: they are not read.
    """

    untouched: list[ScanDirectory] = field(default_factory=list)
    touched: list[ScanDirectory] = field(default_factory=list)
    untouched_originals: list[tuple[PartitionState, Sequence[DataFile]]] = field(default_factory=list)
    touched_originals: list[tuple[PartitionState, Sequence[DataFile]]] = field(default_factory=list)
    deletes: list[ScanDirectory] = field(default_factory=list)
    deleted_from: list[PartitionState] = field(default_factory=list)
    reach: list[Choice[Reach]] = field(default_factory=list)
    gone: dict[str, Sequence[RowRange]] = field(default_factory=dict)

    @property
    def numbers(self) -> tuple[int, int]:
        """How many files deletes may reach, and how many they do not."""
        return (
            _number(self.touched, self.touched_originals),
            _number(self.untouched, self.untouched_originals),
        )


def _number(found: Iterable[ScanDirectory], originals: Iterable[tuple[PartitionState, Sequence[DataFile]]]) -> int:
    return sum(len(of.files or ()) for of in found) + sum(len(of) for _, of in originals)


def _split(partitions: Iterable[PartitionState], of: TableState, *, with_deleted: bool = False) -> _Split:
    """By what deletes can reach; nothing, if deleted rows are to be read. Statistics are asked if `of` skips."""
    split = _Split()
    for partition in partitions:
        state = partition.state
        events = partition.scan_directories(state.delete_deltas)
        # Of what the latest deletes do not reach, earlier ones reach nothing.
        highest = max((event.directory.max_write_id for event in events), default=0)
        latest = [event.directory for event in events if event.directory.max_write_id == highest]
        # One of which no file is left to be read is reached by nothing.
        read = [found for found in state.data if found.files]
        reached = [found for found in read if any(_reaches(deletes, found.directory) for deletes in latest)]
        names = {found.name for found in reached}
        missed = [found for found in read if found.name not in names]
        if reached:
            reached, unreached, reach, gone = touched_by_deletes(partition, reached, of.limits, skips=of.skipping)
            missed += unreached
            if not with_deleted:
                split.reach.append(reach)
            if gone:
                split.gone[partition.name] = gone
        if with_deleted:
            missed, reached, events = [*missed, *reached], [], []
        split.untouched += partition.scan_directories(missed)
        split.touched += partition.scan_directories(reached)
        # Original files are older than any write.
        originals = [file for file in state.originals if file.size]
        reached_files = [*(originals if events else []), *partition.raw_files(reached)]
        missed_files = [*([] if events else originals), *partition.raw_files(missed)]
        if missed_files:
            split.untouched_originals.append((partition, missed_files))
        if reached_files:
            split.touched_originals.append((partition, reached_files))
        if reached or reached_files:
            split.deletes += events
            split.deleted_from.append(partition)
    return split


def has_pre_hive_3_updates(spark: SparkSession, partition: PartitionState) -> bool:
    """Whether a partition has updates among its inserts, as Hive before version 3 wrote them."""
    asked = [found for found in partition.state.insert_deltas if may_hold_updates(found)]
    return bool(asked) and hold_updates(spark, partition.location, asked)


def _reaches(deletes: Directory, data: Directory) -> bool:
    """Whether delete events may name rows of `data`: rows of its write or of an earlier one (acid-format.md §3.3).

    A statement deletes no row that itself inserts.
    """
    if data.min_write_id == deletes.max_write_id and None not in (data.statement_id, deletes.statement_id):
        return (data.statement_id or 0) < (deletes.statement_id or 0)
    return data.min_write_id <= deletes.max_write_id


def anti_join(data: DataFrame, deletes: DataFrame, *, several: bool = False, broadcast: bool = True) -> DataFrame:
    """The events of `data` that no event of `deletes` names: all of one partition, or of `several`."""
    mixed = _mixed_key(several=several)
    place = [PLACE_COLUMN] if several else []
    keys = projected(
        deletes, f"{mixed} AS __acid_deleted", *(f"{name} AS __acid_deleted_{name}" for name in (*KEY, *place))
    )
    # Differences compared with zero, since Spark would make join keys of plain equations.
    same = [f"{mixed} = __acid_deleted", *(f"{name} - __acid_deleted_{name} = 0" for name in KEY)]
    for name in place:
        same += [f"startswith({name}, __acid_deleted_{name})", f"startswith(__acid_deleted_{name}, {name})"]
    return data.join(F.broadcast(keys) if broadcast else keys, F.expr(" AND ".join(same)), "left_anti")


def _mixed_key(*, several: bool) -> str:
    """One long that tells most rows apart: row id, statement, bucket and write id side by side, and the partition."""
    place = f" ^ xxhash64({PLACE_COLUMN})" if several else ""
    return (
        "(rowId ^ shiftleft(cast(bucket & 4095 AS bigint), 30)"
        " ^ shiftleft(cast(shiftright(bucket, 16) & 4095 AS bigint), 34)"
        f" ^ shiftleft(originalTransaction, 46){place})"
    )
