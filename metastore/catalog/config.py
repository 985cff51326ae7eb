"""Settings of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, choice, text

REFUSE, WARN, ALLOW = "refuse", "warn", "allow"


@dataclass(frozen=True)
class CatalogConfig:
    """What the catalogue may do with files, and to whom it shows ACID tables."""

    directories: bool = boolean(
        "metastore.filesystem.directories",
        "true",
        "Make, rename and remove the directories of databases, tables and partitions; false if the server cannot reach "
        "the warehouse.",
    )
    acid_guard: str = choice(
        "metastore.acid.guard",
        REFUSE,
        "Answer to a bare get_table (as stock Spark asks) for a full-ACID table: refuse, warn (in the log) or allow.",
        (REFUSE, WARN, ALLOW),
    )
    partition_name_whitelist: str = text(
        "metastore.partition.name.whitelist.pattern",
        "",
        "A regular expression that every new partition value must match as a whole; empty: all values are valid.",
        hive="",
    )
