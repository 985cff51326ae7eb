"""``compactor.*`` and ``tblprops.*``: what tables and requests say of their compactions."""

import pytest

from hive_acid.format.orc.compression import compression_of
from metastore.compaction.worker import overrides
from metastore.settings import SettingError

TABLE = {
    "compactor.spark.sql.shuffle.partitions": "4",
    "COMPACTOR.Hive.Compactor.Job.Queue": "night",
    "compactor.mapreduce.map.memory.mb": "4096",
    "orc.compress": "SNAPPY",
    "hive_acid.layout": "buckets",
}


def test_a_request_wins_over_its_table() -> None:
    found = overrides.job_properties(TABLE, {"compactor.spark.sql.shuffle.partitions": "9", "tblprops.x": "y"})
    assert found["spark.sql.shuffle.partitions"] == "9"
    assert found["hive.compactor.job.queue"] == "night"
    assert overrides.spark_settings(found) == {"spark.sql.shuffle.partitions": "9"}


def test_properties_of_the_table_for_one_write() -> None:
    asked = {"tblprops.ORC.compress": "zlib", "tblprops.orc.stripe.size": "1048576", "compactor.x": "y"}
    found = overrides.table_properties(TABLE, asked)
    assert compression_of(found, "none") == "zlib"
    assert compression_of(TABLE, "none") == "snappy"
    assert overrides.written_options(found) == {"orc.stripe.size": "1048576"}
    assert found["hive_acid.layout"] == "buckets"


def test_how_much_is_merged_at_a_time() -> None:
    limit = "compactor.hive.compactor.max.num.delta"
    assert overrides.max_deltas({}, {}, 500) == 500
    assert overrides.max_deltas({limit.upper(): " 7 "}, {}, 500) == 7
    assert overrides.max_deltas({limit: "7"}, {limit: "9"}, 500) == 9
    for unfit in ("", "1", "-3", "many", "2.5"):
        with pytest.raises(SettingError, match="give a whole number from 2 on"):
            overrides.max_deltas({limit: unfit}, {}, 500)
