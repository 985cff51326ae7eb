// ThriftHiveMetastore as hive-acid speaks it: the union of the methods and structs of Hive 2.3.10, 3.1.3, 4.0.1,
// 4.1.0 and 4.2.0, read from their compiled classes. Where releases differ: docs/spec/wire.md §1.
//
// Rules of this file:
// - No field has a default. A reader must see "absent" as absent (None), because absence means something:
//   `exclWriteEnabled` absent asks for the write-conflict check, `txn_type` absent is an ordinary transaction,
//   `operationType` absent is refused inside a transaction. The server applies Hive's defaults itself.
// - Where one field number had two forms, the newest stands here. `GetOpenTxnsResponse.open_txns` is written
//   in both forms by hive_acid.wire, so that clients of every generation find theirs.
// - Entries are in alphabetical order within their kind.

namespace py hive_metastore

// --- enums ---

enum ClientCapability {
  TEST_CAPABILITY = 1,
  INSERT_ONLY_TABLES = 2
}

enum CompactionMetricsMetricType {
  NUM_OBSOLETE_DELTAS = 0,
  NUM_DELTAS = 1,
  NUM_SMALL_DELTAS = 2
}

enum CompactionType {
  MINOR = 1,
  MAJOR = 2,
  REBALANCE = 3,
  ABORT_TXN_CLEANUP = 4,
  SMART_OPTIMIZE = 5
}

enum DataOperationType {
  SELECT = 1,
  INSERT = 2,
  UPDATE = 3,
  DELETE = 4,
  UNSET = 5,
  NO_TXN = 6
}

enum DatabaseType {
  NATIVE = 1,
  REMOTE = 2
}

enum EventRequestType {
  INSERT = 1,
  UPDATE = 2,
  DELETE = 3
}

enum FileMetadataExprType {
  ORC_SARG = 1
}

enum FunctionType {
  JAVA = 1
}

enum GetTablesExtRequestFields {
  ACCESS_TYPE = 1,
  PROCESSOR_CAPABILITIES = 2,
  ALL = 2147483647
}

enum GrantRevokeType {
  GRANT = 1,
  REVOKE = 2
}

enum HiveObjectType {
  GLOBAL = 1,
  DATABASE = 2,
  TABLE = 3,
  PARTITION = 4,
  COLUMN = 5,
  DATACONNECTOR = 6
}

enum LockLevel {
  DB = 1,
  TABLE = 2,
  PARTITION = 3
}

enum LockState {
  ACQUIRED = 1,
  WAITING = 2,
  ABORT = 3,
  NOT_ACQUIRED = 4
}

enum LockType {
  SHARED_READ = 1,
  SHARED_WRITE = 2,
  EXCLUSIVE = 3,
  EXCL_WRITE = 4
}

enum PartitionEventType {
  LOAD_DONE = 1
}

enum PartitionFilterMode {
  BY_NAMES = 0,
  BY_VALUES = 1,
  BY_EXPR = 2
}

enum PrincipalType {
  USER = 1,
  ROLE = 2,
  GROUP = 3
}

enum QueryState {
  INITED = 0,
  EXECUTING = 1,
  FAILED = 2,
  FINISHED = 3,
  TIMED_OUT = 4,
  AUTO_DISABLED = 5
}

enum ResourceType {
  JAR = 1,
  FILE = 2,
  ARCHIVE = 3
}

enum ScheduledQueryMaintenanceRequestType {
  CREATE = 1,
  ALTER = 2,
  DROP = 3
}

enum SchemaCompatibility {
  NONE = 1,
  BACKWARD = 2,
  FORWARD = 3,
  BOTH = 4
}

enum SchemaType {
  HIVE = 1,
  AVRO = 2
}

enum SchemaValidation {
  LATEST = 1,
  ALL = 2
}

enum SchemaVersionState {
  INITIATED = 1,
  START_REVIEW = 2,
  CHANGES_REQUIRED = 3,
  REVIEWED = 4,
  ENABLED = 5,
  DISABLED = 6,
  ARCHIVED = 7,
  DELETED = 8
}

enum SerdeType {
  HIVE = 1,
  SCHEMA_REGISTRY = 2
}

enum TxnState {
  COMMITTED = 1,
  ABORTED = 2,
  OPEN = 3
}

enum TxnType {
  DEFAULT = 0,
  REPL_CREATED = 1,
  READ_ONLY = 2,
  COMPACTION = 3,
  MATER_VIEW_REBUILD = 4,
  SOFT_DELETE = 5,
  REBALANCE_COMPACTION = 6
}

enum WMPoolSchedulingPolicy {
  FAIR = 1,
  FIFO = 2
}

enum WMResourcePlanStatus {
  ACTIVE = 1,
  ENABLED = 2,
  DISABLED = 3
}

enum fb_status {
  DEAD = 0,
  STARTING = 1,
  ALIVE = 2,
  STOPPING = 3,
  STOPPED = 4,
  WARNING = 5
}

// --- constants ---

const byte ACCESSTYPE_NONE = 1
const byte ACCESSTYPE_READONLY = 2
const byte ACCESSTYPE_READWRITE = 8
const byte ACCESSTYPE_WRITEONLY = 4
const string BUCKET_COUNT = "bucket_count"
const string BUCKET_FIELD_NAME = "bucket_field_name"
const string CTAS_LEGACY_CONFIG = "create_table_as_external"
const string DDL_TIME = "transient_lastDdlTime"
const string DEFAULT_TABLE_TYPE = "defaultTableType"
const string DRUID_CONFIG_PREFIX = "druid."
const string EXPECTED_PARAMETER_KEY = "expected_parameter_key"
const string EXPECTED_PARAMETER_VALUE = "expected_parameter_value"
const string FIELD_TO_DIMENSION = "field_to_dimension"
const string FILE_INPUT_FORMAT = "file.inputformat"
const string FILE_OUTPUT_FORMAT = "file.outputformat"
const string HIVE_FILTER_FIELD_LAST_ACCESS = "hive_filter_field_last_access__"
const string HIVE_FILTER_FIELD_OWNER = "hive_filter_field_owner__"
const string HIVE_FILTER_FIELD_PARAMS = "hive_filter_field_params__"
const string HIVE_FILTER_FIELD_TABLE_NAME = "hive_filter_field_tableName__"
const string HIVE_FILTER_FIELD_TABLE_TYPE = "hive_filter_field_tableType__"
const string IF_PURGE = "ifPurge"
const string IS_ARCHIVED = "is_archived"
const string IS_IMMUTABLE = "immutable"
const string JDBC_CONFIG_PREFIX = "hive.sql."
const string META_TABLE_COLUMNS = "columns"
const string META_TABLE_COLUMN_TYPES = "columns.types"
const string META_TABLE_DB = "db"
const string META_TABLE_LOCATION = "location"
const string META_TABLE_NAME = "name"
const string META_TABLE_PARTITION_COLUMNS = "partition_columns"
const string META_TABLE_PARTITION_COLUMN_TYPES = "partition_columns.types"
const string META_TABLE_SERDE = "serde"
const string META_TABLE_STORAGE = "storage_handler"
const string NO_AUTO_COMPACT = "no_auto_compaction"
const string NO_CLEANUP = "no_cleanup"
const string ORIGINAL_LOCATION = "original_location"
const string PARTITION_TRANSFORM_SPEC = "partition_transform_spec"
const string TABLE_BUCKETING_VERSION = "bucketing_version"
const string TABLE_IS_CTAS = "created_with_ctas"
const string TABLE_IS_CTLT = "created_with_ctlt"
const string TABLE_IS_TRANSACTIONAL = "transactional"
const string TABLE_NO_AUTO_COMPACT = "no_auto_compaction"
const string TABLE_TRANSACTIONAL_PROPERTIES = "transactional_properties"
const string TXN_ID = "txnId"
const string WRITE_ID = "writeId"

// --- structs, unions and exceptions ---

struct AbortCompactResponse {
  1: required map<i64,AbortCompactionResponseElement> abortedcompacts
}

struct AbortCompactionRequest {
  1: required list<i64> compactionIds
  2: optional string type
  3: optional string poolName
}

struct AbortCompactionResponseElement {
  1: required i64 compactionId
  2: optional string status
  3: optional string message
}

struct AbortTxnRequest {
  1: required i64 txnid
  2: optional string replPolicy
  3: optional TxnType txn_type
  4: optional i64 errorCode
}

struct AbortTxnsRequest {
  1: required list<i64> txn_ids
  2: optional i64 errorCode
}

struct AddCheckConstraintRequest {
  1: required list<SQLCheckConstraint> checkConstraintCols
}

struct AddDefaultConstraintRequest {
  1: required list<SQLDefaultConstraint> defaultConstraintCols
}

struct AddDynamicPartitions {
  1: required i64 txnid
  2: required i64 writeid
  3: required string dbname
  4: required string tablename
  5: required list<string> partitionnames
  6: optional DataOperationType operationType
  // Of hive-acid alone: the whole table counts as touched, too, since keys are compared over all of it.
  1001: optional bool alsoWholeTable
}

struct AddForeignKeyRequest {
  1: required list<SQLForeignKey> foreignKeyCols
}

struct AddNotNullConstraintRequest {
  1: required list<SQLNotNullConstraint> notNullConstraintCols
}

struct AddPackageRequest {
  1: string catName
  2: string dbName
  3: string packageName
  4: string ownerName
  5: string header
  6: string body
}

struct AddPartitionsRequest {
  1: required string dbName
  2: required string tblName
  3: required list<Partition> parts
  4: required bool ifNotExists
  5: optional bool needResult
  6: optional string catName
  7: optional string validWriteIdList
  8: optional bool skipColumnSchemaForPartition
  9: optional list<FieldSchema> partitionColSchema
  10: optional EnvironmentContext environmentContext
}

struct AddPartitionsResult {
  1: optional list<Partition> partitions
  2: optional bool isStatsCompliant
  3: optional list<FieldSchema> partitionColSchema
}

struct AddPrimaryKeyRequest {
  1: required list<SQLPrimaryKey> primaryKeyCols
}

struct AddUniqueConstraintRequest {
  1: required list<SQLUniqueConstraint> uniqueConstraintCols
}

struct AggrStats {
  1: required list<ColumnStatisticsObj> colStats
  2: required i64 partsFound
  3: optional bool isStatsCompliant
}

struct AllTableConstraintsRequest {
  1: required string dbName
  2: required string tblName
  3: required string catName
  4: optional string validWriteIdList
  5: optional i64 tableId
}

struct AllTableConstraintsResponse {
  1: required SQLAllTableConstraints allTableConstraints
}

struct AllocateTableWriteIdsRequest {
  1: required string dbName
  2: required string tableName
  3: optional list<i64> txnIds
  4: optional string replPolicy
  5: optional list<TxnToWriteId> srcTxnToWriteIdList
  6: optional bool reallocate
}

struct AllocateTableWriteIdsResponse {
  1: required list<TxnToWriteId> txnToWriteIds
}

exception AlreadyExistsException {
  1: string message
}

struct AlterCatalogRequest {
  1: string name
  2: Catalog newCat
}

struct AlterDataConnectorRequest {
  1: required string connectorName
  2: required DataConnector newConnector
}

struct AlterDatabaseRequest {
  1: required string oldDbName
  2: required Database newDb
}

struct AlterISchemaRequest {
  1: ISchemaName name
  3: ISchema newSchema
}

struct AlterPartitionsRequest {
  1: optional string catName
  2: required string dbName
  3: required string tableName
  4: required list<Partition> partitions
  5: optional EnvironmentContext environmentContext
  6: optional i64 writeId
  7: optional string validWriteIdList
  8: optional bool skipColumnSchemaForPartition
  9: optional list<FieldSchema> partitionColSchema
}

struct AlterPartitionsResponse {
}

struct AlterTableRequest {
  1: optional string catName
  2: required string dbName
  3: required string tableName
  4: required Table table
  5: optional EnvironmentContext environmentContext
  6: optional i64 writeId
  7: optional string validWriteIdList
  8: optional list<string> processorCapabilities
  9: optional string processorIdentifier
  10: optional string expectedParameterKey
  11: optional string expectedParameterValue
}

struct AlterTableResponse {
}

