"""A live metastore of any generation as a source: each thing is asked for by the newest call, then by older ones.

What a generation knows (wire.md §1.1): Hive 2.3 has no write ids, Hive 3 no call for the last one given out,
catalogs came with 3, most ``_req`` calls with 4. A call that the peer does not have is not tried a second time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hive_acid.connection import Connection
from hive_acid.errors import MetaError, MetastoreUnreachableError, UnknownMethodError
from hive_acid.format.properties import TRANSACTIONAL
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.wire import table_name, ttypes
from metastore.catalog.models import CatalogInfo, DatabaseInfo, Partition, Table
from metastore.catalog.names import DEFAULT_CATALOG, split_key
from metastore.rpc.structs import catalog as catalog_structs
from metastore.transfer.models import (
    PARTITIONS_PER_BATCH,
    AbortedWrite,
    Entry,
    OpenTxn,
    Selection,
    SourceTable,
    TableWrites,
    TxnState,
)
from metastore.transfer.sources.thrift_entries import global_entries, table_entries

TABLES_PER_BATCH = 100
_CAPABILITIES = ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES])


class Peer:
    """Calls to a metastore whose generation is found out by trying."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._unknown: set[str] = set()

    @property
    def name(self) -> str:
        return self.connection.uri

    def call(self, method: str, *args: Any) -> Any:
        """As `Connection.call`; an unknown method is asked for only once."""
        if method in self._unknown:
            raise UnknownMethodError(f"the metastore does not serve {method}")
        try:
            return self.connection.call(method, *args)
        except UnknownMethodError:
            self._unknown.add(method)
            raise

    def first_of(self, *attempts: Callable[[], Any]) -> Any:
        """The result of the first attempt whose method the peer has. Raises UnknownMethodError if it has none."""
        for attempt in attempts[:-1]:
            try:
                return attempt()
            except UnknownMethodError:
                continue
        return attempts[-1]()

    def knows(self, method: str, *args: Any) -> Any:
        """As `call`; None if the peer does not have the method."""
        try:
            return self.call(method, *args)
        except UnknownMethodError:
            return None

    def has(self, attempt: Callable[[], Any]) -> bool:
        """Make an attempt; False if the peer does not have its method."""
        try:
            attempt()
        except UnknownMethodError:
            return False
        return True

    def table(self, database: str, name: str) -> Any:
        """The Table struct. Raises NoSuchObjectError."""
        catalog, plain = split_key(database)  # only requests without a field for the catalog take it in the name
        request = ttypes.GetTableRequest(dbName=plain, catName=catalog, tblName=name, capabilities=_CAPABILITIES)
        return self.first_of(
            lambda: self.call("get_table_req", request).table, lambda: self.call("get_table", database, name)
        )

    def catalogs(self) -> list[str]:
        """The names of the catalogs; before Hive 3 there is one."""
        answer = self.knows("get_catalogs")
        return [DEFAULT_CATALOG] if answer is None else sorted(answer.names)

    def databases(self) -> list[str]:
        """All databases, those of other catalogs than the default one as ``@catalog#database``."""
        found: list[str] = self.call("get_all_databases")
        for catalog in self.catalogs():
            if catalog != DEFAULT_CATALOG:
                found += [f"@{catalog}#{name}" for name in self.call("get_databases", f"@{catalog}#*")]
        return sorted(found)

    def txns(self) -> ValidTxnList:
        """The transactions that are open and aborted now."""
        answer = self.call("get_open_txns")
        if answer.open_txns is None:  # Hive 2 sends a set, whose order the bits do not tell
            return _txn_list(self.call("get_open_txns_info"))
        return ValidTxnList.from_open_txns(
            answer.txn_high_water_mark, answer.open_txns, answer.abortedBits or b"", own_txn_id=0
        )

    def open_txns(self, txns: ValidTxnList) -> tuple[OpenTxn, ...]:
        """The open ones of a snapshot, with their users where the peer can tell."""
        try:
            info = self.call("get_open_txns_info").open_txns if txns.open_ids else ()
        except MetastoreUnreachableError:  # Java's 4.0 breaks off while it has a committed one on record
            info = ()
        owners = {one.id: OpenTxn(one.id, one.user or "", one.hostname or "") for one in info}
        return tuple(owners.get(txn_id, OpenTxn(txn_id)) for txn_id in txns.open_ids)

    def writes(self, database: str, table: str, txns: ValidTxnList) -> TableWrites:
        """The write ids of a table to a snapshot. Raises UnknownMethodError for Hive 2, MetaError if it cannot tell."""
        maximum = ttypes.MaxAllocatedTableWriteIdRequest(dbName=database, tableName=table)
        # Asked first: what is given out in between is seen as open by the second call, not missed by both.
        last = self.knows("get_max_allocated_table_write_id", maximum)
        full_name = table_name(database, table)
        request = ttypes.GetValidWriteIdsRequest(fullTableNames=[full_name], validTxnList=str(txns))
        (found,) = self.call("get_valid_write_ids", request).tblValidWriteIds
        shown = ValidWriteIdList.from_invalid(
            full_name, found.writeIdHighWaterMark, found.invalidWriteIds, found.abortedBits or b"", found.minOpenWriteId
        )
        return _writes(shown, None if last is None else last.maxWriteId, txns)


