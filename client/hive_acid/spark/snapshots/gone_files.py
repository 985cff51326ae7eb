"""Errors of Spark about files of a snapshot that are gone, told as what they are."""

from __future__ import annotations

import re

from hive_acid.errors import SnapshotEndedError

_GONE = re.compile(r"FILE_NOT_EXIST|FileNotFound|PATH_NOT_FOUND|does not exist", re.IGNORECASE)
_FILE = re.compile(r"[^\s'\"]*/(?:(?:base|delta|delete_delta)_\d+(?:_\w+)?|\d{6}_\d+)(?:/[^\s'\",]*)?")


def gone_file(words: str) -> str | None:
    """The file of a transactional table that is gone according to an error's words, if they say so."""
    if _GONE.search(words) is None:
        return None
    found = _FILE.search(words)
    return None if found is None else found[0].rstrip(".")


def snapshot_ended(path: str) -> SnapshotEndedError:
    """What to raise when `path` is gone."""
    return SnapshotEndedError(
        f"{path} is gone: the snapshot of who reads it has ended, and the table was compacted or replaced since. A "
        "snapshot ends with the last frame that reads it, with `acid.close()`, and when the metastore hears no "
        "heartbeat for hive.txn.timeout. Take acid.table again"
    )