struct AppendPartitionsRequest {
  1: optional string catalogName
  2: required string dbName
  3: required string tableName
  4: optional string name
  5: optional list<string> partVals
  6: optional EnvironmentContext environmentContext
}

struct BasicTxnInfo {
  1: required bool isnull
  2: optional i64 time
  3: optional i64 txnid
  4: optional string dbname
  5: optional string tablename
  6: optional string partitionname
}

struct BinaryColumnStatsData {
  1: required i64 maxColLen
  2: required double avgColLen
  3: required i64 numNulls
  4: optional binary bitVectors
}

struct BooleanColumnStatsData {
  1: required i64 numTrues
  2: required i64 numFalses
  3: required i64 numNulls
  4: optional binary bitVectors
}

struct CacheFileMetadataRequest {
  1: required string dbName
  2: required string tblName
  3: optional string partName
  4: optional bool isAllParts
}

struct CacheFileMetadataResult {
  1: required bool isSupported
}

struct Catalog {
  1: string name
  2: optional string description
  3: string locationUri
  4: optional i32 createTime
  5: optional map<string,string> parameters
}

struct CheckConstraintsRequest {
  1: required string catName
  2: required string db_name
  3: required string tbl_name
  4: optional string validWriteIdList
  5: optional i64 tableId
}

struct CheckConstraintsResponse {
  1: required list<SQLCheckConstraint> checkConstraints
}

struct CheckLockRequest {
  1: required i64 lockid
  2: optional i64 txnid
  3: optional i64 elapsed_ms
}

struct ClearFileMetadataRequest {
  1: required list<i64> fileIds
}

struct ClearFileMetadataResult {
}

struct ClientCapabilities {
  1: required list<ClientCapability> values
}

struct CmRecycleRequest {
  1: required string dataPath
  2: required bool purge
}

struct CmRecycleResponse {
}

struct ColumnStatistics {
  1: required ColumnStatisticsDesc statsDesc
  2: required list<ColumnStatisticsObj> statsObj
  3: optional bool isStatsCompliant
  4: optional string engine
}

union ColumnStatisticsData {
  1: BooleanColumnStatsData booleanStats
  2: LongColumnStatsData longStats
  3: DoubleColumnStatsData doubleStats
  4: StringColumnStatsData stringStats
  5: BinaryColumnStatsData binaryStats
  6: DecimalColumnStatsData decimalStats
  7: DateColumnStatsData dateStats
  8: TimestampColumnStatsData timestampStats
}

struct ColumnStatisticsDesc {
  1: required bool isTblLevel
  2: required string dbName
  3: required string tableName
  4: optional string partName
  5: optional i64 lastAnalyzed
  6: optional string catName
}

struct ColumnStatisticsObj {
  1: required string colName
  2: required string colType
  3: required ColumnStatisticsData statsData
}

struct CommitTxnKeyValue {
  1: required i64 tableId
  2: required string key
  3: required string value
}

struct CommitTxnRequest {
  1: required i64 txnid
  2: optional string replPolicy
  3: optional list<WriteEventInfo> writeEventInfos
  4: optional ReplLastIdInfo replLastIdInfo
  5: optional CommitTxnKeyValue keyValue
  6: optional bool exclWriteEnabled
  7: optional TxnType txn_type
}

exception CompactionAbortedException {
  1: string message
}

struct CompactionInfoStruct {
  1: required i64 id
  2: required string dbname
  3: required string tablename
  4: optional string partitionname
  5: required CompactionType type
  6: optional string runas
  7: optional string properties
  8: optional bool toomanyaborts
  9: optional string state
  10: optional string workerId
  11: optional i64 start
  12: optional i64 highestWriteId
  13: optional string errorMessage
  14: optional bool hasoldabort
  15: optional i64 enqueueTime
  16: optional i64 retryRetention
  17: optional string poolname
  18: optional i32 numberOfBuckets
  19: optional string orderByClause
}

struct CompactionMetricsDataRequest {
  1: required string dbName
  2: required string tblName
  3: optional string partitionName
  4: required CompactionMetricsMetricType type
}

struct CompactionMetricsDataResponse {
  1: optional CompactionMetricsDataStruct data
}

struct CompactionMetricsDataStruct {
  1: required string dbname
  2: required string tblname
  3: optional string partitionname
  4: required CompactionMetricsMetricType type
  5: required i32 metricvalue
  6: required i32 version
  7: required i32 threshold
}

struct CompactionRequest {
  1: required string dbname
  2: required string tablename
  3: optional string partitionname
  4: required CompactionType type
  5: optional string runas
  6: optional map<string,string> properties
  7: optional string initiatorId
  8: optional string initiatorVersion
  9: optional string poolName
  10: optional i32 numberOfBuckets
  11: optional string orderByClause
}

struct CompactionResponse {
  1: required i64 id
  2: required string state
  3: required bool accepted
  4: optional string errormessage
}

exception ConfigValSecurityException {
  1: string message
}

struct CreateCatalogRequest {
  1: Catalog catalog
}

struct CreateDataConnectorRequest {
  1: required DataConnector connector
}

struct CreateDatabaseRequest {
  1: required string databaseName
  2: optional string description
  3: optional string locationUri
  4: optional map<string,string> parameters
  5: optional PrincipalPrivilegeSet privileges
  6: optional string ownerName
  7: optional PrincipalType ownerType
  8: optional string catalogName
  9: optional i32 createTime
  10: optional string managedLocationUri
  11: optional DatabaseType type
  12: optional string dataConnectorName
  13: optional string remote_dbname
}

struct CreateTableRequest {
  1: required Table table
  2: optional EnvironmentContext envContext
  3: optional list<SQLPrimaryKey> primaryKeys
  4: optional list<SQLForeignKey> foreignKeys
  5: optional list<SQLUniqueConstraint> uniqueConstraints
  6: optional list<SQLNotNullConstraint> notNullConstraints
  7: optional list<SQLDefaultConstraint> defaultConstraints
  8: optional list<SQLCheckConstraint> checkConstraints
  9: optional list<string> processorCapabilities
  10: optional string processorIdentifier
}

struct CreationMetadata {
  1: required string catName
  2: required string dbName
  3: required string tblName
  4: required set<string> tablesUsed
  5: optional string validTxnList
  6: optional i64 materializationTime
  7: optional list<SourceTable> sourceTables
}

struct CurrentNotificationEventId {
  1: required i64 eventId
}

struct DataConnector {
  1: string name
  2: string type
  3: string url
  4: optional string description
  5: optional map<string,string> parameters
  6: optional string ownerName
  7: optional PrincipalType ownerType
  8: optional i32 createTime
}

struct Database {
  1: string name
  2: string description
  3: string locationUri
  4: map<string,string> parameters
  5: optional PrincipalPrivilegeSet privileges
  6: optional string ownerName
  7: optional PrincipalType ownerType
  8: optional string catalogName
  9: optional i32 createTime
  10: optional string managedLocationUri
  11: optional DatabaseType type
  12: optional string connector_name
  13: optional string remote_dbname
}

struct Date {
  1: required i64 daysSinceEpoch
}

struct DateColumnStatsData {
  1: optional Date lowValue
  2: optional Date highValue
  3: required i64 numNulls
  4: required i64 numDVs
  5: optional binary bitVectors
  6: optional binary histogram
}

struct Decimal {
  1: required binary unscaled
  3: required i16 scale
}

struct DecimalColumnStatsData {
  1: optional Decimal lowValue
  2: optional Decimal highValue
  3: required i64 numNulls
  4: required i64 numDVs
  5: optional binary bitVectors
  6: optional binary histogram
}

struct DefaultConstraintsRequest {
  1: required string catName
  2: required string db_name
  3: required string tbl_name
  4: optional string validWriteIdList
  5: optional i64 tableId
}

struct DefaultConstraintsResponse {
  1: required list<SQLDefaultConstraint> defaultConstraints
}

struct DeleteColumnStatisticsRequest {
  1: optional string cat_name
  2: required string db_name
  3: required string tbl_name
  4: optional list<string> part_names
  5: optional list<string> col_names
  6: optional string engine
  7: optional bool tableLevel
}

struct DoubleColumnStatsData {
  1: optional double lowValue
  2: optional double highValue
  3: required i64 numNulls
  4: required i64 numDVs
  5: optional binary bitVectors
  6: optional binary histogram
}

struct DropCatalogRequest {
  1: string name
  2: optional bool ifExists
}

struct DropConstraintRequest {
  1: required string dbname
  2: required string tablename
  3: required string constraintname
  4: optional string catName
}

struct DropDataConnectorRequest {
  1: required string connectorName
  2: optional bool ifNotExists
  3: optional bool checkReferences
}

struct DropDatabaseRequest {
  1: required string name
  2: optional string catalogName
  3: required bool ignoreUnknownDb
  4: required bool deleteData
  5: required bool cascade
  6: optional bool softDelete
  7: optional i64 txnId
  8: optional bool deleteManagedDir
}

struct DropPackageRequest {
  1: required string catName
  2: required string dbName
  3: required string packageName
}

struct DropPartitionRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: optional string partName
  5: optional list<string> partVals
  6: optional bool deleteData
  7: optional EnvironmentContext environmentContext
}

struct DropPartitionsExpr {
  1: required binary expr
  2: optional i32 partArchiveLevel
}

struct DropPartitionsRequest {
  1: required string dbName
  2: required string tblName
  3: required RequestPartsSpec parts
  4: optional bool deleteData
  5: optional bool ifExists
  6: optional bool ignoreProtection
  7: optional EnvironmentContext environmentContext
  8: optional bool needResult
  9: optional string catName
  10: optional bool skipColumnSchemaForPartition
}

struct DropPartitionsResult {
  1: optional list<Partition> partitions
}

struct DropTableRequest {
  1: optional string catalogName
  2: required string dbName
  3: required string tableName
  4: optional bool deleteData
  5: optional EnvironmentContext envContext
  6: optional bool dropPartitions
}

struct EnvironmentContext {
  1: map<string,string> properties
}

struct ExtendedTableInfo {
  1: required string tblName
  2: optional i32 accessType
  3: optional list<string> requiredReadCapabilities
  4: optional list<string> requiredWriteCapabilities
}

struct FieldSchema {
  1: string name
  2: string type
  3: string comment
}

struct FileMetadata {
  1: byte type
  2: byte version
  3: list<binary> data
}

struct FindNextCompactRequest {
  1: optional string workerId
  2: optional string workerVersion
  3: optional string poolName
}

struct FindSchemasByColsResp {
  1: list<SchemaVersionDescriptor> schemaVersions
}

struct FindSchemasByColsRqst {
  1: optional string colName
  2: optional string colNamespace
  3: optional string type
}

struct FireEventRequest {
  1: required bool successful
  2: required FireEventRequestData data
  3: optional string dbName
  4: optional string tableName
  5: optional list<string> partitionVals
  6: optional string catName
  7: optional map<string,string> tblParams
  8: optional list<list<string>> batchPartitionValsForRefresh
}

union FireEventRequestData {
  1: InsertEventRequestData insertData
  2: list<InsertEventRequestData> insertDatas
  3: bool refreshEvent
}

struct FireEventResponse {
  1: list<i64> eventIds
}

struct ForeignKeysRequest {
  1: string parent_db_name
  2: string parent_tbl_name
  3: string foreign_db_name
  4: string foreign_tbl_name
  5: optional string catName
  6: optional string validWriteIdList
  7: optional i64 tableId
}

struct ForeignKeysResponse {
  1: required list<SQLForeignKey> foreignKeys
}

struct Function {
  1: string functionName
  2: string dbName
  3: string className
  4: string ownerName
  5: PrincipalType ownerType
  6: i32 createTime
  7: FunctionType functionType
  8: list<ResourceUri> resourceUris
  9: optional string catName
}

struct GetAllFunctionsResponse {
  1: optional list<Function> functions
}

struct GetAllWriteEventInfoRequest {
  1: required i64 txnId
  2: optional string dbName
  3: optional string tableName
}

struct GetCatalogRequest {
  1: string name
}

struct GetCatalogResponse {
  1: Catalog catalog
}

struct GetCatalogsResponse {
  1: list<string> names
}

struct GetDataConnectorRequest {
  1: required string connectorName
}

