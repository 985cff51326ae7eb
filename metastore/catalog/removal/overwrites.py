"""Transactions of the server's own that replace rows of ACID tables by nothing, for truncation and soft drops.

Each step may be the last: a transaction that was not committed times out, and its bases are garbage that the Cleaner
removes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from sqlalchemy import Connection

from hive_acid.errors import MetaError, MetastoreError, TxnAbortedError
from hive_acid.ids import TxnId, WriteId
from metastore.catalog.config import CatalogConfig
from metastore.catalog.models import Table
from metastore.catalog.removal.empty_bases import take_back_base, write_empty_base
from metastore.store.database import Database
from metastore.txn.models import Intent, TxnOwner
from metastore.txn.names import stored_name
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType
from metastore.txn.write_ids.service import WriteIdService

_POLL_S = 0.1
_BASES_PER_HEARTBEAT = 100


@dataclass(frozen=True, slots=True)
class RowDirectory:
    """A directory with rows: that of a partition, or of an unpartitioned table (None)."""

    partition: str | None
    location: str


class Overwrites:
    """Replaces rows by nothing, in a transaction of the client's or of the server's own."""

    def __init__(self, db: Database, txns: TxnService, config: CatalogConfig) -> None:
        self._db = db
        self._txns = txns
        self._write_ids = WriteIdService(db)
        self._config = config

    def in_clients(
        self,
        table: Table,
        places: Sequence[RowDirectory],
        write_id: WriteId,
        submit: Callable[[Connection, TxnId, WriteId], None],
    ) -> None:
        """Empty places of a table under a client's write id; it commits later, or not. `submit` as in `in_own`.

        Raises MetaError unless the write id is that of an open transaction.
        """
        writer, _ = self._declare(None, write_id, table, places)
        self._write(table, places, writer, write_id)
        with self._db.engine.begin() as connection:
            submit(connection, writer, write_id)

    def in_own(
        self,
        table: Table,
        places: Sequence[RowDirectory],
        owner: TxnOwner,
        submit: Callable[[Connection, TxnId, WriteId], None],
        insist: bool = False,
    ) -> None:
        """Empty places of a table, committed; `submit` hands what is replaced to the Cleaner before the commit.

        Waits for writers that are under way, whose rows would be lost under the new base. If they do not end, raises
        MetaError, or goes on with `insist`.
        """
        deadline = time.monotonic() + self._config.truncate_wait_ms / 1000
        while blocker := self._attempt(table, places, owner, submit, deadline, insist):
            if time.monotonic() > deadline:
                raise MetaError(
                    f"{table.full_name} is being written by {blocker}: try again when it has ended (it had not within "
                    f"{self._config.truncate_wait_ms} ms)"
                )

    def _attempt(
        self,
        table: Table,
        places: Sequence[RowDirectory],
        owner: TxnOwner,
        submit: Callable[[Connection, TxnId, WriteId], None],
        deadline: float,
        insist: bool,
    ) -> str | None:
        """One transaction, under which all is waited for; what was in its way, None if it has committed."""
        intent = Intent(((stored_name(table.database), stored_name(table.name)),), may_begin_again=True)
        (txn_id,) = self._txns.open_txns(1, owner, TxnType.SOFT_DELETE, intent)
        with self._aborted_on_error(txn_id):
            ((_, write_id),) = self._write_ids.allocate(table.database, table.name, [txn_id])
            # These are ever fewer: who begins to write now has a larger write id.
            while (earlier := self._declare(txn_id, write_id, table, places)[1]) is not None:
                if time.monotonic() > deadline:
                    if insist:
                        break
                    self._txns.abort_txn(txn_id)
                    return f"transaction {earlier}"
                self._txns.heartbeat(txn_id)
                time.sleep(_POLL_S)
            try:
                self._write(table, places, txn_id, write_id)
                with self._db.engine.begin() as connection:
                    submit(connection, txn_id, write_id)
            except BaseException:
                _take_back(places, write_id)
                raise
        try:
            self._txns.commit_txn(txn_id)
        except TxnAbortedError as error:  # after any other one it may have committed, so the bases stay
            _take_back(places, write_id)
            return f"others: {error}"
        return None

    def _declare(
        self, txn_id: TxnId | None, write_id: WriteId, table: Table, places: Sequence[RowDirectory]
    ) -> tuple[TxnId, TxnId | None]:
        """Put the overwrite on record; its transaction, and an open one with an earlier write id."""
        names = [place.partition for place in places]
        row = self._db.call_one("declare_overwrite", txn_id, write_id, table.database, table.name, names)
        assert row is not None
        outcome, writer, earlier = row
        if outcome != "ok":
            state = outcome.removeprefix("txn_").replace("_", " ")
            raise MetaError(f"write id {write_id} of {table.full_name} belongs to no open transaction: it is {state}")
        return TxnId(writer), None if earlier is None else TxnId(earlier)

    def _write(self, table: Table, places: Iterable[RowDirectory], txn_id: TxnId, write_id: WriteId) -> None:
        for number, place in enumerate(places, start=1):
            write_empty_base(table, place.location, txn_id, write_id)
            if number % _BASES_PER_HEARTBEAT == 0:
                self._txns.heartbeat(txn_id)

    @contextmanager
    def _aborted_on_error(self, txn_id: TxnId) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(MetastoreError):  # it has ended already, or will by its time-out
                self._txns.abort_txn(txn_id)
            raise


def _take_back(places: Iterable[RowDirectory], write_id: WriteId) -> None:
    """Remove the bases of a transaction that does not commit, before a reader takes one for more than it is."""
    for place in places:
        take_back_base(place.location, write_id)
