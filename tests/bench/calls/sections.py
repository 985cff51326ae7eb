"""The sections of the report: what each measures, and its table."""

from __future__ import annotations

import contextlib
import functools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hive_acid.operators.show import Listing
from tests.bench.calls import floor, growth, handover, hostile, report, single
from tests.bench.calls.cycles import CYCLES, OUR_CYCLES, create_tables, prepare
from tests.bench.calls.driver import Scenario, ask, connect
from tests.bench.calls.measure import Measurement, Options, measure, median
from tests.bench.calls.servers import Machine, Server
from tests.bench.machine import memory_mb, real_time

SNAPSHOT_CONNECTIONS = (1, 8)
GROWN_CONNECTIONS = 8
STARTS = 3
OTHERS_WARM_UP_S = 15.0
Group = Callable[[str, int], contextlib.AbstractContextManager[Scenario]]


@dataclass(frozen=True)
class Sizes:
    """How large the large things are."""

    aborted: tuple[int, ...] = (0, 10_000, 100_000)
    idle_connections: int = 10_000
    finished: int = 200_000
    open: int = 50_000
    lock_tables: int = 100
    crowd: int = 20_000
    hostile_s: float = 10.0
    grown_rounds: int = 3


@dataclass
class Bench:
    """What to measure, and how. Without a `machine`, `ours` is a server that runs already."""

    machine: Machine | None
    others: list[Server]
    connections: list[int]
    options: Options
    ours: Server | None = None
    sizes: Sizes = Sizes()

    @contextlib.contextmanager
    def server(self) -> Iterator[Server]:
        """Our metastore: one on a fresh database, or the one that was given."""
        if self.ours is not None:
            yield self.ours
            return
        assert self.machine is not None
        with self.machine.server() as server:
            yield server


@dataclass
class Result:
    """Tables for people, records for programs."""

    listings: list[Listing] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)


Section = Callable[[Bench], Result]


def warm_up(server: Server, options: Options) -> None:
    """Let a metastore that compiles while it runs come to its speed (10 to 25 s of load)."""
    prepare(server.uri)
    for cycle in CYCLES:
        measure(cycle, server, GROWN_CONNECTIONS, replace(options, seconds=OTHERS_WARM_UP_S / len(CYCLES)))


def cycles(names: Sequence[str], bench: Bench) -> Result:
    """Cycles per second beside another metastore's and beside the floor."""
    rows, calls, records = [], [], []
    with bench.server() as ours:
        servers = [ours, *bench.others]
        for server in servers:
            prepare(server.uri)
        for cycle in (cycle for cycle in CYCLES if cycle.name in names):
            for connections in bench.connections:
                found: dict[str, list[Measurement]] = {server.name: [] for server in servers}
                begun: list[Measurement] = []
                floors: list[float] = []
                for _ in range(bench.options.rounds):
                    for server in servers:
                        found[server.name].append(measure(cycle, server, connections, bench.options))
                    begun.append(measure(OUR_CYCLES[cycle.name], ours, connections, bench.options))
                    if bench.machine is not None and cycle.name in floor.CYCLES:
                        floors.append(_floor(bench.machine, cycle.name, connections, bench.options))
                best = [*(median(several) for several in found.values()), median(begun)]
                records += [one.as_json() for one in best]
                bare = statistics.median(floors) if floors else 0.0
                if bare:
                    records.append(_record(cycle.name, "postgres", connections, bare))
                rows += [report.cycle_row(one, best[1:-1], bare) for one in (best[0], best[-1])]
                calls += [report.call_row(one) for one in best]
    rates = (*report.compared_columns(bench.others), "floor", "÷ floor")
    columns = ("cycle", "conn", *rates, "conflicts/s", *report.ENDS, *report.CPU_COLUMNS)
    listings = [
        Listing("Cycles", columns, tuple(rows)),
        Listing("Calls of the cycles, p50 / p99 ms", ("cycle", "conn", "server", *report.CALLS.values()), tuple(calls)),
    ]
    return Result(listings, records)


def single_calls(names: Sequence[str], bench: Bench) -> Result:
    """One call again and again."""
    rows, records = [], []
    with bench.server() as ours:
        for name in names:
            for connections in bench.connections:
                found: dict[str, list[Measurement]] = {}
                for _ in range(bench.options.rounds):
                    for server in (ours, *bench.others):
                        with single.SINGLE_CALLS[name](server.uri, connections) as scenario:
                            one = measure(scenario, server, connections, bench.options)
                        found.setdefault(server.name, []).append(one)
                best = [median(several) for several in found.values()]
                records += [one.as_json() for one in best]
                rows.append(
                    (name, str(connections), *report.compared(best), report.latency(best[0]), *report.ends(best[0]))
                )
    columns = ("call", "conn", *report.compared_columns(bench.others), *report.LATENCY, *report.ENDS)
    return Result([Listing("Single calls", columns, tuple(rows))], records)


