"""Dropping partitions of ACID tables while readers are under way: their files stay until these have ended.

The partition may be there again before that, and writers choose its directory by its name. So it gets an empty base
first, as a truncation: what was dropped does not come back with it, for nobody. Then the Cleaner takes the directory;
or, if there is a partition again, what the base covers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, func, select

from hive_acid.ids import TxnId, WriteId
from metastore.catalog.config import CatalogConfig
from metastore.catalog.models import Table
from metastore.catalog.removal.drops import texts
from metastore.catalog.removal.overwrites import Overwrites, RowDirectory
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.txn.service import refuse

_OWNER = TxnOwner("hive-acid", "metastore", "drop partition")


class SoftDrops:
    """Hands the files of partitions that are about to be dropped to the Cleaner."""

    def __init__(self, db: Database, overwrites: Overwrites, config: CatalogConfig) -> None:
        self._db = db
        self._overwrites = overwrites
        self._config = config

    def hand_over(self, table: Table, places: Sequence[RowDirectory], txn_id: int) -> bool:
        """Empty partitions and hand them over; False, and nothing done, if nobody can be reading them.

        `txn_id` is the transaction whose lock the client has for the drop, or 0: that reads nothing. The partitions can
        be dropped then; killed before that, they are just empty. Raises MetaError.
        """
        config = self._config
        if not (places and config.soft_delete and config.directories and table.is_transactional and table.owns_files):
            return False
        if self._db.call_one("any_txn_open", txn_id) != (True,):
            return False
        self._overwrites.in_own(table, places, _OWNER, partial(_submit_dropped, table, places), insist=True)
        return True

    def hand_over_in_clients(self, table: Table, places: Sequence[RowDirectory], write_id: WriteId) -> bool:
        """As `hand_over`, under the write id of a client that drops softly (Hive's hive.acid.droppartition.usebase).

        The Cleaner takes the files when its transaction has committed. Raises MetaError unless that is open.
        """
        if not (places and self._config.directories and table.owns_files):
            return False
        self._overwrites.in_clients(table, places, write_id, partial(_submit_dropped, table, places))
        return True


def _submit_dropped(
    table: Table, places: Sequence[RowDirectory], connection: Connection, txn_id: TxnId, write_id: WriteId
) -> None:
    names = texts([place.partition for place in places])
    locations = texts([place.location for place in places])
    dropped = func.submit_replaced(table.database, table.name, names, locations, write_id, txn_id)
    refuse(connection.execute(select(dropped)).scalar_one(), txn_id)
