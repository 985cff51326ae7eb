"""Names of directories and files: read leniently, written canonically (acid-format.md §1).

A table or partition directory holds bases (``base_0000005``), insert deltas (``delta_0000006_0000006_0000``) and delete
deltas (``delete_delta_…``). The numbers are write ids; the number behind ``_v`` is the transaction id of the compaction
that made the directory. Whoever rebuilds a path from its numbers expects the canonical padding, so all writers take
their names from here.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.format.properties import word_of

VERSION_MARKER = "_orc_acid_version"
"""The file that says that a directory's files have the ACID columns; every directory that we write has one."""

VERSION_CONTENT = b"2"

METADATA_MARKER = "_metadata_acid"
"""The JSON file by which Hive before version 4 tells a compacted base from an overwrite."""

COMPACTED_CONTENT = b'{"thisFileVersion":"0","dataFormat":"compacted"}'
"""What `METADATA_MARKER` says of a compacted base."""

HIVE_3_PROPERTY = "hive_acid.hive31"
"""The table property, ``true`` where Apache Hive 3.1 reads the table as well (acid-format.md §6.6)."""

STAGING_PREFIX = "_tmp_spark_"
"""How the hidden directories begin in which output is made before it is renamed into place."""

ORIGINALS_WRITE_ID = -(2**63)
"""The write id in the name of a base that was compacted from original files alone: valid for everyone."""

MAX_WRITE_ID = 2**63 - 1
MAX_STATEMENT_ID = 4095
MAX_BUCKET = 4095

_BASE = re.compile(r"base_(-?[0-9]+)(?:_v([0-9]+))?")
_DELTA = re.compile(r"(delete_)?delta_([0-9]+)_([0-9]+)(?:_([0-9]+))?(?:_v([0-9]+))?")
_BUCKET = re.compile(r"bucket_([0-9]+)(?:_[0-9]+)?")
_SIDE_FILE = re.compile(r"bucket_[0-9]+(?:_[0-9]+)?_flush_length")
_ORIGINAL = re.compile(r"([0-9]+)_[0-9]+(?:_copy_[0-9]+)?")
_SPARK_FILE = re.compile(r"part-[0-9]+-.+")
_STAGING = re.compile(STAGING_PREFIX + r"([0-9]+)_[0-9A-Za-z-]+")
_TOKEN = re.compile(r"[0-9A-Za-z-]+")
_HIDDEN = re.compile(r"(?:\A|/)[_.]")
_DATA_PREFIXES = ("base_", "delta_", "delete_delta_")


class DirectoryKind(enum.Enum):
    """The three kinds of data directories; the value is the first part of the name."""

    BASE = "base"
    INSERT_DELTA = "delta"
    DELETE_DELTA = "delete_delta"


@dataclass(frozen=True, slots=True)
class Directory:
    """What the name of a data directory says.

    `min_write_id` of a base is 0 (or `ORIGINALS_WRITE_ID`): it replaces all up to `max_write_id`. `statement_id` is
    None where the name has none, `visibility_txn_id` is 0 where no compaction made the directory. `name` is as it was
    read.
    """

    kind: DirectoryKind
    min_write_id: int
    max_write_id: int
    statement_id: int | None
    visibility_txn_id: int
    name: str


def parse_directory(name: str) -> Directory | None:
    """The directory that `name` stands for, or None if it is no data directory's name."""
    if match := _BASE.fullmatch(name):
        write_id = int(match[1])
        if write_id > MAX_WRITE_ID or (write_id < 0 and write_id != ORIGINALS_WRITE_ID):
            return None
        return Directory(DirectoryKind.BASE, min(0, write_id), write_id, None, int(match[2] or 0), name)
    if match := _DELTA.fullmatch(name):
        kind = DirectoryKind.DELETE_DELTA if match[1] else DirectoryKind.INSERT_DELTA
        lowest, highest = int(match[2]), int(match[3])
        if not lowest <= highest <= MAX_WRITE_ID:
            return None
        statement_id = None if match[4] is None else int(match[4])
        return Directory(kind, lowest, highest, statement_id, int(match[5] or 0), name)
    return None


