"""File work with limits: who does not answer hinders nobody else."""

import threading
import time

import pytest

from metastore.filework import pools
from metastore.filework.pools import FileSystems
from metastore.rpc.limits.workers import Workers
from tests.waiting import until

SILENT = "hdfs://silent/x"


class Gate:
    """An operation that does not end before it is let."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        assert self.open.wait(30)
        return "done"


@pytest.fixture
def systems() -> FileSystems:
    made = FileSystems()
    made.limit_ms = 200
    return made


def test_results_and_errors_are_the_operations(systems: FileSystems) -> None:
    def fails() -> None:
        raise PermissionError("no")

    assert systems.run("/x", sum, (1, 2)) == 3
    with pytest.raises(PermissionError, match="no"):
        systems.run("s3a://b/x", fails)


def test_a_silent_one_has_a_limit_and_others_go_on(systems: FileSystems) -> None:
    gate = Gate()
    outcomes: list[str] = []

    def ask() -> None:
        try:
            systems.run(SILENT, lambda: gate())
        except OSError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(pools.MOST_CALLERS + 5)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    assert systems.run("hdfs://other/x", str, 1) == "1"
    assert systems.run("file:/x", str, 1) == "1"
    assert time.monotonic() - started < 1
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - started < 5
    assert sum("has not answered within 0.2 s" in outcome for outcome in outcomes) == pools.MOST_CALLERS
    assert sum("does not answer, and 16 calls wait" in outcome for outcome in outcomes) == 5
    assert gate.calls == pools.THREADS
    gate.open.set()
    until(lambda: systems.run(SILENT, str, 1) == "1")


def test_what_nobody_waits_for_any_more_is_undone_and_what_is_asked_again_is_joined(systems: FileSystems) -> None:
    gate, undone = Gate(), threading.Event()
    with pytest.raises(TimeoutError):
        systems.run(SILENT, gate, undo=undone.set)
    systems.limit_ms = 20_000
    threading.Timer(1, gate.open.set).start()
    assert systems.run(SILENT, gate, undo=undone.set) == "done"
    assert gate.calls == 1
    assert not undone.is_set()
    gate.open.clear()
    systems.limit_ms = 200
    with pytest.raises(TimeoutError):
        systems.run(SILENT, gate, undo=undone.set)
    gate.open.set()
    assert undone.wait(10)


def test_who_waits_does_not_count_among_those_that_work(systems: FileSystems) -> None:
    workers, gate = Workers(1), Gate()
    systems.limit_ms = 10_000
    waiting = workers.submit(systems.run, SILENT, gate)
    until(lambda: gate.calls == 1)
    assert workers.submit(str, 1).result(10) == "1"
    gate.open.set()
    waiting.result(10)
    workers.shutdown()
