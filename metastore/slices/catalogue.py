"""The catalogue and its events: their services and the handlers over them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from metastore.catalog.registry.issued_tokens import IssuedTokens
from metastore.catalog.service import CatalogService
from metastore.compaction.materializations import Materializations
from metastore.events.service import EventLog
from metastore.filework.owners import OWNERS
from metastore.filework.pools import FILE_SYSTEMS
from metastore.housekeeping.event_cleaner import EventCleaner
from metastore.rpc.call import Handler
from metastore.rpc.doors.users.delegation import Delegation
from metastore.rpc.handlers import events, removals, security
from metastore.rpc.handlers.catalog import (
    constraints,
    databases,
    functions,
    partition_lists,
    partition_places,
    partitions,
    privileges,
    replacing,
    statistics,
    table_lists,
    tables,
    views,
)
from metastore.schedule import Service
from metastore.slices.common import Common, done
from metastore.txn.commits import ExtendedCommits
from metastore.txn.service import TxnService

REMOVALS_INTERVAL_MS = 10_000
"""Pause between two looks at directories of dropped objects: those that could not be removed, and the old trash."""


class CatalogueSlice:
    """Services of the catalogue, made once for a server; its files are below `warehouse`."""

    def __init__(self, common: Common, warehouse: str, txns: TxnService, commits: ExtendedCommits) -> None:
        config = common.config
        FILE_SYSTEMS.limit_ms = config.catalog.file_timeout_ms
        OWNERS.is_on = config.catalog.gives_away
        self._config = config
        self._events = EventLog(common.db, config.events)
        self.catalog = CatalogService(common.db, warehouse, config.catalog, txns)
        doors = config.doors
        self.issued_tokens = IssuedTokens(common.db, doors.token_life_ms, doors.token_renew_ms, doors.token_key_ms)
        self._commits = commits
        self._materializations = Materializations(common.db)
        self._event_cleaner = EventCleaner(common.fenced, config.events, config.housekeeping)

    def handlers(self, delegation: Delegation | None) -> Mapping[str, Handler]:
        """RPC name to handler. `delegation` issues tokens, None if nobody does."""
        catalog = self.catalog
        return {
            **databases.handlers(catalog),
            **tables.handlers(catalog),
            **replacing.handlers(catalog, self._commits),
            **table_lists.handlers(catalog),
            **partitions.handlers(catalog),
            **partition_lists.handlers(catalog),
            **partition_places.handlers(catalog.partitions),
            **functions.handlers(catalog.functions),
            **constraints.handlers(catalog.constraints),
            **privileges.handlers(catalog.roles, catalog.privileges),
            **security.handlers(catalog.tokens, delegation),
            **views.handlers(catalog.views, self._materializations),
            **removals.handlers(catalog.removals),
            **statistics.handlers(catalog),
            **events.handlers(self._events, catalog),
        }

    def services(self) -> list[Service]:
        """What runs in the background."""
        return [
            Service("EventCleaner", self._config.events.clean_interval_ms, partial(done, self._event_cleaner.run_once)),
            Service("removals", REMOVALS_INTERVAL_MS, self.catalog.tidy),
        ]
