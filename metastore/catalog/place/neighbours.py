"""Does anybody else's data lie at, below or above a place? Asked by every verb that takes one or gives one up.

It is asked in the database transaction of the change, with the places locked: who takes or gives up a place at, below
or above the same one waits for its end (`lock_places.sql`).

- **Removing** (drops, truncation, renames, the Cleaner, the trash): a directory may go if nobody else has anything at
  or below it, and if it is not a part of another table's or partition's directory.
- **Taking** (new tables, partitions and databases, other locations, renames, undrop, import): a transactional table
  shares its place with nobody, and no table that owns its files lies in, at or above a transactional one. Plain tables
  may share, as in Hive; then none of them removes anything.

What lies in a database's directory is not the data of a table that lies above that directory, such as an external one
over the whole warehouse.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import InvalidObjectError, InvalidOperationError
from metastore.catalog import records
from metastore.catalog.models import Table
from metastore.catalog.place.directories import Directories, explained
from metastore.catalog.place.places import (
    LOCAL,
    Alias,
    Place,
    ancestors,
    case_ignored,
    identity,
    spellings,
    spellings_below,
)
from metastore.catalog.schema import PLACE_ALIAS, TBL
from metastore.store.database import Database
from metastore.store.embedded.server import own_files

AT, BELOW, ABOVE = "at", "below", "above"
TABLE, PARTITION, DATABASE = "table", "partition", "database"
WAREHOUSE = "warehouse"
METASTORE = "metastore"
"""The files of the metastore's own Postgres."""
READ = "read"
"""Of a dropped table or partition that transactions under way may read."""
MOVING, TRASH = "moving", "trash"
"""On its way to the trash; there."""
REMOVAL = "removal"
"""Of something dropped, waiting for its removal."""
RENAMING = "renaming"
"""Either end of a move that another one has begun and not committed."""

_MOST_LOCKS = 50
"""Places that are locked one by one; more lock the root of all."""
_KEPT = (TABLE, PARTITION, DATABASE, METASTORE, READ, MOVING, TRASH, RENAMING)
_GOING = (REMOVAL, MOVING, RENAMING)
_BASE = "\x1f"
"""Above the roots of all file systems."""

_log = logging.getLogger(__name__)

# As text, which costs less than half a millisecond to make.
_NEAR = text(
    "SELECT * FROM data_near(CAST(:numbers AS integer[]), CAST(:lows AS text[]), CAST(:highs AS text[]),"
    " CAST(:own_table AS bigint), CAST(:own_partitions AS text[]), CAST(:wanted AS text[]))"
)
_DATA_DIRECTORY = text("SELECT setting FROM pg_settings WHERE name = 'data_directory'")  # no row without the right
_LOCK = text("SELECT lock_places(CAST(:places AS text[]), CAST(:alone AS boolean[]))")


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Something of the catalogue at, below or above a place; of tables and partitions the `table`."""

    kind: str
    relation: str
    id: int
    label: str
    location: str
    identity: str
    table: Table | None = None

    def __str__(self) -> str:
        match self.kind:
            case "table":
                what = f"table {self.label}"
            case "partition":
                what = f"partition {self.label} of {self.table.full_name if self.table else 'a table'}"
            case "database":
                what = f"database {self.label}"
            case "warehouse":
                what = "the warehouse"
            case "metastore":
                what = "the metastore's own database"
            case "read":
                what = f"what transactions under way still read of the dropped {self.label}"
            case "renaming":
                what = f"what is being moved of {self.label}"
            case "trash" | "moving":
                what = f"the dropped {self.label or 'table'}, which can be brought back,"
            case _:
                what = "what is being removed"
        return f"{what} at {self.location}"


@dataclass(frozen=True, slots=True)
class Own:
    """Whose places are asked about: what is left out of an answer. With `partitions` only these of the table's."""

    table_id: int | None = None
    partitions: tuple[str, ...] | None = None


NOBODY = Own()


class GoingError(InvalidOperationError):
    """Something is being removed or moved at, below or above a place: whoever waits for its end can try again."""

    def __init__(self, neighbour: Neighbour, place: str) -> None:
        super().__init__(going(place, neighbour))
        self.place = neighbour.location