def snapshots(bench: Bench) -> Result:
    """get_valid_write_ids of a table with many aborted write ids."""
    rows, records = [], []
    with bench.server() as ours:
        for aborted in bench.sizes.aborted:
            table = f"aborted{aborted}"
            for server in (ours, *bench.others):
                single.abort_many(server.uri, table, aborted)
            for by_client in (False, True):
                for connections in SNAPSHOT_CONNECTIONS:
                    best = []
                    for server in (ours, *bench.others):
                        scenario = single.snapshots(server.uri, table, by_client)
                        best.append(measure(scenario, server, connections, bench.options))
                    records += [{**one.as_json(), "aborted": aborted, "by_client": by_client} for one in best]
                    finder = "client" if by_client else "server"
                    rows.append(
                        (
                            f"{aborted:,}",
                            finder,
                            str(connections),
                            *report.compared(best),
                            report.latency(best[0]),
                            *report.ends(best[0]),
                        )
                    )
    columns = ("aborted ids", "list by", "conn", *report.compared_columns(bench.others), *report.LATENCY, *report.ENDS)
    return Result([Listing("Snapshots", columns, tuple(rows))], records)


def hand_overs(bench: Bench) -> Result:
    """From an unlock to the answer of the next waiter."""
    rows, records, tables = [], [], bench.sizes.lock_tables
    options = replace(bench.options, warm_up_s=4 * bench.options.warm_up_s)  # until all wait in their queues
    with bench.server() as ours:
        for server in (ours, *bench.others):
            connections = tables * (1 + handover.WAITERS_PER_TABLE)
            found = measure(handover.hand_over(tables), server, connections, options)
            figures, name = found.figures, handover.HAND_OVER.name
            records.append(found.as_json())
            times = (f"{figures.percentile_ms(name, percent):.1f}" for percent in (50, 99, 100))
            rows.append((server.name, f"{len(figures.latencies_s[name]):,}", *times, *report.ends(found)))
    waiters = tables * handover.WAITERS_PER_TABLE
    title = f"Lock hand-over (unlock to the waiter's answer), {waiters:,} waiters on {tables} tables"
    columns = ("server", "hand-overs", "p50 ms", "p99 ms", "max ms", *report.ENDS)
    return Result([Listing(title, columns, tuple(rows))], records)


def idle(bench: Bench) -> Result:
    """Many connections that have called once and are silent since."""
    with bench.server() as ours, contextlib.ExitStack() as stack:
        before_mb = memory_mb(ours.process) if ours.process else 0.0
        socks = [
            stack.enter_context(contextlib.closing(connect(ours.uri))) for _ in range(bench.sizes.idle_connections)
        ]
        after_mb = memory_mb(ours.process) if ours.process else 0.0
        answers = [
            _milliseconds(functools.partial(ask, sock, "get_open_txns"))
            for sock in random.sample(socks, min(200, len(socks)))
        ]
        fresh = [_milliseconds(lambda: connect(ours.uri).close()) for _ in range(200)]
        busy = measure(CYCLES[0], ours, GROWN_CONNECTIONS, bench.options)
    figures = {
        "memory before, MB": before_mb,
        "memory with them, MB": after_mb,
        "a call on one of them, p50 ms": statistics.median(answers),
        "a call on one of them, p99 ms": statistics.quantiles(answers, n=100)[98],
        "connect and first answer, p50 ms": statistics.median(fresh),
        f"write cycles/s on {GROWN_CONNECTIONS} others": busy.figures.per_second,
    }
    rows = tuple((name, f"{value:,.1f}") for name, value in figures.items())
    return Result(
        [Listing(f"{bench.sizes.idle_connections:,} idle connections", ("what", "figure"), rows)],
        [{"scenario": "idle", **figures}],
    )


def grown(bench: Bench) -> Result:
    """Write and read cycles on a metastore with a past, beside one without, measured in turns."""
    rows, records = [], []
    pasts: tuple[tuple[str, Callable[[str], contextlib.AbstractContextManager[object]]], ...] = (
        (f"{bench.sizes.finished:,} finished", lambda uri: growth.finished(uri, bench.sizes.finished)),
        (f"{bench.sizes.open:,} open", lambda uri: single.open_many(uri, bench.sizes.open)),
    )
    for past, make in pasts:
        with bench.server() as clean, bench.server() as old:
            for server in (clean, old):
                prepare(server.uri)
            with make(old.uri):
                for cycle in (CYCLES[0], CYCLES[2]):
                    pairs = [
                        [measure(cycle, server, GROWN_CONNECTIONS, bench.options) for server in (clean, old)]
                        for _ in range(max(bench.sizes.grown_rounds, bench.options.rounds))
                    ]
                    fresh, aged = (median([pair[n] for pair in pairs]) for n in (0, 1))
                    records.append({**aged.as_json(), "past": past, "clean_per_second": fresh.figures.per_second})
                    rate = (f"{one.figures.per_second:,.0f}" for one in (fresh, aged))
                    ratio = aged.figures.per_second / fresh.figures.per_second
                    rows.append((past, cycle.name, *rate, f"{ratio:.2f}", report.latency(aged), *report.ends(aged)))
    columns = ("transactions in place", "cycle", "clean/s", "with them/s", "ratio", *report.LATENCY, *report.ENDS)
    title = f"Growth, {GROWN_CONNECTIONS} connections"
    return Result([Listing(title, columns, tuple(rows))], records)


