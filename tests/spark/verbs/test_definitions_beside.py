"""All verbs that define: alone, in blocks that commit or abort, and beside the locks of living and dead clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.connection import connect
from hive_acid.errors import HiveAcidError, LockTimeoutError, TransactionClosedError
from hive_acid.spark import AcidSession
from hive_acid.transactions.locks import Operation, read_component, write_component
from tests.caller import Caller

ROWS = [(1, 10, 1), (2, 20, 2)]
OF_BLOCK = (3, 30, 1)
HELD_S = 0.6
"""How long another client holds its lock."""

LOCKS: dict[str, Callable[[], Any]] = {
    "reads": lambda: read_component("d", "t"),
    "adds": lambda: write_component("d", "t", Operation.INSERT),
    "changes": lambda: write_component("d", "t", Operation.UPDATE),
}


@dataclass(frozen=True)
class Verb:
    """A verb on the table ``d.t (id, v) PARTITIONED BY (p)``. `effect` is what there is of it to see."""

    run: Callable[[AcidSession], object]
    effect: Callable[[AcidSession], object]
    in_block: str
    """``part``: it aborts with the block; ``stays``: it shows at once; ``refused``: it is refused at once."""

    waits_for: frozenset[str]
    """Whose locks it waits for."""


ALTERS, MOVES, DROPS = frozenset({"changes"}), frozenset(LOCKS), frozenset[str]()
REPLACES = frozenset({"adds", "changes"})


def _definition(acid: AcidSession) -> Any:
    found = acid.connection.table("d", "t")
    return found.columns, found.parameters.get("mine"), acid.connection.partition_names(found)


def _there(acid: AcidSession) -> object:
    calls = acid.connection
    return [(name, calls.call("get_all_tables", name)) for name in calls.call("get_all_databases")]


def rows(acid: AcidSession) -> list[Any]:
    """What is to be read, by whichever name the table has."""
    (name,) = acid.connection.call("get_all_tables", "d")
    found = acid.table(f"d.{name}")
    return sorted(tuple(row) for row in found.select("id", found.columns[1], "p").collect())


def _sql(text: str) -> Callable[[AcidSession], object]:
    return lambda acid: acid.sql(text)


VERBS = {
    "truncate": Verb(lambda acid: acid.truncate("d.t"), rows, "part", REPLACES),
    "truncate partition": Verb(lambda acid: acid.truncate("d.t", {"p": 1}), rows, "part", REPLACES),
    "add columns": Verb(lambda acid: acid.add_columns("d.t", {"n": "int"}), _definition, "stays", ALTERS),
    "rename column": Verb(lambda acid: acid.rename_column("d.t", "v", "n"), _definition, "stays", ALTERS),
    "change type": Verb(lambda acid: acid.change_column_type("d.t", "v", "bigint"), _definition, "stays", ALTERS),
    "set properties": Verb(lambda acid: acid.set_properties("d.t", {"mine": "1"}), _definition, "stays", ALTERS),
    "add partitions": Verb(lambda acid: acid.add_partitions("d.t", {"p=5": None}), _definition, "stays", DROPS),
    "rename": Verb(lambda acid: acid.rename_table("d.t", "d.z"), _there, "stays", MOVES),
    "drop partitions": Verb(lambda acid: acid.drop_partitions("d.t", ["p=1"]), _definition, "refused", REPLACES),
    "DROP PARTITION": Verb(_sql("ALTER TABLE d.t DROP PARTITION (p=1)"), _definition, "refused", REPLACES),
    "drop": Verb(lambda acid: acid.drop_table("d.t"), _there, "refused", DROPS),
    "DROP TABLE": Verb(_sql("DROP TABLE d.t"), _there, "refused", DROPS),
    "drop database": Verb(lambda acid: acid.drop_database("d", cascade=True), _there, "refused", DROPS),
}


@pytest.fixture
def house(spark: SparkSession, metastore: Callable[..., str]) -> Iterator[Callable[[], AcidSession]]:
    """Gives a session whose table is as at first, as often as it is called."""
    with hive_acid.spark.session(
        spark, metastore(**{"hive.txn.timeout": "2s", "metastore.lock.poll.wait": "100ms"}), lock_timeout_ms=20_000
    ) as acid:

        def fresh() -> AcidSession:
            acid.drop_database("d", cascade=True, if_exists=True)
            acid.create_database("d")
            acid.create_table("d.t", {"id": "int", "v": "int"}, partitioned_by={"p": "int"})
            acid.insert("d.t", frame(spark, *ROWS))
            return acid

        yield fresh


def frame(spark: SparkSession, *values: tuple[int, int, int]) -> Any:
    return spark.createDataFrame(list(values), "id int, v int, p int")


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("used", ["written", "read"])
def test_in_a_block_a_verb_is_part_of_it_or_stays_or_is_refused_at_once(
    house: Callable[[], AcidSession], spark: SparkSession, name: str, used: str
) -> None:
    """A verb that is refused spoils nothing: what the block has written is committed."""
    verb = VERBS[name]
    acid = house()
    verb.run(acid)
    done = verb.effect(acid)
    for ends in ("commit", "abort"):
        acid = house()
        before = verb.effect(acid)
        try:
            with acid.transaction():
                if used == "written":
                    acid.insert("d.t", frame(spark, OF_BLOCK))
                else:
                    acid.table("d.t").count()
                began = time.monotonic()
                if verb.in_block == "refused":
                    with pytest.raises(TransactionClosedError, match="not dropped within a block"):
                        verb.run(acid)
                else:
                    verb.run(acid)
                assert time.monotonic() - began < 5, "it waits for locks of its own transaction"
                if ends == "abort":
                    raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        stays = verb.in_block == "stays" or (verb.in_block == "part" and ends == "commit")
        if verb.effect is not rows:
            assert verb.effect(acid) == (done if stays else before)
            assert rows(acid) == sorted([*ROWS, *([OF_BLOCK] if (used, ends) == ("written", "commit") else [])])
        else:
            assert rows(acid) == (done if stays else before)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_waits_for_those_locks_that_are_in_its_way_and_for_no_others(
    house: Callable[[], AcidSession], name: str
) -> None:
    verb = VERBS[name]
    for held, component in LOCKS.items():
        acid = house()
        with connect(acid.connection.uri) as other:
            holder = other.begin()
            holder.lock(component())
            if held != "reads":
                holder.write_id("d", "t")
            freed: list[float] = []

            def free(holder: Any = holder, freed: list[float] = freed) -> None:
                freed.append(time.monotonic())
                holder.commit()

            timer = threading.Timer(HELD_S, free)
            timer.start()
            verb.run(acid)
            done = time.monotonic()
            timer.join()
            # A truncation does not wait for frames of hive-acid's, which do not see its base.
            assert (done > freed[0]) == (held in verb.waits_for), f"beside one that {held}"


@pytest.mark.parametrize("name", [name for name, verb in VERBS.items() if verb.waits_for])
def test_the_lock_of_a_dead_client_is_waited_for_under_one_transaction(
    house: Callable[[], AcidSession], spark: SparkSession, name: str
) -> None:
    verb = VERBS[name]
    acid = house()
    before = verb.effect(acid)
    uri = acid.connection.uri
    with hive_acid.spark.session(spark, uri, lock_timeout_ms=300) as hasty, Caller(uri, "bob") as dead:
        txn_id = dead.begin()
        assert dead.asks("w d/t u", txn=txn_id) == "A"
        with pytest.raises(LockTimeoutError, match=rf"d\.t.* 300 ms: transaction {txn_id} of bob at host1"):
            verb.run(hasty)
        if verb.effect is not rows:  # a snapshot of which would need no lock, but ends only later
            assert verb.effect(acid) == before
        latest = dead.snapshot().high_water_mark
        verb.run(acid)
        assert dead.snapshot().high_water_mark - latest <= 2, "the verb's own, and the metastore's for a soft drop"
    assert verb.effect(acid) != before


def test_partitions_are_dropped_from_the_table_that_is_meant(house: Callable[[], AcidSession]) -> None:
    """All that are named, or none; those that are not there pass only if that was said."""
    acid = house()
    meant = acid.connection.table("d", "t")
    with pytest.raises(HiveAcidError, match="p=7"):
        acid.drop_partitions(meant, ["p=1", "p=7"])
    assert rows(acid) == ROWS
    acid.drop_partitions(meant, ["p=1", "p=7"], if_exists=True)
    assert rows(acid) == ROWS[1:]
    acid = house()
    with pytest.raises(HiveAcidError, match="another table now"):
        acid.drop_partitions(meant, ["p=1"])
    assert rows(acid) == ROWS
