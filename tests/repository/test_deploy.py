"""What stands in deploy/: it can be read, and names only what a running server really exports."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import strictyaml

from hive_acid.connection import connect
from metastore.cli import _parser
from metastore.config import Config
from metastore.housekeeping.alert_config import AlertConfig
from metastore.sources import ENVIRONMENT_PREFIX
from metastore.store.database import Database
from tests.observe.scrape import get, names, parsed
from tests.ports import free_port
from tests.waiting import until

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
SCRAPED = {"instance", "job"}
"""Labels that Prometheus gives to all that it scrapes."""

_METRIC = re.compile(r"\bhive_[a-z_]+\b")


def rules() -> list[dict[str, Any]]:
    text = (DEPLOY / "prometheus" / "hive-acid-alerts.yml").read_text()
    (group,) = strictyaml.load(text).data["groups"]
    return group["rules"]


def board() -> dict[str, Any]:
    return json.loads((DEPLOY / "grafana" / "hive-acid.json").read_text())


def expressions() -> list[tuple[str, str]]:
    """Of the rules and of the board: what is asked for, and the text in which the labels of the answer are shown."""
    of_rules = [(rule["expr"], " ".join(rule["annotations"].values())) for rule in rules()]
    return of_rules + [
        (one["expr"], one.get("legendFormat", "")) for panel in board()["panels"] for one in panel["targets"]
    ]


@pytest.fixture
def exported(metastore: Callable[..., str], db: Database) -> dict[str, set[str]]:
    """The series of a server that leads, by name with their labels, with something in each pool and of each number of
    deltas, and of which somebody has asked something.
    """
    port = free_port()
    for number in (0, 1, 2):
        db.call("update_compaction_metric", "d", "t", "p=1", number, 100)
    db.call("compact", "a", "d", "t", None, None, "{}", None, None, None, "me", "1", 0, None, None)
    db.call("compact", "a", "d", "u", None, None, "{}", None, None, None, "me", "1", 0, None, None)
    db.call("find_next_compact", "host-1", "1", None, 0)
    uri = metastore(**{"metastore.metrics.port": str(port), "metastore.compactor.worker.threads": "0"})
    with connect(uri) as connection:
        connection.call("get_all_databases")
    until(lambda: "hive_compaction_num_active_deltas" in names(get(port, "/metrics")[2]))
    text = get(port, "/metrics")[2]
    found: dict[str, set[str]] = {}
    for name, labels in parsed(text):
        found.setdefault(name, set()).update(label for label, _ in labels)
    return found


def test_every_metric_named_is_exported(exported: dict[str, set[str]]) -> None:
    text = "".join(
        (DEPLOY / name).read_text() for name in ("prometheus/hive-acid-alerts.yml", "grafana/hive-acid.json")
    )
    named = set(_METRIC.findall(text))
    assert len(named) > 40
    assert named <= exported.keys()


def test_every_label_named_is_one_of_the_metric(exported: dict[str, set[str]]) -> None:
    """One that is not would select nothing, or show an empty word."""
    found = expressions()
    assert len(found) > 60
    for expression, shown in found:
        selected = re.findall(r"[{,]\s*(\w+)\s*(?:=|!=|=~|!~)\s*\"", expression)
        grouped = [
            label.strip()
            for labels in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression)
            for label in labels.split(",")
        ]
        told = re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)", shown)
        there = set().union(*(exported[metric] for metric in _METRIC.findall(expression)))
        assert {*selected, *grouped, *told} <= there | SCRAPED, (expression, shown)


def test_templates_and_durations_are_well_formed() -> None:
    for rule in rules():
        text = " ".join(rule["annotations"].values())
        assert text.count("{{") == text.count("}}")
        assert re.fullmatch(r"\d+[smhd]", rule["for"]), rule


def test_rules_are_complete() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found) > 15
    for rule in found:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}, rule
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "action"}
        assert rule["expr"].count("(") == rule["expr"].count(")")


def test_thresholds_are_those_that_the_server_logs() -> None:
    """The rules and the defaults of the settings are the same table (transactions.md §4.12)."""
    told = {rule["alert"]: rule["expr"] for rule in rules()}
    config = AlertConfig()
    seconds = {
        "HiveAcidCompactionWaits": (config.initiated_warning_ms, config.initiated_error_ms),
        "HiveAcidOpenTransactionIsOld": (config.open_txn_warning_ms, config.open_txn_error_ms),
        "HiveAcidReplayedTransactionIsOld": (config.repl_txn_warning_ms, config.repl_txn_error_ms),
        "HiveAcidAbortedTransactionIsOld": (config.aborted_txn_warning_ms, config.aborted_txn_error_ms),
        "HiveAcidInitiatorIsSlow": (config.initiator_warning_ms, config.initiator_error_ms),
    }
    numbers = {
        "HiveAcidWriteIdsOnRecord": (config.write_ids_warning, config.write_ids_error),
        "HiveAcidWritesNotCompacted": (config.components_warning, config.components_error),
    }
    for name, (warning, error) in (
        numbers.items() | {n: (w // 1000, e // 1000) for n, (w, e) in seconds.items()}.items()
    ):
        assert told[name].endswith(f">= {warning} < {error}"), name
        assert told[f"{name}Critical"].endswith(f">= {error}"), name
    assert told["HiveAcidNotCleaned"].endswith(f">= {config.uncleaned_ms // 1000}")
    assert told["HiveAcidCompactionsFail"].endswith(f">= {config.failed_part}")
    assert told["HiveAcidTablesWithManyAborts"].endswith(f"> {config.crowded_tables}")


def test_the_board_is_one() -> None:
    found = board()
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 20
    for panel in panels:
        assert panel["targets"], panel["title"]
        assert all(target["expr"].count("(") == target["expr"].count(")") for target in panel["targets"])
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}
    assert len(places) == len(panels), "panels lie over each other"


def test_the_unit_starts_what_there_is() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(DEPLOY / "systemd" / "hive-acid.service")
    command = shlex.split(unit["Service"]["ExecStart"])
    assert command[0].endswith("/metastore")
    options = _parser().parse_args(command[1:])
    assert options.run.__name__ == "_serve"
    key, _, value = unit["Service"]["Environment"].partition("=")
    name = key.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
    assert Config.parse([f"{name}={value}"]).server.metrics_port == 9084
