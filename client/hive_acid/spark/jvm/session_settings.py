"""What a Spark session is set to: what was analysed under other settings may mean something else by now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from pyspark.sql import SparkSession

from hive_acid.spark.jvm.job_settings import configured

_TIME_ZONE = "spark.sql.session.timeZone"


def is_on(spark: SparkSession, setting: str, default: bool = False) -> bool:
    """Whether a setting is true. Spark takes ``TRUE`` for it, too."""
    found = word(spark, setting)
    return default if found is None else found == "TRUE"


def word(spark: SparkSession, setting: str) -> str | None:
    """The value of a setting whose values are words, in capitals; None where nobody has set it.

    Spark keeps it as it was written, and reads it in any case.
    """
    found = spark.conf.get(setting, None)
    return None if found is None else found.strip().upper()


@dataclass(frozen=True, slots=True, eq=False)
class SessionSettings:
    """The settings of a session at one moment; None over Connect, where what a frame says is analysed anew each time.

    `values` is a map of the JVM's, or what the server of Connect has said.
    """

    values: Any

    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        """Those of this moment."""
        session: Any = vars(spark).get("_jsparkSession")
        return cls(None if session is None else session.sessionState().conf().getAllConfs())

    @classmethod
    def asked(cls, spark: SparkSession) -> Self:
        """Those of this moment, over Connect too, where the server is asked."""
        found = cls.of(spark)
        return cls(dict(spark.conf.getAll)) if found.values is None else found

    @contextmanager
    def zone_of(self, spark: SparkSession) -> Iterator[None]:
        """Within the block the session has the time zone of that moment, by which texts of partitions are times."""
        if self.are_those_of(spark):
            yield
            return
        found = self.values.get(_TIME_ZONE)
        with configured(spark, {_TIME_ZONE: found.get()} if found.isDefined() else {}):
            yield

    def are_those_of(self, spark: SparkSession) -> bool:
        """Whether the session has them still."""
        return self.values is None or self.are(SessionSettings.of(spark))

    def are(self, other: SessionSettings) -> bool:
        """Whether these are those of another moment, of a session that is not over Connect or was `asked`."""
        is_of_server = isinstance(self.values, dict)
        return bool(self.values == other.values if is_of_server else self.values.equals(other.values))
