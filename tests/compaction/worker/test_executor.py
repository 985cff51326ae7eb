"""The warm executor and its process, with a small program in the place of Spark."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hive_acid.compaction_job import CompactionJob, JobProgress
from metastore.compaction.worker.executor import WarmSparkExecutor
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError, CompactionJobError
from tests.waiting import until

PROGRAM = """
import json, os, signal, subprocess, sys, threading
print("a banner of Spark")
print("a line of the log", file=sys.stderr)
cancelled = {}
lock = threading.Lock()

def say(answer):
    with lock:
        print(json.dumps(answer), flush=True)

def work(job):
    what, ticket = job["location"], job["id"]
    say({"id": ticket, "job_id": "app-1:" + ticket})
    if what == "wait":
        cancelled[ticket].wait()
        say({"id": ticket, "ok": False, "error": "CancelledError: cancelled"})
    elif what == "fail":
        say({"id": ticket, "ok": False, "error": "no such file"})
    elif what == "lost":
        say({"id": ticket, "ok": False, "error": "the JVM is gone", "lost": True})
    elif what == "short":
        say({"id": ticket, "ok": True})
    else:
        say({"id": ticket, "progress": {"rows": 2, "files": 1, "bytes_written": 50, "phase": "inserts"}})
        say({"id": ticket, "ok": True, "rows": os.getpid(), "deletes": 1, "bytes": 99, "seconds": 0.5})

for line in sys.stdin:
    job = json.loads(line)
    if "cancel" in job:
        cancelled[job["cancel"]].set()
    elif job["location"] == "die":
        print("out of memory", file=sys.stderr)
        sys.exit(3)
    elif job["location"] == "babble":
        say({"ok": True})
    elif job["location"] == "hang":
        open(job["staging"], "w").write(str(subprocess.Popen(["sleep", "60"]).pid))
        signal.pause()
    else:
        cancelled[job["id"]] = threading.Event()
        threading.Thread(target=work, args=(job,), daemon=True).start()
"""

NEVER = threading.Event()


def job(what: str = "work", staging: str = "", number: int = 7, **more: str) -> CompactionJob:
    return CompactionJob(
        number,
        "major",
        what,
        staging,
        (),
        "db.t:1::",
        (),
        (),
        (),
        "base_0000001_v0000002",
        None,
        "zlib",
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[WarmSparkExecutor]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    warm = WarmSparkExecutor([sys.executable, str(program)], cancel_within_s=1)
    yield warm
    warm.close()


def test_one_process_for_many_jobs(executor: WarmSparkExecutor) -> None:
    first, second = executor.run(job(), NEVER), executor.run(job(), NEVER)
    assert (first.deletes, first.size_bytes, first.seconds) == (1, 99, 0.5)
    assert first.rows == second.rows


def test_what_a_job_tells_arrives(executor: WarmSparkExecutor) -> None:
    told: list[JobProgress] = []
    executor.run(job(), NEVER, told.append)
    assert [progress.job_id for progress in told] == ["app-1:7.1", None]
    assert told[1].figures == {"rows": 2, "files": 1, "bytes_written": 50, "phase": "inserts"}


def test_jobs_run_beside_each_other_and_one_is_cancelled(executor: WarmSparkExecutor) -> None:
    """The same compaction may be there twice: an attempt that is being cancelled, and the next one."""
    pid = executor.run(job(), NEVER).rows
    cancelled = threading.Event()
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(executor.run, job("wait"), cancelled)
        assert [executor.run(job(number=number), NEVER).rows for number in (8, 7)] == [pid, pid]
        assert not waiting.done()
        cancelled.set()
        with pytest.raises(CompactionCancelledError):
            waiting.result(5)
    assert executor.run(job(), NEVER).rows == pid


def test_reported_error(executor: WarmSparkExecutor) -> None:
    with pytest.raises(CompactionJobError, match="no such file") as raised:
        executor.run(job("fail"), NEVER)
    assert not isinstance(raised.value, BackendLostError)
    executor.run(job(), NEVER)


def test_answer_without_sense(executor: WarmSparkExecutor) -> None:
    with pytest.raises(CompactionJobError, match="without sense"):
        executor.run(job("short"), NEVER)
    with pytest.raises(BackendLostError, match="died"):
        executor.run(job("babble"), NEVER)


def test_process_that_dies_is_replaced(executor: WarmSparkExecutor) -> None:
    first = executor.run(job(), NEVER).rows
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(executor.run, job("wait"), NEVER)
        with pytest.raises(BackendLostError, match=r"status 3: .*out of memory"):
            executor.run(job("die", number=8), NEVER)
        with pytest.raises(BackendLostError):
            waiting.result(5)
    assert executor.run(job(), NEVER).rows != first


def test_spark_that_is_lost_is_replaced(executor: WarmSparkExecutor) -> None:
    first = executor.run(job(), NEVER).rows
    with pytest.raises(BackendLostError, match="the JVM is gone"):
        executor.run(job("lost"), NEVER)
    assert executor.run(job(), NEVER).rows != first


@pytest.mark.slow
def test_process_that_does_not_cancel_is_ended(executor: WarmSparkExecutor, tmp_path: Path) -> None:
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    child = tmp_path / "child"
    with pytest.raises(CompactionCancelledError):
        executor.run(job("hang", str(child)), cancelled)
    assert _ends(int(child.read_text()))
    executor.run(job(), NEVER)


def test_job_that_is_cancelled_before_it_begins(executor: WarmSparkExecutor) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(CompactionCancelledError):
        executor.run(job(), cancelled)


def test_close_ends_the_process(executor: WarmSparkExecutor) -> None:
    pid = executor.run(job(), NEVER).rows
    assert _is_running(pid)
    executor.close()
    assert _ends(pid)
    executor.close()


def test_close_ends_a_job_at_once(executor: WarmSparkExecutor) -> None:
    """The server stops; the worker puts its compaction back."""
    executor.run(job(), NEVER)
    with ThreadPoolExecutor() as pool:
        begun = threading.Event()
        waiting = pool.submit(executor.run, job("wait"), NEVER, lambda _: begun.set())
        assert begun.wait(10)
        executor.close()
        with pytest.raises(BackendLostError):
            waiting.result(5)


def test_command_that_does_not_exist() -> None:
    with pytest.raises(BackendLostError, match="cannot start /no/such/python"):
        WarmSparkExecutor(["/no/such/python"]).run(job(), NEVER)


def _is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended but is not waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _ends(pid: int) -> bool:
    """Whether a process that has been killed is gone within a moment."""
    until(lambda: not _is_running(pid), 5)
    return True
