"""What a query gives to the function of its ``foreachBatch``, in files: over Connect that runs in another process."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

Row = tuple[Any, ...]


def rows(frame: DataFrame) -> Any:
    """The rows of a batch, sorted."""
    return sorted(map(tuple, frame.collect()))


class Taken:
    """The function, which keeps what `look` sees of each batch: the last attempt counts."""

    def __init__(self, directory: Path, look: Callable[[DataFrame], Any] = rows, *, fails: bool = False) -> None:
        self._directory = directory
        self._look = look
        self._fails = fails
        directory.mkdir(parents=True, exist_ok=True)

    def __call__(self, frame: DataFrame, batch: int) -> None:
        found = self._look(frame)
        if self._fails:
            raise RuntimeError("killed before it is done")
        aside = self._directory / f"{batch}.aside"
        aside.write_bytes(pickle.dumps(found))
        aside.replace(self._directory / str(batch))

    def forget(self) -> None:
        """Begin without batches."""
        for file in self._directory.iterdir():
            file.unlink()

    @property
    def batches(self) -> dict[int, Any]:
        """What has been seen of each, by their numbers."""
        files = [file for file in self._directory.iterdir() if file.name.isdigit()]
        return {int(file.name): pickle.loads(file.read_bytes()) for file in sorted(files, key=lambda of: int(of.name))}
