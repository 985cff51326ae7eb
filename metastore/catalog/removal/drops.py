"""Dropping a table: its rows here and in the other slices, and what becomes of its files.

They go at once, after the commit, except for these, where two may apply together:

- Readers may be under way in an ACID table. Its files stay until all transactions have ended that were open at the drop
  (`metastore.acid.soft.delete`), or at the commit of the client's own transaction, if it drops in one (Hive's soft
  delete, transactions.md §1.5, §4.8); then the Cleaner takes them. Meanwhile a new table of the same name gets a
  directory of its own (`free_place`), and the write ids stay for those who ask for them.
- The table can be brought back for a while (`metastore.catalog.undrop.window`): its files go to the trash (`trash`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ARRAY, ColumnElement, Connection, Text, bindparam, cast, delete, func, select

from hive_acid.errors import InvalidOperationError
from metastore.catalog import changes
from metastore.catalog.models import Table
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.place.places import is_below
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.transactions import forget_table

AUTO_PURGE = "auto.purge"
_MOST_LETTERS = 240
"""Of a table's name, all ASCII, in a directory's; file systems take 255 bytes."""


@dataclass(frozen=True, slots=True)
class DropRequest:
    """How to drop; `txn_id` and `write_id` are of the client's own transaction, in which it drops, maybe softly.

    `is_succeeded` says that another table gets the name at once, with its write ids.
    """

    delete_data: bool
    purge: bool = False
    txn_id: int = 0
    write_id: int = 0
    is_succeeded: bool = False

    @classmethod
    def of_context(cls, delete_data: bool, properties: Mapping[str, str]) -> DropRequest:
        """What a client says in the context of the call: ``ifPurge``, ``txnId`` and ``writeId``."""
        return cls(
            delete_data,
            purge=properties.get("ifPurge", "").lower() == "true",
            txn_id=_number(properties.get("txnId", "")),
            write_id=_number(properties.get("writeId", "")),
        )


def drop_in(
    connection: Connection, neighbours: Neighbours, removals: Removals, table: Table, request: DropRequest
) -> list[Removal]:
    """Delete a table's rows, here and in the other slices; returns the removals to run after the commit.

    Raises InvalidOperationError if the client's transaction is not open, GoingError if another one moves a directory.
    """
    with_client = request.txn_id > 0 and table.is_transactional and not request.delete_data
    places = (
        _own_places(connection, neighbours, table) if (request.delete_data or with_client) and table.owns_files else []
    )
    trash = _kept(connection, removals, table, places, request)
    planned: list[Removal] = []
    if with_client:
        _submit(connection, table, places, trash, request)
        stays = True
    else:
        stays = _stays(connection, removals, table, places, trash, request)
        if not stays:
            planned = removals.plan(connection, places, table.full_name, trash=trash)
    connection.execute(delete(TBL).where(TBL.c.id == table.id))  # takes the partitions along
    changes.table_dropped(connection, table)
    # Files that stay keep their write ids: a table made over them must not give those out again.
    files_stay = stays or not request.delete_data or request.is_succeeded
    forget_table(connection, table, keep_write_ids=files_stay and table.is_transactional)
    return planned


def free_place(connection: Connection, neighbours: Neighbours, place: str) -> str:
    """`place`, or one beside it if files of a dropped table that is still read are there."""
    return beside(connection, place) if neighbours.is_read(connection, place) else place


def beside(connection: Connection, place: str) -> str:
    """A place that nobody has had, named as Hive names those of tables that can be dropped softly (acid-format.md
    §1.1). A name without room for that is cut.
    """
    number = connection.execute(select(func.nextval("table_version"))).scalar_one()
    above, slash, name = place.rpartition("/")
    return f"{above}{slash}{name[:_MOST_LETTERS]}.v{number:07d}"


def _own_places(connection: Connection, neighbours: Neighbours, table: Table) -> list[str]:
    """The directories of a table that nobody else needs (`neighbours`)."""
    query = select(PARTITION.c.location).where(PARTITION.c.table_id == table.id)
    elsewhere = [place for place in connection.execute(query).scalars() if not is_below(place, table.location)]
    places = [place for place in [table.location, *sorted(set(elsewhere))] if place]
    return neighbours.own_places(connection, places, Own(table.id), table.full_name)


def _kept(
    connection: Connection, removals: Removals, table: Table, places: list[str], request: DropRequest
) -> dict[str, str]:
    """Where the directories go of a table that can be brought back; nothing, and no record, for one that cannot."""
    window_ms = removals.config.undrop_window_ms
    purge = request.purge or (table.parameter(AUTO_PURGE) or "").lower() == "true"
    if window_ms == 0 or purge:
        return {}
    kept = func.catalog_keep_dropped(table.id, window_ms, removals.root, texts(places), request.txn_id)
    rows = connection.execute(select(kept.table_valued("location", "trash")))
    return {row.location: row.trash for row in rows}


def _stays(
    connection: Connection,
    removals: Removals,
    table: Table,
    places: list[str],
    trash: dict[str, str],
    request: DropRequest,
) -> bool:
    """Whether readers may need the files, which are handed to the Cleaner then."""
    if not (places and request.delete_data and table.is_transactional and removals.config.soft_delete):
        return False
    trashes = texts([trash.get(place) for place in places])
    query = func.compaction_keep_dropped(table.database, table.name, texts(places), trashes)
    return bool(connection.execute(select(query)).scalar())


def _submit(
    connection: Connection, table: Table, places: list[str], trash: dict[str, str], request: DropRequest
) -> None:
    """Hand the files to the Cleaner for when the client's transaction has committed."""
    for place in places:
        properties = {"location": place, "ifPurge": str(request.purge).lower()}
        if place in trash:
            properties["trash"] = trash[place]
        if (ids := connection.execute(select(func.ids_at(table.database, table.name, place))).scalar()) is not None:
            properties["ids"] = ids
        submitted = func.submit_for_cleanup(
            "a", table.database, table.name, None, json.dumps(properties), None, None, None, None, request.txn_id
        )
        outcome = connection.execute(select(submitted)).scalar_one()
        if outcome == "wrong_type":  # no soft delete, the files are just left
            return
        if outcome != "ok":
            state = outcome.removeprefix("txn_")
            raise InvalidOperationError(
                f"{table.full_name} cannot be dropped in transaction {request.txn_id}, which is {state}"
            )


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def texts(values: Sequence[str | None]) -> ColumnElement[Any]:
    """A list of texts as an argument of a function."""
    return cast(bindparam(None, list(values), unique=True), ARRAY(Text))
