"""From a live metastore to another one."""

from __future__ import annotations

import pytest

from hive_acid.wire import ttypes
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.transfer.importing import ABORTED
from metastore.transfer.models import Selection, TransferError
from tests.served import Served
from tests.transfer.world import definitions, move_in, snapshots, table, write

TABLES = ("sales.items", "sales.orders")


def test_catalogue_and_write_ids_are_the_same(old: Served, new: Served) -> None:
    report = move_in(new.db, old.uri)
    assert report.is_complete, report.text()
    assert definitions(new.uri, *TABLES, "sales.plain", "sales.recent") == definitions(
        old.uri, *TABLES, "sales.plain", "sales.recent"
    )
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)
    assert report.counts["table"] == {"added": 4}
    assert report.counts["partition"] == {"added": 3}


def test_transaction_ids_go_on_above_the_source(old: Served, new: Served) -> None:
    with old.caller() as caller:
        there = caller.snapshot().high_water_mark
    move_in(new.db, old.uri)
    with new.caller() as caller:
        assert caller.begin() > there


def test_aborted_writes_stay_aborted_and_the_next_one_is_new(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    with new.caller() as caller:
        assert write(caller, "sales.orders") == 6
        shown = caller.write_ids("sales.orders")
    assert (shown.writeIdHighWaterMark, shown.invalidWriteIds) == (6, [2, 5])
    assert shown.abortedBits == b"\x03"


def test_housekeeping_does_not_forget_what_is_aborted(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    before = snapshots(new.uri, *TABLES)
    AcidTxnCleaner(new.db, HousekeepingConfig(finished_retention_ms=0)).run_once()
    assert snapshots(new.uri, *TABLES) == before == snapshots(old.uri, *TABLES)


def test_a_second_run_finds_all_equal(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    before = snapshots(new.uri, *TABLES)
    report = move_in(new.db, old.uri)
    assert report.is_complete, report.text()
    assert {outcome for counts in report.counts.values() for outcome in counts} - {"succeeded"} == {"equal"}
    assert snapshots(new.uri, *TABLES) == before


def test_a_dry_run_changes_nothing(old: Served, new: Served) -> None:
    report = move_in(new.db, old.uri, dry_run=True)
    assert report.counts["table"] == {"added": 4}
    assert report.counts["partition"] == {"added": 3}
    with new.caller() as caller:
        assert caller.call("get_all_databases") == ["default"]
        assert caller.snapshot().high_water_mark == 0


def test_what_differs_is_told_and_replaced_on_demand(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    with new.caller() as caller:
        changed = caller.call("get_table", "sales", "plain")
        changed.parameters["comment"] = "mine"
        caller.call("alter_table", "sales", "plain", changed)
        caller.call("drop_partition", "sales", "items", ["2024-01-02", "fr/x"], False)
    report = move_in(new.db, old.uri)
    assert not report.is_complete
    (finding,) = [one for one in report.findings if one.outcome == "different"]
    assert finding.name == "sales.plain"
    assert "parameters.comment: 'mine' here, 'not ACID' there" in finding.words
    assert report.counts["partition"] == {"added": 1, "equal": 2}
    report = move_in(new.db, old.uri, update=True)
    assert report.is_complete
    assert report.counts["table"] == {"equal": 3, "replaced": 1}
    assert definitions(new.uri, "sales.plain") == definitions(old.uri, "sales.plain")


def test_write_ids_that_went_on_there_are_told_and_followed_on_demand(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    with old.caller() as caller:
        write(caller, "sales.orders")
        write(caller, "sales.orders", commit=False)
    report = move_in(new.db, old.uri)
    (finding,) = [one for one in report.findings if one.outcome == "different"]
    assert (finding.kind, finding.name) == ("write ids", "sales.orders")
    assert "last write id: 5 here, 7 there" in finding.words
    assert move_in(new.db, old.uri, update=True).is_complete
    assert snapshots(new.uri, "sales.orders") == snapshots(old.uri, "sales.orders")


def test_write_ids_are_never_taken_back(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    with new.caller() as caller:
        write(caller, "sales.orders")
    report = move_in(new.db, old.uri, update=True)
    (finding,) = [one for one in report.findings if one.outcome == "different"]
    assert "last write id: 6 here, 5 there" in finding.words
    assert snapshots(new.uri, "sales.orders")[0].writeIdHighWaterMark == 6


def test_ids_of_transactions_with_two_meanings_are_refused(old: Served, new: Served) -> None:
    """Directories of the source's compactions have ids that are open or aborted here: they would be invisible."""
    with new.caller() as caller:
        txns = caller.open(3)
        caller.commit(txns[1])
        with pytest.raises(TransferError, match=r"transactions 1, 3 are open or aborted here.* up to 7"):
            move_in(new.db, old.uri)
        caller.commit(txns[0])
        caller.commit(txns[2])
    assert move_in(new.db, old.uri).is_complete
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)


def test_a_name_that_had_later_write_ids_here_is_refused(old: Served, new: Served) -> None:
    with new.caller() as caller:
        caller.call("create_database", ttypes.Database(name="sales", parameters={}))
        caller.call("create_table", table("sales", "orders"))
        for _ in range(9):
            write(caller, "sales.orders")
        caller.call("drop_table", "sales", "orders", False)
    report = move_in(new.db, old.uri)
    (finding,) = [one for one in report.findings if one.outcome == "refused"]
    assert (finding.name, "has later write ids here" in finding.words) == ("sales.orders", True)
    with new.caller() as caller:
        assert "orders" not in caller.call("get_all_tables", "sales")


def test_only_some_tables(old: Served, new: Served) -> None:
    move_in(new.db, old.uri, selection=Selection(tables=("sales.o*",)))
    with new.caller() as caller:
        assert caller.call("get_all_tables", "sales") == ["orders"]


def test_open_transactions_are_refused_or_count_as_aborted(old: Served, new: Served) -> None:
    with old.caller() as caller:
        txn = caller.begin()
        caller.write(txn, "sales/orders", "i")
        with pytest.raises(TransferError, match=rf"{txn} \(ann@host1\).*--open-transactions"):
            move_in(new.db, old.uri)
        report = move_in(new.db, old.uri, open_policy=ABORTED)
        assert report.is_complete, report.text()
    shown = snapshots(new.uri, "sales.orders")[0]
    assert (shown.writeIdHighWaterMark, shown.invalidWriteIds, shown.abortedBits) == (6, [2, 5, 6], b"\x07")
