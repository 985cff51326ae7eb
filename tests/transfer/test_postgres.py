"""From the Postgres database of a Hive metastore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest

import hive_acid
from hive_acid.wire import ttypes
from metastore.transfer.importing import ABORTED
from metastore.transfer.models import TransferError
from tests.databases import administer, url_of
from tests.served import Served
from tests.transfer import hive4
from tests.transfer.world import move_in, snapshots


@pytest.fixture
def hive(postgres_url: str) -> Iterator[str]:
    """URL of a Hive metastore's database."""
    url = url_of(postgres_url, "hive_metastore")
    administer(postgres_url, "CREATE DATABASE hive_metastore")
    hive4.create(url)
    yield url
    administer(postgres_url, "DROP DATABASE hive_metastore WITH (FORCE)")


def change(hive: str, statement: str) -> None:
    with closing(psycopg2.connect(hive)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        connection.commit()


def call(uri: str, method: str, *arguments: object) -> Any:
    with closing(hive_acid.connect(uri)) as connection:
        return connection.call(method, *arguments)


def get_table(uri: str, database: str, name: str) -> Any:
    return call(uri, "get_table_req", ttypes.GetTableRequest(dbName=database, tblName=name)).table


def test_everything_is_counted(hive: str, new: Served) -> None:
    report = move_in(new.db, hive)
    assert report.is_complete, report.text()
    assert report.counts == {
        "catalog": {"added": 1, "equal": 1},
        "database": {"added": 3, "equal": 1},
        "function": {"added": 1},
        "role": {"added": 1},
        "role_grant": {"added": 1},
        "privilege": {"added": 4},
        "table": {"added": 5},
        "write ids": {"added": 2},
        "partition": {"added": 3},
        "constraint": {"added": 3},
        "statistics": {"added": 3},
        "compactions of the source": {"initiated": 1, "failed": 1},
    }
    assert move_in(new.db, hive).is_complete


def test_a_table_is_as_it_was(hive: str, new: Served) -> None:
    move_in(new.db, hive)
    found = get_table(new.uri, "sales", "plain")
    assert (found.owner, found.createTime, found.tableType) == ("ann", 1795331413, "MANAGED_TABLE")
    assert [(c.name, c.type, c.comment) for c in found.sd.cols] == [
        ("id", "bigint", "the key"),
        ("text", "string", None),
    ]
    assert found.sd.location == "file:/old/warehouse/sales.db/plain"
    assert found.sd.serdeInfo.serializationLib == f"{hive4.ORC}OrcSerde"
    assert found.sd.bucketCols == ["id"]
    assert [(one.col, one.order) for one in found.sd.sortCols] == [("text", 1)]
    assert found.sd.skewedInfo.skewedColNames == ["text"]
    assert found.sd.skewedInfo.skewedColValues == [["x"]]
    ((stored,),) = _rows(new, "SELECT storage -> 'skewedInfo' FROM tbl WHERE name = 'plain'")
    place = "file:/old/warehouse/sales.db/plain/text=x"
    assert stored["skewedColValueLocationMaps"] == [[["x"], place]]  # type: ignore[index]  # no client in Python can decode such a map
    assert found.sd.parameters == {"some": "thing"}
    assert found.parameters["comment"] == "not ACID"
    view = get_table(new.uri, "sales", "recent")
    assert (view.tableType, view.viewOriginalText) == ("VIRTUAL_VIEW", "select 1")


def test_partitions_are_found_by_their_values(hive: str, new: Served) -> None:
    move_in(new.db, hive)
    assert call(new.uri, "get_partition_names", "sales", "items", -1) == [
        "day=2024-01-01/country=de",
        "day=2024-01-02/country=fr%2Fx",
        "day=2024-01-03/country=__HIVE_DEFAULT_PARTITION__",
    ]
    found = call(new.uri, "get_partition", "sales", "items", ["2024-01-02", "fr/x"])
    assert found.parameters["numRows"] == "1"
    assert found.sd.location.endswith("/day=2024-01-02/country=fr%2Fx")


def test_write_ids_go_on_and_aborted_ones_stay_so(hive: str, new: Served) -> None:
    move_in(new.db, hive)
    orders, items = snapshots(new.uri, "sales.orders", "sales.items")
    assert (orders.writeIdHighWaterMark, orders.invalidWriteIds, orders.abortedBits) == (5, [2, 5], b"\x03")
    assert (items.writeIdHighWaterMark, items.invalidWriteIds, items.abortedBits) == (2, [2], b"\x01")
    with new.caller() as caller:
        assert caller.begin() == 8
        assert {one.id for one in caller.info().values() if one.state == ttypes.TxnState.ABORTED} == {1, 2, 5, 7}


def test_what_an_aborted_compaction_left_stays_invisible_until_it_is_removed(hive: str, new: Served) -> None:
    move_in(new.db, hive)
    assert (1, "c", "day=2024-01-02/country=fr%2Fx") in [
        (row[0], row[1], row[2])
        for row in _rows(new, "SELECT txn_id, operation, partition FROM txn_component ORDER BY txn_id")
    ]


def _rows(served: Any, statement: str) -> list[tuple[object, ...]]:
    with served.db.engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(statement)]


