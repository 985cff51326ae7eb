"""Rounds: of more deltas than one job is to merge (``hive.compactor.max.num.delta``) the oldest come first.

A round is a part of the table's history, up to some write id: that is where the compactor's view of the table ends, so
the names of the output, what the Cleaner may remove, and what is put on record follow from it by the rules of all
compactions. No write is torn apart: neither the two kinds of deltas of one range nor the statements of one write. The
commit of a round queues the next one in the same database transaction (`sql/queue_next_round.sql`); a round that is
killed before is begun anew, and nothing but the row in the queue knows of it.

1. A minor compaction merges each part by itself, and leaves what the rounds before have made. So each row is read and
   written once, and of n deltas n / limit are left, for another compaction if they are too many.
2. A major compaction goes by such minor rounds until no more deltas are left than one job merges; the last round makes
   the base. So the rows of deltas are written twice (once more for each factor of the limit by which they are more than
   limit²), and the base, which may be large, once, however many rounds there are.
3. Tables that are read by engines which do not know whose compaction a directory is (Apache Hive 3.1, Trino) get bases
   alone, since these take effect by one rename (acid-format.md §6.4): each round merges the base and the next deltas.
4. A rebalance is never divided: it gives rows other numbers, by their place among all rows, and nobody may write from
   its first look to its commit.

Writes that come meanwhile wait for the next compaction: whether another round follows is decided by what a round sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hive_acid.format.state import DataDirectory
from hive_acid.ids import WriteId
from metastore.compaction.plan import CompactionInput, TableKind, is_enough
from metastore.compaction.states import CompactionType

Look = Callable[[WriteId | None], CompactionInput]
"""What a compaction sees of a directory up to a write id, or of all of it: `compaction_input` of one listing."""


@dataclass(frozen=True, slots=True)
class Round:
    """What is to be merged now, by a compaction of which kind, and whether another round has to follow."""

    found: CompactionInput
    kind: CompactionType
    has_more: bool = False


def next_round(look: Look, kind: CompactionType, table: TableKind, *, after: WriteId, at_most: int) -> Round:
    """The round of a compaction of some kind that follows on one that ended at `after`, 0 for the first.

    It merges `at_most` deltas of both kinds together; more only where these are of a single write, or of two.
    """
    found = look(None)
    if kind is CompactionType.MINOR and table.hive_3:
        kind = CompactionType.MAJOR  # as `plan_compaction` makes it
    if kind is CompactionType.MINOR:
        rest = found.beyond(after)
        part = _part(look, rest, kind, table, at_most)
        if part is None or len(part.deltas) == len(rest.deltas):
            return Round(rest, kind)
        left = rest.beyond(part.highest_write_id)
        return Round(part, kind, is_enough(left, kind, insert_only=table.insert_only))
    if kind is not CompactionType.MAJOR or len(found.deltas) <= at_most:
        return Round(found, kind)
    if table.hive_3 or table.in_one_bucket:
        part = _part(look, found, kind, table, at_most)
        if part is None or len(part.deltas) == len(found.deltas):
            return Round(found, kind)
        return Round(part, kind, has_more=True)
    # From the beginning again when even what the rounds have made is too much for one job.
    for start in (after, WriteId(0)):
        part = _part(look, found.beyond(start), CompactionType.MINOR, table, at_most)
        if part is not None and len(part.deltas) < len(found.deltas):
            return Round(part, CompactionType.MINOR, has_more=True)
    return Round(found, kind)


def _part(
    look: Look, rest: CompactionInput, kind: CompactionType, table: TableKind, at_most: int
) -> CompactionInput | None:
    """The oldest deltas of `rest` that are merged together, no fewer than are worth it; None if no part of it is."""
    ends = _ends(rest.deltas)
    fitting = sum(number <= at_most for _, number in ends)
    for end, _ in ends[max(fitting - 1, 0) :]:
        part = look(end).beyond(rest.after)
        if is_enough(part, kind, insert_only=table.insert_only):
            return part
    return None


def _ends(deltas: Iterable[DataDirectory]) -> list[tuple[WriteId, int]]:
    """The write ids at which a part of deltas may end, and how many there are up to each."""
    ends: list[tuple[WriteId, int]] = []
    ordered = sorted(deltas, key=lambda delta: delta.directory.min_write_id)
    for number, delta in enumerate(ordered, start=1):
        this = delta.directory
        if ends and this.min_write_id <= ends[-1][0]:
            ends[-1] = WriteId(max(ends[-1][0], this.max_write_id)), number
        else:
            ends.append((WriteId(this.max_write_id), number))
    return ends
