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


def storage_format(name: str) -> StorageFormat:
    """The format that is STORED AS `name`, in any case. Raises UnsupportedTableError for one that is not written."""
    found = _FORMATS.get(name.lower())
    if found is None:
        raise UnsupportedTableError(f"STORED AS {name} is not written here: {', '.join(map(str.upper, _FORMATS))} are")
    return found


def name_of(input_format: str, serde: str) -> str:
    """The name of a table's format. Raises UnsupportedTableError for one that is not written."""
    for name, known in _FORMATS.items():
        if (known.input_format, known.serde) == (input_format, serde):
            return name
    raise UnsupportedTableError(
        f"tables of input format {input_format or '(none)'} with {serde or 'no SerDe'} are not made here"
    )


def only_orc(name: str) -> str:
    """What is said of a full-ACID table in the format `name`."""
    return (
        f"full-ACID tables are STORED AS ORC. One STORED AS {name.upper()} is made with the properties "
        "'transactional_properties'='insert_only' (it only grows) or 'transactional'='false' (a plain one)"
    )
