"""Housekeeping beside writers: what an open transaction sees does not change under it, and nobody fails by it."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from hive_acid.errors import TxnAbortedError
from hive_acid.format.snapshot import ValidTxnList
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.store.database import Database
from metastore.txn.states import TxnType

from .conftest import Clients

WRITERS = 4
CYCLES = 40


def test_what_is_seen_stays_the_same(db: Database, clients: Clients) -> None:
    done = threading.Event()
    runs = 0

    def keep_house() -> None:
        nonlocal runs
        cleaner = AcidTxnCleaner(db, HousekeepingConfig(finished_retention_ms=0, purge_batch=5))
        while not done.is_set():
            cleaner.run_once()
            runs += 1

    def write(seed: int) -> int:
        rng = random.Random(seed)
        committed = 0
        for _ in range(CYCLES):
            kind = rng.choice([TxnType.DEFAULT, TxnType.DEFAULT, TxnType.READ_ONLY])
            txn_id = clients.open(kind)
            now = clients.txns.get_open_txns(())
            snapshot = ValidTxnList(now.high_water_mark, tuple(now.open_ids), tuple(now.aborted_ids)).up_to(txn_id)
            before = visible(clients, snapshot)
            if kind is TxnType.DEFAULT:
                clients.write(txn_id)
            assert visible(clients, snapshot) == before
            if rng.random() < 0.3:
                clients.txns.abort_txns([txn_id])
                continue
            with suppress(TxnAbortedError):  # somebody else was the first to commit
                clients.commit(txn_id)
                committed += kind is TxnType.DEFAULT
        return committed

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        housekeeping = pool.submit(keep_house)
        try:
            committed = sum(pool.map(write, range(WRITERS)))
        finally:
            done.set()
        housekeeping.result()
    assert runs > 3
    assert len(visible(clients, None)) == committed


def visible(clients: Clients, snapshot: ValidTxnList | None) -> set[int]:
    """The write ids that a snapshot sees, of itself nothing."""
    (seen,) = clients.write_ids.get_valid(["db.t"], snapshot)
    return set(range(1, seen.high_water_mark + 1)) - set(seen.invalid)
