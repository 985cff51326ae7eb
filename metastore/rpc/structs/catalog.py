"""Between the Thrift structs of the catalogue and its models.

What a client sent comes back as it was; what it left out comes back with the default that Java's metastore gives,
since Java readers stumble over absent fields. Fields that are the server's answer to one request (privileges,
capabilities, statistics compliance) are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.catalog.models import MANAGED_TABLE, USER, CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.catalog.names import database_name, fold, split_key
from metastore.rpc.encoding.plain import checked_text, from_plain, to_plain

NO_BUCKETS = -1
NO_WRITE_ID = -1

_DATABASE_KEPT = {"type", "connector_name", "remote_dbname"}
_TABLE_KEPT = {
    "lastAccessTime", "retention", "viewOriginalText", "viewExpandedText", "temporary", "rewriteEnabled",
    "creationMetadata", "writeId",
}  # fmt: skip
_PARTITION_KEPT = {"lastAccessTime", "writeId"}
_STORAGE_OWN = {"cols", "location"}


def columns_of(fields: Sequence[Any] | None) -> list[Column]:
    return [
        Column(
            checked_text(field.name, "a column name"),
            checked_text(field.type, "a column type"),
            None if field.comment is None else checked_text(field.comment, "a column comment"),
        )
        for field in fields or []
    ]


def field_schemas(columns: Sequence[Column]) -> list[Any]:
    return [ttypes.FieldSchema(name=name, type=kind, comment=comment) for name, kind, comment in columns]


def catalog_of(struct: Any) -> CatalogInfo:
    """A catalog as a client defines it. Raises InvalidObjectError for values that cannot be stored."""
    plain = to_plain(struct)
    return CatalogInfo(
        name=plain.get("name", ""),
        description=plain.get("description"),
        location=plain.get("locationUri") or "",
        parameters=plain.get("parameters", {}),
    )


def catalog_struct(catalog: CatalogInfo) -> Any:
    return ttypes.Catalog(
        name=catalog.name,
        description=catalog.description,
        locationUri=catalog.location,
        createTime=catalog.created_s,
        parameters=catalog.parameters,
    )


def database_of(struct: Any) -> DatabaseInfo:
    """A Database, or a CreateDatabaseRequest, which differs in two names."""
    name = struct.databaseName if isinstance(struct, ttypes.CreateDatabaseRequest) else struct.name
    plain = to_plain(struct, without={"privileges"})
    if "dataConnectorName" in plain:
        plain["connector_name"] = plain["dataConnectorName"]
    return DatabaseInfo(
        name=database_name(name, struct.catalogName),
        location=plain.get("locationUri") or None,
        managed_location=plain.get("managedLocationUri") or None,
        description=plain.get("description"),
        owner=plain.get("ownerName"),
        owner_type=plain.get("ownerType"),
        created_s=plain.get("createTime") or 0,
        parameters=plain.get("parameters", {}),
        details=_kept(plain, _DATABASE_KEPT),
    )


def database_struct(database: DatabaseInfo) -> Any:
    struct = from_plain(ttypes.Database, database.details)
    struct.catalogName, struct.name = split_key(database.name)
    struct.description = database.description
    struct.locationUri = database.location
    struct.managedLocationUri = database.managed_location
    struct.parameters = database.parameters
    struct.ownerName = database.owner
    struct.ownerType = database.owner_type
    struct.createTime = database.created_s
    struct.type = struct.type or ttypes.DatabaseType.NATIVE
    return struct


def table_of(struct: Any, database: str | None = None) -> Table:
    """A table as a client defines it; in `database`, a key, where the struct does not say its own.

    Raises MetaError for what is missing, InvalidObjectError for values that cannot be stored.
    """
    plain = to_plain(struct, without={"sd", "partitionKeys", "privileges", "colStats", "fileMetadata", "dictionary"})
    check_storage(struct.sd, f"table {struct.tableName}")
    if struct.sd.cols is None:
        raise MetaError(f"the columns of table {struct.tableName} are missing")
    storage = to_plain(struct.sd, without=_STORAGE_OWN)
    return Table(
        database=_database_in(plain.get("dbName"), plain.get("catName"), database),
        name=fold(struct.tableName),
        table_type=plain.get("tableType") or None,
        owner=plain.get("owner"),
        owner_type=plain.get("ownerType"),
        created_s=plain.get("createTime") or 0,
        location=_location(struct.sd),
        columns=columns_of(struct.sd.cols),
        partition_keys=columns_of(struct.partitionKeys),
        parameters=plain.get("parameters", {}),
        storage=storage,
        details=_kept(plain, _TABLE_KEPT),
    )


def table_struct(table: Table) -> Any:
    struct = from_plain(ttypes.Table, {"lastAccessTime": 0, "retention": 0, **table.details})
    struct.tableName = table.name
    struct.catName, struct.dbName = split_key(table.database)
    struct.owner = table.owner
    struct.createTime = table.created_s
    struct.sd = storage_struct(table.columns, table.location, table.storage)
    struct.partitionKeys = field_schemas(table.partition_keys)
    struct.parameters = table.parameters
    struct.tableType = table.table_type or MANAGED_TABLE
    struct.rewriteEnabled = bool(struct.rewriteEnabled)
    struct.writeId = NO_WRITE_ID if struct.writeId is None else struct.writeId
    struct.ownerType = table.owner_type or USER
    struct.id = table.id
    return struct


def check_storage(storage: Any, what: str) -> None:
    """Raise MetaError if the storage descriptor of a new object is not complete."""
    if storage is None:
        raise MetaError(f"the storage descriptor of {what} is missing")
    if storage.serdeInfo is None:
        raise MetaError(f"the storage descriptor of {what} lacks its serdeInfo")
    if any(field.name is None or field.type is None for field in storage.cols or ()):
        raise MetaError(f"a column of {what} lacks its name or its type")


def partition_of(struct: Any) -> Partition:
    """A partition as a client defines it. Raises InvalidObjectError for values that cannot be stored."""
    plain = to_plain(struct, without={"values", "sd", "privileges", "colStats", "fileMetadata"})
    return Partition(
        values=list(struct.values or []),
        location=_location(struct.sd),
        created_s=plain.get("createTime") or 0,
        columns=None if struct.sd is None or struct.sd.cols is None else columns_of(struct.sd.cols),
        parameters=plain.get("parameters", {}),
        storage=None if struct.sd is None else to_plain(struct.sd, without=_STORAGE_OWN),
        details=_kept(plain, _PARTITION_KEPT),
    )


def partition_struct(database: str, table: str, partition: Partition, without_columns: bool = False) -> Any:
    """A Partition; `without_columns` for clients that take the columns from the table."""
    struct = from_plain(ttypes.Partition, {"lastAccessTime": 0, **partition.details})
    struct.values = partition.values
    struct.catName, struct.dbName = split_key(database)
    struct.tableName = table
    struct.createTime = partition.created_s
    columns = [] if without_columns else partition.columns or []
    struct.sd = storage_struct(columns, partition.location, partition.storage or {})
    struct.parameters = partition.parameters
    struct.writeId = NO_WRITE_ID if struct.writeId is None else struct.writeId
    return struct


def storage_struct(columns: Sequence[Column], location: str | None, storage: Mapping[str, Any]) -> Any:
    """A StorageDescriptor, complete for Java readers."""
    struct = from_plain(ttypes.StorageDescriptor, dict(storage))
    struct.cols = field_schemas(columns)
    struct.location = location
    struct.compressed = bool(struct.compressed)
    struct.numBuckets = NO_BUCKETS if struct.numBuckets is None else struct.numBuckets
    struct.serdeInfo = struct.serdeInfo or ttypes.SerDeInfo()
    struct.serdeInfo.parameters = struct.serdeInfo.parameters or {}
    struct.bucketCols = struct.bucketCols or []
    struct.sortCols = struct.sortCols or []
    struct.parameters = struct.parameters or {}
    skewed = struct.skewedInfo = struct.skewedInfo or ttypes.SkewedInfo()
    skewed.skewedColNames = skewed.skewedColNames or []
    skewed.skewedColValues = skewed.skewedColValues or []
    skewed.skewedColValueLocationMaps = skewed.skewedColValueLocationMaps or {}
    struct.storedAsSubDirectories = bool(struct.storedAsSubDirectories)
    return struct


def _database_in(name: str | None, catalog: str | None, outer: str | None) -> str:
    """The key of what a struct names; a catalog that it leaves out is that of `outer`. Raises MetaError for no name."""
    return database_name(name, catalog if outer is None else catalog or split_key(outer)[0])


def _location(storage: Any) -> str | None:
    return checked_text(storage.location, "the location") if storage is not None and storage.location else None


def _kept(plain: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if name in names}
