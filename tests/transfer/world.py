"""A metastore with one of everything, made by Thrift calls, and ways to look at two of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import hive_acid
from hive_acid.wire import ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.service import CatalogService
from metastore.store.database import Database
from metastore.transfer.exporting import export_to_file
from metastore.transfer.importing import REFUSE, Import, ImportOptions
from metastore.transfer.models import Selection
from metastore.transfer.report import Report
from metastore.transfer.sources import places
from metastore.transfer.target import Target
from tests.caller import Caller

ORC = "org.apache.hadoop.hive.ql.io.orc.Orc"


def table(database: str, name: str, keys: Sequence[str] = (), acid: bool = True, **parameters: str) -> Any:
    storage = ttypes.StorageDescriptor(
        cols=[
            ttypes.FieldSchema(name="id", type="bigint", comment="the key"),
            ttypes.FieldSchema(name="text", type="string"),
        ],
        inputFormat=f"{ORC}InputFormat",
        outputFormat=f"{ORC}OutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib=f"{ORC}Serde", parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    return ttypes.Table(
        dbName=database,
        tableName=name,
        owner="ann",
        sd=storage,
        partitionKeys=[ttypes.FieldSchema(name=key, type="string") for key in keys],
        parameters={**({"transactional": "true"} if acid else {}), **parameters},
        tableType="MANAGED_TABLE",
    )


def add_partitions(caller: Caller, database: str, name: str, values: Sequence[Sequence[str]]) -> None:
    able = ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES])
    request = ttypes.GetTableRequest(dbName=database, tblName=name, capabilities=able)
    found = caller.call("get_table_req", request).table
    parts = [
        ttypes.Partition(
            values=list(each),
            dbName=database,
            tableName=name,
            sd=ttypes.StorageDescriptor(**{**vars(found.sd), "location": None}),
            parameters={"numRows": str(number)},
        )
        for number, each in enumerate(values)
    ]
    caller.call(
        "add_partitions_req",
        ttypes.AddPartitionsRequest(dbName=database, tblName=name, parts=parts, ifNotExists=False, needResult=False),
    )


def write(caller: Caller, full_name: str, *partitions: str, commit: bool = True, operation: str = "i") -> int:
    """A write of one transaction, committed or aborted; its write id."""
    txn = caller.begin()
    write_id = caller.write(txn, full_name.replace(".", "/"), operation)
    if partitions:
        caller.add_partitions(txn, write_id, full_name, *partitions, operation=operation)
    if commit:
        caller.commit(txn)
    else:
        caller.abort(txn)
    return write_id


def fill(uri: str, **parameters: str) -> None:
    """A database, a plain and two ACID tables with `parameters`, a view, partitions, committed and aborted writes."""
    with closing(Caller(uri)) as caller:
        caller.call("create_database", ttypes.Database(name="sales", description="of goods", parameters={"k": "v"}))
        caller.call("create_table", table("sales", "plain", acid=False, comment="not ACID"))
        caller.call("create_table", table("sales", "orders", **parameters))  # type: ignore[arg-type]
        caller.call("create_table", table("sales", "items", ["day", "country"], **parameters))  # type: ignore[arg-type]
        view = table("sales", "recent", acid=False)
        view.tableType, view.viewOriginalText, view.viewExpandedText = "VIRTUAL_VIEW", "select 1", "select 1"
        caller.call("create_table", view)
        add_partitions(caller, "sales", "items", [["2024-01-01", "de"], ["2024-01-02", "fr/x"], ["2024-01-03", ""]])
        for commit in (True, False, True, True, False):
            write(caller, "sales.orders", commit=commit)
        write(caller, "sales.items", "day=2024-01-01/country=de")
        write(caller, "sales.items", "day=2024-01-01/country=de", commit=False)


def move_in(db: Database, place: str | Path, **options: Any) -> Report:
    """Import into a database."""
    replaces = options.pop("update", False)
    chosen = ImportOptions(**options)
    with places.source_of(str(place)) as source:
        removals = CatalogService(db, "file:/nowhere", CatalogConfig()).removals
        target = Target(db, source.identity, removals, chosen.dry_run, replaces)
        return Import(source, target, chosen, lambda name: None).run()


def export(db: Database, path: Path, policy: str = REFUSE) -> bytes:
    """Export a database; the bytes."""
    with places.own_source(db) as source:
        export_to_file(source, path, Selection(), policy, 0)
    return path.read_bytes()


def definitions(uri: str, *tables: str) -> list[Any]:
    """Tables and their partitions as a client sees them, without ids that are a metastore's own."""
    found: list[Any] = []
    with closing(hive_acid.connect(uri)) as connection:
        for full_name in tables:
            database, _, name = full_name.partition(".")
            request = ttypes.GetTableRequest(dbName=database, tblName=name)
            struct = connection.call("get_table_req", request).table
            struct.id = None
            found.append(struct)
            if struct.partitionKeys:
                names = connection.call("get_partition_names", database, name, -1)
                found.append(connection.call("get_partitions_by_names", database, name, names))
    return found


