"""LOAD DATA: files become a table's without being read; their rows get ids from their places (acid-format.md §5.5)."""

from __future__ import annotations

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.spark.tables.json_keys import check_keys
from hive_acid.spark.tables.raw import check_files, find_files, new_names
from hive_acid.spark.values.specs import PartitionSpec, full_values
from hive_acid.spark.values.wall_clock import refuse_skipped
from hive_acid.spark.write.constraints import refuse_unread
from hive_acid.spark.write.placement import Placement
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.transaction import Transaction
from hive_acid.write import loose_files
from hive_acid.write.staging import Values
from hive_acid.write.table_write import TableWrite


def load(
    context: Context,
    begun: TableWrite,
    path: str,
    *,
    partition: PartitionSpec | None = None,
    copy: bool = False,
) -> int:
    """Add the file at `path`, or all files of that directory, to the table or to one partition; returns their number.

    They replace what is there if `begun` overwrites. They are moved, unless `copy` says to leave them: a moved file
    goes from its old place only after the commit, so nothing is lost by a failure. Raises what `find_files`,
    `check_files`, `check_keys` and `new_names` raise, ColumnError for a partition that is not named in full,
    FormatError for files of the table itself.
    """
    placement, table = Placement(context, begun), begun.table
    values = full_values(table, partition)
    refuse_skipped(context.spark, table, zip(table.partition_keys, values, strict=True))
    refuse_unread(table, "LOAD DATA")
    found = find_files(path)
    if f"{files.one_name(path)}/".startswith(f"{files.one_name(table.location)}/"):
        raise FormatError(f"{path} lies in the directory of {table.full_name} itself: move it elsewhere first")
    check_files(table, found)
    check_keys(context.spark, table, found)
    return take_in(placement, begun.transaction, {values: found}, copy=copy)


def take_in(
    placement: Placement, transaction: Transaction, found: dict[Values, list[DataFilePath]], *, copy: bool
) -> int:
    """Place checked files, those of each partition in one directory; returns their number.

    Raises FormatError, unless they are to stay, for files that the transaction takes in already.
    """
    table = placement.table
    taken = [file.path for some in found.values() for file in some]
    if not copy:
        if again := transaction.moved.intersection(map(files.one_name, taken)):
            raise FormatError(
                f"{min(again)} is moved by this transaction already, when it commits: its rows would be there twice. "
                "Load it with copy=True if they are to be"
            )
        transaction.moved.update(map(files.one_name, taken))
    if table.is_plain:
        named = {values: loose_files.new_names([file.path for file in some]) for values, some in found.items()}
    else:
        named = {values: new_names(table, some) for values, some in found.items()}
    made: dict[Values, str] = {}
    for position, (values, some) in enumerate(found.items()):
        made[values] = files.join(placement.location, "ready", str(position))
        for file, name in zip(some, named[values], strict=True):
            files.copy(file.path, files.join(made[values], name), share=not copy)
    placement.publish(made)
    if not copy:
        transaction.on_commit(lambda: _remove(taken))
    return len(taken)


def _remove(paths: list[str]) -> None:
    for path in paths:
        files.remove(path)
