"""Files of insert-only tables joined by their bytes, where reading and writing the values would change what they mean.

Only files that agree in schema, properties and writer become one, so every reader finds in the new file what told it
how to read the old ones (`hive_acid.format.parquet_file`, `hive_acid.format.avro_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.format import avro_file, parquet_file

_MOST_FOOTER_BYTES = 256 * 1024 * 1024

TellWritten = Callable[[int, int, int], None]
"""Takes the rows, files and bytes that are complete, from time to time; may raise to end the work."""


class _Form(Protocol):
    """A format whose files can be joined."""

    def kind(self, path: DataFilePath) -> Hashable:
        """The same for files that can become one."""

    def write(self, paths: Sequence[DataFilePath], made: Any) -> Iterator[int]:
        """Write files of one kind as one; the rows of each, once they are written."""


def join_files(form: str, found: Sequence[DataFilePath], place: str, target_bytes: int, report: TellWritten) -> int:
    """Join files into as few of about `target_bytes` as their kinds allow; the number of rows.

    `form` is "parquet" or "avro"; the new files are ``000000_0`` and so on in the directory `place`. Empty files have
    no rows and are left out. Raises FormatError for a file that cannot be joined.
    """
    joins = _FORMS[form]()
    by_kind: dict[Hashable, list[DataFilePath]] = {}
    for path in found:
        if path.size:
            with _told(path):
                by_kind.setdefault(joins.kind(path), []).append(path)
    rows = size = 0
    portions = [together for of_kind in by_kind.values() for together in _portions(of_kind, target_bytes)]
    for number, together in enumerate(portions):
        with files.create(files.join(place, f"{number:06d}_0")) as made:
            for of_file in joins.write(together, made):
                rows += of_file
                report(rows, number, size + made.tell())
            size += made.tell()
    return rows


class _Parquet:
    def __init__(self) -> None:
        self._footers: dict[str, parquet_file.ParquetFile] = {}

    def kind(self, path: DataFilePath) -> Hashable:
        tail = files.read_end(path.path, path.size, parquet_file.TAIL_BYTES)
        length = parquet_file.footer_length(tail)
        if length > min(path.size, _MOST_FOOTER_BYTES):
            raise FormatError(f"its footer has {length} bytes")
        end = files.read_end(path.path, path.size, length + parquet_file.TAIL_BYTES)
        self._footers[path.path] = parquet_file.parsed(end[: -parquet_file.TAIL_BYTES], path.size)
        return self._footers[path.path].kind

    def write(self, paths: Sequence[DataFilePath], made: Any) -> Iterator[int]:
        made.write(parquet_file.MAGIC)
        parts: list[tuple[parquet_file.ParquetFile, int]] = []
        for path in paths:
            footer = self._footers.pop(path.path)
            parts.append((footer, made.tell()))
            with _told(path):
                files.copy_range(path.path, len(parquet_file.MAGIC), footer.body_end, made)
            yield footer.rows
        made.write(parquet_file.joined_end(parts))


class _Avro:
    def kind(self, path: DataFilePath) -> Hashable:
        with files.opened(path.path) as file:
            properties, _ = avro_file.read_header(file)
        return frozenset(properties.items())

    def write(self, paths: Sequence[DataFilePath], made: Any) -> Iterator[int]:
        new_marker = b""
        for path in paths:
            rows = 0
            with _told(path), files.opened(path.path) as file:
                properties, marker = avro_file.read_header(file)
                if not new_marker:
                    new_marker = marker
                    made.write(avro_file.header(properties, new_marker))
                for in_block, block in avro_file.blocks(file, marker):
                    made.write(block + new_marker)
                    rows += in_block
            yield rows


_FORMS: dict[str, Callable[[], _Form]] = {"parquet": _Parquet, "avro": _Avro}


def _portions(paths: Sequence[DataFilePath], target_bytes: int) -> list[list[DataFilePath]]:
    """Files that follow each other, until they have reached the target."""
    portions: list[list[DataFilePath]] = []
    size = target_bytes
    for path in paths:
        if size >= target_bytes:
            portions.append([])
            size = 0
        portions[-1].append(path)
        size += path.size
    return portions


@contextmanager
def _told(path: DataFilePath) -> Iterator[None]:
    """Say in an error which file it is about."""
    try:
        yield
    except FormatError as error:
        raise FormatError(f"{path.path} cannot be joined with others: {error}") from error
