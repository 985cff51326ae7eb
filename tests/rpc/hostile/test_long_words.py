"""What a client makes long is not as long in the answer and in the log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.observe import log
from tests.caller import Caller, Refused

LONG = "x" * 5_000_000
CALLS: dict[str, tuple[Any, ...]] = {
    "get_database": (LONG,),
    "get_table": (LONG, LONG),
    "get_function": ("default", LONG),
    "drop_role": (LONG,),
    "create_table": (ttypes.Table(dbName="default", tableName=LONG),),
    "check_lock": (ttypes.CheckLockRequest(lockid=77),),
    "allocate_table_write_ids": (ttypes.AllocateTableWriteIdsRequest(dbName="d", tableName=LONG, txnIds=[9]),),
    "get_partitions_by_filter": ("default", "t", f"a = '{LONG}", -1),
    "get_config_value": (LONG, LONG),
}


def test_answers_and_lines_stay_short(metastore: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    """A name of 90 MB came back in the error, and was a line of 90 MB in the log."""
    with Caller(metastore()) as ann, caplog.at_level(logging.INFO):
        for method, arguments in CALLS.items():
            words = ""
            try:
                ann.call(method, *arguments)
            except Refused as told:
                words = str(told)
            assert len(words) < 11_000, method
        with pytest.raises(Refused, match=r"(?s)database hive\.x+ … x+ does not exist") as told_of:
            ann.call("get_database", LONG)
        assert told_of.value.kind == "NoSuchObjectException"
    assert max(len(record.getMessage()) for record in caplog.records) < 10_000


@pytest.mark.parametrize("form", log.FORMATS)
def test_a_traceback_stays_short(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", form)
    try:
        raise ValueError(LONG)
    except ValueError:
        logging.getLogger("metastore.rpc").exception("call failed")
    assert len(capsys.readouterr().err) < 70_000
