"""The figures of transactions, locks, write ids and compactions, taken from time to time (transactions.md §4.12)."""

from __future__ import annotations

import logging

from metastore.compaction.metrics import take_compaction_gauges
from metastore.housekeeping.config import HousekeepingConfig
from metastore.observe.gauges import Gauges
from metastore.observe.log import event
from metastore.store.leases import Calls

LOG = logging.getLogger("metastore.metrics")
COUNTED_AT_MOST = 1_000_001
"""So that a count never takes long: beyond it, it only says that there are far too many rows."""


class AcidMetrics:
    """Takes the figures; cheap enough for any number of transactions."""

    def __init__(
        self,
        db: Calls,
        config: HousekeepingConfig,
        gauges: Gauges,
        versions_ms: int,
        most_targets: int,
        log_level: int = logging.INFO,
    ) -> None:
        """Versions of workers are counted as far back as `versions_ms`; see `take_compaction_gauges`.

        The figures are logged at `log_level`.
        """
        self._log_level = log_level
        self._db = db
        self._config = config
        self._gauges = gauges
        self._versions_ms = versions_ms
        self._most_targets = most_targets

    def run_once(self) -> None:
        """Take all figures and log those without labels."""
        values = take_gauges(self._db, self._config)
        of_compactions = take_compaction_gauges(self._db, self._versions_ms, self._most_targets, COUNTED_AT_MOST)
        values |= {figure.name: figure.value for figure in of_compactions if not figure.labels}
        self._gauges.replace(values, [figure for figure in of_compactions if figure.labels])
        event(LOG, self._log_level, "gauges", **{name: int(value) for name, value in values.items()})


def take_gauges(db: Calls, config: HousekeepingConfig) -> dict[str, float]:
    """The figures by name; ages are in seconds, counts end at `COUNTED_AT_MOST`."""
    return dict(db.call("acid_gauges", config.crowded_table_aborts, COUNTED_AT_MOST))
