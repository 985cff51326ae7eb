"""Hand-made histories: the checker finds each anomaly, and takes what snapshot isolation allows for fine."""

import random
from typing import Any

import pytest

from tests.isolation.judging.checker import check
from tests.isolation.judging.history import Append, Elements, Key, Outcome, Read, Transaction

X, Y = Key("t", "x"), Key("t", "y")


def txn(
    txn_id: Any, *operations: Any, at: Any = None, until: Any = None, outcome: Any = Outcome.COMMITTED, **more: Any
) -> Any:
    """A transaction that begins at `at` and commits at `until`, by default alone in the second of its id."""
    began = float(txn_id if at is None else at)
    ended = began + 0.5 if until is None else float(until)
    return Transaction(
        client="c",
        kind="made up",
        began=began,
        txn_id=txn_id,
        snapshot_at=began + 0.1,
        committing=ended - 0.1,
        ended=ended,
        outcome=outcome,
        operations=list(operations),
        **more,
    )


def read(key: Any, *elements: Any, at: Any = 1000.0) -> Any:
    return Read(key, elements, at)


def rewrite(key: Any, element: Any, *others: Any) -> Any:
    """Read a list and append to it."""
    return Read(key, others, 1000.0), Append(key, element)


def names(*history: Any) -> Any:
    return set(check(history).counts())


def test_one_after_the_other_is_in_order() -> None:
    report = check(
        [txn(1, *rewrite(X, 1)), txn(2, *rewrite(X, 2, 1), *rewrite(Y, 3)), txn(3, read(X, 1, 2), read(Y, 3))]
    )
    assert report.is_clean
    assert report.allowed["groups in write skew"] == 0


def test_lost_update() -> None:
    history = [txn(1, *rewrite(X, 1), at=1, until=5), txn(2, *rewrite(X, 2), at=2, until=6), txn(7, read(X, 2))]
    report = check(history)
    assert {"lost update", "lost write"} <= set(report.counts())
    assert report.violations[0].transactions == (0, 1)
    assert "T1 (made up, c)" in report.story()


def test_a_commit_that_nobody_sees() -> None:
    assert "stale read" in names(txn(1, *rewrite(X, 1)), txn(2, *rewrite(Y, 2)), txn(3, read(X), read(Y, 2)))


def test_aborted_read_g1a() -> None:
    assert names(txn(1, *rewrite(X, 1), outcome=Outcome.ABORTED), txn(2, read(X, 1))) == {"aborted read"}


def test_what_was_built_on_an_aborted_read_does_not_hide_it() -> None:
    history = [txn(1, *rewrite(X, 1), outcome=Outcome.ABORTED), txn(2, *rewrite(X, 2, 1)), txn(3, read(X, 1, 2))]
    assert "aborted read" in names(*history)


def test_what_an_aborted_transaction_read_is_not_judged() -> None:
    history = [txn(1, *rewrite(X, 1)), txn(2, read(X, 7), outcome=Outcome.ABORTED), txn(3, read(X, 1))]
    assert check(history).is_clean


def test_intermediate_read_g1b() -> None:
    writer = txn(1, *rewrite(X, 1), Append(X, 2), at=1, until=5)
    assert "intermediate read" in names(writer, txn(2, read(X, 1), at=2, until=6), txn(7, read(X, 1, 2)))


def test_dirty_read() -> None:
    writer = txn(1, *rewrite(X, 1), at=1, until=5)
    assert names(writer, txn(2, read(X, 1, at=3.0), at=2, until=6)) == {"dirty read"}


def test_phantom_element() -> None:
    assert names(txn(1, read(X, 9))) == {"phantom element"}


def test_non_repeatable_read() -> None:
    reader = txn(2, read(X), read(X, 1), at=0, until=6)
    assert "non-repeatable read" in names(txn(1, *rewrite(X, 1)), reader)


def test_lost_own_write() -> None:
    assert "lost own write" in names(txn(1, *rewrite(X, 1), read(X)))


def test_write_cycle_g0() -> None:
    history = [
        txn(1, Append(X, 1), Append(Y, 11), at=1, until=5),
        txn(2, Append(X, 2), Append(Y, 12), at=1, until=5),
        txn(6, read(X, 1, 2), read(Y, 12, 11)),
    ]
    assert any("writes in a circle" in name for name in names(*history))


def test_circular_information_flow_g1c() -> None:
    history = [
        txn(1, *rewrite(X, 1), read(Y, 2), at=1, until=5),
        txn(2, *rewrite(Y, 2), read(X, 1), at=1, until=5),
    ]
    assert names(*history) == {"G1c, information flows in a circle"}


def test_read_skew_g_single() -> None:
    history = [
        txn(1, read(X), read(Y, 2), at=1, until=5),
        txn(2, *rewrite(X, 1), *rewrite(Y, 2), at=1, until=3),
    ]
    report = check(history)
    assert set(report.counts()) == {"G-single, read skew"}
    assert report.violations[0].words == "T1 -rw-> (t/x) T2 -wr-> (t/y) T1"


