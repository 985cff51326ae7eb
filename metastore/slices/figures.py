"""What a server tells of itself: figures of the present state, alerts, and what is counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from metastore.housekeeping.alerts import AlertLogger
from metastore.housekeeping.metrics import AcidMetrics
from metastore.observe.meters import PREFIX
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
        self._alerts = AlertLogger(common.gauges, config.alerts, common.meters.initiator.age_s)

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

    def collect(self) -> Iterator[Metric]:
        """What is not counted by `Meters`; figures of the present state are the leader's, which takes them."""
        common, leads = self._common, self._common.lease.is_held
        if leads:
            yield from common.gauges.collect()
        what = "1 while this server runs the background services; figures of the present state are the leader's."
        yield GaugeMetricFamily(f"{PREFIX}leader", what, leads)
        yield CounterMetricFamily(f"{PREFIX}database_trips", "Round trips to the database.", common.db.calls)
