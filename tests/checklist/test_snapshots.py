"""transactions.md §9, items 17 to 19, and the vectors of transactions.md §10 made by real calls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hive_acid.format.snapshot import NONE_OPEN, ValidTxnList, ValidWriteIdList
from tests.caller import Caller
from tests.served import Served

Alone = Callable[..., Served]


def test_17_vectors_of_transactions_and_write_ids(alone: Alone) -> None:
    with alone().caller() as ann:
        assert str(ann.snapshot()) == "0:9223372036854775807::"
        ids = ann.open(12)
        assert ann.allocate("db.e", *ids) == [(n, n) for n in range(1, 13)]
        ann.abort_all(2, 3, 4, 5, 6, 9)
        ann.commit(1)
        ann.commit(10)
        found = ann.call("get_open_txns")
        assert (found.txn_high_water_mark, found.min_open_txn, found.abortedBits.hex()) == (12, 7, "9f")
        assert found.open_txns == [2, 3, 4, 5, 6, 7, 8, 9, 11, 12]
        assert _encoded(ann.snapshot()) == "12:7:7,8,11,12:2-6,9"
        assert _encoded(ann.snapshot(11)) == "11:7:7,8:2-6,9"

        table = ann.write_ids("db.e", snapshot=ann.snapshot())
        assert (table.writeIdHighWaterMark, table.minOpenWriteId, table.abortedBits.hex()) == (12, 7, "9f")
        assert _encoded(_list(table)) == "db.e:12:7:7,8,11,12:2,3,4,5,6,9"
        assert str(_list(table).for_compactor()) == "db.e:6:7::2,3,4,5,6"

        table = ann.write_ids("db.e", snapshot=ann.snapshot(7))
        assert (table.writeIdHighWaterMark, table.minOpenWriteId, table.abortedBits.hex()) == (7, None, "1f")
        assert _encoded(_list(table)) == "db.e:7:9223372036854775807::2,3,4,5,6"


def test_17_vectors_of_tables_with_invalid_writes_only(ann: Caller, name: str) -> None:
    aborted = ann.begin()
    ann.allocate(f"{name}.ab", aborted)
    ann.abort(aborted)
    table = ann.write_ids(f"{name}.ab", snapshot=ann.snapshot())
    assert (table.writeIdHighWaterMark, table.invalidWriteIds, table.minOpenWriteId) == (1, [1], None)
    assert _encoded(_list(table)) == f"{name}.ab:1:9223372036854775807::1"
    ann.allocate(f"{name}.ab", ann.begin())
    table = ann.write_ids(f"{name}.ab", snapshot=ann.snapshot())
    assert (table.invalidWriteIds, table.minOpenWriteId, table.abortedBits.hex()) == ([1], 2, "01")
    assert _encoded(_list(table)) == f"{name}.ab:1:2::1"

    writer = ann.begin()
    ann.allocate(f"{name}.ow", writer)
    table = ann.write_ids(f"{name}.ow", snapshot=ann.snapshot())
    assert (table.invalidWriteIds, table.minOpenWriteId, table.abortedBits or b"") == ([1], 1, b"")
    assert _encoded(_list(table)) == f"{name}.ow:1:1:1:"
    assert str(_list(table).for_compactor()) == f"{name}.ow:0:9223372036854775807::"
    own = ann.write_ids(f"{name}.ow", snapshot=ann.snapshot(writer))
    assert _encoded(_list(own)) == f"{name}.ow:1:9223372036854775807::"


def test_17_vector_of_31_bits(alone: Alone) -> None:
    with alone().caller() as ann:
        ids = ann.open(31)
        ann.abort_all(*(ids[at] for at in (0, 1, 2, 3, 4, 7, 10, 16, 17, 18, 19, 20, 21, 27)))
        assert ann.call("get_open_txns").abortedBits.hex() == "9f043f08"


def test_18_own_id_in_the_middle(ann: Caller, name: str) -> None:
    earlier, own, later = ann.open(3)
    ann.write(later, f"{name}/t", "i")
    ann.commit(later)
    seen = ann.snapshot(own)
    assert seen.high_water_mark == own
    assert own not in (*seen.open_ids, *seen.aborted_ids)
    assert earlier in seen.open_ids
    assert not seen.is_valid(later)
    table = ann.write_ids(f"{name}.t", snapshot=seen)
    assert not _list(table).is_valid(1)
    assert ann.snapshot().is_valid(later)


@pytest.mark.parametrize(("length", "written"), [(4, "{0},{1},{2},{3}"), (5, "{0}-{4}"), (6, "{0}-{5}")])
def test_19_runs(length: int, written: str, ann: Caller) -> None:
    first, *run, last = ann.open(length + 2)
    ann.commit(first)
    ann.commit(last)
    assert str(ann.snapshot()).endswith(f":{run[0]}:{written.format(*run)}:" + _aborted(ann))


def _aborted(ann: Caller) -> str:
    return str(ann.snapshot()).rpartition(":")[2]


def _list(table: object) -> ValidWriteIdList:
    found: ValidWriteIdList = ValidWriteIdList.from_invalid(
        table.fullTableName,  # type: ignore[attr-defined]
        table.writeIdHighWaterMark,  # type: ignore[attr-defined]
        table.invalidWriteIds,  # type: ignore[attr-defined]
        table.abortedBits or b"",  # type: ignore[attr-defined]
        table.minOpenWriteId,  # type: ignore[attr-defined]
    )
    return found


def _encoded(found: ValidTxnList | ValidWriteIdList) -> str:
    """The text, which must read back as what it was."""
    text = str(found)
    back = type(found).parse(text)
    assert str(back) == text
    assert (back.high_water_mark, back.open_ids, back.aborted_ids) == (
        found.high_water_mark,
        found.open_ids,
        found.aborted_ids,
    )
    assert back.min_open == (found.min_open if found.open_ids or found.aborted_ids else NONE_OPEN)
    return text
