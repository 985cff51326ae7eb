"""RPC of our own: a commit that gives a table the definition of the rows that have replaced all others."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from hive_acid.errors import InvalidObjectError, InvalidOperationError
from hive_acid.ids import TxnId
from metastore.catalog.definition.alterations import Alterations
from metastore.rpc.call import Call, Handler
from metastore.rpc.structs.catalog import table_of
from metastore.txn.commits import AloneCommit, ExtendedCommits


def handlers(alterations: Alterations, commits: ExtendedCommits) -> dict[str, Handler]:
    """The handler by RPC name."""

    def hive_acid_replace_table(call: Call, request: Any) -> None:
        ended: list[AloneCommit] = []
        try:
            new = table_of(request.table)

            def commit(connection: Connection) -> bool:
                ended[:] = [commits.commit_alone(connection, TxnId(request.txnid), new.database, new.name)]
                return ended[0].is_done

            alterations.replace(new, request.tableId, commit)
        except InvalidObjectError as error:  # the method does not declare it
            raise InvalidOperationError(str(error)) from None
        commits.answered(ended[0])

    return {"hive_acid_replace_table": hive_acid_replace_table}
