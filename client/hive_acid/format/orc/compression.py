"""How new ORC files of a table are compressed.

``zstd`` is what Hive 4, Trino, Impala and Spark read and what Spark itself writes; it is written and read in about two
thirds of the time that ``zlib`` takes, at the same size. Apache Hive 3.1 fails on it (acid-format.md §3.6): tables in
its form have ``zlib``.
"""

from __future__ import annotations

from collections.abc import Mapping

from hive_acid.format.names import is_for_hive_3

COMPRESSIONS = ("zstd", "zlib", "snappy", "lz4", "none")
DEFAULT_COMPRESSION = "zstd"
_PROPERTY = "orc.compress"


def compression_of(parameters: Mapping[str, str], default: str) -> str:
    """The compression of a table with these parameters: what its ``orc.compress`` says, else `default`."""
    if is_for_hive_3(parameters):
        return "zlib"
    folded = {key.lower(): value for key, value in parameters.items()}
    asked = folded.get(_PROPERTY, "").strip().lower()
    return asked if asked in COMPRESSIONS else default
