"""One run: a cluster, clients on threads, troubles, and at the end the judgement of what the clients saw."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hive_acid import connect
from hive_acid.wire import ttypes
from tests.isolation.clients.caller import Caller, StuckError
from tests.isolation.clients.compactor import Compactor
from tests.isolation.clients.library import LibrarySession
from tests.isolation.clients.plans import LIBRARY_KINDS, RAW_KINDS, Plan, make_plan
from tests.isolation.clients.sessions import Session
from tests.isolation.judging.checker import IsolationReport, check
from tests.isolation.judging.comparison import compare_servers
from tests.isolation.judging.deltas import Deltas, Keyspace
from tests.isolation.judging.history import Outcome, Transaction
from tests.isolation.world.chaos import Chaos, ChaosConfig
from tests.isolation.world.cluster import Cluster
from tests.waiting import comes

FINAL_READ_KEYS = 50
COMPARISONS = 0.02
"""How often, by transactions, two servers are asked for the same thing."""
PROGRESS_S = 10.0
LONGEST_CALLS = 6


@dataclass(frozen=True)
class RunConfig:
    """What is run; see ``python -m tests.isolation --help``."""

    transactions: int = 1000
    seed: int = 0
    clients: int = 12
    servers: int = 2
    tables: int = 6
    width: int = 16
    longest: int = 40
    fault_rate: float = 0.02
    library_quarters: int = 1
    """How many of four clients use the library; the others speak raw Thrift."""
    pause_rate: float = 0.0
    lingering_rate: float = 0.0
    timeout_s: float = 5.0
    patience_s: float = 60.0
    min_history: bool = False
    """Readers name the tables they read, and the Cleaner waits only for those of its table."""
    chaos: ChaosConfig = field(default_factory=ChaosConfig)
    settings: Mapping[str, str] = field(default_factory=dict)
    habits: Mapping[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class Result:
    """What came of it."""

    config: RunConfig
    report: IsolationReport
    seconds: float
    outcomes: Counter[str]
    reasons: Counter[str]
    lost_answers: int
    failed_answers: Counter[str]
    faults: list[str]
    events: list[str]
    troubles: Counter[str]
    crashes: Counter[str]
    errors: list[str]
    aborted_on_record: int
    compactions: Counter[str]
    longest_s: dict[str, float]

    @property
    def is_clean(self) -> bool:
        return self.report.is_clean and not self.errors

    def summary(self) -> str:
        """A few lines for people."""
        lines = [
            f"{sum(self.outcomes.values())} transactions in {self.seconds:.0f} s, seed {self.config.seed}: "
            + _counted(self.outcomes),
            f"  ended by: {_counted(self.reasons) or 'nothing'}",
            f"  troubles: {_counted(self.troubles) or 'none'}; answers lost {self.lost_answers}",
            f"  faults by proxy: {'; '.join(self.faults) or 'none'}",
            "  longest calls: "
            + ", ".join(
                f"{method} {seconds:.1f} s"
                for method, seconds in sorted(self.longest_s.items(), key=lambda one: -one[1])[:LONGEST_CALLS]
            ),
            f"  compactions: {_counted(self.compactions) or 'none'}",
            f"  seen and allowed: {_counted(self.report.allowed)}; aborted still on record: {self.aborted_on_record}",
        ]
        lines += [f"  answered with an error {count} times: {words}" for words, count in self.failed_answers.items()]
        lines += [f"  traceback in a server's log {count} times: {words}" for words, count in self.crashes.items()]
        return "\n".join(lines)

    def story(self) -> str:
        """What is wrong: seed, shortest stories, and what happened to the servers."""
        parts = [f"seed {self.config.seed}", *self.errors]
        if not self.report.is_clean:
            parts += [self.report.story(), "servers: " + "; ".join(self.events)]
        return "\n".join(parts)


def run(config: RunConfig, work: Path, progress: Callable[[str], None] = lambda words: None) -> Result:
    """Carry out a run below the directory `work`."""
    # Housekeeping as often and in as small steps as can be: in a run of minutes it has to go on round every snapshot.
    settings = {
        "hive.txn.timeout": f"{round(config.timeout_s * 1000)}ms",
        "metastore.acid.housekeeper.interval": f"{round(config.timeout_s * 100)}ms",
        "metastore.acid.txn.cleaner.interval": "500ms",
        "metastore.txn.purge.batch": "50",
        "metastore.housekeeping.lease.time": "3s",
        "metastore.compactor.initiator.on": "false",
        "hive.compactor.cleaner.run.interval": "5000ms",
        "hive.compactor.aborted.txn.time.threshold": "10s",
        "metastore.txn.finished.retention": "30s",
        "metastore.compactor.worker.threads": "0",
        **config.settings,
    }
    with Cluster(
        work, servers=config.servers, settings=settings, seed=config.seed, fault_rate=config.fault_rate
    ) as cluster:
        return _Run(config, cluster).carry_out(progress)


class _Run:
    def __init__(self, config: RunConfig, cluster: Cluster) -> None:
        self._config = config
        self._cluster = cluster
        self._started = time.monotonic()
        self._deltas = Deltas(cluster.warehouse)
        self._keyspace = Keyspace(config.tables, config.width, config.longest, 2 * config.transactions)
        self._histories: list[list[Transaction]] = []
        self._sessions: list[Session | LibrarySession] = []
        self._errors: list[str] = []
        self._left = config.transactions
        self._guard = threading.Lock()
        self._stopped = threading.Event()

    def _clock(self) -> float:
        return time.monotonic() - self._started

    def carry_out(self, progress: Callable[[str], None]) -> Result:
        config = self._config
        host, port = self._cluster.addresses(by_proxy=False)[0]
        with connect(f"thrift://{host}:{port}") as connection:
            self._keyspace.create(connection)
        chaos = Chaos(self._cluster, config.chaos, config.seed, self._clock)
        threads = [
            threading.Thread(target=self._client, args=(number,), name=f"c{number}", daemon=True)
            for number in range(config.clients)
        ]
        self._histories = [[] for _ in threads]
        chaos.start()
        compactor = Compactor(
            Caller(self._cluster.addresses(by_proxy=False), random.Random(config.seed), config.patience_s),
            self._deltas,
            self._keyspace,
            config.seed,
        )
        compactor.start()
        for thread in threads:
            thread.start()
        while running := [thread for thread in threads if thread.is_alive()]:
            running[0].join(PROGRESS_S)
            if running[0].is_alive():
                progress(f"{self._clock():6.0f} s, {max(0, self._left)} transactions to go; {_counted(chaos.counts)}")
        chaos.stop()
        compactor.stop()
        seconds = self._clock()
        self._final_reads()
        aborted = self._check_that_all_ends()
        history = [transaction for one in self._histories for transaction in one]
        progress(f"judging {len(history)} transactions")
        report = check(history)
        self._cluster.stop()
        failed: Counter[str] = Counter()
        longest_s: dict[str, float] = {}
        for session in self._sessions:
            failed.update(session.caller.failed)
            for method, seconds_taken in session.caller.longest_s.items():
                longest_s[method] = max(longest_s.get(method, 0.0), seconds_taken)
        return Result(
            config=config,
            report=report,
            seconds=seconds,
            outcomes=Counter(transaction.outcome.value for transaction in history),
            reasons=Counter(_reason(transaction) for transaction in history if transaction.outcome is Outcome.ABORTED),
            lost_answers=sum(session.caller.lost for session in self._sessions),
            failed_answers=failed,
            faults=self._cluster.faults,
            events=chaos.events,
            troubles=chaos.counts,
            crashes=Counter(self._cluster.crashes()),
            errors=self._errors,
            aborted_on_record=aborted,
            compactions=compactor.counts,
            longest_s=longest_s,
        )

    def _session(self, name: str, by_proxy: bool) -> Session:
        chance = random.Random(f"{self._config.seed}/{name}")
        caller = Caller(
            self._cluster.addresses(by_proxy), chance, self._config.patience_s, lambda words: session.note(words)
        )
        session = Session(
            name,
            caller,
            self._deltas,
            self._keyspace,
            self._clock,
            names_tables=self._config.min_history,
            **self._config.habits,
        )
        self._sessions.append(session)
        return session

    def _library_session(self, name: str, by_proxy: bool) -> LibrarySession:
        chance = random.Random(f"{self._config.seed}/{name}")
        host, port = chance.choice(self._cluster.addresses(by_proxy))
        settler = Caller(self._cluster.addresses(by_proxy=False), chance, self._config.patience_s)
        session = LibrarySession(
            name,
            f"thrift://{host}:{port}",
            settler,
            self._deltas,
            self._keyspace,
            self._clock,
            looks=not self._config.habits.get("looks_at_no_rows"),
        )
        self._sessions.append(session)
        return session

    def _client(self, number: int) -> None:
        """Odd clients connect by proxy; every fourth one uses the library."""
        config = self._config
        uses_library = number % 4 >= 4 - config.library_quarters
        with self._guard:
            session = (self._library_session if uses_library else self._session)(f"c{number}", bool(number % 2))
        chance = random.Random(f"{config.seed} plans of {number}")
        kinds = LIBRARY_KINDS if uses_library else RAW_KINDS
        while not self._stopped.is_set():
            with self._guard:
                self._left -= 1
                if self._left < 0:
                    break
            plan = make_plan(
                chance,
                self._keyspace,
                kinds,
                pause_s=config.timeout_s * 1.2,
                pause_rate=config.pause_rate,
                lingering_rate=config.lingering_rate,
            )
            if not self._attempt(session, plan, self._histories[number]):
                break
            if chance.random() < COMPARISONS:
                self._compare(session, chance)
        session.close()

    def _compare(self, session: Session | LibrarySession, chance: random.Random) -> None:
        """Ask two servers, or one twice, for the write ids of some table."""
        other = Caller(self._cluster.addresses(by_proxy=False), chance, self._config.patience_s)
        table = self._keyspace.choose(chance, 1)[0].table
        try:
            wrong = compare_servers(session.caller, other, table)
        except StuckError as error:
            wrong = f"{session.name}: {error}"
        other.close()
        if wrong is not None:
            self._fail(wrong)

    def _attempt(self, session: Session | LibrarySession, plan: Plan, history: list[Transaction]) -> bool:
        try:
            history += session.run(plan)
        except StuckError as error:
            self._fail(f"{session.name}: {error}")
        except Exception as error:
            self._fail(f"{session.name}: {type(error).__name__}: {error}")
            raise
        else:
            return True
        return False

    def _fail(self, words: str) -> None:
        self._errors.append(words)
        self._stopped.set()

    def _final_reads(self) -> None:
        """Read every list once more, when nothing else goes on."""
        session = self._session("last", by_proxy=False)
        keys = sorted(self._keyspace.used)
        self._histories.append([])
        for first in range(0, len(keys), FINAL_READ_KEYS):
            plan = Plan("reader", tuple(keys[first : first + FINAL_READ_KEYS]), ())
            if not self._attempt(session, plan, self._histories[-1]):
                break

    def _check_that_all_ends(self) -> int:
        """What lost calls have opened is gone after the time-out, and no lock is left; how many are aborted."""
        caller = self._sessions[-1].caller

        def left() -> str:
            snapshot = caller.call("get_open_txns")
            locks = caller.call("show_locks", ttypes.ShowLocksRequest()).locks
            is_empty = not snapshot.min_open_txn and not locks
            return "" if is_empty else f"transaction {snapshot.min_open_txn}, {len(locks or ())} locks"

        if not comes(lambda: not left(), self._config.timeout_s * 2 + 10):
            self._fail(f"still there long after the time-out: {left()}")
        return len(caller.call("get_open_txns").open_txns or ())


def _reason(transaction: Transaction) -> str:
    """Why it did not commit, in a word or two."""
    last = [call.partition(" ")[2] for call in transaction.calls]
    for sign, reason in (
        ("write conflict", "write conflict"),
        ("already aborted", "time-out"),
        ("No such transaction", "time-out, and forgotten"),
        ("given-up(planned", "plan"),
        ("given-up(lock", "lock not free in time"),
        ("given-up", "no answer"),
    ):
        if any(sign in call for call in last[-4:]):
            return reason
    return "conflict with a later one" if last[-1].startswith("abort_txn") else last[-1]


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())
