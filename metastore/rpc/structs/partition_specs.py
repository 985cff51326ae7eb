"""Partition specs: many partitions in few structs, which share a storage descriptor where they can."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.catalog.models import Table
from metastore.catalog.names import split_key
from metastore.catalog.place.places import is_below
from metastore.store.rows import Rows, Snapshot

SPEC_RUN = 1000
"""Partitions in each spec of a long list."""


def partition_specs(owner: Table, found: Iterable[Any]) -> list[Any]:
    """Partition structs in groups: those below the table by the storage descriptor they share, all others in a list."""
    shared: dict[str, Any] = {}
    others: list[Any] = []
    known: dict[tuple[int, ...], str] = {}
    for struct in found:
        key = _shared_storage(owner, struct, known)
        if key is None:
            others.append(struct)
            continue
        relative = (struct.sd.location or "").removeprefix(owner.location or "")
        group = shared.get(key)
        if group is None:
            struct.sd.location = owner.location
            group = shared[key] = ttypes.PartitionSpecWithSharedSD(partitions=[], sd=struct.sd)
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
    made = [_spec(owner, sharedSDPartitionSpec=group) for group in shared.values()]
    if others:
        made.append(_list_spec(owner, others))
    return made


class PartitionSpecs:
    """A list of partition structs as specs: one spec if it is short, or grouped; else one for each run of `SPEC_RUN`.

    So a long list is sent while it is read; see `streaming.listed`.
    """

    def __init__(self, owner: Table, structs: Rows[Any], is_grouped: bool = True) -> None:
        self._owner = owner
        self._structs = structs
        self._is_grouped = is_grouped

    def short(self) -> list[Any] | None:
        """All specs; None if the list is long."""
        found = self._structs.short()
        if found is None:
            return None
        return partition_specs(self._owner, found) if self._is_grouped else [_list_spec(self._owner, list(found))]

    @contextmanager
    def opened(self) -> Iterator[_SpecRuns]:
        """The specs of a long list, until the end of the body."""
        with self._structs.opened() as found:
            yield _SpecRuns(self._owner, found, self._is_grouped)


class _SpecRuns:
    def __init__(self, owner: Table, structs: Snapshot[Any], is_grouped: bool) -> None:
        self._owner = owner
        self._structs = structs
        self._is_grouped = is_grouped

    def __len__(self) -> int:
        return -(-len(self._structs) // SPEC_RUN)

    def __iter__(self) -> Iterator[Any]:
        structs = iter(self._structs)
        while run := list(islice(structs, SPEC_RUN)):
            known: dict[tuple[int, ...], str] = {}
            is_alike = self._is_grouped and len({_shared_storage(self._owner, struct, known) for struct in run}) == 1
            yield partition_specs(self._owner, run)[0] if is_alike else _list_spec(self._owner, run)


def _shared_storage(owner: Table, struct: Any, known: dict[tuple[int, ...], str]) -> str | None:
    """The same text for partitions that can share a storage descriptor; None for one with a place elsewhere."""
    place = struct.sd.location if struct.sd is not None else None
    if struct.sd is None or (place is not None and not is_below(place, owner.location)):
        return None
    return _storage_key(struct.sd, known)


def _list_spec(owner: Table, structs: list[Any]) -> Any:
    return _spec(owner, partitionList=ttypes.PartitionListComposingSpec(partitions=structs))


def _spec(owner: Table, **content: Any) -> Any:
    catalog, database = split_key(owner.database)
    return ttypes.PartitionSpec(
        catName=catalog, dbName=database, tableName=owner.name, rootPath=owner.location, **content
    )


def partitions_in(specs: Sequence[Any]) -> Iterator[Any]:
    """The partition structs that partition specs stand for.

    Raises MetaError for a spec without partitions, or without the storage descriptor that they share.
    """
    for spec in specs:
        shared, composing = spec.sharedSDPartitionSpec, spec.partitionList
        if composing is not None:  # which counts, as in Hive, whatever is shared beside it
            if composing.partitions is None:
                raise MetaError("a partition spec lacks its list of partitions")
            yield from composing.partitions
            continue
        if shared is None or shared.partitions is None:
            raise MetaError("a partition spec has neither a list of partitions nor a shared descriptor")
        if shared.sd is None or not shared.sd.location:
            raise MetaError("a partition spec lacks the descriptor that its partitions share, or the place in it")
        for partition in shared.partitions:
            struct = _with_storage(shared.sd, spec.rootPath, partition)
            struct.dbName, struct.tableName, struct.catName = spec.dbName, spec.tableName, spec.catName
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
