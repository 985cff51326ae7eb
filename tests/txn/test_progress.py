"""How far a stream got: a parameter that a commit makes and raises, and nothing sets back."""

from __future__ import annotations

import pytest

from hive_acid.format.progress import PROGRESS_PREFIX, kept_progress, last_batch, progress_parameter
from hive_acid.wire import ttypes
from tests.caller import INTERNAL, Caller, refused
from tests.checklist.tables import create_database, create_table, get_table

KEY = progress_parameter("clicks")


@pytest.fixture
def table_id(ann: Caller) -> int:
    create_database(ann, "d")
    return int(create_table(ann, "d", parameters={"other": "x"}).id)


def commit(ann: Caller, table_id: int, value: str, key: str = KEY) -> int:
    txn_id = ann.begin()
    ann.write(txn_id, "d/t", "i")
    ann.commit(txn_id, keyValue=ttypes.CommitTxnKeyValue(tableId=table_id, key=key, value=value))
    return txn_id


def test_the_first_commit_makes_it_and_later_ones_raise_it(ann: Caller, table_id: int) -> None:
    for batch in ("0", "1", "5"):
        commit(ann, table_id, batch)
        assert get_table(ann, "d").parameters[KEY] == batch
    commit(ann, table_id, "0", progress_parameter("other"))
    parameters = get_table(ann, "d").parameters
    assert (last_batch(parameters, "clicks"), last_batch(parameters, "other"), parameters["other"]) == (5, 0, "x")


@pytest.mark.parametrize("value", ["5", "4", "0"])
def test_a_commit_that_would_not_raise_it_is_refused(ann: Caller, table_id: int, value: str) -> None:
    commit(ann, table_id, "5")
    txn_id = ann.begin()
    ann.write(txn_id, "d/t", "i")
    request = ttypes.CommitTxnKeyValue(tableId=table_id, key=KEY, value=value)
    with refused(INTERNAL, f"batch {value} .* or a later one is"):
        ann.commit(txn_id, keyValue=request)
    assert ann.snapshot().open_ids == (txn_id,)
    assert get_table(ann, "d").parameters[KEY] == "5"


def test_a_repeated_commit_is_no_second_batch(ann: Caller, table_id: int) -> None:
    txn_id = commit(ann, table_id, "3")
    ann.commit(txn_id, keyValue=ttypes.CommitTxnKeyValue(tableId=table_id, key=KEY, value="3"))
    assert get_table(ann, "d").parameters[KEY] == "3"


@pytest.mark.parametrize("value", ["", "-1", "x", "1" * 19])
def test_a_batch_has_a_number(ann: Caller, table_id: int, value: str) -> None:
    with refused(INTERNAL, "holds the number of a batch"):
        commit(ann, table_id, value)


def test_a_table_that_is_gone_has_no_progress(ann: Caller, table_id: int) -> None:
    ann.call("drop_table", "d", "t", True)
    txn_id = ann.begin()
    with refused(INTERNAL, f"table id {table_id} has no parameter"):
        ann.commit(txn_id, keyValue=ttypes.CommitTxnKeyValue(tableId=table_id, key=KEY, value="1"))


def test_an_alteration_keeps_it(ann: Caller, table_id: int) -> None:
    before = get_table(ann, "d")
    commit(ann, table_id, "1")
    stale = get_table(ann, "d")
    commit(ann, table_id, "2")
    for table in (before, stale):
        ann.call("alter_table", "d", "t", table)
        assert get_table(ann, "d").parameters[KEY] == "2"
    stale.parameters[KEY] = ""
    ann.call("alter_table", "d", "t", stale)
    assert KEY not in get_table(ann, "d").parameters


def test_kept_progress() -> None:
    key = PROGRESS_PREFIX
    assert kept_progress({f"{key}a": "3", "x": "1"}, {"x": "2"}) == {"x": "2", f"{key}a": "3"}
    assert kept_progress({f"{key}a": "3"}, {f"{key}a": "1", f"{key}b": "0"}) == {f"{key}a": "3", f"{key}b": "0"}
    assert kept_progress({f"{key}a": "3"}, {f"{key}a": ""}) == {}


@pytest.mark.parametrize("query", ["", "a b", "a/b", "x" * 129])
def test_names_that_no_stream_can_have(query: str) -> None:
    with pytest.raises(ValueError, match="cannot name a stream"):
        progress_parameter(query)


def test_a_value_that_somebody_wrote_is_none() -> None:
    assert last_batch({f"{PROGRESS_PREFIX}q": "soon"}, "q") is None
