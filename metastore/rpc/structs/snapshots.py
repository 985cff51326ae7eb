"""Snapshots of transactions as they are sent: aborted ones, which may be many, are encoded once for many replies."""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from thriftpy2.thrift import TType

from hive_acid.ids import TxnId
from metastore.rpc.encoding.codec import binary_field, longs_field
from metastore.rpc.encoding.kept import Kept
from metastore.txn.models import OpenTxns

MAX_KEPT = 4
"""Lists of aborted transactions: mostly there is one of each kind of call, and the ones before, of calls under way."""
_ID_BYTES = 8


class SnapshotFields:
    """Makes two fields of a struct: the transactions that are not committed, and the bits of those that are aborted."""

    def __init__(self, ids_field: int, bits_field: int, *, for_hive_2: bool = False) -> None:
        """They have these numbers.

        `for_hive_2` says that a reader may want a set of transactions; each passes over the form that is not its own.
        """
        self._ids_field, self._bits_field = ids_field, bits_field
        self._kinds = (TType.SET, TType.LIST) if for_hive_2 else (TType.LIST,)
        self._packed = Kept[bytes](MAX_KEPT)

    def of(self, snapshot: OpenTxns) -> bytes:
        """Of all of them."""
        aborted = snapshot.aborted
        return self._fields(snapshot.open_ids, aborted.ids, self._packed.of(aborted, lambda of: _packed(of.ids)))

    def with_new(self, snapshot: OpenTxns, new: Sequence[TxnId]) -> bytes:
        """Of the open ones, and of no aborted ones but these."""
        return self._fields(snapshot.open_ids, new, _packed(new))

    def _fields(self, open_ids: Sequence[TxnId], aborted: Sequence[TxnId], encoded: bytes) -> bytes:
        """All ascending; `encoded` are the aborted ones as they are sent."""
        older = bisect_left(open_ids, aborted[-1]) if aborted else 0  # than the last aborted one: mostly few are
        marked = older + len(aborted)
        bits = bytearray(((1 << marked) - 1).to_bytes((marked + 7) // 8, "little"))
        parts: list[bytes] = []
        done = 0
        for before, txn_id in enumerate(open_ids[:older]):
            upto = bisect_right(aborted, txn_id, done)
            parts += encoded[done * _ID_BYTES : upto * _ID_BYTES], _packed([txn_id])
            place = before + upto
            bits[place // 8] &= ~(1 << place % 8)
            done = upto
        parts += encoded[done * _ID_BYTES :], _packed(open_ids[older:])
        count, body = len(open_ids) + len(aborted), b"".join(parts)
        forms = [longs_field(self._ids_field, count, body, kind) for kind in self._kinds]
        return b"".join((*forms, binary_field(self._bits_field, bytes(bits))))


def _packed(ids: Sequence[TxnId]) -> bytes:
    return struct.pack(f">{len(ids)}q", *ids)
