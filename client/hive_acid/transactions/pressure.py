"""Back-pressure: who writes is told when deltas pile up in a table, since each of them makes reading it slower.

The metastore counts them whenever it looks whether a table needs a compaction. After a commit the heartbeat thread asks
for the tables that were written, for each once a minute at most: no call of a writer takes longer for it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from hive_acid.errors import HiveAcidError, UnknownMethodError
from hive_acid.transactions.heartbeats import Heartbeats
from hive_acid.transport import Transport
from hive_acid.wire import ttypes

LOG = logging.getLogger(__name__)
ASK_AGAIN_S = 60.0
WARN_AGAIN_S = 600.0
_MOST_TABLES = 10_000
"""Tables whose times are kept; who writes to more is asked for again a little earlier."""


class Pressure:
    """Warns, in the log, of tables with too many deltas that this connection writes to."""

    def __init__(
        self, transport: Transport, heartbeats: Heartbeats, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._transport = transport
        self._heartbeats = heartbeats
        self._clock = clock
        self._due: dict[str, float] = {}
        self._is_known = True

    def wrote(self, tables: Iterable[str]) -> None:
        """A transaction that wrote to these tables (``database.table``) has committed; returns at once."""
        now = self._clock()
        asked = [table for table in tables if self._due.get(table, now) <= now] if self._is_known else []
        if asked:
            if len(self._due) > _MOST_TABLES:
                self._due.clear()
            self._due.update(dict.fromkeys(asked, now + ASK_AGAIN_S))
            self._heartbeats.do_later(lambda: self._ask(asked))

    def _ask(self, tables: list[str]) -> None:
        try:
            request = ttypes.HiveAcidPressureRequest(fullTableNames=tables)
            crowded = self._transport.call("hive_acid_pressure", request).tables
        except UnknownMethodError:  # another metastore than ours
            self._is_known = False
            return
        except HiveAcidError as error:
            LOG.info("not known whether deltas pile up in %s: %s", ", ".join(tables), error)
            return
        for table in crowded:
            self._due[f"{table.dbname}.{table.tablename}"] = self._clock() + WARN_AGAIN_S
            LOG.warning("%s", warning(table))


def warning(table: Any) -> str:
    """What to tell the writer of a table, given as the metastore's ``HiveAcidPressure``."""
    name = f"{table.dbname}.{table.tablename}"
    where = f"{name}/{table.partname}" if table.partname else name
    others = f", and {table.places - 1} more of its partitions have too many" if table.places > 1 else ""
    why = f" Compaction: {table.message}." if table.message else ""
    return (
        f"{where} has {table.deltas} deltas, more than {table.threshold}{others}: reading it is slow.{why} Write fewer "
        f"and larger transactions, give compactions more workers, or ask for one: ALTER TABLE {name} COMPACT 'major' "
        f"(`metastore why {name}` tells more)"
    )
