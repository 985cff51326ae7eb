"""Hive's settings of transactions and compaction on which this server does not act, and why (transactions.md §7).

The configuration of a real cluster names many of them; giving one is worth a warning and no error.
"""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import spelling

CLIENT, SERVER, BOTH = "client", "server", "both"


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """A setting of Hive without effect here; `wiki` is its default in Hive's wiki, None if that does not name it."""

    key: str
    side: str
    hive: str
    wiki: str | None
    why: str


_SESSION = "The client decides: give it to hive_acid.spark.session."
_LOCK_CHOICE = "Which locks a statement takes is the client's choice."
_LOCK_WAIT = "How long a client waits for a lock is its lock_timeout_ms; the server wakes it at once."
_SIZES = "Each call is one function of the database, whatever its size."
_LEADER = "The leader is always elected by lease."
_STATISTICS = "A compaction changes no row: statistics stay, and what is on record of files and bytes follows it."
_MAPREDUCE = "No MapReduce or Tez: compactions run on Spark (metastore.compactor.spark.submit)."
_PEM = "Certificate and key are files in PEM (metastore.keystore.path, metastore.tls.key)"
_TRUST = "Whose certificates a client believes is its own affair; those of clients are metastore.tls.client.ca."
_LOGIN = "How a client logs in is its own affair; who may is metastore.authentication."
_PLACE = "Where the server listens and keeps its data are options of `metastore serve`"

_TRANSACTIONS = (
    KnownSetting("hive.support.concurrency", CLIENT, "false", "true (required)", _SESSION),
    KnownSetting(
        "hive.txn.manager",
        CLIENT,
        "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
        "DbTxnManager (required)",
        _SESSION,
    ),
    KnownSetting(
        "metastore.txn.opentxn.timeout", SERVER, "1000ms", None, "Transaction ids become visible in their order."
    ),
    KnownSetting(
        "hive.count.open.txns.interval", SERVER, "1s", "1s", "The limit of open transactions is exact at each opening."
    ),
    KnownSetting(
        "hive.txn.heartbeat.threadpool.size",
        CLIENT,
        "5",
        "5",
        "One thread heartbeats for a whole connection.",
    ),
    KnownSetting(
        "hive.writeset.reaper.interval",
        SERVER,
        "60s",
        None,
        "Part of the AcidTxnCleaner (metastore.acid.txn.cleaner.interval).",
    ),
    KnownSetting(
        "hive.txn.retryable.sqlex.regex",
        SERVER,
        "",
        "",
        "What is repeated is known by its SQLSTATE, lost connections to Postgres included.",
    ),
    KnownSetting(
        "hive.txn.use.minhistorylevel", SERVER, "true", None, "An open transaction holds what it may read in any case."
    ),
    KnownSetting(
        "hive.txn.use.minhistorywriteid",
        CLIENT,
        "false",
        None,
        "A reader that names its tables holds the Cleaner back on these alone; one that does not, on all.",
    ),
    KnownSetting("hive.txn.strict.locking.mode", CLIENT, "true", "true", _LOCK_CHOICE),
    KnownSetting("hive.txn.ext.locking.enabled", CLIENT, "false", None, _LOCK_CHOICE),
    KnownSetting("hive.txn.xlock.write", CLIENT, "true", None, _LOCK_CHOICE),
    KnownSetting("hive.txn.xlock.iow", CLIENT, "true", None, _LOCK_CHOICE),
    KnownSetting("hive.txn.xlock.ctas", CLIENT, "true", None, _LOCK_CHOICE),
    KnownSetting("hive.txn.xlock.mergeinsert", CLIENT, "false", None, _LOCK_CHOICE),
    KnownSetting("hive.txn.read.locks", CLIENT, "true", None, _LOCK_CHOICE),
    KnownSetting("hive.txn.nonacid.read.locks", CLIENT, "true", None, _LOCK_CHOICE),
    KnownSetting("hive.acid.lockless.reads.enabled", CLIENT, "false", None, _LOCK_CHOICE),
    KnownSetting("hive.locks.max.partitions", CLIENT, "-1", None, _LOCK_CHOICE),
    KnownSetting("hive.lock.numretries", CLIENT, "100", "100", _LOCK_WAIT),
    KnownSetting("hive.lock.sleep.between.retries", CLIENT, "60s", "60s", _LOCK_WAIT),
    KnownSetting("hive.unlock.numretries", CLIENT, "10", None, "Ending a transaction frees its locks."),
    KnownSetting(
        "hive.txn.manager.dump.lock.state.on.acquire.timeout",
        CLIENT,
        "false",
        None,
        "`metastore locks` shows who waits for whom.",
    ),
    KnownSetting(
        "hive.txn.readonly.enabled", CLIENT, "false", None, "The client opens its readers as READ_ONLY in any case."
    ),
    KnownSetting(
        "hive.txn.retrysnapshot.max.count",
        CLIENT,
        "5",
        None,
        "A conflict is told at commit, never retried in secret.",
    ),
    KnownSetting(
        "hive.acid.createtable.softdelete", CLIENT, "false", None, "The client says in each call how it drops."
    ),
    KnownSetting("hive.acid.truncate.usebase", CLIENT, "true", None, "The client says in each call how it truncates."),
    KnownSetting(
        "hive.acid.droppartition.usebase", CLIENT, "false", None, "The client says in each call how it drops."
    ),
    KnownSetting(
        "hive.acid.renamepartition.makecopy", CLIENT, "false", None, "The client says in each call how it renames."
    ),
    KnownSetting("hive.txn.stats.enabled", BOTH, "true", None, "Statistics of ACID tables always go by transactions."),
    KnownSetting(
        "hive.stats.autogather",
        BOTH,
        "true",
        None,
        "Numbers of files, bytes and rows are those that clients send: no directory is listed for them.",
    ),
    KnownSetting("hive.stats.fetch.kll", SERVER, "false", None, "Histograms are stored and sent as they are."),
    KnownSetting(
        "hive.metastore.stats.ndv.densityfunction",
        SERVER,
        "false",
        None,
        "Without bit vectors the number of distinct values is the largest of a partition.",
    ),
    KnownSetting("metastore.jdbc.max.batch.size", SERVER, "1000", None, _SIZES),
    KnownSetting("metastore.direct.sql.max.elements.in.clause", SERVER, "1000", None, _SIZES),
    KnownSetting("metastore.direct.sql.max.query.length", SERVER, "100", None, _SIZES),
)

