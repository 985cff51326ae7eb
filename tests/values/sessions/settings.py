"""Settings of Spark that users have, for the story that every one of them is told under."""

from __future__ import annotations

from collections.abc import Mapping

Settings = Mapping[str, str]

SETTINGS: dict[str, Settings] = {
    "none": {},
    "ANSI off": {"spark.sql.ansi.enabled": "false"},
    "names by case": {"spark.sql.caseSensitive": "true"},
    "escapes stay": {"spark.sql.parser.escapedStringLiterals": "true"},
    "timestamps without zone": {"spark.sql.timestampType": "TIMESTAMP_NTZ"},
    "legacy assignment": {"spark.sql.storeAssignmentPolicy": "LEGACY"},
    "strict assignment": {"spark.sql.storeAssignmentPolicy": "STRICT"},
    "not adaptive": {"spark.sql.adaptive.enabled": "false"},
    "no code": {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
    "ORC of Hive": {"spark.sql.orc.impl": "hive"},
    "sources of version 2": {"spark.sql.sources.useV1SourceList": ""},
    "small parts": {"spark.sql.files.maxPartitionBytes": "4096", "spark.sql.files.openCostInBytes": "0"},
    "few records a file": {"spark.sql.files.maxRecordsPerFile": "2"},
    "one shuffle partition": {"spark.sql.shuffle.partitions": "1"},
    "200 shuffle partitions": {"spark.sql.shuffle.partitions": "200"},
    "ORC by rows": {"spark.sql.orc.enableVectorizedReader": "false"},
    "nested ORC by rows": {"spark.sql.orc.enableNestedColumnVectorizedReader": "false"},
    "small ORC batches": {"spark.sql.orc.columnarReaderBatchSize": "2", "spark.sql.orc.columnarWriterBatchSize": "2"},
    "ORC merged": {"spark.sql.orc.mergeSchema": "true"},
    "nothing pushed to ORC": {"spark.sql.orc.filterPushdown": "false"},
    "names in double quotes": {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
    },
    "char not padded": {"spark.sql.readSideCharPadding": "false"},
    "char kept": {"spark.sql.preserveCharVarcharTypeInfo": "true"},
    "char as varchar": {"spark.sql.charAsVarchar": "true"},
    "legacy time parser": {"spark.sql.legacy.timeParserPolicy": "LEGACY"},
    "ORC in snappy": {"spark.sql.orc.compression.codec": "snappy"},
    "partitions overwritten": {"spark.sql.sources.partitionOverwriteMode": "dynamic"},
    "files may be missing": {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
    },
    "no pruning of columns": {
        "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
        "spark.sql.optimizer.excludedRules": ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in ("ColumnPruning", "PushDownPredicates", "SimplifyCasts", "CollapseProject",
                         "NullPropagation", "BooleanSimplification", "OptimizeIn", "InferFiltersFromConstraints",
                         "UnwrapCastInBinaryComparison", "PruneFilters", "CombineFilters")
        ),
    },
    "last key wins": {"spark.sql.mapKeyDedupPolicy": "LAST_WIN"},
    "no broadcast": {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.join.preferSortMergeJoin": "true"},
    "large Arrow types": {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
    "small Arrow batches": {"spark.sql.execution.arrow.maxRecordsPerBatch": "2"},
    "legacy literals": {
        "spark.sql.legacy.literal.pickMinimumPrecision": "false",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
    },
    "legacy casts": {
        "spark.sql.legacy.castComplexTypesToString.enabled": "true",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "true",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    },
    "types of partitions": {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"},
    "listed by jobs": {"spark.sql.sources.parallelPartitionDiscovery.threshold": "0"},
    "no cross joins": {"spark.sql.crossJoin.enabled": "false"},
    "legacy times in Parquet": {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
        "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
    },
    "sets of all lists": {"spark.sql.optimizer.inSetConversionThreshold": "0"},
    "size of null": {"spark.sql.legacy.sizeOfNull": "true", "spark.sql.legacy.setopsPrecedence.enabled": "true"},
    "another zone": {"spark.sql.session.timeZone": "Europe/Berlin"},
    "the same zone": {"spark.sql.session.timeZone": "Etc/UTC"},
    "local relations in files": {"spark.sql.session.localRelationCacheThreshold": "1"},
    "seven parts": {"spark.sql.files.minPartitionNum": "7"},
}  # fmt: skip
"""By what they do."""

MEANINGS: dict[str, Settings] = {
    "ANSI off": SETTINGS["ANSI off"],
    "texts of days": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    },
    "wide literals": {
        "spark.sql.legacy.literal.pickMinimumPrecision": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
        "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "true",
    },
    "wide literals, ANSI off": {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.legacy.literal.pickMinimumPrecision": "false",
        "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    },
    "decimals with exponent": {
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "true",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "true",
    },
    "texts beside texts": {
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
    },
    "names in double quotes": SETTINGS["names in double quotes"],
    "lists of nulls": {
        "spark.sql.legacy.nullInEmptyListBehavior": "true",
        "spark.sql.legacy.inSubqueryNullability": "true",
        "spark.sql.optimizer.inSetConversionThreshold": "1",
    },
    "times without zone": {
        "spark.sql.timestampType": "TIMESTAMP_NTZ",
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.ansi.enabled": "false",
    },
    "nothing folded": {
        "spark.sql.optimizer.excludedRules": ",".join(
            f"org.apache.spark.sql.catalyst.optimizer.{rule}"
            for rule in ("ConstantFolding", "ConstantPropagation", "UnwrapCastInBinaryComparison", "OptimizeIn",
                         "BooleanSimplification", "SimplifyBinaryComparison", "ReplaceNullWithFalseInPredicate")
        ),
    },
    "estimated": {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true",
                  "spark.sql.cbo.planStats.enabled": "true"},
    "duplicated betweens": {
        "spark.sql.legacy.duplicateBetweenInput": "true",
        "spark.sql.legacy.bangEqualsNot": "true",
        "spark.sql.ansi.relationPrecedence": "true",
    },
}  # fmt: skip
"""Settings that give conditions, literals and comparisons another meaning, or another way to be asked."""

TOGETHER = (
    (
        "none",
        "ANSI off",
        "escapes stay",
        "legacy assignment",
        "not adaptive",
        "ORC of Hive",
        "small parts",
        "one shuffle partition",
        "legacy time parser",
        "last key wins",
        "no broadcast",
        "char as varchar",
        "small Arrow batches",
        "sets of all lists",
    ),
    (
        "names by case",
        "timestamps without zone",
        "strict assignment",
        "no code",
        "sources of version 2",
        "few records a file",
        "ORC by rows",
        "nothing pushed to ORC",
        "char not padded",
        "large Arrow types",
        "ORC in snappy",
        "types of partitions",
        "the same zone",
    ),
    (
        "200 shuffle partitions",
        "nested ORC by rows",
        "small ORC batches",
        "names in double quotes",
        "legacy literals",
        "files may be missing",
        "ORC merged",
        "no pruning of columns",
        "seven parts",
    ),
    (
        "char kept",
        "partitions overwritten",
        "legacy casts",
        "listed by jobs",
        "no cross joins",
        "legacy times in Parquet",
        "size of null",
        "local relations in files",
    ),
)
"""All settings but another zone, those together that do not exclude each other."""
