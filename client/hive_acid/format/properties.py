"""What a table's properties say about its kind. Of their keys and words the case does not count, as in Hive."""

from __future__ import annotations

from collections.abc import Mapping

TRANSACTIONAL = "transactional"
TRANSACTIONAL_PROPERTIES = "transactional_properties"
ACCURATE = "COLUMN_STATS_ACCURATE"
"""The parameter that says which statistics are counted, so that queries may be answered out of them."""
INSERT_ONLY = "insert_only"
LAYOUT_PROPERTY = "hive_acid.layout"
REPLACED = "hive_acid.replaced"
"""The parameter of a table that was given other columns with all of its rows: its id, and the write id of those rows.
"""

CREATED_BY = "hive_acid.created_by_txn"
"""The table parameter that names the transaction in which the table was made with its first rows."""
OF_ROWS = frozenset(
    {
        *(ACCURATE, REPLACED, CREATED_BY),
        *("numFiles", "numRows", "rawDataSize", "totalSize", "transient_lastDdlTime"),
    }
)
"""Parameters that say something of one table's rows and files, not of its kind."""

SESSION_DATABASE = "hive_acid_session_"
"""How the names of databases begin that hold the temporary tables of a session."""
SESSION_TRANSACTION = "hive_acid.session.transaction"
"""The parameter of such a database: the transaction that is open as long as the session lives."""

SUCCEEDS = "hive_acid.succeeds"
"""The parameter of a table that is about to take another one's place: the name of that one, of the same database."""
SUCCESSOR = "hive_acid_successor_"
"""How its name begins."""


def successor_name(txn_id: int) -> str:
    """What a table is called that takes another one's place with the commit of a transaction, until then."""
    return f"{SUCCESSOR}{txn_id}"


def is_successor(name: str) -> bool:
    """Whether a table of this name is such a one: nobody is told of it but who asks for it by its name."""
    return name.startswith(SUCCESSOR)


def property_of(properties: Mapping[str, str], key: str) -> str | None:
    """The value of a property by its key, whatever the key's case; None if there is none."""
    if key in properties:
        return properties[key]
    return next((value for other, value in properties.items() if other.lower() == key.lower()), None)


def word_of(properties: Mapping[str, str], key: str, default: str = "") -> str:
    """The value of a property that is one of a few words: in lower case, without blanks around it."""
    value = property_of(properties, key)
    return default if value is None else value.strip().lower()


def with_defaults(given: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """`given`, and of `defaults` those that it does not say in another case of letters."""
    return {**{key: value for key, value in defaults.items() if property_of(given, key) is None}, **given}


def replaced_mark(table_id: int, write_id: int) -> str:
    """The value of `REPLACED`."""
    return f"{table_id}:{write_id}"


def replaced_by(properties: Mapping[str, str], table_id: int) -> int:
    """The write id of the rows with which a table got its definition, 0 if it has had it from the beginning.

    What is said of another table counts as nothing: properties are copied from one to another.
    """
    of, _, write_id = properties.get(REPLACED, "").partition(":")
    return int(write_id) if of == str(table_id) and write_id.isdecimal() else 0


def is_transactional(properties: Mapping[str, str]) -> bool:
    """Whether a table with these properties has write ids at all (acid-format.md §2.4)."""
    return word_of(properties, TRANSACTIONAL) == "true"


def is_insert_only(properties: Mapping[str, str]) -> bool:
    """Whether rows can be added only, and have no ids by which they could be changed (acid-format.md §2.4)."""
    return is_transactional(properties) and word_of(properties, TRANSACTIONAL_PROPERTIES) == INSERT_ONLY


def is_full_acid(properties: Mapping[str, str]) -> bool:
    """Whether rows can be updated and deleted, so that files have Hive's ACID row format."""
    return is_transactional(properties) and not is_insert_only(properties)
