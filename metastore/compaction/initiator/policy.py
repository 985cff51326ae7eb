"""Whether a table or partition needs a compaction, of which type, and why: pure functions (transactions.md §4.4, §4.5).

Every judgement says its reason with the figures that it is made of. `Rules` are Hive's thresholds; the policy `cost`
(`metastore.compaction.initiator.cost`) weighs instead what readers save against what is rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hive_acid.format.names import is_for_hive_3
from hive_acid.ids import WriteId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.file_totals import FileTotals
from metastore.compaction.initiator.cost import Cost, head_start_s
from metastore.compaction.models import TableInfo
from metastore.compaction.plan import BEGINNING
from metastore.compaction.states import CompactionType
from metastore.settings import SettingError

MANUAL_HEAD_START_S = 600
"""Who asks for a compaction by hand waits for it: it is queued as if it had been asked for ten minutes earlier."""
COST = "cost"
"""The policy that weighs costs; the other one, `hive`, is that of thresholds."""

_OVERRIDE = "compactorthreshold."
_NO_AUTO_COMPACTION = "no_auto_compaction"
_NO_CLEANUP = "no_cleanup"
_POOL = "hive.compactor.worker.pool"
_FIRST_LOAD = "hive.repl.first.inc.pending"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What to do with a table or partition: `type` is None for nothing, and deltas up to `after` are left alone.

    `code` is the reason for programs, `reason` for people, with figures; `action` what they can do about it.
    """

    type: CompactionType | None
    code: str
    reason: str
    action: str = ""
    head_start_s: int = 0
    after: WriteId = BEGINNING

    @property
    def message(self) -> str:
        """The reason, and what to do about it."""
        return f"{self.reason}; {self.action}" if self.action else self.reason


@dataclass(frozen=True, slots=True)
class Aborts:
    """Aborted transactions that have left files, and whether they call for a compaction: too many, or one too old."""

    count: int
    too_many: bool
    too_old: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """More than `deltas` deltas are compacted; into the base if their bytes are more than `part_of_base` of its.

    With `scans` costs decide: so often is the table supposed to be read in the time of ten writes. Never so of a table
    that has thresholds of its own, nor of one that Apache Hive 3.1 reads, of which every compaction makes a base.
    """

    deltas: int
    part_of_base: float
    scans: float | None = None

    @classmethod
    def of(cls, config: CompactionConfig, parameters: Mapping[str, str], readers: float = 0.0) -> Rules:
        """The configured ones, or the table's own: ``compactorthreshold.`` before the name of a setting.

        `readers` are those that the table has at a time, on average. Raises SettingError for a value that is no number.
        """
        own = {key.lower(): value for key, value in parameters.items() if key.lower().startswith(_OVERRIDE)}
        num, pct = (
            _OVERRIDE + key for key in ("hive.compactor.delta.num.threshold", "hive.compactor.delta.pct.threshold")
        )
        by_cost = config.policy == COST and not {num, pct} & own.keys() and not is_for_hive_3(parameters)
        try:
            return cls(
                int(own.get(num, config.delta_num_threshold)),
                float(own.get(pct, config.delta_pct_threshold)),
                config.cost_scans * (1 + readers) if by_cost else None,
            )
        except ValueError as error:
            raise SettingError(f"a table parameter {_OVERRIDE}* has an unfit value: {error}") from error


def judge(place: FileTotals, rules: Rules, aborts: Aborts | None = None) -> Judgement:
    """What a table or partition in this state needs.

    `aborts` are given where aborted data is left to compactions (transactions.md §4.5, steps 1 and 2).
    """
    if aborts is not None and aborts.too_many:
        return Judgement(CompactionType.MAJOR, "many_aborts", f"{aborts.count} aborted transactions have left files")
    if aborts is not None and aborts.too_old:
        return Judgement(CompactionType.MINOR, "old_abort", "an aborted transaction of long ago has left files")
    if place.base_bytes and not place.delta_bytes and place.obsolete_bases:
        return Judgement(CompactionType.MAJOR, "old_base", "a base that another one replaced is still there")
    return _by_thresholds(place, rules) if rules.scans is None else _by_cost(place, rules.deltas, rules.scans)


