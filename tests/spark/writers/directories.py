"""Which directories of writes there are, wherever a rename has brought them."""

from __future__ import annotations

from pathlib import Path

from hive_acid.format.names import is_hidden, parse_directory

Mark = tuple[int, str]
"""What a directory keeps when the table that it is of is renamed. (A number alone is given out again.)"""


def mark(path: Path) -> Mark:
    return path.stat().st_ino, path.name


def data_directories(root: Path) -> dict[Mark, Path]:
    """All directories of writes below `root` that have files, but those in hidden ones, which nobody ever reads."""
    return {
        mark(path): path
        for path in root.rglob("*")
        if parse_directory(path.name) and not is_hidden(str(path.relative_to(root))) and any(path.iterdir())
    }
