"""An export: everything of a source into a file (`file_format`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from metastore.transfer import file_format
from metastore.transfer.importing import ABORTED, settled_txns
from metastore.transfer.models import Entry, Selection, Source, TransferError
from metastore.transfer.report import ADDED, Report


def export_to_file(
    source: Source,
    path: Path,
    selection: Selection,
    open_policy: str,
    wait_s: float,
    progress: Callable[[str], None] = lambda name: None,
) -> Report:
    """Write what is selected. The file appears under its name when it is complete.

    Raises TransferError if transactions are open that may not count as aborted (`settled_txns`), OSError if the file
    cannot be written.
    """
    report = Report(source.name)
    txns = settled_txns(source, open_policy, wait_s)
    with file_format.FileWriter(path) as file:

        def entry(found: Entry) -> None:
            file.line(file_format.ENTRY, of=found.kind, key=found.key, value=found.value)
            report.count(found.kind, ADDED)

        file.line(file_format.TRANSACTIONS, high_water_mark=txns.high_water_mark)
        for catalog in source.catalogs():
            if selection.has_catalog(catalog.name):
                file.line(file_format.CATALOG, value=dataclasses.asdict(catalog))
                report.count("catalog", ADDED)
        for database in source.databases(selection):
            file.line(file_format.DATABASE, value=file_format.database_value(database))
            report.count("database", ADDED)
        for found in source.entries():
            if selection.is_everything:
                entry(found)
        for each in source.tables(selection):
            file.line(file_format.TABLE, value=file_format.table_value(each.table))
            report.count("table", ADDED)
            writes = each.writes()
            if writes is not None and writes.unfinished:
                if open_policy != ABORTED:
                    raise TransferError(f"{each.table.full_name} is being written to: export again later")
                writes = writes.with_open_as_aborted()
            if writes is not None:
                file.line(file_format.WRITES, **file_format.writes_value(writes))
            for batch in each.partitions():
                for partition in batch:
                    file.line(file_format.PARTITION, value=file_format.partition_value(each.table, partition))
                report.count("partition", ADDED, len(batch))
            for found in each.entries():
                entry(found)
            progress(each.table.full_name)
    return report
