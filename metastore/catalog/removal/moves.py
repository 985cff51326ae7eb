"""Directories that change their place with what they belong to: renames, exchanges, the way back from the trash.

1. One transaction finds that nobody else has anything at either place, claims the new one and notes the move.
2. The directories are moved. Whoever wants either place meanwhile waits for the end, or is refused (`neighbours`).
3. Another one stores the new places and takes the notes away.

What is noted is not committed. It goes back by its note: at once if a step fails, or by whoever comes next after a
kill (`removals`). The note goes in the transaction that stores the new places, so nothing goes back that has come to
stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from hive_acid.errors import InvalidOperationError, MetaError
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.transactions import in_transaction
from metastore.filework.files import rename_is_copy
from metastore.store.database import Database

T = TypeVar("T")


class DirectoryMoves:
    """Moves directories and stores that: both or neither."""

    def __init__(self, db: Database, directories: Directories, neighbours: Neighbours, removals: Removals) -> None:
        self._db = db
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals

    def moved(
        self,
        owner: str,
        moves: Sequence[tuple[str, str]],
        check: Callable[[Connection], None],
        store: Callable[[Connection], T],
    ) -> T:
        """The result of `store`, after directories of an `owner` were moved, each from one place to another.

        `check` raises if they must not be, or belong to something else by now, and claims the new places; `store`
        stores these. Raises what they raise, InvalidOperationError if a directory is in the way or another one is at
        work there, MetaError if one cannot be moved.
        """

        def begin(connection: Connection) -> list[Removal]:
            check(connection)
            self._neighbours.check_settled(connection, [place for ends in moves for place in ends])
            return self._removals.plan_moves(connection, moves, owner)

        def end(planned: Sequence[Removal], connection: Connection) -> T:
            self._removals.settle(connection, planned)
            return store(connection)

        def attempt() -> T:
            self._wait_for_ends(moves)
            planned = in_transaction(self._db, begin)
            self._move(planned)
            try:
                return in_transaction(self._db, partial(end, planned))
            except BaseException:
                self._removals.undo(planned)
                raise

        return self._removals.beside_others(attempt)

    def _wait_for_ends(self, moves: Sequence[tuple[str, str]]) -> None:
        """Raises InvalidOperationError if something is in the way that does not go."""
        for source, target in moves:
            self._removals.wait_for(source, below=True)
            self._removals.wait_for(target)
            if rename_is_copy(target) and self._directories.exists(target):  # a copy would go on what is there
                raise InvalidOperationError(f"cannot move {source}: the directory {target} exists already")

    def _move(self, planned: Sequence[Removal]) -> None:
        for number, removal in enumerate(planned):
            source, target = removal.trash or "", removal.location
            running = None
            try:
                if not self._removals.stands(removal):
                    raise InvalidOperationError(f"cannot move {source}: that took too long, try again")
                # Where there are no directories an empty one is none.
                self._directories.move(source, target, or_nothing=rename_is_copy(source))
            except BaseException as error:
                others = list(planned)
                if isinstance(error, InvalidOperationError):
                    self._removals.leave(others.pop(number))
                elif isinstance(error, MetaError) and isinstance(error.__cause__, TimeoutError):
                    running = removal
                self._removals.undo(others, running, str(error))
                raise
