"""A table on disk with real services behind it; its bucket files hold row events as lines of JSON instead of ORC.

Nothing in the server looks into bucket files, so everything but Spark is real here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hive_acid.compaction_job import CompactionJob, CompactionResult, TellProgress, unheard
from hive_acid.filesystem import files
from hive_acid.format.names import (
    VERSION_CONTENT,
    VERSION_MARKER,
    base_name,
    bucket_file_name,
    delete_delta_name,
    delta_name,
)
from hive_acid.format.rows import DELETE, INSERT, RowEvent, RowId, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, directory_state
from hive_acid.ids import CompactionId, TxnId, WriteId
from metastore.catalog.config import CatalogConfig
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours
from metastore.catalog.removal.removals import Removals
from metastore.compaction.cleaner.cleaner import Cleaner
from metastore.compaction.config import CompactionConfig
from metastore.compaction.initiator.initiator import Initiator
from metastore.compaction.models import Compaction, CompactionAnswer, CompactionRequest, TableInfo
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionType
from metastore.compaction.worker.back_off import Patience
from metastore.compaction.worker.executor import CompactionExecutor
from metastore.compaction.worker.job import CompactionJobError
from metastore.compaction.worker.worker import CompactionWorker
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import Operation, TxnType
from metastore.txn.write_ids.service import WriteIdService

OWNER = TxnOwner("ann", "host1", "test")
ACID = {"transactional": "true"}


def removals(db: Database) -> Removals:
    """What waits for its removal."""
    directories = Directories("file:/", enabled=True)
    return Removals(db, directories, Neighbours(db, directories), CatalogConfig())


@dataclass
class Tables:
    """A catalogue in memory: (database, table) to what it is, and to the locations of its partitions."""

    tables: dict[tuple[str, str], TableInfo] = field(default_factory=dict)
    partitions: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    parameters: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    keys: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def table(self, db: str, table: str) -> TableInfo | None:
        return self.tables.get((db, table))

    def partition(self, db: str, table: str, partition: str) -> str | None:
        return self.partitions.get((db, table), {}).get(partition)

    def primary_key(self, db: str, table: str) -> tuple[str, ...]:
        return self.keys.get((db, table), ())

    def partition_parameters(self, db: str, table: str, partition: str) -> dict[str, str]:
        return self.parameters.get((db, table, partition), {})

    def partition_names(self, db: str, table: str) -> list[str]:
        return list(self.partitions.get((db, table), {}))

    def partition_locations(self, db: str, table: str) -> list[str]:
        return list(self.partitions.get((db, table), {}).values())

    def remove_dropped(self, location: str, trash: str | None) -> bool:
        files.remove(location)
        return True

    def remove_homes(self) -> None:
        raise AssertionError("no database is dropped here")


@dataclass
class MergingExecutor:
    """Carries out jobs on the JSON files. `before` and `after` are called round each job and may raise or do harm."""

    jobs: list[CompactionJob] = field(default_factory=list)
    before: Callable[[CompactionJob, threading.Event], None] = lambda job, cancelled: None
    after: Callable[[CompactionJob], None] = lambda job: None
    tell: Callable[[CompactionJob, TellProgress], None] = lambda job, report: None

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        self.jobs.append(job)
        self.before(job, cancelled)
        self.tell(job, report)
        write_ids = ValidWriteIdList.parse(job.write_ids)
        data = [event for name, kept in job.data for event in self._events(job, name, kept, write_ids)]
        deletes = [event for name, kept in job.deletes for event in self._events(job, name, kept, write_ids)]
        if job.type != "minor":
            data = visible_rows((), deletes, write_ids, data)
        if job.insert_output:
            write_directory(files.join(job.staging, job.insert_output), data)
        if job.delete_output:
            write_directory(files.join(job.staging, job.delete_output), deletes)
        self.after(job)
        return CompactionResult(len(data), len(deletes), 1, 0.1)

    def _events(self, job: CompactionJob, name: str, kept: str, write_ids: ValidWriteIdList) -> list[RowEvent]:
        events = read_directory(files.join(job.location, name))
        return [event for event in events if kept == "all" or write_ids.is_valid(event.current_write_id)]

    def close(self) -> None:
        pass


def fail(job: CompactionJob, *_: object) -> None:
    """For `before` and `after`: the program reports an error."""
    raise CompactionJobError("Spark has no memory")


class World:
    """One metastore and one table `db.t` below a directory, with short ways to do what clients do."""

    def __init__(self, db: Database, warehouse: Path, table: str = "t", partition: str | None = None) -> None:
        self.db = db
        self.table = table
        self.partition = partition
        self.patience = Patience()
        self.root = str(warehouse / table)
        self.location = files.join(self.root, partition) if partition else self.root
        self.catalogue = Tables()
        keys = (partition.partition("=")[0],) if partition else ()
        info = TableInfo(self.root, (("id", "int"), ("name", "string")), keys, ACID)
        self.catalogue.tables["db", table] = info
        if partition:
            self.catalogue.partitions["db", table] = {partition: self.location}
        self.config = CompactionConfig(aborted_threshold=0, cleaner_retry_ms=0)
        self.txns = TxnService(db, TxnConfig())
        self.write_ids = WriteIdService(db)
        self.locks = LockService(db)
        self.snapshots = Snapshots(self.txns, self.write_ids)
        self.service = CompactionService(db, self.config)
        self.executor = MergingExecutor()
        files.make_directory(self.location)

    def configure(self, **values: object) -> None:
        self.config = replace(self.config, **values)  # type: ignore[arg-type]
        self.service = CompactionService(self.db, self.config)

    # --- services ----------------------------------------------------------------------------------

    def worker(
        self, name: str = "worker-1", executor: CompactionExecutor | None = None, heartbeat_ms: int = 1000
    ) -> CompactionWorker:
        return CompactionWorker(
            self.service,
            self.txns,
            self.snapshots,
            self.locks,
            self.catalogue,
            executor or self.executor,
            self.config,
            name,
            heartbeat_ms,
            patience=self.patience,
        )

    def cleaner(self) -> Cleaner:
        return Cleaner(self.service, self.snapshots, self.catalogue, self.config)

    def initiator(self) -> Initiator:
        return Initiator(self.service, self.snapshots, self.catalogue, self.config, "initiator-1")

    def request(
        self,
        kind: CompactionType = CompactionType.MAJOR,
        properties: Mapping[str, str] | None = None,
        after: int = 0,
    ) -> CompactionAnswer:
        asked = CompactionRequest(
            kind, "db", self.table, self.partition, properties=properties or {}, after=WriteId(after)
        )
        return self.service.compact(asked)

    def compact(self, kind: CompactionType = CompactionType.MAJOR) -> Compaction:
        """Queue a compaction, let a worker run it, and return what became of it."""
        answer = self.request(kind)
        assert answer.accepted
        assert self.worker().run_once()
        return self.service.get(answer.id)

    # --- clients -----------------------------------------------------------------------------------

    def open(self, txn_type: TxnType = TxnType.DEFAULT) -> TxnId:
        return self.txns.open_txns(1, OWNER, txn_type)[0]

    def write(self, txn_id: TxnId | None = None, inserts: int = 1, deletes: Iterable[RowId] = (), commit: bool = True,
              overwrite: bool = False) -> int:  # fmt: skip
        """Write files and commit, unless the caller brings the transaction or does not want to; the write id."""
        own = txn_id is None
        txn_id = txn_id or self.open()
        operation = Operation.DELETE if deletes or overwrite else Operation.INSERT
        lock = LockType.EXCLUSIVE if overwrite else LockType.SHARED_WRITE
        component = LockComponent(lock, "db", self.table, self.partition, operation)
        self.locks.lock(LockRequest((component,), OWNER, txn_id))
        ((_, write_id),) = self.write_ids.allocate("db", self.table, [txn_id])
        if deletes:
            events = [RowEvent(DELETE, *key, write_id, None) for key in sorted(deletes)]
            write_directory(files.join(self.location, delete_delta_name(write_id, write_id, 0)), events)
        bucket = encode_bucket(0)
        events = [RowEvent(INSERT, write_id, bucket, row_id, write_id, "row") for row_id in range(inserts)]
        if overwrite:
            write_directory(files.join(self.location, base_name(write_id)), events)
        elif inserts:
            write_directory(files.join(self.location, delta_name(write_id, write_id, 0)), events)
        if own and commit:
            self.txns.commit_txn(txn_id)
        return write_id

    def snapshot(self, own: TxnId | None = None) -> tuple[ValidWriteIdList, ValidTxnList]:
        txns = self.snapshots.txns(own)
        return self.snapshots.write_ids("db", self.table, txns), txns

    def read(self, snapshot: tuple[ValidWriteIdList, ValidTxnList] | None = None) -> set[RowId]:
        """The rows that a snapshot sees in the files, by default the present one."""
        write_ids, txns = snapshot or self.snapshot()
        state = directory_state(
            files.list_tree(self.location), write_ids, txns, lambda path: files.read(files.join(self.location, path))
        )
        rows = visible_rows(
            self._rows(state.insert_deltas),
            self._rows(state.delete_deltas),
            write_ids,
            self._rows((state.base,) if state.base else ()),
        )
        return {event.key for event in rows}

    def _rows(self, directories: tuple[DataDirectory, ...]) -> list[RowEvent]:
        return [event for found in directories for event in read_directory(files.join(self.location, found.name))]

    def directories(self) -> list[str]:
        """What lies in the location, sorted."""
        return [entry.path.rstrip("/") for entry in files.list_tree(self.location, max_depth=1)]


def write_directory(location: str, events: Iterable[RowEvent]) -> None:
    lines = "".join(json.dumps(event) + "\n" for event in sorted(events)) or "no rows\n"
    files.make_directory(location)
    files.write(files.join(location, bucket_file_name(0)), lines.encode())
    files.write(files.join(location, VERSION_MARKER), VERSION_CONTENT)


def read_directory(location: str) -> list[RowEvent]:
    content = files.read(files.join(location, bucket_file_name(0)))
    text = "" if content.startswith(b"ORC") else content.decode()  # the server's own bases without rows
    return [RowEvent(*json.loads(line)) for line in text.splitlines() if line.startswith("[")]


def abort(world: World, compaction_id: CompactionId) -> None:
    """What the time-out does to the transaction of a worker that is gone."""
    txn_id = world.service.get(compaction_id).txn_id
    assert txn_id is not None
    world.txns.abort_txn(txn_id)


def nothing_left(world: World) -> bool:
    """No transaction is open, no lock is held, and no aborted one is on record for the table."""
    aborted = world.service.aborts_to_clean()
    return not aborted and not world.txns.get_open_txns(()).open_ids and not world.locks.show_locks("db")
