"""Pre-Hive-3 deltas, as Hive wrote them before version 3: updates and deletes stand among the inserts.

An update is one event under the id of the row that it replaces, a delete one with the operation 2, both in a directory
``delta_…`` beside the inserts (acid-format.md §5.7); of all events of a row the last one counts. Such directories have
no version marker, so only of those without one the files are asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import DirectoryKind
from hive_acid.format.rows import DELETE, INSERT, KEY
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.format.state import DataDirectory
from hive_acid.spark.read.scan import ScanDirectory, scan

_NTH = "__acid_nth"


def may_hold_updates(found: DataDirectory) -> bool:
    """Whether a directory has no version marker, so that its files have to be asked."""
    return found.directory.kind is DirectoryKind.INSERT_DELTA and not found.is_marked


def hold_updates(spark: SparkSession, location: str, found: Sequence[DataDirectory]) -> bool:
    """Whether any file of `found`, directories below `location`, has an event that is no insert."""
    wanted = [DataFilePath.of(location, file) for of in found for file in of.files if file.size]
    try:
        for tail in SHARED.read(wanted):
            column = tail.column("operation")
            highest = None if column is None else tail.statistics(column).maximum
            if tail.rows and not isinstance(highest, int):
                break
            if isinstance(highest, int) and highest > INSERT:
                return True
        else:
            return False
    except FormatError:
        pass
    # Statistics are missing or cannot be read here.
    directories = [ScanDirectory(files.join(location, of.name), of.directory, True) for of in found]
    events = scan(spark, t.StructType([]), directories, ValidWriteIdList("", 0))
    return bool(events.where(F.col("operation") > INSERT).limit(1).count())


def latest_events(events: DataFrame) -> DataFrame:
    """Of all events of each row of one partition the last one, unless that deletes it."""
    last_first = Window.partitionBy(*KEY).orderBy(F.col("currentTransaction").desc(), F.col("operation").desc())
    latest = events.withColumn(_NTH, F.row_number().over(last_first)).where(F.col(_NTH) == 1).drop(_NTH)
    return latest.where(F.col("operation") < DELETE)
