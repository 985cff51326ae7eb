"""Every situation of the error table over Thrift, and those that change something (transactions.md §1.10)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hive_acid.wire import ttypes
from tests.caller import INTERNAL, Caller, refused
from tests.rpc.error_table import ABORTED, LATE, REFUSALS, SUCCESSES, Row, Stage, opening
from tests.served import Served, served

TIER_1 = frozenset(
    [
        "abort_Compactions",
        "abort_txn",
        "abort_txns",
        "add_dynamic_partitions",
        "add_write_ids_to_min_history",
        "allocate_table_write_ids",
        "check_lock",
        "commit_txn",
        "compact",
        "compact2",
        "find_columns_with_stats",
        "find_next_compact",
        "find_next_compact2",
        "get_latest_committed_compaction_info",
        "get_latest_txnid_in_conflict",
        "get_max_allocated_table_write_id",
        "get_open_txns",
        "get_open_txns_info",
        "get_open_txns_req",
        "get_valid_write_ids",
        "heartbeat",
        "heartbeat_txn_range",
        "lock",
        "mark_cleaned",
        "mark_compacted",
        "mark_failed",
        "mark_refused",
        "open_txns",
        "remove_compaction_metrics_data",
        "repl_tbl_writeid_state",
        "seed_txn_id",
        "seed_write_id",
        "set_hadoop_jobid",
        "show_compact",
        "show_locks",
        "submit_for_cleanup",
        "unlock",
        "update_compaction_metrics_data",
        "update_compactor_state",
    ]
)
"""What every client of ACID tables needs (wire.md §6)."""


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = {"metastore.txn.heartbeat.max.range": "1000"}
    with served(postgres_url, template, tmp_path_factory.mktemp("warehouse"), settings) as running:
        yield running


@pytest.fixture(scope="module")
def ann(server: Served) -> Iterator[Caller]:
    with server.caller() as caller:
        yield caller


@pytest.fixture(scope="module")
def stage(ann: Caller) -> Stage:
    opened, aborted, committed = ann.open(3)
    reader = ann.begin(txn_type=ttypes.TxnType.READ_ONLY)
    ann.allocate("d.t", opened)
    lock = ann.lock("w d/t u", txn=opened).lockid
    lost_lock = ann.lock("r d/t", txn=aborted).lockid
    ann.abort(aborted)
    ann.commit(committed)
    return Stage(opened, aborted, committed, reader, lock, lost_lock)


@pytest.mark.parametrize("row", REFUSALS, ids=str)
def test_refusal(ann: Caller, stage: Stage, row: Row) -> None:
    before = stage.state(ann)
    with refused(row.kind, row.words.format_map(vars(stage)) if "{" in row.words else row.words):
        ann.call(row.method, *row.arguments(stage))
    assert stage.state(ann) == before


@pytest.mark.parametrize("row", SUCCESSES, ids=str)
def test_success(ann: Caller, stage: Stage, row: Row) -> None:
    before = stage.state(ann)
    first = ann.call(row.method, *row.arguments(stage))
    if row.method not in ("get_open_txns_info",):  # heartbeats go on
        assert ann.call(row.method, *row.arguments(stage)) == first, "the same call has the same answer"
    assert stage.state(ann) == before


def test_the_tables_call_every_method() -> None:
    assert TIER_1 - {row.method for row in (*REFUSALS, *SUCCESSES)} == set()
    assert len(TIER_1) == 39


# --- situations that change something ---------------------------------------------------------------


def two_writers(ann: Caller, table: str, first: str, second: str, sent: bool | None, partitioned: str = "") -> str:
    """Both open, each declares its write, the first commits; how the commit of the second ends: ok, or the message."""
    one, other = ann.open(2)
    ann.write(one, f"w/{table}{partitioned}", first)
    ann.write(other, f"w/{table}{partitioned}", second)
    ann.commit(one)
    try:
        ann.commit(other, **({} if sent is None else {"exclWriteEnabled": sent}))
    except Exception as error:
        return str(error)
    return "ok"


@pytest.mark.parametrize("sent", [None, False, True])
@pytest.mark.parametrize("second", ["i", "u", "d"])
@pytest.mark.parametrize("first", ["i", "u", "d"])
def test_pairs_of_writes(ann: Caller, first: str, second: str, sent: bool | None) -> None:
    """Absent means false: check. Hive takes it for true, so that older clients lose updates (transactions.md §8.2)."""
    answer = two_writers(ann, f"{first}{second}{sent}".lower(), first, second, sent)
    if sent or "i" in (first, second):
        assert answer == "ok"
    else:
        assert answer.startswith(ABORTED)


@pytest.mark.parametrize("partition", ["", "/p=1"])
def test_words_of_a_conflict(ann: Caller, partition: str) -> None:
    one, other = ann.open(2)
    table = f"words{len(partition)}"
    ann.write(one, f"w/{table}{partition}", "u")
    ann.write(other, f"w/{table}{partition}", "d")
    ann.commit(one)
    where = f"w/{table}{partition}"
    words = rf"^Aborting \[txnid:{other},\d+\] due to a write conflict on {where} committed by \[txnid:{one},\d+\] d/u$"
    with refused(ABORTED, words):
        ann.commit(other)
    with refused(ABORTED, LATE):
        ann.commit(other)
    assert ann.info()[other].metaInfo == "write conflicts"
    assert ann.locks(txnid=other) == []


def test_too_many_open_transactions(postgres_url: str, template: str, tmp_path: Any) -> None:
    with served(postgres_url, template, tmp_path, {"hive.max.open.txns": "10"}) as running, running.caller() as ann:
        ids = ann.open(10)
        for number in (1, 5):
            with refused(INTERNAL, r"Maximum allowed number of open transactions.*hive\.max\.open\.txns"):
                ann.open(number)
        ann.abort(ids[0])
        with refused(INTERNAL, "Maximum allowed"):
            ann.open()
        ann.abort(ids[1])
        assert len(ann.open()) == 1


def test_the_connection_stays_usable(ann: Caller) -> None:
    with refused(INTERNAL):
        ann.call("open_txns", opening(0))
    assert ann.call("getStatus") == ttypes.fb_status.ALIVE
