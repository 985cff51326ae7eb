"""A session of a Spark Connect server, as a process on the machine of that server comes to it."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hive_acid.errors import UnsupportedTableError

LOG = logging.getLogger(__name__)

_PORT, _DEFAULT_PORT = "spark.connect.grpc.binding.port", "15002"
_ADDRESS, _EVERYWHERE = "spark.connect.grpc.binding.address", ("", "0.0.0.0", "::", "localhost")
_STARTED_HERE = "SPARK_LOCAL_REMOTE"
_TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"


@dataclass(frozen=True, slots=True)
class ServerSession:
    """Where the server listens, and the session and user that a client of it has there."""

    host: str
    port: int
    session_id: str
    user_id: str
    token: str | None = field(default=None, repr=False)
    """What the client shows, where the server's own environment has none."""

    @classmethod
    def of(cls, spark: SparkSession) -> Self:
        """That of a client. Raises UnsupportedTableError for a server that does not say where it listens."""
        client: Any = spark.client
        port = str(spark.conf.get(_PORT, _DEFAULT_PORT))
        if not port.isdigit() or int(port) == 0:
            raise UnsupportedTableError(
                f"a stream of a table is read by the Spark Connect server itself, which has {_PORT}={port}, so that "
                "its own processes do not know where it listens: start it with a port"
            )
        address = str(spark.conf.get(_ADDRESS, ""))
        host = "localhost" if address in _EVERYWHERE else address
        return cls(host, int(port), str(client._session_id), client._user_id or "", client.token)

    def clone(self) -> SparkSession:
        """A session with the settings that the client's has now, which nobody else uses: `stop` ends its jobs.

        In the client's own, a setting that a job needs for itself would be there for the client's jobs, too.
        """
        # A session would take the server, which is another process here, for its own, and forget Connect with it.
        os.environ.pop(_STARTED_HERE, None)
        of_client = self._session(self.session_id)
        try:
            clone: Any = of_client.cloneSession()
            clone.client.close()  # in PySpark 4.1 it is a session that cannot be stopped
            found: SparkSession = self._session(clone.session_id)
        finally:
            of_client.client.close()  # the session stays its client's
        return found

    def _session(self, session_id: str) -> Any:
        words = {"session_id": session_id, "user_id": self.user_id}
        if self.token is not None and _TOKEN not in os.environ:
            words["token"] = self.token
        address = f"sc://{self.host}:{self.port}/;" + ";".join(f"{key}={quote(words[key])}" for key in words)
        return SparkSession.builder.remote(address).create()


def is_known(session: SparkSession) -> bool:
    """Whether the server has a session still, and nobody has stopped it here."""
    found: Any = session
    if found.is_stopped:
        return False
    try:
        session.conf.get(_PORT, None)
    except PySparkException as error:
        LOG.info("a session of Spark Connect has ended: %s", error)
        return False
    return True
