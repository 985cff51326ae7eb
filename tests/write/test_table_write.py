"""What the kernel makes right or refuses, whatever other clients do to the table without asking for locks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import (
    ColumnError,
    NoSuchObjectError,
    TableChangedError,
    TransactionExpiredError,
    UnsupportedTableError,
    WriteConflictError,
)
from hive_acid.filesystem import files
from hive_acid.protocol import Question
from hive_acid.transactions.locks import Operation
from hive_acid.wire import ttypes
from hive_acid.write.staging import DELETE
from hive_acid.write.table_write import Intent, TableWrite
from tests.write.conftest import INSERTING, KEYS, World, files_below, staged

DELTA = "delta_0000001_0000001_0000"
FILES = {f"{DELTA}/_orc_acid_version", f"{DELTA}/bucket_00000"}


def recreate(world: World, table: Table) -> None:
    world.other.drop_table("d", "t")
    world.create(table.partition_keys)


def move(world: World, table: Table) -> None:
    world.alter(location=table.location + "_elsewhere")


def rename(world: World, table: Table) -> None:
    world.alter(tableName="other")


def rename_and_follow(world: World, table: Table) -> None:
    rename(world, table)
    world.create(table.partition_keys)


CHANGES: dict[str, tuple[Callable[[World, Table], None], type[Exception]]] = {
    "dropped": (lambda world, table: world.other.drop_table("d", "t"), NoSuchObjectError),
    "recreated": (recreate, TableChangedError),
    "moved": (move, TableChangedError),
    "renamed": (rename, NoSuchObjectError),
    "renamed and followed": (rename_and_follow, TableChangedError),
}


@pytest.mark.parametrize("keys", [(), KEYS], ids=["flat", "partitioned"])
@pytest.mark.parametrize("how", CHANGES)
def test_a_table_that_is_another_one_when_files_are_in_place_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str, keys: tuple[object, ...]
) -> None:
    """At the last moment before they are: what came before is seen by the same look."""
    table = world.create(keys)  # type: ignore[arg-type]
    change, error = CHANGES[how]
    transaction = world.connection.begin()
    begun = world.begin(transaction)
    staging, found = staged(begun, ("a",) if keys else ())
    rename_files = files.rename

    def late(source: str, target: str, *, once: bool) -> None:
        monkeypatch.setattr(files, "rename", rename_files)
        change(world, table)
        rename_files(source, target, once=once)

    monkeypatch.setattr(files, "rename", late)
    with pytest.raises((error, FileNotFoundError)) as caught:
        begun.publish(staging, found)
    assert isinstance(caught.value, error), "one that says what has happened"
    transaction.abort()
    assert not files_below(table.location), "nothing is left where the table was"


@pytest.mark.parametrize("keys", [(), KEYS], ids=["flat", "partitioned"])
@pytest.mark.parametrize("theirs", ["committed", "open", "aborted"])
def test_an_abort_removes_no_files_of_another_table_that_have_the_names_of_its_own(
    world: World, keys: tuple[object, ...], theirs: str
) -> None:
    """Write ids begin anew in a table that takes the place of another one."""
    values = ("a",) if keys else ()
    table = world.create(keys)  # type: ignore[arg-type]
    ours = world.connection.begin()
    begun = world.begin(ours)
    begun.publish(*staged(begun, values))
    rename_and_follow(world, table)
    writer = world.other.begin()
    second = TableWrite.begin(world.other, Definitions(world.other), writer, TableReference("d", "t"), INSERTING)
    second.publish(*staged(second, values))
    there = files_below(second.table.location)
    assert any(DELTA in path for path in there)
    if theirs == "committed":
        writer.commit()
    elif theirs == "aborted":
        writer.abort()
    ours.abort()
    assert files_below(second.table.location) == (set() if theirs == "aborted" else there)


@pytest.mark.parametrize("how", ["dropped", "recreated", "renamed", "renamed and followed"])
@pytest.mark.parametrize("with_lock", [False, True])
def test_a_table_is_looked_for_again_behind_the_lock(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str, with_lock: bool
) -> None:
    """By a `Table` it is that one or none; by a name it is whichever has it then."""
    table = world.create()
    change, error = CHANGES[how]
    ask = Connection.ask

    def late(connection: Connection, *questions: Question) -> list[Any]:
        if questions[0].method in ("lock", "hive_acid_begin") and connection is world.connection:
            monkeypatch.setattr(Connection, "ask", ask)
            change(world, table)
        return ask(connection, *questions)

    with world.connection.begin(with_lock=with_lock) as transaction, pytest.raises(error):
        monkeypatch.setattr(Connection, "ask", late)
        world.begin(transaction, table)
    if error is TableChangedError:
        with world.connection.begin(with_lock=with_lock) as transaction:
            assert world.begin(transaction).table.id != table.id


@pytest.mark.parametrize("how", ["recreated", "renamed and followed"])
def test_write_ids_of_another_table_are_thrown_away(world: World, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Those that came with the lock, where somebody who takes none has given the name to another table behind it."""
    table = world.create()
    with world.connection.begin() as earlier:
        assert world.begin(earlier).ids()[0] == 1
    ask = Connection.ask

    def late(connection: Connection, *questions: Question) -> list[Any]:
        if questions[0].method != "hive_acid_begin" or connection is not world.connection:
            return ask(connection, *questions)
        monkeypatch.setattr(Connection, "ask", ask)
        begun = ask(connection, questions[0])
        assert [one.writeId for one in begun[0].written] == [2]
        CHANGES[how][0](world, table)
        return begun + ask(connection, *questions[1:])

    with world.connection.begin(with_lock=True) as transaction:
        monkeypatch.setattr(Connection, "ask", late)
        begun = world.begin(transaction)
        assert begun.table.id != table.id
        asked = [question.method for question in watched(monkeypatch, lambda: transaction.write_ids("d", "t"))]
        assert asked == ["get_valid_write_ids"]
        asked = [question.method for question in watched(monkeypatch, lambda: begun.ids())]
        assert asked == ["allocate_table_write_ids"]
        assert transaction.has_there("d", "t", begun.ids()[0])


