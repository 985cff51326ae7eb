"""A setting means the same however it is written, since Spark reads ``TRUE`` and ``timestamp_ntz``, too."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.session import AcidSession

Story = Callable[[AcidSession], object]


def _refused(acid: AcidSession, table: str) -> str:
    with pytest.raises(UnsupportedTableError) as refused:
        acid.table(table)
    return str(refused.value)


def _variable(acid: AcidSession) -> object:
    return acid.sql("SELECT '${spark.sql.session.timeZone}' AS zone").collect()


def _wall_clock(acid: AcidSession) -> object:
    return acid.sql("SELECT :at AS at", {"at": datetime(2020, 1, 2, 3)}).schema


STORIES: dict[tuple[str, str], Story] = {
    ("spark.sql.legacy.charVarcharAsString", "true"): lambda acid: _refused(acid, "d.c"),
    ("spark.sql.legacy.noCharPaddingInPredicate", "true"): lambda acid: _refused(acid, "d.c"),
    ("spark.sql.parser.quotedRegexColumnNames", "true"): lambda acid: _refused(acid, "d.odd"),
    ("spark.sql.variable.substitute", "false"): _variable,
    ("spark.sql.timestampType", "TIMESTAMP_NTZ"): _wall_clock,
}


@pytest.mark.parametrize(("setting", "value"), STORIES)
def test_a_setting_means_the_same_however_it_is_written(
    acid: AcidSession, spark: SparkSession, setting: str, value: str
) -> None:
    acid.create_table("d.c", {"id": "int", "c": "char(4)"})
    acid.create_table("d.odd", {"id": "int", "a+b": "int"})
    acid.insert("d.c", spark.sql("SELECT 1 AS id, 'ab' AS c"))
    story = STORIES[setting, value]
    found = {}
    for written in (value, value.upper(), value.lower(), value.title()):
        spark.conf.set(setting, written)
        try:
            found[written] = story(acid)
        finally:
            spark.conf.unset(setting)
    assert len(found) > 2
    assert all(of == found[value] for of in found.values()), found