struct GetDatabaseObjectsRequest {
  1: optional string catalogName
  2: optional string pattern
}

struct GetDatabaseObjectsResponse {
  1: required list<Database> databases
}

struct GetDatabaseRequest {
  1: optional string name
  2: optional string catalogName
  3: optional list<string> processorCapabilities
  4: optional string processorIdentifier
}

struct GetFieldsRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: optional EnvironmentContext envContext
  5: optional string validWriteIdList
  6: optional i64 id
}

struct GetFieldsResponse {
  1: required list<FieldSchema> fields
}

struct GetFileMetadataByExprRequest {
  1: required list<i64> fileIds
  2: required binary expr
  3: optional bool doGetFooters
  4: optional FileMetadataExprType type
}

struct GetFileMetadataByExprResult {
  1: required map<i64,MetadataPpdResult> metadata
  2: required bool isSupported
}

struct GetFileMetadataRequest {
  1: required list<i64> fileIds
}

struct GetFileMetadataResult {
  1: required map<i64,binary> metadata
  2: required bool isSupported
}

struct GetFunctionsRequest {
  1: required string dbName
  2: optional string catalogName
  3: optional string pattern
  4: optional bool returnNames
}

struct GetFunctionsResponse {
  1: optional list<string> function_names
  2: optional list<Function> functions
}

struct GetLatestCommittedCompactionInfoRequest {
  1: required string dbname
  2: required string tablename
  3: optional list<string> partitionnames
  4: optional i64 lastCompactionId
}

struct GetLatestCommittedCompactionInfoResponse {
  1: required list<CompactionInfoStruct> compactions
}

struct GetOpenTxnsInfoResponse {
  1: required i64 txn_high_water_mark
  2: required list<TxnInfo> open_txns
}

struct GetOpenTxnsRequest {
  1: optional list<TxnType> excludeTxnTypes
}

struct GetOpenTxnsResponse {
  1: required i64 txn_high_water_mark
  2: required list<i64> open_txns
  3: optional i64 min_open_txn
  4: required binary abortedBits
}

struct GetPackageRequest {
  1: required string catName
  2: required string dbName
  3: required string packageName
}

struct GetPartitionNamesPsRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: optional list<string> partValues
  5: optional i16 maxParts
  6: optional string validWriteIdList
  7: optional i64 id
}

struct GetPartitionNamesPsResponse {
  1: required list<string> names
}

struct GetPartitionRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: required list<string> partVals
  5: optional string validWriteIdList
  6: optional i64 id
}

struct GetPartitionResponse {
  1: required Partition partition
}

struct GetPartitionsByFilterRequest {
  1: optional string catName
  2: string dbName
  3: string tblName
  4: string filter
  5: optional i16 maxParts
  6: optional bool skipColumnSchemaForPartition
  7: optional string includeParamKeyPattern
  8: optional string excludeParamKeyPattern
}

struct GetPartitionsByNamesRequest {
  1: required string db_name
  2: required string tbl_name
  3: optional list<string> names
  4: optional bool get_col_stats
  5: optional list<string> processorCapabilities
  6: optional string processorIdentifier
  7: optional string engine
  8: optional string validWriteIdList
  9: optional bool getFileMetadata
  10: optional i64 id
  11: optional bool skipColumnSchemaForPartition
  12: optional string includeParamKeyPattern
  13: optional string excludeParamKeyPattern
}

struct GetPartitionsByNamesResult {
  1: required list<Partition> partitions
  2: optional ObjectDictionary dictionary
}

struct GetPartitionsFilterSpec {
  7: optional PartitionFilterMode filterMode
  8: optional list<string> filters
}

struct GetPartitionsPsWithAuthRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: optional list<string> partVals
  5: optional i16 maxParts
  6: optional string userName
  7: optional list<string> groupNames
  8: optional string validWriteIdList
  9: optional i64 id
  10: optional bool skipColumnSchemaForPartition
  11: optional string includeParamKeyPattern
  12: optional string excludeParamKeyPattern
  13: optional list<string> partNames
}

struct GetPartitionsPsWithAuthResponse {
  1: required list<Partition> partitions
}

struct GetPartitionsRequest {
  1: optional string catName
  2: string dbName
  3: string tblName
  4: optional bool withAuth
  5: optional string user
  6: optional list<string> groupNames
  7: GetProjectionsSpec projectionSpec
  8: GetPartitionsFilterSpec filterSpec
  9: optional list<string> processorCapabilities
  10: optional string processorIdentifier
  11: optional string validWriteIdList
}

struct GetPartitionsResponse {
  1: list<PartitionSpec> partitionSpec
}

struct GetPrincipalsInRoleRequest {
  1: required string roleName
}

struct GetPrincipalsInRoleResponse {
  1: required list<RolePrincipalGrant> principalGrants
}

struct GetProjectionsSpec {
  1: list<string> fieldList
  2: string includeParamKeyPattern
  3: string excludeParamKeyPattern
}

struct GetReplicationMetricsRequest {
  1: optional i64 scheduledExecutionId
  2: optional string policy
  3: optional i64 dumpExecutionId
}

struct GetRoleGrantsForPrincipalRequest {
  1: required string principal_name
  2: required PrincipalType principal_type
}

struct GetRoleGrantsForPrincipalResponse {
  1: required list<RolePrincipalGrant> principalGrants
}

struct GetRuntimeStatsRequest {
  1: required i32 maxWeight
  2: required i32 maxCreateTime
}

struct GetSchemaRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: optional EnvironmentContext envContext
  5: optional string validWriteIdList
  6: optional i64 id
}

struct GetSchemaResponse {
  1: required list<FieldSchema> fields
}

struct GetSerdeRequest {
  1: string serdeName
}

struct GetTableRequest {
  1: required string dbName
  2: required string tblName
  3: optional ClientCapabilities capabilities
  4: optional string catName
  6: optional string validWriteIdList
  7: optional bool getColumnStats
  8: optional list<string> processorCapabilities
  9: optional string processorIdentifier
  10: optional string engine
  11: optional i64 id
}

struct GetTableResult {
  1: required Table table
  2: optional bool isStatsCompliant
}

struct GetTablesExtRequest {
  1: required string catalog
  2: required string database
  3: required string tableNamePattern
  4: required i32 requestedFields
  5: optional i32 limit
  6: optional list<string> processorCapabilities
  7: optional string processorIdentifier
}

struct GetTablesRequest {
  1: required string dbName
  2: optional list<string> tblNames
  3: optional ClientCapabilities capabilities
  4: optional string catName
  5: optional list<string> processorCapabilities
  6: optional string processorIdentifier
  7: optional GetProjectionsSpec projectionSpec
  8: optional string tablesPattern
}

struct GetTablesResult {
  1: required list<Table> tables
}

struct GetValidWriteIdsRequest {
  1: required list<string> fullTableNames
  2: optional string validTxnList
  3: optional i64 writeId
}

struct GetValidWriteIdsResponse {
  1: required list<TableValidWriteIds> tblValidWriteIds
}

struct GrantRevokePrivilegeRequest {
  1: GrantRevokeType requestType
  2: PrivilegeBag privileges
  3: optional bool revokeGrantOption
}

struct GrantRevokePrivilegeResponse {
  1: optional bool success
}

struct GrantRevokeRoleRequest {
  1: GrantRevokeType requestType
  2: string roleName
  3: string principalName
  4: PrincipalType principalType
  5: optional string grantor
  6: optional PrincipalType grantorType
  7: optional bool grantOption
}

struct GrantRevokeRoleResponse {
  1: optional bool success
}

struct HeartbeatRequest {
  1: optional i64 lockid
  2: optional i64 txnid
}

struct HeartbeatTxnRangeRequest {
  1: required i64 min
  2: required i64 max
}

struct HeartbeatTxnRangeResponse {
  1: required set<i64> aborted
  2: required set<i64> nosuch
}

struct HiveObjectPrivilege {
  1: HiveObjectRef hiveObject
  2: string principalName
  3: PrincipalType principalType
  4: PrivilegeGrantInfo grantInfo
  5: string authorizer
}

struct HiveObjectRef {
  1: HiveObjectType objectType
  2: string dbName
  3: string objectName
  4: list<string> partValues
  5: string columnName
  6: optional string catName
}

struct ISchema {
  1: SchemaType schemaType
  2: string name
  3: string catName
  4: string dbName
  5: SchemaCompatibility compatibility
  6: SchemaValidation validationLevel
  7: bool canEvolve
  8: optional string schemaGroup
  9: optional string description
}

struct ISchemaName {
  1: string catName
  2: string dbName
  3: string schemaName
}

struct Index {
  1: string indexName
  2: string indexHandlerClass
  3: string dbName
  4: string origTableName
  5: i32 createTime
  6: i32 lastAccessTime
  7: string indexTableName
  8: StorageDescriptor sd
  9: map<string,string> parameters
  10: bool deferredRebuild
}

exception IndexAlreadyExistsException {
  1: string message
}

struct InsertEventRequestData {
  1: optional bool replace
  2: required list<string> filesAdded
  3: optional list<string> filesAddedChecksum
  4: optional list<string> subDirectoryList
  5: optional list<string> partitionVal
}

exception InvalidInputException {
  1: string message
}

exception InvalidObjectException {
  1: string message
}

exception InvalidOperationException {
  1: string message
}

exception InvalidPartitionException {
  1: string message
}

struct ListPackageRequest {
  1: required string catName
  2: optional string dbName
}

struct ListStoredProcedureRequest {
  1: required string catName
  2: optional string dbName
}

struct LockComponent {
  1: required LockType type
  2: required LockLevel level
  3: required string dbname
  4: optional string tablename
  5: optional string partitionname
  6: optional DataOperationType operationType
  7: optional bool isTransactional
  8: optional bool isDynamicPartitionWrite
  // Of hive-acid alone: what else the statement does to rows, for rights.
  1001: optional list<DataOperationType> alsoOperations
  // Of hive-acid alone: new rows have keys that nobody else may bring, so that they count as a change.
  1002: optional bool bringsKeys
}

struct LockRequest {
  1: required list<LockComponent> component
  2: optional i64 txnid
  3: required string user
  4: required string hostname
  5: optional string agentInfo
  6: optional bool zeroWaitReadEnabled
  7: optional bool exclusiveCTAS
  8: optional bool locklessReadsEnabled
}

struct LockResponse {
  1: required i64 lockid
  2: required LockState state
  3: optional string errorMessage
}

struct LongColumnStatsData {
  1: optional i64 lowValue
  2: optional i64 highValue
  3: required i64 numNulls
  4: required i64 numDVs
  5: optional binary bitVectors
  6: optional binary histogram
}

struct MapSchemaVersionToSerdeRequest {
  1: SchemaVersionDescriptor schemaVersion
  2: string serdeName
}

struct Materialization {
  1: required bool sourceTablesUpdateDeleteModified
  2: required bool sourceTablesCompacted
}

struct MaxAllocatedTableWriteIdRequest {
  1: required string dbName
  2: required string tableName
}

struct MaxAllocatedTableWriteIdResponse {
  1: required i64 maxWriteId
}

exception MetaException {
  1: string message
}

struct MetadataPpdResult {
  1: optional binary metadata
  2: optional binary includeBitset
}

exception NoSuchCompactionException {
  1: string message
}

exception NoSuchLockException {
  1: string message
}

exception NoSuchObjectException {
  1: string message
}

exception NoSuchTxnException {
  1: string message
}

struct NotNullConstraintsRequest {
  1: required string catName
  2: required string db_name
  3: required string tbl_name
  4: optional string validWriteIdList
  5: optional i64 tableId
}

struct NotNullConstraintsResponse {
  1: required list<SQLNotNullConstraint> notNullConstraints
}

struct NotificationEvent {
  1: required i64 eventId
  2: required i32 eventTime
  3: required string eventType
  4: optional string dbName
  5: optional string tableName
  6: required string message
  7: optional string messageFormat
  8: optional string catName
}

struct NotificationEventRequest {
  1: required i64 lastEvent
  2: optional i32 maxEvents
  3: optional list<string> eventTypeSkipList
  4: optional string catName
  5: optional string dbName
  6: optional list<string> tableNames
  7: optional list<string> eventTypeList
}

struct NotificationEventResponse {
  1: required list<NotificationEvent> events
}

