"""Staged output: Spark writes below a hidden directory, whole directories are renamed into place.

Spark's own committer makes each task's file safe against retries; this module names the files as Hive wants them,
checks that each directory has one file per bucket, and renames (acid-format.md §4 "Recommended for Spark"). Nothing is
visible before the transaction commits, and all of it can be removed again until then.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hive_acid import files
from hive_acid.errors import FormatError, UnsupportedTableError
from hive_acid.format.names import MAX_BUCKET, VERSION_CONTENT, VERSION_MARKER, bucket_file_name, staging_name
from hive_acid.format.partitions import parse_partition_name
from hive_acid.ids import TxnId
from hive_acid.spark.events import BUCKET_COLUMN, INSERT, KIND_COLUMN, Events, key_column

_PART_FILE = re.compile(r"part-(\d+)-.+\.orc")
_WRITTEN = "written"
_READY = "ready"


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """The files of one kind for one partition: bucket to path below the staging directory."""

    kind: str
    values: tuple[str | None, ...]
    buckets: Mapping[int, str]


@dataclass
class Staging:
    """The hidden directory of one statement: `write` runs the job, `publish` renames what it made, `remove` ends it."""

    location: str
    published: list[str] = field(default_factory=list)

    @classmethod
    def below(cls, root: str, txn_id: TxnId) -> Staging:
        """A new one in a table's directory."""
        return cls(files.join(root, staging_name(txn_id, uuid.uuid4().hex[:12])))

    def write(self, events: Events, compression: str, *, step: str = "job") -> dict[str, int]:
        """Run a job that writes `events`; the number of events of each kind."""
        writer = events.frame.write.format("orc").option("compression", compression).option("maxRecordsPerFile", 0)
        if events.divided_by:
            writer = writer.partitionBy(*events.divided_by)
        writer.save(files.join(self.location, _WRITTEN, step))
        return {kind: int(count or 0) for kind, count in events.counts.get.items()}

    def staged(self, keys: int, *, step: str = "job") -> list[StagedFiles]:
        """What the job of `step` has written, of a table with `keys` partition keys.

        Raises UnsupportedTableError for more than 4096 writing tasks, FormatError if a bucket has two files.
        """
        found: dict[tuple[str, tuple[str | None, ...]], dict[int, str]] = {}
        written = files.join(_WRITTEN, step)
        for entry in files.list_tree(files.join(self.location, written)):
            directory, _, name = entry.path.rpartition("/")
            match = _PART_FILE.fullmatch(name)
            if match is None:
                continue
            divided = dict(parse_partition_name(directory)) if directory else {}
            bucket = int(divided.get(BUCKET_COLUMN) or match[1])
            if bucket > MAX_BUCKET:
                raise UnsupportedTableError(
                    f"the write has more than {MAX_BUCKET + 1} tasks, as many as a table can have buckets: "
                    "repartition the rows into fewer and larger parts"
                )
            key = (divided.get(KIND_COLUMN) or INSERT, tuple(divided[key_column(i)] for i in range(keys)))
            buckets = found.setdefault(key, {})
            if bucket in buckets:
                raise FormatError(f"two files for bucket {bucket}: {buckets[bucket]} and {entry.path}")
            buckets[bucket] = files.join(written, entry.path)
        return [StagedFiles(kind, values, buckets) for (kind, values), buckets in found.items()]

    def publish(self, found: Iterable[StagedFiles], place: Callable[[StagedFiles], tuple[str, str]]) -> None:
        """Rename all of `found` to where `place` says: the partition's location, and the directory's name in it.

        Directories are complete before they are renamed, marker included.
        """
        for position, staged in enumerate(found):
            location, name = place(staged)
            ready = files.join(self.location, _READY, str(position), name)
            for bucket, path in staged.buckets.items():
                files.rename(files.join(self.location, path), files.join(ready, bucket_file_name(bucket)))
            files.write(files.join(ready, VERSION_MARKER), VERSION_CONTENT)
            target = files.join(location, name)
            self.published.append(target)
            files.rename(ready, target)

    def remove(self) -> None:
        """Remove the hidden directory with what was not published."""
        files.remove(self.location)

    def undo(self) -> None:
        """Remove everything, published directories included; only for a transaction that does not commit."""
        for target in self.published:
            files.remove(target)
        self.remove()
