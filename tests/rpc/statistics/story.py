"""One ACID table, with the steps of writers and readers of its statistics as Hive takes them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.wire import ttypes
from tests.caller import Caller
from tests.catalog.conftest import ACID, column, partition, table
from tests.catalog.statistics.short import long, statistics

_numbers = itertools.count(1)


class Story:
    """One ACID table, with the steps of writers and readers as Hive takes them."""

    def __init__(self, ann: Caller, partitioned: bool = False, **parameters: str) -> None:
        self.ann = ann
        self.name = f"s{next(_numbers)}"
        keys = (column("p", "string"),) if partitioned else ()
        ann.call("create_table", table(self.name, keys=keys, parameters=ACID | parameters))
        if partitioned:
            ann.call("add_partitions", [partition([value], self.name) for value in "xy"])

    def list_of(self, txn: int = 0) -> str:
        """The write ids that a transaction sees."""
        found = self.ann.write_ids(f"default.{self.name}", snapshot=self.ann.snapshot(txn) if txn else None)
        return str(
            ValidWriteIdList.from_invalid(
                found.fullTableName,
                found.writeIdHighWaterMark,
                found.invalidWriteIds,
                found.abortedBits or b"",
                found.minOpenWriteId,
            )
        )

    def begin(self) -> tuple[int, int, str]:
        """A transaction that will write: its id, write id and snapshot."""
        txn = self.ann.begin()
        snapshot = self.list_of(txn)
        ((_, write_id),) = self.ann.allocate(f"default.{self.name}", txn)
        return txn, write_id, snapshot

    def writes(self, txn: int, where: str = "", operation: str = "i") -> None:
        self.ann.lock(f"w default/{self.name}{where} {operation}", txn=txn)

    def insert(self, where: str = "") -> int:
        """An insert that says nothing of statistics, as ours; its write id."""
        txn, write_id, _ = self.begin()
        self.writes(txn, where)
        self.ann.commit(txn)
        return write_id

    def store(
        self,
        write_id: int | None,
        snapshot: str | None,
        partition: str | None = None,
        merge: bool = False,
        **columns: Any,
    ) -> bool:
        columns = columns or {"a": long(1, 9)}
        request = ttypes.SetPartitionsStatsRequest(
            colStats=[statistics(self.name, partition, **columns)],
            writeId=write_id,
            validWriteIdList=snapshot,
            needMerge=merge,
        )
        return bool(self.ann.call("set_aggr_stats_for", request))

    def analyze(self, partition: str | None = None, **columns: Any) -> int:
        """ANALYZE … FOR COLUMNS; its write id."""
        txn, write_id, snapshot = self.begin()
        self.store(write_id, snapshot, partition, **columns)
        self.ann.commit(txn)
        return write_id

    def alter(self, write_id: int | None = None, snapshot: str | None = None, **parameters: str) -> None:
        struct = self.table()
        struct.parameters = {**struct.parameters, **parameters}
        context = ttypes.EnvironmentContext(properties={"STATS_GENERATED": "TASK"})
        request = ttypes.AlterTableRequest(
            dbName="default",
            tableName=self.name,
            table=struct,
            environmentContext=context,
            writeId=write_id,
            validWriteIdList=snapshot,
        )
        self.ann.call("alter_table_req", request)

    def read(self, snapshot: str | None, *columns: str, engine: str | None = None) -> tuple[list[str], bool | None]:
        """The columns of which a reader is given statistics, and what it is told."""
        request = ttypes.TableStatsRequest(
            dbName="default",
            tblName=self.name,
            colNames=list(columns) or ["a", "b"],
            validWriteIdList=snapshot,
            engine=engine,
        )
        found = self.ann.call("get_table_statistics_req", request)
        return [one.colName for one in found.tableStats], found.isStatsCompliant

    def read_partitions(self, snapshot: str | None) -> tuple[list[str], bool | None]:
        found = self.ann.call("get_partitions_statistics_req", self._partitions(snapshot))
        return sorted(found.partStats), found.isStatsCompliant

    def aggregate(self, snapshot: str | None) -> tuple[int, int, bool | None]:
        """Columns, partitions found, and what the reader is told."""
        found = self.ann.call("get_aggr_stats_for", self._partitions(snapshot))
        return len(found.colStats), found.partsFound, found.isStatsCompliant

    def _partitions(self, snapshot: str | None) -> Any:
        return ttypes.PartitionsStatsRequest(
            dbName="default", tblName=self.name, colNames=["a"], partNames=["p=x", "p=y"], validWriteIdList=snapshot
        )

    def table(self, snapshot: str | None = None, **fields: Any) -> Any:
        request = ttypes.GetTableRequest(dbName="default", tblName=self.name, validWriteIdList=snapshot, **fields)
        return self.ann.call("get_table_req", request).table

    def accuracy(self, snapshot: str | None = None) -> Any:
        return json.loads(self.table(snapshot).parameters.get("COLUMN_STATS_ACCURATE", "null"))
