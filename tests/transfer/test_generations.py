"""Sources that lack what came later, and sources that are not quiet at first."""

from __future__ import annotations

import threading

import pytest

from hive_acid.errors import UnknownMethodError
from metastore.transfer.importing import WAIT
from metastore.transfer.models import TransferError
from metastore.transfer.sources.thrift import Peer
from tests.served import Served
from tests.transfer.world import definitions, move_in, snapshots, write

TABLES = ("sales.items", "sales.orders")
SINCE_4 = {"get_max_allocated_table_write_id", "get_all_table_constraints", "get_database_req"}
SINCE_3 = {
    "get_valid_write_ids", "get_catalogs", "get_catalog", "get_metastore_db_uuid", "get_unique_constraints",
    "get_not_null_constraints", "get_default_constraints", "get_check_constraints",
}  # fmt: skip


def without(monkeypatch: pytest.MonkeyPatch, methods: set[str]) -> None:
    """The source knows none of the methods."""
    connected = Peer.__init__

    def make(self: Peer, connection: object) -> None:
        connected(self, connection)  # type: ignore[arg-type]
        self._unknown = set(methods)

    monkeypatch.setattr(Peer, "__init__", make)


def test_hive_3_tells_the_last_write_id_only_with_a_snapshot(
    old: Served, new: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, SINCE_4)
    report = move_in(new.db, old.uri)
    assert [one.name for one in report.findings if one.outcome == "refused"] == ["sales.items"], report.text()
    assert "Hive 3 does not say how many" in report.text()  # its last write is its only aborted one
    assert snapshots(new.uri, "sales.orders") == snapshots(old.uri, "sales.orders")
    with old.caller() as caller:
        write(caller, "sales.items", "day=2024-01-01/country=de")
    assert move_in(new.db, old.uri).is_complete
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)
    assert definitions(new.uri, *TABLES) == definitions(old.uri, *TABLES)


def test_hive_2_has_transaction_ids_where_write_ids_stand_later(
    old: Served, new: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, SINCE_4 | SINCE_3)
    report = move_in(new.db, old.uri)
    assert report.is_complete, report.text()
    (orders,) = snapshots(new.uri, "sales.orders")
    assert (orders.writeIdHighWaterMark, orders.invalidWriteIds, orders.abortedBits) == (7, [2, 5, 7], b"\x07")


def test_a_method_that_is_not_there_is_asked_for_once(old: Served) -> None:
    class Old:
        asked = 0

        def call(self, method: str, *args: object) -> None:
            self.asked += 1
            raise UnknownMethodError(method)

    connection = Old()
    peer = Peer(connection)  # type: ignore[arg-type]
    assert peer.knows("get_catalogs") is None
    assert peer.knows("get_catalogs") is None
    assert connection.asked == 1


def test_open_transactions_are_waited_for(old: Served, new: Served) -> None:
    with old.caller() as caller:
        txn = caller.begin()
        caller.write(txn, "sales/orders", "i")
        with pytest.raises(TransferError, match="transactions are open"):
            move_in(new.db, old.uri, open_policy=WAIT, wait_s=0.1)
        ending = threading.Timer(0.3, caller.commit, [txn])
        ending.start()
        report = move_in(new.db, old.uri, open_policy=WAIT)
        ending.join()
    assert report.is_complete, report.text()
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)