struct NotificationEventsCountRequest {
  1: required i64 fromEventId
  2: required string dbName
  3: optional string catName
  4: optional i64 toEventId
  5: optional i64 limit
  6: optional list<string> tableNames
}

struct NotificationEventsCountResponse {
  1: required i64 eventsCount
}

struct ObjectDictionary {
  1: required map<string,list<binary>> values
}

struct OpenTxnRequest {
  1: required i32 num_txns
  2: required string user
  3: required string hostname
  4: optional string agentInfo
  5: optional string replPolicy
  6: optional list<i64> replSrcTxnIds
  7: optional TxnType txn_type
  // Of hive-acid alone, far from Hive's numbers: a reader skips fields that it does not know.
  1001: optional list<string> tables
  1002: optional bool mayBeginAgain
}

struct OpenTxnsResponse {
  1: required list<i64> txn_ids
  1001: optional bool tablesNamed
}

struct OptionalCompactionInfoStruct {
  1: optional CompactionInfoStruct ci
}

struct Order {
  1: string col
  2: i32 order
}

struct Package {
  1: string catName
  2: string dbName
  3: string packageName
  4: string ownerName
  5: string header
  6: string body
}

struct Partition {
  1: list<string> values
  2: string dbName
  3: string tableName
  4: i32 createTime
  5: i32 lastAccessTime
  6: StorageDescriptor sd
  7: map<string,string> parameters
  8: optional PrincipalPrivilegeSet privileges
  9: optional string catName
  10: optional i64 writeId
  11: optional bool isStatsCompliant
  12: optional ColumnStatistics colStats
  13: optional FileMetadata fileMetadata
}

struct PartitionListComposingSpec {
  1: list<Partition> partitions
}

struct PartitionSpec {
  1: string dbName
  2: string tableName
  3: string rootPath
  4: optional PartitionSpecWithSharedSD sharedSDPartitionSpec
  5: optional PartitionListComposingSpec partitionList
  6: optional string catName
  7: optional i64 writeId
  8: optional bool isStatsCompliant
}

struct PartitionSpecWithSharedSD {
  1: list<PartitionWithoutSD> partitions
  2: StorageDescriptor sd
}

struct PartitionValuesRequest {
  1: required string dbName
  2: required string tblName
  3: required list<FieldSchema> partitionKeys
  4: optional bool applyDistinct
  5: optional string filter
  6: optional list<FieldSchema> partitionOrder
  7: optional bool ascending
  8: optional i64 maxParts
  9: optional string catName
  10: optional string validWriteIdList
}

struct PartitionValuesResponse {
  1: required list<PartitionValuesRow> partitionValues
}

struct PartitionValuesRow {
  1: required list<string> row
}

struct PartitionWithoutSD {
  1: list<string> values
  2: i32 createTime
  3: i32 lastAccessTime
  4: string relativePath
  5: map<string,string> parameters
  6: optional PrincipalPrivilegeSet privileges
}

struct PartitionsByExprRequest {
  1: required string dbName
  2: required string tblName
  3: required binary expr
  4: optional string defaultPartitionName
  5: optional i16 maxParts
  6: optional string catName
  7: optional string order
  8: optional string validWriteIdList
  9: optional i64 id
  10: optional bool skipColumnSchemaForPartition
  11: optional string includeParamKeyPattern
  12: optional string excludeParamKeyPattern
}

struct PartitionsByExprResult {
  1: required list<Partition> partitions
  2: required bool hasUnknownPartitions
}

struct PartitionsRequest {
  1: optional string catName
  2: required string dbName
  3: required string tblName
  4: optional i16 maxParts
  5: optional string validWriteIdList
  6: optional i64 id
  7: optional bool skipColumnSchemaForPartition
  8: optional string includeParamKeyPattern
  9: optional string excludeParamKeyPattern
}

struct PartitionsResponse {
  1: required list<Partition> partitions
}

struct PartitionsSpecByExprResult {
  1: required list<PartitionSpec> partitionsSpec
  2: required bool hasUnknownPartitions
}

struct PartitionsStatsRequest {
  1: required string dbName
  2: required string tblName
  3: required list<string> colNames
  4: required list<string> partNames
  5: optional string catName
  6: optional string validWriteIdList
  7: optional string engine
}

struct PartitionsStatsResult {
  1: required map<string,list<ColumnStatisticsObj>> partStats
  2: optional bool isStatsCompliant
}

struct PrimaryKeysRequest {
  1: required string db_name
  2: required string tbl_name
  3: optional string catName
  4: optional string validWriteIdList
  5: optional i64 tableId
}

struct PrimaryKeysResponse {
  1: required list<SQLPrimaryKey> primaryKeys
}

struct PrincipalPrivilegeSet {
  1: map<string,list<PrivilegeGrantInfo>> userPrivileges
  2: map<string,list<PrivilegeGrantInfo>> groupPrivileges
  3: map<string,list<PrivilegeGrantInfo>> rolePrivileges
}

struct PrivilegeBag {
  1: list<HiveObjectPrivilege> privileges
}

struct PrivilegeGrantInfo {
  1: string privilege
  2: i32 createTime
  3: string grantor
  4: PrincipalType grantorType
  5: bool grantOption
}

struct PropertyGetRequest {
  1: required string nameSpace
  2: string mapPrefix
  3: optional string mapPredicate
  4: optional list<string> mapSelection
}

struct PropertyGetResponse {
  1: map<string,map<string,string>> properties
}

struct PropertySetRequest {
  1: required string nameSpace
  2: map<string,string> propertyMap
}

struct PutFileMetadataRequest {
  1: required list<i64> fileIds
  2: required list<binary> metadata
  3: optional FileMetadataExprType type
}

struct PutFileMetadataResult {
}

struct RenamePartitionRequest {
  1: optional string catName
  2: required string dbName
  3: required string tableName
  4: required list<string> partVals
  5: required Partition newPart
  6: optional string validWriteIdList
  7: optional i64 txnId
  8: optional bool clonePart
}

struct RenamePartitionResponse {
}

struct ReplLastIdInfo {
  1: required string database
  2: required i64 lastReplId
  3: optional string table
  4: optional string catalog
  5: optional list<string> partitionList
}

struct ReplTblWriteIdStateRequest {
  1: required string validWriteIdlist
  2: required string user
  3: required string hostName
  4: required string dbName
  5: required string tableName
  6: optional list<string> partNames
}

struct ReplayedTxnsForPolicyResult {
  1: map<string,string> replTxnMapEntry
}

struct ReplicationMetricList {
  1: required list<ReplicationMetrics> replicationMetricList
}

struct ReplicationMetrics {
  1: required i64 scheduledExecutionId
  2: required string policy
  3: required i64 dumpExecutionId
  4: optional string metadata
  5: optional string progress
  6: optional string messageFormat
}

union RequestPartsSpec {
  1: list<string> names
  2: list<DropPartitionsExpr> exprs
}

struct ResourceUri {
  1: ResourceType resourceType
  2: string uri
}

struct Role {
  1: string roleName
  2: i32 createTime
  3: string ownerName
}

struct RolePrincipalGrant {
  1: string roleName
  2: string principalName
  3: PrincipalType principalType
  4: bool grantOption
  5: i32 grantTime
  6: string grantorName
  7: PrincipalType grantorPrincipalType
}

struct RuntimeStat {
  1: optional i32 createTime
  2: required i32 weight
  3: required binary payload
}

struct SQLAllTableConstraints {
  1: optional list<SQLPrimaryKey> primaryKeys
  2: optional list<SQLForeignKey> foreignKeys
  3: optional list<SQLUniqueConstraint> uniqueConstraints
  4: optional list<SQLNotNullConstraint> notNullConstraints
  5: optional list<SQLDefaultConstraint> defaultConstraints
  6: optional list<SQLCheckConstraint> checkConstraints
}

struct SQLCheckConstraint {
  1: string catName
  2: string table_db
  3: string table_name
  4: string column_name
  5: string check_expression
  6: string dc_name
  7: bool enable_cstr
  8: bool validate_cstr
  9: bool rely_cstr
}

struct SQLDefaultConstraint {
  1: string catName
  2: string table_db
  3: string table_name
  4: string column_name
  5: string default_value
  6: string dc_name
  7: bool enable_cstr
  8: bool validate_cstr
  9: bool rely_cstr
}

struct SQLForeignKey {
  1: string pktable_db
  2: string pktable_name
  3: string pkcolumn_name
  4: string fktable_db
  5: string fktable_name
  6: string fkcolumn_name
  7: i32 key_seq
  8: i32 update_rule
  9: i32 delete_rule
  10: string fk_name
  11: string pk_name
  12: bool enable_cstr
  13: bool validate_cstr
  14: bool rely_cstr
  15: optional string catName
}

struct SQLNotNullConstraint {
  1: string catName
  2: string table_db
  3: string table_name
  4: string column_name
  5: string nn_name
  6: bool enable_cstr
  7: bool validate_cstr
  8: bool rely_cstr
}

struct SQLPrimaryKey {
  1: string table_db
  2: string table_name
  3: string column_name
  4: i32 key_seq
  5: string pk_name
  6: bool enable_cstr
  7: bool validate_cstr
  8: bool rely_cstr
  9: optional string catName
}

struct SQLUniqueConstraint {
  1: string catName
  2: string table_db
  3: string table_name
  4: string column_name
  5: i32 key_seq
  6: string uk_name
  7: bool enable_cstr
  8: bool validate_cstr
  9: bool rely_cstr
}

struct ScheduledQuery {
  1: required ScheduledQueryKey scheduleKey
  2: optional bool enabled
  4: optional string schedule
  5: optional string user
  6: optional string query
  7: optional i32 nextExecution
}

struct ScheduledQueryKey {
  1: required string scheduleName
  2: required string clusterNamespace
}

struct ScheduledQueryMaintenanceRequest {
  1: required ScheduledQueryMaintenanceRequestType type
  2: required ScheduledQuery scheduledQuery
}

struct ScheduledQueryPollRequest {
  1: required string clusterNamespace
}

struct ScheduledQueryPollResponse {
  1: optional ScheduledQueryKey scheduleKey
  2: optional i64 executionId
  3: optional string query
  4: optional string user
}

struct ScheduledQueryProgressInfo {
  1: required i64 scheduledExecutionId
  2: required QueryState state
  3: required string executorQueryId
  4: optional string errorMessage
}

struct Schema {
  1: list<FieldSchema> fieldSchemas
  2: map<string,string> properties
}

struct SchemaVersion {
  1: ISchemaName schema
  2: i32 version
  3: i64 createdAt
  4: list<FieldSchema> cols
  5: optional SchemaVersionState state
  6: optional string description
  7: optional string schemaText
  8: optional string fingerprint
  9: optional string name
  10: optional SerDeInfo serDe
}

struct SchemaVersionDescriptor {
  1: ISchemaName schema
  2: i32 version
}

struct SeedTableWriteIdsRequest {
  1: required string dbName
  2: required string tableName
  3: required i64 seedWriteId
}

struct SeedTxnIdRequest {
  1: required i64 seedTxnId
}

struct SerDeInfo {
  1: string name
  2: string serializationLib
  3: map<string,string> parameters
  4: optional string description
  5: optional string serializerClass
  6: optional string deserializerClass
  7: optional SerdeType serdeType
}

struct SetPartitionsStatsRequest {
  1: required list<ColumnStatistics> colStats
  2: optional bool needMerge
  3: optional i64 writeId
  4: optional string validWriteIdList
  5: optional string engine
}

struct SetPartitionsStatsResponse {
  1: required bool result
}

struct SetSchemaVersionStateRequest {
  1: SchemaVersionDescriptor schemaVersion
  2: SchemaVersionState state
}

struct ShowCompactRequest {
  1: optional i64 id
  2: optional string poolName
  3: optional string dbName
  4: optional string tbName
  5: optional string partName
  6: optional CompactionType type
  7: optional string state
  8: optional i64 limit
  9: optional string order
}

struct ShowCompactResponse {
  1: required list<ShowCompactResponseElement> compacts
}

