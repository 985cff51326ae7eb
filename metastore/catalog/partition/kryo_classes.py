"""The Java classes that `kryo` knows, and their fields in the order in which Kryo writes them.

A class's fields are words, ``name:kind`` or, where the value does not matter, ``kind``: an object of ``any`` class, one
whose class is not written (``text``, ``texts``, ``enum``, ``maybe`` a boolean, ``date``, ``datetime``), or a primitive.
"""

from __future__ import annotations

from collections.abc import Mapping

PLAN = "org.apache.hadoop.hive.ql.plan."
FUNCTION = "org.apache.hadoop.hive.ql.udf.generic."
EXPRESSION = PLAN + "ExprNodeGenericFuncDesc"
_TYPES = "org.apache.hadoop.hive.serde2.typeinfo."
_VALUES = "org.apache.hadoop.hive.common.type."
INSPECTORS = "org.apache.hadoop.hive.serde2.objectinspector."
_WRITABLES = "org.apache.hadoop.io."
ARRAY_LIST, FIXED_LIST = "java.util.ArrayList", "java.util.Arrays$ArrayList"

_COMPARISON = "any enum text text any"  # compareOI compareType opDisplayName opName result
FIELDS: Mapping[str, str] = {
    EXPRESSION: "children:any genericUDF:any boolean any",
    PLAN + "ExprNodeColumnDesc": "column:text boolean boolean text any",
    PLAN + "ExprNodeConstantDesc": "any value:any",
    PLAN + "ExprNodeFieldDesc": "desc:any fieldName:text maybe any",
    **dict.fromkeys(
        (
            FUNCTION + name
            for name in (
                "GenericUDFOPEqual",
                "GenericUDFOPEqualNS",
                "GenericUDFOPNotEqual",
                "GenericUDFOPLessThan",
                "GenericUDFOPEqualOrLessThan",
                "GenericUDFOPGreaterThan",
                "GenericUDFOPEqualOrGreaterThan",
            )
        ),
        _COMPARISON,
    ),
    **dict.fromkeys(
        (
            FUNCTION + name
            for name in (
                "GenericUDFOPAnd",
                "GenericUDFOPOr",
                "GenericUDFOPNot",
                "GenericUDFOPNull",
                "GenericUDFOPNotNull",
            )
        ),
        "any",
    ),
    FUNCTION + "GenericUDFIn": "any boolean",
    FUNCTION + "GenericUDFBetween": "any any any any",
    FUNCTION + "GenericUDFStruct": "",
    _TYPES + "PrimitiveTypeInfo": "typeName:text",
    _TYPES + "CharTypeInfo": "int typeName:text",
    _TYPES + "VarcharTypeInfo": "int typeName:text",
    _TYPES + "DecimalTypeInfo": "int int typeName:text",
    _TYPES + "StructTypeInfo": "texts any",
    _WRITABLES + "BooleanWritable": "boolean",
    _WRITABLES + "IntWritable": "int",
    _WRITABLES + "LongWritable": "long",
    **dict.fromkeys(
        (f"{INSPECTORS}primitive.Writable{kind}ObjectInspector" for kind in ("Boolean", "Int", "Long")),
        "any",
    ),
    **dict.fromkeys(
        (f"{INSPECTORS}primitive.WritableConstant{kind}ObjectInspector" for kind in ("Boolean", "Int", "Long")),
        "any any",
    ),
    _VALUES + "HiveVarchar": "value:text",
    _VALUES + "HiveChar": "value:text",
    _VALUES + "HiveDecimal": "low:long middle:long high:long int scale:int int sign:int",
    _VALUES + "Date": "value:date",
    _VALUES + "Timestamp": "value:datetime",
}