class ThriftSource:
    """See `Source`."""

    def __init__(self, connection: Connection) -> None:
        self._peer = Peer(connection)
        self._ended_compactions: dict[tuple[str, str], list[AbortedWrite]] = {}

    @property
    def name(self) -> str:
        return self._peer.name

    @property
    def identity(self) -> str:
        return str(self._peer.knows("get_metastore_db_uuid") or self.name)

    def txns(self) -> TxnState:
        txns = self._peer.txns()
        unfinished = {*txns.open_ids, *txns.aborted_ids}
        states: Counter[str] = Counter()
        for one in self._peer.call("show_compact", ttypes.ShowCompactRequest()).compacts:
            states[one.state] += 1
            if one.txnId in unfinished:
                left = AbortedWrite(0, one.txnId, one.partitionname or "", "c")
                self._ended_compactions.setdefault((one.dbname, one.tablename), []).append(left)
        return TxnState(txns.high_water_mark, self._peer.open_txns(txns), dict(sorted(states.items())))

    def catalogs(self) -> Iterator[CatalogInfo]:
        for name in self._peer.catalogs():
            answer = self._peer.knows("get_catalog", ttypes.GetCatalogRequest(name=name))
            if answer is not None:
                struct = answer.catalog
                yield replace(catalog_structs.catalog_of(struct), created_s=struct.createTime or 0)

    def databases(self, selection: Selection) -> Iterator[DatabaseInfo]:
        for name in self._peer.databases():
            if selection.has_database(name):
                yield catalog_structs.database_of(self._peer.call("get_database", name))

    def entries(self) -> Iterator[Entry]:
        return global_entries(self._peer)

    def tables(self, selection: Selection) -> Iterator[SourceTable]:
        for database in self._peer.databases():
            if not selection.has_database(database):
                continue
            names = sorted(self._peer.call("get_all_tables", database))
            chosen = [name for name in names if selection.has_table(database, name)]
            for first in range(0, len(chosen), TABLES_PER_BATCH):
                for struct in self._structs(database, chosen[first : first + TABLES_PER_BATCH]):
                    yield self._table(catalog_structs.table_of(struct))

    def changed(self, known: Mapping[str, TableWrites]) -> Iterator[SourceTable]:
        for full_name, writes in known.items():
            database, _, name = full_name.rpartition(".")
            stub = Table(database, name, parameters={TRANSACTIONAL: "true"})
            now = self._table(stub).writes()
            if now is not None and now.with_open_as_aborted() != writes.with_open_as_aborted():
                yield self._table(catalog_structs.table_of(self._peer.table(database, name)))

    def _table(self, table: Table) -> ThriftTable:
        return ThriftTable(self._peer, table, self._ended_compactions.get((table.database, table.name), ()))

    def _structs(self, database: str, names: list[str]) -> list[Any]:
        catalog, plain = split_key(database)
        request = ttypes.GetTablesRequest(dbName=plain, catName=catalog, tblNames=names, capabilities=_CAPABILITIES)
        found: list[Any] = self._peer.first_of(
            lambda: self._peer.call("get_table_objects_by_name_req", request).tables,
            lambda: [self._peer.table(database, name) for name in names],
        )
        return sorted(found, key=lambda struct: str(struct.tableName))


