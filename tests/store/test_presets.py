"""What a database or its user presets for its sessions does not change what calls mean, or is told at the start."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from urllib.parse import urlsplit

import psycopg2
import pytest

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from tests.caller import Caller, Refused
from tests.store.test_fitness import examined

PRESETS = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "DateStyle": "German, DMY",
    "extra_float_digits": "-15",
    "idle_in_transaction_session_timeout": "100ms",
    "idle_session_timeout": "100ms",
    "IntervalStyle": "sql_standard",
    "quote_all_identifiers": "on",
    "search_path": "pg_catalog",
    "standard_conforming_strings": "off",
    "TimeZone": "America/New_York",
    "transaction_timeout": "100ms",  # from Postgres 17
    "transform_null_equals": "on",
}
CLIENTS, DATABASES = 6, 25


def preset(url: str, **settings: str) -> None:
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT name FROM pg_settings WHERE name = ANY (%s)", (list(settings),))
        known = {name for (name,) in cursor.fetchall()}
        for name, value in ((name, value) for name, value in settings.items() if name in known):
            cursor.execute(f"ALTER DATABASE {urlsplit(url).path[1:]} SET {name} = %s", (value,))
        connection.commit()


@pytest.fixture(params=["repeatable read", "serializable"])
def uri(request: pytest.FixtureRequest, db_url: str, metastore: Callable[..., str]) -> str:
    """A server on a database that presets all of it."""
    preset(db_url, **PRESETS, default_transaction_isolation=request.param)
    return metastore(**{"metastore.housekeeping.threads.on": "false"})


def test_calls_mean_the_same(uri: str) -> None:
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name="x", type="double")], serdeInfo=ttypes.SerDeInfo(parameters={"k": "it's \\ null"})
    )
    table = ttypes.Table(dbName="d", tableName="t", sd=storage, parameters={"NULL": "NULL", "b": "\\'{}"})
    lowest, highest = 0.1 + 0.2, 1.7976931348623157e308
    found = ttypes.ColumnStatisticsData(
        doubleStats=ttypes.DoubleColumnStatsData(lowValue=lowest, highValue=highest, numNulls=1, numDVs=2)
    )
    statistics = ttypes.ColumnStatistics(
        statsDesc=ttypes.ColumnStatisticsDesc(isTblLevel=True, dbName="d", tableName="t"),
        statsObj=[ttypes.ColumnStatisticsObj(colName="x", colType="double", statsData=found)],
    )
    with Caller(uri) as ann:
        ann.call("create_database", ttypes.Database(name="d"))
        ann.call("create_table", table)
        ann.call("update_table_column_statistics", statistics)
        time.sleep(0.3)  # what has no use is idle meanwhile
        opened = ann.call("open_txns", ttypes.OpenTxnRequest(num_txns=2, user="ann", hostname="h")).txn_ids
        told = {one.id: one for one in ann.call("get_open_txns_info").open_txns}
        assert all(abs(told[txn].startedTime - 1000 * time.time()) < 60_000 for txn in opened)
        kept = ann.call("get_table", "d", "t")
        assert kept.parameters.items() >= table.parameters.items()
        assert kept.sd.serdeInfo.parameters == storage.serdeInfo.parameters
        back = ann.call("get_table_column_statistics", "d", "t", "x").statsObj[0].statsData.doubleStats
        assert (back.lowValue, back.highValue) == (lowest, highest)
        assert ann.call("getStatus") == ttypes.fb_status.ALIVE


def test_calls_at_the_same_time_wait_for_each_other(uri: str) -> None:
    refused: list[Refused] = []

    def create() -> None:
        with Caller(uri) as ann:
            for number in range(DATABASES):
                try:
                    ann.call("create_database", ttypes.Database(name=f"d{number}"))
                except Refused as error:
                    if error.kind != "AlreadyExistsException":
                        refused.append(error)

    threads = [threading.Thread(target=create) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == []


def test_a_limit_of_waiting_is_told_in_words(db_url: str, metastore: Callable[..., str]) -> None:
    preset(db_url, lock_timeout="20ms")
    with (
        Caller(metastore(**{"metastore.housekeeping.threads.on": "false"})) as ann,
        closing(psycopg2.connect(db_url)) as other,
        other.cursor() as cursor,
    ):
        cursor.execute("LOCK hive_acid.role")
        with pytest.raises(Refused, match=r"lets nobody wait for so long \(lock_timeout\)") as caught:
            ann.call("create_role", ttypes.Role(roleName="r", ownerName="ann"))
        assert caught.value.kind == "MetaException"


def test_a_database_that_is_read_only_by_setting(db_url: str) -> None:
    preset(db_url, default_transaction_read_only="on")
    with pytest.raises(MetaError, match="takes no changes, as default_transaction_read_only is on"):
        examined(db_url)


def test_commits_that_a_crash_may_take_are_told(db_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        examined(db_url)
        assert "synchronous_commit" not in caplog.text
        preset(db_url, synchronous_commit="off")
        examined(db_url)
    assert "forgets answered commits" in caplog.text
