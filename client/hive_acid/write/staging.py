"""Staged output: files are made below a hidden directory of the table, whole directories are renamed into place.

Nothing is visible before the transaction commits, and all of it can be removed again until then. A directory is
complete before it gets its name, marker included (acid-format.md §4.2). Where a rename is a copy, each file is copied
once, straight to its place, and the marker comes last; a stream writes its files there at once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Self, TypeVar

from hive_acid.filesystem import files
from hive_acid.format.names import VERSION_CONTENT, VERSION_MARKER, bucket_file_name, staging_name
from hive_acid.ids import TxnId

_T = TypeVar("_T")
Values = tuple[str | None, ...]
"""The texts of a partition's values, in the order of the keys; empty for an unpartitioned table."""

INSERT, DELETE = "insert", "delete"
"""The kinds of files: new rows, and events that delete rows."""

_READY = "ready"


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """The files of one kind for one partition: number, a bucket's or a task's, to path below the staging directory.

    `layer` tells the first files of delete events of each bucket from the second ones, and so on. `statement_id` is
    that of the directory they go to, once it is known; `size` the bytes of all of them. `directory` is one below the
    staging directory that has all of them, under their names, and nothing else, if there is one. Files of LOAD DATA and
    of insert-only tables, which have no ACID columns, get no marker (`is_marked`).
    """

    kind: str
    values: Values
    buckets: Mapping[int, str]
    layer: int = 0
    statement_id: int = 0
    size: int = 0
    directory: str = ""
    is_marked: bool = True


@dataclass
class Staging:
    """The hidden directory of one write: `publish` renames what was made there, `remove` ends it."""

    location: str
    published: list[str] = field(default_factory=list)

    @classmethod
    def below(cls, root: str, txn_id: TxnId) -> Self:
        """A new one in a table's directory."""
        return cls(files.join(root, staging_name(txn_id, uuid.uuid4().hex[:12])))

    @property
    def is_bypassed(self) -> bool:
        """Whether a rename is a copy here, so that it is better to write files where they belong."""
        return files.rename_is_copy(self.location)

    def publish(self, found: Sequence[StagedFiles], place: Callable[[StagedFiles], tuple[str, str]]) -> None:
        """Put all of `found` where `place` says: the partition's location, and the directory's name in it."""
        self.side_by_side(self._publish, found, map(place, found))

    def _publish(self, position: int, staged: StagedFiles, place: tuple[str, str]) -> None:
        location, name = place
        target = files.join(location, name)
        if files.rename_is_copy(target):
            self.claim(target)
            if staged.is_marked:
                self._fill(target, staged)
                _mark(target)
                return
        ready = files.join(self.location, staged.directory or files.join(_READY, str(position), name))
        if not staged.directory:
            self._fill(ready, staged)
        if staged.is_marked:
            _mark(ready)
        self._rename(ready, target)

    def put(self, ready: str, target: str) -> None:
        """Put one file that is ready where readers look for it at once, as a plain table's."""
        if files.rename_is_copy(target):
            self.claim(target)
        self._rename(ready, target)

    def _rename(self, ready: str, target: str) -> None:
        try:
            files.rename(ready, target, once=True)
        except (FileExistsError, FileNotFoundError):
            raise  # what is at the target is somebody else's
        except BaseException:
            if not files.exists(ready):
                self._own(target)
            raise
        self._own(target)

    def _own(self, target: str) -> None:
        if target not in self.published:
            self.published.append(target)

    def claim(self, target: str) -> None:
        """Note that files are written to `target` from now on, and may be removed there.

        Raises FileExistsError if somebody else has files there, as another table may that took this one's place.
        """
        if target in self.published:
            return
        if files.list_tree(target):
            raise FileExistsError(f"{target} has files already, which this statement did not write")
        self.published.append(target)

    def _fill(self, directory: str, staged: StagedFiles) -> None:
        for bucket, path in staged.buckets.items():
            files.rename(files.join(self.location, path), files.join(directory, bucket_file_name(bucket)))

    def remove(self) -> None:
        """Remove the hidden directory with what was not published."""
        files.remove(self.location)

    def undo(self) -> None:
        """Remove everything, published directories included; only for a transaction that does not commit.

        What came last goes first: a base, which other engines read before it is committed (acid-format.md §4.3).
        """
        for target in reversed(self.published):
            files.remove(target)
        self.remove()

    def side_by_side(
        self, of_each: Callable[[int, Any, Any], _T], keys: Iterable[Any], values: Iterable[Any], *, local: int = 1
    ) -> list[_T]:
        """What `of_each` makes of each number, key and value; `local` is that of `files.threads_at`."""
        return files.side_by_side(
            lambda one: of_each(*one), zip(count(), keys, values, strict=False), self.location, local=local
        )


def _mark(directory: str) -> None:
    """Say of a directory that all its files are there."""
    files.write(files.join(directory, VERSION_MARKER), VERSION_CONTENT)
