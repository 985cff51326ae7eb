"""The whole matrix of held and requested locks as it was measured on Hive (transactions.md §3.3)."""

import itertools
from collections.abc import Callable

import pytest

from hive_acid.ids import TxnId
from metastore.lock.models import LockResult
from metastore.lock.states import BLOCKS, LockAnswer, LockType
from metastore.txn.service import TxnService
from tests.lock.conftest import OWNER

# held: answers to r, w, x and e on the database, on the table, on the partition
MEASURED = {
    "r DB": "AAAW AAAA AAAA",
    "w DB": "AAWW AAWW AAWW",
    "x DB": "AWWW AWWW AWWW",
    "e DB": "WWWW WWWW WWWW",
    "r TABLE": "AAAW AAAW AAAW",
    "w TABLE": "AAWW AAWW AAWW",
    "x TABLE": "AWWW AWWW AWWW",
    "e TABLE": "AWWW WWWW WWWW",
    "r PARTITION": "AAAW AAAW AAAW",
    "w PARTITION": "AAWW AAWW AAWW",
    "x PARTITION": "AWWW AWWW AWWW",
    "e PARTITION": "AWWW WWWW WWWW",
}
TARGETS = {"DB": "db", "TABLE": "db/t", "PARTITION": "db/t/p=1"}
Ask = Callable[..., LockResult]


@pytest.mark.parametrize("held", MEASURED)
def test_matrix(held: str, txns: TxnService, ask: Ask) -> None:
    letter, level = held.split()
    holder, *others = txns.open_txns(13, OWNER)
    assert ask(f"{letter} {TARGETS[level]}", txn=holder).answer is LockAnswer.ACQUIRED
    answers = ""
    requests = itertools.product(TARGETS.values(), "rwxe")
    for (target, wanted), other in zip(requests, others, strict=True):
        answer = ask(f"{wanted} {target}", txn=other).answer
        answers += "A" if answer is LockAnswer.ACQUIRED else "W"
        txns.abort_txn(other)
    assert answers == MEASURED[held].replace(" ", "")


@pytest.mark.parametrize("held", list(LockType))
def test_table_of_types_says_the_same(held: LockType, txns: TxnService, ask: Ask) -> None:
    for wanted in LockType:
        holder, other = txns.open_txns(2, OWNER)
        ask(f"{held.value} db/t", txn=holder)
        blocked = ask(f"{wanted.value} db/t", txn=other).answer is LockAnswer.WAITING
        assert blocked == (held in BLOCKS[wanted])
        txns.abort_txns([holder, other])


def test_different_tables_and_partitions_never_meet(ask: Ask, open_one: Callable[[], TxnId]) -> None:
    for target in ("db/t/p=1", "db/t/p=2", "db/u", "db2", "db2x/t"):
        assert ask(f"e {target}", txn=open_one()).answer is LockAnswer.ACQUIRED


def test_names_are_compared_in_one_case(ask: Ask, open_one: Callable[[], TxnId]) -> None:
    ask("e DB/T/P=A", txn=open_one())
    assert ask("r db/t/p=A", txn=open_one()).answer is LockAnswer.WAITING
    assert ask("r db/t/p=a", txn=open_one()).answer is LockAnswer.ACQUIRED


def test_same_transaction_never_conflicts(ask: Ask, open_one: Callable[[], TxnId]) -> None:
    txn_id = open_one()
    assert ask("r db/t", txn=txn_id).answer is LockAnswer.ACQUIRED
    assert ask("e db/t", txn=txn_id).answer is LockAnswer.ACQUIRED


def test_without_a_transaction_everybody_is_another(ask: Ask) -> None:
    assert ask("e db/t").answer is LockAnswer.ACQUIRED
    assert ask("r db/t").answer is LockAnswer.WAITING
