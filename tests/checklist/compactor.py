"""A foreign worker and a writer of files, as far as the checklist needs them: calls over the wire and directories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hive_acid.filesystem import files
from hive_acid.format.names import base_name, bucket_file_name, delta_name
from hive_acid.wire import ttypes
from tests.caller import Caller

MINOR, MAJOR = ttypes.CompactionType.MINOR, ttypes.CompactionType.MAJOR


@dataclass
class Table:
    """An ACID table with its files."""

    ann: Caller
    database: str
    name: str
    location: str

    @property
    def full_name(self) -> str:
        return f"{self.database}.{self.name}"

    def write(self, count: int = 1, *, size: int = 10, base: bool = False, commit: bool = True) -> int:
        """Committed (or aborted) writes of one directory each; the last write id."""
        write_id = 0
        for txn_id in self.ann.open(count):
            write_id = self.ann.write(txn_id, f"{self.database}/{self.name}", "i")
            name = base_name(write_id) if base else delta_name(write_id, write_id, 0)
            self.put(name, size)
            (self.ann.commit if commit else self.ann.abort)(txn_id)
        return write_id

    def put(self, directory: str, size: int = 10) -> None:
        """A directory with one bucket file of this many bytes."""
        place = files.join(self.location, directory)
        files.make_directory(place)
        files.write(files.join(place, bucket_file_name(0)), b"x" * size)

    def directories(self) -> list[str]:
        return sorted(entry.path.rstrip("/") for entry in files.list_tree(self.location, max_depth=1))

    # --- compactions -------------------------------------------------------------------------------

    def request(self, kind: int = MAJOR, **fields: Any) -> Any:
        """compact2 in a pool of the table's own, so that nobody else takes it."""
        fields.setdefault("poolName", self.full_name)
        request = ttypes.CompactionRequest(dbname=self.database, tablename=self.name, type=kind, **fields)
        return self.ann.call("compact2", request)

    def claim(self, worker: str = "worker-1") -> Any:
        """find_next_compact2: what is to be done, None if nothing."""
        request = ttypes.FindNextCompactRequest(workerId=worker, poolName=self.full_name)
        return self.ann.call("find_next_compact2", request).ci

    def shown(self, **filters: Any) -> list[Any]:
        request = ttypes.ShowCompactRequest(dbName=self.database, tbName=self.name, **filters)
        return list(self.ann.call("show_compact", request).compacts)

    def states(self) -> list[str]:
        """States of all compactions, the oldest first."""
        return [one.state for one in sorted(self.shown(), key=lambda one: one.id)]

    @contextmanager
    def compacting(self, worker: str = "worker-1") -> Iterator[tuple[Any, int]]:
        """Claim what is queued and begin its transaction: the body merges, after it the compaction commits."""
        info = self.claim(worker)
        txn_id = self.ann.begin(txn_type=ttypes.TxnType.COMPACTION)
        info.highestWriteId = self.ann.max_write_id(self.full_name)
        self.ann.call("update_compactor_state", info, txn_id)
        yield info, txn_id
        self.put(f"base_{info.highestWriteId:07}_v{txn_id:07}")
        self.ann.call("mark_compacted", info)
        self.ann.commit(txn_id)

    def compact(self) -> int:
        """A major compaction from its request to its commit; its id."""
        assert self.request().accepted
        with self.compacting() as (info, _):
            pass
        return int(info.id)

    def fail(self) -> None:
        """A compaction that ends with an error."""
        assert self.request().accepted
        info = self.claim()
        info.errorMessage = "no memory"
        self.ann.call("mark_failed", info)
