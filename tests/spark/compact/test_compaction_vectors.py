"""The vectors of acid-format.md §8 as directories of ORC files, compacted by Spark: everybody reads on.

`tests/compaction/test_vectors.py` proves the plans with lines of JSON; here the product's reader and writer carry them
out, on every shape of directory that the vectors know.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

from hive_acid.compaction_job import CompactionJob
from hive_acid.filesystem import files
from hive_acid.format.names import (
    VERSION_CONTENT,
    VERSION_MARKER,
    claims_to_be_data,
    parse_bucket_file,
    parse_directory,
    parse_original_file,
)
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.format.rows import INSERT, RowEvent, check_file, encode_bucket
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.spark.compact.compaction import compact
from metastore.compaction.models import Storage, TableInfo
from metastore.compaction.plan import CompactionPlan, compaction_input
from metastore.compaction.states import CompactionType
from metastore.compaction.worker.job import compaction_job
from metastore.compaction.worker.output import check_output, publish_output
from tests.compaction.test_vectors import LATER, READABLE, OnDisk
from tests.crash.steps import ALL_STEPS
from tests.spark.checker import COLUMNS, events

ROW = pa.struct([("id", pa.int32())])
SCHEMA = pa.schema(list(zip(COLUMNS, (pa.int32(), pa.int64(), pa.int32(), pa.int64(), pa.int64(), ROW), strict=True)))


class OrcOnDisk(OnDisk):
    """A vector's directory with ORC files; each of the originals has one row."""

    def _content(self, path: str) -> bytes:
        if path.endswith(VERSION_MARKER):
            return VERSION_CONTENT
        if not claims_to_be_data(path.partition("/")[0]):
            return _orc(pa.table({"id": pa.array([1], pa.int32())}))
        rows = [RowEvent(*json.loads(line)) for line in super()._content(path).decode().splitlines()]
        if _is_raw(path):
            return _orc(pa.table({"id": pa.array([event.row_id for event in rows], pa.int32())}))
        return _orc(
            pa.Table.from_pylist(
                [
                    dict(zip(COLUMNS, (*event[:5], event.row and {"id": event.row_id}), strict=True))
                    for event in sorted(rows)
                ],
                SCHEMA,
            )
        )

    def _read(self, path: str) -> list[RowEvent]:
        directory = parse_directory(path.partition("/")[0])
        if directory is not None and _is_raw(path):
            rows = pyarrow.orc.ORCFile(Path(self.location, path)).nrows
            write_id, bucket = directory.max_write_id, encode_bucket(0, directory.statement_id or 0)
            return [RowEvent(INSERT, write_id, bucket, number, write_id, None) for number in range(rows)]
        if directory is not None:
            return events(Path(self.location, path))
        number = parse_original_file(path.rpartition("/")[2]) or 0
        return [RowEvent(INSERT, 0, encode_bucket(number), self._originals(number).index(path), 0, None)]

    def _originals(self, number: int) -> list[str]:
        """Those of a bucket, in the order in which their rows are counted."""
        names = (path for path, _ in self.vector.entries() if not claims_to_be_data(path.partition("/")[0]))
        return sorted(path for path in names if parse_original_file(path.rpartition("/")[2]) == number)

    def carry_out_by(self, spark: SparkSession, plan: CompactionPlan) -> None:
        found = compaction_input(files.list_tree(self.location), self.write_ids, self.txns, self._metadata)
        table = TableInfo(self.location, (("id", "int"),), (), {"transactional": "true"}, {}, Storage("", "", {}, ()))
        asked = SimpleNamespace(id=7, properties={}, order_by=None, buckets=None)
        staging = files.join(self.location, "_tmp_compaction")
        job = compaction_job(asked, table, self.location, staging, found, plan, DEFAULT_COMPRESSION).to_json()  # type: ignore[arg-type]
        made = compact(spark, CompactionJob.from_json(json.loads(job))).directories
        check_output(staging, made)
        publish_output(staging, self.location, made)
        for name in made:
            for path in Path(self.location, name).glob("bucket_*"):
                check_file(path.name, events(path))


def _is_raw(path: str) -> bool:
    """Whether it is the name of a file without ids, as LOAD DATA leaves them."""
    return parse_bucket_file(path.rpartition("/")[2]) is None


def _orc(table: pa.Table) -> bytes:
    with io.BytesIO() as made:
        pyarrow.orc.write_table(table, made, compression="zlib")
        return made.getvalue()


@pytest.mark.spark
@pytest.mark.slow
def test_everybody_reads_on(spark: SparkSession, tmp_path: Path) -> None:
    compacted = 0
    for number, vector in enumerate(READABLE):
        for kind in _kinds(number):
            on_disk = OrcOnDisk(vector, tmp_path / f"{vector.id}-{kind.value}")
            rows = on_disk.rows()
            plan = None if vector.compactor else on_disk.plan(kind)
            if plan is None:
                continue
            on_disk.carry_out_by(spark, plan)
            after = ValidTxnList(LATER, on_disk.txns.open_ids, on_disk.txns.aborted_ids)
            assert on_disk.rows() == rows, (vector, kind)
            assert on_disk.rows(after) == rows, (vector, kind)
            on_disk.clean(after)
            assert on_disk.rows(after) == rows, (vector, kind)
            compacted += 1
    assert compacted >= (35 if ALL_STEPS else 15)


def _kinds(number: int) -> tuple[CompactionType, ...]:
    """Both in a long run, else by turns."""
    kinds = (CompactionType.MINOR, CompactionType.MAJOR)
    return kinds if ALL_STEPS else (kinds[number % 2],)
