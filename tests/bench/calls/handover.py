"""Lock hand-over: the time from the unlock of a table to the answer of the next in its queue."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from hive_acid.wire import ttypes
from tests.bench.calls.driver import Call, Scenario, Script
from tests.bench.calls.messages import ID_BYTES, MARK, cut, encode, reply_header, success_header

WAITERS_PER_TABLE = 10
"""One more connection of each table holds its lock meanwhile."""
HOLD_S = (0.2, 0.4)
"""A lock is held for a random time between these: with 100 tables some 330 hand-overs a second."""
_POLLED_S = 0.05
"""A server that answers WAITING sooner than this does not hold the call; its clients pause, as Hive's do."""
_LONGEST_PAUSE_S = 1.0

_LOCK = Call("lock", success_header("lock"))
_CHECK = Call("check_lock", success_header("check_lock"))
_UNLOCK = Call("unlock", reply_header("unlock"), b"\0")
HAND_OVER = Call("hand-over", b"")
_LOCK_ID, _LOCK_STATE = 3, 14  # within the answer's struct: field header, id, field header, state
_WAITING = b"\0\0\0\2"
_CHECK_REQUEST = cut("check_lock", ttypes.CheckLockRequest(lockid=MARK))
_UNLOCK_REQUEST = cut("unlock", ttypes.UnlockRequest(lockid=MARK))


def hand_over(tables: int) -> Scenario:
    """Every connection locks its table exclusively, holds the lock for a moment, and queues again."""
    freed_at: dict[int, float] = {}

    def scripts(number: int) -> Callable[[], Script]:
        table = number % tables
        request = _lock_request(f"queue{table}")
        chance = random.Random(number)

        def script() -> Script:
            answer, call = (yield _LOCK, request), _LOCK
            asked_at, pause_s = time.perf_counter(), _POLLED_S
            at = len(call.prefix)
            lock_id = answer[at + _LOCK_ID : at + _LOCK_ID + ID_BYTES]
            while answer[at + _LOCK_STATE : at + _LOCK_STATE + 4] == _WAITING:
                if time.perf_counter() - asked_at < _POLLED_S:
                    yield None, pause_s
                    pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)
                asked_at = time.perf_counter()
                answer, call = (yield _CHECK, lock_id.join(_CHECK_REQUEST)), _CHECK
                at = len(call.prefix)
            if table in freed_at:
                HAND_OVER.latencies_s.append(time.perf_counter() - freed_at[table])
            yield None, chance.uniform(*HOLD_S)
            freed_at[table] = time.perf_counter()
            yield _UNLOCK, lock_id.join(_UNLOCK_REQUEST)

        return script

    return Scenario("hand-over", (_LOCK, _CHECK, _UNLOCK, HAND_OVER), scripts)


def _lock_request(table: str) -> bytes:
    component = ttypes.LockComponent(
        type=ttypes.LockType.EXCLUSIVE,
        level=ttypes.LockLevel.TABLE,
        dbname="bench",
        tablename=table,
        operationType=ttypes.DataOperationType.NO_TXN,
    )
    return encode("lock", ttypes.LockRequest(component=[component], user="bench", hostname="bench"))
