"""The table of methods in idl/METHODS.md, made from ``idl/methods.tsv``; ``python -m tests.methods`` writes it.

`tests/test_methods.py` keeps both true: methods of the tiers 1 to 3 are served, the others answered UNKNOWN_METHOD.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

IDL = Path(__file__).parent.parent / "idl"
DOCUMENT = IDL / "METHODS.md"
UNSERVED_TIER = 4
OURS = "ours"
"""In the place of the releases of a method that is no Hive's."""
_HEAD = """# The methods of ThriftHiveMetastore

Each method that any Hive from 2.3 to 4.2 knows, and what it does here. The releases are those that have it; `ours` is
what no Hive has. Tiers: 1 transactions, locks and compaction; 2 what reads and changes the catalogue; 3 statistics,
constraints, functions, privileges, notifications, tokens; 4 is not served: the answer is Thrift's error UNKNOWN_METHOD
with the text `Invalid method name: 'NAME'`, on which clients do without. Made from `methods.tsv` by
`python -m tests.methods`.

| method | releases | tier | here |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Method:
    """A line of ``methods.tsv``; of an unserved method `what` says to which family it belongs."""

    name: str
    releases: str
    tier: int
    what: str

    @property
    def is_served(self) -> bool:
        return self.tier != UNSERVED_TIER


def methods() -> list[Method]:
    """All methods by name."""
    with (IDL / "methods.tsv").open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Method(row["method"], row["releases"], int(row["tier"]), row["what"]) for row in rows]


def document() -> str:
    """The text of METHODS.md."""
    rows = []
    for method in methods():
        what = method.what if method.is_served else f"UNKNOWN_METHOD ({method.what})"
        rows.append(f"| `{method.name}` | {method.releases} | {method.tier} | {what} |\n")
    return _HEAD + "".join(rows)


def main() -> None:
    """Write METHODS.md."""
    DOCUMENT.write_text(document())


if __name__ == "__main__":
    main()
