"""The notification log as it is read, and events that clients report."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import BigInteger, ColumnElement, Integer, Text, bindparam, cast, func, or_, select, text
from sqlalchemy.dialects.postgresql import insert

from metastore.events.config import EventsConfig
from metastore.events.models import Event, RecordedEvent, Wanted, WriteNotification
from metastore.events.recording import store, switch
from metastore.events.schema import EVENT, WRITE_NOTIFICATION
from metastore.store.database import Database
from metastore.store.leases import Calls

MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""What one answer holds of events' particulars, at most, unless a single event has more."""
BATCH = 10_000
"""Events numbered in one database transaction; only if nobody has read the log for long there are more."""
_MAX_BATCHES = 10_000
_PAGE = 50


class EventLog:
    """The events of all servers on the database."""

    def __init__(self, db: Database, config: EventsConfig) -> None:
        self._db = db
        self._config = config
        switch(db, config.is_on)

    def current_id(self) -> int:
        """The id of the newest event there is; 0 if there never was one."""
        return number_events(self._db)

    def events(self, wanted: Wanted, at_most: int | None = None) -> list[RecordedEvent]:
        """The wanted events, by their ids; None and numbers below 1 mean as many as one answer holds.

        An answer ends early after `MAX_ANSWER_BYTES`: whoever gets fewer events than there are asks again.
        """
        self.current_id()
        limit = self._config.max_events if at_most is None or at_most < 1 else min(at_most, self._config.max_events)
        columns = EVENT.c
        query = (
            select(
                columns.event_id,
                cast(func.floor(func.extract("epoch", columns.recorded_at)), Integer).label("time_s"),
                columns.event_type,
                columns.db,
                columns.tbl,
                columns.details,
                func.octet_length(cast(columns.details, Text)),
            )
            .where(*_conditions(wanted))
            .order_by(columns.event_id)
            .limit(limit)
        )
        found: list[RecordedEvent] = []
        size = 0
        with self._db.engine.connect() as connection:
            # A cursor of the server's: what goes beyond the answer is never fetched.
            rows = connection.execution_options(stream_results=True, max_row_buffer=_PAGE).execute(query)
            for *event, length in rows:
                size += length
                if found and size > MAX_ANSWER_BYTES:
                    break
                found.append(RecordedEvent(*event))
            rows.close()
        return found

    def count(self, wanted: Wanted, at_most: int | None = None) -> int:
        """How many wanted events there are, counted to `at_most`."""
        self.current_id()
        found = select(EVENT.c.event_id).where(*_conditions(wanted)).limit(at_most).subquery()
        with self._db.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(found)).scalar_one())

    def report(self, events: Sequence[Event]) -> list[int]:
        """Put down events that a client reports; returns their ids. None, and nothing is done, if the log is off."""
        if not self._config.is_on or not events:
            return []
        with self._db.engine.begin() as connection:
            places = store(connection, events)
            connection.execute(select(func.number_events(None)))
            query = select(EVENT.c.event_id).where(EVENT.c.place.in_(places)).order_by(EVENT.c.place)
            return list(connection.execute(query).scalars())

    def report_writes(self, writes: Sequence[WriteNotification], events: Sequence[Event]) -> None:
        """Keep what a transaction has written, and put down the events of it; what is repeated adds no file twice."""
        if not self._config.is_on or not writes:
            return
        statement = insert(WRITE_NOTIFICATION).values(
            {name: bindparam(name) for name in WRITE_NOTIFICATION.columns.keys() if name != "recorded_at"}  # noqa: SIM118
        )
        columns, given = WRITE_NOTIFICATION.c, statement.excluded
        merged = text(
            "ARRAY(SELECT f.name FROM unnest(write_notification.files || excluded.files) WITH ORDINALITY"
            " AS f (name, place) GROUP BY f.name ORDER BY min(f.place))"
        )
        statement = statement.on_conflict_do_update(
            index_elements=[columns.txn_id, columns.db, columns.tbl, columns.partition],
            set_={
                "write_id": given.write_id,
                "table_object": given.table_object,
                "partition_object": given.partition_object,
                "files": merged,
                "recorded_at": given.recorded_at,
            },
        )
        with self._db.engine.begin() as connection:
            connection.execute(statement, [_write_row(write) for write in writes])
            store(connection, events)

    def writes(self, txn_id: int, database: str | None, table: str | None) -> list[WriteNotification]:
        """What a transaction has reported as written, of one database and table or of all (None)."""
        columns = WRITE_NOTIFICATION.c
        conditions = [columns.txn_id == txn_id]
        conditions += [columns.db == database] if database is not None else []
        conditions += [columns.tbl == table] if table is not None else []
        query = select(*[column for column in columns if column.name != "recorded_at"]).where(*conditions)
        with self._db.engine.connect() as connection:
            rows = connection.execute(query.order_by(columns.db, columns.tbl, columns.partition)).mappings()
            return [
                WriteNotification(
                    row["txn_id"],
                    row["write_id"],
                    row["db"],
                    row["tbl"],
                    row["partition"],
                    row["table_object"],
                    row["partition_object"],
                    row["files"],
                )
                for row in rows
            ]


def number_events(db: Calls) -> int:
    """Give every event that has become visible its id, those that were before; returns the last id there is."""
    last_id = 0
    for _ in range(_MAX_BATCHES):
        row = db.call_one("number_events", BATCH)
        assert row is not None
        last_id, numbered = row
        if numbered < BATCH:
            break
    return last_id


def _write_row(write: WriteNotification) -> dict[str, object]:
    return {
        "txn_id": write.txn_id,
        "write_id": write.write_id,
        "db": write.database,
        "tbl": write.table,
        "partition": write.partition,
        "table_object": write.table_object,
        "partition_object": write.partition_object,
        "files": list(write.files),
    }


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    columns = EVENT.c
    conditions = [columns.event_id > cast(wanted.after_id, BigInteger)]
    if wanted.up_to_id is not None:
        conditions.append(columns.event_id <= cast(wanted.up_to_id, BigInteger))
    if wanted.databases is not None:
        conditions.append(or_(columns.db.regexp_match(wanted.databases), columns.db.is_(None)))
    if wanted.database is not None:
        conditions.append(columns.db == wanted.database)
    if wanted.tables:
        conditions.append(columns.tbl.in_(list(wanted.tables)))
    if wanted.types:
        conditions.append(columns.event_type.in_(list(wanted.types)))
    if wanted.but_types:
        conditions.append(columns.event_type.not_in(list(wanted.but_types)))
    return conditions
