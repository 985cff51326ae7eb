"""Measurements as rows of text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.bench.calls.driver import Figures
from tests.bench.calls.measure import Measurement
from tests.bench.calls.servers import Server

CALLS = {
    "hive_acid_begin": "begin",
    "open_txns": "open",
    "allocate_table_write_ids": "allocate",
    "get_valid_write_ids": "snapshot",
    "lock": "lock",
    "heartbeat": "heartbeat",
    "commit_txn": "commit",
}
CPU_COLUMNS = ("server µs", "Postgres µs", "driver µs")
LATENCY = ("p50 / p99 ms",)
ENDS = ("failed",)


def cycle_row(ours: Measurement, others: Sequence[Measurement], bare: float) -> tuple[str, ...]:
    """A cycle beside the others', and beside the floor where it has one (else 0)."""
    figures = ours.figures
    return (
        ours.scenario,
        str(ours.connections),
        *compared([ours, *others]),
        *((f"{bare:,.0f}", f"{figures.per_second / bare:.2f}") if bare else ("-", "-")),
        f"{figures.conflicts / figures.seconds:.0f}",
        *ends(ours),
        *_cpu(ours),
    )


def guarded_row(one: Measurement, unguarded: Measurement) -> tuple[str, ...]:
    """A cycle at a guarded port beside one that is not."""
    rate, of_open = one.figures.per_second, unguarded.figures.per_second
    what = (one.scenario, str(one.connections), one.server)
    return (*what, f"{rate:,.0f}", f"{rate / of_open:.2f}" if of_open else "-", *ends(one), *_cpu(one))


def _cpu(one: Measurement) -> tuple[str, ...]:
    cpu = (one.server_cpu_s, one.postgres_cpu_s, one.figures.driver_cpu_s)
    return tuple(f"{one.cpu_us(seconds):,.0f}" if seconds else "-" for seconds in cpu)


def call_row(one: Measurement) -> tuple[str, ...]:
    """The latencies of each call of a cycle."""
    return one.scenario, str(one.connections), one.server, *(_times(one.figures, name) for name in CALLS)


def _times(figures: Figures, name: str) -> str:
    if name not in figures.latencies_s:
        return "-"
    return f"{figures.percentile_ms(name, 50):.2f} / {figures.percentile_ms(name, 99):.2f}"


def compared_columns(others: Sequence[Server]) -> tuple[str, ...]:
    """The columns of what `compared` returns."""
    return ("per s", *(column for other in others for column in (other.name, f"÷ {other.name}")))


def compared(measurements: Sequence[Measurement]) -> list[str]:
    """Ours per second, then each other's with the ratio of ours to it."""
    ours = measurements[0].figures.per_second
    cells = [f"{ours:,.0f}"]
    for other in measurements[1:]:
        rate = other.figures.per_second
        cells += [f"{rate:,.0f}", f"{ours / rate:.1f}" if rate else "-"]
    return cells


def latency(one: Measurement) -> str:
    """Of a whole round: the sum over its calls of the medians, and of the 99th percentiles."""
    figures = one.figures
    p50, p99 = (sum(figures.percentile_ms(name, percent) for name in figures.latencies_s) for percent in (50, 99))
    return f"{p50:.2f} / {p99:.2f}"


def ends(one: Measurement) -> tuple[str, ...]:
    """How many rounds have failed, with the most frequent reason."""
    failures = one.figures.failures
    if not failures:
        return ("0",)
    reason, _ = failures.most_common(1)[0]
    return (f"{sum(failures.values()):,}: {reason:.60}",)
