"""Minor and major compaction: the same rows with the same ROW__IDs in fewer files."""

import json
import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

from hive_acid.compaction_job import CompactionJob
from hive_acid.errors import FormatError
from hive_acid.format.names import parse_directory
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, events, location_of
from tests.spark.compaction import compact_table, plan

COLUMNS = {"id": "int", "name": "string", "at": "timestamp"}
ABORTED = {"name": "'aborted'"}


@pytest.fixture
def history(acid: AcidSession, spark: SparkSession) -> Any:
    """Several buckets, updates, deletes, and an aborted write in two partitions."""
    acid.create_table("d.t", COLUMNS, partitioned_by={"p": "int"})
    rows = (
        "int(id) id",
        "concat('n', id) name",
        "timestamp_micros(id * 1000003 - 5000000000000000) at",
        "int(id % 2) p",
    )
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        for first in (0, 100, 200):
            acid.insert("d.t", spark.range(first, first + 100).repartition(3).selectExpr(*rows))
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
    acid.update("d.t", {"name": "'u'"}, "id % 10 = 0")
    acid.delete("d.t", "id % 7 = 0")
    with pytest.raises(InterruptedError), acid.transaction() as transaction:
        acid.update("d.t", ABORTED, "id = 2")
        transaction._undo.clear()  # its files stay, as those of a writer that was killed
        raise InterruptedError
    acid.update("d.t", {"name": "'again'"}, "id % 20 = 10")
    return acid


def content(acid: AcidSession, row_id: Any = True) -> Any:
    return sorted(map(str, acid.table("d.t", row_id=row_id).collect()))


@pytest.mark.parametrize("kinds", [["minor", "major"], ["major", "minor"]])
def test_rows_and_their_ids_stay(history: Any, spark: SparkSession, kinds: Any) -> None:
    before = content(history)
    old = history.table("d.t")
    for kind in kinds:
        assert len(compact_table(spark, history, "d.t", kind)) in (0, 2)
        check_table(location_of(history, "d.t"))
        assert content(history) == before
    assert old.count() == len(before)
    history.update("d.t", {"name": "'after'"}, "id < 5")
    history.delete("d.t", "id = 1")
    assert history.table("d.t").where("name = 'after'").count() == len([i for i in range(5) if i % 7 and i != 1])
    check_table(location_of(history, "d.t"))


def test_a_major_compaction_makes_one_sorted_base(history: Any, spark: SparkSession) -> None:
    compact_table(spark, history, "d.t", "major")
    state = check_table(location_of(history, "d.t"))
    bases = {name: files for name, files in state.items() if "base_" in name}
    assert sorted(parse_directory(name.rpartition("/")[2]).max_write_id for name in bases) == [5, 7]  # type: ignore[union-attr]
    assert all(len(files) == 3 for files in bases.values())
    assert sum(len(of_file) for files in bases.values() for of_file in files.values()) == len(content(history))


def test_a_minor_compaction_keeps_deletes_and_drops_aborted_events(history: Any, spark: SparkSession) -> None:
    results = compact_table(spark, history, "d.t", "minor")
    assert all(len(result.directories) == 2 for result in results)
    state = check_table(location_of(history, "d.t"))
    compacted = {n: f for n, f in state.items() if parse_directory(n.rpartition("/")[2]).visibility_txn_id}  # type: ignore[union-attr]
    assert sorted(name.rpartition("_v")[0] for name in compacted) == [
        "p=0/delete_delta_0000001_0000007",
        "p=0/delta_0000001_0000007",
        "p=1/delete_delta_0000001_0000005",
        "p=1/delta_0000001_0000005",
    ]
    found = [event for files in compacted.values() for of_file in files.values() for event in of_file]
    assert {event.current_write_id for event in found} == {1, 2, 3, 4, 5, 7}
    rows = [event.row for event in found if event.row]
    assert any(row[1] == "aborted" for f in state.values() for of_file in f.values() for e in of_file if (row := e.row))
    assert all(row[1] != "aborted" for row in rows)
    assert sum(result.rows for result in results) == len(rows) > len(content(history))


