"""Partitions chosen by Hive's serialised expressions, made here by Hive's own serializer (wire.md §5.6)."""

from __future__ import annotations

from typing import Any

from tests.caller import refused
from tests.clients.walks.catalog.partitions import values
from tests.clients.walks.walk import Walk


class _Expressions:
    """Hive's expressions of the column ``month`` of text and ``year`` of int."""

    def __init__(self, walk: Walk) -> None:
        jvm = walk.hive.jvm
        self._walk = walk
        self._plan = jvm.org.apache.hadoop.hive.ql.plan
        self._types = jvm.org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory
        self._generic = jvm.org.apache.hadoop.hive.ql.udf.generic
        self._serializer = jvm.org.apache.hadoop.hive.ql.exec.SerializationUtilities

    def of(self, function: str, *operands: Any) -> Any:
        """A function such as ``GenericUDFOPEqual``; operands are columns' names, constants in tuples, or functions."""
        nodes = [self._node(operand) for operand in operands]
        made = getattr(self._generic, function)()
        return self._plan.ExprNodeGenericFuncDesc(self._types.booleanTypeInfo, made, self._walk.hive.list_of(*nodes))

    def bytes_of(self, expression: Any) -> bytearray:
        return bytearray(self._serializer.serializeExpressionToKryo(expression))

    def _node(self, operand: Any) -> Any:
        if isinstance(operand, str):
            kind = self._types.intTypeInfo if operand == "year" else self._types.stringTypeInfo
            return self._plan.ExprNodeColumnDesc(kind, operand, "t", True)
        if isinstance(operand, tuple):
            (value,) = operand
            kind = self._types.intTypeInfo if isinstance(value, int) else self._types.stringTypeInfo
            return self._plan.ExprNodeConstantDesc(kind, value)
        return operand


def serialised(walk: Walk) -> None:
    """Drops and reads are decoded; a read that is not understood is answered UNKNOWN_METHOD: Hive prunes by itself."""
    if walk.hive.generation != 2:  # only PySpark brings a Hive that makes such bytes
        return
    client, made = walk.client, _Expressions(walk)
    walk.partitioned("t", *(f"{year}/{month}" for year in (2023, 2024, 2025) for month in ("jan", "feb")))
    pair = walk.hive.jvm.org.apache.hadoop.hive.common.ObjectPair

    def drop(expression: Any) -> list[str]:
        wanted = walk.hive.list_of(pair(1, made.bytes_of(expression)))
        return values(client.dropPartitions(walk.db, "t", wanted, True, False))

    jan = made.of("GenericUDFOPEqual", "month", ("jan",))
    late = made.of("GenericUDFOPGreaterThan", "year", (2024,))
    found = walk.hive.list_of()
    assert client.listPartitionsByExpr(walk.db, "t", made.bytes_of(jan), "", -1, found) is False
    assert values(found) == ["2023/jan", "2024/jan", "2025/jan"]
    unknown = made.of("GenericUDFOPEqual", made.of("GenericUDFUpper", "month"), ("JAN",))
    with refused("IncompatibleMetastoreException"):
        client.listPartitionsByExpr(walk.db, "t", made.bytes_of(unknown), "", -1, walk.hive.list_of())
    assert drop(made.of("GenericUDFOPAnd", jan, late)) == ["2025/jan"]
    assert drop(made.of("GenericUDFIn", "year", (2022,), (2023,))) == ["2023/feb", "2023/jan"]
    assert drop(made.of("GenericUDFOPNot", jan)) == ["2024/feb", "2025/feb"]
    assert values(client.listPartitions(walk.db, "t", -1)) == ["2024/jan"]


STORIES = [serialised]
