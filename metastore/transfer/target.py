"""Where an import writes: our own database, beside the server that may be running on it.

Definitions are stored as the source has them, not as a client's request to create something: no directory is made, no
rule for new tables applies, files stay where they are. A table and its write ids come in one database transaction:
nobody sees the one without the other, and so nobody gives out a write id that the files have already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import ARRAY, BigInteger, Connection, Text, cast, delete, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from metastore.catalog import records
from metastore.catalog.models import MANAGED_TABLE, USER, CatalogInfo, DatabaseInfo, Partition, Table
from metastore.catalog.names import DEFAULT_CATALOG, DEFAULT_DATABASE, fold, name_of_values, partition_values
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.place.places import SCHEMES, is_below, qualified
from metastore.catalog.removal.removals import Removals
from metastore.catalog.rules.validation import partition_columns, with_lowered_names
from metastore.catalog.schema import CATALOG, DATABASE, PARTITION, TBL
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database
from metastore.transfer import entries
from metastore.transfer.comparison import differences, ranges
from metastore.transfer.entries import EntryKind
from metastore.transfer.models import Entry, TableWrites, TransferError
from metastore.transfer.report import ADDED, DIFFERENT, EQUAL, REFUSED, REPLACED
from metastore.transfer.sources.own import writes_of

OWN = (("catalog", DEFAULT_CATALOG), ("database", DEFAULT_DATABASE))
"""Every metastore has these from its first start, with its own warehouse in them: they are compared, never replaced."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an object (`report`), and how it differs from the source's."""

    outcome: str
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Claim:
    """Places that something takes, and how it does so in a transaction."""

    places: Sequence[str | None]
    take: Callable[[Connection], None]