def excluded(table: TableInfo, config: CompactionConfig) -> Judgement | None:
    """Why the Initiator leaves a table alone whatever its state is, None if it does not."""
    if (holder := _first_load(table)) is not None:
        return Judgement(
            None,
            "replication_pending",
            f"the {holder} waits for its first incremental replication load ({_FIRST_LOAD})",
            "load it, or remove the parameter",
        )
    if (found := _setting(table, _NO_AUTO_COMPACTION)) is not None and found[1]:
        return Judgement(
            None,
            _NO_AUTO_COMPACTION,
            f"the parameter {_NO_AUTO_COMPACTION} of the {found[0]} switches automatic compaction off",
            "set it to false, or ask for a compaction with ALTER TABLE ... COMPACT",
        )
    if table.is_insert_only and not config.insert_only:
        return Judgement(
            None,
            "insert_only_off",
            "hive.compactor.compact.insert.only is false, and the table is insert-only",
            "set it to true",
        )
    return None


def may_be_cleaned(table: TableInfo, partition: Mapping[str, str] | None = None) -> bool:
    """Whether the Cleaner may remove files of a table, or of its partition with these parameters: if nobody objects."""
    return not any(
        name.lower() == _NO_CLEANUP and value.strip().lower() == "true"
        for parameters in (table.database_parameters, table.parameters, partition or {})
        for name, value in parameters.items()
    )


def pool_of(table: TableInfo) -> str | None:
    """The pool of workers that a table, or else its database, names."""
    return table.parameters.get(_POOL) or table.database_parameters.get(_POOL) or None


def manual_head_start_s(initiator: str) -> int:
    """The head start of a request, by who asks for it: programs that look for work call themselves otherwise."""
    return MANUAL_HEAD_START_S if initiator.endswith("-manual") else 0


def _by_thresholds(place: FileTotals, rules: Rules) -> Judgement:
    """Steps 3 to 6 of transactions.md §4.5."""
    part = f"{place.delta_bytes} bytes of deltas are {_percent(place.delta_bytes, place.base_bytes)} of the base's"
    if place.base_bytes and place.delta_bytes > rules.part_of_base * place.base_bytes:
        return Judgement(CompactionType.MAJOR, "large_deltas", f"{part}, more than {rules.part_of_base:.6g} of them")
    if place.deltas > rules.deltas:
        count = f"{_deltas(place)}, more than {rules.deltas}"
        if not place.base_bytes:
            return Judgement(CompactionType.MAJOR, "many_deltas", f"{count}, and there is no base")
        if not place.can_be_minor:
            return Judgement(CompactionType.MAJOR, "many_deltas", f"{count}, and a minor compaction would merge none")
        return Judgement(CompactionType.MINOR, "many_deltas", count)
    below = f"{_deltas(place)}, and a compaction is made of more than {rules.deltas}"
    if place.base_bytes:
        below += f"; {part}, and more than {rules.part_of_base:.6g} of them would be put into it"
    return Judgement(None, "below_thresholds", below, _ALL_WELL)


def _by_cost(place: FileTotals, most_deltas: int, scans: float) -> Judgement:
    cost = Cost.of(place, scans)
    if cost.type is not None:
        after = cost.after if cost.type is CompactionType.MINOR else BEGINNING
        return Judgement(cost.type, "worth_it", cost.reason, head_start_s=head_start_s(cost.score), after=after)
    if cost.merges > most_deltas:
        reason = f"{cost.merges} deltas that are merged cheaply, more than {most_deltas}; {cost.reason}"
        if not place.base_files and not cost.after:
            return Judgement(CompactionType.MAJOR, "many_deltas", f"{reason}; there is no base")
        return Judgement(CompactionType.MINOR, "many_deltas", reason, after=cost.after)
    if not cost.merges and place.deltas > most_deltas:
        reason = f"{_deltas(place)}, more than {most_deltas}, and a minor compaction would merge none; {cost.reason}"
        return Judgement(CompactionType.MAJOR, "many_deltas", reason)
    return Judgement(None, "not_worth_it", cost.reason, _ALL_WELL)


_ALL_WELL = "all is well, and ALTER TABLE ... COMPACT compacts nevertheless"


def _deltas(place: FileTotals) -> str:
    return "1 delta" if place.deltas == 1 else f"{place.deltas} deltas"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %" if whole else "all"


def _setting(table: TableInfo, key: str) -> tuple[str, bool] | None:
    """Where a switch is set and how; the database, if it has it, wins over the table. The case of keys is ignored."""
    for holder, parameters in (("database", table.database_parameters), ("table", table.parameters)):
        for name, value in parameters.items():
            if name.lower() == key:
                return holder, value.strip().lower() == "true"
    return None


def _first_load(table: TableInfo) -> str | None:
    for holder, parameters in (("database", table.database_parameters), ("table", table.parameters)):
        if any(name.lower() == _FIRST_LOAD and value.strip().lower() == "true" for name, value in parameters.items()):
            return holder
    return None
