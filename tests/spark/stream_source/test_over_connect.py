"""Streams of tables over Spark Connect: the same as a classic session's, whatever is killed, and nothing stays behind.

What both kinds of sessions do is in `test_stream`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import UnsupportedTableError
from hive_acid.format.names import parse_staging
from hive_acid.spark import AcidSession
from hive_acid.spark.stream_source.connect_source import ServedStream
from hive_acid.spark.stream_source.server_session import ServerSession, is_known
from tests.jvm import FOR_SPARK
from tests.ports import await_port, free_port
from tests.served import served
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT
from tests.spark.house import House
from tests.spark.stream_source.classic_follower import KINDS, following, without_connect
from tests.spark.stream_source.taken import Taken
from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import TYPES, stored
from tests.waiting import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not OVER_CONNECT, reason="of a client of Spark Connect alone"),
]


@pytest.fixture
def place(acid: AcidSession) -> Path:
    """Where ``d.t`` is, which has two rows."""
    acid.create_table("d.t", {"id": "int", "n": "int"})
    acid.sql("INSERT INTO d.t VALUES (1, 10), (2, 20)")
    return Path(acid.connection.table("d", "t").location.removeprefix("file:"))


def _staged(place: Path) -> list[Path]:
    return [found for found in place.iterdir() if parse_staging(found.name) is not None]


def _open(acid: AcidSession) -> list[Any]:
    return [row for row in acid.sql("SHOW TRANSACTIONS").collect() if row.state.lower() == "open"]


def test_nothing_stays_behind(acid: AcidSession, place: Path, tmp_path: Path) -> None:
    """What is staged of a batch goes with the next one, or with the query, and so does the transaction behind it."""
    taken = Taken(tmp_path / "taken")
    writer = acid.read_stream("d.t").writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="0 seconds").foreachBatch(taken).start()
    try:
        until(lambda: 0 in taken.batches)
        (first,) = _staged(place)
        acid.sql("INSERT INTO d.t VALUES (3, 30)")
        until(lambda: 1 in taken.batches)
        (second,) = _staged(place)
        assert second != first
        (lease,) = _open(acid)
        assert int(lease.txnid) == parse_staging(second.name)
    finally:
        query.stop()
    until(lambda: not _staged(place))
    until(lambda: not _open(acid))


def test_a_source_that_is_killed(
    acid: AcidSession, spark: SparkSession, postgres_url: str, template: str, tmp_path: Path
) -> None:
    """Its query ends and begins again; what it has left the Cleaner removes once its transaction is over."""
    with (
        served(postgres_url, template, tmp_path / "warehouse") as server,
        hive_acid.spark.session(spark, server.uri) as own,
    ):
        own.create_database("d")
        own.create_table("d.t", {"id": "int"})
        own.sql("INSERT INTO d.t VALUES (1)")
        place = tmp_path / "warehouse" / "d.db" / "t"
        begun = tmp_path / "begun"

        def look(frame: Any) -> Any:
            if begun.exists():
                return sorted(map(tuple, frame.collect()))
            begun.touch()
            return signal.pause()

        def started(**trigger: Any) -> Any:
            writer = own.read_stream("d.t").writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            return writer.trigger(**trigger).foreachBatch(Taken(tmp_path / "taken", look)).start()

        query = started(processingTime="0 seconds")
        until(begun.exists)
        (left,) = _staged(place)
        os.kill(_source_of(left), signal.SIGKILL)
        query.stop()
        started(availableNow=True).awaitTermination()
        assert Taken(tmp_path / "taken").batches == {0: [(1,)]}
        assert left in _staged(place)
        own.connection.abort_transactions([parse_staging(left.name) or 0])  # as its time-out would
        own.sql("INSERT INTO d.t VALUES (2)")
        house = House(server.db, tmp_path / "warehouse", spark)
        house.compact("d.t", "major", [None])
        house.clean()
        until(lambda: not _staged(place))


def _source_of(_: Path) -> int:
    """The process that answers for the only query."""
    processes = [(int(of.name), (of / "cmdline").read_bytes()) for of in Path("/proc").iterdir() if of.name.isdigit()]
    ours = str(Path(sys.executable).parent).encode()
    (found,) = [pid for pid, said in processes if b"python_streaming_source_runner" in said and ours in said]
    return found


_CLIENT = """
import signal
from pyspark.sql import SparkSession
import hive_acid.spark
spark = SparkSession.builder.remote("sc://localhost:{port}").getOrCreate()
acid = hive_acid.spark.session(spark, "{uri}")
writer = acid.read_stream("d.t").writeStream.option("checkpointLocation", "{checkpoint}")
query = writer.trigger(processingTime="0 seconds").start("{copied}", format="parquet")
signal.pause()
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_client_that_is_killed_and_then_its_server(acid: AcidSession, place: Path, tmp_path: Path) -> None:
    """The query of a killed client goes on, here on a single core; that of a killed server is begun again elsewhere."""
    copied, checkpoint = str(tmp_path / "copied"), str(tmp_path / "checkpoint")

    def rows() -> list[Any]:
        return _rows_of(acid, copied)

    with _served_by_connect(tmp_path) as port:
        with _copying(acid, port, checkpoint, copied):
            until(lambda: rows() == [(1, 10), (2, 20)], 120)
        acid.sql("INSERT INTO d.t VALUES (3, 30)")
        until(lambda: len(rows()) == 3, 120)
        acid.sql("INSERT INTO d.t VALUES (4, 40)")
        until(lambda: len(_staged(place)) == 1 or len(rows()) == 4)
    writer = acid.read_stream("d.t").writeStream.option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(copied, format="parquet").awaitTermination()
    assert rows() == [(1, 10), (2, 20), (3, 30), (4, 40)]
    until(lambda: not _staged(place))