_COMPACTION = (
    KnownSetting("hive.metastore.runworker.in", SERVER, "hs2", "metastore", "Workers run in the metastore."),
    KnownSetting("hive.compactor.crud.query.based", SERVER, "false", None, _MAPREDUCE),
    KnownSetting("hive.compactor.gather.stats", SERVER, "true", None, _STATISTICS),
    KnownSetting("hive.mr.compactor.gather.stats", SERVER, "false", None, _STATISTICS),
    KnownSetting("hive.compaction.merge.enabled", SERVER, "false", None, "Files are not merged without a compaction."),
    KnownSetting("hive.compactor.wait.timeout", CLIENT, "300000ms", None, "How long a client waits is its own affair."),
    KnownSetting(
        "metastore.compactor.connectionPool.maxPoolSize",
        SERVER,
        "5",
        None,
        "Compactions share the server's connections.",
    ),
)

_SERVICES = (
    KnownSetting("metastore.housekeeping.leader.election", SERVER, "host", None, _LEADER),
    KnownSetting("metastore.housekeeping.leader.hostname", SERVER, "", None, _LEADER),
    KnownSetting("metastore.housekeeping.leader.lock.namespace", SERVER, "", None, _LEADER),
    KnownSetting("metastore.task.threads.always", SERVER, "a list of classes", None, "The services are built in."),
    KnownSetting("metastore.task.threads.remote", SERVER, "a list of classes", None, "The services are built in."),
    KnownSetting("metastore.acidmetrics.ext.on", SERVER, "true", None, "All gauges are of one service."),
)

_EVENTS = (
    KnownSetting("metastore.event.listeners", SERVER, "", None, "No Java here; the notification log is built in."),
    KnownSetting(
        "metastore.event.message.factory",
        SERVER,
        "org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder",
        None,
        "Messages are json-0.2, which clients of every release read.",
    ),
    KnownSetting("metastore.event.db.notification.api.auth", SERVER, "true", None, "Every client may follow the log."),
    KnownSetting(
        "metastore.event.db.listener.clean.startup.wait.interval",
        SERVER,
        "1d",
        None,
        "Old events go whenever they are old.",
    ),
    KnownSetting("hive.repl.event.db.listener.timetolive", SERVER, "10d", None, "All events are kept equally long."),
    KnownSetting("hive.repl.cm.enabled", SERVER, "false", None, "Files are not copied away for replication."),
)

_DOORS = (
    KnownSetting("metastore.keystore.type", SERVER, "", None, f"{_PEM}."),
    KnownSetting(
        "metastore.keystore.password",
        SERVER,
        "",
        None,
        f"{_PEM}; the password of an encrypted key is in a file: metastore.tls.key.password.file.",
    ),
    KnownSetting("metastore.keymanagerfactory.algorithm", SERVER, "", None, f"{_PEM}."),
    KnownSetting("metastore.truststore.path", CLIENT, "", None, _TRUST),
    KnownSetting("metastore.truststore.password", CLIENT, "", None, _TRUST),
    KnownSetting("metastore.truststore.type", CLIENT, "", None, _TRUST),
    KnownSetting("metastore.trustmanagerfactory.algorithm", CLIENT, "", None, _TRUST),
    KnownSetting("hive.metastore.uris", CLIENT, "", None, "Where a client finds us is its own affair."),
    KnownSetting("metastore.client.auth.mode", CLIENT, "NOSASL", None, _LOGIN),
    KnownSetting("metastore.client.plain.username", CLIENT, "", None, _LOGIN),
    KnownSetting("metastore.client.thrift.transport.mode", CLIENT, "binary", None, _LOGIN),
    KnownSetting("metastore.client.thrift.http.path", CLIENT, "metastore", None, _LOGIN),
    KnownSetting("metastore.client.http.additional.headers", CLIENT, "", None, _LOGIN),
    KnownSetting("hive.ssl.protocol.blacklist", SERVER, "SSLv2,SSLv3", None, "TLS 1.2 is the oldest that is spoken."),
)

_PLACES = (
    KnownSetting("metastore.warehouse.dir", SERVER, "/user/hive/warehouse", None, f"{_PLACE}: --warehouse."),
    KnownSetting("metastore.thrift.port", SERVER, "9083", None, f"{_PLACE}: --port."),
    KnownSetting("hive.metastore.port", SERVER, "9083", None, f"{_PLACE}: --port."),
)

KNOWN = {
    spelling(known.key): known for known in (*_TRANSACTIONS, *_COMPACTION, *_SERVICES, *_EVENTS, *_DOORS, *_PLACES)
}
"""By the spelling of their keys."""