def test_other_catalogs_come_along(hive: str, new: Served) -> None:
    move_in(new.db, hive)
    found = get_table(new.uri, "@lake#raw", "logs")
    assert (found.catName, found.dbName, found.tableName) == ("lake", "raw", "logs")


def test_functions_roles_constraints_and_statistics(hive: str, new: Served) -> None:
    move_in(new.db, hive)
    function = call(new.uri, "get_function", "sales", "mask")
    assert (function.className, function.resourceUris[0].uri) == ("x.Mask", "file:/x.jar")
    request = ttypes.GetPrincipalsInRoleRequest(roleName="analyst")
    (grant,) = call(new.uri, "get_principals_in_role", request).principalGrants
    assert (grant.principalName, grant.grantOption) == ("bob", True)
    asked = ttypes.PrimaryKeysRequest(db_name="sales", tbl_name="orders", catName="hive")
    (key,) = call(new.uri, "get_primary_keys", asked).primaryKeys
    assert (key.pk_name, key.column_name, key.rely_cstr, key.enable_cstr) == ("pk1", "id", True, False)
    asked = ttypes.ForeignKeysRequest(foreign_db_name="sales", foreign_tbl_name="items", catName="hive")
    (key,) = call(new.uri, "get_foreign_keys", asked).foreignKeys
    assert (key.pktable_name, key.pkcolumn_name, key.fkcolumn_name, key.pk_name) == ("orders", "id", "id", "pk1")
    found = call(new.uri, "get_table_column_statistics", "sales", "plain", "id")
    assert found.statsDesc.lastAnalyzed == 1795331415
    figures = found.statsObj[0].statsData.longStats
    assert (figures.lowValue, figures.highValue, figures.numDVs, figures.numNulls) == (-3, 9, 4, 1)


def test_a_dry_run_of_a_database_that_is_not_hives(postgres_url: str, new: Served) -> None:
    with pytest.raises(TransferError, match="is not the database of a Hive metastore"):
        move_in(new.db, postgres_url, dry_run=True)


def test_open_transactions_are_refused(hive: str, new: Served) -> None:
    change(hive, """INSERT INTO "TXNS" VALUES (9, 'o', 'eve', 'host2', 0)""")
    change(hive, """INSERT INTO "TXN_TO_WRITE_ID" VALUES (9, 'sales', 'orders', 6)""")
    change(hive, """UPDATE "NEXT_WRITE_ID" SET "NWI_NEXT" = 7 WHERE "NWI_TABLE" = 'orders'""")
    with pytest.raises(TransferError, match=r"9 \(eve@host2\)"):
        move_in(new.db, hive)
    assert move_in(new.db, hive, open_policy=ABORTED).is_complete
    (orders,) = snapshots(new.uri, "sales.orders")
    assert (orders.writeIdHighWaterMark, orders.invalidWriteIds, orders.abortedBits) == (6, [2, 5, 6], b"\x07")


def test_hive_3_keeps_its_transaction_ids_elsewhere(hive: str, new: Served) -> None:
    change(hive, 'CREATE TABLE "NEXT_TXN_ID" ("NTXN_NEXT" bigint); INSERT INTO "NEXT_TXN_ID" VALUES (41)')
    change(hive, 'ALTER TABLE "DBS" DROP "TYPE"; ALTER TABLE "COLUMNS_V2" ADD "EXTRA" int')
    move_in(new.db, hive)
    with new.caller() as caller:
        assert caller.begin() == 41