class Target:
    """Our database. With `dry_run` everything is compared and nothing changed; with `replaces`, what differs is."""

    def __init__(
        self,
        db: Database,
        source: str,
        removals: Removals,
        dry_run: bool = False,
        replaces: bool = False,
        schemes: Sequence[str] = SCHEMES,
    ) -> None:
        """`source` names the space of transaction ids that the imported files carry; places may be on `schemes`.

        Places that are among the `removals` are waited for.
        """
        self._db = db
        self._source = source
        self._removals = removals
        self._schemes = schemes
        self._dry_run = dry_run
        self._replaces = replaces
        # Nothing is removed or moved here, so all places are looked at alike, whatever the warehouse.
        self._neighbours = Neighbours(db, Directories("file:/", enabled=True))

    def take_txn_ids(self, high_water_mark: int) -> None:
        """Let our transaction ids go on above the source's. Raises TransferError if they cannot."""
        if self._dry_run or high_water_mark == 0:
            return
        row = self._db.call_one("take_txn_ids", self._source, high_water_mark)
        if row is not None and row[0]:
            raise TransferError(
                f"transactions {ranges(row[0])} are open or aborted here, and the source has given out ids up to"
                f" {high_water_mark}: what its compactions wrote under these ids would be invisible. Wait"
                " until the open ones have ended and the Cleaner has removed what the aborted ones left, or import into"
                " an empty metastore"
            )

    def catalog(self, catalog: CatalogInfo) -> Outcome:
        """Store or compare a catalog."""
        try:
            self._stored(catalog.location)
        except MetaError as error:
            return Outcome(REFUSED, (str(error),))
        row = records.catalog_row(catalog)
        found = self._rows(select(CATALOG).where(CATALOG.c.name == catalog.name))
        if found:
            changed = update(CATALOG).where(CATALOG.c.name == catalog.name)
            return self._compared(found[0], row, changed.values(row), ("catalog", catalog.name) in OWN)
        return self._added(insert(CATALOG).values(row))

    def database(self, database: DatabaseInfo) -> Outcome:
        """Store or compare a database."""
        try:
            new = replace(
                database,
                name=fold(database.name),
                location=self._stored(database.location),
                managed_location=self._stored(database.managed_location),
            )
        except MetaError as error:
            return Outcome(REFUSED, (str(error),))
        row = records.database_row(new)
        places = [place for place in (new.location, new.managed_location) if place]
        found = self._rows(select(DATABASE).where(DATABASE.c.name == new.name))
        try:
            if not found:
                return self._added(insert(DATABASE).values(row), self._of_home(places))
            changed = update(DATABASE).where(DATABASE.c.name == new.name).values(row)
            stands = found[0]["location"], found[0]["managed_location"]
            claim = self._of_home([place for place in places if place not in stands])
            return self._compared(found[0], row, changed, ("database", new.name) in OWN, claim)
        except (InvalidObjectError, InvalidOperationError) as error:
            return Outcome(REFUSED, (str(error),))

    def table(self, given: Table, writes: TableWrites | None) -> tuple[Outcome, Table | None]:
        """Store or compare a table with its write ids; also as it is here now, None if it is not.

        Raises TransferError if its write ids cannot be what they are at the source.
        """
        new = replace(as_stored(given), location=self._stored(given.location))
        row = records.table_row(new)
        found = self._rows(select(TBL).where(TBL.c.database == new.database, TBL.c.name == new.name))
        if found:
            own = Own(found[0]["id"])
            changed = update(TBL).where(TBL.c.id == own.table_id).values(row)
            moved = [new.location] if new.location != found[0]["location"] else []
            outcome = self._compared(found[0], row, changed, claim=self._of_table(moved, new, own))
            stands = records.table_of(tuple(found[0].values()))
            is_ours = outcome.outcome == DIFFERENT
            return outcome, stands if is_ours else replace(new, id=stands.id)
        if self._dry_run:
            return Outcome(ADDED), None

        def work(connection: Connection) -> Table:
            created = connection.execute(insert(TBL).values(row).returning(TBL.c.id)).scalar_one()
            self._claim(connection, [new.location], new, Own(created))
            if writes is not None:
                self._begin(connection, new, writes, self._left_behind(connection, new, writes))
            return replace(new, id=created)

        return Outcome(ADDED), self._taking([new.location], work)

    def writes(self, table: Table, there: TableWrites, known: TableWrites | None = None) -> Outcome:
        """Compare the write ids of a table that is here.

        They are brought to where the source's stand if `known` is what an earlier step of this import put there, or
        with `replaces`; but never back. Raises TransferError if that cannot be.
        """
        with self._db.engine.connect() as connection:
            here = writes_of(connection, table.database, table.name)
        if here is not None and here.high_water_mark == there.high_water_mark and not _missing(here, there):
            return Outcome(EQUAL)
        known = known or (here if self._replaces and here is not None and not here.unfinished else None)
        is_behind = here is None or here.high_water_mark <= there.high_water_mark
        if is_behind and (here is None or known is not None):
            if not self._dry_run:
                last = None if known is None else known.high_water_mark
                in_transaction(self._db, lambda connection: self._begin(connection, table, there, last))
            return Outcome(ADDED if here is None else REPLACED)
        assert here is not None
        words = [f"last write id: {here.high_water_mark} here, {there.high_water_mark} there"]
        missing = _missing(here, there)
        if missing:
            words.append(f"aborted there, not here: {ranges(missing)}")
        return Outcome(DIFFERENT, tuple(words))

    def partitions(self, table: Table, given: Sequence[Partition]) -> list[tuple[str, Outcome]]:
        """Store or compare some partitions, all or none; (name, outcome) of each."""
        keys = [key.name for key in table.partition_keys]
        stored = (replace(_partition_as_stored(keys, one), location=self._stored(one.location)) for one in given)
        rows = {row["name"]: row for row in (records.partition_row(table, one) for one in stored)}
        query = select(PARTITION).where(PARTITION.c.table_id == table.id, PARTITION.c.name.in_(list(rows)))
        here = {row["name"]: row for row in self._rows(query)} if table.id else {}
        missing = [row for name, row in rows.items() if name not in here]
        if missing and not self._dry_run:
            elsewhere = [
                str(row["location"])
                for row in missing
                if row["location"] and not is_below(row["location"], table.location)
            ]

            def work(connection: Connection) -> None:
                self._claim(connection, elsewhere, table, Own(table.id, tuple(str(row["name"]) for row in missing)))
                # With RETURNING many rows are one statement.
                statement = insert_unless(PARTITION).on_conflict_do_nothing().returning(PARTITION.c.name)
                connection.execute(statement, missing)

            self._taking(elsewhere, work)
        outcomes = [(str(row["name"]), Outcome(ADDED)) for row in missing]
        for name, stands in here.items():
            changed = update(PARTITION).where(PARTITION.c.id == stands["id"]).values(rows[name])
            whole = [{**row, "storage": row["storage"] or table.storage} for row in (stands, rows[name])]
            moved = [rows[name]["location"]] if rows[name]["location"] != stands["location"] else []
            claim = self._of_table(moved, table, Own(table.id, (name,)))
            outcomes.append((name, self._compared(whole[0], whole[1], changed, claim=claim)))
        return outcomes

    def entries(self, kind_name: str, table: Table | None, given: Sequence[Entry]) -> list[tuple[Entry, Outcome]]:
        """Store or compare entries of one kind, all or none.

        Raises TransferError for a kind that is not known. Those that name what is not here are refused: the outcome
        says so.
        """
        kind = entries.KINDS.get(kind_name)
        if kind is None:
            raise TransferError(f"this version of hive-acid knows no {kind_name}: upgrade it")
        if kind.belongs_to_tables and table is not None and not table.id:  # of a table that a dry run did not make
            return [(entry, Outcome(ADDED)) for entry in given]

        def work(connection: Connection) -> list[tuple[Entry, Outcome]]:
            found = entries.rows_of(connection, kind, table, given)
            rows = {kind.key_of(row): row for _, row in found if row is not None}
            query = select(kind.rows).where(kind.with_keys(rows))
            here = {kind.key_of(row): dict(row) for row in connection.execute(query).mappings()}
            outcomes = [(entry, self._judged(kind, here, row)) for entry, row in found]
            changed = {ADDED, REPLACED}
            if not self._dry_run:
                new = [row for (_, row), (_, judged) in zip(found, outcomes, strict=True) if judged.outcome in changed]
                replaced = [kind.key_of(row) for row in new if row is not None and kind.key_of(row) in here]
                if replaced:
                    connection.execute(delete(kind.rows).where(kind.with_keys(replaced)))
                entries.store(connection, kind, [row for row in new if row is not None])
            return outcomes

        return in_transaction(self._db, work)

    def partition_count(self, table: Table) -> int:
        """How many partitions the table has here."""
        with self._db.engine.connect() as connection:
            query = select(func.count()).select_from(PARTITION).where(PARTITION.c.table_id == table.id)
            return int(connection.execute(query).scalar_one())

    # --- inside ---

    def _stored(self, location: str | None) -> str | None:
        """A location as it is stored. Raises MetaError for what cannot be a place."""
        return qualified(location, schemes=self._schemes) if location else None

    def _of_table(self, places: Sequence[str | None], table: Table, own: Own) -> _Claim:
        return _Claim(places, lambda connection: self._claim(connection, places, table, own))

    def _of_home(self, places: Sequence[str]) -> _Claim:
        """The claim of a database."""
        return _Claim(places, lambda connection: self._neighbours.claim_home(connection, places))

    def _claim(self, connection: Connection, places: Sequence[str | None], table: Table, own: Own) -> None:
        """Take places for a table.

        Raises TransferError if another one's data is there that must not be shared, GoingError (`_taking`).
        """
        wanted = [place for place in dict.fromkeys(places) if place]
        if not wanted or not table.owns_files:
            return
        try:
            self._neighbours.claim(connection, wanted, table, own)
        except InvalidObjectError as error:
            raise TransferError(str(error)) from error

    def _taking(self, places: Sequence[str | None], work: Callable[[Connection], T]) -> T:
        """The result of `work`, in a transaction that takes places; what others remove or move there is waited for.

        Raises InvalidOperationError if that does not end.
        """
        self._neighbours.learn(places)
        return self._removals.beside_others(lambda: in_transaction(self._db, work))

    def _judged(self, kind: EntryKind, here: Mapping[Any, Mapping[str, Any]], row: dict[str, Any] | None) -> Outcome:
        if row is None:
            return Outcome(REFUSED, ("belongs to a table or partition that is not here",))
        stands = here.get(kind.key_of(row))
        if stands is None:
            return Outcome(ADDED)
        found = tuple(differences(stands, row))
        if not found:
            return Outcome(EQUAL)
        return Outcome(REPLACED if self._replaces else DIFFERENT, found)

    def _compared(
        self,
        here: Mapping[str, Any],
        row: Mapping[str, Any],
        changed: Any,
        stays: bool = False,
        claim: _Claim | None = None,
    ) -> Outcome:
        found = tuple(differences(here, row))
        if not found:
            return Outcome(EQUAL)
        if stays or not self._replaces:
            return Outcome(DIFFERENT, found)
        if self._dry_run:
            return Outcome(REPLACED, found)

        def work(connection: Connection) -> None:
            if claim is not None:
                claim.take(connection)
            connection.execute(changed)

        self._taking([] if claim is None else claim.places, work)
        return Outcome(REPLACED, found)

    def _added(self, statement: Any, claim: _Claim | None = None) -> Outcome:
        def work(connection: Connection) -> None:
            connection.execute(statement)
            if claim is not None:
                claim.take(connection)

        if not self._dry_run:
            self._taking([] if claim is None else claim.places, work)
        return Outcome(ADDED)

    def _rows(self, query: Any) -> list[dict[str, Any]]:
        with self._db.engine.connect() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def _left_behind(self, connection: Connection, table: Table, there: TableWrites) -> int | None:
        """The last write id of a table that was here before and went without its files; it may go on there only."""
        here = writes_of(connection, table.database, table.name)
        if here is None or here.unfinished or here.high_water_mark > there.high_water_mark:
            return None
        return here.high_water_mark

    def _begin(self, connection: Connection, table: Table, writes: TableWrites, known: int | None) -> None:
        left = writes.aborted
        outcome = connection.execute(
            select(
                func.begin_imported_table(
                    self._source,
                    table.database,
                    table.name,
                    writes.high_water_mark,
                    cast(known, BigInteger),
                    cast([one.write_id for one in left], ARRAY(BigInteger)),
                    cast([one.txn_id for one in left], ARRAY(BigInteger)),
                    cast([one.partition for one in left], ARRAY(Text)),
                    cast([one.operation for one in left], ARRAY(Text)),
                )
            )
        ).scalar_one()
        if outcome == "begun":
            raise TransferError(
                f"{table.full_name} has later write ids here, of an earlier table of this name or given out meanwhile:"
                " they cannot be taken back to those of the source"
            )
        if outcome == "taken":
            ids = ranges(one.txn_id for one in left if not one.write_id)
            raise TransferError(
                f"compactions of {table.full_name} were aborted in transactions {ids} of the source, ids that mean"
                " others here: let the source's Cleaner remove what they left, or import into an empty metastore"
            )


def as_stored(table: Table) -> Table:
    """A definition of any source as the catalogue has it: names in lower case, what is left out filled in."""
    return replace(
        with_lowered_names(table),
        table_type=table.table_type or MANAGED_TABLE,
        owner_type=table.owner_type or USER,
        location=qualified(table.location) if table.location else None,
        details=_without_unset(table.details),
    )


def _partition_as_stored(keys: Sequence[str], partition: Partition) -> Partition:
    values = partition_values(partition.values)
    return replace(
        partition,
        values=values,
        name=name_of_values(keys, values),
        location=qualified(partition.location) if partition.location else None,
        columns=partition_columns(partition.columns),
        details=_without_unset(partition.details),
    )


def _without_unset(details: dict[str, Any]) -> dict[str, Any]:
    """Without the write id of a last change where there is none, which sources say in several ways."""
    return {name: value for name, value in details.items() if name != "writeId" or value > 0}


def _missing(here: TableWrites, there: TableWrites) -> set[int]:
    """Write ids that are aborted at the source and committed here."""
    return there.aborted_ids - here.aborted_ids
