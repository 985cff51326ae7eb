"""Tables go to another metastore and come back."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import hive_acid
from metastore.catalog.config import CatalogConfig
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.service import CatalogService
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.transfer.handing_back import HandBack, HandBackOptions
from metastore.transfer.models import Selection
from metastore.transfer.report import Report
from tests.served import Served
from tests.transfer.world import definitions, move_in, snapshots, write

TABLES = ("sales.items", "sales.orders")


def hand_back(source: Served, uri: str, *tables: str, **options: bool) -> Report:
    catalog = CatalogService(source.db, "/nowhere", CatalogConfig(directories=False))
    forget = partial(_forget, catalog)
    chosen = HandBackOptions(Selection(tables=tables), **options)
    with hive_acid.connect(uri) as connection:
        return HandBack(source.db, connection, chosen, forget, lambda name: None).run()


def _forget(catalog: CatalogService, database: str, name: str) -> None:
    catalog.tables.drop(database, name, DropRequest(delete_data=False))


def _untimed(structs: Any) -> Any:
    """Without the times of creation, which are those of the metastore where it is."""
    for struct in structs:
        for one in struct if isinstance(struct, list) else [struct]:
            one.createTime = 0
    return structs


def test_snapshots_are_the_same_there(old: Served, new: Served) -> None:
    report = hand_back(old, new.uri, *TABLES)
    assert report.is_complete, report.text()
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)
    assert _untimed(definitions(new.uri, *TABLES)) == _untimed(definitions(old.uri, *TABLES))
    with old.caller() as here, new.caller() as there:
        assert there.begin() > here.snapshot().high_water_mark
        assert write(there, "sales.orders") == 6


def test_files_that_are_there_already_do_not_hinder(old: Served, new: Served, tmp_path: Path) -> None:
    (struct,) = definitions(old.uri, "sales.orders")
    file = Path(struct.sd.location.removeprefix("file:")) / "delta_0000001_0000001_0000" / "bucket_00000"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x")
    report = hand_back(old, new.uri, "sales.orders")
    assert report.is_complete, report.text()
    assert file.exists()


def test_it_may_be_repeated(old: Served, new: Served) -> None:
    hand_back(old, new.uri, *TABLES)
    before = snapshots(new.uri, *TABLES)
    report = hand_back(old, new.uri, *TABLES)
    assert report.is_complete, report.text()
    assert report.counts["table"] == {"equal": 2}
    assert snapshots(new.uri, *TABLES) == before


def test_a_table_with_an_open_transaction_stays(old: Served, new: Served) -> None:
    with old.caller() as caller:
        txn = caller.begin()
        caller.allocate("sales.orders", txn)
        report = hand_back(old, new.uri, *TABLES)
        (finding,) = [one for one in report.findings if one.outcome == "refused"]
        assert finding.name == "sales.orders"
        assert f"transactions {txn} are open on it" in finding.words
    assert [one.fullTableName for one in (snapshots(new.uri, "sales.items"))] == ["sales.items"]
    with new.caller() as caller:
        assert caller.call("get_all_tables", "sales") == ["items"]


def test_a_table_in_use_stays(old: Served, new: Served) -> None:
    with old.caller() as caller:
        caller.lock("r sales/orders")
        report = hand_back(old, new.uri, "sales.orders")
    assert "somebody holds a lock" in report.findings[0].words


def test_the_lock_goes_again(old: Served, new: Served) -> None:
    hand_back(old, new.uri, "sales.orders")
    with old.caller() as caller:
        assert caller.locks() == []


def test_other_write_ids_there_are_not_touched(old: Served, new: Served) -> None:
    with new.caller() as caller:
        caller.allocate("sales.orders", caller.begin())
        report = hand_back(old, new.uri, "sales.orders")
        assert "are open or aborted at" in report.findings[0].words
        caller.abort(1)
        caller.commit(caller.begin())
    report = hand_back(old, new.uri, "sales.orders")
    assert not report.is_complete


def test_a_dry_run_creates_nothing(old: Served, new: Served) -> None:
    report = hand_back(old, new.uri, *TABLES, dry_run=True)
    assert report.counts["table"] == {"added": 2}
    with new.caller() as caller:
        assert caller.call("get_all_databases") == ["default"]


def test_where_it_came_from_write_ids_go_on(old: Served, new: Served) -> None:
    """The table is there still; what was committed and aborted here meanwhile is so there."""
    move_in(new.db, old.uri)
    with new.caller() as caller:
        for commit in (True, False, True):
            write(caller, "sales.orders", commit=commit)
            write(caller, "sales.items", "day=2024-01-02/country=fr%2Fx", commit=commit)
    report = hand_back(new, old.uri, *TABLES)
    assert report.is_complete, report.text()
    assert report.counts["write ids"] == {"added": 2}
    assert snapshots(old.uri, *TABLES) == snapshots(new.uri, *TABLES)
    (orders,) = snapshots(old.uri, "sales.orders")
    assert (orders.writeIdHighWaterMark, orders.invalidWriteIds) == (8, [2, 5, 7])
    assert {row[0] for row in _components(old)} == {"", "day=2024-01-01/country=de", "day=2024-01-02/country=fr%2Fx"}
    AcidTxnCleaner(old.db, HousekeepingConfig(finished_retention_ms=0)).run_once()
    assert snapshots(old.uri, *TABLES) == snapshots(new.uri, *TABLES)


def _components(served: Served) -> list[tuple[object, ...]]:
    query = "SELECT coalesce(c.partition, '') FROM txn_component c JOIN txn t USING (txn_id) WHERE t.state = 'a'"
    with served.db.engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_where_more_was_written_meanwhile_it_stays(old: Served, new: Served) -> None:
    move_in(new.db, old.uri)
    with old.caller() as caller:
        write(caller, "sales.orders")
    report = hand_back(new, old.uri, "sales.orders")
    assert "has write ids up to 6 at" in report.findings[0].words


def test_there_and_back_again(old: Served, new: Served) -> None:
    """A table is imported, written, handed back to where it came from and was dropped, and written there."""
    move_in(new.db, old.uri, selection=Selection(tables=("sales.orders",)))
    with new.caller() as caller:
        assert write(caller, "sales.orders") == 6
    with old.caller() as caller:
        before = definitions(old.uri, "sales.orders")[0].sd.location
        _forget(CatalogService(old.db, "/nowhere", CatalogConfig(directories=False)), "sales", "orders")
        old.db.call("txn_forget_table", "sales", "orders")
    report = hand_back(new, old.uri, "sales.orders", forgets=True)
    assert report.is_complete, report.text()
    with new.caller() as caller:
        assert caller.call("get_all_tables", "sales") == []
    with old.caller() as caller:
        assert definitions(old.uri, "sales.orders")[0].sd.location == before
        assert write(caller, "sales.orders") == 7
        shown = caller.write_ids("sales.orders")
    assert (shown.writeIdHighWaterMark, shown.invalidWriteIds) == (7, [2, 5])
