"""Whether a text names anything of the metastore, however little of it is understood."""

from __future__ import annotations

from itertools import pairwise

from hive_acid.errors import SqlError
from hive_acid.spark.sql.names import Names
from hive_acid.spark.sql.tokens import DATABASE_WORDS, Cursor, tokens_of

_FILES = "rows do not say here in which file they lie: t.files lists a table's files, and ROW__ID tells a row's write"
_HIVES_COLUMNS = {
    "INPUT__FILE__NAME": _FILES,
    "BLOCK__OFFSET__INSIDE__FILE": _FILES,
    "ROW__OFFSET__INSIDE__BLOCK": _FILES,
    "RAW__DATA__SIZE": _FILES,
    "ROW__IS__DELETED": "rows that are deleted are not shown: t.deletes lists them",
}
"""Columns that Hive alone adds to those of a table, and what to ask for here."""
_OF_DATABASES = (*DATABASE_WORDS, "USE")


def mentions_ours(names: Names, text: str) -> bool:
    """Whether a name in `text`, or the first parts of it, is a table of the metastore, or a database of a statement
    about databases. No for a text that is not even words.
    """
    try:
        cursor = Cursor(text)
    except SqlError:
        return False
    about_databases = any(cursor.peek(at) in _OF_DATABASES for at in range(4))
    found: dict[tuple[str, ...], None] = {}
    while not cursor.at_end:
        if cursor.sees_identifier():
            parts = [part.lower() for part in _chain(cursor)]
            found |= {tuple(parts[:length]): None for length in range(1, min(len(parts), 3) + 1)}
        else:
            cursor.skip()
    if about_databases and any(names.has_database(name[0]) for name in found if len(name) == 1):
        return True
    return names.any_of_metastore(list(found))


def _chain(cursor: Cursor) -> list[str]:
    """The parts of the name that comes next, as far as it is one."""
    parts = [cursor.identifier()]
    while cursor.peek() == ".":
        cursor.skip()
        if not cursor.sees_identifier():
            break
        parts.append(cursor.identifier())
    return parts


def refuse_hives_columns(names: Names, text: str) -> None:
    """Raise SqlError for a column that only Hive has, in a statement on tables of the metastore.

    In quotes, and where the statement gives something that name, it is a column like others.
    """
    cursor = Cursor(text)
    words = [token.word for token in tokens_of(text)]
    for at, word in enumerate(words):
        if word in _HIVES_COLUMNS and ("AS", word) not in pairwise(words):
            if mentions_ours(names, text):
                raise cursor.error(f"{word} is a column of Hive's alone: {_HIVES_COLUMNS[word]}", at)
            return
