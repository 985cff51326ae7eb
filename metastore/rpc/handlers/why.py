"""RPC of our own: why something does not happen, and what to do about it."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import MetaError
from hive_acid.ids import CompactionId, LockId, TxnId
from hive_acid.wire import ttypes
from metastore.rpc.call import Call, Handler
from metastore.why.models import Answer
from metastore.why.service import WhyService


def handlers(why: WhyService) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def hive_acid_why(call: Call, request: Any) -> Any:
        return ttypes.HiveAcidWhyResponse(answers=[_answer(answer) for answer in _answers(why, request)])

    return {"hive_acid_why": hive_acid_why}


def _answers(why: WhyService, request: Any) -> list[Answer]:
    asked = [name for name in ("tablename", "txnid", "lockid", "compactionid") if getattr(request, name)]
    match asked:
        case ["tablename"] if request.dbname:
            return why.table(request.dbname, request.tablename, request.partname or None)
        case ["txnid"]:
            return why.transaction(TxnId(request.txnid))
        case ["lockid"]:
            return why.lock(LockId(request.lockid))
        case ["compactionid"]:
            return why.compaction(CompactionId(request.compactionid))
        case _:
            raise MetaError("ask about one thing: a table with its database, a transaction, a lock or a compaction")


def _answer(answer: Answer) -> Any:
    owner = answer.owner
    return ttypes.HiveAcidAnswer(
        subject=answer.subject,
        code=answer.code,
        message=answer.message,
        action=answer.action,
        since=answer.since_ms,
        txnid=answer.txn_id,
        lockid=answer.lock_id,
        compactionid=answer.compaction_id,
        user=owner.user if owner else None,
        hostname=owner.host if owner else None,
        agentInfo=owner.agent_info if owner else None,
        files=list(answer.files) or None,
    )
