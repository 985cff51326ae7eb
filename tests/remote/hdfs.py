"""A real HDFS on loopback: a name node and a data node in one JVM, by Hadoop's own cluster for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.java.maven import Jar, cache_directory
from tests.clients.java.process import PYSPARK_JARS
from tests.ports import free_port
from tests.remote.java_server import running

SERVER = (
    Jar(
        "org/apache/hadoop/hadoop-client-minicluster/3.5.0/hadoop-client-minicluster-3.5.0.jar",
        "06772d24529e59939915979b3edba204d367750ef7dc5120411f35221dd4818c",
    ),
    Jar(
        "org/junit/jupiter/junit-jupiter-api/5.13.4/junit-jupiter-api-5.13.4.jar",
        "d1bb81abfd9e03418306b4e6a3390c8db52c58372e749c2980ac29f0c08278f1",
    ),
    Jar(
        "org/junit/platform/junit-platform-commons/1.13.4/junit-platform-commons-1.13.4.jar",
        "1c25ca641ebaae44ff3ad21ca1b2ef68d0dd84bfeb07c4805ba7840899b77408",
    ),
    Jar(
        "org/opentest4j/opentest4j/1.3.0/opentest4j-1.3.0.jar",
        "48e2df636cab6563ced64dcdff8abb2355627cb236ef0bf37598682ddf742f1b",
    ),
)
"""It goes with the Hadoop of PySpark 4.3, whose jars have the rest."""

MAIN = "org.apache.hadoop.mapreduce.MiniHadoopClusterManager"


@contextmanager
def served_hdfs(work: Path) -> Iterator[str]:
    """Run it below `work`; the URL of its root. Raises NotFetchedError."""
    own = [str(jar.fetch(cache_directory())) for jar in SERVER]
    classes = ":".join((*own, f"{PYSPARK_JARS}/*"))
    port = free_port()
    told = work / "cluster.json"
    nodes = ("-nomr", "-format", "-datanodes", "1", "-nnport", str(port), "-D", "dfs.replication=1")
    arguments = [f"-Dtest.build.data={work / 'nodes'}", "-cp", classes, MAIN, *nodes, "-writeDetails", str(told)]
    with running(arguments, work / "hdfs.log", port=port, is_up=told.exists):  # the data node is later than the port
        yield f"hdfs://127.0.0.1:{port}"
