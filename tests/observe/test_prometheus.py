"""Figures over HTTP in Prometheus' form, from a running server."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.app import StartError
from metastore.observe.calls import BUCKETS_MS, CallCounts, Outcome
from metastore.observe.gauges import Gauges
from metastore.observe.http import MetricsServer
from metastore.observe.meters import Meters
from metastore.observe.prometheus import exposition
from metastore.observe.samples import Kind, Sample, labels
from metastore.store.database import Database
from tests.caller import Caller, refused
from tests.ports import free_port

from .scrape import get, parsed

QUICK = {"metastore.acidmetrics.check.interval": "200ms", "metastore.metrics.host": "127.0.0.1"}


def test_the_text_form() -> None:
    samples = [
        Sample("b", 1.5, labels(pool='a "quoted"\nback\\slash', kind="x")),
        Sample("a_total", 3, (), Kind.COUNTER),
        Sample("b", -2),
        Sample("c_seconds", 0.25, (), Kind.SUMMARY, "_sum"),
        Sample("c_seconds", 2, (), Kind.SUMMARY, "_count"),
    ]
    text = exposition(samples)
    assert text == (
        "# TYPE hive_a_total counter\nhive_a_total 3\n"
        '# TYPE hive_b gauge\nhive_b{kind="x",pool="a \\"quoted\\"\\nback\\\\slash"} 1.5\nhive_b -2\n'
        "# TYPE hive_c_seconds summary\nhive_c_seconds_sum 0.25\nhive_c_seconds_count 2\n"
    )
    assert len(parsed(text)) == 5


def test_lengths_of_calls_are_a_histogram() -> None:
    counts = CallCounts()
    for duration_ms in (0.5, 1.0, 7.0, 60_000.0):
        counts.add("lock", Outcome.FINE, duration_ms)
    counts.add("lock", Outcome.REFUSED, 2.0)
    values = parsed(exposition(counts.samples()))
    fine = {
        dict(key)["le"]: value
        for (name, key), value in values.items()
        if name.endswith("_bucket") and dict(key)["outcome"] == "fine"
    }
    assert list(fine) == [*(f"{bound / 1000:g}" for bound in BUCKETS_MS), "+Inf"]
    assert (fine["0.001"], fine["0.0025"], fine["0.01"], fine["30"], fine["+Inf"]) == (2, 2, 3, 3, 4)
    assert values["hive_api_duration_seconds_sum", labels(method="lock", outcome="fine")] == pytest.approx(60.0085)
    assert values["hive_api_duration_seconds_count", labels(method="lock", outcome="refused")] == 1


def test_cycles_are_measured() -> None:
    meters = Meters()
    meters.expect("cycle")
    assert parsed(exposition(meters.samples()))["hive_cycle_seconds_count", ()] == 0
    with meters.cycle("cycle"):
        time.sleep(0.02)
        assert meters.age_s("cycle") > 0.01
    with pytest.raises(KeyError), meters.cycle("cycle"):
        raise KeyError
    values = parsed(exposition(meters.samples()))
    assert (values["hive_cycle_seconds_count", ()], values["hive_cycle_failures_total", ()]) == (2, 1)
    assert values["hive_cycle_seconds_sum", ()] >= 0.02


def test_gauges_are_replaced_as_a_whole() -> None:
    gauges = Gauges()
    gauges.replace({"a": 1}, [Sample("b", 2, labels(pool="p"))])
    gauges.replace({"c": 3})
    assert (gauges.samples(), gauges.snapshot()) == ([Sample("c", 3)], {"c": 3})


@pytest.fixture
def port(metastore: Callable[..., str]) -> tuple[int, str]:
    number = free_port()
    return number, metastore(**QUICK, **{"metastore.metrics.port": str(number)})


def until(port: int, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    deadline = time.monotonic() + 10
    while not condition(values := parsed(get(port, "/metrics")[2])):  # type: ignore[arg-type]
        assert time.monotonic() < deadline, values
        time.sleep(0.1)
    return values  # type: ignore[return-value]


def test_a_running_server(port: tuple[int, str], db: Database) -> None:
    number, uri = port
    with Caller(uri) as ann:
        txn_ids = ann.open(3)
        ann.commit(txn_ids[0])
        ann.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=txn_ids[1:2]))
        with refused("NoSuchTxnException"):
            ann.commit(99)
        db.call("update_compaction_metric", "d", "t", "p=1", 1, 250)
        for pool in (None, "etl"):
            table = f"t_{pool}"
            request = ttypes.CompactionRequest(dbname="d", tablename=table, type=2, poolName="idle", properties={})
            ann.call("compact2", request)
        values = until(number, lambda v: v.get(("hive_compaction_num_initiated", ())) == 2 and ("hive_leader", ()) in v)  # type: ignore[call-overload, comparison-overlap]
        status, kind, _ = get(number, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert values["hive_open_connections", ()] == 1  # type: ignore[index]
    assert values["hive_leader", ()] == 1  # type: ignore[index]
    assert values["hive_total_num_committed_transactions", ()] == 1  # type: ignore[index]
    assert values["hive_total_num_aborted_transactions", ()] == 1  # type: ignore[index]
    assert values["hive_total_num_timed_out_transactions", ()] == 0  # type: ignore[index]
    assert values["hive_num_open_transactions", ()] == 1  # type: ignore[index]
    assert values["hive_compaction_pools_initiated_item_count", labels(pool="idle")] == 2  # type: ignore[index]
    assert values["hive_compaction_num_active_deltas", (("partition", "p=1"), ("table", "d.t"))] == 250  # type: ignore[index]
    assert values["hive_api_duration_seconds_count", labels(method="commit_txn", outcome="refused")] == 1  # type: ignore[index]
    assert values["hive_service_cycle_seconds_count", labels(service="AcidMetrics")] >= 1  # type: ignore[index]
    assert values["hive_compaction_worker_cycle_seconds_count", labels(type="major")] == 0  # type: ignore[index]
    for kind in ("minor", "major", "rebalance", "abort_txn_cleanup"):
        assert values["hive_compaction_cleaner_cycle_seconds_count", labels(type=kind)] == 0  # type: ignore[index]
    assert values["hive_compaction_initiator_failure_counter", ()] == 0  # type: ignore[index]
    for path in ("/livez", "/readyz", "/healthz"):
        assert get(number, path) == (200, "text/plain; charset=utf-8", "ok\n")
    assert values["hive_ready", ()] == 1  # type: ignore[index]
    assert get(number, "/")[0] == 404


def test_scrapes_ask_the_database_nothing(metastore: Callable[..., str]) -> None:
    number = free_port()
    settings = {"metastore.metrics.port": str(number), "metastore.housekeeping.threads.on": "false"}
    with Caller(metastore(**settings)):
        before = parsed(get(number, "/metrics")[2])["hive_database_trips_total", ()]
        for _ in range(5):
            values = parsed(get(number, "/metrics")[2])
        assert values["hive_database_trips_total", ()] == before
        # It leads nothing, so has no figures of the present state.
        assert values["hive_leader", ()] == 0
        assert ("hive_num_open_transactions", ()) not in values


def test_a_port_that_is_taken_is_one_sentence(metastore: Callable[..., str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(
            StartError, match=r"cannot listen on 127\.0\.0\.1:\d+ for metrics: .*metastore\.metrics\.port"
        ):
            metastore(**{"metastore.metrics.port": str(taken.getsockname()[1])})


def test_nobody_can_keep_the_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.observe.http.REQUEST_TIMEOUT_S", 0.2)
    server = MetricsServer("127.0.0.1", 0, lambda: "x 1\n", lambda: True, lambda: "not yet")
    try:
        number = int(server.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", number)) as silent:
            silent.send(b"GET /met")
            assert get(number, "/metrics")[2] == "x 1\n"
        assert get(number, "/healthz") == (503, "text/plain; charset=utf-8", "not yet\n")
        assert get(number, "/readyz")[0] == 503
        assert get(number, "/livez")[0] == 200
    finally:
        server.close()
