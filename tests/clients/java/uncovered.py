"""Methods of the Java clients that no walk calls, and why; what is listed here and called is an error too."""

from __future__ import annotations

from fnmatch import fnmatch

UNSERVED = "calls a method of tier 4, which is answered UNKNOWN_METHOD (tests/repository/test_methods.py)"

_SINCE_2 = "*Type(* getTypeAll(* *FileMetadata* *PartitionForEvent(* isPartitionMarkedForEvent(*"
_SINCE_3 = (
    f"{_SINCE_2} *RuntimeStat* *ISchema(* *Schema*Version* getSchemaByCols(* *SerDe(* *ResourcePlan* *WM*"
    " createOrDropTriggerToPoolMapping(*"
)
_SINCE_4 = (
    f"{_SINCE_3} *Package* *StoredProcedure* *ReplicationMetrics(* createDataConnector(* alterDataConnector(*"
    " dropDataConnector(* getScheduledQuery(* scheduledQueryMaintenance(* scheduledQueryProgress(* *Properties(*"
)

REASONS: dict[str, dict[int, str]] = {
    UNSERVED: {2: f"{_SINCE_2} *Index* alter_index(*", 3: _SINCE_3, 4: _SINCE_4},
    "fails inside the client, against every server (wire.md §4.2)": {3: "getValidWriteIds(String)"},
    "asks the client itself, not the server": {4: "getConnCount() getProcessorCapabilities() getProcessorIdentifier()"},
}
"""By reason and generation: patterns of signatures."""


def is_listed(generation: int, signature: str) -> bool:
    """Whether there is a reason why nothing calls this method."""
    return any(fnmatch(signature, pattern) for pattern in patterns(generation))


def patterns(generation: int) -> list[str]:
    """All patterns of a generation."""
    return [pattern for lists in REASONS.values() for pattern in lists.get(generation, "").split()]