def test_a_session_that_the_server_has_forgotten(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that nobody has used for an hour, between two batches: that is noticed, and there is another one."""
    monkeypatch.setenv("SPARK_LOCAL_REMOTE", os.environ.get("SPARK_LOCAL_REMOTE", "1"))
    server = ServerSession.of(spark)
    session: Any = server.clone()
    assert is_known(session)
    session.client.release_session()
    assert not is_known(session)
    another = server.clone()
    assert is_known(another)
    another.stop()
    assert not is_known(another)
    assert spark.range(2).count() == 2


def _rows_of(acid: AcidSession, copied: str) -> list[Any]:
    with suppress(AnalysisException):  # there is none yet
        return sorted(map(tuple, acid.spark.read.parquet(copied).collect()))
    return []


@contextmanager
def _copying(acid: AcidSession, port: int, checkpoint: str, copied: str) -> Iterator[None]:
    """A client of a server has a query running there; it is killed at the end."""
    told = {"port": port, "uri": acid.connection.uri, "checkpoint": checkpoint, "copied": copied}
    client = subprocess.Popen([sys.executable, "-c", _CLIENT.format(**told)], env=without_connect())
    try:
        yield
    finally:
        client.kill()
        client.wait()


@contextmanager
def _served_by_connect(room: Path) -> Iterator[int]:
    """The port of a server as an operator starts it, which is killed at the end."""
    port, log = free_port(), room / "connect.log"
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = {"spark.connect.grpc.binding.port": port, "spark.ui.enabled": "false"}
    command = [submit, "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[1]"]
    command += ["--driver-memory", "1g", "--driver-java-options", "-Duser.timezone=UTC"]
    command += [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    environment = {**without_connect(), **FOR_SPARK, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*command, "spark-internal"], stdout=out, stderr=out, env=environment, start_new_session=True
        )
    try:
        await_port(port, server, log)
        yield port
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_as_in_a_classic_session(acid: AcidSession, tmp_path: Path, seed: int) -> None:
    """Of a table with all types, while it is changed and compacted in any way: batch for batch, value for value."""
    chance = random.Random(seed)
    names = [f"c{place}" for place in range(len(TYPES))]
    acid.create_table("d.t", {"id": "int", **dict(zip(names, TYPES, strict=True))})
    values = {name: stored(kind) for name, kind in zip(names, TYPES, strict=True)}
    taken = Taken(tmp_path / "here" / "taken", lambda frame: rows_of(frame, list(KINDS)))

    def some() -> str:
        return ", ".join(f"{chance.choice(values[name]).sql} AS {name}" for name in names)

    def insert() -> None:
        lines = [f"SELECT {chance.randrange(20)} AS id, {some()}" for _ in range(chance.randint(1, 5))]
        acid.insert("d.t", acid.spark.sql(" UNION ALL ".join(lines)))

    def update() -> None:
        name = chance.choice(names)
        acid.table("d.t").update({name: chance.choice(values[name]).sql}, f"id % 3 = {chance.randrange(3)}")

    def delete() -> None:
        acid.delete("d.t", f"id % 5 = {chance.randrange(5)}")

    def compact() -> None:
        compact_table(acid.spark, acid, "d.t", chance.choice(("major", "minor")))

    with following(acid.connection.uri, tmp_path / "classic") as drain:
        for _ in range(3):
            for change in chance.choices((insert, insert, update, delete, compact), k=4):
                change()
            drain()
            writer = acid.read_stream("d.t").writeStream
            writer = writer.option("checkpointLocation", str(tmp_path / "here" / "checkpoint"))
            writer.trigger(availableNow=True).foreachBatch(taken).start().awaitTermination()
    here, classic = (
        {batch: Counter(map(exactly, rows)) for batch, rows in of.batches.items() if rows}
        for of in (taken, Taken(tmp_path / "classic" / "taken"))
    )
    assert here
    assert here == classic


def test_settings_of_arrow(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    """Those of the session shape what Spark gives to Python; a source has its own form."""
    acid.create_table("d.t", {"s": "string", "b": "binary", "a": "array<string>"})
    acid.sql("INSERT INTO d.t VALUES ('x', X'00', array('y', null)), (null, null, null), ('', X'', array())")
    settings = {
        "spark.sql.execution.arrow.useLargeVarTypes": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    }
    taken = Taken(tmp_path / "taken", lambda frame: sorted(map(repr, frame.collect())))
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        writer = acid.read_stream("d.t").writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).foreachBatch(taken).start().awaitTermination()
        assert taken.batches[0] == sorted(map(repr, acid.table("d.t").collect()))
    finally:
        for key in settings:
            spark.conf.unset(key)


_PROGRAM = """
import sys
from pyspark.sql import SparkSession
import hive_acid.spark
from tests.spark.conftest import started
acid = hive_acid.spark.session(started(), "{uri}")
try:
    acid.read_stream("d.t")
except hive_acid.errors.UnsupportedTableError as error:
    print("refused:", error)
"""


def test_a_server_without_hive_acid(acid: AcidSession, place: Path, tmp_path: Path) -> None:
    """Its Python is another than the client's, as on another machine."""
    other = tmp_path / "python"
    other.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="{tmp_path}:$PYTHONPATH"\nexec {sys.executable} "$@"\n', encoding="utf-8"
    )
    other.chmod(0o755)
    missing = "raise ModuleNotFoundError(\"No module named 'hive_acid'\")"
    (tmp_path / "hive_acid.py").write_text(missing, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(uri=acid.connection.uri)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": str(other)},
    )
    assert "refused: d.t is not read as a stream, since the Python of the Spark Connect server has no" in done.stdout
    assert "pip install 'hive-acid[spark,connect]'" in done.stdout


def test_another_release_on_the_server() -> None:
    with pytest.raises(UnsupportedTableError, match=r"has hive-acid .*, and its client 0\.0\.1: install"):
        ServedStream.parse({"version": "0.0.1", "token": ""})


def test_a_batch_that_fails_says_why(acid: AcidSession, place: Path, tmp_path: Path) -> None:
    """In the words of its cause, without the ways that it took."""
    frame = acid.read_stream("d.t")
    acid.drop_table("d.t")
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(tmp_path / "copied"), format="parquet")
    with pytest.raises(StreamingQueryException, match=r"there is no table d\.t any more"):
        query.awaitTermination()
