"""Random sequences of verbs, checked step by step against a plain model and the table of states."""

import random
from dataclasses import dataclass, field

import pytest

from hive_acid.errors import NoSuchTxnError, TxnAbortedError
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.ids import TxnId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import TxnService
from metastore.txn.states import ARROWS, Operation, TxnState, Verb, next_state
from metastore.txn.write_ids import WriteIdService
from tests.txn.conftest import OWNER
from tests.txn.test_write_ids import snapshot_of, text_of

TABLES = ("a", "b")
PARTITIONS = (None, "p=1", "p=2")


@dataclass
class ModelTxn:
    opened_at: int
    state: TxnState = TxnState.OPEN
    committed_at: int = -1
    writes: set[tuple[str, str | None, Operation]] = field(default_factory=set)
    write_ids: dict[str, int] = field(default_factory=dict)


class Model:
    """What ought to be: time is the number of the step."""

    def __init__(self) -> None:
        self.now = 0
        self.txns: dict[TxnId, ModelTxn] = {}
        self.last_write_id = dict.fromkeys(TABLES, 0)

    def conflicts(self, txn: ModelTxn) -> bool:
        return any(
            other.state is TxnState.COMMITTED
            and other.committed_at > txn.opened_at
            and table == other_table
            and (partition == other_partition or partition is None or other_partition is None)
            and operation.conflicts
            and other_operation.conflicts
            for other in self.txns.values()
            if other is not txn
            for table, partition, operation in txn.writes
            for other_table, other_partition, other_operation in other.writes
        )

    def apply(self, txn_id: TxnId, verb: Verb) -> type[Exception] | None:
        """Carry out a verb; the error it has to end with."""
        txn = self.txns[txn_id]
        if verb is Verb.COMMIT and txn.state is TxnState.OPEN and self.conflicts(txn):
            verb = Verb.COMMIT_IN_CONFLICT
        try:
            target = next_state(txn.state, verb)
        except KeyError:
            return TxnAbortedError if txn.state is TxnState.ABORTED else NoSuchTxnError
        assert target is not None
        if target is TxnState.COMMITTED and txn.state is TxnState.OPEN:
            txn.committed_at = self.now
        txn.state = target
        return TxnAbortedError if verb is Verb.COMMIT_IN_CONFLICT else None

    def ids(self, state: TxnState) -> list[TxnId]:
        return [txn_id for txn_id, txn in self.txns.items() if txn.state is state]


@pytest.mark.parametrize("seed", range(6))
def test_walk(seed: int, db: Database) -> None:
    chance = random.Random(seed)
    txns, write_ids, locks = TxnService(db, TxnConfig()), WriteIdService(db), LockService(db)
    keeper, cleaner = AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig()), AcidTxnCleaner(db, HousekeepingConfig())
    model = Model()
    walked = set()

    def write(txn_id: TxnId) -> None:
        table, partition = chance.choice(TABLES), chance.choice(PARTITIONS)
        operation = chance.choice((Operation.INSERT, Operation.UPDATE, Operation.DELETE))
        given = write_ids.allocate("db", table, [txn_id])
        component = LockComponent(LockType.SHARED_WRITE, "db", table, partition, operation)
        locks.lock(LockRequest((component,), OWNER, txn_id))
        txn = model.txns[txn_id]
        if table not in txn.write_ids:
            model.last_write_id[table] += 1
            txn.write_ids[table] = model.last_write_id[table]
        assert given == [(txn_id, txn.write_ids[table])]
        txn.writes.add((table, partition, operation))

    def time_out(txn_id: TxnId) -> None:
        with db.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE txn SET heartbeat_at = heartbeat_at - interval '1 day' WHERE txn_id = %s", (txn_id,)
            )
        keeper.run_once()
        cleaner.run_once()

    verbs = {
        Verb.HEARTBEAT: txns.heartbeat,
        Verb.WRITE: write,
        Verb.COMMIT: txns.commit_txn,
        Verb.ABORT: txns.abort_txn,
        Verb.TIME_OUT: time_out,
    }
    for _ in range(150):
        model.now += 1
        if not model.txns or chance.random() < 0.2:
            txn_id = txns.open_txns(1, OWNER)[0]
            assert txn_id == len(model.txns) + 1
            model.txns[txn_id] = ModelTxn(model.now)
            continue
        txn_id = chance.choice(list(model.txns)[-8:])
        verb = chance.choices(list(verbs), (2, 6, 4, 1, 1))[0]
        if verb is Verb.TIME_OUT and model.txns[txn_id].state is not TxnState.OPEN:
            continue
        before = model.txns[txn_id].state
        expected = model.apply(txn_id, verb)
        walked.add((before, verb, model.txns[txn_id].state))
        if expected is None:
            verbs[verb](txn_id)
        else:
            with pytest.raises(expected):
                verbs[verb](txn_id)
        check(model, txns, write_ids, locks)
    assert len(walked) > len(ARROWS)


def check(model: Model, txns: TxnService, write_ids: WriteIdService, locks: LockService) -> None:
    snapshot = txns.get_open_txns()
    opened, aborted = model.ids(TxnState.OPEN), model.ids(TxnState.ABORTED)
    assert (snapshot.open_ids, snapshot.aborted_ids, snapshot.high_water_mark) == (opened, aborted, len(model.txns))
    assert {info.txn_id for info in locks.show_locks()} <= set(opened)
    names = [f"db.{table}" for table in TABLES]
    for table, found in zip(TABLES, write_ids.get_valid(names, snapshot_of(txns)), strict=True):
        owners = {txn.write_ids[table]: txn.state for txn in model.txns.values() if table in txn.write_ids}
        seen = ValidWriteIdList.parse(text_of(found))
        for write_id in range(1, model.last_write_id[table] + 2):
            assert seen.is_valid(write_id) == (owners.get(write_id) is TxnState.COMMITTED)
        assert all(owners[write_id] is TxnState.ABORTED for write_id in found.aborted)
