"""The table of methods in idl/METHODS.md, made from ``idl/methods.tsv`` by ``python -m tests.repository.methods``.

`test_methods.py` keeps both true: methods of the tiers 1 to 3 are served, the others answered UNKNOWN_METHOD.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from tests.engines.known import RUN, known_failures

IDL = Path(__file__).parent.parent.parent / "idl"
DOCUMENT = IDL / "METHODS.md"
UNSERVED_TIER = 4
OURS = "ours"
"""In the place of the releases of a method that is no Hive's."""
_HEAD = """# The methods of ThriftHiveMetastore

Each method that any Hive from 2.3 to 4.2 knows, and what it does here. The releases are those that have it; `ours` is
what no Hive has. Tiers: 1 transactions, locks and compaction; 2 what reads and changes the catalogue; 3 statistics,
constraints, functions, privileges, notifications, tokens; 4 is not served: the answer is Thrift's error UNKNOWN_METHOD
with the text `Invalid method name: 'NAME'`, on which clients do without. Made from `methods.tsv` by
`python -m tests.repository.methods`.

| method | releases | tier | here |
|---|---|---|---|
"""
_TAIL = """
## Hive's own client tests

Hive 4.0.1 publishes the tests of its Java client (`hive-standalone-metastore-server`, classifier `tests`, package
`org.apache.hadoop.hive.metastore.client`): 873, of which 30 open the database of Java's metastore themselves (scheduled
queries, replication metrics, runtime statistics, write events) and say nothing of another server, and one is switched
off. `make test-engines` runs the other {run} over the wire, each class on a clean catalogue and with
`hive.metastore.limit.partition.request=100`. All pass but {failing}, and these do not because (`client_tests.tsv`):

| tests | how many | why |
|---|---|---|
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
    reasons: dict[str, dict[str, list[str]]] = {}
    for one in known_failures():
        reasons.setdefault(one.why, {}).setdefault(one.case, []).append(one.test)
    told = []
    for why, cases in reasons.items():
        tests = "; ".join(f"{case}: {', '.join(f'`{test}`' for test in tests)}" for case, tests in cases.items())
        told.append(f"| {tests} | {sum(map(len, cases.values()))} | {why} |\n")
    tail = _TAIL.format(run=sum(RUN.values()), failing=len(known_failures()))
    return _HEAD + "".join(rows) + tail + "".join(told)


def main() -> None:
    """Write METHODS.md."""
    DOCUMENT.write_text(document())


if __name__ == "__main__":
    main()
