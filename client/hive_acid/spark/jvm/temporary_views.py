"""Whether a name is that of a temporary view, without a question to any catalogue of tables."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

_CATALOG = "_hive_acid_catalog"


def is_temporary_view(spark: SparkSession, name: str) -> bool:
    """Whether the session has a temporary view of that name, in whatever case it is written."""
    known: Any = spark
    if "_jsparkSession" in vars(known):
        catalog = vars(known).get(_CATALOG)
        if catalog is None:
            catalog = known._jsparkSession.sessionState().catalog()
            setattr(known, _CATALOG, catalog)
        return bool(catalog.getRawTempView(name).isDefined())
    text = "`" + name.replace("`", "``") + "`"
    return spark.catalog.tableExists(text) and spark.catalog.getTable(text).isTemporary