def claims_to_be_data(name: str) -> bool:
    """Whether a name starts like a data directory's; one that `parse_directory` refuses is malformed."""
    return name.startswith(_DATA_PREFIXES)


def base_name(write_id: int, visibility_txn_id: int = 0) -> str:
    """The base that replaces all up to `write_id`; made by a compaction if `visibility_txn_id` is given."""
    if write_id != ORIGINALS_WRITE_ID:
        _check("write id", write_id, 0, MAX_WRITE_ID)
    return f"base_{write_id:07d}{_visibility(visibility_txn_id)}"


def delta_name(
    min_write_id: int, max_write_id: int, statement_id: int | None = None, visibility_txn_id: int = 0
) -> str:
    """An insert delta. Writers give a statement id, compactions a visibility transaction, nobody both."""
    _check("lower write id", min_write_id, 0, MAX_WRITE_ID)
    _check("upper write id", max_write_id, min_write_id, MAX_WRITE_ID)
    if statement_id is None:
        return f"delta_{min_write_id:07d}_{max_write_id:07d}{_visibility(visibility_txn_id)}"
    if visibility_txn_id:
        raise ValueError(f"a delta has a statement id ({statement_id}) or a visibility ({visibility_txn_id}), not both")
    _check("statement id", statement_id, 0, MAX_STATEMENT_ID)
    return f"delta_{min_write_id:07d}_{max_write_id:07d}_{statement_id:04d}"


def delete_delta_name(
    min_write_id: int, max_write_id: int, statement_id: int | None = None, visibility_txn_id: int = 0
) -> str:
    """A delete delta; the arguments are those of `delta_name`."""
    return "delete_" + delta_name(min_write_id, max_write_id, statement_id, visibility_txn_id)


def is_for_hive_3(parameters: Mapping[str, str]) -> bool:
    """Whether a table's parameters say that Apache Hive 3.1 reads it."""
    return word_of(parameters, HIVE_3_PROPERTY) == "true"


def bucket_file_name(bucket: int) -> str:
    """The one file of a bucket, or of a writer task, in a data directory."""
    _check("bucket", bucket, 0, MAX_BUCKET)
    return f"bucket_{bucket:05d}"


def parse_bucket_file(name: str) -> int | None:
    """The bucket number of ``bucket_00003``, or of ``bucket_00003_0`` as Hive 4 writes it; else None."""
    match = _BUCKET.fullmatch(name)
    return int(match[1]) if match else None


def parse_original_file(name: str) -> int | None:
    """The bucket number of an original file, ``000003_0`` or ``000003_0_copy_1``; else None."""
    match = _ORIGINAL.fullmatch(name)
    return int(match[1]) if match else None


def is_spark_file(name: str) -> bool:
    """Whether a file is named as Spark names those of its own tables: ``part-00003-…``."""
    return _SPARK_FILE.fullmatch(name) is not None


def is_side_file(name: str) -> bool:
    """Whether a file holds the readable length of a streaming file beside it, and no data."""
    return _SIDE_FILE.fullmatch(name) is not None


def is_hidden(path: str) -> bool:
    """Whether any part of a relative path is hidden from readers by beginning with ``_`` or ``.``."""
    return _HIDDEN.search(path) is not None


def staging_name(txn_id: int, token: str) -> str:
    """The hidden directory in which a transaction makes its output; `token` tells several of them apart."""
    _check("transaction id", txn_id, 1, MAX_WRITE_ID)
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"token '{token}' of a staging directory may hold letters, digits and '-' only")
    return f"{STAGING_PREFIX}{txn_id}_{token}"


def parse_staging(name: str) -> int | None:
    """The transaction to which a staging directory belongs, or None if it is none of ours."""
    match = _STAGING.fullmatch(name)
    return int(match[1]) if match else None


def _visibility(txn_id: int) -> str:
    _check("visibility transaction id", txn_id, 0, MAX_WRITE_ID)
    return f"_v{txn_id:07d}" if txn_id else ""


def _check(what: str, value: int, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise ValueError(f"{what} {value} is outside {lowest}..{highest}")
