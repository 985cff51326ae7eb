"""All settings: each slice declares its own in its ``config.py``; here they are joined and get their values."""

from __future__ import annotations

import dataclasses
import difflib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hive_acid.operators.show import Listing
from metastore.authorization.config import AuthorizationConfig
from metastore.catalog.config import CatalogConfig
from metastore.compaction.config import CompactionConfig
from metastore.events.config import EventsConfig
from metastore.housekeeping.alert_config import AlertConfig
from metastore.housekeeping.config import HousekeepingConfig
from metastore.known_settings import KNOWN
from metastore.lock.config import LockConfig
from metastore.observe.log import event
from metastore.rpc.audit.config import AuditConfig
from metastore.rpc.config import ServerConfig
from metastore.rpc.doors.config import DoorsConfig
from metastore.settings import Setting, SettingError, settings_of, spelling
from metastore.sources import Given, from_pairs
from metastore.store.config import StoreConfig
from metastore.txn.config import TxnConfig

LOG = logging.getLogger("metastore.config")


@dataclass(frozen=True)
class Config:
    """The whole configuration, by slice."""

    server: ServerConfig = field(default_factory=ServerConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    doors: DoorsConfig = field(default_factory=DoorsConfig)
    authorization: AuthorizationConfig = field(default_factory=AuthorizationConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    events: EventsConfig = field(default_factory=EventsConfig)
    txn: TxnConfig = field(default_factory=TxnConfig)
    lock: LockConfig = field(default_factory=LockConfig)
    catalog: CatalogConfig = field(default_factory=CatalogConfig)
    compaction: CompactionConfig = field(default_factory=CompactionConfig)
    housekeeping: HousekeepingConfig = field(default_factory=HousekeepingConfig)
    alerts: AlertConfig = field(default_factory=AlertConfig)

    @staticmethod
    def parse(pairs: Sequence[str]) -> Config:
        """The configuration of ``key=value`` texts. Raises SettingError for an unknown key or an unfit value."""
        return load([from_pairs(pairs)]).config

    def settings(self) -> Iterator[tuple[Setting, str]]:
        """Every setting with its value as text in the form that the setting accepts; by key."""
        found = [
            (setting, _text(setting, getattr(getattr(self, part), name)))
            for part, slice_config in _slices().items()
            for name, setting in settings_of(slice_config)
        ]
        return iter(sorted(found, key=lambda item: item[0].key))

    def values(self) -> dict[str, str]:
        """Key to value, as text in the form that the setting accepts."""
        return {setting.key: text for setting, text in self.settings()}


@dataclass(frozen=True)
class Loaded:
    """A configuration and where it comes from."""

    config: Config
    given: Mapping[str, Sequence[Given]]
    """Setting to all that gave it a value, the one that holds last."""
    unused: Mapping[str, Given]
    """Settings of Hive that were given and are without effect here (`metastore.known_settings`)."""
    passed_over: Mapping[str, Sequence[str]]
    """Shared file to its properties that are no business of this server."""

    def log(self) -> None:
        """Say what was given in vain."""
        for key, given in self.unused.items():
            event(LOG, logging.WARNING, "setting not used", key=key, source=given.source, why=KNOWN[spelling(key)].why)
        for source, keys in self.passed_over.items():
            event(LOG, logging.INFO, "properties passed over", file=source, count=len(keys))
            event(LOG, logging.DEBUG, "properties passed over", file=source, keys=",".join(keys))

    def source(self, key: str) -> str:
        """Who gave a setting its value, and whose value had to give way."""
        if key not in self.given:
            return "default"
        *others, last = self.given[key]
        if "*" in key:
            return ", ".join(dict.fromkeys(given.source for given in self.given[key]))
        return last.source + "".join(f", over {other.text} of {other.source}" for other in reversed(others))


def load(levels: Sequence[Sequence[Given]]) -> Loaded:
    """The configuration of several sources, the lowest first; what is nowhere given has its default.

    Raises SettingError for an unknown key (outside of a shared file), an unfit value, and a setting that one source
    gives under two names.
    """
    declared = _declared()
    given: dict[str, list[Given]] = {}
    unused: dict[str, Given] = {}
    passed_over: dict[str, list[str]] = {}
    for level in levels:
        chosen: dict[tuple[str, str], Given] = {}
        for one in level:
            name = spelling(one.key)
            if setting := declared.get(name) or _family(declared, one.key):
                place = setting.key, setting.member(one.key) or ""
                chosen[place] = _chosen(setting, chosen[place], one) if place in chosen else one
            elif name in KNOWN:
                unused[KNOWN[name].key] = one
            elif one.shared:
                passed_over.setdefault(one.source, []).append(one.key)
            else:
                raise _unknown(one, declared)
        for (key, _), one in chosen.items():
            given.setdefault(key, []).append(one)
    given |= {setting.key: found for setting in declared.values() if (found := _implied(setting, given))}
    return Loaded(_config(given), given, unused, passed_over)


def describe(loaded: Loaded) -> list[Listing]:
    """Every setting with its value, default, source, Hive's defaults and meaning; then those without effect here."""
    ours = tuple(
        (
            setting.key,
            _quoted(text),
            _quoted(setting.default),
            loaded.source(setting.key),
            _elsewhere(setting.default, setting.hive, setting.wiki),
            f"{setting.meaning} {setting.why}".rstrip(),
        )
        for setting, text in loaded.config.settings()
    )
    theirs = tuple(
        (
            known.key,
            _quoted(loaded.unused[known.key].text) if known.key in loaded.unused else "",
            loaded.unused[known.key].source if known.key in loaded.unused else "",
            known.side,
            _elsewhere(None, known.hive, known.wiki),
            known.why,
        )
        for known in sorted(KNOWN.values(), key=lambda known: known.key)
    )
    return [
        Listing("Settings", ("setting", "value", "default", "source", "Hive", "meaning"), ours),
        Listing(
            "Not used by this server",
            ("setting of Hive", "value", "source", "side", "Hive", "not used because"),
            theirs,
        ),
    ]


def _slices() -> dict[str, type[Any]]:
    return {part.name: part.default_factory for part in dataclasses.fields(Config)}  # type: ignore[misc]


def _declared() -> dict[str, Setting]:
    """Every setting, by the spelling of each of its names."""
    return {
        name: setting
        for slice_config in _slices().values()
        for _, setting in settings_of(slice_config)
        for name in setting.parsers
    }


def _family(declared: Mapping[str, Setting], key: str) -> Setting | None:
    """The setting to whose family a key belongs."""
    return next((setting for setting in declared.values() if setting.member(key)), None)


def _chosen(setting: Setting, before: Given, now: Given) -> Given:
    """Which of two holds that one source gives for the same setting."""
    if before.key.lower() == now.key.lower():
        return now
    if not now.shared:
        raise SettingError(f"{before.key} and {now.key} ({now.source}) are one setting: give only one of them")
    # A shared file speaks to many versions of Hive: the name of the newest is right, as in Hive itself.
    return max(
        (now, before),
        key=lambda one: (spelling(one.key) == spelling(setting.key), one.key.lower().startswith("metastore.")),
    )


def _implied(setting: Setting, given: Mapping[str, Sequence[Given]]) -> list[Given]:
    """The value that a setting has because others are given; none if there is none, or it is given itself."""
    if setting.implied is None or setting.key in given:
        return []
    value, keys = setting.implied
    sources = [f"{key} of {given[key][-1].source}" for key in keys if key in given]
    return [Given(setting.key, value, " and ".join(sources))] if sources else []


def _unknown(given: Given, declared: Mapping[str, Setting]) -> SettingError:
    near = difflib.get_close_matches(spelling(given.key), [*declared, *KNOWN], n=1)
    hint = ""
    if near:
        hint = f"; did you mean {declared[near[0]].key if near[0] in declared else KNOWN[near[0]].key}?"
    return SettingError(f"unknown setting '{given.key}' ({given.source}){hint} (`metastore config` lists all)")


def _config(given: Mapping[str, Sequence[Given]]) -> Config:
    slices = {}
    for part, slice_config in _slices().items():
        values = {
            name: _members(setting, given[setting.key]) if setting.family else _value(setting, given[setting.key][-1])
            for name, setting in settings_of(slice_config)
            if setting.key in given
        }
        slices[part] = slice_config(**values)
    return Config(**slices)


def _members(setting: Setting, given: Sequence[Given]) -> dict[str, Any]:
    return {setting.member(one.key) or "": _value(setting, one) for one in given}


def _value(setting: Setting, given: Given) -> Any:
    try:
        if given.fault:
            raise SettingError(given.fault)
        return setting.parsers[spelling(setting.key if setting.family else given.key)](given.text)
    except SettingError as error:
        raise SettingError(f"setting {given.key} ({given.source}): {error}") from None


def _text(setting: Setting, value: Any) -> str:
    if setting.family:
        return setting.text(value)
    default = setting.parsers[spelling(setting.key)](setting.default)
    return setting.default if value == default else setting.text(value)


def _quoted(text: str) -> str:
    return text or "''"


def _elsewhere(default: str | None, hive: str | None, wiki: str | None) -> str:
    """Hive's defaults in a few words: those of its wiki and of 4.0.1, which often are not the same."""
    named = [f"{who} {_quoted(text)}" for who, text in (("wiki", wiki), ("4.0.1", hive)) if text is not None]
    if not named:
        return "ours alone"
    return "same" if all(text in (None, default) for text in (hive, wiki)) else ", ".join(named)
