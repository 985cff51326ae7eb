"""ADD PARTITION: partitions are registered, and files that are there already become rows of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hive_acid.catalog.partition_values import partition_text
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.errors import AlreadyExistsError, FormatError, NotEnoughHistoryError, UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import is_hidden
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.state import directory_state
from hive_acid.spark.tables.json_keys import check_keys
from hive_acid.spark.tables.load import take_in
from hive_acid.spark.tables.raw import check_files, find_files
from hive_acid.spark.values.wall_clock import refuse_skipped
from hive_acid.spark.write.constraints import refuse_unread
from hive_acid.spark.write.placement import Placement
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.same_partitions import names_there
from hive_acid.write.staging import Values
from hive_acid.write.table_write import Intent, refuse_long_values


def add_partitions(
    context: Context,
    transaction: Transaction,
    meant: TableReference,
    given: Mapping[str, str | None],
    *,
    if_not_exists: bool,
) -> int:
    """Register partitions (``k=v/…``) below the table; files at the location given are taken in as by LOAD DATA.

    They are copied and stay where they are: a directory outside of the table never becomes part of it. Returns the
    number of files. Raises AlreadyExistsError, unless `if_not_exists` passes such partitions by; FormatError for a
    partition's own directory that has files in it already, other than those of a dropped partition that wait for the
    Cleaner; and what `load` raises.
    """
    begun = None
    if any(location is not None for location in given.values()):
        begun = context.begin(transaction, meant, Intent(Operation.INSERT))
    table = begun.table if begun is not None else context.locked_for_reading(transaction, meant)
    if begun is not None and table.is_plain:
        raise UnsupportedTableError(
            f"{table.full_name} is a plain table: LOAD DATA … PARTITION takes files in, and MSCK REPAIR TABLE finds "
            "those in the directories of its own partitions"
        )
    by_us: dict[str, str | None] = {}
    for name, location in given.items():
        values = _values(table, name)
        refuse_skipped(context.spark, table, zip(table.partition_keys, values, strict=True))
        own_name = table.partition_name(values)
        if own_name in by_us:
            raise AlreadyExistsError(f"partition {own_name} of {table.full_name} is given twice")
        by_us[own_name] = location
    there = names_there(context.connection, table, by_us)
    names = {there[name]: location for name, location in by_us.items()}
    known = context.connection.partitions_named(table, list(names))
    if known and not if_not_exists:
        raise AlreadyExistsError(f"partition {min(known)} of {table.full_name} exists already")
    new = {name: location for name, location in names.items() if name not in known}
    refuse_long_values(table, (files.join(table.location, name) for name in new))
    found: dict[Values, list[DataFilePath]] = {}
    for name, location in new.items():
        _holds_files(transaction, table, files.join(table.location, name))
        if location is not None:
            refuse_unread(table, "ADD PARTITION … LOCATION")
            found[_values(table, name)] = find_files(location)
    taken = [file for some in found.values() for file in some]
    check_files(table, taken)
    check_keys(context.spark, table, taken)
    count = take_in(Placement(context, begun), transaction, found, copy=True) if begun is not None else 0
    without = {name: files.join(table.location, name) for name, location in new.items() if location is None}
    if without:
        context.connection.add_partitions(table, without)
    return count


def register_found(context: Context, transaction: Transaction, meant: TableReference, found: Mapping[str, str]) -> None:
    """Register partitions (``k=v/…``) whose empty directories were found; what a drop has left is none.

    Raises FormatError for one with files in it.
    """
    table = context.locked_for_reading(transaction, meant)
    empty = {name: place for name, place in found.items() if not _holds_files(transaction, table, place)}
    context.connection.add_partitions(table, empty)


def _holds_files(transaction: Transaction, table: Table, own: str) -> bool:
    """Whether a directory that is no partition's holds files, of a partition that was dropped.

    Raises FormatError for files of which it is not known what they are.
    """
    entries = files.list_tree(own)
    if all(entry.is_directory or is_hidden(entry.path) for entry in entries):
        return False
    if not _are_dropped(transaction, table, own, entries):
        raise FormatError(
            f"{own} has files in it, of which nobody knows which write of {table.full_name} they are: move them "
            "elsewhere, and say ADD PARTITION … LOCATION"
        )
    return True


def _are_dropped(transaction: Transaction, table: Table, own: str, entries: Sequence[files.FileEntry]) -> bool:
    """Whether all files in a directory are hidden by the empty base that a drop leaves while somebody reads them.

    Files of aborted writes are not: who forgets the abort when they are cleaned does not know this directory.
    """
    if not table.is_transactional:
        return False
    write_ids = transaction.write_ids(table.database, table.name)

    def metadata(path: str) -> bytes:
        return files.read(files.join(own, path))

    try:
        state = directory_state(entries, write_ids, transaction.snapshot, metadata)
        if state.base is None or state.insert_deltas or state.delete_deltas:
            return False
        base = [DataFilePath.of(own, file) for file in state.base.files]
        if any(tail.rows for tail in SHARED.read(base)):
            return False
    except (FormatError, NotEnoughHistoryError):
        return False
    hidden = {state.base.directory.name, *state.obsolete}
    return all(
        is_hidden(entry.path) or entry.path.rstrip("/") in hidden or entry.path.partition("/")[0] in hidden
        for entry in entries
    )


def _values(table: Table, name: str) -> Values:
    table.partition_values(name)
    pairs = zip(table.partition_keys, parse_partition_name(name), strict=True)
    return tuple(partition_text(table, key, value) for key, (_, value) in pairs)