def watched(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[Question]:
    """What the metastore is asked meanwhile."""
    asked: list[Question] = []
    ask = Connection.ask

    def heard(connection: Connection, *questions: Question) -> list[Any]:
        asked.extend(questions)
        return ask(connection, *questions)

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "ask", heard)
        act()
    return asked


def test_a_name_may_not_mean_two_tables_in_one_transaction(world: World) -> None:
    """Its write id and its snapshot are of the first one."""
    table = world.create()
    transaction = world.connection.begin()
    world.begin(transaction).ids()
    recreate(world, table)
    with pytest.raises(TableChangedError, match="another table now"):
        world.begin(transaction)
    transaction.abort()


def test_the_lock_follows_what_is_found_behind_it(world: World) -> None:
    """Of a table that was partitioned when it was looked at last, and is not any more."""
    world.create(KEYS)
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        begun.publish(*staged(begun, ("a",)))
    recreate(world, world.create(name="pattern"))
    first, second = world.connection.begin(), world.connection.begin()
    for transaction in (first, second):
        begun = world.begin(transaction, intent=Intent(Operation.UPDATE, inserts_what_lacks=True))
        assert not begun.table.partition_keys
        transaction.changed.look_before_commit("d.t", lambda since, places: f"both in {places}")
        begun.publish(*staged(begun, ()))
    first.commit()
    with pytest.raises(WriteConflictError, match=r"\(both in "):
        second.commit()