struct ShowCompactResponseElement {
  1: required string dbname
  2: required string tablename
  3: optional string partitionname
  4: required CompactionType type
  5: required string state
  6: optional string workerid
  7: optional i64 start
  8: optional string runAs
  9: optional i64 hightestTxnId
  10: optional string metaInfo
  11: optional i64 endTime
  12: optional string hadoopJobId
  13: optional i64 id
  14: optional string errorMessage
  15: optional i64 enqueueTime
  16: optional string workerVersion
  17: optional string initiatorId
  18: optional string initiatorVersion
  19: optional i64 cleanerStart
  20: optional string poolName
  21: optional i64 nextTxnId
  22: optional i64 txnId
  23: optional i64 commitTime
  24: optional i64 hightestWriteId
  // Of hive-acid alone, far from Hive's numbers: a reader skips fields that it does not know.
  1001: optional string progressPhase
  1002: optional i64 progressRows
  1003: optional i64 progressFiles
  1004: optional i64 progressBytes
  1005: optional i64 bytesBefore
  1006: optional i64 bytesAfter
  1007: optional string reason
  1008: optional i64 filesBefore
  1009: optional i64 filesAfter
  1010: optional i32 round
  1011: optional i64 nextId
}

struct ShowLocksRequest {
  1: optional string dbname
  2: optional string tablename
  3: optional string partname
  4: optional bool isExtended
  5: optional i64 txnid
}

struct ShowLocksResponse {
  1: list<ShowLocksResponseElement> locks
}

struct ShowLocksResponseElement {
  1: required i64 lockid
  2: required string dbname
  3: optional string tablename
  4: optional string partname
  5: required LockState state
  6: required LockType type
  7: optional i64 txnid
  8: required i64 lastheartbeat
  9: optional i64 acquiredat
  10: required string user
  11: required string hostname
  12: optional i32 heartbeatCount
  13: optional string agentInfo
  14: optional i64 blockedByExtId
  15: optional i64 blockedByIntId
  16: optional i64 lockIdInternal
}

struct SkewedInfo {
  1: list<string> skewedColNames
  2: list<list<string>> skewedColValues
  3: map<list<string>,string> skewedColValueLocationMaps
}

struct SourceTable {
  1: required Table table
  2: required i64 insertedCount
  3: required i64 updatedCount
  4: required i64 deletedCount
}

struct StorageDescriptor {
  1: list<FieldSchema> cols
  2: string location
  3: string inputFormat
  4: string outputFormat
  5: bool compressed
  6: i32 numBuckets
  7: SerDeInfo serdeInfo
  8: list<string> bucketCols
  9: list<Order> sortCols
  10: map<string,string> parameters
  11: optional SkewedInfo skewedInfo
  12: optional bool storedAsSubDirectories
}

struct StoredProcedure {
  1: string name
  2: string dbName
  3: string catName
  4: string ownerName
  5: string source
}

struct StoredProcedureRequest {
  1: required string catName
  2: required string dbName
  3: required string procName
}

struct StringColumnStatsData {
  1: required i64 maxColLen
  2: required double avgColLen
  3: required i64 numNulls
  4: required i64 numDVs
  5: optional binary bitVectors
}

struct Table {
  1: string tableName
  2: string dbName
  3: string owner
  4: i32 createTime
  5: i32 lastAccessTime
  6: i32 retention
  7: StorageDescriptor sd
  8: list<FieldSchema> partitionKeys
  9: map<string,string> parameters
  10: string viewOriginalText
  11: string viewExpandedText
  12: string tableType
  13: optional PrincipalPrivilegeSet privileges
  14: optional bool temporary
  15: optional bool rewriteEnabled
  16: optional CreationMetadata creationMetadata
  17: optional string catName
  18: optional PrincipalType ownerType
  19: optional i64 writeId
  20: optional bool isStatsCompliant
  21: optional ColumnStatistics colStats
  22: optional byte accessType
  23: optional list<string> requiredReadCapabilities
  24: optional list<string> requiredWriteCapabilities
  25: optional i64 id
  26: optional FileMetadata fileMetadata
  27: optional ObjectDictionary dictionary
  28: optional i64 txnId
}

struct TableMeta {
  1: required string dbName
  2: required string tableName
  3: required string tableType
  4: optional string comments
  5: optional string catName
  6: optional string ownerName
  7: optional PrincipalType ownerType
}

struct TableStatsRequest {
  1: required string dbName
  2: required string tblName
  3: required list<string> colNames
  4: optional string catName
  5: optional string validWriteIdList
  6: optional string engine
  7: optional i64 id
}

struct TableStatsResult {
  1: required list<ColumnStatisticsObj> tableStats
  2: optional bool isStatsCompliant
}

struct TableValidWriteIds {
  1: required string fullTableName
  2: required i64 writeIdHighWaterMark
  3: required list<i64> invalidWriteIds
  4: optional i64 minOpenWriteId
  5: required binary abortedBits
}

struct Timestamp {
  1: required i64 secondsSinceEpoch
}

struct TimestampColumnStatsData {
  1: optional Timestamp lowValue
  2: optional Timestamp highValue
  3: required i64 numNulls
  4: required i64 numDVs
  5: optional binary bitVectors
  6: optional binary histogram
}

struct TruncateTableRequest {
  1: required string dbName
  2: required string tableName
  3: optional list<string> partNames
  4: optional i64 writeId
  5: optional string validWriteIdList
  6: optional EnvironmentContext environmentContext
}

struct TruncateTableResponse {
}

exception TxnAbortedException {
  1: string message
}

struct TxnInfo {
  1: required i64 id
  2: required TxnState state
  3: required string user
  4: required string hostname
  5: optional string agentInfo
  6: optional i32 heartbeatCount
  7: optional string metaInfo
  8: optional i64 startedTime
  9: optional i64 lastHeartbeatTime
}

exception TxnOpenException {
  1: string message
}

struct TxnToWriteId {
  1: required i64 txnId
  2: required i64 writeId
}

struct Type {
  1: string name
  2: optional string type1
  3: optional string type2
  4: optional list<FieldSchema> fields
}

struct UniqueConstraintsRequest {
  1: required string catName
  2: required string db_name
  3: required string tbl_name
  4: optional string validWriteIdList
  5: optional i64 tableId
}

struct UniqueConstraintsResponse {
  1: required list<SQLUniqueConstraint> uniqueConstraints
}

exception UnknownDBException {
  1: string message
}

exception UnknownPartitionException {
  1: string message
}

exception UnknownTableException {
  1: string message
}

struct UnlockRequest {
  1: required i64 lockid
}

struct UpdateTransactionalStatsRequest {
  1: required i64 tableId
  2: required i64 insertCount
  3: required i64 updatedCount
  4: required i64 deletedCount
}

struct Version {
  1: string version
  2: string comments
}

struct WMAlterPoolRequest {
  1: optional WMNullablePool pool
  2: optional string poolPath
}

struct WMAlterPoolResponse {
}

struct WMAlterResourcePlanRequest {
  1: optional string resourcePlanName
  2: optional WMNullableResourcePlan resourcePlan
  3: optional bool isEnableAndActivate
  4: optional bool isForceDeactivate
  5: optional bool isReplace
  6: optional string ns
}

struct WMAlterResourcePlanResponse {
  1: optional WMFullResourcePlan fullResourcePlan
}

struct WMAlterTriggerRequest {
  1: optional WMTrigger trigger
}

struct WMAlterTriggerResponse {
}

struct WMCreateOrDropTriggerToPoolMappingRequest {
  1: optional string resourcePlanName
  2: optional string triggerName
  3: optional string poolPath
  4: optional bool drop
  5: optional string ns
}

struct WMCreateOrDropTriggerToPoolMappingResponse {
}

struct WMCreateOrUpdateMappingRequest {
  1: optional WMMapping mapping
  2: optional bool update
}

struct WMCreateOrUpdateMappingResponse {
}

struct WMCreatePoolRequest {
  1: optional WMPool pool
}

struct WMCreatePoolResponse {
}

struct WMCreateResourcePlanRequest {
  1: optional WMResourcePlan resourcePlan
  2: optional string copyFrom
}

struct WMCreateResourcePlanResponse {
}

struct WMCreateTriggerRequest {
  1: optional WMTrigger trigger
}

struct WMCreateTriggerResponse {
}

struct WMDropMappingRequest {
  1: optional WMMapping mapping
}

struct WMDropMappingResponse {
}

struct WMDropPoolRequest {
  1: optional string resourcePlanName
  2: optional string poolPath
  3: optional string ns
}

struct WMDropPoolResponse {
}

struct WMDropResourcePlanRequest {
  1: optional string resourcePlanName
  2: optional string ns
}

struct WMDropResourcePlanResponse {
}

struct WMDropTriggerRequest {
  1: optional string resourcePlanName
  2: optional string triggerName
  3: optional string ns
}

struct WMDropTriggerResponse {
}

struct WMFullResourcePlan {
  1: required WMResourcePlan plan
  2: required list<WMPool> pools
  3: optional list<WMMapping> mappings
  4: optional list<WMTrigger> triggers
  5: optional list<WMPoolTrigger> poolTriggers
}

struct WMGetActiveResourcePlanRequest {
  1: optional string ns
}

struct WMGetActiveResourcePlanResponse {
  1: optional WMFullResourcePlan resourcePlan
}

struct WMGetAllResourcePlanRequest {
  1: optional string ns
}

struct WMGetAllResourcePlanResponse {
  1: optional list<WMResourcePlan> resourcePlans
}

struct WMGetResourcePlanRequest {
  1: optional string resourcePlanName
  2: optional string ns
}

struct WMGetResourcePlanResponse {
  1: optional WMFullResourcePlan resourcePlan
}

struct WMGetTriggersForResourePlanRequest {
  1: optional string resourcePlanName
  2: optional string ns
}

struct WMGetTriggersForResourePlanResponse {
  1: optional list<WMTrigger> triggers
}

struct WMMapping {
  1: required string resourcePlanName
  2: required string entityType
  3: required string entityName
  4: optional string poolPath
  5: optional i32 ordering
  6: optional string ns
}

struct WMNullablePool {
  1: required string resourcePlanName
  2: required string poolPath
  3: optional double allocFraction
  4: optional i32 queryParallelism
  5: optional string schedulingPolicy
  6: optional bool isSetSchedulingPolicy
  7: optional string ns
}

struct WMNullableResourcePlan {
  1: optional string name
  2: optional WMResourcePlanStatus status
  4: optional i32 queryParallelism
  5: optional bool isSetQueryParallelism
  6: optional string defaultPoolPath
  7: optional bool isSetDefaultPoolPath
  8: optional string ns
}

struct WMPool {
  1: required string resourcePlanName
  2: required string poolPath
  3: optional double allocFraction
  4: optional i32 queryParallelism
  5: optional string schedulingPolicy
  6: optional string ns
}

struct WMPoolTrigger {
  1: required string pool
  2: required string trigger
  3: optional string ns
}

struct WMResourcePlan {
  1: required string name
  2: optional WMResourcePlanStatus status
  3: optional i32 queryParallelism
  4: optional string defaultPoolPath
  5: optional string ns
}

struct WMTrigger {
  1: required string resourcePlanName
  2: required string triggerName
  3: optional string triggerExpression
  4: optional string actionExpression
  5: optional bool isInUnmanaged
  6: optional string ns
}

struct WMValidateResourcePlanRequest {
  1: optional string resourcePlanName
  2: optional string ns
}

struct WMValidateResourcePlanResponse {
  1: optional list<string> errors
  2: optional list<string> warnings
}

struct WriteEventInfo {
  1: required i64 writeId
  2: required string database
  3: required string table
  4: required string files
  5: optional string partition
  6: optional string tableObj
  7: optional string partitionObj
}

struct WriteNotificationLogBatchRequest {
  1: required string catalog
  2: required string db
  3: required string table
  4: required list<WriteNotificationLogRequest> requestList
}

struct WriteNotificationLogBatchResponse {
}

struct WriteNotificationLogRequest {
  1: required i64 txnId
  2: required i64 writeId
  3: required string db
  4: required string table
  5: required InsertEventRequestData fileInfo
  6: optional list<string> partitionVals
}

struct WriteNotificationLogResponse {
}

// --- of hive-acid alone ---

// Of one of: a table (with or without a partition), a transaction, a lock, a compaction.
struct HiveAcidRemovalsRequest {
  1: optional i64 forget
}

