"""ROW FORMAT and STORED AS: how the files of a new table are written, and by which classes of Hive's."""

from __future__ import annotations

from dataclasses import dataclass, field

from hive_acid.catalog.storage_formats import StorageFormat, format_of_classes, text_with_serde
from hive_acid.spark.sql.columns import properties
from hive_acid.spark.sql.tokens import Cursor

_DELIMITERS = {
    ("FIELDS", "TERMINATED", "BY"): ("field.delim", "serialization.format"),
    ("COLLECTION", "ITEMS", "TERMINATED", "BY"): ("collection.delim", "colelction.delim"),
    ("MAP", "KEYS", "TERMINATED", "BY"): ("mapkey.delim",),
    ("LINES", "TERMINATED", "BY"): ("line.delim",),
    ("NULL", "DEFINED", "AS"): ("serialization.null.format",),
    ("ESCAPED", "BY"): ("escape.delim",),
}
"""Clauses of ROW FORMAT DELIMITED, and what Hive's SerDe is told by them; one name is misspelt there."""


@dataclass
class Storage:
    """What the clauses say; `stored_as` is a format's name or its classes."""

    stored_as: str | StorageFormat | None = None
    serde: str | None = None
    serde_properties: dict[str, str] = field(default_factory=dict)
    has_row_format: bool = False

    @property
    def is_given(self) -> bool:
        """Whether anything says which format it is."""
        return self.stored_as is not None or self.has_row_format

    @property
    def form(self) -> str | StorageFormat | None:
        """The format, None if nothing is said: a row format alone is of text, as in Hive."""
        if isinstance(self.stored_as, StorageFormat):
            return format_of_classes(self.stored_as.input_format, self.stored_as.output_format, self.serde)
        if self.serde is not None and (self.stored_as or "TEXTFILE").upper() == "TEXTFILE":
            return text_with_serde(self.serde)
        if self.stored_as is None and self.has_row_format:
            return "TEXTFILE"
        return self.stored_as


def accept_storage(cursor: Cursor, found: Storage) -> bool:
    """Step over a clause of storage that comes next. Raises SqlError for what is not made here."""
    if cursor.sees("ROW", "FORMAT"):
        _row_format(cursor, found)
    elif cursor.sees("STORED", "AS", "DIRECTORIES"):
        raise cursor.error("STORED AS DIRECTORIES follows the values of SKEWED BY")
    elif cursor.sees("STORED", "BY"):
        raise cursor.error("STORED BY: tables of other systems (Iceberg, HBase, Kafka, JDBC) are made by their engines")
    elif cursor.accept("STORED", "AS", "INPUTFORMAT"):
        of_input = cursor.string("a class")
        cursor.expect("OUTPUTFORMAT")
        found.stored_as = StorageFormat(of_input, cursor.string("a class"), "")
        if cursor.peek() in ("INPUTDRIVER", "OUTPUTDRIVER"):
            raise cursor.error("drivers are of HCatalog's older tables: leave them out")
    elif cursor.accept("STORED", "AS"):
        found.stored_as = cursor.string("a format") if cursor.sees_string() else cursor.identifier("a file format")
    else:
        return False
    return True


def _row_format(cursor: Cursor, found: Storage) -> None:
    if found.has_row_format:
        raise cursor.error("ROW FORMAT is given twice")
    found.has_row_format = True
    cursor.expect("ROW", "FORMAT")
    if cursor.accept("SERDE"):
        found.serde = cursor.string("a class")
        if cursor.accept("WITH", "SERDEPROPERTIES"):
            found.serde_properties |= properties(cursor)
        return
    if not cursor.accept("DELIMITED"):
        raise cursor.error("DELIMITED or SERDE 'class' was expected")
    while (words := next((words for words in _DELIMITERS if cursor.sees(*words)), None)) is not None:
        cursor.expect(*words)
        wrong = cursor.error("LINES TERMINATED BY takes '\\n' alone: other ends of lines are not read")
        value = cursor.string("a delimiter")
        if words[0] == "LINES" and value != "\n":
            raise wrong
        found.serde_properties |= dict.fromkeys(_DELIMITERS[words], value)
