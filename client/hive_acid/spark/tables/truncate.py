"""TRUNCATE: the metastore puts empty bases over the rows, so that readers keep their snapshots."""

from __future__ import annotations

from collections.abc import Iterable

from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError
from hive_acid.filesystem import files
from hive_acid.format.names import base_name
from hive_acid.spark.values.specs import PartitionSpec, matching_names
from hive_acid.spark.write.overwrite import overwriting
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from hive_acid.write.table_write import TableWrite


def truncate(
    connection: Connection,
    definitions: Definitions,
    transaction: Transaction | None,
    meant: TableReference,
    partition: PartitionSpec | None = None,
) -> None:
    """Remove all rows of the table, or of the partitions that `partition` covers.

    Those of a transactional table are gone when the `transaction` commits, of a plain one, for which it may be None, at
    once. Raises NoSuchObjectError for a partition that there is not, ColumnError for what is no specification of some,
    LockTimeoutError for writers that do not end and InvalidOperationError for files that are not the table's own.
    """
    begun: TableWrite | None = None
    if transaction is not None and (meant.known is None or meant.known.is_transactional):
        intent = overwriting(connection, transaction, meant, {}, with_rows=False)
        begun = TableWrite.begin(connection, definitions, transaction, meant, intent)
    table = definitions.now(meant, transaction) if begun is None else begun.table
    names: list[str] | None = None
    locations = {"": table.location}
    if partition and not table.partition_keys:
        raise ColumnError(f"{table.full_name} is not partitioned: give no partition")
    if table.partition_keys:
        found = connection.partitions(table)
        names = matching_names(table, partition, found) if partition else None
        locations = {name: found[name] for name in names or found}
    request = ttypes.TruncateTableRequest(dbName=table.database, tableName=table.name, partNames=names)
    if transaction is not None and table.is_transactional:
        write_id = transaction.write_id(table.database, table.name)
        request.writeId = write_id
        request.validWriteIdList = str(transaction.write_ids(table.database, table.name))
        places = {name: files.join(location, base_name(write_id)) for name, location in locations.items()}
        # A base of this transaction may be there already, with the rows that are to go.
        again = transaction.note_directories(table.database, table.name, places, overwrite=True)
        if begun is not None:
            transaction.on_abort(begun.bring_back)
            begun.put_aside(places[name] for name in again)
        transaction.on_abort(lambda: _remove(() if begun is not None and begun.is_anothers() else places.values()))
        if table.partition_keys and begun is not None and begun.intent.partition(table) is None:
            # The whole table counts as written to until a later statement names partitions, and then only those.
            transaction.add_dynamic_partitions(table.database, table.name, sorted(locations), Operation.DELETE)
    connection.call("truncate_table_req", request)


def _remove(places: Iterable[str]) -> None:
    for place in places:
        files.remove(place)
