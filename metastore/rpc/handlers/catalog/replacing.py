"""RPC of our own: a commit that gives a table the definition of the rows that have replaced all others, in its place or
by another table that gets its name.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from hive_acid.errors import InvalidObjectError, InvalidOperationError
from hive_acid.ids import TxnId
from metastore.catalog.service import CatalogService
from metastore.rpc.call import Call, Handler
from metastore.rpc.structs.catalog import table_of
from metastore.txn.commits import AloneCommit, ExtendedCommits


def handlers(catalog: CatalogService, commits: ExtendedCommits) -> dict[str, Handler]:
    """The handler by RPC name."""

    def hive_acid_replace_table(call: Call, request: Any) -> None:
        ended: list[AloneCommit] = []
        removals = []
        txn_id, successor_id = TxnId(request.txnid), request.successorId
        try:
            new = table_of(request.table)

            def commit(connection: Connection) -> bool:
                ended[:] = [commits.commit_alone(connection, txn_id, new.database, new.name)]
                return ended[0].is_done

            if successor_id:
                removals = catalog.successors.take_place(new, request.tableId, successor_id, txn_id, commit)
            else:
                catalog.alterations.replace(new, request.tableId, commit)
        except InvalidObjectError as error:  # the method does not declare it
            raise InvalidOperationError(str(error)) from None
        commits.answered(ended[0])
        catalog.removals.run(removals)

    return {"hive_acid_replace_table": hive_acid_replace_table}
