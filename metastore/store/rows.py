"""Lists of the database that may be too long to be held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, Connection, Row, Select, func, select

from metastore.store.database import Database

SHORT = 300
"""A list of up to so many rows is held; of a longer one, so many rows at a time."""
HELD = 2_000
"""So is a list that is known to have no more than this, as one that is asked for by names."""

T = TypeVar("T")
U = TypeVar("U")


class Rows(Generic[T]):
    """What a query finds, in its order: held if it is `short`, else `opened` and read row by row."""

    def __init__(
        self,
        db: Database,
        query: Select[*tuple[Any, ...]],
        convert: Callable[[Row[*tuple[Any, ...]]], T | None],
        limit: int | None = None,
        has_gaps: bool = False,
        batch: int = SHORT,
        most: int | None = None,
    ) -> None:
        """`convert` makes an item of a row; with `has_gaps` it may make None, which does not count.

        Not more than `limit` rows are read; none or a negative one is no limit. Of a long list `batch` rows are
        fetched at a time. `most` is how many there can be, if that is known.
        """
        self._db = db
        self._query = query
        self._convert = convert
        self._limit = None if limit is None or limit < 0 else limit
        self._has_gaps = has_gaps
        self._batch = batch
        self._most = most

    def each(self, change: Callable[[T], U | None], has_gaps: bool = False) -> Rows[U]:
        """The same list with every item changed when it is read."""

        def convert(row: Row[*tuple[Any, ...]]) -> U | None:
            item = self._convert(row)
            return None if item is None else change(item)

        gaps = has_gaps or self._has_gaps
        return Rows(self._db, self._query, convert, self._limit, gaps, self._batch, self._most)

    def beside(self, column: Callable[[Select[*tuple[Any, ...]]], ColumnElement[U]]) -> Rows[tuple[T, U]]:
        """The same list with the value of one more column for each item, made from the query as it stands."""

        def convert(row: Row[*tuple[Any, ...]]) -> tuple[T, U] | None:
            rest: Any = row[:-1]
            item = self._convert(rest)
            return None if item is None else (item, row[-1])

        query = self._query.add_columns(column(self._limited()))
        return Rows(self._db, query, convert, self._limit, self._has_gaps)

    def all(self) -> list[T]:
        """The whole list, for those that know that it is not long."""
        return list(self._items(self._fetched(self._limited())))

    def short(self) -> list[T] | None:
        """The whole list, in one round trip; None if it has more than `SHORT` rows."""
        if self._most is not None and self._most <= HELD:
            return self.all()
        limit = SHORT + 1 if self._limit is None else min(self._limit, SHORT + 1)
        rows = self._fetched(self._query.limit(limit))
        return list(self._items(rows)) if len(rows) <= SHORT else None

    @contextmanager
    def opened(self) -> Iterator[Snapshot[T]]:
        """The list as it is now, on a connection of its own until the end of the body."""
        with self._db.engine.connect() as connection:
            settings = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            with connection.execution_options(**settings, stream_results=True, max_row_buffer=self._batch).begin():
                yield Snapshot(self._count(connection), lambda: self._items(connection.execute(self._limited())))

    def _fetched(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[*tuple[Any, ...]]]:
        # Without a transaction around the one query, which would be two round trips more.
        with self._db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            return connection.execute(query).all()

    def _limited(self) -> Select[*tuple[Any, ...]]:
        return self._query if self._limit is None else self._query.limit(self._limit)

    def _items(self, rows: Iterable[Row[*tuple[Any, ...]]]) -> Iterator[T]:
        return (item for row in rows if (item := self._convert(row)) is not None)

    def _count(self, connection: Connection) -> int:
        if self._has_gaps:
            return sum(1 for _ in self._items(connection.execute(self._limited())))
        counted = select(func.count()).select_from(self._limited().order_by(None).subquery())
        return int(connection.execute(counted).scalar_one())


class Snapshot(Generic[T]):
    """A list whose length is known before its items are read, one after the other, once."""

    def __init__(self, count: int, items: Callable[[], Iterator[T]]) -> None:
        self._count = count
        self._items = items

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        """Raises RuntimeError if the length was wrong: the reader has been told another one."""
        read = 0
        for item in self._items():
            read += 1
            yield item
        if read != self._count:
            raise RuntimeError(f"a list of {self._count} items has {read}")
