"""Two servers asked for the same thing: what one of them keeps in memory must not be older than what the other said."""

from __future__ import annotations

from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.transactions.beginning import valid_write_ids
from hive_acid.wire import table_name, ttypes
from tests.isolation.clients.caller import Caller
from tests.isolation.judging.deltas import DATABASE

LOOKED_AT = 500
"""The latest write ids are compared, so many."""


def compare_servers(first: Caller, second: Caller, table: str) -> str | None:
    """What is wrong with the present write ids of a table, None if nothing is.

    They are asked of `second` between two snapshots of `first`. A write id that is valid stays so: what the earlier
    snapshot sees, the present one must see, and what that sees, the later snapshot.
    """
    before = visible_write_ids(first, table, _snapshot(first))
    present = visible_write_ids(second, table, None)
    after = visible_write_ids(first, table, _snapshot(first))
    last = max(before.high_water_mark, present.high_water_mark, after.high_water_mark)
    for write_id in range(max(1, last - LOOKED_AT), last + 1):
        was, is_now, will_be = (one.is_valid(write_id) for one in (before, present, after))
        if (was and not is_now) or (is_now and not will_be):
            lists = f"{before}\n  {present}\n  {after}"
            return f"write id {write_id} of {table} is valid {was}, {is_now}, {will_be} in\n  {lists}"
    return None


def _snapshot(caller: Caller) -> str:
    answer = caller.call("get_open_txns")
    return str(
        ValidTxnList.from_open_txns(answer.txn_high_water_mark, answer.open_txns or [], answer.abortedBits or b"")
    )


def visible_write_ids(caller: Caller, table: str, snapshot: str | None) -> ValidWriteIdList:
    """The write ids that a snapshot sees; None asks for the present ones."""
    request = ttypes.GetValidWriteIdsRequest(fullTableNames=[table_name(DATABASE, table)], validTxnList=snapshot)
    return valid_write_ids(caller.call("get_valid_write_ids", request).tblValidWriteIds[0])
