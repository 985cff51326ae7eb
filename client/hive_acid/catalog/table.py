"""Tables as the client sees them: what the metastore's Thrift structs say, without Thrift."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hive_acid.catalog.constraints import Constraint, told_with
from hive_acid.catalog.storage_formats import ORC
from hive_acid.errors import ColumnError
from hive_acid.format import properties
from hive_acid.format.partitions import DEFAULT_PARTITION, parse_partition_name, partition_name
from hive_acid.wire import ConstraintKind, ttypes

DEFAULT_DATABASE = "default"

VIRTUAL_VIEW = "VIRTUAL_VIEW"
"""A view's kind of table, in the metastore's words."""

ORC_INPUT, ORC_OUTPUT, ORC_SERDE = ORC


def folded(name: str) -> str:
    """A name as Spark compares names without regard to case: letter by letter, so that ``ı`` is ``i`` as well."""
    upper = (letter.upper() if len(letter.upper()) == 1 else letter for letter in name)
    return "".join(letter.lower()[0] for letter in upper)


@dataclass(frozen=True, slots=True)
class Column:
    """A column and its type in Hive's words (``bigint``, ``decimal(10,2)``, ``array<string>``)."""

    name: str
    type: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Skew:
    """Values that many rows have in some columns, as texts: what SKEWED BY says.

    With `in_directories` Hive puts the rows of each into a directory of their own (list bucketing).
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    in_directories: bool = False


@dataclass(frozen=True)
class Table:
    """A table's definition.

    `columns` are those in the files; `partition_keys` come from the directories. `bucket_columns` is empty unless the
    table is CLUSTERED BY some columns INTO `buckets` buckets. `id` is the metastore's, 0 if the table is not there yet.
    `sorted_by` are the columns by which rows are sorted in their buckets, each with whether the least come first.
    `constraints` are those of all kinds, enforced or not.
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    partition_keys: tuple[Column, ...] = ()
    parameters: dict[str, str] = field(default_factory=dict)
    location: str = ""
    bucket_columns: tuple[str, ...] = ()
    buckets: int = -1
    table_type: str = "MANAGED_TABLE"
    input_format: str = ORC_INPUT
    id: int = 0
    serde: str = ORC_SERDE
    output_format: str = ORC_OUTPUT
    serde_parameters: dict[str, str] = field(default_factory=dict)
    view_text: str = ""
    """The query of a view, with each table's database."""
    view_text_as_written: str = ""
    constraints: tuple[Constraint, ...] = ()
    sorted_by: tuple[tuple[str, bool], ...] = ()
    skew: Skew | None = None
    hides_in: str | None = None
    """The database whose table a temporary one hides, or beside whose it stands."""

    @property
    def enforced(self) -> tuple[Constraint, ...]:
        """The constraints that each row must meet that is written."""
        return tuple(one for one in self.constraints if one.is_enforced)

    @property
    def key(self) -> tuple[Column, ...]:
        """The columns in which no two rows may have the same values, and none may have none; empty without such a key.

        Only of a full-ACID table, of which it can be told which rows it has.
        """
        is_enforced = self.is_full_acid and any(one.is_enforced_key for one in self.constraints)
        columns = {column.name: column for column in self.all_columns}
        return tuple(columns[name] for name in self.primary_key) if is_enforced else ()

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The names of the columns of its primary key, enforced or not; empty if it has none."""
        keys = (one.columns for one in self.constraints if one.kind is ConstraintKind.PRIMARY_KEY)
        return next(keys, ())

    def with_constraints(self, more: Iterable[Constraint]) -> Table:
        """It with constraints beside its own."""
        return replace(self, constraints=(*self.constraints, *more))

    @property
    def defaults(self) -> dict[str, str]:
        """What a column gets that a row has no value for, as SQL, by the column's name; else it gets null."""
        return {one.columns[0]: one.expression or "NULL" for one in self.constraints if one.is_default}

    @property
    def full_name(self) -> str:
        """``database.name``, for write ids and for people: also of a table that is to get another one's name."""
        return f"{self.database}.{self.parameters[properties.SUCCEEDS] if self.is_successor else self.name}"

    @property
    def is_successor(self) -> bool:
        """Whether it takes the place of another one with the commit of its transaction."""
        return properties.is_successor(self.name) and properties.SUCCEEDS in self.parameters

    @property
    def called(self) -> str:
        """The name by which a statement reads it."""
        return f"{self.called_in}.{self.name}"

    @property
    def called_in(self) -> str:
        """The database in which a statement finds it."""
        return self.hides_in or self.database

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """The columns in the files, and behind them the partition keys, as a frame of the table has them."""
        return *self.columns, *self.partition_keys

    @property
    def is_view(self) -> bool:
        """Whether it has no rows of its own, but shows those of a query."""
        return self.table_type == VIRTUAL_VIEW

    @property
    def is_temporary(self) -> bool:
        """Whether it is a session's alone."""
        return self.database.startswith(properties.SESSION_DATABASE)

    @property
    def is_transactional(self) -> bool:
        """Whether the table has write ids at all."""
        return properties.is_transactional(self.parameters)

    @property
    def is_plain(self) -> bool:
        """Whether its rows are what its files have, whichever these are at the moment."""
        return not self.is_view and not self.is_transactional

    @property
    def is_full_acid(self) -> bool:
        """Whether rows can be updated and deleted: transactional, and not insert-only."""
        return properties.is_full_acid(self.parameters)

    @property
    def is_orc(self) -> bool:
        """Whether the table's files are ORC."""
        return self.input_format.rpartition(".")[2] == ORC_INPUT.rpartition(".")[2]

    @property
    def bucketing_version(self) -> int:
        """Which hash of Hive's places rows of a CLUSTERED table; 1, the older one, where nothing is said."""
        return 2 if properties.word_of(self.parameters, "bucketing_version") == "2" else 1

    def partition_name(self, values: Sequence[str | None]) -> str:
        """The partition's name, ``k=v/…``, for its values in the order of the keys."""
        return partition_name([key.name for key in self.partition_keys], list(values))

    def partition_values(self, name: str) -> list[str]:
        """The values of a partition name, in the order of the keys, as the metastore keeps them."""
        pairs = parse_partition_name(name)
        if [key for key, _ in pairs] != [key.name for key in self.partition_keys]:
            keys = ", ".join(key.name for key in self.partition_keys) or "none"
            raise ColumnError(f"'{name}' is not a partition of {self.full_name}: its partition keys are {keys}")
        return [DEFAULT_PARTITION if value is None else value for _, value in pairs]

    def to_wire(self, owner: str) -> Any:
        """The Thrift struct that creates this table."""
        descriptor = ttypes.StorageDescriptor(
            cols=[_field(column) for column in self.columns],
            location=self.location or None,
            inputFormat=self.input_format,
            outputFormat=self.output_format,
            compressed=False,
            numBuckets=self.buckets,
            serdeInfo=ttypes.SerDeInfo(
                serializationLib=self.serde, parameters={"serialization.format": "1", **self.serde_parameters}
            ),
            bucketCols=list(self.bucket_columns),
            sortCols=[ttypes.Order(col=name, order=int(ascending)) for name, ascending in self.sorted_by],
            parameters={},
        )
        if self.skew is not None:
            descriptor.skewedInfo = ttypes.SkewedInfo(
                skewedColNames=list(self.skew.columns),
                skewedColValues=list(map(list, self.skew.values)),
                skewedColValueLocationMaps={},
            )
            descriptor.storedAsSubDirectories = self.skew.in_directories
        return ttypes.Table(
            tableName=self.name,
            dbName=self.database,
            owner=owner,
            sd=descriptor,
            partitionKeys=[_field(column) for column in self.partition_keys],
            parameters=dict(self.parameters),
            tableType=self.table_type,
            viewOriginalText=self.view_text_as_written or None,
            viewExpandedText=self.view_text or None,
        )


