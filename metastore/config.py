"""All settings: each slice declares its own in its ``config.py``, this module joins them."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from hive_acid.show import Listing
from metastore.catalog.config import CatalogConfig
from metastore.compaction.config import CompactionConfig
from metastore.housekeeping.config import HousekeepingConfig
from metastore.lock.config import LockConfig
from metastore.rpc.config import ServerConfig
from metastore.settings import SettingError, build, fields_of, spelling
from metastore.txn.config import TxnConfig


@dataclass(frozen=True)
class Config:
    """The whole configuration, by slice."""

    server: ServerConfig = field(default_factory=ServerConfig)
    txn: TxnConfig = field(default_factory=TxnConfig)
    lock: LockConfig = field(default_factory=LockConfig)
    catalog: CatalogConfig = field(default_factory=CatalogConfig)
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    housekeeping: HousekeepingConfig = field(default_factory=HousekeepingConfig)

    @classmethod
    def parse(cls, pairs: Sequence[str]) -> Self:
        """The configuration of ``key=value`` texts. Raises SettingError for an unknown key or an unfit value."""
        given: dict[str, str] = {}
        known = {spelling(key): key for _, config in _slices() for key, _ in fields_of(config)}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not equals:
                raise SettingError(f"'{pair}' is not of the form key=value")
            if spelling(key) not in known:
                near = difflib.get_close_matches(spelling(key), known, n=1)
                hint = f"; did you mean {known[near[0]]}?" if near else ""
                raise SettingError(f"unknown setting '{key.strip()}'{hint} (`metastore config` lists all)")
            given[key] = value.strip()
        return cls(**{name: build(config, given) for name, config in _slices()})

    def values(self) -> dict[str, str]:
        """Key to value, as text in the form that the setting accepts."""
        return {key: text for key, text, _, _ in _rows(self)}


def describe(config: Config) -> Listing:
    """Every setting with its value, default and meaning."""
    return Listing("Settings", ("setting", "value", "default", "meaning"), tuple(_rows(config)))


def _slices() -> list[tuple[str, type[Any]]]:
    return [(part.name, part.default_factory) for part in dataclasses.fields(Config)]  # type: ignore[misc]


def _rows(config: Config) -> list[tuple[str, str, str, str]]:
    rows = []
    for name, slice_config in _slices():
        values = getattr(config, name)
        for key, setting in fields_of(slice_config):
            value = getattr(values, setting.name)
            text = setting.metadata["default"] if value == setting.default else _text(setting.name, value)
            rows.append((key, text, setting.metadata["default"], setting.metadata["meaning"]))
    return sorted(rows)


def _text(field_name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value}ms" if field_name.endswith("_ms") else str(value)
