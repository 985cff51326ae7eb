"""Whose the files are that the server makes: on a local file system, as root, and on HDFS, as a superuser there, the
users' whose tables they belong to.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from hive_acid.filesystem import hdfs
from metastore.filework import hdfs_owners, local_owners
from metastore.filework.files import is_below, is_local, parent, plain
from metastore.filework.pools import FILE_SYSTEMS, system_of
from metastore.observe.log import event

LOG = logging.getLogger("metastore.catalog")


class _Ways(Protocol):
    """How a file system has files given. Both raise OSError."""

    def give(self, location: str, user: str) -> None: ...

    def give_as(self, locations: tuple[str, ...], home: str, with_all: bool) -> None: ...


class Owners:
    """The one of a process is `OWNERS`; off until somebody sets `is_on`."""

    is_on = False

    def give(self, location: str, user: str | None) -> None:
        """Have a directory that was just made belong to a user, if there is one of that name; else it stays ours."""
        ways = self._ways(location)
        if ways is not None and user:
            self._run(location, ways.give, location, user)

    def give_below(self, locations: Iterable[str], home: str) -> None:
        """Have directories that were just made, and those above them in `home`, belong to whom that belongs to."""
        ways = self._ways(home)
        wanted: dict[str, None] = {}
        for location in locations:
            if ways is None or system_of(location) != system_of(home):
                continue
            wanted[location] = None
            above = parent(location)
            while is_below(above, home) and plain(above) != plain(home) and above not in wanted:
                wanted[above] = None
                above = parent(above)
        if ways is not None and wanted:
            self._run(home, ways.give_as, tuple(wanted), home, False)

    def give_tree(self, location: str, home: str) -> None:
        """Have a directory and all below it belong to whom `home` belongs to."""
        ways = self._ways(location)
        if ways is not None and system_of(location) == system_of(home):
            self._run(location, ways.give_as, (location,), home, True)

    def _ways(self, location: str) -> _Ways | None:
        """None where nothing is given."""
        if not self.is_on:
            return None
        if is_local(location):
            return local_owners if os.geteuid() == 0 else None
        return hdfs_owners if system_of(location)[0] in hdfs.SCHEMES else None

    def _run(self, location: str, function: Callable[..., None], *args: Any) -> None:
        """What cannot be given stays ours: the server can do with it what it has to."""
        try:
            FILE_SYSTEMS.run(location, function, *args, takes_long=True)
        except FileNotFoundError:
            return  # it is in its place already, or gone
        except OSError as error:
            event(LOG, logging.WARNING, "directory stays the metastore's", location=location, reason=str(error))


OWNERS = Owners()
