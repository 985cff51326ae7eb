"""The time-zone guard: Spark stores a timestamp as the wall clock of its JVM, not of its session.

Where the two zones differ, every timestamp would shift by the difference (acid-format.md §7.1), so tables with
timestamps are neither read nor written then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyspark.sql import SparkSession, types
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column
from hive_acid.errors import TimeZoneMismatchError, UnsupportedTableError
from hive_acid.spark.values.types import has_timestamp, row_type

UTC = frozenset({"UTC", "Etc/UTC", "GMT", "Z"})
"""Names of the zone in which pyarrow writes timestamps."""

_FIXED = re.compile(r"Z|UTC|(?:UTC|GMT|UT)?[+-]\d\d?(?::\d\d)?|(?:Etc/)?(?:UTC|GMT|Zulu|Universal)")
_FIRST_DAY, _LAST_DAY = "1800-01-01", "2100-01-01"
"""Before the first one all clocks show local mean time, as the first zones were made then."""


def session_zone(spark: SparkSession) -> str:
    """The zone in which the session shows timestamps."""
    return str(spark.conf.get("spark.sql.session.timeZone"))


def jvm_zone(spark: SparkSession) -> str:
    """The default zone of the JVM that runs the tasks.

    To ask it in a task takes a new session most of a second. Where tasks run in the driver, that is asked.
    """
    context: Any = vars(spark).get("_sc")
    if context is not None and context._jsc.isLocal():
        return str(context._jvm.java.time.ZoneId.systemDefault().getId())
    zone = F.call_function("java_method", F.lit("java.time.ZoneId"), F.lit("systemDefault"))
    return str(spark.range(1).select(zone).collect()[0][0])


def refuse_zone_with_gaps(spark: SparkSession, columns: Iterable[Column]) -> None:
    """Refuse to rewrite rows with timestamps in a zone that skips hours, as for summer time: a wall clock that another
    zone's writer has stored may not exist there, and would come out an hour later.

    Raises UnsupportedTableError.
    """
    zone = session_zone(spark)
    if has_timestamp(row_type(columns)) and not has_one_offset(zone):
        raise UnsupportedTableError(
            f"timestamps cannot be kept as they are by a Spark whose JVM is in {zone}, where clocks are changed: start "
            "it with -Duser.timezone=UTC in spark.driver.extraJavaOptions and spark.executor.extraJavaOptions"
        )


def is_offset(zone: str) -> bool:
    """Whether a zone, by its Java name, is UTC or so many hours from it."""
    return _FIXED.fullmatch(zone) is not None


def has_one_offset(zone: str) -> bool:
    """Whether the clocks of a zone, by its Java name, have never been changed; False if that is not known."""
    if is_offset(zone):
        return True
    try:
        found = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    start = datetime.fromisoformat(_FIRST_DAY)
    weeks = (datetime.fromisoformat(_LAST_DAY) - start).days // 7
    return len({found.utcoffset(start + timedelta(weeks=week)) for week in range(weeks)}) == 1


class ZoneGuard:
    """Refuses timestamps under differing zones; asks the JVM once, and again when the session's zone changes."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm_zone: str | None = None
        self._agreeing: set[str] = set()

    def check(self, schema: types.StructType) -> None:
        """Raise TimeZoneMismatchError if `schema` has timestamps and the session's zone is not the JVM's."""
        if not has_timestamp(schema):
            return
        zone = session_zone(self._spark)
        if zone in self._agreeing:
            return
        if self._jvm_zone is None:
            self._jvm_zone = jvm_zone(self._spark)
        if zone != self._jvm_zone and not self._are_equivalent(zone, self._jvm_zone):
            raise TimeZoneMismatchError(
                f"timestamps would shift: Spark's session is in {zone}, its JVM in {self._jvm_zone}. "
                f"Set spark.sql.session.timeZone to {self._jvm_zone}, or start Spark with -Duser.timezone={zone} in "
                f"spark.driver.extraJavaOptions and spark.executor.extraJavaOptions."
            )
        self._agreeing.add(zone)

    def _are_equivalent(self, one: str, other: str) -> bool:
        """Whether two names mean the same rules: their offsets agree on every day of three centuries."""
        days = F.explode(F.sequence(F.lit(_FIRST_DAY).cast("date"), F.lit(_LAST_DAY).cast("date")))
        instants = (
            self._spark.range(1).select(days.alias("day")).select(F.col("day").cast(types.TimestampType()).alias("at"))
        )
        differ = F.from_utc_timestamp("at", one) != F.from_utc_timestamp("at", other)
        return instants.where(differ).limit(1).count() == 0