def table_parts(name: str) -> tuple[str, str]:
    """Database and table of ``db.table`` or ``table``, in lower case. Raises ValueError for another form."""
    if not isinstance(name, str):
        raise TypeError(f"a table is meant by its name, 'database.table', or by a Table: not by {type(name).__name__}")
    database, _, table = name.lower().rpartition(".")
    if not table or "." in database:
        raise ValueError(f"'{name}' is not a table's name: give database.table")
    return database or DEFAULT_DATABASE, table


def table_from_wire(table: Any) -> Table:
    """The table that a Thrift struct describes."""
    serde = table.sd.serdeInfo
    return Table(
        database=table.dbName,
        name=table.tableName,
        columns=tuple(Column(c.name.lower(), c.type, c.comment) for c in table.sd.cols or ()),
        partition_keys=tuple(Column(c.name.lower(), c.type, c.comment) for c in table.partitionKeys or ()),
        parameters=dict(table.parameters or {}),
        location=table.sd.location or "",
        bucket_columns=tuple(column.lower() for column in table.sd.bucketCols or ()),
        buckets=-1 if table.sd.numBuckets is None else table.sd.numBuckets,
        table_type=table.tableType or "MANAGED_TABLE",
        input_format=table.sd.inputFormat or "",
        output_format=table.sd.outputFormat or "",
        id=table.id or 0,
        serde=(serde.serializationLib or "") if serde else "",
        serde_parameters=dict(serde.parameters or {}) if serde else {},
        view_text=table.viewExpandedText or table.viewOriginalText or "",
        view_text_as_written=table.viewOriginalText or "",
        constraints=told_with(table),
        sorted_by=tuple((order.col.lower(), order.order == 1) for order in table.sd.sortCols or ()),
        skew=_skew_from_wire(table.sd),
    )


def _skew_from_wire(storage: Any) -> Skew | None:
    told = storage.skewedInfo
    if told is None or not told.skewedColNames:
        return None
    values = tuple(map(tuple, told.skewedColValues or ()))
    return Skew(tuple(name.lower() for name in told.skewedColNames), values, bool(storage.storedAsSubDirectories))


def _field(column: Column) -> Any:
    return ttypes.FieldSchema(name=column.name, type=column.type, comment=column.comment)
