"""Replies to who gets a table: made once of what the database says, and kept as encoded.

The database is asked each time. The same row is the same table, whatever happened between, so what was made of it is
good still.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from metastore.catalog import records
from metastore.catalog.lookup import TableRow
from metastore.catalog.models import Table
from metastore.rpc.call import Call
from metastore.rpc.encoding.codec import Prepared, prepared_paced

_MOST_KEPT = 200
_LONGEST_KEPT = 8_000
"""Characters of a row's JSON: a longer one is read by a thread, each time."""
_MOST_REPLIES = 8
"""Of one table, to clients of different capabilities."""


@dataclass(slots=True)
class _Known:
    table: Table
    replies: dict[Hashable, Prepared] = field(default_factory=dict)


class TableReplies:
    """The tables that were asked for last. Used on the event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[TableRow, _Known] = OrderedDict()

    async def of(
        self,
        call: Call,
        row: TableRow,
        asker: Hashable,
        check: Callable[[Table], None],
        reply: Callable[[Table], Any],
    ) -> Prepared:
        """What `reply` makes of a table for an `asker`, which is all that it depends on.

        `check` is called each time before; raises what it raises.
        """
        if records.length_of_texts(row) > _LONGEST_KEPT:
            return await call.run(_long_reply, call.method, row, check, reply)
        known = self._known.get(row)
        if known is None:
            known = self._known[row] = _Known(records.table_of_texts(row))
            if len(self._known) > _MOST_KEPT:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(row)
        check(known.table)
        found = known.replies.get((call.method, asker))
        if found is None:
            found = Prepared(reply(known.table))
            if len(known.replies) >= _MOST_REPLIES:
                known.replies.clear()
            known.replies[call.method, asker] = found
        return found


def _long_reply(method: str, row: TableRow, check: Callable[[Table], None], reply: Callable[[Table], Any]) -> Prepared:
    table = records.table_of_texts(row)
    check(table)
    return prepared_paced(method, reply(table))