struct HiveAcidRemoval {
  1: required i64 id
  2: required string location
  3: optional string trash
  4: required string owner
  5: required i64 since
  6: required i32 attempts
  7: optional i64 nextAttempt
  8: optional string error
}

struct HiveAcidRemovalsResponse {
  1: required list<HiveAcidRemoval> removals
}

struct HiveAcidWhyRequest {
  1: optional string dbname
  2: optional string tablename
  3: optional string partname
  4: optional i64 txnid
  5: optional i64 lockid
  6: optional i64 compactionid
}

struct HiveAcidAnswer {
  1: required string subject
  2: required string code
  3: required string message
  4: required string action
  5: optional i64 since
  6: optional i64 txnid
  7: optional i64 lockid
  8: optional i64 compactionid
  9: optional string user
  10: optional string hostname
  11: optional string agentInfo
  12: optional list<string> files
}

struct HiveAcidWhyResponse {
  1: list<HiveAcidAnswer> answers
}

// Which of these tables have too many deltas.
struct HiveAcidPressureRequest {
  1: required list<string> fullTableNames
}

// A table with too many: its partition with the most, how many partitions have too many, and why that is so.
struct HiveAcidPressure {
  1: required string dbname
  2: required string tablename
  3: optional string partname
  4: required i32 deltas
  5: required i32 threshold
  6: required i64 places
  7: optional string message
}

struct HiveAcidPressureResponse {
  1: list<HiveAcidPressure> tables
}

// Of one table; or, without one, of what lies beside tables in the warehouse. A call ends after some seconds: if its
// answer has a `goOnAfter`, another call with that as `after` goes on from there.
struct HiveAcidOrphansRequest {
  1: optional string dbname
  2: optional string tablename
  3: required i64 olderThanMs
  4: optional bool remove
  5: optional bool uncertain
  6: optional string after
}

struct HiveAcidOrphan {
  1: required string location
  2: required i64 size
  3: required i64 files
  4: required i64 modified
  5: required string reason
  6: required string why
  7: required bool isCertain
  8: required bool isRemoved
}

struct HiveAcidOrphansResponse {
  1: required list<HiveAcidOrphan> orphans
  2: optional string goOnAfter
}

// One of a table's partitions. Two that have had the same name, one after the other, have different ids.
struct HiveAcidPartition {
  1: required string name
  2: required i64 id
  3: optional string location
}

struct HiveAcidPartitionsRequest {
  1: required string dbname
  2: required string tablename
}

struct HiveAcidPartitionsResponse {
  1: required list<HiveAcidPartition> partitions
}

// Whether the directories of a table that transaction `txnid` reads, and of these of its partitions, are still what they
// were when it was told their ids and locations.
struct HiveAcidMovedRequest {
  1: required i64 txnid
  2: required string dbname
  3: required string tablename
  4: required i64 tableId
  5: required string location
  6: required list<HiveAcidPartition> partitions
}

// What is not there any more under its id and at its location: the names of partitions that were dropped, of which the
// Cleaner keeps the files for the transaction, and of all others. The table is dropped, and kept, or moved likewise.
struct HiveAcidMovedResponse {
  1: required bool isMoved
  2: required list<string> kept
  3: required list<string> moved
}

// Commits a transaction, and gives a table that it has overwritten whole the definition of its new rows, both or
// neither. Columns, buckets and parameters may be others than before; the rest is left as it is. With a successor the
// table is dropped, and that one, which is called hive_acid_successor_<txnid>, gets its name, its owner, its privileges
// and the parameters of `table`, of which nothing else counts then.
struct HiveAcidReplaceTableRequest {
  1: required i64 txnid
  2: required i64 tableId
  3: required Table table
  4: optional i64 successorId
}

// Commits a transaction whose owner has found that other transactions have changed other rows than it has.
struct HiveAcidCommitRowsRequest {
  1: required i64 txnid
  2: required list<i64> checkedTxnIds
  3: optional CommitTxnKeyValue keyValue
}

// A change of the same table, or partition, by a transaction that was not checked.
struct HiveAcidOtherChange {
  1: required string dbname
  2: required string tablename
  3: optional string partname
  4: required i64 txnid
  5: optional i64 writeid
}

// Nobody else's changes: it is committed. Else it is open still, and may be committed when these are checked, too.
struct HiveAcidCommitRowsResponse {
  1: required list<HiveAcidOtherChange> unchecked
}

// Begins a statement: its transaction, which `open` describes, and its locks. Told are the write ids of `seen`, and
// given those of `written` (database.table). `knownAborted` is the `abortedVersion` of an answer whose aborted transactions the
// client has kept.
struct HiveAcidBeginRequest {
  1: required OpenTxnRequest open
  2: optional list<LockComponent> component
  3: optional list<string> seen
  4: optional list<string> written
  5: optional i64 knownAborted
}

// Transactions up to the mark have ended but these, as in GetOpenTxnsResponse; what is after one's own counts as open. With
// `isBesideKnown` those are aborted, too, that the client has kept as it has named them by `knownAborted`.
struct HiveAcidSnapshot {
  1: required i64 highWaterMark
  2: required list<i64> openTxns
  3: required binary abortedBits
  4: optional bool isBesideKnown
}

struct HiveAcidWrittenTable {
  1: required string fullTableName
  2: required i64 writeId
  3: optional i64 tableId
}

struct HiveAcidSeenTable {
  1: required TableValidWriteIds writeIds
  2: optional i64 tableId
}

// Ids of tables are those of who had the names when write ids were looked at and given.
// Without `lock` nothing was to be locked. If it waits, check_lock goes on, and neither `seen` nor `written` are there; and
// whoever misses `seen` asks for it by get_valid_write_ids. Outdated is a statement that may begin again, if what it is to
// change was changed before it had its locks.
struct HiveAcidBeginResponse {
  1: required i64 txnid
  2: required i64 abortedVersion
  3: required HiveAcidSnapshot snapshot
  4: optional LockResponse lock
  5: optional list<HiveAcidSeenTable> seen
  6: optional list<HiveAcidWrittenTable> written
  7: optional bool isOutdated
}

// --- the service ---

