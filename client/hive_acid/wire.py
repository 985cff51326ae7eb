"""The Thrift structs and the binary encoding, from our own IDL (``idl/hive_metastore.thrift``).

`ttypes` is the module of structs: ``ttypes.LockRequest(component=[...], user="u", hostname="h")``. The IDL declares no
defaults, so a field that the peer did not send is None.
"""

from __future__ import annotations

import enum
import importlib.resources
from typing import Any

import thriftpy2

CONSTRAINTS_CAPABILITY = "HIVEACIDCONSTRAINTS"
"""What a client says that keeps to constraints: it gets them with each table."""

CONSTRAINTS = "hive_acid.constraints"
"""Where they stand in the dictionary of the table, as JSON."""


class ConstraintKind(enum.IntEnum):
    """What a constraint says; numbered as Hive's metastore numbers them in its database."""

    PRIMARY_KEY = 0
    FOREIGN_KEY = 1
    UNIQUE = 2
    NOT_NULL = 3
    DEFAULT = 4
    CHECK = 5


class _Written(int):
    """The id of a field that is written but not read: a dict key that differs from its number but is sent as it."""

    def __hash__(self) -> int:
        return hash(("written", int(self)))

    def __eq__(self, other: object) -> bool:
        return self is other


def _load() -> Any:
    idl = importlib.resources.files("hive_acid.idl") / "hive_metastore.thrift"
    with importlib.resources.as_file(idl) as path:
        module = thriftpy2.load(str(path), module_name="hive_metastore_thrift")
    # open_txns is a set for Hive 2.3 clients and a list for all later ones (wire.md §1.2): it is written in
    # both forms, each reader takes the one whose type it knows and skips the other.
    spec = module.GetOpenTxnsResponse.thrift_spec
    set_type = 14
    spec[_Written(2)] = (set_type, "open_txns", spec[2][2], True)
    # The keys of this map are lists, which the decoder cannot put into a dict: it skips the field. The metastore, which
    # has to keep it, reads it by itself (`metastore.rpc.encoding.list_keys`); on the way out keys are tuples.
    spec = module.SkewedInfo.thrift_spec
    spec[_Written(3)] = spec.pop(3)
    return module


ttypes: Any = _load()
service: Any = ttypes.ThriftHiveMetastore


def table_name(database: str, table: str) -> str:
    """The full name by which write ids are asked for: lower case, ``db.table``."""
    return f"{database.lower()}.{table.lower()}"
