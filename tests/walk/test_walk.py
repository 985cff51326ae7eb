"""Random walks of all verbs by many clients, every answer compared with the model (`python -m tests.walk` for more)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.served import Served, served
from tests.walk.story import Fresh, Plan, run
from tests.walk.verbs import VERBS

STEPS = 1000
NOTEWORTHY = {
    *((verb, "ok") for verb in VERBS if verb not in ("lock", "check")),
    *(("lock", answer) for answer in ("A", "W", "N", "NoSuchTxnException", "TxnAbortedException")),
    *(("check", answer) for answer in ("A", "W", "NoSuchLockException", "TxnAbortedException")),
    *(("commit", answer) for answer in ("conflict", "NoSuchTxnException", "TxnAbortedException")),
    *(("allocate", answer) for answer in ("NoSuchTxnException", "TxnAbortedException", "MetaException")),
    *(("heartbeat", answer) for answer in ("NoSuchTxnException", "TxnAbortedException", "NoSuchLockException")),
    *(("unlock", "TxnOpenException"), ("abort", "NoSuchTxnException"), ("write_ids", "MetaException")),
    *(("time_out", "ok"), ("expire_locks", "ok")),
}
"""Answers that a walk of this length must have come by, or it is not worth much."""


@pytest.fixture
def fresh(postgres_url: str, template: str, tmp_path: Path) -> Fresh:
    @contextmanager
    def serve() -> Iterator[Served]:
        with served(postgres_url, template, tmp_path / "warehouse") as server:
            yield server

    return serve


@pytest.mark.sampled(of="walks of the service")
def test_one_after_the_other(fresh: Fresh) -> None:
    seen = run(Plan(1, STEPS), fresh) | run(Plan(2, STEPS), fresh)
    assert seen >= NOTEWORTHY, NOTEWORTHY - seen


@pytest.mark.parametrize("seed", [3, 4])
def test_together(seed: int, fresh: Fresh) -> None:
    run(Plan(seed, STEPS, together=5), fresh)


def test_beside_housekeeping(fresh: Fresh) -> None:
    run(Plan(5, STEPS, together=3, with_housekeeping=True), fresh)
