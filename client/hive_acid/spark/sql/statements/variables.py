"""``${name}`` in a statement, which stands for a setting of the session: Spark replaces it in what it is given."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pyspark.sql import SparkSession

from hive_acid.errors import SqlError
from hive_acid.spark.jvm.session_settings import is_on

_SETTING = "spark.sql.variable.substitute"
_VARIABLE = re.compile(r"\$\{(?:(\w+?):)?(\S+?)\}")
_OF_SESSION = frozenset({None, "spark", "sparkconf", "hivevar", "hiveconf"})


def substituted(spark: SparkSession, text: str) -> str:
    """`text` with the values of its variables, as Spark would have it: nothing for what is no setting.

    Those of Spark's process (``${env:HOME}``) stay, for Spark to replace. Raises SqlError for one that means itself.
    """
    if "${" not in text or not is_on(spark, _SETTING, default=True):
        return text
    return _replaced(text, spark.conf.getAll, ())


def _replaced(text: str, settings: Mapping[str, str], within: tuple[str, ...]) -> str:
    def value(found: re.Match[str]) -> str:
        kind, name = found[1], found[2]
        if kind not in _OF_SESSION:
            return found[0]
        if name in within:
            raise SqlError(f"the variable {name} stands for itself")
        return _replaced(settings.get(name, ""), settings, (*within, name))

    return _VARIABLE.sub(value, text)
