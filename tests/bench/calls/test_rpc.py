"""The bench measures what it says: every scenario against a real server, each for a fraction of a second."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hive_acid import connect
from hive_acid.wire import ttypes
from tests.bench.calls import cycles, floor, rpc, sections
from tests.bench.calls.driver import Call, CallError, Driver, Scenario, Script, ask
from tests.bench.calls.driver import connect as raw
from tests.bench.calls.measure import Options, measure
from tests.bench.calls.messages import MARK, cut, encode, reply_header
from tests.bench.calls.sections import Bench, Sizes
from tests.bench.calls.servers import Machine, Server
from tests.bench.machine import real_time

SIZES = Sizes(
    aborted=(0, 1000),
    idle_connections=20,
    finished=100,
    open=1000,
    lock_tables=3,
    crowd=50,
    hostile_s=0.5,
    grown_rounds=1,
)


@pytest.fixture
def bench(metastore: Callable[..., str]) -> Bench:
    """Small and short, on the test's own server."""
    ours = Server("hive-acid", metastore())
    return Bench(None, [], [2], Options(0.2, warm_up_s=0.1), ours, SIZES)


@pytest.mark.parametrize("name", [name for name in sections.NAMES if name not in ("start", "doors")])
@pytest.mark.sampled
def test_a_scenario_finds_figures_and_no_failure(bench: Bench, name: str) -> None:
    (section,) = sections.chosen([name])

    result = section(bench)

    assert result.listings
    assert all(listing.rows for listing in result.listings)
    for record in result.records:
        assert not record.get("failures"), record
        assert record.get("per_second", 1) > 0, record


@pytest.mark.slow
def test_nothing_stays_open(bench: Bench) -> None:
    for section in sections.chosen(["write", "insert", "read", "heartbeat", "growth"]):
        section(bench)

    assert bench.ours is not None
    with connect(bench.ours.uri) as connection:
        states = {txn.state for txn in connection.call("get_open_txns_info").open_txns}
        assert states <= {ttypes.TxnState.ABORTED}  # those in conflict
        assert connection.call("show_locks", ttypes.ShowLocksRequest()).locks == []


def test_a_call_that_fails_is_counted_and_shown(bench: Bench) -> None:
    assert bench.ours is not None
    call = Call("heartbeat", reply_header("heartbeat"), b"\0")
    request = encode("heartbeat", ttypes.HeartbeatRequest(txnid=999_999))

    def script() -> Script:
        yield call, request

    figures = measure(Scenario("broken", (call,), lambda _: script), bench.ours, 1, Options(0.1)).figures

    assert figures.rounds == 0
    ((reason, count),) = figures.failures.items()
    assert count > 0
    assert reason.startswith("heartbeat: No such transaction txnid:#")


def test_a_write_conflict_is_neither_a_cycle_nor_a_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert bench.ours is not None
    monkeypatch.setattr(cycles, "UPDATES", cycles.UPDATES[:1])  # one partition for all

    with Driver(bench.ours.uri, 4) as driver:
        figures = driver.run(cycles.CYCLES[0], 0.5, 0.0)

    assert figures.conflicts > 0
    assert figures.rounds > 0
    assert not figures.failures


def test_what_prepares_a_measurement_must_not_fail(metastore: Callable[..., str]) -> None:
    sock = raw(metastore())
    with pytest.raises(CallError, match="abort_txn"):
        ask(sock, "abort_txn", ttypes.AbortTxnRequest(txnid=999_999))
    sock.close()


def test_a_request_is_cut_where_the_id_belongs() -> None:
    txn = (12345).to_bytes(8, "big")
    pieces = cut("commit_txn", ttypes.CommitTxnRequest(txnid=MARK))
    assert txn.join(pieces) == encode("commit_txn", ttypes.CommitTxnRequest(txnid=12345))


@pytest.mark.parametrize("cycle", floor.CYCLES)
def test_the_floor_has_a_figure(postgres_url: str, cycle: str) -> None:
    assert floor.measure(postgres_url, cycle, 2, 1.0) > 0


@pytest.mark.slow
def test_the_machine_starts_a_server_and_measures_it(tmp_path: Path) -> None:
    with Machine(tmp_path) as machine:
        (record,) = sections.starts(Bench(machine, [], [1], Options(0.2))).records
        assert 0 < record["existing_s"] < 60
        guarded = sections.doors(Bench(machine, [], [2], Options(0.2))).records
        assert {one["server"] for one in guarded} == {"open", "rights", "audit", "TLS", "all three"}
        assert all(one["per_second"] > 0 and not one["failures"] for one in guarded)
        with machine.server() as server:
            cycles.prepare(server.uri)
            found = measure(cycles.CYCLES[0], server, 2, Options(0.5))
    assert found.server_cpu_s > 0
    assert found.postgres_cpu_s > 0


def test_figures_for_programs(metastore: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--uri", metastore(), "--only", "write", "--connections", "1,2", "--seconds", "0.2", "--json"]
    assert rpc.main(arguments) == 0
    records = json.loads(capsys.readouterr().out)
    assert [(record["scenario"], record["connections"]) for record in records] == [
        *(("write", 1), ("write, ours", 1)),
        *(("write", 2), ("write, ours", 2)),
    ]


def test_another_metastore_is_measured_in_the_same_run(bench: Bench) -> None:
    assert bench.ours is not None
    bench.others.append(Server("other", bench.ours.uri))

    for section in sections.chosen(["insert", "heartbeat"]):
        result = section(bench)
        assert {record["server"] for record in result.records} == {"hive-acid", "other"}
        assert "÷ other" in result.listings[0].columns
        assert all(len(row) == len(result.listings[0].columns) for row in result.listings[0].rows)


def test_the_real_time_class_is_left_again() -> None:
    try:
        with real_time([os.getpid()]):
            assert os.sched_getscheduler(0) == os.SCHED_RR
    except PermissionError:
        pytest.skip("the real-time class takes root or CAP_SYS_NICE")
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_an_unknown_scenario_is_refused_by_name() -> None:
    with pytest.raises(SystemExit, match="no scenario 'wirte'"):
        sections.chosen(["wirte"])
