"""What the other client does meanwhile: to the real table, and to the model of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.spark.reading import Row
from tests.spark.writers.model import COLUMNS, KEY, Change, TableModel, World, on
from tests.spark.writers.other import Other

TABLE = "t"
"""The table that is written to."""

OLD_NAME = "t_before"
BIG = 2**40
NEW_KEY, HIT_KEY, OTHER_KEY = 9, 1, 4
"""The partition that statements make, one that they change, and one that nobody else knows."""

SECOND = "second"
"""The identity of a table that has taken the name of another one."""


@dataclass(frozen=True)
class Disturbance:
    """One change by another client.

    `by_session` does the same by the product's own verb, with its locks, if there is one; `by_calls`, if it can be done
    without locks, is given the transactions of the statement under test.
    """

    by_calls: Callable[[Other, Sequence[int]], object] | None
    changed: Change
    by_session: Callable[[AcidSession, str], object] | None = None
    only_keyed: bool = False
    only_full_acid: bool = False
    new_rows: tuple[Row, ...] = ()
    """Rows that the other client adds afterwards, by any means."""
    aborts: bool = False
    """Whether it ends the transaction under test: then that cannot succeed, but anew."""

    def with_new_rows(self, world: World) -> World:
        if not self.new_rows:
            return world
        return on(TABLE, lambda table: table.with_rows((*table.rows, *_fitting(table, self.new_rows))))(world)

    def model(self, world: World) -> World:
        return self.with_new_rows(self.changed(world))


def _fitting(table: TableModel, rows: Sequence[Row]) -> list[Row]:
    """`rows` as the table has them: those of tables without partitions have no key."""
    return [{name: value for name, value in row.items() if name in table.columns} for row in rows]


def _without(name: str) -> Change:
    return lambda world: {of: table for of, table in on(name, lambda table: table)(world).items() if of != name}


def _again(world: World) -> World:
    """Another table under the name, with the columns that the first one had at first."""
    before = world[TABLE]
    columns = (*COLUMNS, KEY) if before.is_keyed else COLUMNS
    return {**world, TABLE: TableModel(SECOND, columns, by_name=before.by_name)}


def _recreated(world: World) -> World:
    return _again(on(TABLE, lambda table: table)(world))


def _renamed(world: World) -> World:
    return {**_without(TABLE)(world), OLD_NAME: world[TABLE]}


def _replaced(world: World) -> World:
    return {**_again(world), OLD_NAME: world[TABLE]}


def _keys_but(*gone: int) -> Change:
    return on(TABLE, lambda table: table.with_rows(row for row in table.rows if row.get(KEY) not in gone))


def _key_renamed(table: TableModel) -> TableModel:
    return table.with_rows({**row, KEY: OTHER_KEY} if row[KEY] == HIT_KEY else row for row in table.rows)


def _swapped(table: TableModel) -> TableModel:
    return table.renamed("v", "vv").with_column("v")


def _same(world: World) -> World:
    return on(TABLE, lambda table: table)(world)


# --- by calls --------------------------------------------------------------------------------------


def _recreate(other: Other, _: Sequence[int]) -> None:
    other.drop(TABLE)
    other.create(TABLE)


def _replace(other: Other, _: Sequence[int]) -> None:
    other.alter(TABLE, tableName=OLD_NAME)
    other.create(TABLE)


def _partition_elsewhere(other: Other, _: Sequence[int]) -> None:
    other.add_partition(TABLE, NEW_KEY)


def _partition_again(other: Other, _: Sequence[int]) -> None:
    other.drop_partition(TABLE, HIT_KEY)
    other.add_partition(TABLE, HIT_KEY)


def _field(name: str, kind: str = "int") -> Any:
    return ttypes.FieldSchema(name=name, type=kind)


def _add_column(other: Other, _: Sequence[int]) -> None:
    other.alter(TABLE, cols=[*other.columns(TABLE), _field("w")])


def _rename_column(other: Other, _: Sequence[int]) -> None:
    other.alter(TABLE, cols=[_field("vv") if one.name == "v" else one for one in other.columns(TABLE)])


def _swap_column(other: Other, _: Sequence[int]) -> None:
    _rename_column(other, _)
    other.alter(TABLE, cols=[*other.columns(TABLE), _field("v")])


def _widen(other: Other, _: Sequence[int]) -> None:
    other.alter(TABLE, cols=[_field("v", "bigint") if one.name == "v" else one for one in other.columns(TABLE)])


def _bucketed(other: Other, _: Sequence[int]) -> None:
    other.alter(TABLE, parameters={"bucketing_version": "2"}, bucketCols=["id"], numBuckets=3)


def _undropped(other: Other, _: Sequence[int]) -> None:
    other.drop(TABLE)
    other.connection.undrop_table(other.database, TABLE)


def _renamed_and_back(other: Other, _: Sequence[int]) -> None:
    other.alter(TABLE, tableName=OLD_NAME)
    other.alter(OLD_NAME, tableName=TABLE)


def _partition_renamed_and_back(other: Other, _: Sequence[int]) -> None:
    other.rename_partition(TABLE, HIT_KEY, OTHER_KEY)
    other.rename_partition(TABLE, OTHER_KEY, HIT_KEY)


def _properties(**new: str) -> Callable[[Other, Sequence[int]], object]:
    return lambda other, _: other.alter(TABLE, parameters={name.replace("_of_", "."): to for name, to in new.items()})


def _skewed(other: Other, _: Sequence[int]) -> None:
    other.alter(
        TABLE,
        skewedInfo=ttypes.SkewedInfo(skewedColNames=["id"], skewedColValues=[["1"]], skewedColValueLocationMaps={}),
    )


_THERE_AND_BACK = {
    "dropped and undropped": Disturbance(_undropped, _same),
    "renamed and back": Disturbance(_renamed_and_back, _same),
    "partition renamed and back": Disturbance(_partition_renamed_and_back, _same, only_keyed=True),
}

_PROPERTIES = {
    "bucketed": Disturbance(_bucketed, _same),
    "skewed": Disturbance(_skewed, _same),
    "compressed otherwise": Disturbance(_properties(orc_of_compress="SNAPPY", orc_of_stripe_of_size="4096"), _same),
    "made insert-only": Disturbance(_properties(transactional_properties="insert_only"), _same, only_full_acid=True),
    "made external": Disturbance(_properties(EXTERNAL="TRUE"), _same),
    "made plain": Disturbance(_properties(transactional="false"), _same),
}


# --- by verbs, each on all of the table or on its partition `HIT_KEY` ------------------------------


def _insert_one(acid: AcidSession, table: str) -> None:
    names = [column.name for column in acid.connection.table(*table.split(".")).partition_keys]
    acid.insert(table, acid.spark.sql(f"SELECT 60 AS id, 600 AS v{f', {HIT_KEY} AS {KEY}' if names else ''}"))


def _one_inserted(table: TableModel) -> TableModel:
    return table.having(*COLUMNS).with_rows((*table.rows, *_fitting(table, [{"id": 60, "v": 600, KEY: HIT_KEY}])))


def _upsert(acid: AcidSession, table: str) -> None:
    source = acid.spark.sql("SELECT 3 AS id, 35 AS v UNION ALL SELECT 50, 55")
    merge = acid.merge(table, source, "t.id = s.id").whenMatchedUpdate(set={"v": "s.v"})
    keys = acid.connection.table(*table.split(".")).partition_keys
    values = {"id": "s.id", "v": "s.v", **({KEY: str(HIT_KEY)} if keys else {})}
    merge.whenNotMatchedInsert(values=values).execute()


def _upserted(table: TableModel) -> TableModel:
    table.having(*COLUMNS)
    values = {3: 35, 50: 55}
    there = {row["id"] for row in table.rows}
    new = [{"id": id_, "v": v, KEY: HIT_KEY} for id_, v in values.items() if id_ not in there]
    changed = ({**row, "v": values[row["id"]]} if row["id"] in values else row for row in table.rows)
    return table.with_rows((*changed, *_fitting(table, new)))


def _increased(table: TableModel) -> TableModel:
    table.having(*COLUMNS)
    return table.with_rows({**row, "v": None if row.get("v") is None else row["v"] + 100} for row in table.rows)


def _without_third(table: TableModel) -> TableModel:
    return table.having(*COLUMNS).with_rows(row for row in table.rows if row["id"] != 3)


_BY_VERBS = {
    "inserted": Disturbance(None, on(TABLE, _one_inserted), _insert_one),
    "updated": Disturbance(
        None, on(TABLE, _increased), lambda acid, table: acid.update(table, {"v": "v + 100"}), only_full_acid=True
    ),
    "deleted": Disturbance(
        None, on(TABLE, _without_third), lambda acid, table: acid.delete(table, "id = 3"), only_full_acid=True
    ),
    "upserted": Disturbance(None, on(TABLE, _upserted), _upsert, only_full_acid=True),
    "truncated": Disturbance(
        None, on(TABLE, lambda table: table.with_rows(())), lambda acid, table: acid.truncate(table)
    ),
    "partition dropped by verb": Disturbance(
        None,
        _keys_but(HIT_KEY),
        lambda acid, table: acid.drop_partitions(table, [f"{KEY}={HIT_KEY}"]),
        only_keyed=True,
    ),
}


def _then_given_up(first: Callable[[Other, Sequence[int]], object], changed: Change) -> Disturbance:
    """The change, and then the end of the transaction under test: the statement has to say that it has ended."""

    def both(other: Other, transactions: Sequence[int]) -> None:
        first(other, transactions)
        other.connection.abort_transactions(transactions)

    return Disturbance(both, changed, aborts=True)


_AND_GIVEN_UP = {
    "column renamed, given up": _then_given_up(_rename_column, on(TABLE, lambda table: table.renamed("v", "vv"))),
    "re-created, given up": _then_given_up(_recreate, _recreated),
    "renamed, given up": _then_given_up(lambda other, _: other.alter(TABLE, tableName=OLD_NAME), _renamed),
}

DISTURBANCES = {
    **_BY_VERBS,
    **_PROPERTIES,
    **_THERE_AND_BACK,
    **_AND_GIVEN_UP,
    "dropped": Disturbance(lambda other, _: other.drop(TABLE), _without(TABLE)),
    "re-created": Disturbance(_recreate, _recreated, new_rows=({"id": 90, "v": 900, KEY: 1},)),
    "moved": Disturbance(lambda other, _: other.move(TABLE), _same),
    "renamed": Disturbance(
        lambda other, _: other.alter(TABLE, tableName=OLD_NAME),
        _renamed,
        lambda acid, table: acid.rename_table(table, table.replace(f".{TABLE}", f".{OLD_NAME}")),
    ),
    "replaced": Disturbance(_replace, _replaced, new_rows=({"id": 90, "v": 900, KEY: 1},)),
    "partition elsewhere": Disturbance(_partition_elsewhere, _same, only_keyed=True),
    "partition dropped": Disturbance(
        lambda other, _: other.drop_partition(TABLE, HIT_KEY), _keys_but(HIT_KEY), only_keyed=True
    ),
    "partition moved": Disturbance(lambda other, _: other.move_partition(TABLE, HIT_KEY), _same, only_keyed=True),
    "partition dropped and elsewhere": Disturbance(_partition_again, _keys_but(HIT_KEY), only_keyed=True),
    "partition renamed": Disturbance(
        lambda other, _: other.rename_partition(TABLE, HIT_KEY, OTHER_KEY), on(TABLE, _key_renamed), only_keyed=True
    ),
    "column added": Disturbance(
        _add_column,
        on(TABLE, lambda table: table.with_column("w")),
        lambda acid, table: acid.add_columns(table, {"w": "int"}),
        new_rows=({"id": 50, "v": 500, "w": 7, KEY: 1},),
    ),
    "column renamed": Disturbance(
        _rename_column,
        on(TABLE, lambda table: table.renamed("v", "vv")),
        lambda acid, table: acid.rename_column(table, "v", "vv"),
    ),
    "column swapped": Disturbance(_swap_column, on(TABLE, _swapped)),
    "column widened": Disturbance(
        _widen,
        _same,
        lambda acid, table: acid.change_column_type(table, "v", "bigint"),
        new_rows=({"id": 50, "v": BIG, KEY: 1},),
    ),
    "property changed": Disturbance(
        lambda other, _: other.alter(TABLE, parameters={"note": "new"}),
        _same,
        lambda acid, table: acid.set_properties(table, {"note": "new"}),
    ),
    "given up": Disturbance(
        lambda other, transactions: other.connection.abort_transactions(transactions), _same, aborts=True
    ),
}
