"""Replay of another warehouse's transactions, write ids and tables (transactions.md §1.2, §1.7, §2.1, §2.4).

The one who replays names what is replicated by a policy. Under it each transaction of the source has one here, of type
REPL_CREATED, from its opening to its end; `repl_txn_map` knows which. Everything may be replayed twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.errors import FormatError, MetaError
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.ids import TxnId, WriteId
from metastore.store.database import Database
from metastore.txn.calls import LocksFreed
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.names import stored_name, stored_partition
from metastore.txn.service import refuse
from metastore.txn.states import ABORT_REASONS

_ABORTED_AT_SOURCE = 51000
MAX_SEED = 1 << 62
"""The largest first id: half of all ids are left then."""


class ReplicationService:
    """What a replay asks for; each a single round trip to the database."""

    def __init__(self, db: Database, config: TxnConfig, locks_freed: LocksFreed = lambda lock_ids: None) -> None:
        self._db = db
        self._config = config
        self._locks_freed = locks_freed

    def open_txns(self, policy: str, source_ids: Sequence[TxnId], owner: TxnOwner) -> list[TxnId]:
        """The transaction here of each of the source's, opened if there is none yet; in the order of the sources.

        All of them, whatever the limit of a batch: an opening is replayed as a whole. Raises MetaError if none is
        named, and when the limit of open transactions would be passed.
        """
        if not source_ids:
            raise MetaError(f"policy {policy} replays no transaction: name those of the source in replSrcTxnIds")
        limit = self._config.max_open_txns
        rows = self._db.call(
            "repl_open_txns", policy, sorted(set(source_ids)), owner.user, owner.host, owner.agent_info, limit
        )
        if not rows:
            raise MetaError(
                f"{len(source_ids)} more would be too many open transactions, hive.max.open.txns is {limit}:"
                " end some, or raise the limit"
            )
        targets = dict(rows)
        return [TxnId(targets[source_id]) for source_id in source_ids]

    def abort_txn(self, policy: str, source_id: TxnId, error_code: int | None = None) -> None:
        """Abort what replays a transaction of the source; one that has ended here before is fine."""
        reason = ABORT_REASONS.get(error_code or _ABORTED_AT_SOURCE, ABORT_REASONS[_ABORTED_AT_SOURCE])
        row = self._db.call_one("repl_abort_txn", policy, source_id, reason)
        if row is not None:
            self._locks_freed(row[0])

    def allocate(
        self, policy: str, db: str, table: str, pairs: Sequence[tuple[TxnId, WriteId]]
    ) -> list[tuple[TxnId, WriteId]]:
        """Give the transactions here the write ids that the source's have; (transaction here, write id), ascending.

        `pairs` are (transaction of the source, its write id). The answer is empty when one of the transactions has
        ended here: the replay comes a second time. Raises MetaError for an impossible list, TxnAbortedError or
        NoSuchTxnError when a transaction has ended without its replay.
        """
        sources, write_ids = [source for source, _ in pairs], [write_id for _, write_id in pairs]
        if not pairs or min(write_ids) <= 0 or any(len(set(ids)) < len(pairs) for ids in (sources, write_ids)):
            raise MetaError(f"the write ids of {db}.{table} at the source: one, above 0, for each of its transactions")
        rows = self._db.call("repl_allocate_write_ids", policy, stored_name(db), stored_name(table), sources, write_ids)
        if rows:
            refuse(rows[0][0], rows[0][1])
        return [(TxnId(txn_id), WriteId(write_id)) for _, txn_id, write_id in rows]

    def begin_table(self, valid: str, db: str, table: str, partitions: Sequence[str], owner: TxnOwner) -> bool:
        """Begin a copied table's write ids where the source's stand, by the text of its valid write ids.

        Those that were aborted at the source stay aborted, and a major compaction is queued that removes them. False
        if the table has write ids already: nothing is done. Raises MetaError for a text that is no such list.
        """
        try:
            source = ValidWriteIdList.parse(valid)
        except FormatError as error:
            raise MetaError(str(error)) from None
        row = self._db.call_one(
            "repl_begin_table",
            stored_name(db),
            stored_name(table),
            source.high_water_mark,
            [write_id for write_id in source.aborted_ids if write_id <= source.high_water_mark],
            sorted({stored_partition(name) for name in partitions}),
            owner.user,
            owner.host,
        )
        assert row is not None
        return bool(row[0])

    def seed_txn_ids(self, seed: TxnId) -> None:
        """Let transaction ids go on at `seed`.

        Raises MetaError unless it is above the high-water mark, and where ids would come to an end too soon.
        """
        if seed > MAX_SEED:
            raise MetaError(f"transaction ids cannot go on at {seed}: at most at {MAX_SEED}, so that some are left")
        row = self._db.call_once("seed_txn_id", seed)[0]
        if not row[0]:
            raise MetaError(f"transaction ids cannot go on at {seed}: the high-water mark is {row[1]} already")
