"""``make bench-catalogue``: a table with very many partitions, each call beside a bare SQL query of the same rows.

Both sides read everything they get: the bare query into Python's values, ours up to the last byte of the reply. The
server looks at no files here, and its memory is what it held at most during the call, above what it held before.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2

from hive_acid.operators.show import Listing
from hive_acid.wire import ttypes
from tests.bench.calls.driver import LONG_READ_BYTES, ask, connect
from tests.bench.calls.messages import encode, reply_header
from tests.bench.calls.rpc import show
from tests.bench.calls.servers import Machine
from tests.bench.machine import memory_mb, peak_memory_mb, reset_peak_memory

SETTINGS = {"hive.compactor.initiator.on": "false", "metastore.filesystem.directories": "false"}
HOURS = 100
BATCH = 1_000
ADDED = 10_000
SMALL_ROUNDS = 200
_ORC = "org.apache.hadoop.hive.ql.io.orc."
_COLUMNS = "name, values, location, created_s, columns, parameters, storage, details"
_ALL = f"SELECT {_COLUMNS} FROM partition WHERE table_id = %s"
_NAMED = f"{_ALL} AND name = ANY (%s) ORDER BY name"


@dataclass(frozen=True)
class Trial:
    """One call and the query of the same rows; `undo` is not measured."""

    name: str
    rows: int
    ours: Callable[[], object]
    bare: Callable[[], object]
    rounds: int
    undo_ours: Callable[[], object] = lambda: None
    undo_bare: Callable[[], object] = lambda: None


class Bench:
    """One table, a connection to the server, and one to its Postgres."""

    def __init__(self, uri: str, database: Any, process: int, partitions: int, rounds: int) -> None:
        self._sock = connect(uri)
        self._database = database
        self._process = process
        self._days = partitions // HOURS
        self._rounds = rounds
        self._table_id = 0

    def fill(self) -> None:
        """The table by RPC, its partitions by SQL."""
        ask(self._sock, "create_table", _table())
        (self._table_id,) = self._sql("SELECT id FROM tbl WHERE name = 'p'")[0]
        self._sql(
            """INSERT INTO partition (table_id, name, values, location, created_s, parameters, details)
               SELECT %s, format('d=%%s/hr=%%s', d, hr), ARRAY[d, hr::text],
                      format('file:/warehouse/p/d=%%s/hr=%%s', d, hr), 1700000000,
                      '{"transient_lastDdlTime": "1700000000", "numFiles": "1", "totalSize": "1234"}', '{}'
                 FROM (SELECT (DATE '2015-01-01' + day)::text AS d FROM generate_series(1, %s) AS day) AS days,
                      generate_series(0, %s) AS hr
               RETURNING 1""",
            self._table_id,
            self._days,
            HOURS - 1,
        )
        self._sql("VACUUM ANALYZE partition", fetches=False)

    def trials(self) -> Iterator[Trial]:
        """In the order in which they are shown."""
        table, partitions, few = self._table_id, self._days * HOURS, 20 * self._rounds
        names = [name for (name,) in self._sql("SELECT name FROM partition WHERE table_id = %s ORDER BY name", table)]
        batch = names[len(names) // 3 :][:BATCH]
        filters = (
            ("d = '2016-02-03' and hr = 7", 1, f"{_ALL} AND name = 'd=2016-02-03/hr=7'", few),
            ("d = '2016-02-03' and hr > 49", 50, f"{_ALL} AND name ^@ 'd=2016-02-03/' AND values[2]::int > 49", few),
            ("hr = 7", self._days, f"{_ALL} AND values[2] = '7' ORDER BY name", self._rounds),
        )
        yield self._reading("get_table", 1, ("get_table", "default", "p"), "SELECT * FROM tbl WHERE name = 'p'")
        database = "SELECT * FROM database WHERE name = 'default'"
        yield self._reading("get_database", 1, ("get_database", "default"), database)
        yield self._reading(
            "get_partition_names",
            partitions,
            ("get_partition_names", "default", "p", -1),
            "SELECT name FROM partition WHERE table_id = %s ORDER BY name",
            rounds=self._rounds,
        )
        for text, rows, query, rounds in filters:
            call = ("get_partitions_by_filter", "default", "p", text, -1)
            yield self._reading(f"filter {text}", rows, call, query, rounds=rounds)
        yield Trial(
            f"by names, {BATCH:,} at a time",
            len(batch),
            self._call("get_partitions_by_names", "default", "p", batch),
            lambda: self._sql(_NAMED, table, batch),
            few,
        )
        yield self._reading(
            "get_partitions", partitions, ("get_partitions", "default", "p", -1), f"{_ALL} ORDER BY name", rounds=1
        )
        yield from self._changing()

    def _changing(self) -> Iterator[Trial]:
        values = [[f"2050-01-{1 + number // 1000:02}", str(number % 1000)] for number in range(ADDED)]
        names = [f"d={d}/hr={hr}" for d, hr in values]
        sd = ttypes.StorageDescriptor(serdeInfo=ttypes.SerDeInfo())
        added = [ttypes.Partition(values=pair, dbName="default", tableName="p", sd=sd) for pair in values]
        add = self._call(
            "add_partitions_req",
            ttypes.AddPartitionsRequest(
                dbName="default", tblName="p", parts=added, ifNotExists=False, needResult=False
            ),
        )
        drop = self._call(
            "drop_partitions_req",
            ttypes.DropPartitionsRequest(
                dbName="default",
                tblName="p",
                parts=ttypes.RequestPartsSpec(names=names),
                deleteData=False,
                needResult=False,
            ),
        )

        def bare_add() -> object:
            return self._sql(
                """INSERT INTO partition (table_id, name, values, location, created_s, parameters, details)
                   SELECT %s, name, string_to_array(pair, ' '), 'file:/warehouse/p/' || name, 1700000000,
                          '{"transient_lastDdlTime": "1700000000"}', '{}'
                     FROM unnest(%s, %s) AS given (name, pair) RETURNING name""",
                self._table_id,
                names,
                [" ".join(pair) for pair in values],
            )

        def bare_drop() -> object:
            query = f"DELETE FROM partition WHERE table_id = %s AND name = ANY (%s) RETURNING {_COLUMNS}"
            return self._sql(query, self._table_id, names)

        yield Trial(f"add {ADDED:,} at once", ADDED, add, bare_add, self._rounds, drop, bare_drop)
        add()
        yield Trial(f"drop {ADDED:,} at once", ADDED, drop, bare_drop, self._rounds, add, bare_add)

    def run(self, trial: Trial) -> tuple[str, ...]:
        """The row to show; both sides by turns."""
        ours: list[float] = []
        bare: list[float] = []
        trial.ours()  # the first call of a kind connects and plans
        trial.undo_ours()
        before = memory_mb(self._process)
        reset_peak_memory(self._process)
        for _ in range(trial.rounds):
            ours.append(_seconds(trial.ours))
            trial.undo_ours()
            bare.append(_seconds(trial.bare))
            trial.undo_bare()
        grown = max(0.0, peak_memory_mb(self._process) - before)
        ours_ms, bare_ms = statistics.median(ours) * 1000, statistics.median(bare) * 1000
        return (
            trial.name,
            f"{trial.rows:,}",
            f"{ours_ms:,.2f}",
            f"{bare_ms:,.2f}",
            f"{ours_ms / bare_ms:.1f}",
            f"{grown:,.0f}",
        )

    def _reading(self, name: str, rows: int, call: tuple[Any, ...], query: str, *, rounds: int = SMALL_ROUNDS) -> Trial:
        wanted = [self._table_id] if "%s" in query else []
        return Trial(name, rows, self._call(*call), lambda: self._sql(query, *wanted), rounds)

    def _call(self, method: str, *arguments: Any) -> Callable[[], int]:
        """Sends the call, with a short one behind it that marks the end of the answer; the answer's length."""
        expected = len(encode(method, *arguments)) and reply_header(method)
        message = encode(method, *arguments) + encode("getStatus")
        mark = _status_reply(self._sock)

        def act() -> int:
            self._sock.sendall(message)
            length, head, tail = 0, b"", b""
            while not tail.endswith(mark):
                some = self._sock.recv(LONG_READ_BYTES)
                if not some:
                    raise ConnectionError(f"the metastore has closed the connection in {method}")
                length += len(some)
                head = head if len(head) >= len(expected) + 3 else head + some  # type: ignore[arg-type]
                tail = (tail + some)[-len(mark) :]
            if not head.startswith(expected) or int.from_bytes(head[len(expected) + 1 :][:2], "big") != 0:  # type: ignore[arg-type]
                raise RuntimeError(f"{method} failed: {head[:300]!r}")
            return length - len(mark)

        return act

    def _sql(self, query: str, *arguments: Any, fetches: bool = True) -> Any:
        with self._database.cursor() as cursor:
            cursor.execute(query, arguments or None)
            return cursor.fetchall() if fetches else None


