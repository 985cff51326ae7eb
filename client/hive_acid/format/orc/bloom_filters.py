"""Which columns of new ORC files have bloom filters: readers pass over row groups by them that lack a wanted value.

A table's properties say so, as in Hive and Trino. ORC itself knows the columns of an ACID file by their names in its
row.
"""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS = "orc.bloom.filter.columns"
FPP = "orc.bloom.filter.fpp"
"""How often a filter may say that a value is there which is not, between 0 and 1."""
_ALL = "*"


def asked_filters(parameters: Mapping[str, str]) -> dict[str, str]:
    """What a table's parameters, or options, say of bloom filters, by names in lower case."""
    return {key.lower(): value.strip() for key, value in parameters.items() if key.lower() in (COLUMNS, FPP)}


def options_with_filters(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """`options` of ORC's writer, its bloom filters such as the writer can make, none without a column of the table.

    `names` gives the columns that are written, in lower case, and what the writer knows them by. Others are left out,
    as are shares of wrong answers that there cannot be: the writer would fail.
    """
    folded = asked_filters(options)
    others = {key: value for key, value in options.items() if key.lower() not in folded}
    asked = [name.strip() for name in folded.get(COLUMNS, "").split(",")]
    known = asked if asked == [_ALL] else [names[name.lower()] for name in asked if name.lower() in names]
    if not known:
        return others
    found = others | {COLUMNS: ",".join(known)}
    return found | {FPP: folded[FPP]} if _is_share(folded.get(FPP, "")) else found


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False
