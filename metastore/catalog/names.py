"""Names of catalogue objects: catalogs in database strings, the case rule, and the patterns of list calls.

All rules are those of wire.md §5.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hive_acid.errors import FormatError, InvalidObjectError, MetaError
from hive_acid.format.partitions import DEFAULT_PARTITION, parse_partition_name, partition_name

DEFAULT_CATALOG = "hive"
DEFAULT_DATABASE = "default"
MAX_CATALOG_NAME = 256
MAX_DATABASE_NAME = 128
MAX_TABLE_NAME = 256
MAX_PATTERN = 30_000  # characters; the database would be long about more
MAX_PARTITION_NAME_BYTES = 2000  # an entry of a Postgres index must fit a third of a page

_OBJECT_NAME = re.compile(r"\w+", re.ASCII)  # neither @ nor #, see `database_key`
_EMPTY_DATABASE = "!"


def fold(name: object) -> str:
    """`name` in lower case.

    Raises MetaError for a name that is absent, InvalidObjectError for what is not text, as bytes of another coding.
    """
    if name is None:
        raise MetaError("the request lacks a name")
    if not isinstance(name, str):
        raise InvalidObjectError(f"{name!r} is not a name: a name is UTF-8 text")
    return name.lower()


def decoded(database: str | None, catalog: str | None = None) -> tuple[str, str | None]:
    """Catalog and database of a text: ``db``, ``@cat#db``, ``@cat#`` (None, which is all) or ``@cat#!`` (empty name).

    `catalog` is what the request says in a field of its own; the string wins, and without either it is the default one.
    Both come in lower case, whether they exist or not.
    """
    if database is not None and not isinstance(database, str):
        raise InvalidObjectError(f"{database!r} is not a database name: a name is UTF-8 text")
    if database is not None and database.startswith("@") and "#" in database:
        catalog, _, rest = database[1:].partition("#")
        database = None if not rest else "" if rest == _EMPTY_DATABASE else rest
    return (
        DEFAULT_CATALOG if catalog is None else fold(catalog),
        None if database is None else database.lower(),
    )


def database_key(catalog: str, name: str) -> str:
    """The one text by which a database is known in the server.

    That of the default catalog is its name; others are ``@cat#db``, as on the wire, which no name can be. So tables,
    partitions, transactions and locks need no column for the catalog. Only this module knows the form.
    """
    return name if catalog == DEFAULT_CATALOG and not name.startswith("@") else f"@{catalog}#{name}"


def split_key(key: str) -> tuple[str, str]:
    """Catalog and name of the database with this key: what the fields ``catName`` and ``dbName`` of a reply say."""
    if not key.startswith("@"):
        return DEFAULT_CATALOG, key
    catalog, _, name = key[1:].partition("#")
    return catalog, name


def database_name(database: str | None, catalog: str | None = None) -> str:
    """The key of the one database that a string names, as `decoded`. Raises MetaError if it names none."""
    catalog, name = decoded(database, catalog)
    if name is None:
        raise MetaError("the request names no database")
    return database_key(catalog, name)


def table_text(database: str, table: str) -> str:
    """A table in the words of an error message, ``catalog.database.table`` (wire.md §3.5)."""
    return ".".join((*split_key(database), table))


def check_object_name(kind: str, name: str, max_length: int) -> None:
    """Raise InvalidObjectError unless `name` can be that of a new `kind` (``catalog``, ``database`` or ``table``)."""
    if not _OBJECT_NAME.fullmatch(name):
        raise InvalidObjectError(f"'{name}' is not a valid {kind} name: use letters, digits and underscores")
    if len(name) > max_length:
        raise InvalidObjectError(f"the {kind} name '{name[:32]}...' has more than {max_length} characters")


def pattern_regex(pattern: str) -> str:
    """A Postgres regular expression for a list pattern: ``*``, ``.*`` or ``%`` any run, ``.`` any one, ``|`` or.

    Raises MetaError for a pattern of more than `MAX_PATTERN` characters.
    """
    return f"^({_alternatives(pattern, '.')})$"


def database_regex(catalog: str, pattern: str | None) -> str:
    """As `pattern_regex`, for the keys of one catalog's databases (None: all); no key of another catalog matches it."""
    prefix = "(?!@)" if catalog == DEFAULT_CATALOG else re.escape(database_key(catalog, ""))
    return f"^{prefix}({_alternatives('*' if pattern is None else pattern, '[^@]')})$"


def is_plain_name(pattern: str) -> bool:
    """Whether a pattern matches the name that it is, and no other."""
    return _OBJECT_NAME.fullmatch(pattern) is not None


def _alternatives(pattern: str, any_one: str) -> str:
    if len(pattern) > MAX_PATTERN:
        raise MetaError(f"the pattern '{pattern[:32]}...' has more than {MAX_PATTERN} characters: ask several times")
    alternatives = []
    for alternative in fold(pattern).strip().split("|"):
        runs = re.split(r"\.\*|\*|%", alternative)
        alternatives.append(f"{any_one}*".join(any_one.join(map(re.escape, run.split("."))) for run in runs))
    return "|".join(alternatives)


def partition_values(values: Sequence[object]) -> list[str]:
    """Partition values as they are stored: null and empty become the default partition's value. Raises MetaError."""
    for value in values:
        if value is not None and (not isinstance(value, str) or "\0" in value):
            raise MetaError(f"{value!r} is not a partition value: a value is UTF-8 text without zero bytes")
    return [str(value) if value else DEFAULT_PARTITION for value in values]


def values_of_name(name: str) -> list[str]:
    """The values in a partition name. Raises MetaError if it is not of the form ``k=v/k2=v2``."""
    return [value for _, value in spec_of_name(name)]


def values_by_key(keys: Sequence[str], name: str) -> list[str]:
    """The values that a partition name has for these keys, whatever else it names.

    Raises MetaError for an absent name, InvalidObjectError if it lacks a key.
    """
    if not name:
        raise MetaError("the name of the partition is missing")
    try:
        given = {key.lower(): value for key, value in spec_of_name(name)}
    except MetaError as error:
        raise InvalidObjectError(str(error)) from None
    for key in keys:
        if key not in given:
            raise InvalidObjectError(f"the partition name {name[:64]} lacks the column {key}")
    return [given[key] for key in keys]


def spec_of_name(name: str) -> list[tuple[str, str]]:
    """(key, value) pairs of a partition name, the null value in its written form.

    Raises MetaError if it is absent or not of the form ``k=v/k2=v2``.
    """
    if not name:
        raise MetaError("the name of the partition is missing")
    try:
        return [(key, DEFAULT_PARTITION if value is None else value) for key, value in parse_partition_name(name)]
    except FormatError as error:
        raise MetaError(str(error)) from None


def name_of_values(keys: Sequence[str], values: Sequence[str]) -> str:
    """The partition name for stored values. Raises MetaError if it cannot be one."""
    try:
        name = partition_name(keys, [None if value == DEFAULT_PARTITION else value for value in values])
    except FormatError as error:
        raise MetaError(str(error)) from None
    if len(name.encode()) > MAX_PARTITION_NAME_BYTES:
        raise MetaError(f"the partition name {name[:64]}... has more than {MAX_PARTITION_NAME_BYTES} bytes")
    return name
