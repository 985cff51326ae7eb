"""One write to one table in an open transaction: the protocol that all writers share; they only make files.

`TableWrite.begin` locks, and reads the definition behind the lock: by that the files are made. `publish` registers
partitions, finds out that the transaction lives, tells which partitions are touched, gives directories their names,
and looks once more: clients that take no locks may alter, move or drop what they like. It looks when all is in place,
since what others do from then on they do to the files, too: a drop removes them and a rename takes them along, as if
this write had committed before it.

What may be different then: columns that were added, renamed or given wider types, as they are in files of any earlier
write. What may not is where and by what rules rows are looked for: id, place, kind, keys and buckets of the table, and
the places of partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import (
    ColumnError,
    HiveAcidError,
    NameTooLongError,
    SnapshotOutdatedError,
    TableChangedError,
    UnsupportedTableError,
)
from hive_acid.filesystem import files
from hive_acid.format.names import (
    MAX_STATEMENT_ID,
    DirectoryKind,
    base_name,
    delete_delta_name,
    delta_name,
    parse_directory,
)
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.format.properties import REPLACED, replaced_by, replaced_mark
from hive_acid.ids import WriteId
from hive_acid.transactions.locks import Operation, overwrite_component, plain_component, write_component
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import table_name
from hive_acid.write import loose_files
from hive_acid.write.aside import Aside
from hive_acid.write.left_rows import refuse_left_rows
from hive_acid.write.same_partitions import by_values, key_is_of_partitions, may_be_named_otherwise, values_of
from hive_acid.write.staging import DELETE, StagedFiles, Staging, Values
from hive_acid.write.successor import make_successor, take_place

_UNPARTITIONED = ""
_WITH_ROWS = frozenset({Operation.INSERT, Operation.UPDATE})

_LOOKS = 3
"""So often a lock is taken at most, each time for what was found behind the one before."""

_Staging = TypeVar("_Staging", bound=Staging)

Check = Callable[[Sequence["Published"]], None]
"""Looks at directories of new rows that are in place."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a write is about to do to a table.

    `partition` gives the name of the one partition that it goes to, None if it goes to others or rows decide.
    `inserts_what_lacks` says that new rows are such as the table has not: partitions that get some count as changed
    then, and it is looked, by `ChangedRows.look_before_commit`, what others have put there: of two statements that
    would insert the same rows only the first commits. New rows of which it `keeps_keys` have the primary key of those
    that they replace. An overwrite that may go on `beside_readers` does not wait for them. `redefined` makes of the
    table that is there the one whose rows come in the place of all others, with other columns or buckets: its
    definition comes with the commit. One without an id is another table, which takes the place of that one
    (`successor`). `also` says what else it does to rows, which takes the right to that.
    """

    operation: Operation
    also: tuple[Operation, ...] = ()
    overwrites: bool = False
    inserts_what_lacks: bool = False
    keeps_keys: Callable[[Table], bool] = field(default=lambda table: False)
    beside_readers: bool = False
    redefined: Callable[[Table], Table] | None = None
    partition: Callable[[Table], str | None] = field(default=lambda table: None)

    @property
    def reads(self) -> bool:
        """Whether what is written depends on the rows that the table has."""
        return self.operation is not Operation.INSERT and not self.overwrites

    def brings_keys(self, table: Table) -> bool:
        """Whether its rows may have primary keys that nobody else may bring meanwhile."""
        has_rows = self.redefined is not None or bool({self.operation, *self.also} & _WITH_ROWS)
        return bool(table.key) and has_rows and not self.keeps_keys(table)

    def claims_all(self, table: Table) -> bool:
        """Whether keys that it brings are compared with those of all partitions."""
        return self.brings_keys(table) and not key_is_of_partitions(table)

    def component(self, table: Table) -> Any:
        """What to lock."""
        name = None if self.claims_all(table) else self.partition(table)
        if table.is_plain:
            return plain_component(table.database, table.name, partition=name, overwrites=self.overwrites)
        dynamic = bool(table.partition_keys) and name is None
        if self.overwrites:
            return overwrite_component(
                table.database,
                table.name,
                also=self.also,
                partition=name,
                dynamic=dynamic,
                beside_readers=self.beside_readers,
            )
        return write_component(
            *(table.database, table.name, self.operation),
            also=self.also,
            partition=name,
            dynamic=dynamic,
            keys=self.brings_keys(table),
        )


@dataclass(frozen=True, slots=True)
class Published:
    """A directory that is in place, in a partition ("" for an unpartitioned table's one)."""

    partition: str
    directory: str
    files: StagedFiles


class TableWrite:
    """One write that has begun: `table` is the definition by which its files are to be made."""

    def __init__(
        self,
        connection: Connection,
        definitions: Definitions,
        transaction: Transaction,
        table: Table,
        intent: Intent,
    ) -> None:
        self.table = table
        self.transaction = transaction
        self._there: Table | None = None
        if intent.redefined is not None:
            self._there, self.table = table, intent.redefined(table)
            if not self.table.id:
                self.table = make_successor(connection, transaction, table, self.table)
        self.intent = intent
        self.created = 0
        """How many partitions it has registered."""
        self._connection = connection
        self._definitions = definitions
        self._first_statement = 0
        self._has_read = False
        self._vacant: set[str] = set()
        self._aside = Aside(self.table.location)
        self._places = {} if self.table.partition_keys else {_UNPARTITIONED: self.table.location}

    @classmethod
    def begin(
        cls,
        connection: Connection,
        definitions: Definitions,
        transaction: Transaction,
        meant: TableReference,
        intent: Intent,
    ) -> TableWrite:
        """Lock what is about to be changed, and read the definition behind the lock.

        What to lock is guessed by what is known of the table, so that one look is enough; it shares the lock's round
        trip. Raises NoSuchObjectError, TableChangedError for a table that is not the one that is meant, and what
        `Transaction.lock` raises, and for an overwrite `Transaction.wait_for_earlier_writes`.
        """
        known = meant.known or definitions.now(meant)
        component = intent.component(known)
        table = definitions.behind_lock(meant, transaction, component, writes=known.is_transactional)
        if table.id != known.id and transaction.may_begin_again and intent.reads:
            raise SnapshotOutdatedError(
                f"{table.full_name} is another table than it was before transaction {transaction.id}, which may not "
                "see its rows: run it again"
            )
        for _ in range(_LOOKS):
            wanted = intent.component(table)
            if wanted == component:
                break
            component = wanted  # it has partitions by now, or none, or others
            table = definitions.behind_lock(meant, transaction, component)
        if intent.overwrites and table.is_transactional:
            transaction.wait_for_earlier_writes(table.database, table.name)
            # Its write id is fixed now, and hides what came before, such as rows with a column that was added since the
            # look above. So it goes by what a look behind it says.
            table = definitions.now(meant, transaction)
        if intent.overwrites:
            transaction.changed.begin_more()
        elif intent.operation is not Operation.INSERT or intent.inserts_what_lacks or intent.brings_keys(table):
            transaction.changed.begin(table_name(table.database, table.name), is_partitioned=bool(table.partition_keys))
        if intent.claims_all(table):
            transaction.compares_keys_of(table.database, table.name)
        if table.is_transactional and component.isDynamicPartitionWrite:
            transaction.on_roll_back(
                partial(transaction.add_dynamic_partitions, table.database, table.name, (), intent.operation)
            )
        return cls(connection, definitions, transaction, table, intent)

    # --- while files are made ------------------------------------------------------------------

    def ids(self) -> tuple[WriteId, int]:
        """The write id of the transaction, and a statement id of this write's own.

        Raises UnsupportedTableError for more than 4096 statements in one transaction.
        """
        write_id = self.transaction.write_id(self.table.database, self.table.name)
        self._first_statement = self.transaction.next_statement_id()
        if self._first_statement > MAX_STATEMENT_ID:
            raise UnsupportedTableError(
                f"a transaction can have {MAX_STATEMENT_ID + 1} statements, as many as names have room for: commit it"
            )
        return write_id, self._first_statement

    def stage(self, kind: type[_Staging]) -> _Staging:
        """A new hidden directory, which goes with all that was published from it if the transaction aborts."""
        staging = kind.below(self.table.location, self.transaction.id)
        self.transaction.on_abort(partial(self.undo, staging))
        return staging

    def undo(self, staging: Staging) -> None:
        """Remove what was staged, and what was published from it unless that `is_anothers` by now."""
        if staging.published and self.is_anothers():
            staging.remove()
        else:
            staging.undo()
            self.bring_back()

    def put_aside(self, directories: Iterable[str]) -> None:
        """Keep bases of earlier statements of the transaction, which this one replaces, for `bring_back`."""
        self._aside.put(self.transaction, directories)

    def bring_back(self) -> None:
        """Put the bases of earlier statements back, where what this write has put there is removed."""
        if self._aside.has_some and not self.is_anothers():
            self._aside.bring_back()

    def is_anothers(self) -> bool:
        """Whether another table lies where this one did, and somebody writes, or has written, to it by our write id.

        After a drop or a rename its files have the very names of ours. They are not ours: where ours are still, whoever
        publishes his by these names fails.
        """
        before = self.table
        write_id = self.transaction.written_as(before.database, before.name)
        if write_id is None:
            return False
        try:
            now = self._connection.table(before.database, before.name)
            if now.id == before.id or now.location != before.location:
                return False
            if self.transaction.has_there(before.database, before.name, write_id):
                return False  # it was given behind the change, and for the table that is there now
            with self._connection.begin(TransactionKind.READ) as transaction:
                seen = transaction.write_ids(before.database, before.name)
        except HiveAcidError:  # it is gone, or nobody answers: a base that stayed would be read by others
            return False
        return write_id <= seen.high_water_mark and not seen.is_aborted(write_id)

    def reads(self, locations: Mapping[str, str], vacant: Collection[str] = ()) -> None:
        """Note where partitions were when their rows were read: rows are deleted there or nowhere.

        In those that are `vacant` nothing was found: whether they were there still is found out with `publish`.
        """
        self._places.update(locations)
        self._vacant.update(vacant)
        self._has_read = True

    def locate(self, wanted: Iterable[Values]) -> dict[Values, str]:
        """The directories of partitions, for files that are written there at once; new ones are registered."""
        return {values: self._places[name] for values, name in self._found(wanted).items()}

    def directory_name(self, staged: StagedFiles) -> str:
        """The name of the directory that files go to, in their partition."""
        write_id = self.transaction.write_id(self.table.database, self.table.name)
        if self.intent.overwrites:
            return base_name(write_id)
        named = delete_delta_name if staged.kind == DELETE else delta_name
        return named(write_id, write_id, staged.statement_id)

    # --- putting them into place ---------------------------------------------------------------

    def publish(
        self, staging: Staging, found: Sequence[StagedFiles], check_keys: Check | None = None
    ) -> list[Published]:
        """Put all that is staged where readers look, once they see the write id; and tell that nothing has moved.

        If rows come into a table with a primary key, `check_keys` then looks at their directories, and raises
        DuplicateKeyError or WriteConflictError. Who cannot do that is refused by UnsupportedTableError.

        That nothing has moved matters to who has read rows, also if nothing is staged: clients that take no locks may
        have moved or replaced what he has listed.

        Raises TableChangedError and NoSuchObjectError if the table has been replaced, moved or dropped since the write
        began, or a partition of it; TransactionExpiredError; UnsupportedTableError for additions to what this
        transaction has overwritten, and for files of which two would go to one directory. The transaction is to be
        aborted then, which removes what was put into place.
        """
        self._refuse_gone({self._name(staged.values) for staged in found if staged.kind == DELETE})
        brings_keys = self.intent.brings_keys(self.table) and any(staged.kind != DELETE for staged in found)
        if brings_keys and check_keys is None:
            raise _not_compared(self.table)
        names = self._found({staged.values for staged in found})
        published = [
            Published(name, files.join(self._places[name], self.directory_name(staged)), staged)
            for staged in found
            for name in (names[staged.values],)
        ]
        self._refuse_shared(published)
        last = max((staged.statement_id for staged in found), default=self._first_statement)
        if last > MAX_STATEMENT_ID:
            raise UnsupportedTableError(
                f"a transaction can have {MAX_STATEMENT_ID + 1} statements, and this one needs several: commit it"
            )
        self.transaction.use_statement_ids(self._first_statement, last)
        again = self.transaction.note_directories(
            self.table.database, self.table.name, set(names.values()), overwrite=self.intent.overwrites
        )
        self._prove(published)
        name = table_name(self.table.database, self.table.name)
        for one in published:
            if one.files.kind == DELETE or self.intent.inserts_what_lacks or brings_keys:
                self.transaction.changed.put(name, one.partition, self._places[one.partition])
        self.put_aside(one.directory for one in published if one.partition in again)
        placed = {id(one.files): one.directory for one in published}
        try:
            staging.publish(found, lambda staged: _split(placed[id(staged)]))
        except OSError:
            self._verify(published)  # who has moved the table has moved what is staged, too
            raise
        self._verify(published)
        if brings_keys and check_keys is not None:
            check_keys([one for one in published if one.files.kind != DELETE])
        if self._there is not None:
            self._redefine(self._there)
        return published

    def mix_in(
        self,
        staging: Staging,
        made: Mapping[Values, str],
        emptied: Iterable[Values],
        check: Callable[[Table, str, str], object],
    ) -> None:
        """Put the files of a plain table among those that are there; `made` has the directories that they lie in.

        An overwrite puts them in the place of all files in their partitions, and in those that are `emptied`. `check`
        is asked of each partition, by its name and place, before. All is seen at once. If the transaction aborts it is
        taken back, as far as nobody has read it.

        Raises TableChangedError and NoSuchObjectError as `publish`, UnsupportedTableError for another directory among
        files that are to go.
        """
        wire = self._unchanged()
        emptied = list(emptied)
        names = self._found({*made, *emptied})
        partitions = {name: self._places[name] for name in names.values() if name}
        for name, place in partitions.items():
            check(self.table, name, place)
        places = {values: self._places[name] for values, name in names.items()}
        replaced = loose_files.files_in(self.table, places.values()) if self.intent.overwrites else []
        self.transaction.check_alive()
        loose_files.outdate(self._connection, self.table, wire, partitions)
        loose_files.put(staging, [(directory, places[values]) for values, directory in made.items()])
        if files.rename_is_copy(self.table.location):
            for path in replaced:
                self.transaction.on_commit(partial(_remove, path))
        else:
            self.put_aside(replaced)

    def _redefine(self, there: Table) -> None:
        """Have the definition of the new rows come with the commit, or the table that has it take the place of that
        which is there.
        """
        table, wire = self.table, self._unchanged()
        if table.is_successor:
            take_place(self.transaction, there, table, wire.owner)
            return
        told = table.to_wire(wire.owner)
        wire.sd.cols, wire.sd.bucketCols, wire.sd.numBuckets = told.sd.cols, told.sd.bucketCols, told.sd.numBuckets
        mark = replaced_mark(table.id, self.transaction.write_id(table.database, table.name))
        wire.parameters = {**(wire.parameters or {}), **table.parameters, REPLACED: mark}
        self.transaction.replace_with_commit(table.id, wire)

    def _name(self, values: Values) -> str:
        """The name of a partition, "" for an unpartitioned table's one."""
        if not self.table.partition_keys:
            return _UNPARTITIONED
        if DEFAULT_PARTITION in values:
            raise ColumnError(
                f"'{DEFAULT_PARTITION}' is no value of a partition column of {self.table.full_name}: by this name NULL "
                "is kept"
            )
        return self.table.partition_name(values)

    def _refuse_gone(self, deleted: set[str]) -> None:
        """Raise TableChangedError if rows are deleted from partitions that it has not read."""
        if self.table.partition_keys and (unread := sorted(deleted - self._places.keys())):
            raise TableChangedError(f"partition {unread[0]} of {self.table.full_name} is none of those that were read")

    def _found(self, wanted: Iterable[Values]) -> dict[Values, str]:
        """The names of partitions by their values; those that are not there are registered.

        What counts is where a partition is once it is registered: somebody else may have done that at the same time,
        and elsewhere. Nor does it count how its values are written in its name.
        """
        table = self.table
        names = {values: self._name(values) for values in wanted}
        unknown = sorted({*names.values()} - self._places.keys())
        if not table.partition_keys:
            return names
        found = self._connection.partitions_named(table, unknown) if unknown else {}
        new = {name for name in unknown if name not in found}
        if may_be_named_otherwise(table) and (new or (self.intent.overwrites and names)):
            same = self._named_otherwise(new, names.values())
            names = {values: same.get(name, name) for values, name in names.items()}
            found |= self._connection.partitions_named(table, sorted({*same.values()} - self._places.keys()))
            new -= same.keys()
        if new:
            wire = self._unchanged()
            if table.is_successor:
                wire = self._connection.wire_table(table.database, table.name)
            default = {name: files.join(table.location, name) for name in sorted(new)}
            refuse_long_values(table, default.values())
            if not self.intent.overwrites:  # what a base hides does not come back
                refuse_left_rows(self._connection, table, default)
            self._connection.add_partitions(table, default, wire=wire)
            registered = self._connection.partitions_named(table, sorted(new))
            if lost := sorted(new - registered.keys()):
                raise TableChangedError(f"partition {lost[0]} of {table.full_name} was dropped as soon as it was made")
            self.created += sum(registered[name] == default[name] for name in new)
            found |= registered
        self._places |= found
        return names

    def _named_otherwise(self, new: Collection[str], written: Collection[str]) -> dict[str, str]:
        """Those of the `new` names whose values a partition has that is there, with its name.

        It is not taken twice: rows that have its name already are files of their own. Raises UnsupportedTableError for
        an overwrite of values that several partitions have.
        """
        table = self.table
        there = by_values(table, self._connection.partition_names(table))
        if self.intent.overwrites:
            for name in written:
                same = {*there.get(values_of(table, name), ())}
                if len(same) > 1:
                    raise UnsupportedTableError(
                        f"{table.full_name} has partitions of the same values, {' and '.join(sorted(same))}: an "
                        "overwrite would replace one of them. Truncate them before, or move the rows by an UPDATE"
                    )
        free = {name: sorted({*there.get(values_of(table, name), ())} - {*written}) for name in sorted(new)}
        return {name: same[0] for name, same in free.items() if same}

    def _verify(self, published: Sequence[Published]) -> None:
        """Raise TableChangedError or NoSuchObjectError unless readers find what is in place, and we what we read."""
        if not published and not self._has_read:
            return
        self._unchanged()
        names = sorted({one.partition for one in published})
        places = {name: self._places[name] for name in sorted({*names} | self._vacant)}
        if not self.table.partition_keys or not places:
            return
        refuse_moved_partitions(self._connection, self.table, places, "while the statement ran")
        # Of all: a time at which the metastore made a partition says nothing to a client whose clock is another.
        self._refuse_hidden(names)

    def _refuse_hidden(self, names: Sequence[str]) -> None:
        """Raise TableChangedError if in one of the partitions a base of a later write hides what was put there.

        A partition that is dropped gets such a base, lest what was in it comes back when it is made anew. Who has an
        earlier write id then is waited for, but not for ever.
        """
        table = self.table
        write_id = self.transaction.write_id(table.database, table.name)
        places = [self._places[name] for name in names]
        for name, entries in zip(names, files.list_trees(places, max_depth=1), strict=True):
            for entry in entries:
                found = parse_directory(entry.path.rstrip("/"))
                if found is not None and found.kind is DirectoryKind.BASE and found.max_write_id > write_id:
                    raise TableChangedError(
                        f"partition {name} of {table.full_name} was dropped and made anew since transaction "
                        f"{self.transaction.id} began to write to the table: what it adds there would not be seen. Run "
                        "it again"
                    )

    def _unchanged(self) -> Any:
        """What the metastore says of the table. Raises TableChangedError if this write does not fit it any more."""
        before = self._there or self.table
        meant = TableReference(before.database, before.name, before.id or None)
        now, wire = self._definitions.told(meant, self.transaction)
        if _essentials(now) != _essentials(before):
            raise TableChangedError(
                f"{before.full_name} was altered while the statement ran, so that its rows are looked for in another "
                f"way or place ({now.location}): run it again"
            )
        if now.constraints and (more := _demands(now).keys() - _demands(before).keys()):
            names = ", ".join(sorted(_demands(now)[one] or "" for one in more))
            raise TableChangedError(
                f"{before.full_name} was given constraint {names} while the statement ran, for which its rows were not "
                "checked: run it again"
            )
        return wire

    def _refuse_shared(self, published: Sequence[Published]) -> None:
        """Raise UnsupportedTableError if two outputs have one directory, as those of two partitions at one place."""
        by_place: defaultdict[str, list[str]] = defaultdict(list)
        for one in published:
            by_place[files.plain(one.directory)].append(one.partition)
        for place, partitions in by_place.items():
            if len(partitions) > 1:
                named = " and ".join(dict.fromkeys(partitions)) or "the table"
                raise UnsupportedTableError(
                    f"{self.table.full_name}: rows of {named} would be written to one directory, {place}, where one "
                    "file would take the place of the other"
                )

    def _prove(self, published: Sequence[Published]) -> None:
        """Find out that the transaction lives still, and tell which partitions it touches, for the check at commit.

        Who was given up meanwhile learns it here. Who is given up after this finds its staging directory, which is
        there by now, removed by the Cleaner, before the record goes by which its writes count as aborted.
        """
        table, intent = self.table, self.intent
        is_of_one = intent.partition(table) is not None and not intent.claims_all(table)
        if not table.partition_keys or table.is_successor or is_of_one:
            if published:  # of a successor's partitions nobody else knows: the whole of what it succeeds is changed
                self.transaction.check_alive()
            return
        is_key_of_partition = intent.brings_keys(table) and key_is_of_partitions(table)
        all_changed = intent.overwrites or intent.inserts_what_lacks or is_key_of_partition
        changed = {one.partition for one in published if all_changed or one.files.kind == DELETE}
        added = {one.partition for one in published} - changed
        change = Operation.UPDATE if intent.operation is Operation.INSERT else intent.operation
        for touched, what in ((changed, change), (added, Operation.INSERT)):
            # Nothing touched is told as well: until then the whole table counts as written to.
            if touched or not published:
                self.transaction.add_dynamic_partitions(table.database, table.name, sorted(touched), what)


def refuse_uncompared(table: Table) -> None:
    """Raise UnsupportedTableError for a table with a primary key, to who adds rows and cannot compare theirs."""
    if table.key:
        raise _not_compared(table)


def _not_compared(table: Table) -> UnsupportedTableError:
    names = ", ".join(column.name for column in table.key)
    return UnsupportedTableError(
        f"{table.full_name} has the primary key ({names}), and this way of writing does not compare rows with those "
        "that are there: insert them by acid.insert, or by INSERT"
    )


def refuse_moved_partitions(connection: Connection, table: Table, places: Mapping[str, str], meanwhile: str) -> None:
    """Raise TableChangedError for a partition that is not where it was; `places` are locations by name."""
    now = connection.partitions_named(table, list(places))
    for name, place in places.items():
        if now.get(name) != place:
            what = f"was moved to {now[name]}" if name in now else "was dropped"
            raise TableChangedError(f"partition {name} of {table.full_name} {what} {meanwhile}: run it again")


def refuse_long_values(table: Table, places: Iterable[str]) -> None:
    """Raise ColumnError for directories of partitions that the file system cannot have."""
    try:
        for place in places:
            files.refuse_too_long(place)
    except NameTooLongError as error:
        raise ColumnError(f"{table.full_name}: a value is too long for a partition key: {error}") from error


def _essentials(table: Table) -> tuple[object, ...]:
    """What must not change while rows are written: where they are looked for, and by what rules."""
    keys = tuple((key.name, key.type) for key in table.partition_keys)
    kind = table.is_transactional, table.is_full_acid, table.input_format
    hashed = {column.name: column.type for column in table.columns if column.name in table.bucket_columns}
    buckets = table.bucket_columns, table.buckets, table.bucketing_version
    return table.location, keys, kind, buckets, hashed, replaced_by(table.parameters, table.id)


def _demands(table: Table) -> dict[tuple[object, ...], str | None]:
    """What its rows must meet, with the names of who says so; columns by their places, as they may be renamed."""
    places = {column.name: place for place, column in enumerate(table.all_columns)}
    return {
        (one.kind, tuple(places.get(name) for name in one.columns), one.expression): one.name
        for one in table.constraints
        if one.is_enforced or one.is_enforced_key
    }


def _remove(path: str) -> None:
    files.remove(path)


def _split(directory: str) -> tuple[str, str]:
    location, _, name = directory.rpartition("/")
    return location, name
