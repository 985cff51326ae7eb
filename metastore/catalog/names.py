"""Names of catalogue objects: catalogs in database strings, the case rule, and the patterns of list calls.

All rules are those of metastore-wire.md §5, "Names".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hive_acid.errors import FormatError, InvalidObjectError, NoSuchObjectError
from hive_acid.format.partitions import DEFAULT_PARTITION, parse_partition_name, partition_name

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"
MAX_DATABASE_NAME = 128
MAX_TABLE_NAME = 256
MAX_PARTITION_NAME_BYTES = 2000  # an entry of a Postgres index must fit a third of a page

_OBJECT_NAME = re.compile(r"\w+", re.ASCII)
_EMPTY_DATABASE = "!"


def fold(name: object) -> str:
    """`name` in lower case. Raises InvalidObjectError for what is not text, such as bytes that are not UTF-8."""
    if not isinstance(name, str):
        raise InvalidObjectError(f"{name!r} is not a name: a name is UTF-8 text")
    return name.lower()


def split_catalog(database: str | None, catalog: str | None = None) -> str | None:
    """The database of a string such as ``db``, ``@hive#db``, ``@hive#`` (None: all) or ``@hive#!`` (the empty name).

    `catalog` is what the request says in a field of its own; the string wins. Raises NoSuchObjectError for any
    catalog but the default one.
    """
    if database is not None and not isinstance(database, str):
        raise InvalidObjectError(f"{database!r} is not a database name: a name is UTF-8 text")
    if database is not None and database.startswith("@") and "#" in database:
        catalog, _, rest = database[1:].partition("#")
        database = None if not rest else "" if rest == _EMPTY_DATABASE else rest
    if fold(catalog or DEFAULT_CATALOG) != DEFAULT_CATALOG:
        raise NoSuchObjectError(f"catalog {catalog} does not exist: this metastore has one, {DEFAULT_CATALOG}")
    return None if database is None else database.lower()


def database_name(database: str | None, catalog: str | None = None) -> str:
    """The one database that a string names, as `split_catalog`; none given is the default database."""
    name = split_catalog(database, catalog)
    return DEFAULT_DATABASE if name is None else name


def check_object_name(kind: str, name: str, max_length: int) -> None:
    """Raise InvalidObjectError unless `name` can be the name of a new `kind` (``database`` or ``table``)."""
    if not _OBJECT_NAME.fullmatch(name):
        raise InvalidObjectError(f"'{name}' is not a valid {kind} name: use letters, digits and underscores")
    if len(name) > max_length:
        raise InvalidObjectError(f"the {kind} name '{name[:32]}...' has more than {max_length} characters")


def pattern_regex(pattern: str) -> str:
    """A Postgres regular expression for a list pattern: ``*``, ``.*`` or ``%`` any run, ``.`` any one, ``|`` or."""
    alternatives = []
    for alternative in fold(pattern).strip().split("|"):
        runs = re.split(r"\.\*|\*|%", alternative)
        alternatives.append(".*".join(re.escape(run).replace(r"\.", ".") for run in runs))
    return f"^({'|'.join(alternatives)})$"


def partition_values(values: Sequence[object]) -> list[str]:
    """Partition values as they are stored: null and empty become the default partition's value."""
    for value in values:
        if value is not None and (not isinstance(value, str) or "\0" in value):
            raise InvalidObjectError(f"{value!r} is not a partition value: a value is UTF-8 text without zero bytes")
    return [str(value) if value else DEFAULT_PARTITION for value in values]


def values_of_name(name: str) -> list[str]:
    """The values in a partition name. Raises InvalidObjectError if it is not of the form ``k=v/k2=v2``."""
    return [value for _, value in spec_of_name(name)]


def spec_of_name(name: str) -> list[tuple[str, str]]:
    """(key, value) pairs of a partition name, the null value in its written form."""
    try:
        return [(key, DEFAULT_PARTITION if value is None else value) for key, value in parse_partition_name(name)]
    except FormatError as error:
        raise InvalidObjectError(str(error)) from None


def name_of_values(keys: Sequence[str], values: Sequence[str]) -> str:
    """The partition name for stored values. Raises InvalidObjectError if it cannot be one."""
    try:
        name = partition_name(keys, [None if value == DEFAULT_PARTITION else value for value in values])
    except FormatError as error:
        raise InvalidObjectError(str(error)) from None
    if len(name.encode()) > MAX_PARTITION_NAME_BYTES:
        raise InvalidObjectError(f"the partition name {name[:64]}... has more than {MAX_PARTITION_NAME_BYTES} bytes")
    return name