class ThriftTable:
    """See `SourceTable`."""

    def __init__(self, peer: Peer, table: Table, ended_compactions: Sequence[AbortedWrite] = ()) -> None:
        self._peer = peer
        self.table = table
        self._ended_compactions = ended_compactions

    def writes(self) -> TableWrites | None:
        if not self.table.is_transactional:
            return None
        txns = self._peer.txns()
        try:
            found = self._peer.writes(self.table.database, self.table.name, txns)
        except UnknownMethodError:
            # Before Hive 3 files carry transaction ids where write ids stand later; its upgrade goes on above them too.
            return TableWrites(
                txns.high_water_mark,
                tuple(AbortedWrite(txn_id, txn_id) for txn_id in txns.aborted_ids),
                tuple(AbortedWrite(txn_id, txn_id) for txn_id in txns.open_ids),
            )
        return replace(found, aborted=tuple(sorted((*found.aborted, *self._ended_compactions))))

    def partitions(self) -> Iterator[Sequence[Partition]]:
        for names in self._partition_names():
            structs = self._peer.call("get_partitions_by_names", self.table.database, self.table.name, names)
            yield [catalog_structs.partition_of(struct) for struct in structs]

    def entries(self) -> Iterator[Entry]:
        return table_entries(self._peer, self.table, self._partition_names)

    def _partition_names(self) -> list[list[str]]:
        if not self.table.partition_keys:
            return []
        names = sorted(self._peer.call("get_partition_names", self.table.database, self.table.name, -1))
        return [names[first : first + PARTITIONS_PER_BATCH] for first in range(0, len(names), PARTITIONS_PER_BATCH)]


def _txn_list(info: Any) -> ValidTxnList:
    """The snapshot of a get_open_txns_info answer."""
    by_state: dict[int, list[int]] = {ttypes.TxnState.OPEN: [], ttypes.TxnState.ABORTED: []}
    for one in info.open_txns:
        by_state.setdefault(one.state, []).append(one.id)
    return ValidTxnList(
        info.txn_high_water_mark, tuple(by_state[ttypes.TxnState.OPEN]), tuple(by_state[ttypes.TxnState.ABORTED])
    )


def _writes(shown: ValidWriteIdList, last: int | None, txns: ValidTxnList) -> TableWrites:
    """The state behind what a snapshot shows.

    Where nothing valid is on record the answer ends at the lowest invalid write id (transactions.md §2.2). All from
    there to the last one given out are invalid then, but only Hive 4 says which that is.

    No call says whose a write id is. They are given to transactions in the same state in their order: a good guess, and
    the right one is not needed, since each of these is unfinished or aborted for everybody.
    """
    lowest = min((*shown.open_ids, *shown.aborted_ids), default=0)
    ends_early = 0 < lowest == shown.high_water_mark
    if last is None and ends_early:
        raise MetaError(
            f"{shown.table} has nothing but open or aborted writes from write id {lowest} on, and Hive 3 does not say"
            " how many: let its Cleaner remove the aborted ones, or write to the table once, and try again"
        )
    highest = max(last or 0, shown.high_water_mark)
    open_ids, aborted_ids = shown.open_ids, shown.aborted_ids
    if ends_early and open_ids:
        open_ids = tuple(range(lowest, highest + 1))
    elif ends_early:
        aborted_ids = tuple(range(lowest, highest + 1))
    return TableWrites(highest, _owned(aborted_ids, txns.aborted_ids), _owned(open_ids, txns.open_ids))


def _owned(write_ids: Sequence[int], txn_ids: Sequence[int]) -> tuple[AbortedWrite, ...]:
    owners = (*(0 for _ in range(len(write_ids) - len(txn_ids))), *txn_ids[max(0, len(txn_ids) - len(write_ids)) :])
    return tuple(AbortedWrite(write_id, txn_id) for write_id, txn_id in zip(write_ids, owners, strict=True))
