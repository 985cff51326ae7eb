"""Hive 4.0.1 itself: its driver in a JVM of its own, in local mode, beside our metastore.

Its jars are those of Maven Central that it loads here (``hive-4.0.1.tsv``: path and SHA-256). It runs MapReduce in its
own process, so a statement takes seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError

from tests.clients.java.maven import Jar, cache_directory
from tests.clients.java.process import JavaProcess
from tests.engines.javas import java_between
from tests.jvm import SHORT_LIVED

VERSION = "4.0.1"
_JARS = Path(__file__).parent / "hive-4.0.1.tsv"
LEAST_JAVA, MOST_JAVA = 17, 23
"""Hadoop 3.3 asks for the security manager's subject, which Java 24 no longer has."""

_OPENED = (
    *("java.lang", "java.net", "java.nio", "java.util", "java.util.concurrent", "java.util.concurrent.atomic"),
    *("java.util.regex", "java.text", "java.time", "java.io"),
)
_LOG = """status=error
rootLogger.level=warn
rootLogger.appenderRef.file.ref=file
appender.file.type=File
appender.file.name=file
appender.file.fileName={log}
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=%d %p %c{{1}} %m%n%throwable
"""


class HiveRefusedError(Exception):
    """What Hive told its user instead of rows."""


class HiveEngine(JavaProcess):
    """A session of Hive; rows come as the texts that it shows. A context manager."""

    def __init__(self, uri: str, warehouse: Path, scratch: Path) -> None:
        """Raises NotFetchedError, NoJavaError."""
        java = java_between(LEAST_JAVA, MOST_JAVA)
        jars = hive_jars()
        properties = scratch / "log4j2.properties"
        properties.write_text(_LOG.format(log=scratch / "hive.log"))
        (scratch / "hive-site.xml").write_text(_site(_settings(uri, warehouse, scratch)))
        options = [
            *("-Xmx1g", *SHORT_LIVED, "-XX:-UsePerfData", "-Duser.timezone=UTC"),
            *(f"-Djava.io.tmpdir={scratch}", f"-Dlog4j.configurationFile={properties}"),
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
        ]
        with (scratch / "hive.out").open("w") as out:
            super().__init__(java, [scratch, *jars], options, out)
        self._conf = self.jvm.org.apache.hadoop.hive.conf.HiveConf()
        self.jvm.org.apache.hadoop.hive.ql.session.SessionState.start(self._conf)

    def set(self, **settings: str) -> None:
        """Settings of the session, with underscores for dots."""
        for key, value in settings.items():
            self._conf.set(key.replace("_", "."), value)

    def sql(self, statement: str) -> list[tuple[str, ...]]:
        """The rows of a statement, each value as Hive shows it. Raises HiveRefusedError."""
        driver = self.jvm.org.apache.hadoop.hive.ql.DriverFactory.newDriver(self._conf)
        try:
            driver.run(statement)
            found: list[str] = []
            while True:
                batch = self.jvm.java.util.ArrayList()
                if not driver.getResults(batch):
                    return [tuple(line.split("\t")) for line in found]
                found += [str(line) for line in batch]
        except Py4JJavaError as error:
            raise HiveRefusedError(f"{statement}: {error.java_exception}") from None
        finally:
            driver.close()


def hive_jars() -> list[Path]:
    """In the order of their names, in which Hive's come before the elder protobuf. Raises NotFetchedError."""
    found = [Jar(*line.split("\t")) for line in _JARS.read_text().splitlines()]
    return [jar.fetch(cache_directory()) for jar in sorted(found, key=lambda jar: jar.path.rpartition("/")[2])]


def _site(settings: Mapping[str, str]) -> str:
    """A configuration file, which counts for every part of Hive."""
    properties = (f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items())
    return f"<configuration>{''.join(properties)}</configuration>\n"


def _settings(uri: str, warehouse: Path, scratch: Path) -> dict[str, str]:
    """Transactions as Hive's documentation has them, all in this process, and no waiting for jobs that are over."""
    return {
        "hive.metastore.uris": uri,
        "hive.metastore.connect.retries": "1",
        "hive.metastore.warehouse.dir": str(warehouse),
        "fs.defaultFS": "file:///",
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.exec.dynamic.partition.mode": "nonstrict",
        "hive.execution.engine": "mr",
        "mapreduce.framework.name": "local",
        "hive.auto.convert.join": "false",  # tables for it are made by another process
        "hive.server2.materializedviews.registry.impl": "DUMMY",
        "hive.notification.event.poll.interval": "0s",
        "mapreduce.task.io.sort.mb": "16",
        "mapreduce.client.completion.pollinterval": "50",
        "mapreduce.client.progressmonitor.pollinterval": "50",
        "hive.exec.counters.pull.interval": "100",
        "hadoop.tmp.dir": f"{scratch}/hadoop",
        "hive.exec.scratchdir": f"{scratch}/scratch",
        "hive.exec.local.scratchdir": f"{scratch}/local",
        "hive.downloaded.resources.dir": f"{scratch}/resources",
        "hive.querylog.location": f"{scratch}/queries",
        "mapreduce.cluster.local.dir": f"{scratch}/mapred",
        "mapreduce.jobtracker.staging.root.dir": f"{scratch}/staging",
    }
