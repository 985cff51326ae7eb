"""`enable` joins a Spark session to a metastore, so that Spark's own words mean its tables.

    acid = hive_acid.spark.enable(spark, "thrift://localhost:9083")
    spark.sql("UPDATE db.t SET name = upper(name) WHERE id = 1")
    spark.table("db.t").write.mode("append").saveAsTable("db.copy")

Only that session is changed: its object gets a class of its own until `EnabledSession.disable`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.connection import Connection, addresses
from hive_acid.errors import AddressError
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.login import DelegationToken, Kerberos, token_or
from hive_acid.settings import transaction_manager
from hive_acid.spark.enabled import frames
from hive_acid.spark.enabled.catalog import JoinedCatalog
from hive_acid.spark.enabled.joined import ATTRIBUTE, EnabledSession, joined_to
from hive_acid.spark.enabled.kinds import as_before, as_kind
from hive_acid.spark.enabled.spark_session import JoinedSession
from hive_acid.spark.jvm.running import check_running
from hive_acid.spark.jvm.unjoined import TWIN
from hive_acid.spark.session import connected
from hive_acid.spark.write.distribution import TARGET_FILE_SIZE_BYTES

DEFAULT_ADDRESS = "thrift://localhost:9083"
OWN_SETTING, HIVE_SETTING = "spark.hive_acid.metastore", "spark.hadoop.hive.metastore.uris"
TLS_SETTING = "spark.hadoop.hive.metastore.use.SSL"
"""Of Hive's client, where the address does not say it."""
SASL_SETTING, PRINCIPAL_SETTING = (
    f"spark.hadoop.hive.metastore.{name}" for name in ("sasl.enabled", "kerberos.principal")
)
"""Of Hive's client, too: it has a ticket of Kerberos."""
VARIABLE = "HIVE_ACID_METASTORE"

_JOINING = threading.Lock()


def enable(
    spark: SparkSession,
    metastore: str | Connection | None = None,
    *,
    compression: str = DEFAULT_COMPRESSION,
    lock_timeout_ms: int = 300_000,
    idle_in_transaction_timeout_ms: int = 0,
    target_file_size_bytes: int = TARGET_FILE_SIZE_BYTES,
    statistics: bool = False,
    skipping: bool = True,
    settings: Mapping[str, str] | None = None,
    isolation: str = "snapshot",
) -> EnabledSession:
    """Join a Spark session to a metastore: wherever a name is one of its tables, Spark's own words mean that.

    Until `disable` of the session that this returns, or ``spark.stop()``. `metastore` is an address or an open
    connection; without it the address is that of the setting ``spark.hive_acid.metastore``, else of
    ``spark.hadoop.hive.metastore.uris`` (with TLS if ``spark.hadoop.hive.metastore.use.SSL`` is true, with a ticket of
    Kerberos if ``spark.hadoop.hive.metastore.sasl.enabled`` is), else of the
    variable ``HIVE_ACID_METASTORE``, else thrift://localhost:9083.
    The other arguments are those of `hive_acid.spark.session`. A second call returns the same session. Other sessions
    of Spark, those of ``spark.newSession()`` too, stay as they are.

    Raises AddressError if the session is joined to another metastore, and what `hive_acid.spark.session` raises.
    """
    manager = transaction_manager(settings or {})
    check_running(spark)
    with _JOINING:
        known = joined_to(spark)
        if known is not None:
            _check_same(known, metastore)
            return known
        connection = (
            connected(spark, address_of(spark), login_of(spark)) if metastore is None else connected(spark, metastore)
        )
        acid = EnabledSession(
            spark,
            connection,
            compression=compression,
            lock_timeout_ms=lock_timeout_ms,
            idle_in_transaction_timeout_ms=idle_in_transaction_timeout_ms,
            target_file_size_bytes=target_file_size_bytes,
            statistics=statistics,
            skipping=skipping,
            manager=manager,
            isolation=isolation,
        )
        acid.owns_connection = connection is not metastore
        _join(spark, acid)
        return acid


def address_of(spark: SparkSession) -> str:
    """The address that is configured, in the session or the environment."""
    of_hive = spark.conf.get(HIVE_SETTING, None)
    if of_hive and str(spark.conf.get(TLS_SETTING, "")).lower() == "true":
        of_hive = of_hive.replace("thrift://", "thrift+tls://")
    given = (spark.conf.get(OWN_SETTING, None), of_hive, os.environ.get(VARIABLE))
    return next((one for one in given if one and one.strip()), DEFAULT_ADDRESS)


def login_of(spark: SparkSession) -> Kerberos | DelegationToken | None:
    """What the settings of Hive's client say beside its address, if that is the one that is taken."""
    if spark.conf.get(OWN_SETTING, None) or not spark.conf.get(HIVE_SETTING, None):
        return None
    if str(spark.conf.get(SASL_SETTING, "")).lower() != "true":
        return None
    return token_or(Kerberos(spark.conf.get(PRINCIPAL_SETTING, None) or Kerberos.service))


def _check_same(known: EnabledSession, metastore: str | Connection | None) -> None:
    if metastore is None or metastore is known.connection:
        return
    uri = metastore.uri if isinstance(metastore, Connection) else metastore
    if (known.connection.host, known.connection.port) not in [(one.host, one.port) for one in addresses(uri)]:
        raise AddressError(
            f"this Spark session is joined to {known.connection.uri}, so not to {uri} as well: call disable() of the "
            "session that enable has returned before, or join spark.newSession()"
        )


def _join_clone(acid: EnabledSession, clone: SparkSession) -> EnabledSession:
    """Join a session that Spark has made of one that is joined, by the same connection."""
    made = EnabledSession(clone, acid.connection, **acid.options)
    made.owns_connection = False
    made.share_temporary(acid)
    made.current.name = acid.current.name
    _join(clone, made)
    return made


def _join(spark: SparkSession, acid: EnabledSession) -> None:
    kind: Any = type(acid.spark.catalog)
    catalog = as_kind(JoinedCatalog, kind(spark), _hive_acid=acid)
    setattr(spark, TWIN, acid.spark)
    as_kind(JoinedSession, spark, _hive_acid=acid, _joined_catalog=catalog)

    acid.joins = partial(_join_clone, acid)
    frames.install(acid, spark)

    def undo() -> None:
        frames.uninstall(acid, spark)
        as_before(spark)
        for name in (ATTRIBUTE, TWIN, "_joined_catalog"):
            vars(spark).pop(name, None)

    acid.begin_join(undo)
