"""The log by itself: what is written is read, once, in order, with the filters, until it is old."""

from collections.abc import Callable

import pytest

from metastore.config import Config
from metastore.events import service
from metastore.events.config import EventsConfig
from metastore.events.models import EventType, Wanted, WriteNotification
from metastore.events.recording import record
from metastore.events.service import EventLog
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.event_cleaner import EventCleaner, EventCleanerRun
from metastore.store.database import Database

from .conftest import Writer, event


def test_events_are_numbered_from_one_in_their_order(writer: Writer) -> None:
    assert writer.log.current_id() == 0
    writer.write("a", "b")
    writer.write("c")
    assert writer.log.current_id() == 3
    assert writer.read() == [(1, "a"), (2, "b"), (3, "c")]
    assert writer.read(after_id=2) == [(3, "c")]
    assert writer.read(after_id=3) == []


def test_an_event_says_what_it_was_told(writer: Writer, db: Database) -> None:
    writer.write("a")
    (found,) = writer.log.events(Wanted(0))
    assert (found.type, found.database, found.table) == ("CREATE_TABLE", "db", "a")
    assert found.details == {"name": "a"}
    with db.engine.connect() as connection:
        now_s = connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
    assert 0 <= float(now_s) - found.time_s < 60


def test_a_rollback_leaves_no_event_and_no_gap(writer: Writer, db: Database) -> None:
    writer.write("a")
    with pytest.raises(ZeroDivisionError), db.engine.begin() as connection:
        record(connection, event("never"))
        raise ZeroDivisionError
    writer.write("b")
    assert writer.read() == [(1, "a"), (2, "b")]


def test_an_event_that_becomes_visible_late_comes_after_those_that_were_told(writer: Writer, db: Database) -> None:
    with db.engine.connect() as slow:
        record(slow, event("early"))
        writer.write("quick")
        assert writer.read() == [(1, "quick")]
        slow.commit()
    assert writer.read(after_id=1) == [(2, "early")]


def test_what_became_visible_together_stands_in_the_order_of_writing(writer: Writer, db: Database) -> None:
    """A change that waited for another one's commit is told after it, whichever transaction is the older one."""
    with db.engine.connect() as elder, db.engine.connect() as younger:
        elder.exec_driver_sql("SELECT pg_current_xact_id()")
        record(younger, event("first"))
        younger.commit()
        record(elder, event("then"))
        elder.commit()
    assert writer.read() == [(1, "first"), (2, "then")]


def test_nothing_is_recorded_when_the_log_is_off(db: Database, make_log: Callable[..., EventLog]) -> None:
    writer = Writer(db, make_log(is_on=False))
    writer.write("a")
    assert writer.log.report([event("b")]) == []
    assert writer.read() == []


def test_filters(writer: Writer) -> None:
    writer.write("a", "b")
    writer.write("a", database="other")
    writer.write("a", kind=EventType.DROP_TABLE)
    with writer.db.engine.begin() as connection:
        record(connection, event("c", database="@cat#db"))

    def ids(**wanted: object) -> list[int]:
        found = [one.id for one in writer.log.events(Wanted(0, **wanted))]  # type: ignore[arg-type]
        assert writer.log.count(Wanted(0, **wanted)) == len(found)  # type: ignore[arg-type]
        return found

    assert ids() == [1, 2, 3, 4, 5]
    assert ids(database="db") == [1, 2, 4]
    assert ids(database="db", tables=["a", "c"]) == [1, 4]
    assert ids(types=["DROP_TABLE"]) == [4]
    assert ids(but_types=["DROP_TABLE", "ALTER_TABLE"]) == [1, 2, 3, 5]
    assert ids(databases="^(?!@)([^@]*)$") == [1, 2, 3, 4]
    assert ids(up_to_id=2) == [1, 2]
    assert writer.log.count(Wanted(1), at_most=3) == 3


def test_an_answer_is_bounded_by_number_and_by_size(
    db: Database, make_log: Callable[..., EventLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(db, make_log(max_events=3))
    writer.write("a", "b", "c", "d")
    assert len(writer.read()) == len(writer.read(at_most=-1)) == len(writer.read(at_most=10)) == 3
    assert writer.read(at_most=2) == [(1, "a"), (2, "b")]
    monkeypatch.setattr(service, "MAX_ANSWER_BYTES", 1)
    assert writer.read() == [(1, "a")]
    assert writer.read(after_id=1) == [(2, "b")]


def test_a_long_backlog_is_numbered_in_batches(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "BATCH", 2)
    writer.write(*"abcde")
    before = writer.db.calls
    assert writer.log.current_id() == 5
    assert writer.db.calls == before + 3
    assert [name for _, name in writer.read()] == list("abcde")
    writer.write("f")
    assert writer.log.report([event("g")]) == [7]


def test_a_client_learns_the_ids_of_what_it_reports(writer: Writer) -> None:
    writer.write("a")
    assert writer.log.report([event("b"), event("c")]) == [2, 3]
    assert writer.read() == [(1, "a"), (2, "b"), (3, "c")]


def test_files_reported_twice_are_kept_once(writer: Writer) -> None:
    def report(*files: str, partition: str = "") -> None:
        write = WriteNotification(7, 1, "db", "t", partition, {"name": "t"}, None, files)
        writer.log.report_writes([write], [event("t")])

    report("f1", "f2")
    report("f2", "f3")
    report("g", partition="p=1")
    whole, part = writer.log.writes(7, None, None)
    assert list(whole.files) == ["f1", "f2", "f3"]
    assert (part.partition, list(part.files), part.write_id) == ("p=1", ["g"], 1)
    assert writer.log.writes(7, "db", "t") == [whole, part]
    assert (
        writer.log.writes(7, "db", "u") == writer.log.writes(7, "other", None) == writer.log.writes(8, None, None) == []
    )


def test_old_events_go_and_ids_go_on(writer: Writer, db: Database) -> None:
    def clean(**config: int) -> EventCleanerRun:
        return EventCleaner(db, EventsConfig(**config), HousekeepingConfig(purge_batch=2)).run_once()  # type: ignore[arg-type]

    writer.write(*"abcde")
    writer.log.report_writes([WriteNotification(7, 1, "db", "t", "", {}, None, ["f"])], [event("f")])
    assert clean() == EventCleanerRun(0, 0)
    with db.engine.begin() as connection:
        for table in ("notification_event", "write_notification"):
            connection.exec_driver_sql(f"UPDATE {table} SET recorded_at = recorded_at - interval '1 day'")
    writer.write("g")
    # Nobody has read yet: what goes has a number all the same, so that a reader sees that it missed something.
    assert clean() == EventCleanerRun(6, 1)
    assert writer.read() == [(7, "g")]
    assert clean(retention_ms=0) == EventCleanerRun(1, 0)
    assert writer.log.current_id() == 7
    writer.write("h")
    assert writer.read() == [(8, "h")]


@pytest.mark.parametrize(
    ("given", "records"),
    [
        ("", False),
        ("org.apache.hive.hcatalog.listener.DbNotificationListener", True),
        ("com.example.Other , org.apache.hive.hcatalog.listener.DbNotificationListener", True),
        ("com.example.NoDbNotificationListener", False),
    ],
)
def test_hives_listener_setting(given: str, records: bool) -> None:
    key = "hive.metastore.transactional.event.listeners"
    assert Config.parse([f"{key}={given}"]).events.records_txns is records
    assert not Config.parse([f"{key}={given}", "metastore.notification.log.on=false"]).events.records_txns
