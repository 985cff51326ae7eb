"""`hold`: let a frame keep a snapshot's files, by the means of the Spark that it is of."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.snapshots import connect_leases, jvm_leases
from hive_acid.spark.snapshots.lease import Lease


def hold(frame: DataFrame, lease: Lease, alias: str) -> None:
    """Let `frame`, whose alias is `alias`, hold a lease, and everything that is made of it."""
    if frame_in_jvm(frame) is not None:
        jvm_leases.hold(frame, lease)
    else:
        connect_leases.hold(frame, lease, alias)
