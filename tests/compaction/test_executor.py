"""Executors, with small programs in the place of Spark."""

from __future__ import annotations

import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from metastore.compaction.config import CompactionConfig
from metastore.compaction.executor import SparkSubmitExecutor, WarmSparkExecutor, executor_for
from metastore.compaction.job import CompactionCancelledError, CompactionJob, CompactionJobError

PROGRAM = """
import json, os, subprocess, sys, time
print("a banner of Spark")
print("a line of the log", file=sys.stderr)
for line in sys.stdin:
    job = json.loads(line)
    what = job["location"]
    if what == "die":
        print("out of memory", file=sys.stderr)
        sys.exit(3)
    if what == "hang":
        open(job["staging"], "w").write(str(subprocess.Popen(["sleep", "60"]).pid))
        time.sleep(60)
    if what == "fail":
        answer = {"id": job["id"], "ok": False, "error": "no such file"}
    elif what == "babble":
        answer = {"ok": True}
    else:
        answer = {"id": job["id"], "ok": True, "rows": 3, "deletes": 1, "bytes": 99, "seconds": 0.5, "pid": os.getpid()}
        answer["rows"] = os.getpid()
    print(json.dumps(answer), flush=True)
"""

NEVER = threading.Event()


def job(what: str = "work", staging: str = "") -> CompactionJob:
    return CompactionJob(7, "major", what, staging, (), "db.t:1::", (), (), (), "base_0000001_v0000002", None, "zlib")


@pytest.fixture
def executor(tmp_path: Path):  # type: ignore[no-untyped-def]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    warm = WarmSparkExecutor([sys.executable, str(program)], timeout_s=20)
    yield warm
    warm.close()


def test_one_process_for_many_jobs(executor: WarmSparkExecutor) -> None:
    first, second = executor.run(job(), NEVER), executor.run(job(), NEVER)
    assert (first.deletes, first.size_bytes, first.seconds) == (1, 99, 0.5)
    assert first.rows == second.rows


def test_reported_error(executor: WarmSparkExecutor) -> None:
    with pytest.raises(CompactionJobError, match="no such file"):
        executor.run(job("fail"), NEVER)
    executor.run(job(), NEVER)


def test_answer_without_sense(executor: WarmSparkExecutor) -> None:
    with pytest.raises(CompactionJobError, match="without sense"):
        executor.run(job("babble"), NEVER)


def test_process_that_dies_is_replaced(executor: WarmSparkExecutor) -> None:
    first = executor.run(job(), NEVER).rows
    with pytest.raises(CompactionJobError, match=r"status 3: .*out of memory"):
        executor.run(job("die"), NEVER)
    assert executor.run(job(), NEVER).rows != first


def test_cancelled_job_leaves_no_process(executor: WarmSparkExecutor, tmp_path: Path) -> None:
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    child = tmp_path / "child"
    with pytest.raises(CompactionCancelledError):
        executor.run(job("hang", str(child)), cancelled)
    assert _ends(int(child.read_text()))
    executor.run(job(), NEVER)


def test_job_that_takes_too_long(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    warm = WarmSparkExecutor([sys.executable, str(program)], timeout_s=0.3)
    child = tmp_path / "child"
    with pytest.raises(CompactionJobError, match="took more than"):
        warm.run(job("hang", str(child)), NEVER)
    assert _ends(int(child.read_text()))


def test_close_ends_the_process(executor: WarmSparkExecutor) -> None:
    pid = executor.run(job(), NEVER).rows
    assert _is_running(pid)
    executor.close()
    assert _ends(pid)
    executor.close()


def test_command_that_does_not_exist() -> None:
    with pytest.raises(CompactionJobError, match="cannot start /no/such/python"):
        WarmSparkExecutor(["/no/such/python"]).run(job(), NEVER)
    with pytest.raises(CompactionJobError, match="cannot start /no/such/submit"):
        SparkSubmitExecutor(["/no/such/submit"]).run(job(), NEVER)


SUBMIT = """#!/bin/sh
# called as: submit --conf=… --conf=… --master local PROGRAM --job FILE --result FILE
case "$1 $2" in *driver*-Duser.timezone=UTC*executor*-Duser.timezone=UTC*) ;; *) echo "no zone: $1 $2"; exit 9 ;; esac
shift 2
[ "$3" = "${3%/hive_acid/spark/compactor.py}" ] && { echo "not our program: $3"; exit 9; }
grep -q '"location": "hang"' "$5" && { sleep 60; }
grep -q '"location": "die"' "$5" && { echo "no cluster"; exit 4; }
printf '{"id": 7, "ok": true, "rows": 3, "deletes": 1, "bytes": 99, "seconds": 0.5}' > "$7"
"""


@pytest.fixture
def submit(tmp_path: Path) -> list[str]:
    script = tmp_path / "submit"
    script.write_text(SUBMIT)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return [str(script), "--master", "local"]


def test_submit(submit: list[str]) -> None:
    assert SparkSubmitExecutor(submit).run(job(), NEVER).rows == 3


def test_submit_that_fails(submit: list[str]) -> None:
    with pytest.raises(CompactionJobError, match="status 4 and without a result: no cluster"):
        SparkSubmitExecutor(submit).run(job("die"), NEVER)


def test_submit_cancelled(submit: list[str]) -> None:
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    started = time.monotonic()
    with pytest.raises(CompactionCancelledError):
        SparkSubmitExecutor(submit).run(job("hang"), cancelled)
    with pytest.raises(CompactionJobError, match="took more than"):
        SparkSubmitExecutor(submit, timeout_s=0.3).run(job("hang"), NEVER)
    assert time.monotonic() - started < 30


def test_setting_chooses() -> None:
    assert isinstance(executor_for(CompactionConfig()), WarmSparkExecutor)
    chosen = executor_for(CompactionConfig(spark_submit="spark-submit --master 'local[2]'"))
    assert isinstance(chosen, SparkSubmitExecutor)
    assert chosen._submit == ["spark-submit", "--master", "local[2]"]


def _is_running(pid: int) -> bool:
    """Whether a process runs; one that has ended but is not waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _ends(pid: int) -> bool:
    """Whether a process that has been killed is gone within a moment."""
    deadline = time.monotonic() + 5
    while _is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
