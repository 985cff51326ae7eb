"""What a transaction reads: its snapshot, and the write ids of each table that it sees."""

from __future__ import annotations

import logging
from contextlib import suppress

from hive_acid.errors import (
    HiveAcidError,
    TableChangedError,
    TableNotNamedError,
    TransactionClosedError,
    UnknownMethodError,
)
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.transactions.beginning import Begun, Opened, Opening, Owner, open_one, valid_write_ids
from hive_acid.transactions.life import TransactionLife
from hive_acid.wire import table_name, ttypes

LOG = logging.getLogger(__name__)


class ReadingTransaction(TransactionLife):
    """A transaction with a snapshot, if it was not opened to add rows only."""

    def __init__(self, connection: Owner, opening: Opening) -> None:
        super().__init__(connection, opening)
        self._ids: dict[str, int] = {}
        self._snapshot: ValidTxnList | None = None
        self._told: dict[str, tuple[int | None, ValidWriteIdList]] = {}
        """What its beginning has told of tables, good for those of the ids beside it."""
        self._read: dict[str, ValidWriteIdList] = {}
        self._kept: dict[str, ValidTxnList] = {}
        """Of READ COMMITTED: what it sees of tables that it has a write id of, as its deletes reach no later rows."""

    @property
    def snapshot(self) -> ValidTxnList:
        """The transactions whose writes it sees. Raises TransactionClosedError if it was opened to add rows only."""
        if self._snapshot is None and not self.is_opened:
            self._open()
        if self._snapshot is None:
            raise TransactionClosedError(f"transaction {self.id} was opened to add rows only: it sees none")
        return self._snapshot

    def _open(self) -> None:
        self._check_process()
        opened = open_one(self._connection, self._opening)
        self.is_opened_as(opened)
        self.names_tables(opened)

    def is_opened_as(self, opened: Opened) -> None:
        """As in `TransactionLife`; this is its snapshot."""
        self._snapshot = opened.snapshot
        super().is_opened_as(opened)

    def names_tables(self, opened: Opened) -> None:
        """Say which tables it uses to a metastore that has not heard it with the opening."""
        if not opened.has_named and not self._opening.only_adds:
            self.reads_only(*sorted(self._opening.tables))

    def _has_begun(self, begun: Begun) -> None:
        """It was opened by the call that has asked for its first locks, too."""
        self._told = begun.seen
        self.is_opened_as(begun.opened)

    def uses(self, database: str, table: str, table_id: int) -> None:
        """Note which table the transaction means by a name: its snapshot and its write id are of that one.

        Raises TableChangedError if it was another one before.
        """
        name = table_name(database, table)
        if self._ids.setdefault(name, table_id) != table_id:
            raise TableChangedError(
                f"{name} is another table now than at first in transaction {self.id}: it was dropped and created "
                "anew, or another one took its name. Begin another transaction"
            )
        told_id, write_ids = self._told.pop(name, (None, None))
        if write_ids is not None and told_id == table_id:
            self._read.setdefault(name, write_ids)

    def write_ids(self, database: str, table: str) -> ValidWriteIdList:
        """The table's write ids that this transaction sees, its own write included; the same until `see_committed`.

        Raises TableNotNamedError for a table that it has not named, if it has named some: files may be gone that this
        snapshot needs.
        """
        name = table_name(database, table)
        if name not in self._read:
            self.check_open()
            self._check_named(name)
            self._read[name] = self._seen_by(self._kept.get(name, self.snapshot), name)
        return self._read[name]

    def see_committed(self) -> None:
        """Let what is read from now on see all that has committed by now, as each statement of READ COMMITTED does.

        A table that the transaction has a write id of is seen as it was when it got that, with its own writes.
        """
        self._see(self._committed_by_now())

    def _see(self, snapshot: ValidTxnList) -> None:
        self._snapshot, self._told = snapshot, {}
        self._read = {name: found for name, found in self._read.items() if name in self._kept}

    def _committed_by_now(self) -> ValidTxnList:
        answer = self._call("get_open_txns")
        now = ValidTxnList.from_open_txns(answer.txn_high_water_mark, answer.open_txns, answer.abortedBits)
        return now.seen_by(self.id)

    def _seen_by(self, snapshot: ValidTxnList, name: str) -> ValidWriteIdList:
        request = ttypes.GetValidWriteIdsRequest(fullTableNames=[name], validTxnList=str(snapshot))
        return valid_write_ids(self._call("get_valid_write_ids", request).tblValidWriteIds[0])

    def reads_only(self, *tables: str) -> None:
        """Promise the metastore that the transaction uses no table (``db.table``) but these from now on.

        The metastore then cleans all others; until the promise it keeps everything that the snapshot can see
        (transactions.md §2.4). One of before Hive 4 takes no promises, and keeps everything in any case.
        """
        self._check_process()
        lowest = {}
        for name in tables:
            database, _, table = name.rpartition(".")
            found = self.write_ids(database, table)
            some_open = found.open_ids or found.aborted_ids
            lowest[table_name(database, table)] = found.min_open if some_open else found.high_water_mark + 1
        with suppress(UnknownMethodError):
            self._connection.call("add_write_ids_to_min_history", self.id, lowest)
        self.tables = frozenset(lowest)

    def reads_no_more(self) -> None:
        """`reads_only` of the tables read until now, if there are any; if it fails, others are only cleaned later."""
        if self._read and not self.tables:
            try:
                self.reads_only(*self._read)
            except HiveAcidError as error:
                LOG.info("transaction %d holds back the cleaning of all tables until its end: %s", self.id, error)

    def _check_named(self, name: str) -> None:
        if self.tables and name not in self.tables:
            raise TableNotNamedError(
                f"transaction {self.id} was begun for {', '.join(sorted(self.tables))} and may not use {name}, whose "
                "files nobody keeps for it: name all its tables when it begins, acid.transaction(tables=[…]), or none"
            )
