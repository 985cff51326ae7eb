"""Hive's own client tests: how many there are, and which do not pass here."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

_KNOWN = Path(__file__).parent.parent.parent / "idl" / "client_tests.tsv"
RUN = {
    "TestAddPartitions": 88,
    "TestAddPartitionsFromPartSpec": 52,
    "TestAlterPartitions": 75,
    "TestAppendPartitions": 37,
    "TestCatalogs": 8,
    "TestCheckConstraint": 9,
    "TestDatabases": 35,
    "TestDefaultConstraint": 9,
    "TestDropPartitions": 40,
    "TestExchangePartitions": 78,
    "TestForeignKey": 10,
    "TestFunctions": 51,
    "TestGetAllTableConstraints": 3,
    "TestGetPartitions": 50,
    "TestGetTableMeta": 9,
    "TestHiveMetaStoreClient": 3,
    "TestListPartitions": 129,
    "TestNotNullConstraint": 9,
    "TestPartitionStat": 2,
    "TestPrimaryKey": 14,
    "TestTablesCreateDropAlterTruncate": 73,
    "TestTablesGetExists": 35,
    "TestTablesList": 14,
    "TestUniqueConstraint": 9,
}
"""How many tests each class runs. Those of the other classes of the package open the database of Java's metastore."""


@dataclass(frozen=True, slots=True)
class Known:
    """A test that does not pass, and why."""

    case: str
    test: str
    why: str


def known_failures() -> list[Known]:
    """The tests that do not pass, as documented."""
    with _KNOWN.open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Known(row["class"], row["test"], row["why"]) for row in rows]