def snapshots(uri: str, *tables: str) -> list[Any]:
    """What readers of tables see now."""
    with closing(Caller(uri)) as caller:
        return [caller.write_ids(name) for name in tables]


def fill_registries(uri: str) -> None:
    """A function, a role and who has it, privileges, constraints, and statistics of a table and a partition."""
    with closing(Caller(uri)) as caller:
        jar = ttypes.ResourceUri(resourceType=ttypes.ResourceType.JAR, uri="file:/x.jar")
        function = ttypes.Function(
            functionName="mask", dbName="sales", className="x.Mask", ownerName="ann", ownerType=1, functionType=1
        )
        function.createTime, function.resourceUris = 0, [jar]
        caller.call("create_function", function)
        caller.call("create_role", ttypes.Role(roleName="analyst", ownerName="ann", createTime=0))
        caller.call("grant_role", "analyst", "bob", ttypes.PrincipalType.USER, "ann", ttypes.PrincipalType.USER, True)
        about = ttypes.HiveObjectRef(objectType=ttypes.HiveObjectType.TABLE, dbName="sales", objectName="plain")
        about.partValues = []
        info = ttypes.PrivilegeGrantInfo(privilege="SELECT", createTime=5, grantor="ann", grantorType=1)
        info.grantOption = True
        grant = ttypes.HiveObjectPrivilege(hiveObject=about, principalName="bob", principalType=1, grantInfo=info)
        grant.authorizer = "SQL"
        caller.call("grant_privileges", ttypes.PrivilegeBag(privileges=[grant]))
        key = ttypes.SQLPrimaryKey(table_db="sales", table_name="orders", column_name="id", key_seq=1, pk_name="pk1")
        key.enable_cstr, key.validate_cstr, key.rely_cstr, key.catName = False, False, True, "hive"
        caller.call("add_primary_key", ttypes.AddPrimaryKeyRequest(primaryKeyCols=[key]))
        reference = ttypes.SQLForeignKey(pktable_db="sales", pktable_name="orders", pkcolumn_name="id", key_seq=1)
        reference.fktable_db, reference.fktable_name, reference.fkcolumn_name = "sales", "items", "id"
        reference.update_rule, reference.delete_rule, reference.fk_name, reference.pk_name = 0, 0, "fk1", "pk1"
        reference.enable_cstr, reference.validate_cstr, reference.rely_cstr = False, False, True
        reference.catName = "hive"
        caller.call("add_foreign_key", ttypes.AddForeignKeyRequest(foreignKeyCols=[reference]))
        numbers = ttypes.LongColumnStatsData(lowValue=-3, highValue=9, numNulls=1, numDVs=4, bitVectors=b"FM")
        words = ttypes.StringColumnStatsData(maxColLen=9, avgColLen=2.5, numNulls=1, numDVs=4)
        objects = [
            ttypes.ColumnStatisticsObj("id", "bigint", ttypes.ColumnStatisticsData(longStats=numbers)),
            ttypes.ColumnStatisticsObj("text", "string", ttypes.ColumnStatisticsData(stringStats=words)),
        ]
        whole = ttypes.ColumnStatisticsDesc(isTblLevel=True, dbName="sales", tableName="plain", lastAnalyzed=77)
        caller.call(
            "update_table_column_statistics",
            ttypes.ColumnStatistics(statsDesc=whole, statsObj=objects, engine="hive"),
        )
