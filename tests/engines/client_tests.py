"""Hive 4.0.1's own tests of its metastore client, as it publishes them, run against a server of any kind.

The tests start metastores of their own; here they are given one that runs. Each class is to find a clean catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.clients.java.maven import Jar, cache_directory
from tests.clients.java.process import JavaProcess
from tests.engines.hive import LEAST_JAVA, MOST_JAVA, hive_jars
from tests.engines.javas import java_between
from tests.jvm import SHORT_LIVED

_PACKAGE = "org.apache.hadoop.hive.metastore.client"
_JARS = (
    Jar(
        "org/apache/hive/hive-standalone-metastore-server/4.0.1/hive-standalone-metastore-server-4.0.1-tests.jar",
        "60cca5aecc0fa9951ec364436e7a47e7b27a7e589a00e8e5f54ac35ca8b98fd7",
    ),
    Jar(
        "org/apache/hive/hive-standalone-metastore-common/4.0.1/hive-standalone-metastore-common-4.0.1-tests.jar",
        "23ddc79f1de02c80e948d341d3ecf0fce117d45b4d8d23f602f650cdcc9f4a58",
    ),
    Jar("junit/junit/4.13.2/junit-4.13.2.jar", "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3"),
    Jar(
        "org/hamcrest/hamcrest-core/1.3/hamcrest-core-1.3.jar",
        "66fdef91e9739348df7a096aa384a5685f4e875584cce89386a7a47251c4d8e9",
    ),
    Jar(
        "org/apache/datasketches/datasketches-java/1.3.0-incubating/datasketches-java-1.3.0-incubating.jar",
        "8e6c609f82789901c760ec653a745ce68c4c7e3b1aeb3c114771834902a320e7",
    ),
    Jar(
        "org/apache/datasketches/datasketches-memory/1.2.0-incubating/datasketches-memory-1.2.0-incubating.jar",
        "e8c160bdbd7a9b7c153fa22553e1926d28469973c8dfbfd944f652fb96d817a3",
    ),
)
_LOG = "status=error\nrootLogger.level=off\n"
_OURS = "[ours]"
"""What the names of tests end with."""
SERVER = {"hive.metastore.limit.partition.request": "100"}
"""How Hive's build sets its own server for them."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many tests of a class ran, and which failed with which words."""

    run: int
    failed: Mapping[str, str]


class ClientTests(JavaProcess):
    """The classes of the tests in a JVM of their own. A context manager."""

    def __init__(self, scratch: Path) -> None:
        """Raises NotFetchedError, NoJavaError."""
        java = java_between(LEAST_JAVA, MOST_JAVA)
        jars = [jar.fetch(cache_directory()) for jar in _JARS]
        log = scratch / "log4j2.properties"
        log.write_text(_LOG)
        options = [
            *("-Xmx1g", *SHORT_LIVED, "-XX:-UsePerfData", "-ea:org.apache.hadoop.hive..."),
            *(f"-Djava.io.tmpdir={scratch}", f"-Dtest.tmp.dir={scratch}"),
            f"-Dlog4j.configurationFile={log}",
        ]
        super().__init__(java, [*jars, *hive_jars()], options)

    def run(self, case: str, uri: str, warehouse: Path) -> Outcome:
        """Run the tests of a class against a server whose catalogue is clean."""
        metastore = self.jvm.org.apache.hadoop.hive.metastore
        conf = metastore.conf.MetastoreConf.newMetastoreConf()
        settings = {
            "metastore.thrift.uris": uri,
            "metastore.warehouse.dir": f"file:{warehouse}",
            "metastore.warehouse.external.dir": f"file:{warehouse}",
            # As Hive's build has them.
            "metastore.batch.retrieve.max": "2",
            "metastore.batch.retrieve.table.partition.max": "2",
            "metastore.limit.partition.request": "100",
            "fs.defaultFS": "file:///",
        }
        for key, value in settings.items():
            conf.set(key, value)
        service = metastore.minihms.ClusterMetaStoreForTests(conf)
        java, junit = self.jvm.java, self.jvm.org.junit
        services = java.lang.Class.forName(f"{_PACKAGE}.MetaStoreClientTest").getDeclaredField("metaStoreServices")
        services.setAccessible(True)
        services.set(None, [service])
        parameters = junit.runners.parameterized
        tests = junit.runners.model.TestClass(java.lang.Class.forName(f"{_PACKAGE}.{case}"))
        nothing = self._gateway.new_array(java.lang.Object, 0)
        for method in tests.getAnnotatedMethods(java.lang.Class.forName("org.junit.BeforeClass")):
            method.invokeExplosively(None, nothing)
        runner = parameters.BlockJUnit4ClassRunnerWithParameters(
            parameters.TestWithParameters(_OURS, tests, ["Remote", service])
        )
        result = junit.runner.JUnitCore().run(junit.runner.Request.runner(runner))
        failures = result.getFailures()
        return Outcome(
            result.getRunCount(),
            {
                str(one.getDescription().getMethodName()).removesuffix(_OURS): str(one.getTrace())[:4000]
                for one in failures
            },
        )
