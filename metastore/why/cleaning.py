"""Why what a compaction replaced is still there, and for whom."""

from __future__ import annotations

from datetime import datetime

from hive_acid.errors import HiveAcidError
from hive_acid.format.state import directory_state
from metastore.compaction.config import CompactionConfig
from metastore.compaction.initiator.policy import may_be_cleaned
from metastore.compaction.models import Catalogue, Compaction
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.filework import files
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.why.models import Answer
from metastore.why.words import ago, lasting, ms_of, span, who

MOST_READERS = 20
MOST_FILES = 50


class CleaningAnswers:
    """Answers about compactions that wait for the Cleaner."""

    def __init__(
        self,
        db: Database,
        compactions: CompactionService,
        snapshots: Snapshots,
        catalogue: Catalogue,
        config: CompactionConfig,
    ) -> None:
        self._db = db
        self._compactions = compactions
        self._snapshots = snapshots
        self._catalogue = catalogue
        self._config = config

    def of(self, compaction: Compaction) -> list[Answer]:
        """Why a compaction that is ready for cleaning is not cleaned; a reader that is waited for is an answer each."""
        if compaction.committed_at is None:
            return [
                _answer(
                    compaction,
                    "uncommitted",
                    f"compaction {compaction.id} has merged its files, its transaction {compaction.txn_id} has not "
                    "committed",
                    f"wait; `metastore why --txn {compaction.txn_id}` says how it stands",
                )
            ]
        if readers := self._readers(compaction):
            return readers
        obstacle, until = self._obstacle(compaction)
        left = f"what compaction {compaction.id} replaced"
        match obstacle:
            case "retention":
                return [
                    _answer(
                        compaction,
                        "retention",
                        f"{left} is kept for {span(self._retention_ms() // 1000)}, up to {until:%Y-%m-%d %H:%M:%S %Z}",
                        "wait, or lower hive.compactor.cleaner.retention.time.seconds",
                    )
                ]
            case "retry":
                return [
                    _answer(
                        compaction,
                        "retry",
                        f"{left} could not be removed, {compaction.cleaner_failures} times by now: "
                        f"{compaction.error_message}. The next attempt is at {until:%Y-%m-%d %H:%M:%S %Z}",
                        f"mend what failed; after {self._config.cleaner_max_attempts} times it is given up",
                    )
                ]
            case _:
                return [self._nothing_in_the_way(compaction, left)]

    def held_by(self, txn_id: int) -> list[Answer]:
        """The files that are kept for a transaction, by compaction."""
        answers = []
        for (compaction_id,) in self._db.call("compactions_held_by", txn_id, MOST_READERS):
            compaction = self._compactions.get(compaction_id)
            answers += [one for one in self._readers(compaction) if one.txn_id == txn_id]
        return answers

    def replaced(self, compaction: Compaction) -> tuple[str, ...]:
        """What the Cleaner will remove, as far as it can be seen: locations of directories and original files."""
        location = self._location(compaction)
        if location is None or compaction.next_txn_id is None or compaction.highest_write_id is None:
            return ()
        if dropped := compaction.properties.get("location"):
            return (dropped,)
        txns = self._snapshots.txns().up_to(compaction.next_txn_id)
        write_ids = self._compactions.writes(compaction.db, compaction.table, compaction.next_txn_id)
        try:
            state = directory_state(
                files.list_tree(location),
                write_ids.for_cleaner(compaction.highest_write_id),
                txns,
                lambda path: files.read(files.join(location, path)),
            )
        except (OSError, HiveAcidError):  # the answer is of use without, and the Cleaner tells of what it cannot read
            return ()
        return tuple(files.join(location, name) for name in state.obsolete[:MOST_FILES])

    def _readers(self, compaction: Compaction) -> list[Answer]:
        rows = self._db.call("cleaning_readers", compaction.id, MOST_READERS)
        kept = self.replaced(compaction) if rows else ()
        answers = []
        for txn_id, user, host, agent, started_ms, heartbeat_ms, has_named in rows:
            owner = TxnOwner(user, host, agent)
            why = "reads this table" if has_named else "has not said which tables it reads"
            answers.append(
                _answer(
                    compaction,
                    "reader",
                    f"transaction {txn_id} of {who(owner)}, open {lasting(started_ms)} and last heard of "
                    f"{ago(heartbeat_ms)}, {why}: its snapshot needs {len(kept) or 'the'} directories that compaction "
                    f"{compaction.id} replaced",
                    f"let it end, or ABORT TRANSACTIONS {txn_id}; its files go with the Cleaner's next run",
                    started_ms,
                    txn_id,
                    owner,
                    kept,
                )
            )
        return answers

    def _obstacle(self, compaction: Compaction) -> tuple[str | None, datetime | None]:
        """What keeps the Cleaner from it but readers, and until when."""
        for found, _, _, _, _, obstacle, until, *_ in self._db.call("clean_outlook", self._retention_ms()):
            if found == compaction.id:
                return obstacle, until
        return None, None

    def _nothing_in_the_way(self, compaction: Compaction, left: str) -> Answer:
        if not self._may_be_cleaned(compaction):
            return _answer(
                compaction,
                "no_cleanup",
                f"{left} is kept: the parameter no_cleanup of the partition, its table or its database says so",
                "set it to false and compact again",
            )
        every_s = max(1, self._config.cleaner_interval_ms // 1000)
        if not self._config.cleaner_on:
            return _answer(
                compaction,
                "cleaner_off",
                f"{left} may go, but this server runs no Cleaner",
                "set metastore.compactor.cleaner.on=true, here or on another server",
            )
        return _answer(
            compaction,
            "to_clean",
            f"{left} may go: nothing is in the way of the Cleaner",
            f"wait for its next run; it looks every {every_s} s",
        )

    def _may_be_cleaned(self, compaction: Compaction) -> bool:
        db, name, partition = compaction.db, compaction.table, compaction.partition
        table = self._catalogue.table(db, name)
        own = self._catalogue.partition_parameters(db, name, partition) if partition is not None else None
        return table is None or may_be_cleaned(table, own)

    def _location(self, compaction: Compaction) -> str | None:
        table = self._catalogue.table(compaction.db, compaction.table)
        if table is None or compaction.partition is None:
            return None if table is None else table.location
        return self._catalogue.partition(compaction.db, compaction.table, compaction.partition)

    def _retention_ms(self) -> int:
        return self._config.cleaner_retention_ms if self._config.delayed_cleanup else 0


def _answer(
    compaction: Compaction,
    code: str,
    message: str,
    action: str,
    since_ms: int | None = None,
    txn_id: int | None = None,
    owner: TxnOwner | None = None,
    kept: tuple[str, ...] = (),
) -> Answer:
    since_ms = since_ms or ms_of(compaction.committed_at) or ms_of(compaction.started_at)
    txn_id = txn_id or (compaction.txn_id if code == "uncommitted" else None)
    return Answer(compaction.target, code, message, action, since_ms, txn_id, None, compaction.id, owner, kept)
