"""RPCs of our own: where partitions lie, and whether what a reader was told of them is so still.

A reader that lists directories long after it has taken its snapshot proves by them that it has listed what it was told:
not something that got the name or the place later.
"""

from __future__ import annotations

from typing import Any

from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.catalog.models import PartitionPlace
from metastore.catalog.names import database_name, fold
from metastore.catalog.partition.partitions import Partitions
from metastore.rpc.call import Call, Handler
from metastore.rpc.streaming import listed


def handlers(partitions: Partitions) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def hive_acid_partitions(call: Call, request: Any) -> Any:
        found = partitions.places(partitions.owner(database_name(request.dbname), request.tablename)).each(
            lambda place: ttypes.HiveAcidPartition(name=place.name, id=place.id, location=place.location)
        )
        return listed(found, lambda found: ttypes.HiveAcidPartitionsResponse(partitions=found))

    def hive_acid_moved(call: Call, request: Any) -> Any:
        is_moved, kept, moved = partitions.moved(
            TxnId(request.txnid),
            database_name(request.dbname),
            fold(request.tablename),
            request.tableId,
            request.location,
            [PartitionPlace(one.name, one.id, one.location) for one in request.partitions],
        )
        return ttypes.HiveAcidMovedResponse(isMoved=is_moved, kept=kept, moved=moved)

    return {"hive_acid_partitions": hive_acid_partitions, "hive_acid_moved": hive_acid_moved}
