"""Conversion of flat tables: they become transactional with the files that they have.

To a full-ACID table it is a change of metadata alone: readers give the rows of its files ids from their places
(acid-format.md §5.5), and a major compaction, asked for at once, gives them to the rows for good, for engines that
cannot number them. An insert-only table has no files outside of its writes, so they are moved into one.
"""

from __future__ import annotations

from functools import partial

from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import ORC_INPUT, Table
from hive_acid.connection import Connection
from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import claims_to_be_data, is_hidden, parse_directory, parse_original_file
from hive_acid.format.orc.file import ACID_FIELDS
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.tables.definition import refuse_ordered
from hive_acid.spark.write.placement import Placement
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.staging import Values
from hive_acid.write.table_write import Intent

SPARK_PROVIDER = "spark.sql.sources.provider"
"""The property by which Spark knows its own tables."""

_PLACEHOLDER = "array<string>"
_COLUMN_OF_PLACEHOLDER = "col"


def convert(context: Context, transaction: Transaction, meant: TableReference, *, insert_only: bool) -> Table:
    """Make a plain table transactional, full-ACID or `insert_only`; the table as it is then.

    Running it again after a failure finishes what was begun. Raises UnsupportedTableError for tables whose files can
    not be a transactional table's, naming the way out, and MetaError for what the metastore refuses.
    """
    table = context.definitions.now(meant, transaction)
    if table.is_transactional and table.is_full_acid == (not insert_only):
        if insert_only:
            _move_in(context, transaction, table)
        return table
    if table.is_transactional:
        raise UnsupportedTableError(
            f"{table.full_name} is transactional already: full-ACID tables do not become insert-only ones"
            if table.is_full_acid
            else f"{table.full_name} is an insert-only table: set 'transactional_properties'='default' to change that"
        )
    _check_kind(table, insert_only=insert_only)
    if not insert_only:
        _check_files(context.connection, table)
    converted = _altered(context.connection, table, insert_only=insert_only)
    context.definitions.note(converted)
    if insert_only:
        _move_in(context, transaction, converted)
    return converted


def _check_kind(table: Table, *, insert_only: bool) -> None:
    name = table.full_name
    if table.table_type == "EXTERNAL_TABLE":
        raise UnsupportedTableError(
            f"{name} is an external table, whose files others may change: make it a managed one first "
            "(ALTER TABLE … SET TBLPROPERTIES ('EXTERNAL'='FALSE')), or copy it with acid.create_table_as"
        )
    if table.table_type != "MANAGED_TABLE":
        raise UnsupportedTableError(f"{name} is a view: it has no rows of its own")
    if [(c.name, c.type) for c in table.columns] == [(_COLUMN_OF_PLACEHOLDER, _PLACEHOLDER)] and (
        SPARK_PROVIDER in table.parameters
    ):
        raise UnsupportedTableError(
            f"{name} is a table of Spark's ({table.parameters[SPARK_PROVIDER]}) whose columns the metastore does not "
            "know: copy it with acid.create_table_as"
        )
    refuse_ordered(table)
    if not insert_only and table.input_format != ORC_INPUT:
        raise UnsupportedTableError(
            f"{name} does not store ORC files ({table.input_format}), which rows need to be changed one by one: "
            "convert it with insert_only=True, or copy it with acid.create_table_as"
        )


def _check_files(connection: Connection, table: Table) -> None:
    """Whether readers could number the rows of all files: by their names, and since they have no ids yet."""
    own = files.list_tree(table.location)
    found = [(table.location, entry) for entry in own]
    places = connection.partitions(table).values() if table.partition_keys else ()
    for place in places:
        if not files.is_below(place, table.location):
            found += [(place, entry) for entry in files.list_tree(place)]
    depth = len(table.partition_keys)
    candidates: list[DataFilePath] = []
    for root, entry in found:
        if entry.is_directory or is_hidden(entry.path):
            continue
        path = files.join(root, entry.path)
        parts = entry.path.split("/")
        if any(map(claims_to_be_data, parts[:-1])):
            raise FormatError(f"{path} lies in a directory that is named like one of an ACID table: move it elsewhere")
        if root == table.location and len(parts) <= depth:
            raise FormatError(f"{path} lies in no partition of {table.full_name}: nobody reads it, move it elsewhere")
        bucket = parse_original_file(parts[-1])
        if table.bucket_columns and (bucket is None or bucket >= table.buckets):
            raise UnsupportedTableError(
                f"{table.full_name} is CLUSTERED INTO {table.buckets} BUCKETS, and the name of {path} tells none of "
                "them, as 000000_0 does: copy it with acid.create_table_as"
            )
        candidates.append(DataFilePath(path, entry.size, entry.modified_ms))
    ids = tuple(name for name, _ in ACID_FIELDS)
    for file, tail in zip(candidates, SHARED.read(candidates), strict=True):
        if tail.names()[: len(ids)] == ids:
            raise FormatError(f"{file.path} is a file of another ACID table: its rows have ids of that table's writes")


def _altered(connection: Connection, table: Table, *, insert_only: bool) -> Table:
    wire = connection.wire_table(table.database, table.name)
    kind = "insert_only" if insert_only else "default"
    wire.parameters = {**(wire.parameters or {}), "transactional": "true", "transactional_properties": kind}
    connection.call("alter_table", table.database, table.name, wire)
    return connection.table(table.database, table.name)


def _move_in(context: Context, transaction: Transaction, table: Table) -> None:
    """Move the files of an insert-only table that belong to no write into one, partition by partition.

    They go from their old places after the commit; a file that a conversion before has left there just goes.
    """
    begun = context.begin(transaction, TableReference.of(table), Intent(Operation.INSERT))
    placement = Placement(context, begun)
    places: dict[Values, str] = {(): table.location}
    if table.partition_keys:
        places = {
            tuple(value for _, value in parse_partition_name(name)): location
            for name, location in context.connection.partitions(table).items()
        }
    write_ids = transaction.write_ids(table.database, table.name)
    moves: list[tuple[str, str]] = []
    made: dict[Values, str] = {}
    for position, (values, location) in enumerate(places.items()):
        ready = files.join(placement.location, "ready", str(position))
        entries = [entry for entry in files.list_tree(location) if not entry.is_directory]
        moved = {_below(entry.path): entry.size for entry in entries if _is_committed(entry.path, write_ids)}
        for entry in entries:
            if is_hidden(entry.path) or claims_to_be_data(entry.path):
                continue
            source = files.join(location, entry.path)
            if moved.get(entry.path) == entry.size:
                transaction.on_commit(partial(_remove, [source]))
                continue
            moves.append((source, files.join(ready, entry.path)))
            made[values] = ready
    if not moves:
        return
    for source, target in moves:
        files.copy(source, target, share=True)
    placement.publish(made)
    transaction.on_commit(lambda: _remove([source for source, _ in moves]))


def _is_committed(path: str, write_ids: ValidWriteIdList) -> bool:
    directory = parse_directory(path.partition("/")[0])
    return directory is not None and write_ids.is_valid(directory.max_write_id)


def _below(path: str) -> str:
    return path.partition("/")[2]


def _remove(paths: list[str]) -> None:
    for path in paths:
        files.remove(path)
