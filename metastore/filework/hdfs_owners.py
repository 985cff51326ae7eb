"""Who files on HDFS belong to, for `owners`: given by the name node, if the metastore is a superuser there.

Only what is the metastore's own is given. HDFS has no operation that looks and gives at once, so whoever may rename
directories above the place could put another one there in between.
"""

from __future__ import annotations

import uuid

from hive_acid.filesystem import files, hdfs
from metastore.filework.pools import system_of

_own_names: dict[tuple[str, str], str] = {}


def give(location: str, user: str) -> None:
    """Have a directory of ours belong to a user. Raises OSError."""
    _give(location, hdfs.Owner(user, None))


def give_as(locations: tuple[str, ...], home: str, with_all: bool) -> None:
    """Have directories of ours belong to whom `home` belongs to, `with_all` below them. Raises OSError."""
    owner = files.owner(home)
    for location in locations:
        below = files.list_tree(location) if with_all else []
        for entry in reversed(below):  # as long as a directory is ours nobody changes what is in it
            _give(files.join(location, entry.path), owner)
        _give(location, owner)


def _give(location: str, owner: hdfs.Owner) -> None:
    ours = _own_name(location)
    if owner.user != ours and files.owner(location).user == ours:
        files.set_owner(location, owner)


def _own_name(location: str) -> str:
    """Who the metastore is to the name node: the owner of a directory that it makes to see that."""
    system = system_of(location)
    name = _own_names.get(system)
    if name is None:
        probe = files.join(files.parent(location), f".owner-{uuid.uuid4().hex}")
        files.make_directory(probe)
        try:
            name = _own_names[system] = files.owner(probe).user
        finally:
            files.remove(probe)
    return name