service ThriftHiveMetastore {
  AbortCompactResponse abort_Compactions(1: AbortCompactionRequest rqst)
  void abort_txn(1: AbortTxnRequest rqst) throws (1: NoSuchTxnException o1)
  void abort_txns(1: AbortTxnsRequest rqst) throws (1: NoSuchTxnException o1)
  void add_check_constraint(1: AddCheckConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void add_default_constraint(1: AddDefaultConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void add_dynamic_partitions(1: AddDynamicPartitions rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  void add_foreign_key(1: AddForeignKeyRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  Index add_index(1: Index new_index, 2: Table index_table) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  i32 add_master_key(1: string key) throws (1: MetaException o1)
  void add_not_null_constraint(1: AddNotNullConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void add_package(1: AddPackageRequest request) throws (1: MetaException o1)
  Partition add_partition(1: Partition new_part) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition add_partition_with_environment_context(1: Partition new_part, 2: EnvironmentContext environment_context) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  i32 add_partitions(1: list<Partition> new_parts) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  i32 add_partitions_pspec(1: list<PartitionSpec> new_parts) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  AddPartitionsResult add_partitions_req(1: AddPartitionsRequest request) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  void add_primary_key(1: AddPrimaryKeyRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void add_replication_metrics(1: ReplicationMetricList replicationMetricList) throws (1: MetaException o1)
  void add_runtime_stats(1: RuntimeStat stat) throws (1: MetaException o1)
  void add_schema_version(1: SchemaVersion schemaVersion) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: MetaException o3)
  void add_serde(1: SerDeInfo serde) throws (1: AlreadyExistsException o1, 2: MetaException o2)
  bool add_token(1: string token_identifier, 2: string delegation_token)
  void add_unique_constraint(1: AddUniqueConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void add_write_ids_to_min_history(1: i64 txnId, 2: map<string,i64> writeIds) throws (1: MetaException o2)
  WriteNotificationLogResponse add_write_notification_log(1: WriteNotificationLogRequest rqst)
  WriteNotificationLogBatchResponse add_write_notification_log_in_batch(1: WriteNotificationLogBatchRequest rqst)
  i64 aliveSince()
  AllocateTableWriteIdsResponse allocate_table_write_ids(1: AllocateTableWriteIdsRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: MetaException o3)
  void alter_catalog(1: AlterCatalogRequest rqst) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void alter_database(1: string dbname, 2: Database db) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  void alter_database_req(1: AlterDatabaseRequest alterDbReq) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  void alter_dataconnector_req(1: AlterDataConnectorRequest alterReq) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  void alter_function(1: string dbName, 2: string funcName, 3: Function newFunc) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_index(1: string dbname, 2: string base_tbl_name, 3: string idx_name, 4: Index new_idx) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_ischema(1: AlterISchemaRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void alter_partition(1: string db_name, 2: string tbl_name, 3: Partition new_part) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_partition_with_environment_context(1: string db_name, 2: string tbl_name, 3: Partition new_part, 4: EnvironmentContext environment_context) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_partitions(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts) throws (1: InvalidOperationException o1, 2: MetaException o2)
  AlterPartitionsResponse alter_partitions_req(1: AlterPartitionsRequest req) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_partitions_with_environment_context(1: string db_name, 2: string tbl_name, 3: list<Partition> new_parts, 4: EnvironmentContext environment_context) throws (1: InvalidOperationException o1, 2: MetaException o2)
  WMAlterResourcePlanResponse alter_resource_plan(1: WMAlterResourcePlanRequest request) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void alter_table(1: string dbname, 2: string tbl_name, 3: Table new_tbl) throws (1: InvalidOperationException o1, 2: MetaException o2)
  AlterTableResponse alter_table_req(1: AlterTableRequest req) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_table_with_cascade(1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: bool cascade) throws (1: InvalidOperationException o1, 2: MetaException o2)
  void alter_table_with_environment_context(1: string dbname, 2: string tbl_name, 3: Table new_tbl, 4: EnvironmentContext environment_context) throws (1: InvalidOperationException o1, 2: MetaException o2)
  WMAlterPoolResponse alter_wm_pool(1: WMAlterPoolRequest request) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: MetaException o4)
  WMAlterTriggerResponse alter_wm_trigger(1: WMAlterTriggerRequest request) throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  Partition append_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_by_name_with_environment_context(1: string db_name, 2: string tbl_name, 3: string part_name, 4: EnvironmentContext environment_context) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_req(1: AppendPartitionsRequest appendPartitionsReq) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  Partition append_partition_with_environment_context(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: EnvironmentContext environment_context) throws (1: InvalidObjectException o1, 2: AlreadyExistsException o2, 3: MetaException o3)
  CacheFileMetadataResult cache_file_metadata(1: CacheFileMetadataRequest req)
  void cancel_delegation_token(1: string token_str_form) throws (1: MetaException o1)
  LockResponse check_lock(1: CheckLockRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: NoSuchLockException o3)
  ClearFileMetadataResult clear_file_metadata(1: ClearFileMetadataRequest req)
  CmRecycleResponse cm_recycle(1: CmRecycleRequest request) throws (1: MetaException o1)
  void commit_txn(1: CommitTxnRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  void compact(1: CompactionRequest rqst)
  CompactionResponse compact2(1: CompactionRequest rqst)
  void create_catalog(1: CreateCatalogRequest catalog) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  void create_database(1: Database database) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  void create_database_req(1: CreateDatabaseRequest createDatabaseRequest) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  void create_dataconnector_req(1: CreateDataConnectorRequest connectorReq) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  void create_function(1: Function func) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void create_ischema(1: ISchema schema) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: MetaException o3)
  WMCreateOrDropTriggerToPoolMappingResponse create_or_drop_wm_trigger_to_pool_mapping(1: WMCreateOrDropTriggerToPoolMappingRequest request) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: MetaException o4)
  WMCreateOrUpdateMappingResponse create_or_update_wm_mapping(1: WMCreateOrUpdateMappingRequest request) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: MetaException o4)
  WMCreateResourcePlanResponse create_resource_plan(1: WMCreateResourcePlanRequest request) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  bool create_role(1: Role role) throws (1: MetaException o1)
  void create_stored_procedure(1: StoredProcedure proc) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void create_table(1: Table tbl) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void create_table_req(1: CreateTableRequest request) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void create_table_with_constraints(1: Table tbl, 2: list<SQLPrimaryKey> primaryKeys, 3: list<SQLForeignKey> foreignKeys, 4: list<SQLUniqueConstraint> uniqueConstraints, 5: list<SQLNotNullConstraint> notNullConstraints, 6: list<SQLDefaultConstraint> defaultConstraints, 7: list<SQLCheckConstraint> checkConstraints) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void create_table_with_environment_context(1: Table tbl, 2: EnvironmentContext environment_context) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  bool create_type(1: Type type) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3)
  WMCreatePoolResponse create_wm_pool(1: WMCreatePoolRequest request) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: MetaException o4)
  WMCreateTriggerResponse create_wm_trigger(1: WMCreateTriggerRequest request) throws (1: AlreadyExistsException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: MetaException o4)
  bool delete_column_statistics_req(1: DeleteColumnStatisticsRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3, 4: InvalidInputException o4)
  bool delete_partition_column_statistics(1: string db_name, 2: string tbl_name, 3: string part_name, 4: string col_name, 5: string engine) throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3, 4: InvalidInputException o4)
  bool delete_table_column_statistics(1: string db_name, 2: string tbl_name, 3: string col_name, 4: string engine) throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidObjectException o3, 4: InvalidInputException o4)
  void drop_catalog(1: DropCatalogRequest catName) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void drop_constraint(1: DropConstraintRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  void drop_database(1: string name, 2: bool deleteData, 3: bool cascade) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void drop_database_req(1: DropDatabaseRequest req) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void drop_dataconnector_req(1: DropDataConnectorRequest dropDcReq) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void drop_function(1: string dbName, 2: string funcName) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  bool drop_index_by_name(1: string db_name, 2: string tbl_name, 3: string index_name, 4: bool deleteData) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void drop_ischema(1: ISchemaName name) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  void drop_package(1: DropPackageRequest request) throws (1: MetaException o1)
  bool drop_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_by_name_with_environment_context(1: string db_name, 2: string tbl_name, 3: string part_name, 4: bool deleteData, 5: EnvironmentContext environment_context) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_req(1: DropPartitionRequest dropPartitionReq) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool drop_partition_with_environment_context(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: bool deleteData, 5: EnvironmentContext environment_context) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  DropPartitionsResult drop_partitions_req(1: DropPartitionsRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  WMDropResourcePlanResponse drop_resource_plan(1: WMDropResourcePlanRequest request) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  bool drop_role(1: string role_name) throws (1: MetaException o1)
  void drop_schema_version(1: SchemaVersionDescriptor schemaVersion) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void drop_stored_procedure(1: StoredProcedureRequest request) throws (1: MetaException o1)
  void drop_table(1: string dbname, 2: string name, 3: bool deleteData) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  void drop_table_req(1: DropTableRequest dropTableReq) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  void drop_table_with_environment_context(1: string dbname, 2: string name, 3: bool deleteData, 4: EnvironmentContext environment_context) throws (1: NoSuchObjectException o1, 2: MetaException o3)
  bool drop_type(1: string type) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  WMDropMappingResponse drop_wm_mapping(1: WMDropMappingRequest request) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  WMDropPoolResponse drop_wm_pool(1: WMDropPoolRequest request) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  WMDropTriggerResponse drop_wm_trigger(1: WMDropTriggerRequest request) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  Partition exchange_partition(1: map<string,string> partitionSpecs, 2: string source_db, 3: string source_table_name, 4: string dest_db, 5: string dest_table_name) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: InvalidInputException o4)
  list<Partition> exchange_partitions(1: map<string,string> partitionSpecs, 2: string source_db, 3: string source_table_name, 4: string dest_db, 5: string dest_table_name) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3, 4: InvalidInputException o4)
  list<string> fetch_partition_names_req(1: PartitionsRequest partitionReq) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<string> find_columns_with_stats(1: CompactionInfoStruct cr)
  OptionalCompactionInfoStruct find_next_compact(1: string workerId) throws (1: MetaException o1)
  OptionalCompactionInfoStruct find_next_compact2(1: FindNextCompactRequest rqst) throws (1: MetaException o1)
  Package find_package(1: GetPackageRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  FireEventResponse fire_listener_event(1: FireEventRequest rqst)
  void flushCache()
  i64 getCounter(1: string key)
  map<string,i64> getCounters()
  string getCpuProfile(1: i32 profileDurationInSec)
  string getMetaConf(1: string key) throws (1: MetaException o1)
  string getName()
  string getOption(1: string key)
  map<string,string> getOptions()
  fb_status getStatus()
  string getStatusDetails()
  string getVersion()
  WMGetActiveResourcePlanResponse get_active_resource_plan(1: WMGetActiveResourcePlanRequest request) throws (1: MetaException o2)
  AggrStats get_aggr_stats_for(1: PartitionsStatsRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<string> get_all_databases() throws (1: MetaException o1)
  GetAllFunctionsResponse get_all_functions() throws (1: MetaException o1)
  list<Table> get_all_materialized_view_objects_for_rewriting() throws (1: MetaException o1)
  list<string> get_all_packages(1: ListPackageRequest request) throws (1: MetaException o1)
  WMGetAllResourcePlanResponse get_all_resource_plans(1: WMGetAllResourcePlanRequest request) throws (1: MetaException o1)
  list<string> get_all_stored_procedures(1: ListStoredProcedureRequest request) throws (1: MetaException o1)
  AllTableConstraintsResponse get_all_table_constraints(1: AllTableConstraintsRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<string> get_all_tables(1: string db_name) throws (1: MetaException o1)
  list<string> get_all_token_identifiers()
  list<WriteEventInfo> get_all_write_event_info(1: GetAllWriteEventInfoRequest request) throws (1: MetaException o1)
  GetCatalogResponse get_catalog(1: GetCatalogRequest catName) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  GetCatalogsResponse get_catalogs() throws (1: MetaException o1)
  CheckConstraintsResponse get_check_constraints(1: CheckConstraintsRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  string get_config_value(1: string name, 2: string defaultValue) throws (1: ConfigValSecurityException o1)
  CurrentNotificationEventId get_current_notificationEventId()
  Database get_database(1: string name) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  Database get_database_req(1: GetDatabaseRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<string> get_databases(1: string pattern) throws (1: MetaException o1)
  GetDatabaseObjectsResponse get_databases_req(1: GetDatabaseObjectsRequest request) throws (1: MetaException o1)
  DataConnector get_dataconnector_req(1: GetDataConnectorRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<string> get_dataconnectors() throws (1: MetaException o1)
  DefaultConstraintsResponse get_default_constraints(1: DefaultConstraintsRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  string get_delegation_token(1: string token_owner, 2: string renewer_kerberos_principal_name) throws (1: MetaException o1)
  list<FieldSchema> get_fields(1: string db_name, 2: string table_name) throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  GetFieldsResponse get_fields_req(1: GetFieldsRequest req) throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  list<FieldSchema> get_fields_with_environment_context(1: string db_name, 2: string table_name, 3: EnvironmentContext environment_context) throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  GetFileMetadataResult get_file_metadata(1: GetFileMetadataRequest req)
  GetFileMetadataByExprResult get_file_metadata_by_expr(1: GetFileMetadataByExprRequest req)
  ForeignKeysResponse get_foreign_keys(1: ForeignKeysRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Function get_function(1: string dbName, 2: string funcName) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<string> get_functions(1: string dbName, 2: string pattern) throws (1: MetaException o1)
  GetFunctionsResponse get_functions_req(1: GetFunctionsRequest request) throws (1: MetaException o1)
  Index get_index_by_name(1: string db_name, 2: string tbl_name, 3: string index_name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<string> get_index_names(1: string db_name, 2: string tbl_name, 3: i16 max_indexes) throws (1: MetaException o2)
  list<Index> get_indexes(1: string db_name, 2: string tbl_name, 3: i16 max_indexes) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  ISchema get_ischema(1: ISchemaName name) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  GetLatestCommittedCompactionInfoResponse get_latest_committed_compaction_info(1: GetLatestCommittedCompactionInfoRequest rqst)
  i64 get_latest_txnid_in_conflict(1: i64 txnId) throws (1: MetaException o1)
  LockResponse get_lock_materialization_rebuild(1: string dbName, 2: string tableName, 3: i64 txnId)
  list<string> get_master_keys()
  Materialization get_materialization_invalidation_info(1: CreationMetadata creation_metadata, 2: string validTxnList) throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  list<string> get_materialized_views_for_rewriting(1: string db_name) throws (1: MetaException o1)
  MaxAllocatedTableWriteIdResponse get_max_allocated_table_write_id(1: MaxAllocatedTableWriteIdRequest rqst) throws (1: MetaException o1)
  string get_metastore_db_uuid() throws (1: MetaException o1)
  NotificationEventResponse get_next_notification(1: NotificationEventRequest rqst)
  NotNullConstraintsResponse get_not_null_constraints(1: NotNullConstraintsRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  NotificationEventsCountResponse get_notification_events_count(1: NotificationEventsCountRequest rqst)
  i32 get_num_partitions_by_filter(1: string db_name, 2: string tbl_name, 3: string filter) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetOpenTxnsResponse get_open_txns()
  GetOpenTxnsInfoResponse get_open_txns_info()
  GetOpenTxnsResponse get_open_txns_req(1: GetOpenTxnsRequest getOpenTxnsRequest)
  list<PartitionSpec> get_part_specs_by_filter(1: string db_name, 2: string tbl_name, 3: string filter, 4: i32 max_parts) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Partition get_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Partition get_partition_by_name(1: string db_name, 2: string tbl_name, 3: string part_name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  ColumnStatistics get_partition_column_statistics(1: string db_name, 2: string tbl_name, 3: string part_name, 4: string col_name) throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidInputException o3, 4: InvalidObjectException o4)
  list<string> get_partition_names(1: string db_name, 2: string tbl_name, 3: i16 max_parts) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<string> get_partition_names_ps(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetPartitionNamesPsResponse get_partition_names_ps_req(1: GetPartitionNamesPsRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<string> get_partition_names_req(1: PartitionsByExprRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetPartitionResponse get_partition_req(1: GetPartitionRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  PartitionValuesResponse get_partition_values(1: PartitionValuesRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Partition get_partition_with_auth(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: string user_name, 5: list<string> group_names) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions(1: string db_name, 2: string tbl_name, 3: i16 max_parts) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  PartitionsByExprResult get_partitions_by_expr(1: PartitionsByExprRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_by_filter(1: string db_name, 2: string tbl_name, 3: string filter, 4: i16 max_parts) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_by_filter_req(1: GetPartitionsByFilterRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_by_names(1: string db_name, 2: string tbl_name, 3: list<string> names) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3)
  GetPartitionsByNamesResult get_partitions_by_names_req(1: GetPartitionsByNamesRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: InvalidObjectException o3)
  list<Partition> get_partitions_ps(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<Partition> get_partitions_ps_with_auth(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: i16 max_parts, 5: string user_name, 6: list<string> group_names) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  GetPartitionsPsWithAuthResponse get_partitions_ps_with_auth_req(1: GetPartitionsPsWithAuthRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<PartitionSpec> get_partitions_pspec(1: string db_name, 2: string tbl_name, 3: i32 max_parts) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  PartitionsResponse get_partitions_req(1: PartitionsRequest req) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  PartitionsSpecByExprResult get_partitions_spec_by_expr(1: PartitionsByExprRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  PartitionsStatsResult get_partitions_statistics_req(1: PartitionsStatsRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<Partition> get_partitions_with_auth(1: string db_name, 2: string tbl_name, 3: i16 max_parts, 4: string user_name, 5: list<string> group_names) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  GetPartitionsResponse get_partitions_with_specs(1: GetPartitionsRequest request) throws (1: MetaException o1)
  PrimaryKeysResponse get_primary_keys(1: PrimaryKeysRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetPrincipalsInRoleResponse get_principals_in_role(1: GetPrincipalsInRoleRequest request) throws (1: MetaException o1)
  PrincipalPrivilegeSet get_privilege_set(1: HiveObjectRef hiveObject, 2: string user_name, 3: list<string> group_names) throws (1: MetaException o1)
  PropertyGetResponse get_properties(1: PropertyGetRequest req) throws (1: MetaException e1, 2: NoSuchObjectException e2)
  ReplayedTxnsForPolicyResult get_replayed_txns_for_policy(1: string policyName) throws (1: MetaException o1)
  ReplicationMetricList get_replication_metrics(1: GetReplicationMetricsRequest rqst) throws (1: MetaException o1)
  WMGetResourcePlanResponse get_resource_plan(1: WMGetResourcePlanRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  GetRoleGrantsForPrincipalResponse get_role_grants_for_principal(1: GetRoleGrantsForPrincipalRequest request) throws (1: MetaException o1)
  list<string> get_role_names() throws (1: MetaException o1)
  list<RuntimeStat> get_runtime_stats(1: GetRuntimeStatsRequest rqst) throws (1: MetaException o1)
  ScheduledQuery get_scheduled_query(1: ScheduledQueryKey scheduleKey) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  list<FieldSchema> get_schema(1: string db_name, 2: string table_name) throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  list<SchemaVersion> get_schema_all_versions(1: ISchemaName schemaName) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  SchemaVersion get_schema_latest_version(1: ISchemaName schemaName) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  GetSchemaResponse get_schema_req(1: GetSchemaRequest req) throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  SchemaVersion get_schema_version(1: SchemaVersionDescriptor schemaVersion) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<FieldSchema> get_schema_with_environment_context(1: string db_name, 2: string table_name, 3: EnvironmentContext environment_context) throws (1: MetaException o1, 2: UnknownTableException o2, 3: UnknownDBException o3)
  FindSchemasByColsResp get_schemas_by_cols(1: FindSchemasByColsRqst rqst) throws (1: MetaException o1)
  SerDeInfo get_serde(1: GetSerdeRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  StoredProcedure get_stored_procedure(1: StoredProcedureRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  Table get_table(1: string dbname, 2: string tbl_name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  ColumnStatistics get_table_column_statistics(1: string db_name, 2: string tbl_name, 3: string col_name) throws (1: NoSuchObjectException o1, 2: MetaException o2, 3: InvalidInputException o3, 4: InvalidObjectException o4)
  list<TableMeta> get_table_meta(1: string db_patterns, 2: string tbl_patterns, 3: list<string> tbl_types) throws (1: MetaException o1)
  list<string> get_table_names_by_filter(1: string dbname, 2: string filter, 3: i16 max_tables) throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  list<Table> get_table_objects_by_name(1: string dbname, 2: list<string> tbl_names)
  GetTablesResult get_table_objects_by_name_req(1: GetTablesRequest req) throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  GetTableResult get_table_req(1: GetTableRequest req) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  TableStatsResult get_table_statistics_req(1: TableStatsRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  list<string> get_tables(1: string db_name, 2: string pattern) throws (1: MetaException o1)
  list<string> get_tables_by_type(1: string db_name, 2: string pattern, 3: string tableType) throws (1: MetaException o1)
  list<ExtendedTableInfo> get_tables_ext(1: GetTablesExtRequest req) throws (1: MetaException o1)
  string get_token(1: string token_identifier)
  WMGetTriggersForResourePlanResponse get_triggers_for_resourceplan(1: WMGetTriggersForResourePlanRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  Type get_type(1: string name) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  map<string,Type> get_type_all(1: string name) throws (1: MetaException o2)
  UniqueConstraintsResponse get_unique_constraints(1: UniqueConstraintsRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2)
  GetValidWriteIdsResponse get_valid_write_ids(1: GetValidWriteIdsRequest rqst) throws (1: NoSuchTxnException o1, 2: MetaException o2)
  bool grant_privileges(1: PrivilegeBag privileges) throws (1: MetaException o1)
  GrantRevokePrivilegeResponse grant_revoke_privileges(1: GrantRevokePrivilegeRequest request) throws (1: MetaException o1)
  GrantRevokeRoleResponse grant_revoke_role(1: GrantRevokeRoleRequest request) throws (1: MetaException o1)
  bool grant_role(1: string role_name, 2: string principal_name, 3: PrincipalType principal_type, 4: string grantor, 5: PrincipalType grantorType, 6: bool grant_option) throws (1: MetaException o1)
  void heartbeat(1: HeartbeatRequest ids) throws (1: NoSuchLockException o1, 2: NoSuchTxnException o2, 3: TxnAbortedException o3)
  bool heartbeat_lock_materialization_rebuild(1: string dbName, 2: string tableName, 3: i64 txnId)
  HeartbeatTxnRangeResponse heartbeat_txn_range(1: HeartbeatTxnRangeRequest txns)
  HiveAcidBeginResponse hive_acid_begin(1: HiveAcidBeginRequest rqst) throws (1: MetaException o1)
  HiveAcidCommitRowsResponse hive_acid_commit_rows(1: HiveAcidCommitRowsRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: MetaException o3)
  HiveAcidMovedResponse hive_acid_moved(1: HiveAcidMovedRequest rqst) throws (1: MetaException o1)
  HiveAcidPartitionsResponse hive_acid_partitions(1: HiveAcidPartitionsRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  HiveAcidPressureResponse hive_acid_pressure(1: HiveAcidPressureRequest rqst) throws (1: MetaException o1)
  HiveAcidOrphansResponse hive_acid_orphans(1: HiveAcidOrphansRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  HiveAcidRemovalsResponse hive_acid_removals(1: HiveAcidRemovalsRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void hive_acid_replace_table(1: HiveAcidReplaceTableRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2, 3: NoSuchObjectException o3, 4: InvalidOperationException o4, 5: MetaException o5)
  HiveAcidWhyResponse hive_acid_why(1: HiveAcidWhyRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool isPartitionMarkedForEvent(1: string db_name, 2: string tbl_name, 3: map<string,string> part_vals, 4: PartitionEventType eventType) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: UnknownDBException o3, 4: UnknownTableException o4, 5: UnknownPartitionException o5, 6: InvalidPartitionException o6)
  list<HiveObjectPrivilege> list_privileges(1: string principal_name, 2: PrincipalType principal_type, 3: HiveObjectRef hiveObject) throws (1: MetaException o1)
  list<Role> list_roles(1: string principal_name, 2: PrincipalType principal_type) throws (1: MetaException o1)
  LockResponse lock(1: LockRequest rqst) throws (1: NoSuchTxnException o1, 2: TxnAbortedException o2)
  void map_schema_version_to_serde(1: MapSchemaVersionToSerdeRequest rqst) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  void markPartitionForEvent(1: string db_name, 2: string tbl_name, 3: map<string,string> part_vals, 4: PartitionEventType eventType) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: UnknownDBException o3, 4: UnknownTableException o4, 5: UnknownPartitionException o5, 6: InvalidPartitionException o6)
  void mark_cleaned(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  void mark_compacted(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  void mark_failed(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  void mark_refused(1: CompactionInfoStruct cr) throws (1: MetaException o1)
  OpenTxnsResponse open_txns(1: OpenTxnRequest rqst)
  bool partition_name_has_valid_characters(1: list<string> part_vals, 2: bool throw_exception) throws (1: MetaException o1)
  map<string,string> partition_name_to_spec(1: string part_name) throws (1: MetaException o1)
  list<string> partition_name_to_vals(1: string part_name) throws (1: MetaException o1)
  PutFileMetadataResult put_file_metadata(1: PutFileMetadataRequest req)
  GrantRevokePrivilegeResponse refresh_privileges(1: HiveObjectRef objToRefresh, 2: string authorizer, 3: GrantRevokePrivilegeRequest grantRequest) throws (1: MetaException o1)
  oneway void reinitialize()
  void remove_compaction_metrics_data(1: CompactionMetricsDataRequest request) throws (1: MetaException o1)
  bool remove_master_key(1: i32 key_seq)
  bool remove_token(1: string token_identifier)
  void rename_partition(1: string db_name, 2: string tbl_name, 3: list<string> part_vals, 4: Partition new_part) throws (1: InvalidOperationException o1, 2: MetaException o2)
  RenamePartitionResponse rename_partition_req(1: RenamePartitionRequest req) throws (1: InvalidOperationException o1, 2: MetaException o2)
  i64 renew_delegation_token(1: string token_str_form) throws (1: MetaException o1)
  void repl_tbl_writeid_state(1: ReplTblWriteIdStateRequest rqst)
  bool revoke_privileges(1: PrivilegeBag privileges) throws (1: MetaException o1)
  bool revoke_role(1: string role_name, 2: string principal_name, 3: PrincipalType principal_type) throws (1: MetaException o1)
  void scheduled_query_maintenance(1: ScheduledQueryMaintenanceRequest request) throws (1: MetaException o1, 2: NoSuchObjectException o2, 3: AlreadyExistsException o3, 4: InvalidInputException o4)
  ScheduledQueryPollResponse scheduled_query_poll(1: ScheduledQueryPollRequest request) throws (1: MetaException o1)
  void scheduled_query_progress(1: ScheduledQueryProgressInfo info) throws (1: MetaException o1, 2: InvalidOperationException o2)
  void seed_txn_id(1: SeedTxnIdRequest rqst) throws (1: MetaException o1)
  void seed_write_id(1: SeedTableWriteIdsRequest rqst) throws (1: MetaException o1)
  void setMetaConf(1: string key, 2: string value) throws (1: MetaException o1)
  void setOption(1: string key, 2: string value)
  bool set_aggr_stats_for(1: SetPartitionsStatsRequest request) throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: InvalidInputException o4)
  void set_hadoop_jobid(1: string jobId, 2: i64 cq_id)
  bool set_properties(1: PropertySetRequest req) throws (1: MetaException e1, 2: NoSuchObjectException e2)
  void set_schema_version_state(1: SetSchemaVersionStateRequest rqst) throws (1: NoSuchObjectException o1, 2: InvalidOperationException o2, 3: MetaException o3)
  list<string> set_ugi(1: string user_name, 2: list<string> group_names) throws (1: MetaException o1)
  ShowCompactResponse show_compact(1: ShowCompactRequest rqst)
  ShowLocksResponse show_locks(1: ShowLocksRequest rqst)
  oneway void shutdown()
  bool submit_for_cleanup(1: CompactionRequest o1, 2: i64 o2, 3: i64 o3) throws (1: MetaException o1)
  Table translate_table_dryrun(1: CreateTableRequest request) throws (1: AlreadyExistsException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: NoSuchObjectException o4)
  void truncate_table(1: string dbName, 2: string tableName, 3: list<string> partNames) throws (1: MetaException o1)
  TruncateTableResponse truncate_table_req(1: TruncateTableRequest req) throws (1: MetaException o1)
  void unlock(1: UnlockRequest rqst) throws (1: NoSuchLockException o1, 2: TxnOpenException o2)
  bool update_compaction_metrics_data(1: CompactionMetricsDataStruct data) throws (1: MetaException o1)
  void update_compactor_state(1: CompactionInfoStruct cr, 2: i64 txn_id)
  void update_creation_metadata(1: string catName, 2: string dbname, 3: string tbl_name, 4: CreationMetadata creation_metadata) throws (1: MetaException o1, 2: InvalidOperationException o2, 3: UnknownDBException o3)
  void update_master_key(1: i32 seq_number, 2: string key) throws (1: NoSuchObjectException o1, 2: MetaException o2)
  bool update_partition_column_statistics(1: ColumnStatistics stats_obj) throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: InvalidInputException o4)
  SetPartitionsStatsResponse update_partition_column_statistics_req(1: SetPartitionsStatsRequest req) throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: InvalidInputException o4)
  bool update_table_column_statistics(1: ColumnStatistics stats_obj) throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: InvalidInputException o4)
  SetPartitionsStatsResponse update_table_column_statistics_req(1: SetPartitionsStatsRequest req) throws (1: NoSuchObjectException o1, 2: InvalidObjectException o2, 3: MetaException o3, 4: InvalidInputException o4)
  void update_transaction_statistics(1: UpdateTransactionalStatsRequest req) throws (1: MetaException o1)
  WMValidateResourcePlanResponse validate_resource_plan(1: WMValidateResourcePlanRequest request) throws (1: NoSuchObjectException o1, 2: MetaException o2)
}
