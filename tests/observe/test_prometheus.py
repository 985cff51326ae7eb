"""Figures over HTTP in Prometheus' form, from a running server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from hive_acid.wire import ttypes
from metastore import __version__ as metastore_version
from metastore.app import StartError
from metastore.observe.calls import BUCKETS_MS, CallCounts, Outcome
from metastore.observe.gauges import Figure, Gauges, labels
from metastore.observe.http import MetricsServer
from metastore.observe.meanings import MEANINGS
from metastore.observe.meters import Meters
from metastore.store.database import Database
from tests.caller import Caller, refused
from tests.ports import free_port
from tests.waiting import until

from .scrape import Series, get, parsed

QUICK = {"metastore.acidmetrics.check.interval": "200ms", "metastore.metrics.host": "127.0.0.1"}


def text(*collectors: Collector) -> str:
    """What a scrape of them is answered with."""
    registry = CollectorRegistry()
    for collector in collectors:
        registry.register(collector)
    return generate_latest(registry).decode()


def test_the_text_form() -> None:
    gauges = Gauges()
    gauges.replace({"num_locks": -2}, [Figure("num_locks", 1.5, labels(pool='a "quoted"\nback\\slash', kind="x"))])
    told = Counter("hive_a", "Of a.", registry=None)
    told.inc(3)
    summary = Summary("hive_c_seconds", "Of c.", registry=None)
    summary.observe(0.25)
    summary.observe(0)
    said = text(told, gauges, summary)
    assert said == (
        "# HELP hive_a_total Of a.\n# TYPE hive_a_total counter\nhive_a_total 3.0\n"
        f"# HELP hive_num_locks {MEANINGS['num_locks']}\n# TYPE hive_num_locks gauge\n"
        'hive_num_locks -2.0\nhive_num_locks{kind="x",pool="a \\"quoted\\"\\nback\\\\slash"} 1.5\n'
        "# HELP hive_c_seconds Of c.\n# TYPE hive_c_seconds summary\n"
        "hive_c_seconds_count 2.0\nhive_c_seconds_sum 0.25\n"
    )
    assert len(parsed(said)) == 5


def test_lengths_of_calls_are_a_histogram() -> None:
    counts = CallCounts()
    for duration_ms in (0.5, 1.0, 7.0, 60_000.0):
        counts.add("lock", Outcome.FINE, duration_ms)
    counts.add("lock", Outcome.REFUSED, 2.0)
    values = parsed(text(counts))
    fine = {
        dict(key)["le"]: value
        for (name, key), value in values.items()
        if name.endswith("_bucket") and dict(key)["outcome"] == "fine"
    }
    assert list(fine) == [*(str(bound / 1000) for bound in BUCKETS_MS), "+Inf"]
    assert (fine["0.001"], fine["0.0025"], fine["0.01"], fine["30.0"], fine["+Inf"]) == (2, 2, 3, 3, 4)
    assert values["hive_api_duration_seconds_sum", labels(method="lock", outcome="fine")] == pytest.approx(60.0085)
    assert values["hive_api_duration_seconds_count", labels(method="lock", outcome="refused")] == 1
    assert (counts.total(Outcome.FINE), counts.by_method()) == (4, {"lock": 5})


def test_cycles_are_measured() -> None:
    meters = Meters()
    cycle = meters.services.of("s")
    of = labels(service="s")
    assert parsed(text(meters.registry))["hive_service_cycle_seconds_count", of] == 0
    with cycle.run():
        until(lambda: cycle.age_s() > 0.02)
        assert parsed(text(meters.registry))["hive_service_cycle_age_in_sec", of] > 0.01
    with pytest.raises(KeyError), meters.services.of("s").run():
        raise KeyError
    values = parsed(text(meters.registry))
    assert (values["hive_service_cycle_seconds_count", of], values["hive_service_cycle_failures_total", of]) == (2, 1)
    assert values["hive_service_cycle_seconds_sum", of] >= 0.02


def test_another_programs_directory_for_figures_is_left_alone(tmp_path: Path) -> None:
    code = "from metastore.observe.meters import Meters; Meters().committed.inc()"
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "gone")}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def test_gauges_are_replaced_as_a_whole() -> None:
    gauges = Gauges()
    gauges.replace({"a": 1}, [Figure("b", 2, labels(pool="p"))])
    gauges.replace({"c": 3})
    assert (gauges.figures(), gauges.snapshot()) == ([Figure("c", 3)], {"c": 3})


@pytest.fixture
def port(metastore: Callable[..., str]) -> tuple[int, str]:
    number = free_port()
    return number, metastore(**QUICK, **{"metastore.metrics.port": str(number)})


def measured(port: int, condition: Callable[[dict[Series, float]], bool]) -> dict[Series, float]:
    """The figures, once they are as wanted."""

    def look() -> dict[Series, float] | None:
        values = parsed(get(port, "/metrics")[2])
        return values if condition(values) else None

    found = until(look, told=lambda: get(port, "/metrics")[2])
    assert found is not None
    return found


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
        values = measured(
            number, lambda v: v.get(("hive_compaction_num_initiated", ())) == 2 and ("hive_leader", ()) in v
        )
        status, kind, _ = get(number, "/metrics")
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert values["hive_open_connections", ()] == 1
    assert values["hive_leader", ()] == 1
    assert values["hive_total_num_committed_transactions_total", ()] == 1
    assert values["hive_total_num_aborted_transactions_total", ()] == 1
    assert values["hive_total_num_timed_out_transactions_total", ()] == 0
    assert values["hive_num_open_transactions", ()] == 1
    assert values["hive_compaction_pools_initiated_item_count", labels(pool="idle")] == 2
    assert values["hive_compaction_num_active_deltas", (("partition", "p=1"), ("table", "d.t"))] == 250
    assert values["hive_api_duration_seconds_count", labels(method="commit_txn", outcome="refused")] == 1
    assert values["hive_service_cycle_seconds_count", labels(service="AcidMetrics")] >= 1
    assert values["hive_compaction_worker_cycle_seconds_count", labels(type="major")] == 0
    for kind in ("minor", "major", "rebalance", "abort_txn_cleanup"):
        assert values["hive_compaction_cleaner_cycle_seconds_count", labels(type=kind)] == 0
    assert values["hive_compaction_initiator_failure_counter_total", ()] == 0
    for path in ("/livez", "/readyz", "/healthz"):
        assert get(number, path) == (200, "text/plain; charset=utf-8", "ok\n")
    assert values["hive_ready", ()] == 1
    assert values["hive_build_info", labels(version=metastore_version)] == 1
    assert values["process_resident_memory_bytes", ()] > 1e6
    assert not [name for name, _ in values if name.endswith("_created") or name.startswith("hive_rows_")]
    request = urllib.request.Request(
        f"http://127.0.0.1:{number}/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))  # more strict than the text
    assert {sample.name for family in families for sample in family.samples} == {name for name, _ in values}
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
    registry = CollectorRegistry()
    Gauge("x", "One.", registry=registry).set(1)
    server = MetricsServer(socket.create_server(("127.0.0.1", 0)), registry, lambda: True, lambda: "not yet")
    try:
        number = int(server.address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", number)) as silent:
            silent.send(b"GET /met")
            assert get(number, "/metrics")[2] == "# HELP x One.\n# TYPE x gauge\nx 1.0\n"
        assert get(number, "/healthz") == (503, "text/plain; charset=utf-8", "not yet\n")
        assert get(number, "/readyz")[0] == 503
        assert get(number, "/livez")[0] == 200
    finally:
        server.close()
