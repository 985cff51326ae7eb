"""``metastore serve`` as a user runs it: a process, one line when it is ready, one sentence when it cannot start."""

import contextlib
import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from thriftpy2.thrift import TException

from hive_acid import connect
from hive_acid.errors import MetastoreUnreachableError
from hive_acid.wire import service, ttypes
from metastore.cli import main
from tests.caller import Caller, Refused
from tests.fuzz.run import Connection
from tests.observe.scrape import get
from tests.ports import free_port
from tests.waiting import until


class Serve:
    """A running daemon."""

    def __init__(self, *arguments: Any, program: Sequence[str] = ("-m", "metastore.cli")) -> None:
        command = [sys.executable, *program, "serve", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.line = self.process.stdout.readline().strip()  # type: ignore[union-attr]

    @property
    def uri(self) -> str:
        return self.line.removeprefix("listening on ")

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        if self.process.poll() is None:
            self.process.send_signal(number)
        words = self.process.communicate(timeout=60)[1]
        return self.process.returncode, words


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Serve]]:
    running: list[Serve] = []

    def start(*arguments: Any, **how: Any) -> Serve:
        running.append(Serve("--port", 0, "--warehouse", tmp_path / "warehouse", *arguments, **how))
        return running[-1]

    yield start
    for one in running:
        one.end(signal.SIGKILL)


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """Outside of pytest's own directories, as a user's would be."""
    with tempfile.TemporaryDirectory(prefix="hive-acid-test-") as path:
        yield Path(path) / "deep" / "data"


