"""What must hold of every file of a table, whoever wrote it: read with pyarrow, not with Spark.

`check_table` looks at all files, committed or not. `check_snapshot` looks at what a snapshot sees of them, and is a
reader of its own: it gives the rows with their ROW__IDs, by the rules in `hive_acid.format` and in plain Python.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.orc

from hive_acid.filesystem import files
from hive_acid.format.names import (
    Directory,
    DirectoryKind,
    is_spark_file,
    parse_bucket_file,
    parse_directory,
    parse_original_file,
)
from hive_acid.format.rows import DELETE, INSERT, RowEvent, RowId, check_file, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, directory_state
from hive_acid.transactions.states import TransactionKind

COLUMNS = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
TYPES = ["int32", "int64", "int32", "int64", "int64"]


def events(file: Path) -> list[RowEvent]:
    """The events of a file, in file order; rows as tuples."""
    table = pyarrow.orc.ORCFile(file).read()
    assert table.schema.names == COLUMNS, file
    assert [str(column.type) for column in table.schema][:5] == TYPES, file
    found = []
    for *ids, row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        found.append(RowEvent(*ids, None if row is None else tuple(row.values())))  # type: ignore[call-arg]
    return found


def check_table(location: Path) -> dict[str, dict[str, list[RowEvent]]]:
    """Check all directories below a table's location; returns directory (relative) to file name to events.

    Raises AssertionError, or FormatError for a row in the wrong place. Files that LOAD DATA took in as they were have
    no events and are left out.
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
            if parse_original_file(path.name) is not None and directory.kind is not DirectoryKind.DELETE_DELTA:
                continue
            bucket = parse_bucket_file(path.name)
            assert bucket is not None, f"{relative} is no bucket file"
            assert (path.parent / "_orc_acid_version").exists(), f"{path.parent} lacks its marker"
            of_file = events(path)
            check_file(path.name, of_file)
            _check_events(relative, directory, of_file)
            in_directory = found.setdefault(str(path.parent.relative_to(location)), {})
            assert bucket not in map(parse_bucket_file, in_directory), f"{relative} is a second file of its bucket"
            in_directory[path.name] = of_file
    _check_unique(found)
    return found


def _check_events(name: str, directory: Directory, of_file: list[RowEvent]) -> None:
    deletes = directory.kind is DirectoryKind.DELETE_DELTA
    for event in of_file:
        assert event.operation == (DELETE if deletes else INSERT), (name, event)
        assert (event.row is None) == deletes, (name, event)
        # Rows from before the table was transactional have write id 0, and a base of them alone the lowest number.
        highest = max(0, directory.max_write_id)
        assert directory.min_write_id <= event.current_write_id <= highest, (name, event)
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
        if directory is None or directory.kind is not DirectoryKind.INSERT_DELTA or directory.statement_id is None:
            continue
        for of_file in in_directory.values():
            for event in of_file:
                assert (partition, event.key) not in seen, (path, event)
                seen.add((partition, event.key))


def check_snapshot(acid: Any, name: str) -> dict[str, list[RowEvent]]:
    """Check what a snapshot of now sees of a table; returns the visible rows of each partition ("" for the only one).

    Beyond what holds of each file: no row is deleted twice, none is deleted that is not there, no two rows have the
    same ROW__ID. Raises AssertionError, or FormatError.
    """
    table = acid.connection.table(*name.split("."))
    with acid.connection.begin(TransactionKind.READ) as transaction:
        write_ids = transaction.write_ids(table.database, table.name)
        places = acid.connection.partitions(table) if table.partition_keys else {"": table.location}
        return {
            partition: check_visible(_local(location), write_ids, transaction.snapshot)
            for partition, location in places.items()
        }


def check_visible(location: Path, write_ids: ValidWriteIdList, txns: ValidTxnList) -> list[RowEvent]:
    """`check_snapshot` of any snapshot, for the directory of a table or partition."""
    state = directory_state(
        files.list_tree(str(location)), write_ids, txns, lambda path: (location / path).read_bytes()
    )
    base = _of_directory(location, state.base) if state.base else []
    base += _of_raw_files(location, [file.path for file in state.originals], 0, 0)
    data = [event for delta in state.insert_deltas for event in _of_directory(location, delta)]
    deletes = [event for delta in state.delete_deltas for event in _of_directory(location, delta)]
    current = [event.key for event in deletes if write_ids.is_valid(event.current_write_id)]
    assert not (twice := [key for key, count in Counter(current).items() if count > 1]), f"{location}: {twice} twice"
    there: set[RowId] = {event.key for event in (*base, *data)}
    assert not (missing := [key for key in current if key not in there]), f"{location} deletes {missing}: not there"
    return visible_rows(data, deletes, write_ids, base)


def _of_directory(location: Path, directory: DataDirectory) -> list[RowEvent]:
    paths = sorted(file.path for file in directory.files)
    raw = [path for path in paths if parse_bucket_file(path.rpartition("/")[2]) is None]
    found = [event for path in paths if path not in raw for event in events(location / path)]
    named = directory.directory
    return found + _of_raw_files(location, raw, named.max_write_id, named.statement_id or 0)


def _of_raw_files(location: Path, paths: list[str], write_id: int, statement_id: int) -> list[RowEvent]:
    """Rows of files without ids, which are counted by bucket (acid-format.md §5.5)."""
    found: list[RowEvent] = []
    rows_of_bucket: Counter[int] = Counter()
    for path in paths:
        number = _bucket_of_raw(path.rpartition("/")[2])
        bucket = encode_bucket(number, statement_id)
        for row in pyarrow.orc.ORCFile(location / path).read().to_pylist():
            found.append(RowEvent(INSERT, write_id, bucket, rows_of_bucket[number], write_id, tuple(row.values())))
            rows_of_bucket[number] += 1
    return found


def _bucket_of_raw(name: str) -> int:
    if is_spark_file(name):
        return int(name.removeprefix("part-").partition("-")[0])
    return parse_original_file(name) or 0


def _local(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def location_of(acid: Any, name: str) -> Path:
    """The directory of a table."""
    return _local(acid.connection.table(*name.split(".")).location)