def test_rows_go_to_where_somebody_else_has_just_put_their_partition(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = world.create(KEYS)
    elsewhere = table.location + "_elsewhere"
    call = Connection.call

    def late(connection: Connection, method: str, *args: object) -> object:
        if method == "add_partitions_req" and connection is world.connection:
            world.other.add_partitions(table, {"p=a": elsewhere})
        return call(connection, method, *args)

    monkeypatch.setattr(Connection, "call", late)
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        begun.publish(*staged(begun, ("a",)))
    assert files_below(elsewhere) == FILES
    assert begun.created == 0


@pytest.mark.parametrize("kind", [DELETE, "insert"])
@pytest.mark.parametrize("how", ["dropped", "moved"])
def test_a_partition_that_was_read_and_is_gone_is_refused(world: World, how: str, kind: str) -> None:
    table = world.create(KEYS)
    place = f"{table.location}/p=a"
    world.other.add_partitions(table, {"p=a": place})
    transaction = world.connection.begin()
    begun = world.begin(transaction, intent=Intent(Operation.UPDATE))
    begun.reads({"p=a": place})
    if how == "dropped":
        world.other.drop_partitions(table, ["p=a"])
    else:
        world.move_partition("p=a", table.location + "_elsewhere")
    with pytest.raises(TableChangedError, match=f"p=a of d.t was {how}"):
        begun.publish(*staged(begun, ("a",), kind=kind))
    transaction.abort()
    assert not any("delta" in path for path in files_below(table.location))
    assert not files_below(table.location + "_elsewhere")
    if how == "dropped":
        assert world.other.partition_names(table) == [], "it is not made again"


def test_a_partition_that_was_dropped_is_made_again_by_an_insert(world: World) -> None:
    table = world.create(KEYS)
    world.other.add_partitions(table, {"p=a": f"{table.location}/p=a"})
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        world.other.drop_partitions(table, ["p=a"])
        begun.publish(*staged(begun, ("a",)))
    assert world.other.partition_names(table) == ["p=a"]
    assert {path for path in files_below(f"{table.location}/p=a") if "delta" in path} == {
        path.replace("0000001", "0000002") for path in FILES
    }, "above the base by which the metastore dropped it"


def test_columns_may_change_while_files_are_made(world: World) -> None:
    table = world.create()
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        world.alter(cols=[*world.other.wire_table("d", "t").sd.cols, ttypes.FieldSchema(name="n", type="int")])
        begun.publish(*staged(begun, ()))
    assert files_below(table.location) == FILES


def test_two_outputs_with_one_directory_are_refused_before_anything_is_in_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our metastore has no such partitions any more; others do."""
    table = world.create(KEYS)
    one = f"{table.location}/here"
    monkeypatch.setattr(world.connection, "partitions_named", lambda *_: {"p=a": one, "p=b": f"{one}/"})
    transaction = world.connection.begin()
    begun = world.begin(transaction)
    with pytest.raises(UnsupportedTableError, match="p=a and p=b would be written to one directory"):
        begun.publish(*staged(begun, ("a",), ("b",)))
    transaction.abort()
    assert not files_below(table.location)


def test_the_name_of_null_is_no_value(world: World) -> None:
    """Beside NULL it would have its directory; alone it would be read as NULL."""
    table = world.create(KEYS)
    for values in ((("__HIVE_DEFAULT_PARTITION__",), (None,)), (("__HIVE_DEFAULT_PARTITION__",),)):
        transaction = world.connection.begin()
        begun = world.begin(transaction)
        with pytest.raises(ColumnError, match="NULL is kept"):
            begun.publish(*staged(begun, *values))
        transaction.abort()
    assert world.other.partition_names(table) == []


@pytest.mark.parametrize("keys", [(), KEYS], ids=["flat", "partitioned"])
def test_who_was_given_up_puts_nothing_in_place(world: World, keys: tuple[object, ...]) -> None:
    table = world.create(keys)  # type: ignore[arg-type]
    transaction = world.connection.begin()
    begun = world.begin(transaction, intent=INSERTING)
    staging, found = staged(begun, ("a",) if keys else ())
    world.other.abort_transactions([transaction.id])
    with pytest.raises(TransactionExpiredError):
        begun.publish(staging, found)
    assert all("delta" not in path for path in files_below(table.location))


def test_what_is_written_under_a_plain_name_is_marked_and_leaves_nothing_behind(world: World) -> None:
    table = world.create()
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        staging, found = staged(begun, ())
        (published,) = begun.publish(staging, found)
        assert published.directory == files.join(table.location, DELTA)
        staging.remove()
    assert files_below(table.location) == FILES


@pytest.mark.parametrize("ahead_s", [0, 3600])
@pytest.mark.parametrize("again", ["by this write", "by another one"])
def test_rows_are_not_put_below_what_a_drop_has_left_of_their_partition(
    metastore: Callable[..., str], monkeypatch: pytest.MonkeyPatch, again: str, ahead_s: int
) -> None:
    """It waits for writers under way, and in the end goes on without them, also if their clocks are ahead."""
    uri = metastore(**{"metastore.acid.truncate.wait": "100ms"})
    with connect(uri) as connection, connect(uri) as other:
        other.create_database("d")
        world = World(connection, other, Definitions(connection))
        table = world.create(KEYS)
        with connection.begin() as transaction:
            begun = world.begin(transaction)
            begun.publish(*staged(begun, ("a",)))
        with monkeypatch.context() as clock:
            now_s = time.time() + ahead_s
            clock.setattr(time, "time", lambda: now_s)
            late = connection.begin()
            first = world.begin(late)
            first.publish(*staged(first, ("b",)))
        other.drop_partitions(table, ["p=a"])
        if again == "by another one":
            with other.begin() as writer:
                second = TableWrite.begin(other, Definitions(other), writer, TableReference("d", "t"), INSERTING)
                second.publish(*staged(second, ("a",)))
        begun = world.begin(late)
        with pytest.raises(TableChangedError, match="was dropped and made anew"):
            begun.publish(*staged(begun, ("a",)))
        late.abort()
        with connection.begin() as transaction:
            begun = world.begin(transaction)
            begun.publish(*staged(begun, ("a",), ("b",)))


@pytest.mark.parametrize("of", ["moved away", "dropped without its files"])
def test_rows_that_lie_where_a_new_partition_is_to_be_do_not_come_back_with_it(world: World, of: str) -> None:
    """Another engine has let them lie; whoever inserts into the partition means new rows."""
    table = world.create(KEYS)
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        staging, found = staged(begun, ("a",))
        begun.publish(staging, found)
    if of == "moved away":
        world.move_partition("p=a", table.location + "_elsewhere/p=a")
        world.other.drop_partitions(table, ["p=a"])
    else:
        world.other.call("drop_partition_by_name", "d", "t", "p=a", False)
    left = files_below(table.location)
    assert left
    transaction = world.connection.begin()
    begun = world.begin(transaction)
    staging, found = staged(begun, ("a",), ("b",))
    with pytest.raises(UnsupportedTableError, match="no partition p=a: they would come back"):
        begun.publish(staging, found)
    transaction.abort()
    assert files_below(table.location) == left
    assert world.other.partition_names(table) == []
    with world.connection.begin() as transaction:  # a base hides them
        begun = world.begin(transaction, intent=Intent(Operation.INSERT, overwrites=True))
        staging, found = staged(begun, ("a",))
        begun.publish(staging, found)


def test_what_an_aborted_write_left_is_in_nobodys_way(world: World) -> None:
    table = world.create(KEYS)
    transaction = world.connection.begin()
    begun = world.begin(transaction)
    staging, found = staged(begun, ("a",))
    begun.publish(staging, found)
    world.other.abort_transactions([transaction.id])
    world.other.call("drop_partition_by_name", "d", "t", "p=a", False)
    assert files_below(table.location)
    with world.connection.begin() as transaction:
        begun = world.begin(transaction)
        staging, found = staged(begun, ("a",))
        begun.publish(staging, found)
    assert world.other.partition_names(table) == ["p=a"]
