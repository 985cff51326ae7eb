"""How far a stream got: a parameter of the table that it writes to, set by the commit of each of its batches.

The parameter ``_meta.batch.<query>`` holds the number of the last batch of that query whose rows are in the table. A
commit can only raise it, and is refused otherwise; so of two writers of one batch one commits. Nothing else changes it:
an ALTER TABLE that was put together from an older state of the table would set it back, and rows would come twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

PROGRESS_PREFIX = "_meta.batch."
"""How the names of these parameters begin."""

_QUERY = re.compile(r"[0-9A-Za-z_.:-]{1,128}")
_BATCH = re.compile(r"[0-9]{1,18}")


def progress_parameter(query: str) -> str:
    """The name of the parameter for the stream `query`. Raises ValueError for a name that cannot be one."""
    if not _QUERY.fullmatch(query):
        raise ValueError(f"'{query}' cannot name a stream: give 1 to 128 letters, digits and any of _ . : -")
    return PROGRESS_PREFIX + query


def last_batch(parameters: Mapping[str, str], query: str) -> int | None:
    """The last batch of `query` that is in the table with these parameters; None if there was none yet."""
    value = parameters.get(progress_parameter(query), "")
    return int(value) if _BATCH.fullmatch(value) else None


def is_batch(value: str) -> bool:
    """Whether `value` can be that of such a parameter: a number of up to 18 digits."""
    return _BATCH.fullmatch(value) is not None


def kept_progress(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """The parameters `new` of an altered table, with the progress of its streams as it was.

    An empty text forgets a stream.
    """
    kept = {key: value for key, value in old.items() if key.startswith(PROGRESS_PREFIX) and new.get(key) != ""}
    others = {key: value for key, value in new.items() if not (key.startswith(PROGRESS_PREFIX) and key in old)}
    return {**others, **kept}
