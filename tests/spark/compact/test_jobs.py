"""Jobs of one compactor process beside each other, and those that spark-submit runs; no Spark is needed for it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hive_acid.compaction_job import JobProgress, TellProgress
from hive_acid.spark.compact.jobs import Jobs
from tests.waiting import stays, until


class Conf:
    def __init__(self, session: FakeSession) -> None:
        self._session = session

    def get(self, key: str) -> str:
        if self._session.is_gone:
            raise ConnectionError("no JVM")
        assert key == "spark.app.id"
        return "app-1"


class FakeSession:
    """A session whose only operation can be interrupted."""

    def __init__(self, name: str, pool: str) -> None:
        self.name, self.pool = name, pool
        self.conf = Conf(self)
        self.interrupted = threading.Event()
        self.is_gone = False

    def interruptAll(self) -> None:
        self.interrupted.set()


class FakeSessions:
    def __init__(self) -> None:
        self.begun: list[FakeSession] = []
        self.ended: list[FakeSession] = []
        self.fails = False

    def begin(self, name: str, pool: str) -> FakeSession:
        if self.fails:
            raise ConnectionError("no server")
        self.begun.append(FakeSession(name, pool))
        return self.begun[-1]

    def end(self, session: FakeSession) -> None:
        self.ended.append(session)


class Lines:
    """An input to which lines are added while it is read."""

    def __init__(self) -> None:
        self._lines: list[str | None] = []
        self._more = threading.Condition()

    def say(self, message: object) -> None:
        with self._more:
            self._lines.append(None if message is None else json.dumps(message))
            self._more.notify_all()

    def __iter__(self) -> Iterator[str]:
        while True:
            with self._more:
                self._more.wait_for(lambda: self._lines)
                line = self._lines.pop(0)
            if line is None:
                return
            yield line


def play(run: Callable[[Any, Mapping[str, Any], TellProgress], dict[str, Any]], sessions: FakeSessions,
         story: Callable[[Lines, io.StringIO], None]) -> list[dict[str, Any]]:  # fmt: skip
    """The answers to what `story` says."""
    lines, answers = Lines(), io.StringIO()
    with ThreadPoolExecutor() as pool:
        taking = pool.submit(Jobs(sessions, answers, run).take, lines)  # type: ignore[arg-type]
        story(lines, answers)
        lines.say(None)
        taking.result(10)
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def ok(job: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": job["id"], "ok": True}


def test_jobs_run_beside_each_other_in_pools_of_their_own() -> None:
    both, sessions = threading.Barrier(3), FakeSessions()

    def run(session: FakeSession, job: Mapping[str, Any], report: TellProgress) -> dict[str, Any]:
        both.wait(5)
        report(JobProgress.at(1, 2, 3, "inserts"))
        return ok(job)

    def story(lines: Lines, answers: io.StringIO) -> None:
        for number, more in ((1, {}), (2, {"name": "h-compactor-d.t"}), (3, {"queue": "night"})):
            lines.say({"id": number, **more})

    found = play(run, sessions, story)
    assert {session.pool for session in sessions.begun} >= {"night"}
    assert len({session.pool for session in sessions.begun}) == 3
    assert "h-compactor-d.t" in {session.name for session in sessions.begun}
    assert sorted(map(id, sessions.ended)) == sorted(map(id, sessions.begun))
    for number in (1, 2, 3):
        assert [answer for answer in found if answer["id"] == number] == [
            {"id": number, "job_id": f"app-1:{number}"},
            {"id": number, "progress": {"rows": 1, "files": 2, "bytes_written": 3, "phase": "inserts"}},
            {"id": number, "ok": True},
        ]


def test_one_job_is_cancelled() -> None:
    """What Spark runs is interrupted; between two operations the next word of the job is its last."""

    def run(session: FakeSession, job: Mapping[str, Any], report: TellProgress) -> dict[str, Any]:
        try:
            if job["id"] == 1:
                assert session.interrupted.wait(5)
            if job["id"] < 3:
                until(lambda: report(JobProgress.at(0, 0, 0, "next")))  # the one that is cancelled raises
        except Exception as error:
            return {"id": job["id"], "ok": False, "error": type(error).__name__}
        return ok(job)

    def story(lines: Lines, answers: io.StringIO) -> None:
        for number in (1, 2, 3):
            lines.say({"id": number})
        until(lambda: answers.getvalue().count("job_id") >= 3)
        for number in (1, 2, 99):
            lines.say({"cancel": number})

    last = {answer["id"]: answer for answer in play(run, FakeSessions(), story) if "ok" in answer}
    assert [last[number].get("error") for number in (1, 2, 3)] == ["CancelledError", "CancelledError", None]


def test_a_spark_that_is_gone_is_told() -> None:
    """A job that fails with its Spark may be as good as any."""
    sessions = FakeSessions()

    def run(session: FakeSession, job: Mapping[str, Any], report: TellProgress) -> dict[str, Any]:
        session.is_gone = job["id"] == 1
        return {"id": job["id"], "ok": False, "error": "it failed"}

    def story(lines: Lines, answers: io.StringIO) -> None:
        lines.say({"id": 1})
        lines.say({"id": 2})
        until(lambda: answers.getvalue().count('"ok"') >= 2)
        sessions.fails = True
        lines.say({"id": 3})
        lines.say(["no job"])

    found = {answer["id"]: answer for answer in play(run, sessions, story) if "ok" in answer}
    assert [found[number].get("lost") for number in (1, 2, 3)] == [True, None, True]
    assert found[3]["error"] == "ConnectionError: no server"
    assert found[None]["error"] == "ValueError: a job is an object"


def test_a_submitted_job_that_is_withdrawn_ends_itself(tmp_path: Path) -> None:
    """However it was started, and wherever it runs: its file is gone."""
    job = tmp_path / "job.json"
    job.write_text("{}")
    code = (
        "import signal, threading; from hive_acid.spark.compact import submitted; submitted._LOOK_EVERY_S = 0.1;"
        f"threading.Thread(target=submitted._watch, args=({str(tmp_path)!r}, threading.Event())).start();"
        "print('up', flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        stays(lambda: process.poll() is None, 0.5)
        job.unlink()
        assert process.wait(10) == 1
