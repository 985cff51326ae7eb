"""A compactor that speaks raw Thrift, as Hive's own workers do; the server's Cleaner removes what it has replaced.

It merges what its snapshot sees of a partition into a base that carries its transaction's id, so that nobody sees the
base before the commit. Whatever fails is left as it is: that is what happens to a worker that is killed.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

from thriftpy2.thrift import TApplicationException

from hive_acid.format.snapshot import ValidTxnList
from hive_acid.wire import ttypes
from tests.isolation.clients.caller import Caller
from tests.isolation.judging.comparison import visible_write_ids
from tests.isolation.judging.deltas import DATABASE, Deltas, Keyspace
from tests.isolation.judging.history import Key

PAUSE_S = 0.1
REFUSALS = (
    ttypes.MetaException,
    ttypes.TxnAbortedException,
    ttypes.NoSuchTxnException,
    TApplicationException,
)


class Compactor:
    """Compacts one partition after the other on a thread of its own; `counts` what came of it."""

    def __init__(self, caller: Caller, deltas: Deltas, keyspace: Keyspace, seed: int) -> None:
        self._caller = caller
        self._deltas = deltas
        self._keyspace = keyspace
        self._chance = random.Random(f"compactor {seed}")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compactor", daemon=True)
        self.counts: Counter[str] = Counter()
        self.failure: Exception | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the present compaction. Raises what went wrong with the compactor itself."""
        self._ended.set()
        self._thread.join()
        self._caller.close()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            while not self._ended.wait(PAUSE_S):
                try:
                    self._compact()
                except (*REFUSALS, OSError) as error:
                    self.counts[type(error).__name__] += 1
        except Exception as error:
            self.failure = error

    def _ask(self, method: str, *args: Any) -> Any:
        """The answer of a call; a refusal is an answer, too, and ends this compaction."""
        return self._caller.call(method, *args, final=REFUSALS)

    def _compact(self) -> None:
        wanted = self._keyspace.choose(self._chance, 1)[0]
        request = ttypes.CompactionRequest(
            dbname=DATABASE,
            tablename=wanted.table,
            partitionname=wanted.partition,
            type=ttypes.CompactionType.MAJOR,
            runas="isolation",
        )
        self._ask("compact2", request)
        found = self._ask(
            "find_next_compact2", ttypes.FindNextCompactRequest(workerId="isolation", workerVersion="1")
        ).ci
        if found is None:
            return
        key = Key(found.tablename, found.partitionname)
        opening = ttypes.OpenTxnRequest(
            num_txns=1, user="isolation", hostname="compactor", txn_type=ttypes.TxnType.COMPACTION
        )
        txn_id = self._ask("open_txns", opening).txn_ids[0]
        answer = self._ask("get_open_txns_req", ttypes.GetOpenTxnsRequest(excludeTxnTypes=[]))
        snapshot = ValidTxnList.from_open_txns(
            answer.txn_high_water_mark, answer.open_txns or [], answer.abortedBits or b"", own_txn_id=txn_id
        )
        visible = visible_write_ids(self._caller, key.table, str(snapshot)).for_compactor()
        found.highestWriteId = visible.high_water_mark
        self._ask("update_compactor_state", found, txn_id)
        self._ask("heartbeat", ttypes.HeartbeatRequest(txnid=txn_id))
        self._deltas.compact(key, visible, snapshot, txn_id)
        self._ask("mark_compacted", found)
        self._ask("commit_txn", ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=False))
        self.counts["committed"] += 1