def hostilities(bench: Bench) -> Result:
    """What others notice of a client that wishes the server ill."""
    sizes = bench.sizes
    seconds = max(bench.options.seconds, sizes.hostile_s)
    rows, records = [], []
    with bench.server() as ours:
        hostile.prepare(ours.uri)
        for name, attack in hostile.attacks(sizes.crowd).items():
            has_crowd = name.startswith(f"{sizes.crowd:,} ")  # which takes some seconds to gather
            found = hostile.found(ours, name, attack, seconds + (sizes.crowd / 1000 if has_crowd else 0))
            times = (f"{one:,.1f}" for one in (found.p50_ms, found.p99_ms, found.worst_ms))
            memory = (f"{one:,.0f}" for one in (found.memory_mb, found.peak_mb))
            rows.append((name, f"{found.calls:,}", *times, *memory, str(found.errors)))
            records.append({"scenario": f"hostile: {name}", "failures": found.errors, **asdict(found)})
    columns = ("one client", "calls of another", "p50 ms", "p99 ms", "worst ms", "MB before", "MB at most", "failed")
    listings = [Listing("Hostile clients", columns, tuple(rows))]
    if bench.machine is not None:
        with bench.machine.scraped() as address:
            scrapes = hostile.scrapes(address, sizes.crowd // 10, seconds)
        figures = statistics.median(scrapes), max(scrapes)
        records.append({"scenario": "hostile: HTTP", "p50_ms": figures[0], "worst_ms": figures[1]})
        told = (f"{sizes.crowd // 10:,} requests, a byte at a time", *(f"{one:,.1f}" for one in figures))
        listings.append(Listing("The HTTP port", ("others", "/readyz p50 ms", "worst ms"), (told,)))
    return Result(listings, records)


def doors(bench: Bench) -> Result:
    """Cycles at metastores that are guarded, beside one that is not, in turns."""
    if bench.machine is None:
        return Result()
    rows, records = [], []
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(bench.machine.server(name, settings))
            for name, settings in bench.machine.guarded().items()
        ]
        for server in servers:
            create_tables(server.uri)
            prepare(server.uri)
        for cycle in (CYCLES[0], CYCLES[2]):
            for connections in bench.connections:
                found: dict[str, list[Measurement]] = {server.name: [] for server in servers}
                for _ in range(bench.options.rounds):
                    for server in servers:
                        found[server.name].append(measure(cycle, server, connections, bench.options))
                best = [median(several) for several in found.values()]
                records += [one.as_json() for one in best]
                rows += [report.guarded_row(one, best[0]) for one in best]
    columns = ("cycle", "conn", "guarded by", "cycles/s", "÷ open", *report.ENDS, *report.CPU_COLUMNS)
    return Result([Listing("Guarded ports", columns, tuple(rows))], records)


def starts(bench: Bench) -> Result:
    """From the command to the first answered call, on an existing database."""
    if bench.machine is None:
        return Result()
    url = bench.machine.fresh_database()
    first = bench.machine.start_seconds(url)
    again = statistics.median(bench.machine.start_seconds(url) for _ in range(STARTS))
    rows = (("empty database", f"{first:.2f}"), ("existing database", f"{again:.2f}"))
    record = {"scenario": "start", "empty_s": first, "existing_s": again}
    return Result([Listing("Start to first answered call", ("on", "seconds"), rows)], [record])


def chosen(names: Sequence[str]) -> list[Section]:
    """The sections for some names; all without names. Raises SystemExit for an unknown one."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise SystemExit(f"no scenario {unknown[0]!r}: choose of {', '.join(NAMES)}")
    wanted = list(names) or list(NAMES)
    sections: list[Section] = []
    # The call that finds nobody open comes before those that leave aborted transactions behind.
    for section, group in ((single_calls, tuple(single.SINGLE_CALLS)), (cycles, _CYCLE_NAMES)):
        some = [name for name in group if name in wanted]
        if some:
            sections.append(functools.partial(section, some))
    return sections + [section for name, section in _OTHERS.items() if name in wanted]


_CYCLE_NAMES = tuple(cycle.name for cycle in CYCLES)
_OTHERS: dict[str, Section] = {
    "snapshot": snapshots,
    "hand-over": hand_overs,
    "idle": idle,
    "growth": grown,
    "hostile": hostilities,
    "doors": doors,
    "start": starts,
}
NAMES = (*_CYCLE_NAMES, *single.SINGLE_CALLS, *_OTHERS)


def _record(scenario: str, server: str, connections: int, per_second: float) -> dict[str, Any]:
    return {"scenario": scenario, "server": server, "connections": connections, "per_second": round(per_second, 1)}


def _floor(machine: Machine, cycle: str, connections: int, options: Options) -> float:
    with real_time([machine.postgres_process]) if options.real_time else contextlib.nullcontext():
        return floor.measure(machine.postgres_url, cycle, connections, options.seconds)


def _milliseconds(work: Callable[[], object]) -> float:
    began_at = time.perf_counter()
    work()
    return (time.perf_counter() - began_at) * 1000
