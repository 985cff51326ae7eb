"""People at a server that enforces rights, and requests for each of its methods that name what is there."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text
from thriftpy2.thrift import TType

from hive_acid.wire import service, ttypes
from metastore.store.database import SCHEMA, Database
from tests.caller import Caller
from tests.served import Served

SETTINGS = {
    "metastore.authorization": "grants",
    "metastore.authorization.trust.set.ugi": "true",
    "hive.users.in.admin.role": "root",
    "metastore.filesystem.directories": "false",
}
MAY_NOT = ("may not call", "no user has come in")
USER, ROLE = ttypes.PrincipalType.USER, ttypes.PrincipalType.ROLE


def person(served: Served, name: str, *groups: str) -> Caller:
    """Somebody who has said who it is."""
    caller = served.caller(name)
    caller.call("set_ugi", name, list(groups))
    return caller


def table(name: str, database: str = "d", **fields: Any) -> Any:
    """A Table."""
    columns = [ttypes.FieldSchema(name="a", type="int")]
    storage = ttypes.StorageDescriptor(
        cols=columns,
        location=fields.pop("location", None),
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde"),
    )
    keys = [ttypes.FieldSchema(name="p", type="string")]
    others = {"partitionKeys": keys, "parameters": {}, "tableType": "MANAGED_TABLE", **fields}
    return ttypes.Table(dbName=database, tableName=name, sd=storage, **others)


def acid(name: str, database: str = "d", **fields: Any) -> Any:
    """A Table that is transactional."""
    return table(name, database, parameters={"transactional": "true"}, **fields)


def target(database: str | None = None, name: str | None = None, catalog: str | None = None) -> Any:
    """A HiveObjectRef: a table, a database, or everything (in a catalog)."""
    kinds = ttypes.HiveObjectType
    kind = kinds.GLOBAL if database is None else kinds.DATABASE if name is None else kinds.TABLE
    return ttypes.HiveObjectRef(objectType=kind, dbName=database, objectName=name, catName=catalog)


def bag(privilege: str, on: Any, principal: str, kind: int = USER, grant_option: bool = False) -> Any:
    """A PrivilegeBag with one grant."""
    info = ttypes.PrivilegeGrantInfo(privilege=privilege, grantor="?", grantorType=USER, grantOption=grant_option)
    one = ttypes.HiveObjectPrivilege(hiveObject=on, principalName=principal, principalType=kind, grantInfo=info)
    return ttypes.PrivilegeBag(privileges=[one])


def grant(caller: Caller, *arguments: Any, **more: Any) -> None:
    """Grant, as `bag`."""
    caller.call("grant_privileges", bag(*arguments, **more))


def revoke(caller: Caller, *arguments: Any, **more: Any) -> None:
    """Revoke, as `bag`."""
    caller.call("revoke_privileges", bag(*arguments, **more))


def rows(db: Database) -> dict[str, str]:
    """A sum of all that is in each table of the database; of transactions what the server does not touch by itself."""
    with db.engine.connect() as connection:
        query = text("SELECT tablename FROM pg_tables WHERE schemaname = :schema")
        tables = connection.execute(query, {"schema": SCHEMA}).scalars().all()
        sources = {name: f"SELECT t::text AS row FROM {name} t" for name in tables}
        sources["txn"] = "SELECT (txn_id, state, user_name, ended_at)::text AS row FROM txn"
        return {
            name: str(
                connection.execute(text(f"SELECT md5(string_agg(row, '|' ORDER BY row)) FROM ({source}) r")).scalar()
            )
            for name, source in sources.items()
        }


_NAMES = {
    **dict.fromkeys(("dbName", "dbname", "db_name", "db", "databaseName", "table_db", "fktable_db", "pktable_db"), "d"),
    **dict.fromkeys(("source_db", "dest_db", "database", "parent_db_name", "foreign_db_name", "oldDbName"), "d"),
    **dict.fromkeys(("tableName", "tablename", "tbl_name", "table_name", "tblName", "table", "tbl"), "t"),
    **dict.fromkeys(("source_table_name", "dest_table_name", "parent_tbl_name", "foreign_tbl_name"), "t"),
    **dict.fromkeys(("fktable_name", "pktable_name", "objectName"), "t"),
    **dict.fromkeys(("role_name", "roleName"), "crew"),
    **dict.fromkeys(("principal_name", "principalName", "user_name", "userName"), "zed"),
    **dict.fromkeys(("funcName", "functionName"), "f"),
    **dict.fromkeys(("part_name", "partName"), "p=1"),
    **dict.fromkeys(("col_name", "column_name", "fkcolumn_name", "pkcolumn_name"), "a"),
    **dict.fromkeys(("owner", "ownerName"), "ann"),
    **dict.fromkeys(("catName", "catalogName", "cat_name", "catalog"), "hive"),
    "filter": "",
    "tableNamePattern": "*",
}
_LISTS = {
    "fullTableNames": ["d.t"],
    "seen": ["d.t"],
    "written": ["d.t"],
    "tablesUsed": ["d.t"],
    "part_vals": ["1"],
    "partVals": ["1"],
    "values": ["1"],
}
_NUMBERS = {"objectType": 3, "principal_type": 1, "principalType": 1, "functionType": 1, "ownerType": 1, "type": 1}
_ABSENT = {
    "replPolicy", "keyValue", "replLastIdInfo", "writeEventInfos",
    "projectionSpec", "environmentContext", "environment_context", "envContext", "validTxnList", "validWriteIdList",
    "compactionid", "replSrcTxnIds", "srcTxnToWriteIdList", "txn_type", "colStats", "fileMetadata", "sd",
    "creationMetadata", "dictionary", "skewedInfo", "state", "tablesPattern", "pattern", "capabilities",
}  # fmt: skip


class Requests:
    """Makes requests that name database d, table d.t, the role crew and the ids that are given."""

    def __init__(self, txn_id: int, lock_id: int, compaction_id: int, table_id: int) -> None:
        self._ids = {
            **dict.fromkeys(("txnid", "txnId", "min", "max"), txn_id),
            **{key: [txn_id] for key in ("txn_ids", "txnIds")},
            "lockid": lock_id,
            "compactionIds": [compaction_id],
            "tableId": table_id,
        }

    def of(self, method: str) -> list[Any]:
        """The arguments of a call."""
        spec = getattr(service, f"{method}_args").thrift_spec
        return [self._value(method, field, 0) for _, field in sorted(spec.items())]

    def _value(self, method: str, field: Any, depth: int) -> Any:
        kind, name = field[0], field[1]
        if name == "name" and kind == TType.STRING:
            return "t" if method.startswith("drop_table") else "c" if "catalog" in method else "d"
        if name == "colStats" and method.endswith(("statistics_req", "stats_for")):
            return [self._struct(method, ttypes.ColumnStatistics, depth)]
        if (name in _ABSENT and kind != TType.STRUCT) or (name in _ABSENT and depth):
            return None
        if method.startswith("show_") and depth:
            return None  # all of them
        if method == "get_table_names_by_filter" and name == "filter":
            return 'hive_filter_field_owner__ = "ann"'
        if name in self._ids:
            return self._ids[name]
        if kind == TType.BINARY:
            return b"1"
        if kind == TType.STRING:
            return _NAMES.get(name, "1")
        if kind == TType.STRUCT:
            return None if depth >= 5 or name in _ABSENT else self._struct(method, field[2], depth)
        if kind == TType.SET:
            return set(_LISTS.get(name, ()))
        if kind == TType.LIST:
            return self._list(method, field, depth)
        if kind == TType.MAP:
            return {"d.t": 1} if name == "writeIds" else {}
        if kind == TType.BOOL:
            return name in ("isTblLevel", "successful")
        return _NUMBERS.get(name, 1)

    def _list(self, method: str, field: Any, depth: int) -> Any:
        item = field[2]
        if isinstance(item, tuple) and item[0] == TType.STRUCT:
            return [self._struct(method, item[1], depth)] if depth < 5 else []
        return _LISTS.get(field[1], []) if item == TType.STRING else []

    def _struct(self, method: str, kind: Any, depth: int) -> Any:
        if kind is ttypes.Table:
            return table("t2" if method.startswith(("create", "translate")) else "t", owner="ann")
        made = kind()
        for field in kind.thrift_spec.values():
            setattr(made, field[1], self._value(method, field, depth + 1))
        return made
