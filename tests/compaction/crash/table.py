"""A table that services are killed over: in the catalogue of a running server, its files of lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import sqlalchemy
from psycopg2.errors import LockNotAvailable
from sqlalchemy.exc import OperationalError

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection
from hive_acid.filesystem import files
from hive_acid.format.names import delta_name
from hive_acid.format.rows import INSERT, RowEvent, RowId, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import directory_state
from hive_acid.ids import TxnId
from metastore.store.database import SCHEMA, Database
from tests.compaction.crash.processes.merging import RAW_FILE, read_lines, write_raw
from tests.compaction.world import World, read_directory

Snapshot = tuple[ValidWriteIdList, ValidTxnList]

_UNCOUNTED = frozenset({"lease", "notification_event", "compaction_decision"})
"""Tables of the database that have one row for all servers, forget by the day, or tell what was seen on the way."""

_DAY_PATIENCE_MS = 200
"""Far below the second after which Postgres looks for a deadlock."""

_DAY_ATTEMPTS = 50

_VISIBILITY = re.compile(r"_v\d+")
_TRANSIENT = frozenset(
    {"txn", "write_id", "unresolved_write_id", "txn_component", "completed_component", "write_set", "lock_component"}
)
"""Tables of the database in which in the end there is nothing but of this table: others, dropped before, may have left
rows there that go only now.
"""


@dataclass(frozen=True)
class EndState:
    """What is left when nothing is left to do: rows with their ids, directories without the numbers of transactions,
    compactions, and how many rows are left in each table of the database, or came to it.
    """

    rows: list[RowId]
    directories: list[str]
    compactions: list[tuple[str, str]]
    left: dict[str, int]

    def without_aborted(self) -> EndState:
        """The same where nothing of aborted attempts is to be removed: beside what they made, their records stay."""
        return replace(self, directories=sorted(set(self.directories)), left={})

    def differences(self, other: EndState) -> dict[str, tuple[Any, Any]]:
        """What is not as in the other: this one's and the other's."""
        pairs = {one.name: (getattr(self, one.name), getattr(other, one.name)) for one in fields(self)}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


class CrashTable(World):
    """One table, or one partition of a table."""

    def __init__(
        self, db: Database, connection: Connection, warehouse: Path, name: str, partition: str | None = None,
        parameters: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(db, warehouse, name, partition)
        self.connection = connection
        self._baseline = {name: 0 if name in _TRANSIENT else rows for name, rows in self._count_rows().items()}
        self.definition = Table(
            database="db",
            name=name,
            columns=(Column("id", "int"), Column("name", "string")),
            partition_keys=(Column(partition.partition("=")[0], "int"),) if partition else (),
            parameters={"transactional": "true", **(parameters or {})},
            location=self.root,
        )
        connection.create_table(self.definition)
        if partition:
            connection.add_partitions(self.definition, {partition: self.location})

    def rows(self, snapshot: Snapshot | None = None) -> list[RowId]:
        """The ids of the rows that a snapshot sees, as often as it sees them."""
        return sorted(event.key for event in self.events(snapshot))

    def events(self, snapshot: Snapshot | None = None) -> list[RowEvent]:
        """The rows that a snapshot sees, by default the present one."""
        write_ids, txns = snapshot or self.snapshot()
        state = directory_state(
            files.list_tree(self.location), write_ids, txns, lambda path: files.read(files.join(self.location, path))
        )
        base = [file.path for file in (state.base.files if state.base else state.originals)]
        return visible_rows(
            self._read_files(file.path for delta in state.insert_deltas for file in delta.files),
            self._read_files(file.path for delta in state.delete_deltas for file in delta.files),
            write_ids,
            self._read_files(base),
        )

    def _read_files(self, paths: Iterable[str]) -> list[RowEvent]:
        return [event for path in paths for event in read_lines(files.join(self.location, path))]

    def write(self, *args: Any, **kwargs: Any) -> int:
        """As `World.write`; into an insert-only table rows go without ids."""
        write_id = super().write(*args, **kwargs)
        if self.definition.parameters.get("transactional_properties") == "insert_only":
            directory = files.join(self.location, delta_name(write_id, write_id, 0))
            events = read_directory(directory)
            files.remove(directory)
            write_raw(directory, events)
        return write_id

    def write_originals(self, rows: int) -> None:
        """Leave a file from before the table was transactional."""
        bucket = encode_bucket(0)
        events = [RowEvent(INSERT, 0, bucket, number, 0, "row") for number in range(rows)]
        files.write(files.join(self.location, RAW_FILE), "".join(json.dumps(one) + "\n" for one in events).encode())

    def leave_behind(self, inserts: int = 1, aborts: bool = True) -> TxnId:
        """Write as a client that dies before its commit; with `aborts` the transaction is aborted already."""
        txn_id = self.open()
        self.write(txn_id, inserts)
        if aborts:
            self.txns.abort_txn(txn_id)
        return txn_id

    def end_state(self) -> EndState:
        """What is there now."""
        found = self.service.show(table=self.table)
        history = sorted((compaction.id, compaction.type.name, compaction.state.name) for compaction in found)
        entries = files.list_tree(self.root, max_depth=2 if self.partition else 1)
        counts = self._count_rows()
        return EndState(
            self.rows() if files.exists(self.location) else [],
            sorted(_VISIBILITY.sub("", entry.path) for entry in entries),
            [(kind, state) for _, kind, state in history],
            {name: left for name in counts.keys() - _UNCOUNTED if (left := counts[name] - self._baseline[name])},
        )

    def drop(self) -> None:
        """Leave nothing of it to the services of the next case."""
        self.connection.drop_table("db", self.table, purge=True, if_exists=True)

    def _count_rows(self) -> dict[str, int]:
        with self.db.engine.connect() as connection:
            query = f"SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}' ORDER BY 1"
            names = connection.exec_driver_sql(query).scalars().all()
            query = " UNION ALL ".join(f"SELECT '{name}', count(*) FROM {SCHEMA}.{name}" for name in names)
            counts = {name: rows for name, rows in connection.exec_driver_sql(query)}  # noqa: C416 - rows of their own kind
            # The history of a table that is gone is forgotten a day later, in the time of the next one.
            own = f"SELECT count(*) FROM {SCHEMA}.compaction WHERE tbl = %s"
            return {**counts, "compaction": connection.exec_driver_sql(own, (self.table,)).scalar_one()}


def pass_a_day(db: Database, living: list[TxnId]) -> None:
    """Let a day pass over all that the database remembers; transactions whose clients live have been heartbeated.

    Services that run meanwhile lock rows in orders of their own. Time gives way to them, before Postgres looks for
    deadlocks, and tries again: the call that fails is never theirs.
    """
    for _ in range(_DAY_ATTEMPTS):
        try:
            with db.engine.begin() as connection:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = {_DAY_PATIENCE_MS}")
                _move_times(connection, living)
                return
        except OperationalError as error:
            if not isinstance(error.orig, LockNotAvailable):
                raise
    raise AssertionError(f"Something held rows in all of {_DAY_ATTEMPTS} attempts to let a day pass.")


def _move_times(connection: sqlalchemy.Connection, living: list[TxnId]) -> None:
    query = (
        "SELECT table_name, column_name FROM information_schema.columns"
        f" WHERE table_schema = '{SCHEMA}' AND data_type = 'timestamp with time zone' ORDER BY 1, 2"
    )
    columns: dict[str, list[str]] = {}
    for table, column in connection.exec_driver_sql(query):
        columns.setdefault(table, []).append(column)
    for table, names in columns.items():
        changes = ", ".join(f"{name} = {name} - interval '1 day'" for name in names)
        connection.exec_driver_sql(f"UPDATE {SCHEMA}.{table} SET {changes}")
    connection.exec_driver_sql(
        "UPDATE txn SET heartbeat_at = clock_timestamp() WHERE txn_id = ANY (%s)", (list(living),)
    )
    # Another server has led meanwhile: a day in which none did would count for nobody.
    connection.exec_driver_sql("UPDATE lease SET expires_at = clock_timestamp()")


def end_lease(db: Database) -> None:
    """Let the lease of a dead server expire, and nothing else."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lease SET expires_at = clock_timestamp()")
