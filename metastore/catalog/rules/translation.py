"""What kind of table a new one becomes: ACID by default if that is set, external by translation (wire.md §5.12).

Hive 4 makes a managed table that is not transactional an external one whose files go with it. Here that is a switch,
off by default: Spark's managed tables stay managed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from hive_acid.errors import MetaError
from hive_acid.format.properties import INSERT_ONLY, TRANSACTIONAL, TRANSACTIONAL_PROPERTIES
from metastore.catalog.config import CatalogConfig
from metastore.catalog.models import (
    EXTERNAL_TABLE,
    MANAGED_TABLE,
    Table,
)
from metastore.catalog.rules.capabilities import CONNECTOR_WRITE, EVERYTHING, FULL_ACID_WRITE, INSERT_ONLY_WRITE
from metastore.catalog.rules.validation import is_acid_storage

TRANSLATED = "TRANSLATED_TO_EXTERNAL"


def with_default_kind(table: Table, config: CatalogConfig) -> Table:
    """`table`, transactional if it says nothing about that and the settings make new managed tables so."""
    is_managed = table.table_type in (None, MANAGED_TABLE) and (table.parameter("EXTERNAL") or "").upper() != "TRUE"
    if not is_managed or table.parameter(TRANSACTIONAL) is not None or is_translated(table):
        return table
    if config.create_as_acid and is_acid_storage(table) and not table.storage.get("sortCols"):
        return replace(table, parameters={**table.parameters, TRANSACTIONAL: "true"})
    if config.create_as_insert_only:
        kind = {TRANSACTIONAL: "true", TRANSACTIONAL_PROPERTIES: INSERT_ONLY}
        return replace(table, parameters={**table.parameters, **kind})
    return table


def translated(table: Table, capabilities: Set[str]) -> Table:
    """A new table as Hive 4 makes it for a client with these capabilities.

    Raises MetaError for a transactional table if the client does not say that it can write it.
    """
    if table.table_type != MANAGED_TABLE or EVERYTHING in capabilities:
        return table
    if not table.is_transactional:
        external = {"EXTERNAL": "TRUE", "external.table.purge": "TRUE", TRANSLATED: "TRUE"}
        return replace(table, table_type=EXTERNAL_TABLE, parameters={**table.parameters, **external})
    if not capabilities:
        raise MetaError("Processor has no capabilities, cannot create an ACID table.")
    needed = FULL_ACID_WRITE if table.is_full_acid else INSERT_ONLY_WRITE
    if not capabilities & {needed, CONNECTOR_WRITE}:
        raise MetaError(f"Processor lacks the capability {needed}, cannot create the ACID table {table.full_name}.")
    return table


def is_translated(table: Table) -> bool:
    """Whether a table was asked for as a managed one and made external."""
    return (table.parameter(TRANSLATED) or "").upper() == "TRUE"
