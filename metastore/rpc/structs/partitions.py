"""Partitions as the calls want them: whole, reduced, or in groups that share a storage descriptor."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

from hive_acid.wire import ttypes
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import split_key
from metastore.rpc.structs.catalog import NO_WRITE_ID, field_schemas, partition_struct, storage_struct
from metastore.rpc.structs.projections import Projection

_PARAMETER_RUN = re.compile(r"%|\*")


class PartitionStructs:
    """Makes the structs of one table's partitions. What they have from the table is made once, and shared."""

    def __init__(self, owner: Table, without_columns: bool = False) -> None:
        self._owner = owner
        self._catalog, self._database = split_key(owner.database)
        self._without_columns = without_columns
        self._storage = storage_struct([] if without_columns else owner.columns, None, owner.storage)

    def of(self, partition: Partition) -> Any:
        """The struct of one partition."""
        if partition.storage is not self._owner.storage or partition.columns is not self._owner.columns:
            return partition_struct(self._owner.database, self._owner.name, partition, self._without_columns)
        details = partition.details
        struct = ttypes.Partition(
            values=partition.values,
            dbName=self._database,
            tableName=self._owner.name,
            createTime=partition.created_s,
            lastAccessTime=details.get("lastAccessTime", 0),
            sd=copy.copy(self._storage),
            parameters=partition.parameters,
            catName=self._catalog,
            writeId=details.get("writeId", NO_WRITE_ID),
        )
        struct.sd.location = partition.location
        if self._owner.is_view:
            struct.sd = None  # it was given none
        return struct


def structs(owner: Table, request: Any = None) -> Callable[[Partition], Any]:
    """Makes structs, with what a ``_req`` form says about columns and parameters."""
    make = PartitionStructs(owner, bool(getattr(request, "skipColumnSchemaForPartition", None))).of
    keep = _kept_parameters(
        getattr(request, "includeParamKeyPattern", None), getattr(request, "excludeParamKeyPattern", None)
    )
    return make if keep is None else lambda partition: keep(make(partition))


def projected(owner: Table, spec: Any) -> Callable[[Partition], Any]:
    """Makes structs with the fields and parameters that a GetProjectionsSpec asks for; without one, whole ones."""
    if spec is None:
        return structs(owner)
    whole = structs(owner, spec)
    fields = [name for name in spec.fieldList or [] if name]
    if not fields:
        return whole
    projection = Projection(fields, ttypes.Partition)
    return lambda partition: projection.of(whole(partition))


def table_columns(owner: Table) -> list[Any]:
    """The columns that partitions without their own stand under."""
    return field_schemas(owner.columns)


def _kept_parameters(include: str | None, exclude: str | None) -> Callable[[Any], Any] | None:
    """Leaves in a struct the parameters whose keys match one LIKE pattern and not the other."""
    included, excluded = _like(include), _like(exclude)
    if included is None and excluded is None:
        return None

    def keep(struct: Any) -> Any:
        struct.parameters = {
            key: value
            for key, value in (struct.parameters or {}).items()
            if (included is None or included.fullmatch(key)) and not (excluded and excluded.fullmatch(key))
        }
        return struct

    return keep


def _like(pattern: str | None) -> re.Pattern[str] | None:
    if not pattern:
        return None
    runs = (".".join(map(re.escape, run.split("_"))) for run in _PARAMETER_RUN.split(pattern))
    return re.compile(".*".join(runs), re.DOTALL)
