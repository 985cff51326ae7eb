"""Who keeps a snapshot's files: a lease is held by everything that can still read them, and ends with the last of it.

A frame's Python object says little about that. An RDD, an iterator, a view or the right side of a join reads what the
frame would have read. So the lease is held by what stands for the plan: in classic Spark by each object of the JVM that
was made from the frame's, as long as Python refers to it (`jvm_leases`), over Spark Connect by the frame's plan, which
all derived plans refer to (`connect_leases`). Temporary views and running streaming queries hold it as well.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.errors import SnapshotEndedError

GLOBAL_VIEWS = "global_temp"

_VIEW = r"\s+(?:`?global_temp`?\.)?(?P<tick>`?)(?P<name>\w+)(?P=tick)(?![\w`.])"
_DROP = re.compile(rf"\s*DROP\s+(?:VIEW|TABLE)(?:\s+IF\s+EXISTS)?{_VIEW}", re.IGNORECASE)
_REPLACE = re.compile(rf"\s*CREATE\s+OR\s+REPLACE\s+(?P<glob>GLOBAL\s+)?TEMP(?:ORARY)?\s+VIEW{_VIEW}", re.IGNORECASE)


class Lease:
    """A snapshot's files are kept while somebody refers to this; `end` is called when nobody does any more.

    `end` may be called at any line of any thread. `ended` says why nothing may be read any more, if it is so while
    somebody refers to this.
    """

    __slots__ = ("__weakref__", "ended", "spark")

    def __init__(self, spark: SparkSession, end: Callable[[], None]) -> None:
        self.spark = spark
        self.ended: str | None = None
        weakref.finalize(self, end).atexit = False

    def check(self) -> None:
        """Raise SnapshotEndedError if nothing may be read any more."""
        if self.ended is not None:
            raise SnapshotEndedError(f"the rows of this frame are not there any more, since {self.ended}")


Leases = frozenset[Lease]
NONE: Leases = frozenset()


@dataclass(slots=True)
class View:
    """A temporary view that reads snapshots. `session` is what Spark has for the session that it is in."""

    name: str
    is_global: bool
    leases: Leases
    session: Any = None
    is_used: bool = False
    """Whether another view, or something cached, may have been made of it by SQL."""

    @property
    def full_name(self) -> str:
        """As SQL names it."""
        return f"{GLOBAL_VIEWS}.{self.name}" if self.is_global else self.name

    def is_named_in(self, text: str) -> bool:
        """Whether `text` has the name as a word."""
        return re.search(rf"(?<!\w){re.escape(self.name)}(?!\w)", text, re.IGNORECASE) is not None

    def is_called(self, name: str) -> bool:
        """Whether it may be meant by `name`: Spark takes no notice of case, unless it is told to."""
        return self.name.lower() == name.strip("`").lower()


class Views:
    """The temporary views that read snapshots. `exists` asks Spark whether it still has a view.

    Threads may make and drop views at a time.
    """

    def __init__(self, exists: Callable[[View], bool]) -> None:
        self._exists = exists
        self._views: dict[tuple[str, bool, str], View] = {}

    def __bool__(self) -> bool:
        return bool(self._views)

    def __iter__(self) -> Iterator[View]:
        return iter(list(self._views.values()))

    def add(self, view: View) -> None:
        """It has been made, in place of one of the same name."""
        self._views[view.name, view.is_global, _place(view)] = view

    def replaced(self, name: str, *, is_global: bool, session: Any) -> None:
        """One of that name has been made that reads no snapshot."""
        for view in self:
            if view.is_called(name) and view.is_global == is_global and (is_global or view.session == session):
                self._remove(view)

    def dropped(self, name: str) -> None:
        """Some session has dropped a view of that name."""
        for view in self:
            if view.is_called(name) and not self._exists(view):
                self._remove(view)

    def ran(self, text: str, session: Any) -> None:
        """A statement of SQL has run in a session."""
        if found := _DROP.match(text):
            self.dropped(found["name"])
        elif found := _REPLACE.match(text):
            self.replaced(found["name"], is_global=found["glob"] is not None, session=session)
        if text.lstrip()[:6].lower() in ("create", "cache "):
            for view in self:
                view.is_used |= view.is_named_in(text)

    def leases_of(self, text: str) -> Leases:
        """What a query by that text, or a table by that name, may read."""
        return NONE.union(*(view.leases for view in self if view.is_used or view.is_named_in(text)))

    def would_read(self, text: str, lease: Lease) -> bool:
        """Whether a statement names a view with that lease, and neither drops nor replaces it."""
        return not (_DROP.match(text) or _REPLACE.match(text)) and any(
            lease in view.leases and view.is_named_in(text) for view in self
        )

    def clear(self) -> None:
        """Spark has stopped."""
        self._views.clear()

    def _remove(self, view: View) -> None:
        key = view.name, view.is_global, _place(view)
        if self._views.get(key) is view:
            self._views.pop(key, None)


def _place(view: View) -> str:
    """The name of the session that a view is in; all see a global one."""
    return "" if view.is_global or view.session is None else str(view.session._target_id)