def refused(*arguments: Any) -> str:
    command = [sys.executable, "-m", "metastore.cli", "serve", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("metastore: ")
    assert "Traceback" not in done.stderr
    return last


@pytest.mark.slow
def test_embedded_data_is_kept_across_a_stop_and_a_kill(serve: Callable[..., Serve], data_dir: Path) -> None:
    first = serve("--data-dir", data_dir)
    assert first.line.startswith("listening on thrift://127.0.0.1:")
    with connect(first.uri) as connection:
        connection.create_database("kept")
    code, words = first.end()
    assert code == 0, words
    second = serve("--data-dir", data_dir)
    with connect(second.uri) as connection:
        assert "kept" in connection.call("get_all_databases")
        connection.create_database("kept2")
    second.end(signal.SIGKILL)
    third = serve("--data-dir", data_dir)
    with connect(third.uri) as connection:
        assert {"kept", "kept2"} <= set(connection.call("get_all_databases"))
    assert third.end()[0] == 0
    assert not _postgres_processes(data_dir)


def test_memory_of_the_daemon_is_small(serve: Callable[..., Serve], db_url: str) -> None:
    running = serve("--database-url", db_url)
    with connect(running.uri) as connection:
        connection.call("get_all_databases")
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    resident_kb = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident_kb < 150 * 1024


@pytest.mark.sampled
def test_thousands_of_idle_connections_under_a_low_soft_limit(serve: Callable[..., Serve], db_url: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        running = serve("--database-url", db_url)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    address = running.uri.removeprefix("thrift://").split(":")
    sockets = [socket.create_connection((address[0], int(address[1]))) for _ in range(3000)]
    try:
        with connect(running.uri) as connection:
            assert connection.call("get_all_databases") == ["default"]
    finally:
        for sock in sockets:
            sock.close()


def test_a_second_server_on_the_same_data_is_refused(serve: Callable[..., Serve], data_dir: Path) -> None:
    running = serve("--data-dir", data_dir)
    assert str(running.process.pid) in refused(
        "--port", 0, "--data-dir", data_dir, "--warehouse", data_dir.parent / "w"
    )


@pytest.mark.sampled
def doctor(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    status = main(["doctor", "--data-dir", str(data_dir), "--warehouse", str(data_dir.parent / "w")])
    return status, capsys.readouterr().out


@pytest.mark.sampled
def test_doctor_asks_the_running_metastore(
    serve: Callable[..., Serve], data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = serve("--data-dir", data_dir)
    status, said = doctor(data_dir, capsys)
    assert status == 0
    assert f"the metastore at {running.uri} is alive, its database answers" in said
    stopped = _postmaster(data_dir)
    os.kill(stopped, signal.SIGSTOP)  # what is asked of it now is not answered
    for child in _children(stopped):
        os.kill(child, signal.SIGSTOP)
    try:
        until(lambda: doctor(data_dir, capsys)[0] == 1)
        status, said = doctor(data_dir, capsys)
        assert "the database has not answered for 5 s" in said
    finally:
        for one in (*_children(stopped), stopped):
            os.kill(one, signal.SIGCONT)
    until(lambda: doctor(data_dir, capsys)[0] == 0)


@pytest.mark.sampled
def test_a_postgres_that_dies_is_started_again_and_in_the_end_given_up(
    serve: Callable[..., Serve], data_dir: Path
) -> None:
    port = free_port()
    running = serve("--data-dir", data_dir, "--set", f"metastore.metrics.port={port}")
    with connect(running.uri) as connection:
        connection.create_database("kept")
        until(lambda: get(port, "/readyz")[0] == 200)
        first = _postmaster(data_dir)
        os.kill(first, signal.SIGKILL)
        assert "kept" in connection.call("get_all_databases")  # it waits, unless a process of the old one answers yet
        # What such a process takes and does not answer any more is told to be unknown. They are gone before the next.
        until(lambda: _is_another_postmaster(data_dir, first))
        assert connection.call("open_txns", ttypes.OpenTxnRequest(num_txns=1, user="u", hostname="h")).txn_ids
        until(lambda: get(port, "/readyz")[0] == 200)
        statuses = set()
        killed = 0

        def kill() -> None:
            nonlocal killed
            with contextlib.suppress(OSError, ValueError, IndexError):
                if _postmaster(data_dir) != killed:
                    killed = _postmaster(data_dir)
                    os.kill(killed, signal.SIGKILL)
            with contextlib.suppress(OSError):
                statuses.add((get(port, "/livez")[0], get(port, "/readyz")[0]))

        until(lambda: running.process.poll() is not None, 200, between=kill)
    code, words = running.end()
    assert code == 1
    last = words.strip().splitlines()[-1]
    assert last.startswith("metastore: the embedded Postgres in ")
    assert "has ended 6 times within 10 min" in last
    assert "Traceback" not in last
    assert (200, 503) in statuses


@pytest.mark.slow
def test_a_postgres_that_hangs_does_not_keep_the_server_from_its_end(
    serve: Callable[..., Serve], data_dir: Path
) -> None:
    """It answers nothing and takes no leave, as on a disk that hangs."""
    code = "import sys; from metastore import app, cli; app.STOP_S = 3.0; sys.exit(cli.main())"
    running = serve("--data-dir", data_dir, program=("-c", code))
    postmaster = _postmaster(data_dir)
    ours = [postmaster, *_children(postmaster)]
    for process in ours:
        os.kill(process, signal.SIGSTOP)
    try:
        status, words = running.end()
        assert status == 1
        assert "ended without a clean stop, which took too long" in words
    finally:
        for process in ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)
    until(lambda: not _postgres_processes(data_dir))
    again = serve("--data-dir", data_dir)
    assert again.end()[0] == 0


def test_a_taken_port_is_refused(tmp_path: Path, db_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refused("--port", port, "--database-url", db_url, "--warehouse", tmp_path)
    assert f"cannot listen on 127.0.0.1:{port}" in said
    assert "--port" in said


def test_a_warehouse_that_cannot_be_written_is_refused(tmp_path: Path, db_url: str) -> None:
    (tmp_path / "file").write_text("")
    assert "is not writable" in refused("--port", 0, "--database-url", db_url, "--warehouse", tmp_path / "file" / "w")


def test_a_data_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refused("--port", 0, "--data-dir", tmp_path / "file" / "data", "--warehouse", tmp_path / "w")
    assert str(tmp_path / "file") in said


def test_an_unreachable_database_is_refused(tmp_path: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    assert "database" in refused("--port", 0, "--database-url", url, "--warehouse", tmp_path)


def test_a_database_newer_than_the_code_is_refused(tmp_path: Path, db_url: str) -> None:
    with psycopg2.connect(db_url) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE hive_acid.alembic_version SET version_num = '9999'")
    assert "newer" in refused("--port", 0, "--database-url", db_url, "--warehouse", tmp_path)


@pytest.mark.slow
def test_a_misspelt_setting_is_refused_with_a_hint(tmp_path: Path) -> None:
    assert "did you mean hive.txn.timeout" in refused("--set", "hive.txn.timout=3s", "--warehouse", tmp_path)
    assert "hive.txn.timeout" in refused("--set", "hive.txn.timeout=soon", "--warehouse", tmp_path)


def test_a_clusters_own_configuration_is_taken(
    serve: Callable[..., Serve], db_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = {
        "hive.txn.timeout": "20m",
        "hive.max.open.txns": "9",
        "hive.txn.xlock.iow": "false",
        "hive.other": "x",
    }
    lines = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items())
    (tmp_path / "hive-site.xml").write_text(f"<configuration>{''.join(lines)}</configuration>")
    monkeypatch.setenv("HIVE_ACID__HIVE_TXN_MAX_OPEN_BATCH", "3")
    running = serve("--database-url", db_url, "--hive-site", tmp_path, "--set", "metastore.max.open.txns=5")
    with connect(running.uri) as connection:
        assert connection.call("get_config_value", "metastore.txn.timeout", "") == "1200000ms"
        assert connection.call("get_config_value", "hive.max.open.txns", "") == "5"
        assert connection.call("get_config_value", "hive.txn.max.open.batch", "") == "3"
    words = running.end()[1]
    assert "setting not used key=hive.txn.xlock.iow" in words
    assert "properties passed over" in words


@pytest.mark.slow
def test_a_configuration_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("hive.txn.timeout = ")
    assert "broken.toml is not TOML" in refused("--config", tmp_path / "broken.toml", "--warehouse", tmp_path)
    assert "cannot read" in refused("--hive-site", tmp_path / "absent.xml", "--warehouse", tmp_path)


def test_a_stopped_server_takes_no_more_calls(serve: Callable[..., Serve], db_url: str) -> None:
    running = serve("--database-url", db_url)
    with connect(running.uri) as connection:
        code, words = running.end(signal.SIGINT)
        assert code == 0, words
        with pytest.raises(MetastoreUnreachableError):
            connection.call("get_all_databases")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_clean_stop_by_the_terminal(serve: Callable[..., Serve], db_url: str, number: Any) -> None:
    ours = signal.signal(number, signal.default_int_handler)  # it may be ignored here, and so by whom we start
    try:
        running = serve("--database-url", db_url)
    finally:
        signal.signal(number, ours)
    code, words = running.end(number)
    assert (code, words.strip().splitlines()[-1].endswith("INFO metastore stopped")) == (0, True)


def test_ctrl_c_while_it_is_loaded_is_no_traceback() -> None:
    code = "import signal, sys; from metastore.entry import main; "
    code += "sys.meta_path.insert(0, type('F', (), {'find_spec': lambda *a: signal.raise_signal(2)})); sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, "")


_SIGNALLED_WITHIN_ITS_WAIT = """
import os, signal, sys, threading
from metastore.app import App
from metastore.cli import main

lines = []

def signalled(frame, what, _):
    if what == "line":
        lines.append(frame.f_lineno)
        if len(lines) == 2:  # it has the lock
            os.kill(os.getpid(), signal.SIGTERM)
    return signalled

def called(frame, what, _):
    waits = frame.f_code is threading.Event.wait.__code__ and frame.f_back.f_code is App.run.__code__
    return signalled if waits else None

sys.settrace(called)
sys.exit(main())
"""


def test_a_signal_may_come_at_any_step_of_the_wait_for_it(db_url: str, tmp_path: Path) -> None:
    """Within the wait of an Event, whose lock the main thread has there, it would never end."""
    command = [sys.executable, "-c", _SIGNALLED_WITHIN_ITS_WAIT, "serve", "--port", "0", "--database-url", db_url]
    command += ["--warehouse", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            server.stdout.readline()
            server.terminate()
            words = server.communicate(timeout=20)[1]
        finally:
            server.kill()
    assert server.returncode == 0, words


def test_a_stop_under_load_loses_nothing_that_was_answered(serve: Callable[..., Serve], db_url: str) -> None:
    """Replies are whole, calls that come later are not begun, and the process ends with 0 within seconds."""
    running = serve("--database-url", db_url)
    committed, torn, counts = [], [], []

    def write() -> None:
        with Caller(running.uri) as caller, contextlib.suppress(OSError, TException, Refused):
            for number in itertools.count():
                txn_id = caller.begin()
                caller.write(txn_id, f"d{threading.get_ident()}/t/p={number % 3}", "i")
                caller.commit(txn_id)
                committed.append(txn_id)

    def read() -> None:
        address = urlsplit(running.uri)
        connection = Connection(address.hostname, address.port)  # type: ignore[arg-type]
        arguments = service.get_all_databases_args()
        with contextlib.suppress(OSError, EOFError):
            for number in itertools.count():
                assert connection.call("get_all_databases", arguments) == ("fine", "")
                counts.append(number)
        torn.append(bytes(connection._buffer))
        connection.close()

    with ThreadPoolExecutor(9) as pool:
        for work in (*[write] * 6, *[read] * 3):
            pool.submit(work)
        until(lambda: len(committed) > 200 and len(counts) > 200)
        started = time.monotonic()
        code, words = running.end()
        assert time.monotonic() - started < 15
    assert code == 0, words
    assert "Traceback" not in words
    assert torn == [b"", b"", b""]
    with psycopg2.connect(db_url) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT txn_id FROM hive_acid.txn WHERE state = 'c'")
        assert set(committed) <= {txn_id for (txn_id,) in cursor.fetchall()}


def _postmaster(data_dir: Path) -> Any:
    return int((data_dir / "cluster" / "postmaster.pid").read_text().split()[0])


def _is_another_postmaster(data_dir: Path, first: Any) -> Any:
    with contextlib.suppress(OSError, ValueError, IndexError):  # its file is being written
        return _postmaster(data_dir) != first
    return False


def _children(pid: Any) -> Any:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _postgres_processes(data_dir: Path) -> Any:
    found = []
    for entry in Path("/proc").iterdir():
        words = b""
        with contextlib.suppress(OSError):  # it may end meanwhile
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        if str(data_dir).encode() in words and b"postgres" in words:
            found.append(entry.name)
    return found