def test_read_skew_over_several_transactions() -> None:
    history = [
        txn(1, read(X), read(Y, 2, 3), at=1, until=9),
        txn(2, *rewrite(X, 1), *rewrite(Y, 2), at=1, until=3),
        txn(4, *rewrite(Y, 3, 2)),
    ]
    assert names(*history) == {"G-single, read skew"}


def test_write_skew_g2_is_allowed() -> None:
    history = [
        txn(1, *rewrite(X, 1), read(Y), at=1, until=5),
        txn(2, *rewrite(Y, 2), read(X), at=1, until=5),
    ]
    report = check(history)
    assert report.is_clean
    assert report.allowed["groups in write skew"] == 1


def fork(reader: Any, writer: Any) -> Any:
    """Two transactions see two writes in different orders: `reader` misses that of `writer`, the other that of 1."""
    history = [
        txn(1, *rewrite(Y, 2), at=1.0, until=1.8),
        txn(reader, read(X), read(Y, 2), at=1.1, until=9),
        txn(writer, *rewrite(X, 1), at=1.2, until=1.4),
        txn(4, read(X, 1), read(Y), at=1.5, until=9),
    ]
    history[1].snapshot_at = 2.0
    return history


def test_long_fork() -> None:
    assert names(*fork(reader=3, writer=2)) == {"long fork"}


def test_a_long_fork_by_the_cap_at_ones_own_id_is_hives() -> None:
    report = check(fork(reader=2, writer=3))
    assert report.is_clean
    assert report.allowed["long forks by Hive's two calls"] == 1


def test_stale_read() -> None:
    assert "stale read" in names(txn(1, *rewrite(X, 1)), txn(2, read(X)), txn(3, read(X, 1)))


def test_an_unknown_outcome_is_settled_by_what_was_seen() -> None:
    unknown = Outcome.UNKNOWN
    assert check([txn(1, *rewrite(X, 1), outcome=unknown), txn(2, read(X, 1))]).is_clean
    assert check([txn(1, *rewrite(X, 1), outcome=unknown), txn(2, read(X))]).is_clean


def test_rows_inserted_without_a_look_are_lists_of_one() -> None:
    row = Key("t", "x/row 9")
    inserted = txn(1, Append(row, 9))
    assert check([inserted, txn(2, read(row, 9)), txn(3, read(row, 9))]).is_clean
    assert names(inserted, txn(2, read(row))) == {"stale read"}
    assert names(txn(1, Append(row, 9), outcome=Outcome.ABORTED), txn(2, read(row, 9))) == {"aborted read"}


def test_doubled_ids() -> None:
    assert names(txn(1), txn(1)) == {"doubled id"}
    twice = [txn(1, write_ids=[("t", 4)]), txn(2, write_ids=[("u", 4)]), txn(3, write_ids=[("t", 4)])]
    assert names(*twice) == {"doubled id"}


class Ideal:
    """Snapshot isolation on one thread: first committer wins."""

    def __init__(self, checks: Any = True, snapshots: Any = True) -> None:
        self.checks, self.snapshots = checks, snapshots
        self.lists: dict[Key, list[tuple[int, Elements]]] = {}
        self.now = 0
        self.element = 0

    def state(self, key: Any, at: Any) -> Any:
        return next((elements for when, elements in reversed(self.lists.get(key, [])) if when <= at), ())

    def run(self, seed: Any, count: Any = 400, keys: Any = 6) -> Any:
        chance = random.Random(seed)
        names = [Key("t", str(n)) for n in range(keys)]
        history, running = [], []
        for number in range(1, count + 1):
            self.now += 1
            running.append((txn(number, at=self.now), [chance.choice(names) for _ in range(3)], self.now))
            while len(running) > chance.randrange(6):
                self.now += 1
                transaction, wanted, began = running.pop(chance.randrange(len(running)))
                self.finish(transaction, wanted, began)
                history.append(transaction)
        return history

    def finish(self, transaction: Any, wanted: Any, began: Any) -> None:
        *reads, written = dict.fromkeys(wanted)
        for key in reads:
            at = began if self.snapshots or key == reads[0] else self.now
            transaction.operations.append(Read(key, self.state(key, at), self.now + 0.3))
        base = self.state(written, began)
        self.element += 1
        transaction.operations += [Read(written, base, self.now + 0.3), Append(written, self.element)]
        transaction.committing, transaction.ended = self.now + 0.4, self.now + 0.5
        changed = self.lists.get(written, [(0, ())])[-1][0] > began
        transaction.outcome = Outcome.ABORTED if changed and self.checks else Outcome.COMMITTED
        if transaction.outcome is Outcome.COMMITTED:
            self.lists.setdefault(written, []).append((self.now, (*base, self.element)))


@pytest.mark.parametrize("seed", range(10))
def test_an_ideal_database_is_in_order(seed: int) -> None:
    report = check(Ideal().run(seed))
    assert report.is_clean, report.story()
    assert report.allowed["groups in write skew"]


def test_an_ideal_database_without_its_check_loses_updates() -> None:
    assert "lost update" in check(Ideal(checks=False).run(1)).counts()


def test_an_ideal_database_without_snapshots_has_read_skew() -> None:
    assert "G-single, read skew" in check(Ideal(snapshots=False).run(1)).counts()
