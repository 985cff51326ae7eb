"""Partition names ``k=v/k2=v2`` with Hive's escapes (wire.md §5.4).

The name of a partition is its identity in the metastore and, below the table's location, the default path of its
directory. Keys are lower case; a null or empty value is written as `DEFAULT_PARTITION`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hive_acid.errors import FormatError

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_MUST_ESCAPE = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """`text` with each character that may not stand in a partition name as ``%XX``."""
    return _MUST_ESCAPE.sub(lambda match: f"%{ord(match[0]):02X}", text)


def unescape(text: str) -> str:
    """The reverse of `escape`; a ``%`` without two hexadecimal digits stands for itself."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def partition_name(keys: Sequence[str], values: Sequence[str | None]) -> str:
    """The name of the partition that has `values` for the partition columns `keys`.

    Raises FormatError if there is not one value for each key.
    """
    if not keys or len(keys) != len(values):
        raise FormatError(
            f"{len(values)} partition values {list(values)} for {len(keys)} partition columns {list(keys)}"
        )
    return "/".join(
        f"{escape(key.lower())}={escape(value) if value else DEFAULT_PARTITION}"
        for key, value in zip(keys, values, strict=True)
    )


def parse_partition_name(name: str) -> list[tuple[str, str | None]]:
    """(key, value) of each part of a partition name, in order; None is the null value.

    Raises FormatError for a part that is not ``key=value``.
    """
    parsed: list[tuple[str, str | None]] = []
    for part in name.split("/"):
        key, equals, value = part.partition("=")
        if not key or not equals or not value:
            raise FormatError(f"partition name '{name}' is not of the form key=value/key2=value2")
        parsed.append((unescape(key).lower(), None if value == DEFAULT_PARTITION else unescape(value)))
    return parsed