class Neighbours:
    """Asks the catalogue about places."""

    def __init__(self, db: Database, directories: Directories) -> None:
        self._db = db
        self._directories = directories
        self._metastores: list[str] | None = None
        """Where the Postgres has its files, once that is known."""

    # --- before the transaction ---

    def learn(self, locations: Iterable[str | None]) -> bool:
        """Find the links on the way to local places, before the transaction that takes them; whether any was new.

        Raises MetaError if the disk cannot be looked at.
        """
        if not self._directories.enabled:
            return False
        found: set[Alias] = set()
        for location in {location for location in locations if location}:
            with explained("look for", location):
                found.update(self._directories.aliases(location))
        if not found:
            return False
        with self._db.engine.begin() as connection:
            new = found - set(_aliases(connection))
            for alias in sorted(new, key=lambda alias: alias.place):
                row = {"place": alias.place, "target": alias.target, "ignores_case": alias.ignores_case}
                statement = insert(PLACE_ALIAS).values(row)
                again = statement.on_conflict_do_update(index_elements=["place", "ignores_case"], set_=row)
                connection.execute(again)
        return bool(new)

    # --- in it ---

    def ignores_case(self, connection: Connection, place: str | None) -> bool:
        """Whether the case of letters is known not to count in a directory."""
        return bool(place) and Place.of(place or "").scheme == LOCAL and case_ignored(place or "", _aliases(connection))

    def near(
        self,
        connection: Connection,
        places: Sequence[str],
        own: Own = NOBODY,
        lock: bool = False,
        kinds: Collection[str] | None = None,
    ) -> dict[str, list[Neighbour]]:
        """What of others lies at, below or above each of some stored locations; `lock` keeps it so to the end.

        `kinds` are those that are looked for, None for all; REMOVAL takes MOVING and RENAMING along.
        """
        return self._sheltered(connection, places, own, lock, kinds)[0]

    def _sheltered(
        self,
        connection: Connection,
        places: Sequence[str],
        own: Own,
        lock: bool,
        kinds: Collection[str] | None = None,
    ) -> tuple[dict[str, list[Neighbour]], list[Alias]]:
        """What `near` tells, and the links that are known."""
        found, aliases = self._looked(connection, places, own, lock, kinds)
        root = identity(self._directories.root, aliases)
        near = {place: _unsheltered(there, identity(place, aliases), root, own) for place, there in found.items()}
        return near, aliases

    def _looked(
        self,
        connection: Connection,
        places: Sequence[str],
        own: Own,
        lock: bool,
        kinds: Collection[str] | None = None,
    ) -> tuple[dict[str, list[Neighbour]], list[Alias]]:
        """What lies at, below or above each place, whatever shelters it, and the links that are known."""
        aliases: list[Alias] = []
        if not places:
            return {}, aliases
        look = partial(_candidates, connection, places, own=own, lock=lock, kinds=kinds)
        rows, known = look(aliases)
        if set(known) != set(aliases):
            aliases = known
            rows, _ = look(aliases)
        tables = _tables(connection, {row.id for row in rows if row.kind in (TABLE, PARTITION)})
        found: dict[str, list[Neighbour]] = {place: [] for place in places}
        identities = {place: identity(place, aliases) for place in places}
        for location in self._places_of_the_metastore(connection) if kinds is None else ():
            theirs = identity(location, aliases)
            for place, ours in identities.items():
                if (relation := _relation(theirs, ours)) is not None:
                    found[place].append(Neighbour(METASTORE, relation, 0, "", location, theirs))
        for row in dict.fromkeys(rows):
            place = places[row.number]
            theirs = identity(row.location, aliases)
            relation = _relation(theirs, identities[place])
            if relation is not None:
                table = tables.get(row.id) if row.kind in (TABLE, PARTITION) else None
                found[place].append(Neighbour(row.kind, relation, row.id or 0, row.label, row.location, theirs, table))
        return found, aliases

    def _places_of_the_metastore(self, connection: Connection) -> list[str]:
        """The files of the Postgres: of an embedded one all that is ours beside them, of another one what it tells."""
        if self._metastores is None:
            told = connection.execute(_DATA_DIRECTORY).scalar()
            self._metastores = [f"file:{path}" for path in own_files(told)] if told else []
        return self._metastores

    def in_the_way(self, connection: Connection, places: Sequence[str], own: Own = NOBODY) -> dict[str, Neighbour]:
        """Those of some places that must not be removed or moved, each with what of others lies there.

        What is being moved comes before all else, since it ends.
        """
        found, aliases = self._sheltered(connection, places, own, lock=True)
        blocked = {place: [one for one in there if one.kind in _KEPT] for place, there in found.items()}
        root = self._directories.root
        warehouse = Neighbour(WAREHOUSE, AT, 0, "", root, identity(root, aliases))
        for place, there in blocked.items():
            if _relation(warehouse.identity, identity(place, aliases)) in (AT, BELOW):
                there.append(warehouse)
        return {place: min(there, key=_is_standing) for place, there in blocked.items() if there}

    def homes(
        self, connection: Connection, places: Sequence[str], foreign: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Those of some places that may go with all that lies in them, and those that must wait.

        The first are below the warehouse, and nobody else has anything in them, nor lies any of the `foreign` there. In
        the second transactions under way still read what was dropped; they may be among the first. Raises GoingError.
        """
        found, aliases = self._sheltered(connection, places, NOBODY, lock=True)
        root = identity(self._directories.root, aliases)
        others = [identity(place, aliases) for place in foreign]
        whole, read = [], []
        for place, there in found.items():
            ours = identity(place, aliases)
            _check_settled(place, there)
            waits = [one for one in there if one.kind == READ and one.relation != ABOVE]
            is_free = all(one in waits or one.kind not in _KEPT for one in there)
            is_own = is_free and not any(_relation(one, ours) in (AT, BELOW) for one in others)
            if is_own and _relation(ours, root) == BELOW:
                whole.append(place)
            if waits:
                read.append(place)
        return whole, read

    def with_the_warehouse(self, connection: Connection, places: Sequence[str]) -> set[str]:
        """Those of some places that are the warehouse, or have it in them: they stay, even if nothing is there."""
        aliases = _aliases(connection)
        root = identity(self._directories.root, aliases)
        return {place for place in places if _relation(root, identity(place, aliases)) in (AT, BELOW)}

    def own_places(self, connection: Connection, places: Sequence[str], own: Own, owner: str) -> list[str]:
        """Those of the places of something that is dropped, of an `owner`, that nobody else needs; others are logged.

        Raises GoingError.
        """
        shared = self.in_the_way(connection, places, own)
        for place, neighbour in shared.items():
            _check_settled(place, [neighbour])
            _log.warning("what is dropped of %s leaves its directory %s: in it lies %s", owner, place, neighbour)
        return [place for place in places if place not in shared]

    def check_settled(self, connection: Connection, places: Sequence[str]) -> None:
        """Raises GoingError if another one moves something at, below or above a place."""
        for place, there in self.near(connection, places, lock=True, kinds=[REMOVAL]).items():
            _check_settled(place, there)

    def check_removable(self, connection: Connection, places: Sequence[str], own: Own, what: str) -> None:
        """Raises InvalidOperationError if places must not be emptied or moved; `what` is to be done, and to what.

        If another one is moving what lies there that is a GoingError.
        """
        for place, neighbour in self.in_the_way(connection, places, own).items():
            _check_settled(place, [neighbour])
            raise InvalidOperationError(f"cannot {what}: in its directory {place} lies data of others, {neighbour}")

    def check_free(self, connection: Connection, place: str, table: Table, may_move: bool) -> str | None:
        """What keeps a new table from a place, before anything is made there: READ or REMOVAL, None if nothing does.

        With `may_move` the place is not the client's choice. Raises InvalidObjectError as `claim`, which comes later,
        and if the client has chosen a place of which dropped files are still read.
        """
        there = self.near(connection, [place])[place]
        if any(neighbour.kind == READ for neighbour in there):
            if may_move:
                return READ
            raise InvalidObjectError(
                f"{table.full_name} cannot lie at {place}: transactions under way still read what was dropped"
                " there, try again when they have ended or choose another location"
            )
        for neighbour in there:
            if _forbids(neighbour, table):
                raise InvalidObjectError(_in_use(place, neighbour, table))
        waits = any(neighbour.kind in _GOING and neighbour.relation != BELOW for neighbour in there)
        return REMOVAL if waits else None

    def claim(self, connection: Connection, places: Sequence[str], table: Table, own: Own) -> None:
        """Take places for a table or its partitions.

        Raises InvalidObjectError if another one's data is there that must not be shared, or what was dropped is still
        read there; InvalidOperationError if something there is being removed or moved.
        """
        for place, there in self.near(connection, places, own, lock=True).items():
            for neighbour in there:
                if _forbids(neighbour, table):
                    raise InvalidObjectError(_in_use(place, neighbour, table))
                _check_gone(place, neighbour)

    def claim_home(self, connection: Connection, places: Sequence[str]) -> None:
        """Take places for a database. Raises InvalidObjectError if they are part of a table's, or the metastore's own.

        That of an external one is no home either: what is dropped in a home would take its files along.
        """
        for place, there in self.near(connection, places, lock=True).items():
            for neighbour in there:
                if neighbour.table is not None and neighbour.relation != BELOW:
                    raise InvalidObjectError(f"a database cannot lie at {place}: it is in use by {neighbour}")
                if neighbour.kind == METASTORE and neighbour.relation != BELOW:
                    raise InvalidObjectError(f"a database cannot lie at {place}: there lies {neighbour}")
                _check_gone(place, neighbour)

    def is_read(self, connection: Connection, place: str) -> bool:
        """Whether files of a dropped table or partition that is still read are at, above or below a location."""
        return bool(self.near(connection, [place], kinds=[READ])[place])

    def removals_near(self, connection: Connection, place: str, below: bool) -> list[Neighbour]:
        """The removals and moves that are to end at or above a location, with `below` also those in it."""
        there = self.near(connection, [place], kinds=[REMOVAL])[place]
        return [one for one in there if one.kind in _GOING and (below or one.relation != BELOW)]

    def in_use(
        self, connection: Connection, places: Collection[str], inside: str | None = None, lock: bool = False
    ) -> set[str]:
        """Those of some places of which something is known: whatever lies at or below them, or is kept around them.

        They may be in databases, and in the table `inside` (``database.table``), but not in other tables or partitions,
        whose data they may be.
        """
        found, _ = self._looked(connection, list(places), NOBODY, lock)
        return {
            place for place, there in found.items() if not all(_may_be_around(neighbour, inside) for neighbour in there)
        }


def _may_be_around(neighbour: Neighbour, table: str | None) -> bool:
    """Whether what nobody knows may lie in this."""
    is_own = neighbour.kind == TABLE and neighbour.label == table
    return neighbour.relation == ABOVE and (neighbour.kind == DATABASE or is_own)


def _unsheltered(found: list[Neighbour], ours: str, root: str, own: Own) -> list[Neighbour]:
    """Without databases above, tables that are above the nearest of them, and the own table above its partitions."""
    homes = [one.identity for one in found if one.kind == DATABASE and one.relation == ABOVE]
    if _relation(root, ours) == ABOVE:
        homes.append(root)
    home = max(map(len, homes), default=-1)
    kept = []
    for one in found:
        if one.relation == ABOVE and one.kind in (TABLE, PARTITION, DATABASE):
            is_own = one.kind == TABLE and one.id == own.table_id
            if is_own or one.kind == DATABASE or len(one.identity) <= home:
                continue
        kept.append(one)
    return kept


def _is_standing(neighbour: Neighbour) -> bool:
    return neighbour.kind != RENAMING


def _check_settled(place: str, there: Iterable[Neighbour]) -> None:
    """Raises GoingError if another one moves what is found at, below or above a place."""
    for one in there:
        if one.kind == RENAMING:
            raise GoingError(one, place)


def _check_gone(place: str, neighbour: Neighbour) -> None:
    """Raises GoingError for a place at or above which something is removed or moved."""
    if neighbour.kind in _GOING and neighbour.relation != BELOW:
        raise GoingError(neighbour, place)


def going(place: str, neighbour: Neighbour) -> str:
    """The sentence for who wants a place of which something is still removed or moved."""
    if neighbour.kind == RENAMING:
        return being_moved(place)
    return f"the directory {place} of a dropped object is still being removed: try again later"


def being_moved(place: str) -> str:
    """The sentence for who wants a place to or from which another one moves a directory."""
    return f"another one is moving the directory {place}, what is in it or what it is in: try again later"


def _in_use(place: str, neighbour: Neighbour, table: Table) -> str:
    if neighbour.kind == METASTORE:
        return f"{table.full_name} cannot lie at {place}: there lies {neighbour}; choose another location"
    kind = "transactional" if table.is_transactional else "the owner of its files"
    return (
        f"{table.full_name} is {kind}, but its location {place} is in use: {neighbour}; choose an empty one that no"
        " other table has"
    )


def _forbids(neighbour: Neighbour, table: Table) -> bool:
    """Whether a table must not be where this one is at, below or above."""
    if neighbour.kind == METASTORE:
        return neighbour.relation != BELOW or table.is_transactional or table.owns_files
    if table.is_transactional:
        return neighbour.kind in (TABLE, PARTITION, READ, TRASH) or (
            neighbour.kind == DATABASE and neighbour.relation != ABOVE
        )
    if not table.owns_files:
        return False
    return neighbour.kind in (READ, TRASH) or (neighbour.table is not None and neighbour.table.is_transactional)


def _relation(theirs: str, ours: str) -> str | None:
    if theirs == ours:
        return AT
    if theirs.startswith(f"{ours.rstrip('/')}/"):
        return BELOW
    return ABOVE if ours.startswith(f"{theirs.rstrip('/')}/") else None


def _aliases(connection: Connection) -> list[Alias]:
    rows = connection.execute(select(PLACE_ALIAS.c.place, PLACE_ALIAS.c.target, PLACE_ALIAS.c.ignores_case))
    return [Alias(*row) for row in rows]


def _candidates(
    connection: Connection,
    places: Sequence[str],
    aliases: Sequence[Alias],
    *,
    own: Own,
    lock: bool,
    kinds: Collection[str] | None,
) -> tuple[list[_Candidate], list[Alias]]:
    """What may lie at, below or above each of some places, and all aliases; each range is asked for once."""
    if lock:
        _lock(connection, [identity(place, aliases) for place in places])
    asked: dict[tuple[str, str], list[int]] = {}
    for number, place in enumerate(places):
        roots = dict.fromkeys([*spellings(place, aliases), *spellings_below(place, aliases)])
        ranges = [(root, root) for root in roots]
        ranges += [(f"{root.rstrip('/')}/", f"{root.rstrip('/')}0") for root in roots]  # the character after the slash
        # All ways to what is above are beginnings of ways to the place.
        ranges += [(one, one) for root in roots for one in ancestors(root)]
        for wanted in dict.fromkeys(ranges):
            asked.setdefault(wanted, []).append(number)
    parameters = {
        "numbers": list(range(len(asked))),
        "lows": [low for low, _ in asked],
        "highs": [high for _, high in asked],
        "own_table": own.table_id,
        "wanted": None if kinds is None else list(kinds),
        "own_partitions": None if own.partitions is None else list(own.partitions),
    }
    numbers = list(asked.values())
    candidates, known = [], []
    for row in connection.execute(_NEAR, parameters):
        if row.number is None:
            known.append(Alias(row.location, row.label, bool(row.id)))
        else:
            candidates += [_Candidate(number, *row[1:]) for number in numbers[row.number]]
    return candidates, known


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A row of ``data_near``."""

    number: int
    kind: str
    id: int
    label: str
    location: str


def _tables(connection: Connection, ids: Collection[int]) -> Mapping[int, Table]:
    if not ids:
        return {}
    rows = connection.execute(select(TBL).where(TBL.c.id.in_(ids)))
    return {table.id: table for table in (records.table_of(tuple(row)) for row in rows)}


def _lock(connection: Connection, identities: Iterable[str]) -> None:
    # Whoever looked before the first name was on a disk does not know that the case of letters does not count there.
    alone = {one.lower() for one in identities}
    if len(alone) > _MOST_LOCKS:
        alone = {_BASE}
    shared = {_BASE, *(above for one in alone - {_BASE} for above in ancestors_of_identity(one))} - alone
    wanted = sorted([*((place, True) for place in alone), *((place, False) for place in shared)])
    connection.execute(_LOCK, {"places": [place for place, _ in wanted], "alone": [alone for _, alone in wanted]})


def ancestors_of_identity(one: str) -> Iterable[str]:
    """The identities above an identity."""
    head, _, path = one.partition("://")
    steps = path.split("/")
    return [f"{head}://" + "/".join(steps[:length]) for length in range(len(steps) - 1, 0, -1)]
