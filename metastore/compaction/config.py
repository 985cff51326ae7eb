"""Settings of compaction, with Hive's keys (transactions.md §7.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from metastore.settings import boolean, choice, counts, duration, fraction, integer, text

_DELTAS, _PART_OF_BASE = "hive.compactor.delta.num.threshold", "hive.compactor.delta.pct.threshold"
_ON_BY_DEFAULT = "A table that nobody compacts only gets slower."


@dataclass(frozen=True)
class CompactionConfig:
    """What is compacted and when, who does it, and what the Cleaner removes.

    Unlike Hive's, ours is on by default: a table that nobody compacts only gets slower.
    """

    initiator_on: bool = boolean(
        "metastore.compactor.initiator.on",
        "true",
        "Look for tables and partitions that need a compaction.",
        hive="false",
        wiki="false",
        why=_ON_BY_DEFAULT,
    )
    cleaner_on: bool = boolean(
        "metastore.compactor.cleaner.on",
        "true",
        "Remove files that nobody needs any more.",
        hive="false",
        wiki="false",
        why=_ON_BY_DEFAULT,
    )
    worker_threads: int = integer(
        "metastore.compactor.worker.threads",
        "1",
        "Compactions that this server runs at a time, those of the pools included; 0 for none.",
        most=1000,
        hive="0",
        wiki="0",
        why=_ON_BY_DEFAULT,
    )
    worker_pools: Mapping[str, int] = counts(
        "hive.compactor.worker.*.threads",
        "How many of them are for the pool of that name alone; the rest are for compactions without a pool.",
        hive="",
        wiki="",
    )
    check_interval_ms: int = duration(
        "hive.compactor.check.interval",
        "300s",
        "Pause between two Initiator runs.",
        least_ms=1,
        hive="300s",
        wiki="300s",
    )
    delta_num_threshold: int = integer(
        _DELTAS,
        "10",
        "More deltas than this make a compaction worth while; with the policy cost, of those that are merged cheaply.",
        hive="10",
        wiki="10",
    )
    delta_pct_threshold: float = fraction(
        _PART_OF_BASE,
        "0.1",
        "Deltas larger than this part of the base make it a major one, with the policy hive.",
        hive="0.1",
        wiki="0.1",
    )
    policy: str = choice(
        "metastore.compactor.policy",
        "cost",
        "What the Initiator decides by: cost (what readers save against what is rewritten), or hive (two thresholds). "
        "Whoever gives one of Hive's thresholds, and no policy, has hive.",
        ("hive", "cost"),
        implied=("hive", (_DELTAS, _PART_OF_BASE)),
    )
    cost_scans: int = integer(
        "metastore.compactor.policy.cost.scans",
        "5",
        "With the policy cost: how often a table without readers just now is supposed to be read in the time of ten "
        "writes; each reader that it has on average counts as many times more.",
        least=1,
        most=1_000_000,
    )
    insert_only: bool = boolean(
        "hive.compactor.compact.insert.only",
        "true",
        "Compact insert-only tables, too.",
        hive="true",
    )
    initiator_threads: int = integer(
        "hive.compactor.request.queue",
        "1",
        "Tables and partitions that the Initiator looks at side by side.",
        least=1,
        most=100,
        hive="1",
    )
    fetch_size: int = integer(
        "hive.compactor.fetch.size",
        "1000",
        "Tables and partitions that are asked for at a time.",
        least=100,
        most=5000,
        hive="1000",
    )
    failed_threshold: int = integer(
        "hive.compactor.initiator.failed.compacts.threshold",
        "2",
        "After so many failures in a row the Initiator leaves a table alone.",
        least=1,
        most=20,
        hive="2",
        wiki="2",
    )
    failed_retry_ms: int = duration(
        "metastore.compactor.initiator.failed.retry.time",
        "7d",
        "How long it does so after the last failure; 0: until somebody compacts the table.",
        hive="7d",
    )
    max_deltas: int = integer(
        "hive.compactor.max.num.delta",
        "500",
        "Deltas that are merged at a time; a compaction of more goes by rounds. Tables and requests may say otherwise "
        "(compactor.hive.compactor.max.num.delta).",
        least=2,
        hive="500",
        wiki="500",
    )
    worker_timeout_ms: int = duration(
        "hive.compactor.worker.timeout",
        "86400s",
        "A longer compaction is stopped.",
        least_ms=1,
        hive="86400s",
        wiki="86400s",
    )
    worker_sleep_ms: int = duration(
        "hive.compactor.worker.sleep.time",
        "10800ms",
        "Pause of an idle worker.",
        least_ms=1,
        hive="10800ms",
    )
    worker_max_sleep_ms: int = duration(
        "hive.compactor.worker.max.sleep.time",
        "320000ms",
        "Longest pause of a worker that finds Spark unusable; it begins with the idle one and doubles.",
        least_ms=1,
        hive="320000ms",
    )
    worker_pool_timeout_ms: int = duration(
        "hive.compactor.worker.pool.timeout",
        "12h",
        "Then a compaction may leave its pool for any other.",
        hive="12h",
    )
    claim_timeout_ms: int = duration(
        "metastore.compactor.worker.claim.timeout",
        "10m",
        "A worker that has not begun by then has lost its compaction.",
        least_ms=1,
    )
    max_attempts: int = integer(
        "metastore.compactor.worker.max.attempts",
        "3",
        "Workers that may disappear over a compaction before it fails.",
        least=1,
    )
    run_as_user: str = text(
        "hive.compactor.run.as.user",
        "",
        "User of the compactor's transactions.",
        hive="",
    )
    job_queue: str = text(
        "hive.compactor.job.queue",
        "",
        "YARN queue or scheduler pool in which compactions run; tables and requests may name others.",
        hive="",
        wiki="",
    )
    spark_master: str = text(
        "metastore.compactor.spark.master",
        "local[2]",
        "Master of the warm Spark.",
    )
    spark_memory: str = text(
        "metastore.compactor.spark.memory",
        "1g",
        "Memory of the warm Spark's driver, which all slots share.",
    )
    spark_remote: str = text(
        "metastore.compactor.spark.remote",
        "",
        "URL of a Spark Connect server that compacts, such as sc://host:15002, in the place of the warm Spark.",
    )
    spark_submit: str = text(
        "metastore.compactor.spark.submit",
        "",
        "Command that starts a Spark job, such as 'spark-submit --master yarn'; empty: one warm Spark on this machine.",
    )
    compression: str = choice(
        "metastore.compactor.orc.compression",
        DEFAULT_COMPRESSION,
        "Compression of ORC files where a table's orc.compress does not say it: zstd, zlib or snappy.",
        ("zstd", "zlib", "snappy"),
    )
    cleaner_interval_ms: int = duration(
        "hive.compactor.cleaner.run.interval",
        "5000ms",
        "Pause of the Cleaner.",
        least_ms=1,
        hive="5000ms",
        wiki="5000ms",
    )
    cleaner_threads: int = integer(
        "hive.compactor.cleaner.threads.num",
        "1",
        "Tables and partitions that the Cleaner cleans at a time.",
        least=1,
        most=100,
        hive="1",
    )
    delayed_cleanup: bool = boolean(
        "hive.compactor.delayed.cleanup.enabled",
        "false",
        "Keep replaced files for the retention time.",
        hive="false",
    )
    cleaner_retention_ms: int = duration(
        "hive.compactor.cleaner.retention.time.seconds",
        "300s",
        "How long replaced files are kept.",
        hive="300s",
    )
    cleaner_max_attempts: int = integer(
        "hive.compactor.cleaner.retry.maxattempts",
        "5",
        "Then a compaction that cannot be cleaned has failed.",
        most=10,
        hive="5",
    )
    cleaner_retry_ms: int = duration(
        "hive.compactor.cleaner.retry.retention.time",
        "300s",
        "Pause after a failed cleaning, doubled each time.",
        aliases={"hive.compactor.cleaner.retry.retentionTime": "s"},
        hive="300s",
    )
    clean_aborts: bool = boolean(
        "metastore.compactor.clean.aborts.using.cleaner",
        "true",
        "Remove files of aborted transactions.",
        hive="true",
    )
    aborted_threshold: int = integer(
        "hive.compactor.abortedtxn.threshold",
        "1000",
        "More aborted transactions on a table than this are cleaned up.",
        hive="1000",
        wiki="1000",
    )
    aborted_age_ms: int = duration(
        "hive.compactor.aborted.txn.time.threshold",
        "12h",
        "So are fewer, when the oldest was opened so long ago.",
        hive="12h",
        wiki="12h",
    )
    staging_age_ms: int = duration(
        "metastore.compactor.staging.max.age",
        "1h",
        "Staging directories of finished transactions are kept so long.",
    )
    keep_succeeded: int = integer(
        "hive.compactor.history.retention.succeeded",
        "3",
        "History kept per partition.",
        most=100,
        hive="3",
        wiki="3",
    )
    keep_failed: int = integer(
        "hive.compactor.history.retention.failed",
        "3",
        "History kept per partition.",
        most=100,
        hive="3",
        wiki="3",
    )
    keep_not_initiated: int = integer(
        "hive.compactor.history.retention.did.not.initiate",
        "2",
        "History kept per partition.",
        most=100,
        aliases=("hive.compactor.history.retention.attempted",),
        hive="2",
        wiki="2",
    )
    keep_refused: int = integer(
        "hive.compactor.history.retention.refused",
        "2",
        "History kept per partition, of aborted ones too.",
        most=100,
        hive="3",
        why="As many as were not initiated: both came to nothing.",
    )
    history_timeout_ms: int = duration(
        "hive.compactor.history.retention.timeout",
        "7d",
        "Older failures go when a newer compaction has succeeded.",
        hive="7d",
    )
    housekeeper_interval_ms: int = duration(
        "metastore.compaction.housekeeper.interval",
        "2m",
        "Pause between two purges of the history.",
        least_ms=1,
        aliases={"hive.compactor.history.reaper.interval": "ms"},
        hive="300s",
        wiki="2m",
    )
    crowded_deltas: int = integer(
        "hive.compactor.active.delta.dir.threshold",
        "200",
        "With more deltas a table or partition is slow to read: the log and the sessions of writers are told.",
        least=1,
        hive="200",
    )
    crowded_small_deltas: int = integer(
        "hive.compactor.small.delta.dir.threshold",
        "200",
        "So is the log with more small ones.",
        least=1,
        hive="200",
    )
    crowded_obsolete_deltas: int = integer(
        "hive.compactor.obsolete.delta.dir.threshold",
        "200",
        "And with more that are replaced and not removed yet.",
        least=1,
        hive="200",
    )
    counted_deltas: int = integer(
        "metastore.deltametrics.delta.num.threshold",
        "100",
        "From so many on, numbers of deltas and of small deltas are among the figures.",
        least=1,
        hive="100",
    )
    counted_obsolete_deltas: int = integer(
        "metastore.deltametrics.obsolete.delta.num.threshold",
        "100",
        "From so many on, numbers of replaced deltas are.",
        least=1,
        hive="100",
    )
    small_delta_part: float = fraction(
        "metastore.deltametrics.delta.pct.threshold",
        "0.01",
        "A delta is small with less than this part of the base's bytes.",
        hive="0.01",
    )
    counted_places: int = integer(
        "metastore.deltametrics.max.cache.size",
        "100",
        "Tables and partitions that are shown for each of these figures: those with the most.",
        most=500,
        hive="100",
    )
