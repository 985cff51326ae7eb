"""The ids of the transactional model, told apart by type.

A transaction id is global; a write id counts per table; data directories carry write ids, and only the
``_vN`` suffix of a compacted directory is a transaction id (acid-format.md §1.1).
"""

from typing import NewType

TxnId = NewType("TxnId", int)
WriteId = NewType("WriteId", int)
LockId = NewType("LockId", int)
CompactionId = NewType("CompactionId", int)
