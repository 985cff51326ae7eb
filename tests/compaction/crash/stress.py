"""Writers, readers, compactions and the Cleaner at once, by two servers that are killed and paused at random.

What a snapshot has to see is known of each write id: the rows that it added and those that it deleted count for all
snapshots in which it is valid. Every reader is held to that, at once and again before it ends; in the end, when all is
quiet, nothing may be stuck or left behind, and one more compaction leaves a single directory.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hive_acid.connection import Connection
from hive_acid.errors import HiveAcidError
from hive_acid.filesystem import files
from hive_acid.format.names import staging_name
from hive_acid.format.rows import RowId, encode_bucket
from hive_acid.ids import TxnId
from metastore.compaction.states import CompactionState, CompactionType
from metastore.store.database import Database
from metastore.txn.states import TxnType
from tests.compaction.crash.table import CrashTable, Snapshot
from tests.waiting import until

TIMEOUT_S = 3.0
SETTINGS = {
    "hive.txn.timeout": f"{TIMEOUT_S:.0f}s",
    "metastore.housekeeping.lease.time": "1s",
    "metastore.acid.housekeeper.interval": "500ms",
    "hive.timedout.txn.reaper.start": "0s",
    "metastore.acid.txn.cleaner.interval": "500ms",
    "metastore.txn.finished.retention": "1s",
    "metastore.compaction.housekeeper.interval": "1s",
    "hive.compactor.check.interval": "300ms",
    "hive.compactor.worker.sleep.time": "100ms",
    "hive.compactor.cleaner.run.interval": "200ms",
    "hive.compactor.cleaner.retry.retention.time": "200ms",
    "hive.compactor.abortedtxn.threshold": "0",
    "metastore.compactor.worker.claim.timeout": "2s",
    "metastore.compactor.worker.max.attempts": "1000",
    "metastore.compactor.staging.max.age": "2s",
    "hive.compactor.delta.num.threshold": "4",
}
STUCK = {CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING}
QUIET_WITHIN_S = 90.0
TABLES = 3


@dataclass
class Story:
    """What each committed write id of a table did; safe to use from many threads."""

    inserted: dict[int, set[RowId]] = field(default_factory=dict)
    deleted: dict[int, set[RowId]] = field(default_factory=dict)
    undecided: set[int] = field(default_factory=set)
    """Those that are about to commit, or have done so just now."""

    def rows(self, snapshot: Snapshot) -> list[RowId]:
        """What a snapshot has to see. Aborted writes are not known here: once forgotten, they look like valid ones."""
        write_ids, _ = snapshot
        until(lambda: not any(write_ids.is_valid(write_id) for write_id in list(self.undecided)))
        gone, seen = (
            {row for write_id, rows in list(of_writes.items()) if write_ids.is_valid(write_id) for row in rows}
            for of_writes in (self.deleted, self.inserted)
        )
        return sorted(seen - gone)


class Servers:
    """Processes that are killed, paused and started again."""

    def __init__(self, url: str, warehouse: Path, scratch: Path, number: int) -> None:
        settings = [f"{key}={value}" for key, value in SETTINGS.items()]
        self._command = [
            sys.executable,
            "-m",
            "tests.compaction.crash.processes.server",
            url,
            str(warehouse),
            *settings,
        ]
        self._log = (scratch / "servers.log").open("a")
        self._processes = [self._started() for _ in range(number)]

    def harm(self, chance: random.Random) -> str:
        """Kill one and start it again, or pause it for longer than its lease; what was done."""
        number = chance.randrange(len(self._processes))
        process = self._processes[number]
        if chance.random() < 0.25:
            process.send_signal(signal.SIGSTOP)
            time.sleep(chance.uniform(0.5, 2.5))
            process.send_signal(signal.SIGCONT)
            return "pauses"
        self._end(process)
        self._processes[number] = self._started()
        return "kills"

    def close(self) -> None:
        for process in self._processes:
            self._end(process)
        self._log.close()

    def _started(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n", "see servers.log"
        return process

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


class Stress:
    """One run; `counts` says what happened."""

    def __init__(
        self, db: Database, url: str, connection: Connection, warehouse: Path, scratch: Path, seed: int
    ) -> None:
        self._db, self._seed = db, seed
        self._tables = [CrashTable(db, connection, warehouse, f"t{number}") for number in range(TABLES)]
        self._stories = [Story() for _ in range(TABLES)]
        self._servers = Servers(url, warehouse, scratch, 2)
        self._ended = threading.Event()
        self._errors: list[BaseException] = []
        self._numbers = itertools.count()
        self.counts: Counter[str] = Counter()

    def run(self, seconds: float) -> None:
        """Everything at once for so long, then quiet. Raises AssertionError, or what went wrong."""
        try:
            with self._at_work():
                self._ended.wait(seconds)
            if self._errors:
                raise self._errors[0]
            self._grow_quiet()
            for table in self._tables:
                assert table.request(CompactionType.MAJOR)
            self._grow_quiet()
            for table in self._tables:
                assert len(table.directories()) <= 1, table.directories()
        finally:
            self._servers.close()

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        work = [self._harm] + [lambda number=number: self._live(number) for number in range(TABLES) for _ in range(2)]
        threads = [threading.Thread(target=self._repeat, args=(one,), daemon=True) for one in work]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()

    def _repeat(self, prepare: Callable[[], Iterator[None]]) -> None:
        try:
            for _ in prepare():
                if self._ended.is_set():
                    return
        except BaseException as error:
            self._errors.append(error)
            self._ended.set()

    def _chance(self) -> random.Random:
        return random.Random(f"{self._seed}/{next(self._numbers)}")

    def _harm(self) -> Iterator[None]:
        chance = self._chance()
        while True:
            self._ended.wait(chance.uniform(0.3, 2.0))
            self.counts[self._servers.harm(chance)] += 1
            yield

    def _live(self, number: int) -> Iterator[None]:
        """Write, read, ask for compactions, one after the other."""
        chance, table, story = self._chance(), self._tables[number], self._stories[number]
        while True:
            action = chance.choices((self._write, self._read, self._ask), (6, 3, 1))[0]
            action(table, story, chance)
            self._ended.wait(chance.uniform(0, 0.1))
            yield

    def _write(self, table: CrashTable, story: Story, chance: random.Random) -> None:
        txn_id = table.open()
        seen = story.rows(table.snapshot(txn_id))
        deletes = chance.sample(seen, min(len(seen), chance.choice((0, 0, 1, 3))))
        inserts = chance.randrange(0 if deletes else 1, 4)
        fate = chance.random()
        if fate < 0.1:  # dies in the middle of its work
            staging = files.join(table.location, staging_name(txn_id, "dies"))
            files.make_directory(staging)
            files.write(files.join(staging, "half"), b"half a file")
            self.counts["dead writers"] += 1
            return
        write_id = None
        try:
            write_id = table.write(txn_id, inserts, deletes)
            if fate < 0.25:
                table.txns.abort_txn(txn_id)
                self.counts["aborts"] += 1
                return
            story.undecided.add(write_id)
            table.txns.commit_txn(txn_id)
            story.deleted[write_id] = set(deletes)
            story.inserted[write_id] = {RowId(write_id, encode_bucket(0), row) for row in range(inserts)}
            self.counts["commits"] += 1
        except HiveAcidError:  # a conflict, or a pause of this machine that was longer than the time-out
            self.counts["conflicts"] += 1
        finally:
            story.undecided.discard(write_id or 0)

    def _read(self, table: CrashTable, story: Story, chance: random.Random) -> None:
        txn_id = table.open(TxnType.READ_ONLY)
        snapshot = table.snapshot()
        until = time.monotonic() + chance.choice((0.0, 0.2, 2 * TIMEOUT_S))
        while True:
            rows, expected = table.rows(snapshot), story.rows(snapshot)
            if not self._lives(table, txn_id):
                self.counts["readers timed out"] += 1
                return
            assert rows == expected, (
                f"{table.table}: lost {set(expected) - set(rows)}, too many "
                f"{[row for row, times in Counter(rows).items() if times > 1 or row not in expected]} of {snapshot}"
            )
            if time.monotonic() > until or self._ended.wait(0.2):
                break
        table.txns.commit_txn(txn_id)
        self.counts["reads"] += 1

    def _lives(self, table: CrashTable, txn_id: TxnId) -> bool:
        try:
            table.txns.heartbeat(txn_id)
        except HiveAcidError:
            return False
        return True

    def _ask(self, table: CrashTable, _story: Story, chance: random.Random) -> None:
        kind = chance.choice((CompactionType.MINOR, CompactionType.MAJOR))
        self.counts["compactions"] += table.request(kind).accepted

    def _grow_quiet(self) -> None:
        """Nothing is stuck, nothing of the dead is left, and the rows are those that were committed."""
        until(lambda: not self._unrest(), QUIET_WITHIN_S, self._unrest)
        for table, story in zip(self._tables, self._stories, strict=True):
            snapshot = table.snapshot()
            assert table.rows(snapshot) == story.rows(snapshot)

    def _unrest(self) -> str:
        """What there is still to be done, empty if nothing."""
        for table in self._tables:
            for found in table.service.show(table=table.table):
                if found.state in STUCK:
                    return f"compaction {found.id} of {found.target} is {found.state.words}: {found}"
            if left := [name for name in table.directories() if name.startswith("_tmp")]:
                return f"{table.table} has {left}"
        with self._db.engine.connect() as connection:
            left_over = connection.exec_driver_sql("SELECT txn_id, state FROM txn WHERE state <> 'c'").all()
        return f"transactions {left_over}" if left_over else ""
