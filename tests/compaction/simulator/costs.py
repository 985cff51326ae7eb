"""What a reading and a compaction take, in CPU seconds: the measured figures of docs/benchmarks.md."""

from __future__ import annotations

from dataclasses import dataclass

MB = 1 << 20


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds for one of each.

    A reading plans, opens files, reads bytes, and more slowly those of files of which rows are deleted; it reads delete
    files. A compaction is a job, opens files, reads and writes bytes (by pyarrow, or by Spark), or copies stripes.
    """

    reading: float = 0.1
    read_file: float = 0.001
    read_columns_of_file: float = 0.005
    read_mb: float = 0.017
    touched_mb: float = 0.0015
    read_delete_file: float = 0.003
    read_delete_event: float = 0.33e-6
    job: float = 0.15
    merged_file: float = 0.005
    written_mb_by_arrow: float = 0.04
    spark_job: float = 0.8
    written_mb_by_spark: float = 0.096
    copied_mb: float = 0.002
    merged_delete_event: float = 1e-6


MEASURED = Costs()
