"""Hears of rights that other servers on the same database have changed; the database's own triggers tell of them."""

from __future__ import annotations

from metastore.authorization.authority import Authority
from metastore.store.database import Database
from metastore.store.listener import Listener

CHANNEL = "hive_acid_rights"


def rights_listener(db: Database, authority: Authority) -> Listener:
    """Tells an authority what to forget."""
    book = authority.book

    def told(payload: str) -> None:
        database, dot, table = payload.rpartition(".")
        if dot:
            book.forget(database, table)
        else:
            book.forget()

    return Listener(db, CHANNEL, told, authority.listening)
