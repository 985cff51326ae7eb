"""What a program leaves open when it ends, in each way that programs end."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.transactions.states import TransactionKind
from hive_acid.wire import ttypes
from tests.client.meddler import meddler

BOUND_S = 10
"""What ending may take on a busy machine: three seconds at most go to the metastore."""

PROGRAM = """
import atexit, os, signal, sys, threading
from hive_acid import connect
from hive_acid.transactions.states import TransactionKind

connection = connect(sys.argv[1])
readers = [connection.begin(TransactionKind.READ, tables=["d.t"]) for _ in range(3)]
writer = connection.begin()
writer.write_id("d", "t")
writer.on_abort(lambda: os.remove(sys.argv[2]))
open(sys.argv[2], "w").close()
print("ready", writer.id, flush=True)
sys.stdin.readline()
"""

WAYS = {
    "end": "",
    "sys.exit": "sys.exit(3)",
    "error": "raise ZeroDivisionError",
    "close": "connection.close(); os._exit(0)",
    "used at exit": "atexit.register(lambda: connection.begin().commit())",
    "thread": "threading.Thread(target=threading.main_thread().join).start()",
    "fork first": """
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    for one in (*readers, writer):
        one.check_alive()
""",
    # A shell has its background jobs ignore it, and so would the tests' children there.
    "SIGINT": "signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT)",
}


@pytest.fixture
def connection(metastore: Callable[..., str]) -> Iterator[Connection]:
    with connect(metastore()) as connection:
        connection.create_database("d")
        connection.create_table(Table("d", "t", (Column("id", "int"),), parameters={"transactional": "true"}))
        yield connection


def run(uri: str, file: object, way: str, before_end: Callable[[], object] = lambda: None) -> tuple[int, float, str]:
    """The id of the program's writer, how long it took to end, and what it said."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM + way, uri, str(file)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout
        writer = int(program.stdout.readline().split()[1])
        before_end()
        began = time.monotonic()
        _, said = program.communicate("\n", timeout=60)
        return writer, time.monotonic() - began, said


@pytest.mark.parametrize("way", WAYS)
def test_a_program_ends_its_transactions_with_itself(connection: Connection, tmp_path: object, way: str) -> None:
    """Snapshots without a trace, so that they are not counted as aborted; writes are aborted with their files."""
    file = f"{tmp_path}/written"
    writer, _, said = run(connection.uri, file, WAYS[way])
    states = {one.id: one.state for one in connection.call("get_open_txns_info").open_txns}
    assert states == {writer: ttypes.TxnState.ABORTED}
    with pytest.raises(FileNotFoundError):
        open(file)  # noqa: SIM115
    expected = {"error": "ZeroDivisionError", "SIGINT": "KeyboardInterrupt"}.get(way, "")
    assert said.strip().splitlines()[-1:] == ([expected] if expected else [])


@pytest.mark.slow
@pytest.mark.parametrize("away", ["stopped", "silent"])
def test_a_program_ends_soon_where_the_metastore_is_away(connection: Connection, tmp_path: object, away: str) -> None:
    with meddler(connection.uri) as proxy:

        def leave() -> None:
            if away == "silent":
                proxy.faults["commit_txn"] = "silent"
            else:
                proxy.close()

        _, took, said = run(proxy.uri, f"{tmp_path}/written", "", leave)
    assert took < BOUND_S
    assert "Traceback" not in said


def test_a_killed_program_leaves_them_to_the_time_out(connection: Connection, tmp_path: object) -> None:
    writer, _, _ = run(connection.uri, f"{tmp_path}/written", "os.kill(os.getpid(), signal.SIGTERM)")
    states = [one.state for one in connection.call("get_open_txns_info").open_txns]
    assert states == [ttypes.TxnState.OPEN] * 4
    connection.abort_transactions([writer])


def test_close_ends_what_is_open(connection: Connection) -> None:
    own = connect(connection.uri)
    reader, writer = own.begin(TransactionKind.READ), own.begin()
    own.close()
    assert (reader.state.value, writer.state.value) == ("committed", "aborted")
    assert [one.id for one in connection.call("get_open_txns_info").open_txns] == [writer.id]
