"""Basic statistics kept up with each write: rows, files and bytes, added to what was known before.

Two calls for each statement, so a session does it only when asked to. What was known must be exact for the snapshot of
the writer, by the metastore's own proof; where it is not, as after writers that were under way together, nothing is
told until the next `analyze`. So a figure that is called accurate is so (docs/decisions: "Statistics are
proved, not believed").
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import FormatError, MetastoreError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import is_hidden
from hive_acid.format.properties import ACCURATE
from hive_acid.spark.write.figures import COMPUTED, Figures, with_figures
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes

LOG = logging.getLogger(__name__)


class Written(NamedTuple):
    """A directory that a statement has put into place, in a partition ("" for an unpartitioned table's one)."""

    partition: str
    directory: str
    holds_deletes: bool


def keep_up(
    connection: Connection, transaction: Transaction, table: Table, written: Sequence[Written], *, overwritten: bool
) -> None:
    """Tell the metastore what a statement has added, or what there is once it has `overwritten` the rest.

    A failure is logged: a write does not fail for its statistics.
    """
    try:
        if written:
            _tell(connection, transaction, table, written, overwritten=overwritten)
    except (MetastoreError, FormatError, OSError) as error:
        LOG.warning("statistics of %s were not kept up: %s", table.full_name, error)


def _added(written: Sequence[Written]) -> dict[str, Figures]:
    """What was added to each partition; events that delete count as rows less."""
    found: dict[str, Figures] = {}
    for partition, directory, holds_deletes in written:
        entries = [
            entry
            for entry in files.list_tree(directory, max_depth=1)
            if not entry.is_directory and not is_hidden(entry.path)
        ]
        tails = SHARED.read([DataFilePath(files.join(directory, entry.path), entry.size) for entry in entries])
        rows = sum(tail.rows for tail in tails) * (-1 if holds_deletes else 1)
        before = found.get(partition, Figures(0, 0, 0))
        size = sum(entry.size for entry in entries)
        found[partition] = Figures(before.rows + rows, before.files + len(entries), before.size_bytes + size)
    return found


def _tell(
    connection: Connection,
    transaction: Transaction,
    table: Table,
    directories: Sequence[Written],
    *,
    overwritten: bool,
) -> None:
    added = _added(directories)
    write_id = transaction.write_id(table.database, table.name)
    written = {"writeId": write_id, "validWriteIdList": str(transaction.write_ids(table.database, table.name))}
    snapshot = written["validWriteIdList"]

    def is_known(wire: Any, partition: str) -> bool:
        own = [directory for of, directory, _ in directories if of == partition]
        return _add(wire, added[partition], own, overwritten=overwritten)

    if not table.partition_keys:
        request = ttypes.GetTableRequest(dbName=table.database, tblName=table.name, validWriteIdList=snapshot)
        request.processorCapabilities = ["HIVEFULLACIDREAD", "HIVEFULLACIDWRITE"]
        wire = connection.call("get_table_req", request).table
        if is_known(wire, ""):
            altered = ttypes.AlterTableRequest(dbName=table.database, tableName=table.name, table=wire, **written)
            altered.environmentContext = COMPUTED
            connection.call("alter_table_req", altered)
        return
    by_names = ttypes.GetPartitionsByNamesRequest(
        db_name=table.database, tbl_name=table.name, names=list(added), validWriteIdList=snapshot
    )
    known = [
        wire
        for wire in connection.call("get_partitions_by_names_req", by_names).partitions
        if is_known(wire, table.partition_name(wire.values))
    ]
    if known:
        changed = ttypes.AlterPartitionsRequest(
            dbName=table.database, tableName=table.name, partitions=known, environmentContext=COMPUTED, **written
        )
        connection.call("alter_partitions_req", changed)


def _add(wire: Any, added: Figures, own: Sequence[str], *, overwritten: bool) -> bool:
    """Put the new figures into a table or partition; False if what there was before is not known for sure.

    `own` are the directories that the statement has put there.
    """
    parameters = wire.parameters or {}
    if overwritten:
        wire.parameters = with_figures(parameters, added)
        return True
    if "numRows" not in parameters and _holds_nothing_else(own):
        before = Figures(0, 0, 0)
    elif wire.isStatsCompliant and _is_accurate(parameters):
        before = Figures(*(int(parameters.get(key, 0)) for key in ("numRows", "numFiles", "totalSize")))
    else:
        return False
    wire.parameters = with_figures(
        parameters,
        Figures(before.rows + added.rows, before.files + added.files, before.size_bytes + added.size_bytes),
    )
    return True


def _holds_nothing_else(own: Sequence[str]) -> bool:
    """Whether nobody has ever written to the place of these directories: a compaction or cleaning leaves a base."""
    entries = files.list_tree(files.parent(own[0]), max_depth=1)
    names = {directory.rpartition("/")[2] for directory in own}
    return all(is_hidden(entry.path) or entry.path.rstrip("/") in names for entry in entries)


def _is_accurate(parameters: Mapping[str, str]) -> bool:
    try:
        return str(json.loads(parameters.get(ACCURATE, "{}")).get("BASIC_STATS")).lower() == "true"
    except (ValueError, AttributeError):
        return False
