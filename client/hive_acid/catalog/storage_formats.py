"""The formats that CREATE TABLE … STORED AS names, as the classes of Hive that read and write them."""

from __future__ import annotations

from typing import NamedTuple

from hive_acid.errors import UnsupportedTableError


class StorageFormat(NamedTuple):
    """Input format, output format and SerDe of a table."""

    input_format: str
    output_format: str
    serde: str


_QL = "org.apache.hadoop.hive.ql.io"
_SERDES = "org.apache.hadoop.hive.serde2"
_TEXT = ("org.apache.hadoop.mapred.TextInputFormat", f"{_QL}.HiveIgnoreKeyTextOutputFormat")

ORC = StorageFormat(f"{_QL}.orc.OrcInputFormat", f"{_QL}.orc.OrcOutputFormat", f"{_QL}.orc.OrcSerde")

_FORMATS = {
    "orc": ORC,
    "parquet": StorageFormat(
        f"{_QL}.parquet.MapredParquetInputFormat",
        f"{_QL}.parquet.MapredParquetOutputFormat",
        f"{_QL}.parquet.serde.ParquetHiveSerDe",
    ),
    "avro": StorageFormat(
        f"{_QL}.avro.AvroContainerInputFormat", f"{_QL}.avro.AvroContainerOutputFormat", f"{_SERDES}.avro.AvroSerDe"
    ),
    "textfile": StorageFormat(*_TEXT, f"{_SERDES}.lazy.LazySimpleSerDe"),
    "jsonfile": StorageFormat(*_TEXT, f"{_SERDES}.JsonSerDe"),
}

_OF_PLAIN = {
    "sequencefile": StorageFormat(
        "org.apache.hadoop.mapred.SequenceFileInputFormat",
        f"{_QL}.HiveSequenceFileOutputFormat",
        f"{_SERDES}.lazy.LazySimpleSerDe",
    ),
    "rcfile": StorageFormat(
        f"{_QL}.RCFileInputFormat", f"{_QL}.RCFileOutputFormat", f"{_SERDES}.columnar.LazyBinaryColumnarSerDe"
    ),
}
"""Formats of plain tables, whose files others read and write."""


def storage_format(name: str) -> StorageFormat:
    """The format that is STORED AS `name`, in any case. Raises UnsupportedTableError for one that nobody knows."""
    found = _FORMATS.get(name.lower()) or _OF_PLAIN.get(name.lower())
    if found is None:
        raise UnsupportedTableError(f"STORED AS {name} is not written here: {', '.join(map(str.upper, _FORMATS))} are")
    return found


def format_of_classes(input_format: str, output_format: str, serde: str | None) -> StorageFormat:
    """A format by its classes; without a SerDe that of the format that has these, else Hive's for text."""
    known = (*_FORMATS.values(), *_OF_PLAIN.values())
    usual = next((one.serde for one in known if one.input_format == input_format), _FORMATS["textfile"].serde)
    return StorageFormat(input_format, output_format, serde or usual)


def text_with_serde(serde: str) -> StorageFormat:
    """Lines of text that a SerDe reads."""
    return StorageFormat(*_TEXT, serde)


def is_orc(form: str | StorageFormat) -> bool:
    """Whether a format, or one of that name, is that of full-ACID tables."""
    return form.lower() == "orc" if isinstance(form, str) else form == ORC


def is_written(form: StorageFormat) -> bool:
    """Whether files of a format are written here."""
    return any((one.input_format, one.serde) == (form.input_format, form.serde) for one in _FORMATS.values())


def format_called(form: StorageFormat) -> str:
    """What a format is called in errors."""
    known = {**_FORMATS, **_OF_PLAIN}.items()
    called = next((name for name, one in known if one[::2] == form[::2]), None)
    return called.upper() if called else f"INPUTFORMAT '{form.input_format}' with the SerDe '{form.serde}'"


def name_of(input_format: str, serde: str) -> str:
    """The name of a table's format. Raises UnsupportedTableError for one that is not written."""
    for name, known in _FORMATS.items():
        if (known.input_format, known.serde) == (input_format, serde):
            return name
    raise UnsupportedTableError(
        f"tables of input format {input_format or '(none)'} with {serde or 'no SerDe'} are not made here"
    )


def only_orc(called: str) -> str:
    """What is said of a full-ACID table in the format of that name."""
    grows = "'transactional_properties'='insert_only' (it only grows) or " if called.lower() in _FORMATS else ""
    return (
        f"full-ACID tables are STORED AS ORC. One STORED AS {called.upper() if called.isidentifier() else called} is "
        f"made with the properties {grows}'transactional'='false' (a plain one)"
    )


NOT_EXTERNAL = (
    "files of an external table are anybody's to change, so it cannot be transactional: leave EXTERNAL out, or make it "
    "a plain one, with 'transactional'='false'"
)
"""What is said of an external table that would be transactional."""


def not_written(called: str) -> str:
    """What is said of a transactional table in a format of that name, which is not written here."""
    return (
        f"STORED AS {called} is not written here: {', '.join(map(str.upper, _FORMATS))} are. A plain table, with "
        "'transactional'='false', may have it"
    )
