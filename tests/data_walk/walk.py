"""Plays steps against real tables and the model at once, and compares what each snapshot sees.

All writers share the Spark session and have a session of their own over it, so that each has its own transaction; they
take turns, which makes a story that can be told again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.catalog.constraints import Constraint
from hive_acid.errors import TransactionClosedError, UnsupportedTableError, WriteConflictError
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import DEFAULT
from hive_acid.spark.read.table_frame import ROW_ID
from hive_acid.wire import ConstraintKind
from metastore.compaction.states import CompactionState
from tests.data_walk.failures import FAILURES
from tests.data_walk.model import Content, Model, Txn
from tests.data_walk.tables import Columns, Shape, key_text, plain
from tests.data_walk.verbs import CHANGES, LOCKING, Scene, Step, tables_of
from tests.served import Served
from tests.spark.by_spark import MERGED
from tests.spark.checker import check_snapshot, check_table, location_of
from tests.spark.house import House

WRITERS = ("ann", "ben", "cid")
_ENDED = {CompactionState.READY_FOR_CLEANING, CompactionState.SUCCEEDED, CompactionState.REFUSED}


@dataclass
class Opened:
    """A transaction of several statements, by ``with`` or by the words of SQL."""

    acid: AcidSession
    stack: contextlib.ExitStack | None

    @classmethod
    def begun(cls, acid: AcidSession, *, by_sql: bool) -> Self:
        """It has begun."""
        if by_sql:
            acid.sql("BEGIN")
            return cls(acid, None)
        stack = contextlib.ExitStack()
        stack.enter_context(acid.transaction())
        return cls(acid, stack)

    def commit(self) -> None:
        if self.stack is None:
            self.acid.sql("COMMIT")
        else:
            self.stack.close()

    def abort(self) -> None:
        if self.stack is None:
            self.acid.sql("ROLLBACK")
            return
        with contextlib.suppress(_AbortedError):
            self.stack.__exit__(_AbortedError, _AbortedError("as if"), None)


@dataclass
class Held:
    """A frame that a reader keeps, and what it has to show for ever."""

    table: str
    frame: DataFrame
    content: Content
    columns: Columns


class Walk:
    """One walk on one fresh server."""

    def __init__(self, spark: SparkSession, server: Served, warehouse: Path, shapes: Mapping[str, Shape]) -> None:
        self.model = Model(shapes)
        self.blocks: dict[str, tuple[Opened, Txn]] = {}
        self.alone: str | None = None
        """The writer whose transaction has locked a table against all others."""
        self.held: list[Held] = []
        self._spark = spark
        self._house = House(server.db, warehouse, spark)
        self._scratch = str(warehouse.parent)
        self._sessions = {name: hive_acid.spark.session(spark, server.uri) for name in (*WRITERS, "reader")}
        self._row_ids: dict[tuple[str, int], Any] = {}
        self._owners: dict[Any, int] = {}
        self.reader.create_database("d")
        for name, shape in shapes.items():
            clustered: dict[str, Any] = {"clustered_by": ("id",), "buckets": shape.buckets} if shape.buckets else {}
            keyed = [Constraint(ConstraintKind.PRIMARY_KEY, ("id",), validated=True)] if shape.is_keyed else []
            self.reader.create_table(name, shape.columns, partitioned_by=shape.keys, constraints=keyed, **clustered)

    @property
    def reader(self) -> AcidSession:
        return self._sessions["reader"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.held.clear()
        for opened, _txn in self.blocks.values():
            opened.abort()
        for session in self._sessions.values():
            session.close()

    def play(self, step: Step) -> None:
        """Do it. Raises AssertionError if the tables are not what the model says."""
        if step.verb in CHANGES:
            self._change(step)
        else:
            getattr(self, f"_{step.verb}")(step.writer, **step.arguments)

    def finish(self) -> None:
        """End what is open, and look at all there is, before and after a last compaction."""
        for writer in list(self.blocks):
            self._commit(writer)
        for name in self.model.content:
            self._check_committed(name)
            self._compact("end", name, "major", by_client=True)
            self._look("end")
        self.held.clear()
        self._clean("end")
        for name in self.model.content:
            self._check_committed(name)

    # --- transactions --------------------------------------------------------------------------

    def _change(self, step: Step) -> None:
        acid = self._sessions[step.writer]
        alone = step.writer not in self.blocks
        txn = self.model.begin() if alone else self.blocks[step.writer][1]
        before = txn.copied()
        txn.verbs.add(step.verb)
        if step.verb in LOCKING and not alone:
            self.alone = step.writer
        try:
            CHANGES[step.verb](Scene(acid, self.model, txn, self._scratch), **step.arguments)
        except WriteConflictError as error:
            txn.restore(before)
            if alone or not self.model.may_collide(txn, tables_of(step)):
                raise AssertionError("a conflict with nobody") from error
            self._end_aborted(step.writer)
            return
        except UnsupportedTableError as error:
            if self.alone != step.writer or "has overwritten" not in str(error):
                raise
            txn.restore(before)
            txn.written |= set(tables_of(step))
        if alone:
            self.model.commit(txn)
        else:
            assert self.model.conflict(txn) is not True, "two have changed the same rows, and no statement says so"
        for name in sorted(txn.written):
            if alone:
                self._check_committed(name)
            else:
                self._check_rows(acid, name, txn.own[name])

    def _fail(self, writer: str, table: str, kind: str, **arguments: Any) -> None:
        """A statement that fails in its middle, and leaves nothing."""
        acid = self._sessions[writer]
        alone = writer not in self.blocks
        txn = self.model.begin() if alone else self.blocks[writer][1]
        if kind == "overwrite" and not alone:
            self.alone = writer
        txn.verbs.add("fail")
        try:
            FAILURES[kind](Scene(acid, self.model, txn, self._scratch), table, **arguments)
        except WriteConflictError as error:
            if alone or not self.model.may_collide(txn, [table]):
                raise AssertionError("a conflict with nobody") from error
            self._end_aborted(writer)
            return
        if not self.model.columns[table].keys:
            txn.claimed.add((table, ()))
        if alone:
            self._check_committed(table)
        else:
            self._check_rows(acid, table, txn.own[table])

    def _end_aborted(self, writer: str) -> None:
        """End a transaction that a conflict has aborted; that it is committed is refused."""
        opened, txn = self._popped(writer)
        with pytest.raises(TransactionClosedError, match="was aborted"):
            opened.commit()
        for name in sorted(txn.written):
            self._check_committed(name)

    def _popped(self, writer: str) -> tuple[Opened, Txn]:
        self.alone = None if self.alone == writer else self.alone
        return self.blocks.pop(writer)

    def _begin(self, writer: str, by_sql: bool) -> None:
        if writer not in self.blocks:
            self.blocks[writer] = Opened.begun(self._sessions[writer], by_sql=by_sql), self.model.begin()

    def _commit(self, writer: str) -> None:
        if writer not in self.blocks:
            return
        opened, txn = self._popped(writer)
        expected = self.model.conflict(txn)
        try:
            opened.commit()
        except WriteConflictError as error:
            if expected is False:
                raise AssertionError("a conflict with nobody") from error
        else:
            assert expected is not True, "two transactions have changed the same rows, and both have committed"
            self.model.commit(txn)
        for name in sorted(txn.written):
            self._check_committed(name)

    def _abort(self, writer: str) -> None:
        if writer not in self.blocks:
            return
        opened, txn = self._popped(writer)
        opened.abort()
        for name in sorted(txn.written):
            self._check_committed(name)

    # --- reading -------------------------------------------------------------------------------

    def _hold(self, writer: str, table: str) -> None:
        """Keep a frame of the present."""
        frame, columns = self.reader.table(table), self.model.columns[table]
        self.held.append(Held(table, frame, dict(self.model.content[table]), _copy(columns)))

    def _look(self, writer: str) -> None:
        """Read all frames that are kept."""
        for held in self.held:
            found = _rows(held.frame, held.columns)
            assert found == _expected(held.content), f"an old snapshot of {held.table} has changed"

    def _release(self, writer: str) -> None:
        del self.held[:1]

    def _check_committed(self, table: str) -> None:
        """What a snapshot of now sees of a table: by the product, and by the checker, which is a reader of its own."""
        content = self.model.content[table]
        self._check_rows(self.reader, table, content)
        seen = check_snapshot(self.reader, table)
        assert sum(map(len, seen.values())) == len(content)
        found = {(partition, event.key) for partition, events in seen.items() for event in events}
        assert found == {self._row_ids[table, version.stamp] for version in content.values()}
        if not self.blocks:
            check_table(location_of(self.reader, table))

    def _check_rows(self, acid: AcidSession, table: str, content: Content) -> None:
        columns = self.model.columns[table]
        frame = acid.table(table, row_id=True)
        found = _rows(frame, columns)
        ids = {number: (self._partition(table, number, content), row.pop(ROW_ID)) for number, row in found.items()}
        assert found == _expected(content), f"{table} is not what it should be"
        assert acid.table(table).count() == len(content)
        for number, row_id in ids.items():
            stamp = content[number].stamp
            known = self._row_ids.setdefault((table, stamp), row_id)
            assert known == row_id, f"row {number} of {table} was {known} and is {row_id}"
            owner = self._owners.setdefault((table, row_id), stamp)
            assert owner == stamp, f"{row_id} of {table} stands for two versions: {owner} and {stamp}"

    def _partition(self, table: str, number: int, content: Content) -> str:
        keys = self.model.columns[table].keys
        if not keys or number not in content:
            return ""
        values = [content[number].row[key] for key in keys]
        texts = [key_text(value) for value in values]
        return self.reader.connection.table(*table.split(".")).partition_name(texts)

    # --- what nobody sees ----------------------------------------------------------------------

    def _compact(self, writer: str, table: str, kind: str, by_client: bool) -> None:
        definition = self.reader.connection.table(*table.split("."))
        partitions = self.reader.connection.partitions(definition) if definition.partition_keys else [None]
        limits = DEFAULT if by_client else replace(DEFAULT, **MERGED)
        states = self._house.compact(table, kind, partitions, limits)
        assert states <= _ENDED, states
        self._check_committed(table)

    def _clean(self, writer: str) -> None:
        run = self._house.clean()
        assert not run.failed, run.failed

    # --- columns -------------------------------------------------------------------------------

    def _add_column(self, writer: str, table: str, kind: str) -> None:
        columns = self.model.columns[table]
        role = f"n{columns.added}"
        columns.added += 1
        self._alter(lambda acid: acid.add_columns(table, {role: kind}))
        self.model.add_column(table, role, kind)
        self._check_committed(table)

    def _rename_column(self, writer: str, table: str, role: str, name: str) -> None:
        columns = self.model.columns[table]
        if role in columns.types and name not in columns.names.values():
            self._alter(lambda acid: acid.rename_column(table, columns.name(role), name))
            self.model.rename_column(table, role, name)
            self._check_committed(table)

    def _alter(self, change: Callable[[Any], object]) -> None:
        change(self.reader)


class _AbortedError(Exception):
    """Leaves a block, as an error of the user would."""


def _copy(columns: Columns) -> Columns:
    return Columns(dict(columns.names), dict(columns.types), dict(columns.keys), columns.buckets, columns.is_keyed)


def _rows(frame: DataFrame, columns: Columns) -> dict[int, dict[str, Any]]:
    """Rows by id, with ROW__ID if the frame has it."""
    of_type = {"timestamp": "CAST(`{0}` AS string) AS `{1}`", "char(4)": "rtrim(`{0}`) AS `{1}`"}
    chosen = [
        of_type.get(columns.type(role), "`{0}` AS `{1}`").format(columns.name(role), role) for role in columns.roles
    ]
    with_id = [ROW_ID] if ROW_ID in frame.columns else []
    rows = [row.asDict() for row in frame.selectExpr(*with_id, *chosen).collect()]
    found = {row["id"]: {name: plain(value) for name, value in row.items()} for row in rows}
    assert len(found) == len(rows), "a row is there twice"
    return found


def _expected(content: Content) -> dict[int, dict[str, Any]]:
    return {number: dict(version.row) for number, version in content.items()}
