"""Settings of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.catalog.place.places import SCHEMES, root_list, scheme_list
from metastore.settings import boolean, choice, duration, integer, names, text

REFUSE, WARN, ALLOW = "refuse", "warn", "allow"
GUARD_PROPERTY = "metastore.acid.guard"
"""The setting, and the table property that counts more."""


@dataclass(frozen=True)
class CatalogConfig:
    """What the catalogue may do with files, and to whom it shows ACID tables."""

    directories: bool = boolean(
        "metastore.filesystem.directories",
        "true",
        "Make, rename and remove the directories of databases, tables and partitions; false if the server cannot reach "
        "the warehouse.",
    )
    schemes: tuple[str, ...] = names(
        "metastore.filesystem.schemes",
        ",".join(SCHEMES),
        "The file systems on which databases, tables and partitions may lie; a location anywhere else is refused.",
        scheme_list,
    )
    allowed_locations: tuple[str, ...] = names(
        "metastore.warehouse.allowed.locations",
        "",
        "Where databases, tables and partitions may lie beside the warehouse: places with commas between. Links "
        "are followed. Nothing is removed outside. Empty: anywhere.",
        root_list,
    )
    gives_away: bool = boolean(
        "metastore.filesystem.owners",
        "false",
        "On local file systems and HDFS, directories of databases, tables and partitions belong to the owner of the "
        "table or database, what a compaction makes to whom the table's directory belongs to. The server has to be "
        "root, on HDFS a superuser.",
    )
    file_timeout_ms: int = duration(
        "metastore.filesystem.timeout",
        "30s",
        "How long a call waits for an answer of a file system before it fails; listings and removals 20 times as long.",
        least_ms=100,
    )
    acid_guard: str = choice(
        GUARD_PROPERTY,
        REFUSE,
        "Answer to a bare get_table (as stock Spark asks) for a full-ACID table: refuse, warn (in the log) or allow. "
        "A table property of the same name counts more.",
        (REFUSE, WARN, ALLOW),
    )
    capability_check: bool = boolean(
        "metastore.client.capability.check",
        "false",
        "Refuse insert-only tables to get_table and to a get_table_req without the capability INSERT_ONLY_TABLES.",
        hive="true",
        why="It would lock out clients that can read them, such as Spark.",
    )
    translate_types: bool = boolean(
        "metastore.table.type.translation",
        "false",
        "Make managed tables that are not transactional external ones when they are created, and create transactional "
        "ones only for clients that name the capability, as Hive 4 does.",
        hive="",
        why="Spark's managed tables stay managed, and may be ACID.",
    )
    external_warehouse: str = text(
        "metastore.warehouse.external.dir",
        "",
        "Root of the tables that the translation makes external; empty: the warehouse.",
        hive="",
    )
    create_as_acid: bool = boolean(
        "hive.create.as.acid",
        "false",
        "Make new managed ORC tables full-ACID unless they say 'transactional'.",
        hive="false",
    )
    create_as_insert_only: bool = boolean(
        "hive.create.as.insert.only",
        "false",
        "Make new managed tables insert-only unless they say 'transactional' (or hive.create.as.acid applies).",
        hive="false",
    )
    check_column_types: bool = boolean(
        "hive.metastore.disallow.incompatible.col.type.changes",
        "true",
        "Refuse alterations after which the files of a table could not be read by its column types.",
        hive="true",
    )
    soft_delete: bool = boolean(
        "metastore.acid.soft.delete",
        "true",
        "The files of a dropped ACID table or partition stay until the transactions have ended that were open at the "
        "drop; the Cleaner removes them.",
        hive="false",
        why="Running readers finish, and without any the files go at once.",
    )
    truncate_wait_ms: int = duration(
        "metastore.acid.truncate.wait",
        "10s",
        "How long truncating an ACID table waits for the writers that are under way.",
    )
    undrop_window_ms: int = duration(
        "metastore.catalog.undrop.window",
        "0s",
        "How long the files of a dropped managed table stay in the trash, from where `metastore undrop` brings it "
        "back; 0: no trash. ifPurge and the table property auto.purge go past it.",
    )
    fetch_bit_vectors: bool = boolean(
        "metastore.stats.fetch.bitvector",
        "true",
        "Send the bit vectors of distinct values along with statistics of columns.",
        hive="false",
        why="What a client has stored comes back as it was.",
    )
    bit_vector_partitions: int = integer(
        "metastore.stats.bitvector.partitions",
        "50000",
        "Statistics over this many partitions at most unite their bit vectors, some 30 us for each column of each; "
        "over more, the number of distinct values is the largest of a partition.",
    )
    admin_users: str = text(
        "hive.users.in.admin.role",
        "",
        "Users who are given the role admin when the server starts, with commas between; taken out of the list, they "
        "keep it until it is revoked.",
        hive="",
    )
    partition_name_whitelist: str = text(
        "metastore.partition.name.whitelist.pattern",
        "",
        "A regular expression that every new partition value must match as a whole; empty: all values are valid.",
        hive="",
    )
    partition_request_limit: int = integer(
        "hive.metastore.limit.partition.request",
        "-1",
        "How many whole partitions one request may ask for, by a filter or without; -1: any number. Names, and "
        "partitions by their names, are not limited.",
        least=-1,
        hive="-1",
    )
    partition_batch: int = integer(
        "hive.metastore.batch.retrieve.table.partition.max",
        "1000",
        "How many partitions are read from the database at a time while a long list of them is sent.",
        least=1,
        most=100_000,
        hive="1000",
    )
