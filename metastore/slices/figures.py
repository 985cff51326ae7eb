"""What a server tells of itself: figures of the present state, alerts, and what is counted."""

from __future__ import annotations

import logging
from functools import partial

from metastore.housekeeping.alerts import AlertLogger
from metastore.housekeeping.metrics import AcidMetrics
from metastore.measured import INITIATOR_CYCLE
from metastore.observe.samples import Kind, Sample
from metastore.schedule import Service
from metastore.slices.common import Common

FIRST_ALERTS_MS = 60_000
"""So long after the start figures have been taken."""


class FigureSlice:
    """Figures of one server."""

    def __init__(self, common: Common) -> None:
        config = common.config
        self._common = common
        self._metrics = AcidMetrics(
            common.fenced,
            config.housekeeping,
            common.gauges,
            config.alerts.versions_ms,
            config.compaction.counted_places,
            # Who scrapes them needs no long line of the log as well.
            logging.DEBUG if config.server.metrics_port else logging.INFO,
        )
        age_s = partial(common.meters.age_s, INITIATOR_CYCLE)
        self._alerts = AlertLogger(common.gauges, config.alerts, age_s)

    def services(self) -> list[Service]:
        """What runs in the background, if figures are wanted."""
        config = self._common.config
        if not config.housekeeping.metrics_on:
            return []
        alerts_ms = config.alerts.interval_ms
        return [
            Service("AcidMetrics", config.housekeeping.metrics_interval_ms, self._metrics.run_once),
            Service("AcidMetricLogger", alerts_ms, self._alerts.run_once, min(FIRST_ALERTS_MS, alerts_ms)),
        ]

    def samples(self) -> list[Sample]:
        """All figures of this server; those of the present state are the leader's, which takes them."""
        common = self._common
        return [
            *(common.gauges.samples() if common.lease.is_held else ()),
            *common.meters.samples(),
            Sample("leader", common.lease.is_held),
            Sample("database_trips_total", common.db.calls, (), Kind.COUNTER),
        ]