def test_nothing_left_still_makes_a_base_that_is_seen(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id"))
    acid.delete("d.t")
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert (result.rows, result.deletes) == (0, 0)
    (base,) = [name for name in check_table(location_of(acid, "d.t")) if name.startswith("base_")]
    assert events(location_of(acid, "d.t") / base / "bucket_00000") == []
    assert acid.table("d.t").count() == 0
    acid.insert("d.t", spark.range(3).selectExpr("int(id) id"))
    assert acid.table("d.t").count() == 3


def test_a_row_deleted_twice_has_one_event_after_a_minor_compaction(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id"))
    acid.delete("d.t", "id IN (3, 5)")
    acid.delete("d.t", "id IN (7, 8)")
    # The same events again, as two writers would leave them that no one has checked for conflicts.
    location = location_of(acid, "d.t")
    twice = location / "delete_delta_0000003_0000003_0000" / "bucket_00000"
    first = pyarrow.orc.ORCFile(location / "delete_delta_0000002_0000002_0000" / "bucket_00000").read()
    second = pyarrow.orc.ORCFile(twice).read()
    both = pyarrow.concat_tables([first, second]).sort_by("rowId")
    both = both.set_column(4, "currentTransaction", pyarrow.array([3] * 4, pyarrow.int64()))
    both = both.set_column(5, "row", pyarrow.nulls(4, second.schema.field("row").type))
    (location / "delete_delta_0000003_0000003_0000" / ".bucket_00000.crc").unlink(missing_ok=True)
    pyarrow.orc.write_table(both, twice)
    assert sorted(r.id for r in acid.table("d.t").collect()) == [0, 1, 2, 4, 6, 9]
    (result,) = compact_table(spark, acid, "d.t", "minor")
    assert result.deletes == 4
    assert sorted(r.id for r in acid.table("d.t").collect()) == [0, 1, 2, 4, 6, 9]


def test_timestamps_survive_whatever_the_zone_of_who_wrote_them(
    acid: AcidSession, spark: SparkSession, tmp_path: Path
) -> None:
    """Wall clocks that some zones do not have, written by a process in New York, compacted by one in UTC."""
    acid.create_table("d.t", {"id": "int", "at": "timestamp"})
    clocks = ["2013-03-10 01:59:59.999999", "2013-03-10 03:00:00", "2013-11-03 01:30:00", "1883-11-18 12:00:00",
              "1500-03-01 00:00:00", "9999-12-31 23:59:59.999999"]  # fmt: skip
    for i, clock in enumerate(clocks):
        acid.insert("d.t", spark.sql(f"SELECT {i} id, timestamp'{clock}' at"))
    before = [str(r.at) for r in acid.table("d.t").orderBy("id").selectExpr("string(at) at").collect()]
    assert before == [clock.removesuffix(".0") for clock in clocks]
    compact_table(spark, acid, "d.t", "major")
    assert [str(r.at) for r in acid.table("d.t").orderBy("id").selectExpr("string(at) at").collect()] == before


def test_jobs_that_cannot_be_understood_are_refused() -> None:
    good = {
        "id": 1, "type": "major", "location": "/t", "staging": "/t/_tmp_spark_1_x", "schema": [["id", "int"]],
        "write_ids": "d.t:1:9223372036854775807::", "data": [["delta_0000001_0000001_0000", "all"]], "deletes": [],
        "insert_output": "base_0000001_v0000001", "delete_output": None, "compression": "zlib",
    }  # fmt: skip
    assert CompactionJob.from_json(good).type == "major"
    for change in (
        {"type": "rebalance"},
        {"buckets": 3},
        {"type": "tidy"},
        {"data": [["delta_x", "all"]]},
        {"data": [["delta_0000001_0000001_0000", "most"]]},
        {"write_ids": "nonsense"},
        {"insert_output": None},
        {"schema": [["id"]]},
    ):
        with pytest.raises(FormatError):
            CompactionJob.from_json({**good, **change})


def test_the_process_answers_each_line_with_a_line(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int"})
    for i in range(3):
        acid.insert("d.t", spark.createDataFrame([(i,)], "id int"))
    table = acid.connection.table("d", "t")
    with acid.connection.begin() as transaction:
        job = plan(transaction, table, table.location, "minor")
        lines = [job, "nonsense", "", json.dumps({"id": 9, "type": "minor"})]
        command = [sys.executable, "-m", "hive_acid.spark.compact.compactor", "--driver-memory", "512m"]
        # What a client of Spark Connect has in its environment is not for a Spark of the process's own.
        words = {"SPARK_REMOTE": "sc://elsewhere:1", "SPARK_CONNECT_MODE_ENABLED": "1"}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | words
        ) as process:
            process.stdin.write("\n".join(lines) + "\n")  # type: ignore[arg-type, union-attr]
            process.stdin.flush()  # type: ignore[union-attr]
            said: list[Any] = []
            while sum("ok" in answer for answer in said) < 3:
                said.append(json.loads(process.stdout.readline()))  # type: ignore[union-attr]
            process.stdin.close()  # type: ignore[union-attr]
            assert process.stdout.read() == "", "nothing but answers"  # type: ignore[union-attr]
        assert process.returncode == 0
    answers = {answer["id"]: answer for answer in said if "ok" in answer}
    assert {job_id: answer["ok"] for job_id, answer in answers.items()} == {7: True, None: False, 9: False}
    done = answers[7]
    assert (done["rows"], done["files"]) == (3, 1)
    assert done["directories"] == [json.loads(job)["insert_output"]]  # type: ignore[arg-type]
    assert done["input_bytes"] > done["bytes"] > 0
    assert "JSONDecodeError" in answers[None]["error"]
    assert "location" in answers[9]["error"]
    told = [answer["progress"] for answer in said if "progress" in answer]
    phases = [progress["phase"] for progress in told]
    assert [phase for phase, _ in groupby(phases)] == ["listing", "rows (pyarrow, bucket by bucket)", "written"]
    assert len(phases) > 3
    assert told[-1] == {"rows": 3, "files": 1, "bytes_written": done["bytes"], "phase": "written"}
