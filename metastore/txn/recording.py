"""Events of transactions in the notification log, by triggers that exist only while the setting is on.

So calls that are hot cost nothing more without it, and the events are in the database transaction of what they tell,
however it came about: by a client, a time-out or a replay. READ_ONLY transactions are not told of, as in Hive.
"""

from __future__ import annotations

from sqlalchemy import text

from metastore.store.database import Database

_TRIGGERS = {
    "txns_opened": (
        "AFTER INSERT ON txn REFERENCING NEW TABLE AS new_rows",
        "tell_txns_opened",
    ),
    "txns_ended": (
        "AFTER UPDATE ON txn REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows",
        "tell_txns_ended",
    ),
    "write_ids_allocated": (
        "AFTER INSERT ON write_id REFERENCING NEW TABLE AS new_rows",
        "tell_write_ids_allocated",
    ),
}
_ADVISORY_LOCK = 0x48697666


def switch_recording(db: Database, is_on: bool) -> None:
    """Record transactions from now on, or no longer: on all servers of the database, until one says other."""
    wanted = set(_TRIGGERS) if is_on else set()
    with db.engine.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        query = text(
            "SELECT t.tgname FROM pg_trigger t WHERE NOT t.tgisinternal"
            " AND t.tgrelid IN ('txn'::regclass, 'write_id'::regclass)"
        )
        present = set(connection.execute(query).scalars()) & set(_TRIGGERS)
        for name, (when, function) in _TRIGGERS.items():
            if name in wanted - present:
                connection.execute(text(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()"))
            elif name in present - wanted:
                connection.execute(text(f"DROP TRIGGER {name} ON {when.split()[3]}"))
