"""One event of each type, as it is in the log, and its message as Hive 4.0.1 would have built it."""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from hive_acid.wire import ConstraintKind
from metastore.catalog.changes import plain, plain_analysis, plain_partition
from metastore.catalog.column_statistics import Analysis, ColumnStatistics
from metastore.catalog.column_statistics import StatisticsKind as StatisticsKind
from metastore.catalog.constraint import Constraint, Parent
from metastore.catalog.function import Function
from metastore.catalog.models import CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.events.models import EventType, RecordedEvent

TIME_S = 1_700_000_000
STORAGE: dict[str, Any] = {"inputFormat": "in", "serdeInfo": {"serializationLib": "serde"}}
CATALOG = CatalogInfo("c1", "words", "file:/c", 5)
DATABASE = DatabaseInfo("db", "file:/w/db.db", owner="ann", created_s=5, parameters={"k": "v"})
TABLE = Table(
    database="db",
    name="t",
    table_type="MANAGED_TABLE",
    owner="ann",
    created_s=5,
    location="file:/w/db.db/t",
    columns=[Column("a", "int"), Column("b", "string", 'say "ü"')],
    partition_keys=[Column("ds", "string")],
    parameters={"transactional": "true"},
    storage=STORAGE,
    details={"writeId": 3},
    id=9,
)
PARTITION = Partition(
    values=["x=1/y"],
    location="file:/w/db.db/t/ds=x%3D1%2Fy",
    created_s=6,
    columns=TABLE.columns,
    parameters={"numRows": "1"},
    storage=STORAGE,
    name="ds=x%3D1%2Fy",
)
FUNCTION = Function("db", "f", "org.F", "ann", created_s=5, resources=[(1, "file:/f.jar")])


def _constraint(kind: ConstraintKind, *columns: str, expression: str | None = None) -> dict[str, Any]:
    return {"constraints": [asdict(Constraint(kind, "db", "t", list(columns), "c1", expression=expression))]}


def _statistics(partition: str | None) -> dict[str, Any]:
    columns = [
        ColumnStatistics("a", "int", StatisticsKind.LONG, nulls=1, distinct_values=2, low=3, high=4),
        ColumnStatistics("d", "decimal(9,2)", StatisticsKind.DECIMAL, 0, 2, low=Decimal("-1.25"), high=None),
        ColumnStatistics("t", "date", StatisticsKind.DATE, 0, 2, low=5, bit_vector=b"sketch"),
    ]
    told = plain_analysis(Analysis(columns, partition, 5))
    return {"table": plain(TABLE), "analysis": told, "engine": "hive", "write_id": 4}


_TABLE, _PARTITION = plain(TABLE), plain_partition(TABLE, PARTITION)
_OF_TABLE: dict[EventType, dict[str, Any]] = {
    EventType.CREATE_TABLE: {"table": _TABLE},
    EventType.ALTER_TABLE: {"before": _TABLE, "after": {**_TABLE, "name": "u"}, "truncated": False},
    EventType.DROP_TABLE: {"table": _TABLE},
    EventType.ADD_PARTITION: {"table": _TABLE, "partitions": [_PARTITION]},
    EventType.ALTER_PARTITION: {"table": _TABLE, "before": _PARTITION, "after": _PARTITION, "truncated": True},
    EventType.DROP_PARTITION: {"table": _TABLE, "partitions": [_PARTITION]},
    EventType.INSERT: {"table": _TABLE, "partition": _PARTITION, "files": ["f1###", "f2###s"], "replace": True},
    EventType.RELOAD: {"table": _TABLE, "partition": None, "refresh": True},
    EventType.ACID_WRITE: {
        "txn_id": 3,
        "write_id": 1,
        "table": _TABLE,
        "partition_name": PARTITION.name,
        "partition": _PARTITION,
        "files": ["f1###"],
    },
    EventType.ADD_PRIMARY_KEY: _constraint(ConstraintKind.PRIMARY_KEY, "a", "b"),
    EventType.ADD_FOREIGN_KEY: {
        "constraints": [
            asdict(
                Constraint(ConstraintKind.FOREIGN_KEY, "db", "t", ["a"], "fk", parent=Parent("db", "u", ["a"], "pk"))
            )
        ]
    },
    EventType.ADD_UNIQUE_CONSTRAINT: _constraint(ConstraintKind.UNIQUE, "a"),
    EventType.ADD_NOT_NULL_CONSTRAINT: _constraint(ConstraintKind.NOT_NULL, "a"),
    EventType.ADD_DEFAULT_CONSTRAINT: _constraint(ConstraintKind.DEFAULT, "a", expression="1"),
    EventType.ADD_CHECK_CONSTRAINT: _constraint(ConstraintKind.CHECK, "a", expression="a > 1"),
    EventType.DROP_CONSTRAINT: {"constraint": "c1"},
    EventType.UPDATE_TABLE_COLUMN_STAT: _statistics(None),
    EventType.DELETE_TABLE_COLUMN_STAT: {"partition_name": None, "column": "a"},
    EventType.UPDATE_PARTITION_COLUMN_STAT: _statistics(PARTITION.name),
    EventType.DELETE_PARTITION_COLUMN_STAT: {"partition_name": PARTITION.name, "column": None},
    EventType.COMMIT_COMPACTION: {"txn_id": 3, "compaction_id": 2, "type": "a", "partition_name": None},
    EventType.ALLOC_WRITE_ID: {"txn_ids": [3, 4], "write_ids": [1, 2]},
}
_OF_DATABASE: dict[EventType, dict[str, Any]] = {
    EventType.CREATE_DATABASE: {"database": plain(DATABASE)},
    EventType.ALTER_DATABASE: {"before": plain(DATABASE), "after": plain(DATABASE)},
    EventType.DROP_DATABASE: {"database": plain(DATABASE)},
    EventType.CREATE_FUNCTION: {"function": asdict(FUNCTION)},
    EventType.DROP_FUNCTION: {"function": asdict(FUNCTION)},
}
_OF_NONE: dict[EventType, dict[str, Any]] = {
    EventType.CREATE_CATALOG: {"catalog": plain(CATALOG)},
    EventType.ALTER_CATALOG: {"before": plain(CATALOG), "after": plain(CATALOG)},
    EventType.DROP_CATALOG: {"catalog": plain(CATALOG)},
    EventType.OPEN_TXN: {"txn_ids": [3, 4]},
    EventType.COMMIT_TXN: {"txn_id": 3},
    EventType.ABORT_TXN: {"txn_id": 3, "databases": ["db"]},
}


def samples() -> list[RecordedEvent]:
    """An event of each type that has a message of its own."""
    kinds = ((_OF_TABLE, "db", "t"), (_OF_DATABASE, "db", None), (_OF_NONE, None, None))
    each = [(kind, db, table, told) for group, db, table in kinds for kind, told in group.items()]
    return [
        RecordedEvent(number, TIME_S, str(kind), db, table, told)
        for number, (kind, db, table, told) in enumerate(each, start=1)
    ]