def _status_reply(sock: socket.socket) -> bytes:
    sock.sendall(encode("getStatus"))
    return sock.recv(LONG_READ_BYTES)


def _seconds(work: Callable[[], object]) -> float:
    began_at = time.perf_counter()
    work()
    return time.perf_counter() - began_at


def _table() -> Any:
    def column(name: str, kind: str) -> Any:
        return ttypes.FieldSchema(name=name, type=kind)

    storage = ttypes.StorageDescriptor(
        cols=[column(f"c{number}", "string") for number in range(20)],
        inputFormat=f"{_ORC}OrcInputFormat",
        outputFormat=f"{_ORC}OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib=f"{_ORC}OrcSerde", parameters={"serialization.format": "1"}),
    )
    keys = [column("d", "string"), column("hr", "int")]
    return ttypes.Table(tableName="p", dbName="default", sd=storage, partitionKeys=keys, parameters={})


def measured(partitions: int, rounds: int) -> Listing:
    """Everything, on a server and a Postgres of its own."""
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    rows = []
    try:
        with Machine(work) as machine:
            url = machine.fresh_database()
            with (
                machine.daemon(url, SETTINGS) as daemon,
                contextlib.closing(psycopg2.connect(url, options="-c search_path=hive_acid")) as database,
            ):
                database.autocommit = True
                bench = Bench(daemon.uri, database, daemon.pid, partitions, rounds)
                bench.fill()
                rows = [bench.run(trial) for trial in bench.trials()]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    columns = ("call", "rows", "ms", "bare SQL ms", "ratio", "memory + MB")
    return Listing(f"A table with {partitions:,} partitions", columns, tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-catalogue", description=__doc__)
    parser.add_argument("--partitions", type=int, default=200_000, help="how many partitions the table has (200,000)")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of long calls; the median counts (5)")
    options = parser.parse_args(arguments)
    show(measured(options.partitions, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
