"""The tables of a Hive 4.0.1 metastore's Postgres database that an import reads, and rows as a real one wrote them.

The columns are those that it has, without keys, lengths and what no import looks at.
"""

from __future__ import annotations

import psycopg2

ORC = "org.apache.hadoop.hive.ql.io.orc."

_TABLES = """
CTLGS: CTLG_ID bigint, NAME text, DESC text, LOCATION_URI text, CREATE_TIME bigint
DBS: DB_ID bigint, DESC text, DB_LOCATION_URI text, NAME text, OWNER_NAME text, OWNER_TYPE text, CTLG_NAME text,
    CREATE_TIME bigint, DB_MANAGED_LOCATION_URI text, TYPE text, DATACONNECTOR_NAME text, REMOTE_DBNAME text
DATABASE_PARAMS: DB_ID bigint, PARAM_KEY text, PARAM_VALUE text
TBLS: TBL_ID bigint, CREATE_TIME bigint, DB_ID bigint, LAST_ACCESS_TIME bigint, OWNER text, OWNER_TYPE text,
    RETENTION bigint, SD_ID bigint, TBL_NAME text, TBL_TYPE text, VIEW_EXPANDED_TEXT text, VIEW_ORIGINAL_TEXT
    text, IS_REWRITE_ENABLED boolean, WRITE_ID bigint
SDS: SD_ID bigint, INPUT_FORMAT text, IS_COMPRESSED boolean, LOCATION text, NUM_BUCKETS bigint, OUTPUT_FORMAT
    text, SERDE_ID bigint, CD_ID bigint, IS_STOREDASSUBDIRECTORIES boolean
SD_PARAMS: SD_ID bigint, PARAM_KEY text, PARAM_VALUE text
COLUMNS_V2: CD_ID bigint, COMMENT text, COLUMN_NAME text, TYPE_NAME text, INTEGER_IDX int
SERDES: SERDE_ID bigint, NAME text, SLIB text, DESCRIPTION text, SERIALIZER_CLASS text, DESERIALIZER_CLASS text,
    SERDE_TYPE int
SERDE_PARAMS: SERDE_ID bigint, PARAM_KEY text, PARAM_VALUE text
TABLE_PARAMS: TBL_ID bigint, PARAM_KEY text, PARAM_VALUE text
PARTITION_KEYS: TBL_ID bigint, PKEY_COMMENT text, PKEY_NAME text, PKEY_TYPE text, INTEGER_IDX bigint
BUCKETING_COLS: SD_ID bigint, BUCKET_COL_NAME text, INTEGER_IDX bigint
SORT_COLS: SD_ID bigint, COLUMN_NAME text, ORDER bigint, INTEGER_IDX bigint
SKEWED_COL_NAMES: SD_ID bigint, SKEWED_COL_NAME text, INTEGER_IDX bigint
SKEWED_VALUES: SD_ID_OID bigint, STRING_LIST_ID_EID bigint, INTEGER_IDX bigint
SKEWED_STRING_LIST_VALUES: STRING_LIST_ID bigint, STRING_LIST_VALUE text, INTEGER_IDX bigint
SKEWED_COL_VALUE_LOC_MAP: SD_ID bigint, STRING_LIST_ID_KID bigint, LOCATION text
PARTITIONS: PART_ID bigint, CREATE_TIME bigint, LAST_ACCESS_TIME bigint, PART_NAME text, SD_ID bigint, TBL_ID
    bigint, WRITE_ID bigint
PARTITION_KEY_VALS: PART_ID bigint, PART_KEY_VAL text, INTEGER_IDX bigint
PARTITION_PARAMS: PART_ID bigint, PARAM_KEY text, PARAM_VALUE text
FUNCS: FUNC_ID bigint, CLASS_NAME text, CREATE_TIME int, DB_ID bigint, FUNC_NAME text, FUNC_TYPE int, OWNER_NAME
    text, OWNER_TYPE text
FUNC_RU: FUNC_ID bigint, RESOURCE_TYPE int, RESOURCE_URI text, INTEGER_IDX int
KEY_CONSTRAINTS: CHILD_CD_ID bigint, CHILD_INTEGER_IDX bigint, CHILD_TBL_ID bigint, PARENT_CD_ID bigint,
    PARENT_INTEGER_IDX bigint, PARENT_TBL_ID bigint, POSITION bigint, CONSTRAINT_NAME text, CONSTRAINT_TYPE
    smallint, UPDATE_RULE smallint, DELETE_RULE smallint, ENABLE_VALIDATE_RELY smallint, DEFAULT_VALUE text
TAB_COL_STATS: CS_ID bigint, CAT_NAME text, DB_NAME text, TABLE_NAME text, COLUMN_NAME text, COLUMN_TYPE text,
    TBL_ID bigint, LONG_LOW_VALUE bigint, LONG_HIGH_VALUE bigint, DOUBLE_LOW_VALUE float8, DOUBLE_HIGH_VALUE
    float8, BIG_DECIMAL_LOW_VALUE text, BIG_DECIMAL_HIGH_VALUE text, NUM_NULLS bigint, NUM_DISTINCTS bigint,
    BIT_VECTOR bytea, AVG_COL_LEN float8, MAX_COL_LEN bigint, NUM_TRUES bigint, NUM_FALSES bigint, LAST_ANALYZED
    bigint, ENGINE text, HISTOGRAM bytea
PART_COL_STATS: CS_ID bigint, CAT_NAME text, DB_NAME text, TABLE_NAME text, PARTITION_NAME text, COLUMN_NAME
    text, COLUMN_TYPE text, PART_ID bigint, LONG_LOW_VALUE bigint, LONG_HIGH_VALUE bigint, DOUBLE_LOW_VALUE
    float8, DOUBLE_HIGH_VALUE float8, BIG_DECIMAL_LOW_VALUE text, BIG_DECIMAL_HIGH_VALUE text, NUM_NULLS bigint,
    NUM_DISTINCTS bigint, BIT_VECTOR bytea, AVG_COL_LEN float8, MAX_COL_LEN bigint, NUM_TRUES bigint, NUM_FALSES
    bigint, LAST_ANALYZED bigint, ENGINE text, HISTOGRAM bytea
ROLES: ROLE_ID bigint, CREATE_TIME bigint, OWNER_NAME text, ROLE_NAME text
ROLE_MAP: ROLE_GRANT_ID bigint, ADD_TIME bigint, GRANT_OPTION smallint, GRANTOR text, GRANTOR_TYPE text,
    PRINCIPAL_NAME text, PRINCIPAL_TYPE text, ROLE_ID bigint
GLOBAL_PRIVS: USER_GRANT_ID bigint, CREATE_TIME bigint, GRANT_OPTION smallint, GRANTOR text, GRANTOR_TYPE text,
    PRINCIPAL_NAME text, PRINCIPAL_TYPE text, USER_PRIV text, AUTHORIZER text
DB_PRIVS: DB_GRANT_ID bigint, CREATE_TIME bigint, DB_ID bigint, GRANT_OPTION smallint, GRANTOR text,
    GRANTOR_TYPE text, PRINCIPAL_NAME text, PRINCIPAL_TYPE text, DB_PRIV text, AUTHORIZER text
TBL_PRIVS: TBL_GRANT_ID bigint, CREATE_TIME bigint, GRANT_OPTION smallint, GRANTOR text, GRANTOR_TYPE text,
    PRINCIPAL_NAME text, PRINCIPAL_TYPE text, TBL_PRIV text, TBL_ID bigint, AUTHORIZER text
TBL_COL_PRIVS: TBL_COLUMN_GRANT_ID bigint, COLUMN_NAME text, CREATE_TIME bigint, GRANT_OPTION smallint, GRANTOR
    text, GRANTOR_TYPE text, PRINCIPAL_NAME text, PRINCIPAL_TYPE text, TBL_COL_PRIV text, TBL_ID bigint,
    AUTHORIZER text
PART_PRIVS: PART_GRANT_ID bigint, CREATE_TIME bigint, GRANT_OPTION smallint, GRANTOR text, GRANTOR_TYPE text,
    PART_ID bigint, PRINCIPAL_NAME text, PRINCIPAL_TYPE text, PART_PRIV text, AUTHORIZER text
PART_COL_PRIVS: PART_COLUMN_GRANT_ID bigint, COLUMN_NAME text, CREATE_TIME bigint, GRANT_OPTION smallint,
    GRANTOR text, GRANTOR_TYPE text, PART_ID bigint, PRINCIPAL_NAME text, PRINCIPAL_TYPE text, PART_COL_PRIV
    text, AUTHORIZER text
MV_CREATION_METADATA: MV_CREATION_METADATA_ID bigint, CAT_NAME text, DB_NAME text, TBL_NAME text, TXN_LIST text,
    MATERIALIZATION_TIME bigint
MV_TABLES_USED: MV_CREATION_METADATA_ID bigint, TBL_ID bigint, INSERTED_COUNT bigint, UPDATED_COUNT bigint,
    DELETED_COUNT bigint
METASTORE_DB_PROPERTIES: PROPERTY_KEY text, PROPERTY_VALUE text
TXNS: TXN_ID bigint, TXN_STATE char, TXN_USER text, TXN_HOST text, TXN_TYPE int
TXN_COMPONENTS: TC_TXNID bigint, TC_DATABASE text, TC_TABLE text, TC_PARTITION text, TC_OPERATION_TYPE char,
    TC_WRITEID bigint
TXN_TO_WRITE_ID: T2W_TXNID bigint, T2W_DATABASE text, T2W_TABLE text, T2W_WRITEID bigint
NEXT_WRITE_ID: NWI_DATABASE text, NWI_TABLE text, NWI_NEXT bigint
COMPACTION_QUEUE: CQ_ID bigint, CQ_DATABASE text, CQ_TABLE text, CQ_PARTITION text, CQ_STATE char, CQ_TYPE char,
    CQ_TXN_ID bigint
COMPLETED_COMPACTIONS: CC_ID bigint, CC_DATABASE text, CC_TABLE text, CC_PARTITION text, CC_STATE char, CC_TYPE
    char, CC_TXN_ID bigint
"""
_SHORT = {
    "IN": f"{ORC}OrcInputFormat",
    "OUT": f"{ORC}OrcOutputFormat",
    "SERDE": f"{ORC}OrcSerde",
    "W": "file:/old/warehouse",
}

