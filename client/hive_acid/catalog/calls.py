"""What a client asks of a metastore's catalogue, and of its queue of compactions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hive_acid.catalog.constraints import Constraint, structs
from hive_acid.catalog.table import Table, table_from_wire
from hive_acid.errors import THRIFT_ERRORS, UnknownMethodError
from hive_acid.ids import TxnId
from hive_acid.protocol import Question
from hive_acid.transport import Transport
from hive_acid.wire import CONSTRAINTS_CAPABILITY, ConstraintKind, ttypes

_CAPABILITIES = ("HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD")
LONGEST_NAME_LIST = 32_767
"""``max_parts`` travels as i16; -1 asks for all (wire.md §4.2)."""


class PartitionPlace(NamedTuple):
    """A partition by its id, which no other one has, not even a later one of the name, and where it lies."""

    name: str
    id: int
    location: str


class Moved(NamedTuple):
    """What is not there any more under its id and at its place: whether the table, and the names of partitions.

    Those `kept` were dropped, and the files are kept for the transaction that has asked; of those `moved` they may not.
    """

    table: bool
    kept: frozenset[str]
    moved: frozenset[str]


class CatalogCalls(Transport):
    """A metastore's catalogue: tables without Thrift."""

    tells_places = True
    """Whether the metastore may be one that tells the ids of partitions, and what has moved."""

    def table(self, database: str, name: str) -> Table:
        """The table's definition. Raises NoSuchObjectError."""
        return table_from_wire(self.wire_table(database, name))

    def wire_table(self, database: str, name: str) -> Any:
        """As `table`, with all that the metastore says of it, as a Thrift struct."""
        question = table_question(database, name)
        return self.call(question.method, *question.args).table

    def partitions(self, table: Table) -> dict[str, str]:
        """Partition name to location, of all partitions of a table."""
        return self.partitions_named(table, self.partition_names(table))

    def partition_names(self, table: Table, *, most: int = -1) -> list[str]:
        """The names of all partitions of a table, ``k=v/…``, or of `most` of them.

        Raises NoSuchObjectError if it is not there any more.
        """
        if not table.partition_keys:
            return []
        asked = most if most <= LONGEST_NAME_LIST else -1
        # By a pattern for all: get_partition_names answers for a table that is gone as for an empty one, as in Hive.
        names: list[str] = self.call("get_partition_names_ps", table.database, table.name, [""], asked)
        return names

    def partitions_named(self, table: Table, names: Sequence[str]) -> dict[str, str]:
        """Partition name to location, of those of the named partitions that there are."""
        found: dict[str, str] = {}
        for first in range(0, len(names), 1000):
            some = list(names[first : first + 1000])
            for partition in self.call("get_partitions_by_names", table.database, table.name, some):
                found[table.partition_name(partition.values)] = partition.sd.location
        return found

    def partition_places(self, table: Table) -> list[PartitionPlace] | None:
        """Where all partitions of a table lie, by their ids; None if the metastore does not tell these.

        Raises NoSuchObjectError if the table is not there any more.
        """
        if not self.tells_places:
            return None
        request = ttypes.HiveAcidPartitionsRequest(dbname=table.database, tablename=table.name)
        try:
            found = self.call("hive_acid_partitions", request).partitions
        except UnknownMethodError:  # another metastore
            self.tells_places = False
            return None
        return [PartitionPlace(one.name, one.id, one.location or "") for one in found]

    def moved(self, table: Table, places: Iterable[PartitionPlace], reader: TxnId) -> Moved:
        """What a reader's transaction was told of a table and of some of its partitions and is not so any more.

        If it has ended the table counts as moved, and nothing is kept.
        """
        request = ttypes.HiveAcidMovedRequest(
            txnid=reader,
            dbname=table.database,
            tablename=table.name,
            tableId=table.id,
            location=table.location,
            partitions=[ttypes.HiveAcidPartition(name=one.name, id=one.id, location=one.location) for one in places],
        )
        answer = self.call("hive_acid_moved", request)
        return Moved(answer.isMoved, frozenset(answer.kept), frozenset(answer.moved))

    def add_partitions(self, table: Table, locations: Mapping[str, str], *, wire: Any = None) -> None:
        """Register partitions (name to location); those that exist already are left as they are.

        `wire` is what `wire_table` has just told of the table, if it has been asked.
        """
        wire_table = wire or self.wire_table(table.database, table.name)
        parts = []
        for name, location in locations.items():
            descriptor = ttypes.StorageDescriptor(**vars(wire_table.sd))
            descriptor.location = location
            values = table.partition_values(name)
            parts.append(
                ttypes.Partition(
                    dbName=table.database,
                    tableName=table.name,
                    values=values,
                    sd=descriptor,
                    parameters={},
                    createTime=int(time.time()),
                )
            )
        for first in range(0, len(parts), 1000):
            request = ttypes.AddPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=parts[first : first + 1000],
                ifNotExists=True,
                needResult=False,
            )
            self.call("add_partitions_req", request)

    def create_database(
        self,
        name: str,
        *,
        location: str | None = None,
        managed_location: str | None = None,
        comment: str | None = None,
        properties: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        """Create a database; its directory is made by the metastore. Managed tables lie at `managed_location`."""
        database = ttypes.Database(
            name=name,
            locationUri=location,
            managedLocationUri=managed_location,
            description=comment,
            parameters=dict(properties or {}),
        )
        try:
            self.call("create_database", database)
        except THRIFT_ERRORS["AlreadyExistsException"]:
            if not if_not_exists:
                raise

    def _before_drop(self) -> None:
        """Something is about to be dropped, of which files and name are kept for whoever reads: who has transactions
        ends those that nobody needs any more.
        """

    def drop_database(self, name: str, *, cascade: bool = False, if_exists: bool = False) -> None:
        """Drop a database, with `cascade` its tables too. Raises InvalidOperationError if it has some without."""
        self._before_drop()
        try:
            self.call("drop_database", name, True, cascade)
        except THRIFT_ERRORS["NoSuchObjectException"]:
            if not if_exists:
                raise

    def add_constraints(self, table: Table, constraints: Iterable[Constraint]) -> None:
        """Give a table constraints, those of each kind all or none."""
        for kind, made in zip(ConstraintKind, structs(table.database, table.name, constraints), strict=True):
            method, request = _ADDING[kind]
            if made:
                self.call(method, request(made))

    def drop_constraint(self, table: Table, name: str) -> None:
        """Raises NoSuchObjectError if the table has none of this name."""
        request = ttypes.DropConstraintRequest(
            dbname=table.database, tablename=table.name, constraintname=name, catName="hive"
        )
        self.call("drop_constraint", request)

    def create_table(self, table: Table, *, if_not_exists: bool = False) -> None:
        """Create a table with its constraints; its directory is made by the metastore."""
        try:
            if table.constraints:
                made = structs(table.database, table.name, table.constraints)
                self.call("create_table_with_constraints", table.to_wire(self.user), *made)
            else:
                self.call("create_table", table.to_wire(self.user))
        except THRIFT_ERRORS["AlreadyExistsException"]:
            if not if_not_exists:
                raise

    def drop_table(self, database: str, name: str, *, purge: bool = False, if_exists: bool = False) -> None:
        """Drop a table with its data, with `purge` past the metastore's trash."""
        context = ttypes.EnvironmentContext(properties={"ifPurge": str(purge).lower()})
        self._before_drop()
        try:
            self.call("drop_table_with_environment_context", database, name, True, context)
        except THRIFT_ERRORS["NoSuchObjectException"]:
            if not if_exists:
                raise

    def drop_partitions(
        self, table: Table, names: Sequence[str], *, if_exists: bool = False, locked_by: TxnId | None = None
    ) -> None:
        """Drop partitions (``k=v/…``) with their data, all or none.

        `locked_by` is the transaction that has a lock for it; no file is kept for that one's sake. Raises
        NoSuchObjectError if one is not there, unless `if_exists` passes it by.
        """
        self._before_drop()
        if names:
            request = ttypes.DropPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=ttypes.RequestPartsSpec(names=list(names)),
                deleteData=True,
                ifExists=if_exists,
                needResult=False,
                environmentContext=ttypes.EnvironmentContext(properties={"txnId": str(locked_by or 0)}),
            )
            self.call("drop_partitions_req", request)

    def undrop_table(self, database: str, name: str) -> None:
        """Bring back the table of this name that was dropped last, with its partitions and data.

        Raises NoSuchObjectError if it is not in the metastore's trash (``metastore.catalog.undrop.window``),
        AlreadyExistsError if there is a table of that name.
        """
        table = ttypes.Table(dbName=database, tableName=name)
        context = ttypes.EnvironmentContext(properties={"metastore.catalog.undrop": "true"})
        self.call("create_table_with_environment_context", table, context)

    def compact(self, database: str, name: str, kind: str, partitions: Sequence[str] = ()) -> list[int]:
        """Queue compactions (``minor``, ``major`` or ``rebalance``), one per partition; the ids of those accepted."""
        answers = [self.request_compaction(database, name, kind, one) for one in partitions or (None,)]
        return [answer.id for answer in answers if answer.accepted]

    def request_compaction(
        self,
        database: str,
        name: str,
        kind: str,
        partition: str | None = None,
        *,
        pool: str | None = None,
        buckets: int | None = None,
        order_by: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Any:
        """Queue one compaction; the metastore's ``CompactionResponse``, which says if and why it was not accepted.

        `buckets` and `order_by` (``ORDER BY a DESC``) are a rebalance's, `pool` names the workers that are to do it;
        `properties` are ``compactor.*`` of the job and ``tblprops.*`` of what it writes.
        """
        request = ttypes.CompactionRequest(
            dbname=database,
            tablename=name,
            partitionname=partition,
            type=getattr(ttypes.CompactionType, kind.upper()),
            poolName=pool,
            numberOfBuckets=buckets,
            orderByClause=order_by,
            properties=dict(properties or {}),
        )
        return self.call("compact2", request)


_ADDING = {
    ConstraintKind.PRIMARY_KEY: ("add_primary_key", ttypes.AddPrimaryKeyRequest),
    ConstraintKind.FOREIGN_KEY: ("add_foreign_key", ttypes.AddForeignKeyRequest),
    ConstraintKind.UNIQUE: ("add_unique_constraint", ttypes.AddUniqueConstraintRequest),
    ConstraintKind.NOT_NULL: ("add_not_null_constraint", ttypes.AddNotNullConstraintRequest),
    ConstraintKind.DEFAULT: ("add_default_constraint", ttypes.AddDefaultConstraintRequest),
    ConstraintKind.CHECK: ("add_check_constraint", ttypes.AddCheckConstraintRequest),
}


def table_question(database: str, name: str) -> Question:
    """The call for a table's definition; its answer has the `table`."""
    request = ttypes.GetTableRequest(
        dbName=database,
        tblName=name,
        capabilities=ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES]),
        processorCapabilities=[*_CAPABILITIES, CONSTRAINTS_CAPABILITY],
        processorIdentifier="hive-acid",
    )
    return Question("get_table_req", (request,))
