"""How files are compressed: as the table says, if it says so."""

from hive_acid.format.names import HIVE_3_PROPERTY
from hive_acid.format.orc.compression import COMPRESSIONS, DEFAULT_COMPRESSION, compression_of


def test_what_a_table_says() -> None:
    assert compression_of({}, DEFAULT_COMPRESSION) == "zstd"
    assert compression_of({"ORC.Compress": " ZLIB "}, "none") == "zlib"
    assert [compression_of({"orc.compress": kind.upper()}, "x") for kind in COMPRESSIONS] == list(COMPRESSIONS)
    assert compression_of({"orc.compress": "LZO"}, "zlib") == "zlib", "no such writer here"


def test_hive_3_reads_zlib() -> None:
    assert compression_of({HIVE_3_PROPERTY: "true", "orc.compress": "ZSTD"}, "zstd") == "zlib"
    assert compression_of({HIVE_3_PROPERTY: "false"}, "snappy") == "snappy"