_ROWS = r"""
CTLGS|1|hive|Default catalog for Hive|W|\N
CTLGS|2|lake|d|file:/old/lake|1795331416
DBS|1|Default Hive database|W|default|public|ROLE|hive|1795330980|\N|NATIVE|\N|\N
DBS|4|of goods|W/sales.db|sales|root|USER|hive|1795331413|\N|NATIVE|\N|\N
DBS|5|Default database for catalog lake|file:/old/lake|default|root|USER|lake|1795331416|\N|NATIVE|\N|\N
DBS|6|\N|file:/old/lake/raw|raw|root|USER|lake|1795331416|\N|NATIVE|\N|\N
DATABASE_PARAMS|4|k|v
TBLS|6|1795331413|4|0|ann|USER|0|6|plain|MANAGED_TABLE|\N|\N|False|0
TBLS|7|1795331413|4|0|ann|USER|0|7|orders|MANAGED_TABLE|\N|\N|False|-1
TBLS|8|1795331413|4|0|ann|USER|0|8|items|MANAGED_TABLE|\N|\N|False|-1
TBLS|9|1795331413|4|0|ann|USER|0|9|recent|VIRTUAL_VIEW|select 1|select 1|False|0
TBLS|10|1795331416|6|0|ann|USER|0|13|logs|MANAGED_TABLE|\N|\N|False|0
SDS|6|IN|False|W/sales.db/plain|0|OUT|6|6|False
SDS|7|IN|False|W/sales.db/orders|0|OUT|7|7|False
SDS|8|IN|False|W/sales.db/items|0|OUT|8|8|False
SDS|9|IN|False|\N|0|OUT|9|9|False
SDS|10|IN|False|W/sales.db/items/day=2024-01-01/country=de|0|OUT|10|8|False
SDS|11|IN|False|W/sales.db/items/day=2024-01-02/country=fr%2Fx|0|OUT|11|8|False
SDS|12|IN|False|W/sales.db/items/day=2024-01-03/country=__HIVE_DEFAULT_PARTITION__|0|OUT|12|8|False
SDS|13|IN|False|file:/old/lake/raw/logs|0|OUT|13|10|False
COLUMNS_V2|6|the key|id|bigint|0
COLUMNS_V2|6|\N|text|string|1
COLUMNS_V2|7|the key|id|bigint|0
COLUMNS_V2|7|\N|text|string|1
COLUMNS_V2|8|the key|id|bigint|0
COLUMNS_V2|8|\N|text|string|1
COLUMNS_V2|9|the key|id|bigint|0
COLUMNS_V2|9|\N|text|string|1
COLUMNS_V2|10|the key|id|bigint|0
COLUMNS_V2|10|\N|text|string|1
SERDES|6|\N|SERDE|\N|\N|\N|0
SERDES|7|\N|SERDE|\N|\N|\N|0
SERDES|8|\N|SERDE|\N|\N|\N|0
SERDES|9|\N|SERDE|\N|\N|\N|0
SERDES|10|\N|SERDE|\N|\N|\N|0
SERDES|11|\N|SERDE|\N|\N|\N|0
SERDES|12|\N|SERDE|\N|\N|\N|0
SERDES|13|\N|SERDE|\N|\N|\N|0
SERDE_PARAMS|6|serialization.format|1
SERDE_PARAMS|7|serialization.format|1
SERDE_PARAMS|8|serialization.format|1
SERDE_PARAMS|9|serialization.format|1
SERDE_PARAMS|10|serialization.format|1
SERDE_PARAMS|11|serialization.format|1
SERDE_PARAMS|12|serialization.format|1
SERDE_PARAMS|13|serialization.format|1
TABLE_PARAMS|6|transient_lastDdlTime|1795331413
TABLE_PARAMS|6|comment|not ACID
TABLE_PARAMS|7|transactional_properties|insert_only
TABLE_PARAMS|7|transient_lastDdlTime|1795331413
TABLE_PARAMS|7|transactional|true
TABLE_PARAMS|8|transactional_properties|insert_only
TABLE_PARAMS|8|transient_lastDdlTime|1795331413
TABLE_PARAMS|8|transactional|true
TABLE_PARAMS|9|transient_lastDdlTime|1795331413
TABLE_PARAMS|6|COLUMN_STATS_ACCURATE|{"COLUMN_STATS":{"id":"true","text":"true"}}
TABLE_PARAMS|10|transient_lastDdlTime|1795331416
PARTITION_KEYS|8|\N|day|string|0
PARTITION_KEYS|8|\N|country|string|1
PARTITION_KEYS|10|\N|day|string|0
PARTITIONS|1|1795331414|0|day=2024-01-01/country=de|10|8|0
PARTITIONS|2|1795331414|0|day=2024-01-02/country=fr%2Fx|11|8|0
PARTITIONS|3|1795331414|0|day=2024-01-03/country=__HIVE_DEFAULT_PARTITION__|12|8|0
PARTITION_KEY_VALS|1|2024-01-01|0
PARTITION_KEY_VALS|1|de|1
PARTITION_KEY_VALS|2|2024-01-02|0
PARTITION_KEY_VALS|2|fr/x|1
PARTITION_KEY_VALS|3|2024-01-03|0
PARTITION_KEY_VALS|3||1
PARTITION_PARAMS|1|numRows|0
PARTITION_PARAMS|1|transient_lastDdlTime|1795331414
PARTITION_PARAMS|2|numRows|1
PARTITION_PARAMS|2|transient_lastDdlTime|1795331414
PARTITION_PARAMS|3|numRows|2
PARTITION_PARAMS|3|transient_lastDdlTime|1795331414
FUNCS|1|x.Mask|1795331415|4|mask|1|ann|USER
FUNC_RU|1|1|file:/x.jar|0
KEY_CONSTRAINTS|\N|\N|\N|7|0|7|1|pk1|0|\N|\N|1|\N
KEY_CONSTRAINTS|8|0|8|7|0|7|1|fk1|1|0|0|1|\N
KEY_CONSTRAINTS|\N|\N|\N|7|1|7|1|nn1|3|\N|\N|5|\N
TAB_COL_STATS|1|hive|sales|plain|id|bigint|6|-3|9|\N|\N|\N|\N|1|4|484c|\N|\N|\N|\N|1795331415|hive|
TAB_COL_STATS|2|hive|sales|plain|text|string|6|\N|\N|\N|\N|\N|\N|1|4|484c|2.5|9|\N|\N|1795331415|hive|
ROLES|1|1795330980|admin|admin
ROLES|2|1795330980|public|public
ROLES|3|1795331415|ann|analyst
ROLE_MAP|1|1795331415|1|ann|USER|bob|USER|3
GLOBAL_PRIVS|1|1795330980|1|admin|ROLE|admin|ROLE|All|SQL
DB_PRIVS|1|1795331415|4|0|ann|USER|analyst|ROLE|ALL|SQL
TBL_PRIVS|1|1795331415|1|ann|USER|bob|USER|SELECT|6|SQL
METASTORE_DB_PROPERTIES|guid|62a4b564-58e7-4c9d-95b6-226b6987b974
TXNS|2|a|ann|host1|0
TXNS|5|a|ann|host1|0
TXNS|7|a|ann|host1|0
TXN_COMPONENTS|2|sales|orders|\N|i|2
TXN_COMPONENTS|5|sales|orders|\N|i|5
TXN_COMPONENTS|7|sales|items|day=2024-01-01/country=de|i|2
TXN_TO_WRITE_ID|2|sales|orders|2
TXN_TO_WRITE_ID|3|sales|orders|3
TXN_TO_WRITE_ID|4|sales|orders|4
TXN_TO_WRITE_ID|5|sales|orders|5
TXN_TO_WRITE_ID|6|sales|items|1
TXN_TO_WRITE_ID|7|sales|items|2
NEXT_WRITE_ID|sales|orders|6
NEXT_WRITE_ID|sales|items|3
BUCKETING_COLS|6|id|0
SORT_COLS|6|text|1|0
SKEWED_COL_NAMES|6|text|0
SKEWED_VALUES|6|1|0
SKEWED_STRING_LIST_VALUES|1|x|0
SKEWED_COL_VALUE_LOC_MAP|6|1|W/sales.db/plain/text=x
SD_PARAMS|6|some|thing
PART_COL_STATS|3|hive|sales|items|day=2024-01-01/country=de|id|decimal(5,2)|1|\N|\N|\N|\N|-1.25|9.5|0|3|\N|\N|\N|\N|\N|77|hive|\N
PART_PRIVS|1|5|0|ann|USER|1|bob|USER|SELECT|SQL
TBL_COL_PRIVS|1|id|5|0|ann|USER|bob|USER|SELECT|6|SQL
TXNS|1|a|ann|host1|4
TXN_COMPONENTS|1|sales|items|day=2024-01-02/country=fr%2Fx|c|\N
COMPACTION_QUEUE|1|sales|items|day=2024-01-02/country=fr%2Fx|i|a|\N
COMPLETED_COMPACTIONS|2|sales|orders|\N|f|a|1
"""


def create(url: str) -> None:
    """Make the tables with their rows in an empty database."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    types: dict[str, list[str]] = {}
    with connection.cursor() as cursor:
        for line in _TABLES.replace("\n    ", " ").strip().splitlines():
            table, _, columns = line.partition(": ")
            named = [column.split(" ") for column in columns.split(", ")]
            definitions = [f'"{name}" {kind}' for name, kind in named]
            cursor.execute(f'CREATE TABLE "{table}" ({", ".join(definitions)})')
            types[table] = [kind for _, kind in named]
        for line in _ROWS.strip().splitlines():
            table, *fields = line.split("|")
            values = [_value(kind, field) for kind, field in zip(types[table], fields, strict=True)]
            cursor.execute(f'INSERT INTO "{table}" VALUES ({", ".join(["%s"] * len(values))})', values)
    connection.close()


def _value(kind: str, field: str) -> str | bytes | None:
    if field == r"\N":
        return None
    if kind == "bytea":
        return bytes.fromhex(field)
    for short, long in _SHORT.items():
        if field == short or field.startswith(f"{short}/"):
            return field.replace(short, long, 1)
    return field
