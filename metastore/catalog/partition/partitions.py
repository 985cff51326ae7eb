"""Reading partitions: by values, name, pattern and filter. Changes are in `partition_changes`.

A partition is found by its name, which its values make up: whatever the form of the question, it is the index of names
that answers it. Lists are in the order of names and may be long (`store.rows`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, select

from hive_acid.errors import InvalidObjectError, MetaError, NoSuchObjectError
from hive_acid.format.partitions import partition_name
from hive_acid.ids import TxnId
from metastore.catalog import records
from metastore.catalog.config import CatalogConfig
from metastore.catalog.lookup import TableLookup
from metastore.catalog.models import Partition, PartitionPlace, Table
from metastore.catalog.names import name_of_values, partition_values, spec_of_name, values_by_key
from metastore.catalog.partition.conditions import Condition, KeyNames, Translation
from metastore.catalog.partition.expressions import expression_condition
from metastore.catalog.partition.filters import filter_condition
from metastore.catalog.partition.name_ranges import in_ranges, name_ranges
from metastore.catalog.records import is_named
from metastore.catalog.schema import PARTITION
from metastore.store.database import Database
from metastore.store.rows import Rows

_values = PARTITION.c["values"]

_NAMES_BATCH = 5_000
"""Names that are read from the database at a time."""
_HELD_NAMES = 10_000
"""Names that are held of what a filter finds that takes a walk over the whole table."""


@dataclass(frozen=True, slots=True)
class ValuesRequest:
    """Which values `Partitions.values` gives: those of `keys`, of the partitions that the filter `text` chooses."""

    keys: Sequence[str]
    text: str = ""
    distinct: bool = True
    ascending: bool = True
    limit: int | None = None


class Partitions:
    """The partitions of all tables; every method raises NoSuchObjectError for an unknown table.

    A limit of 0 gives nothing, a negative one or None everything (wire.md §5.4).
    """

    def __init__(self, db: Database, tables: TableLookup, config: CatalogConfig) -> None:
        self._db = db
        self._tables = tables
        self._request_limit = config.partition_request_limit
        self._batch = config.partition_batch
        self._whitelist = re.compile(config.partition_name_whitelist) if config.partition_name_whitelist else None

    def owner(self, database: str, table: str) -> Table:
        """The table."""
        return self._tables.get(database, table)

    def get(self, owner: Table, chosen: Sequence[str] | str) -> Partition:
        """The partition with these values, or of this name.

        Raises NoSuchObjectError if there is none, MetaError for too few or many values.
        """
        name = self.normal_name(owner, chosen)
        found = self._rows(owner, PARTITION.c.name == name).all()
        if not found:
            raise NoSuchObjectError(f"partition {name} of {owner.full_name} does not exist")
        return found[0]

    def normal_name(self, owner: Table, chosen: Sequence[str] | str) -> str:
        """The name as it is stored, of values or of a name that has them by their columns.

        Raises MetaError for too few or many values, NoSuchObjectError for a name that lacks one.
        """
        keys = [key.name for key in owner.partition_keys]
        try:
            values = values_by_key(keys, chosen) if isinstance(chosen, str) else partition_values(chosen)
        except InvalidObjectError as error:
            raise NoSuchObjectError(f"{owner.full_name}: {error}") from None
        return name_of_values(keys, values)

    def find(self, owner: Table, name: str) -> Partition | None:
        """The partition of that name; None if there is none. Raises MetaError for what cannot be a name."""
        spec = spec_of_name(name)
        found = self.named(owner, [partition_name([key for key, _ in spec], [value for _, value in spec])]).all()
        return found[0] if found else None

    def matching(self, owner: Table, values: Sequence[str] = (), limit: int | None = None) -> Rows[Partition]:
        """The partitions whose first values are `values`, an empty one standing for any.

        Raises MetaError if there are more values than keys, or more partitions than one request may ask for.
        """
        conditions = prefix_conditions(owner, values)
        self._check_request(owner, conditions, limit)
        return self._rows(owner, *conditions, limit=limit)

    def names(self, owner: Table, values: Sequence[str] = (), limit: int | None = None) -> Rows[str]:
        """The names of the partitions that `matching` finds, however many."""
        query = _names_of(owner, *prefix_conditions(owner, values)).order_by(PARTITION.c.name)
        return Rows(self._db, query, _first, limit, batch=_NAMES_BATCH)

    def places(self, owner: Table) -> Rows[PartitionPlace]:
        """Where all partitions lie, however many."""
        query = select(PARTITION.c.name, PARTITION.c.id, PARTITION.c.location).where(PARTITION.c.table_id == owner.id)
        query = query.order_by(PARTITION.c.name)
        return Rows(self._db, query, lambda row: PartitionPlace(*row), batch=_NAMES_BATCH)

    def moved(
        self, txn_id: TxnId, database: str, table: str, table_id: int, location: str, places: Sequence[PartitionPlace]
    ) -> tuple[bool, list[str], list[str]]:
        """What of a table that was at `location` is not at these places any more, under its ids.

        Whether that is so of the table itself, if its files are not kept for the transaction; the names of partitions
        that were dropped, and are kept; and the names of those that are not. Nobody need be left of the table.
        """
        names = {place.id: place.name for place in places}
        asked = [place.id for place in places], [place.location or "" for place in places]
        found = self._db.call("moved_places", txn_id, database, table, table_id, location, *asked)
        kept = [names[one] for one, is_kept in found if one is not None and is_kept]
        moved = [names[one] for one, is_kept in found if one is not None and not is_kept]
        return (None, False) in found, kept, moved

    def named(self, owner: Table, names: Collection[str]) -> Rows[Partition]:
        """Those of the named partitions that exist."""
        return self._rows(owner, is_named(names), most=len(names))

    def filtered(self, owner: Table, text: str, limit: int | None = None) -> Rows[Partition]:
        """The partitions for which a filter holds (`filters`).

        Raises MetaError for a malformed filter, or more partitions than one request may ask for.
        """
        return self._meeting(owner, filter_conditions(owner, text), limit)

    def chosen(self, owner: Table, expression: bytes | str, limit: int | None = None) -> Rows[Partition]:
        """The partitions that an expression chooses (`expressions`); an empty one chooses all.

        Raises UndecidedError for one that is not understood, MetaError as `filtered`.
        """
        return self._meeting(owner, expression_conditions(owner, expression) if expression else [], limit)

    def _meeting(self, owner: Table, conditions: Sequence[ColumnElement[bool]], limit: int | None) -> Rows[Partition]:
        """The partitions that meet conditions. Raises MetaError for more than one request may ask for."""
        if len(conditions) != 1:  # none, or the index of names narrows it
            self._check_request(owner, conditions, limit)
            return self._rows(owner, *conditions, limit=limit)
        # It takes a walk over the whole table, which is not to be repeated for the length and then for the rows.
        query = _names_of(owner, *conditions).order_by(PARTITION.c.name)
        names = Rows(self._db, query, _first, min(_HELD_NAMES, limit if limit and limit > 0 else _HELD_NAMES)).all()
        if limit == 0 or len(names) < _HELD_NAMES:
            self._check_wanted(owner, len(names), limit)
            return self.named(owner, names if limit != 0 else ())
        self._check_request(owner, conditions, limit)
        return self._rows(owner, *conditions, limit=limit)

    def count(self, owner: Table, text: str) -> int:
        """How many partitions there are for which a filter holds."""
        return self._count(owner, filter_conditions(owner, text))

    def chosen_names(
        self, owner: Table, expression: bytes | str, order: Sequence[tuple[int, bool]] = (), limit: int | None = None
    ) -> Rows[str]:
        """The names of the partitions that an expression chooses (`expressions`); none chooses all.

        `order` names keys by their position, from 0, each with whether it goes up; then names decide.
        """
        conditions = expression_conditions(owner, expression) if expression else []
        query = _names_of(owner, *conditions)
        for position, ascending in order:
            if not 0 <= position < len(owner.partition_keys):
                raise MetaError(f"{owner.full_name} has no partition column number {position}")
            key = owner.partition_keys[position]
            value = Translation(KeyNames(owner.partition_keys)).order(key.name)
            query = query.order_by(value.asc() if ascending else value.desc())
        return Rows(self._db, query.order_by(PARTITION.c.name), _first, limit, batch=_NAMES_BATCH)

    def values(self, owner: Table, request: ValuesRequest) -> Rows[list[str]]:
        """Values of partitions, in their order as text. Raises MetaError for what is not a partition column."""
        keys = KeyNames(owner.partition_keys)
        columns = [_values[keys.position(keys.checked(name))].collate("C") for name in request.keys]
        if not columns:
            raise MetaError("no partition columns are asked for")
        query = select(*columns).where(PARTITION.c.table_id == owner.id, *filter_conditions(owner, request.text))
        query = query.order_by(*(column.asc() if request.ascending else column.desc() for column in columns))
        query = query.distinct() if request.distinct else query
        return Rows(self._db, query, list, request.limit, batch=_NAMES_BATCH)

    def first_invalid(self, values: Iterable[str]) -> str | None:
        """The first value that the whitelist does not allow."""
        if self._whitelist is None:
            return None
        return next((value for value in values if not self._whitelist.fullmatch(value)), None)

    def _rows(
        self, owner: Table, *conditions: ColumnElement[bool], limit: int | None = None, most: int | None = None
    ) -> Rows[Partition]:
        query: Select[Any] = select(*records.PARTITION_COLUMNS).where(PARTITION.c.table_id == owner.id, *conditions)
        query = query.order_by(PARTITION.c.name)
        return Rows(self._db, query, records.partition_reader(owner), limit, batch=self._batch, most=most)

    def _count(self, owner: Table, conditions: Sequence[ColumnElement[bool]]) -> int:
        query = select(func.count()).select_from(PARTITION).where(PARTITION.c.table_id == owner.id, *conditions)
        with self._db.engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def _check_request(self, owner: Table, conditions: Sequence[ColumnElement[bool]], limit: int | None) -> None:
        if self._request_limit >= 0:
            self._check_wanted(owner, self._count(owner, conditions) if limit is None or limit < 0 else 0, limit)

    def _check_wanted(self, owner: Table, found: int, limit: int | None) -> None:
        """As Hive: what is asked for counts, a limit as itself, no limit as what there is."""
        most = self._request_limit
        wanted = found if limit is None or limit < 0 else limit
        if 0 <= most < wanted:
            raise MetaError(
                f"{wanted} partitions of {owner.full_name} are asked for at once, more than the {most} that"
                " hive.metastore.limit.partition.request allows: ask for fewer by a filter or by names"
            )


def prefix_conditions(owner: Table, values: Sequence[str]) -> list[ColumnElement[bool]]:
    """That the first values are `values`, an empty one standing for any. Raises MetaError if there are too many."""
    keys = owner.partition_keys
    if len(values) > len(keys):
        raise MetaError(f"{len(values)} partition values for the {len(keys)} partition columns of {owner.full_name}")
    full = list(values)
    while full and not full[-1]:
        full.pop()
    if not full:
        return []
    leading = full[: full.index("")] if "" in full else full
    conditions: list[ColumnElement[bool]] = []
    if leading:
        name = partition_name([key.name for key in keys[: len(leading)]], leading)
        if len(leading) == len(keys):
            return [PARTITION.c.name == name]
        conditions.append(in_ranges([(f"{name}/", f"{name}0")]))  # the character after the slash
    rest = enumerate(full[len(leading) :], start=len(leading) + 1)
    return [*conditions, *(_values[position] == value for position, value in rest if value)]


def filter_conditions(owner: Table, text: str) -> list[ColumnElement[bool]]:
    """What a filter text says of the table's partitions. Raises MetaError if it is malformed."""
    return _conditions(owner, filter_condition(text, owner.partition_keys)) if text else []


def expression_conditions(owner: Table, expression: bytes | str) -> list[ColumnElement[bool]]:
    """What an expression says of the table's partitions. Raises UndecidedError, or MetaError for a malformed text."""
    condition, is_hive_plan = expression_condition(expression, owner.partition_keys)
    return _conditions(owner, condition, default_is_null=is_hive_plan)


def _conditions(owner: Table, condition: Condition, default_is_null: bool = False) -> list[ColumnElement[bool]]:
    found = [Translation(KeyNames(owner.partition_keys), default_is_null=default_is_null).sql(condition)]
    ranges = name_ranges(condition, owner.partition_keys)
    return found if ranges is None else [in_ranges(ranges), *found]


def _names_of(owner: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(PARTITION.c.name).where(PARTITION.c.table_id == owner.id, *conditions)


def _first(row: Row[Any]) -> str:
    return str(row[0])
