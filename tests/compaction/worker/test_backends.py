"""The back-ends that the settings choose, and how jobs are submitted; a script plays the cluster."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hive_acid.compaction_job import CompactionJob, JobProgress
from hive_acid.filesystem import files
from metastore.compaction.config import CompactionConfig
from metastore.compaction.worker.executor import WarmSparkExecutor, executor_for
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError, CompactionJobError
from metastore.compaction.worker.submit import SparkSubmitExecutor, SubmitCommand
from metastore.settings import SettingError

NEVER = threading.Event()
PROGRAM = "/program.py"
UTC = [f"--conf=spark.{role}.extraJavaOptions=-Duser.timezone=UTC" for role in ("driver", "executor")]


def job(staging: str, what: str = "work", **more: str) -> CompactionJob:
    return CompactionJob(
        7,
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


def line(command: str, archive: str | None = None, **more: str) -> list[str]:
    """What is run for a job, without what is the same for all."""
    whole = SubmitCommand(tuple(command.split())).line(job("/t/_tmp", **more), PROGRAM, archive, "/t/_tmp-job")
    assert whole[1:3] == UTC
    assert whole[-3:] == [PROGRAM, "--directory", "/t/_tmp-job"]
    return [whole[0], *whole[3:-3]]


def test_standalone() -> None:
    assert line("spark-submit --master spark://h:7077", name="here-compactor-db.t", queue="q") == [
        *("spark-submit", "--master", "spark://h:7077"),
        *("--name", "here-compactor-db.t"),
    ]


def test_yarn() -> None:
    """The queue of the table or the request wins over that of the command."""
    command = "spark-submit --master yarn --deploy-mode cluster --queue root.all --conf spark.yarn.maxAppAttempts=1"
    assert line(command, "/tmp/a.zip", name="n", queue="root.etl") == [
        *("spark-submit", "--py-files", "/tmp/a.zip"),
        *("--master", "yarn", "--deploy-mode", "cluster", "--queue", "root.all"),
        *("--conf", "spark.yarn.maxAppAttempts=1", "--name", "n", "--queue", "root.etl"),
    ]


def test_kubernetes() -> None:
    command = "spark-submit --master=k8s://https://h:6443 --deploy-mode=cluster --conf spark.kubernetes.file.upload.path=s3a://b/up"
    assert line(command, "/tmp/a.zip", name="n", queue="nightly") == [
        *("spark-submit", "--py-files", "/tmp/a.zip"),
        *("--master=k8s://https://h:6443", "--deploy-mode=cluster"),
        *("--conf", "spark.kubernetes.file.upload.path=s3a://b/up", "--name", "n"),
        "--conf=spark.kubernetes.driver.label.kueue.x-k8s.io/queue-name=nightly",
        "--conf=spark.kubernetes.executor.label.kueue.x-k8s.io/queue-name=nightly",
    ]


@pytest.mark.parametrize(
    ("command", "master", "in_cluster", "has_files"),
    [
        ("spark-submit", "", False, False),
        ("spark-submit --verbose --master yarn", "yarn", False, False),
        ("spark-submit -c spark.master=yarn --conf=spark.submit.deployMode=cluster", "yarn", True, False),
        ("spark-submit --master yarn --deploy-mode cluster --archives env.tgz#env", "yarn", True, True),
        ("spark-submit --master yarn --deploy-mode client --py-files x.zip", "yarn", False, True),
    ],
)
def test_what_a_command_says(command: str, master: str, in_cluster: bool, has_files: bool) -> None:
    found = SubmitCommand(tuple(command.split()))
    assert (found.master, found.is_in_cluster, found.has_files_of_its_own) == (master, in_cluster, has_files)


def test_tables_say_how_large_and_not_what_runs() -> None:
    settings = {"spark.executor.memory": "4g", "spark.executor.memoryOverhead": "1g", "spark.jars": "s3a://x/y.jar",
                "spark.driver.extraJavaOptions": "-javaagent:x", "spark.sql.shuffle.partitions": "9"}  # fmt: skip
    asked = replace(job("/t/_tmp"), settings=settings)
    found = SubmitCommand(("spark-submit", "--executor-memory", "1g")).line(asked, PROGRAM, None, "/d")
    assert found[3:-3] == [
        *("--executor-memory", "1g"),
        *("--executor-memory", "4g", "--conf=spark.executor.memoryOverhead=1g"),
    ]


def test_a_long_name_is_cut() -> None:
    assert len(line("spark-submit", name="n" * 1000)[-1]) == 200


def test_commands_that_cannot_work() -> None:
    with pytest.raises(SettingError, match="no Python driver"):
        SubmitCommand(("spark-submit", "--master", "spark://h:7077", "--deploy-mode", "cluster"))
    with pytest.raises(SettingError, match="names no command"):
        SubmitCommand(())


def test_settings_choose() -> None:
    warm = executor_for(CompactionConfig(spark_master="local[3]", spark_memory="2g"))
    assert isinstance(warm, WarmSparkExecutor)
    assert warm._command[1:] == [
        "-m",
        "hive_acid.spark.compact.compactor",
        "--master",
        "local[3]",
        "--driver-memory",
        "2g",
    ]
    remote = executor_for(CompactionConfig(spark_remote="sc://h:15002"))
    assert isinstance(remote, WarmSparkExecutor)
    assert remote._command[1:] == ["-m", "hive_acid.spark.compact.compactor", "--remote", "sc://h:15002"]
    submit = executor_for(CompactionConfig(spark_submit="spark-submit --master 'local[2]'"))
    assert isinstance(submit, SparkSubmitExecutor)
    assert submit._command == SubmitCommand(("spark-submit", "--master", "local[2]"))
    with pytest.raises(SettingError, match="two places"):
        executor_for(CompactionConfig(spark_submit="spark-submit", spark_remote="sc://h"))


SUBMIT = r"""#!/bin/sh
# The driver: the last argument is the directory where the job lies.
for last in "$@"; do :; done
grep -q '"location": "die"' "$last/job.json" && { echo "no cluster"; exit 4; }
printf '{"job_id": "app-1", "progress": null}' > "$last/progress.json"
grep -q '"location": "hang"' "$last/job.json" && sleep 60
grep -q '"location": "watch"' "$last/job.json" && sleep 2.5
answer='"ok": true, "rows": 3, "deletes": 0, "bytes": 99, "seconds": 0.5'
[ -n "$PYSPARK_PYTHON" ] && answer=$(echo "$answer" | sed 's/"deletes": 0/"deletes": 1/')
grep -q '"location": "fail"' "$last/job.json" && answer='"ok": false, "error": "no rows"'
printf '{"id": 7, %s}' "$answer" > "$last/result.json"
while [ $# -gt 0 ]; do [ "$1" = --py-files ] && cp "$2" "$last/../seen.zip"; shift; done
exit 0
"""


@pytest.fixture
def submit(tmp_path: Path) -> str:
    script = tmp_path / "submit"
    script.write_text(SUBMIT)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


@pytest.fixture
def staging(tmp_path: Path) -> str:
    (tmp_path / "t").mkdir()
    return str(tmp_path / "t" / "_tmp_spark_7_abc")


def test_submitted_job(submit: str, staging: str) -> None:
    told: list[JobProgress] = []
    result = SparkSubmitExecutor(SubmitCommand((submit,))).run(job(staging, "watch"), NEVER, told.append)
    assert (result.rows, result.deletes, result.size_bytes) == (3, 1, 99)
    assert told == [JobProgress("app-1", None)]
    assert files.list_tree(files.parent(staging)) == []


def test_what_a_job_told_last_is_heard_though_it_has_ended(submit: str, staging: str) -> None:
    """A quick one may end between two looks: without its id nobody finds it in the cluster's history."""
    told: list[JobProgress] = []
    SparkSubmitExecutor(SubmitCommand((submit,))).run(job(staging, "quick"), NEVER, told.append)
    assert told == [JobProgress("app-1", None)]


def test_driver_in_the_cluster_is_sent_hive_acid(
    submit: str, staging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no Python of this machine."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)  # of the tests' own sessions
    command = SubmitCommand((submit, "--master", "yarn", "--deploy-mode", "cluster"))
    assert SparkSubmitExecutor(command).run(job(staging), NEVER).deletes == 0
    seen = tmp_path / "t" / "seen.zip"
    code = (
        f"import sys; sys.path[:] = [{str(seen)!r}] + [p for p in sys.path if not p.startswith({str(Path.cwd())!r}) or "
        "'site-packages' in p]; sys.meta_path = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]; "
        "import hive_acid.spark.compact.compactor as c; print(c.__file__)"
    )
    told = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert told.stdout.strip() == f"{seen}/hive_acid/spark/compact/compactor.py", told.stderr


def test_submitted_job_that_fails(submit: str, staging: str) -> None:
    executor = SparkSubmitExecutor(SubmitCommand((submit,)))
    with pytest.raises(CompactionJobError, match="no rows") as raised:
        executor.run(job(staging, "fail"), NEVER)
    assert not isinstance(raised.value, BackendLostError)
    with pytest.raises(BackendLostError, match="status 4 and without a result: no cluster"):
        executor.run(job(staging, "die"), NEVER)
    with pytest.raises(BackendLostError, match="cannot start /no/such/submit"):
        SparkSubmitExecutor(SubmitCommand(("/no/such/submit",))).run(job(staging), NEVER)
    assert files.list_tree(files.parent(staging)) == []


def test_cancelled_job_is_withdrawn(submit: str, staging: str) -> None:
    """Its file is gone, by which a driver out of reach knows; and what we started has ended."""
    cancelled = threading.Event()
    threading.Timer(0.5, cancelled.set).start()
    started = time.monotonic()
    with pytest.raises(CompactionCancelledError):
        SparkSubmitExecutor(SubmitCommand((submit,))).run(job(staging, "hang"), cancelled)
    assert time.monotonic() - started < 10
    assert files.list_tree(files.parent(staging)) == []


def test_close_ends_what_runs(submit: str, staging: str) -> None:
    executor = SparkSubmitExecutor(SubmitCommand((submit,)))
    threading.Timer(0.5, executor.close).start()
    with pytest.raises(CompactionCancelledError):
        executor.run(job(staging, "hang"), NEVER)
