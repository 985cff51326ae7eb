"""What must hold of every file of a table, whoever wrote it: read with pyarrow, not with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.orc

from hive_acid.format.names import Directory, Kind, parse_bucket_file, parse_directory
from hive_acid.format.rows import DELETE, INSERT, RowEvent, check_file

COLUMNS = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
TYPES = ["int32", "int64", "int32", "int64", "int64"]


def events(file: Path) -> list[RowEvent]:
    """The events of a file, in file order; rows as tuples."""
    table = pyarrow.orc.ORCFile(file).read()
    assert table.schema.names == COLUMNS, file
    assert [str(column.type) for column in table.schema][:5] == TYPES, file
    found = []
    for *ids, row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.append(RowEvent(*ids, None if row is None else tuple(row.values())))
    return found


def check_table(location: Path) -> dict[str, dict[str, list[RowEvent]]]:
    """Check all directories below a table's location; returns directory (relative) to file name to events.

    Raises AssertionError, or FormatError for a row in the wrong place.
    """
    found: dict[str, dict[str, list[RowEvent]]] = {}
    for path in sorted(location.rglob("*")):
        relative = str(path.relative_to(location))
        directory = parse_directory(path.parent.name)
        if path.is_dir():
            if not any(path.iterdir()):
                continue
            assert not path.name.startswith((".", "_")), f"{relative} is left behind"
        elif path.name == "_orc_acid_version":
            assert path.read_bytes() == b"2", relative
        else:
            assert directory is not None, f"{relative} is in no data directory"
            assert parse_bucket_file(path.name) is not None, f"{relative} is no bucket file"
            assert (path.parent / "_orc_acid_version").exists(), f"{path.parent} lacks its marker"
            of_file = events(path)
            check_file(path.name, of_file)
            _check_events(relative, directory, of_file)
            found.setdefault(str(path.parent.relative_to(location)), {})[path.name] = of_file
    _check_unique(found)
    return found


def _check_events(name: str, directory: Directory, of_file: list[RowEvent]) -> None:
    deletes = directory.kind is Kind.DELETE_DELTA
    for event in of_file:
        assert event.operation == (DELETE if deletes else INSERT), (name, event)
        assert (event.row is None) == deletes, (name, event)
        assert directory.min_write_id <= event.current_write_id <= directory.max_write_id, (name, event)
        if not deletes:
            assert event.original_write_id == event.current_write_id, (name, event)
        if not deletes and directory.statement_id is not None:
            assert event.bucket_property & 0xFFF == directory.statement_id, (name, event)


def _check_unique(found: dict[str, dict[str, list[RowEvent]]]) -> None:
    """No two uncompacted insert events of a partition have one ROW__ID."""
    seen: set[Any] = set()
    for path, in_directory in found.items():
        partition, _, name = path.rpartition("/")
        directory = parse_directory(name)
        if directory is None or directory.kind is not Kind.INSERT_DELTA or directory.statement_id is None:
            continue
        for of_file in in_directory.values():
            for event in of_file:
                assert (partition, event.key) not in seen, (path, event)
                seen.add((partition, event.key))


def location_of(acid: Any, name: str) -> Path:
    """The directory of a table."""
    database, _, table = name.partition(".")
    return Path("/" + acid.connection.table(database, table).location.removeprefix("file:").lstrip("/"))
