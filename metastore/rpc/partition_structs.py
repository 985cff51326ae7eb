"""Partitions as the calls want them: whole, reduced, or in groups that share a storage descriptor."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hive_acid.errors import InvalidObjectError
from hive_acid.wire import ttypes
from metastore.catalog.directories import is_below
from metastore.catalog.models import Partition, Table
from metastore.catalog.names import split_key
from metastore.rpc.catalog_structs import field_schemas, partition_struct, storage_struct
from metastore.rpc.projections import Projection

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
            writeId=details.get("writeId"),
        )
        struct.sd.location = partition.location
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
    projection = Projection(fields)
    return lambda partition: projection.of(whole(partition))


def partition_specs(owner: Table, found: Iterable[Any]) -> list[Any]:
    """Partition structs in groups: those below the table by the storage descriptor they share, all others in a list."""
    catalog, database = split_key(owner.database)
    shared: dict[str, Any] = {}
    others: list[Any] = []
    known: dict[tuple[int, ...], str] = {}
    for struct in found:
        place = struct.sd.location if struct.sd is not None else None
        if struct.sd is None or (place is not None and not is_below(place, owner.location)):
            others.append(struct)
            continue
        key = _storage_key(struct.sd, known)
        group = shared.get(key)
        if group is None:
            struct.sd.location = owner.location
            group = shared[key] = ttypes.PartitionSpecWithSharedSD(partitions=[], sd=struct.sd)
        relative = place.removeprefix(owner.location or "") if place is not None else ""
        group.partitions.append(
            ttypes.PartitionWithoutSD(
                values=struct.values,
                createTime=struct.createTime,
                lastAccessTime=struct.lastAccessTime,
                relativePath=relative,
                parameters=struct.parameters,
                privileges=struct.privileges,
            )
        )
    made = [ttypes.PartitionSpec(sharedSDPartitionSpec=group) for group in shared.values()]
    if others:
        made.append(ttypes.PartitionSpec(partitionList=ttypes.PartitionListComposingSpec(partitions=others)))
    for spec in made:
        spec.catName, spec.dbName, spec.tableName, spec.rootPath = catalog, database, owner.name, owner.location
    return made


def partitions_in(specs: Sequence[Any]) -> Iterator[Any]:
    """The partition structs that partition specs stand for, each with database and table.

    Raises InvalidObjectError for a spec without partitions or a storage descriptor.
    """
    for spec in specs:
        shared, composing = spec.sharedSDPartitionSpec, spec.partitionList
        if shared is None and composing is None:
            raise InvalidObjectError("a partition spec has neither a list of partitions nor a shared descriptor")
        found = list(composing.partitions or []) if composing is not None else []
        if shared is not None:
            if shared.sd is None:
                raise InvalidObjectError("a partition spec lacks the descriptor that its partitions share")
            found += [_with_storage(shared.sd, spec.rootPath, partition) for partition in shared.partitions or []]
        for struct in found:
            struct.dbName = struct.dbName or spec.dbName
            struct.tableName = struct.tableName or spec.tableName
            struct.catName = struct.catName or spec.catName
            yield struct


def _with_storage(storage: Any, root: str | None, partition: Any) -> Any:
    own = copy.copy(storage)
    base, relative = storage.location or root, partition.relativePath
    own.location = f"{base.rstrip('/')}/{relative.strip('/')}" if base and relative else None
    return ttypes.Partition(
        values=partition.values,
        createTime=partition.createTime,
        lastAccessTime=partition.lastAccessTime,
        sd=own,
        parameters=partition.parameters,
    )


def _storage_key(storage: Any, known: dict[tuple[int, ...], str]) -> str:
    """The same text for equal descriptors, whatever their location; made once for the parts that structs share."""
    names = [field[1] for field in storage.thrift_spec.values() if field[1] != "location"]
    values = [getattr(storage, name) for name in names]
    identity = tuple(map(id, values))
    if identity not in known:
        known[identity] = json.dumps(values, default=lambda part: sorted(vars(part).items()), sort_keys=True)
    return known[identity]


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
