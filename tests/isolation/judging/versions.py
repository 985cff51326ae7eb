"""What can be told from one list at a time: the order of its versions, and anomalies that need no graph.

A transaction writes a list as a whole, as an UPDATE writes a partition: what it saw, and its own elements behind.
So all versions of a list that were ever committed lie on one line, each the beginning of the next.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.isolation.judging.history import Append, Elements, Key, Outcome, Read, Transaction, shorten


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that snapshot isolation does not allow; `transactions` are numbers in the history, causes first."""

    name: str
    words: str
    transactions: tuple[int, ...]


@dataclass(slots=True)
class Line:
    """The versions of one list: all its elements in their order, and its writers with the length each left behind.

    The writer of an element that nobody wrote, or that was not committed, is -1.
    """

    elements: Elements = ()
    writers: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def writer_of(self, length: int) -> int | None:
        """Who wrote the version of this length; None for the empty one."""
        return self._writer_at(bisect_left(self.lengths, length)) if length else None

    def next_writer(self, length: int) -> int | None:
        """Who replaced the version of this length; None if it is the last."""
        return self._writer_at(bisect_left(self.lengths, length + 1))

    def _writer_at(self, place: int) -> int | None:
        return self.writers[place] if place < len(self.writers) and self.writers[place] >= 0 else None


class Versions:
    """The lines of all lists of a history, with the `violations` that came to light on the way."""

    def __init__(self, history: Sequence[Transaction]) -> None:
        self.history = history
        self.violations: list[Violation] = []
        self.lines: dict[Key, Line] = {}
        self.seen: list[dict[Key, Elements]] = [{} for _ in history]
        """For each transaction what it saw of others in each list it read."""
        self._forked: set[Key] = set()
        self._writer = {
            one.element: number
            for number, transaction in enumerate(history)
            for one in transaction.operations
            if isinstance(one, Append)
        }
        self._last = {
            (number, one.key): one.element
            for number, transaction in enumerate(history)
            for one in transaction.operations
            if isinstance(one, Append)
        }
        self.committed = [
            number
            for number, transaction in enumerate(history)
            if transaction.outcome is Outcome.COMMITTED
            or (transaction.outcome is Outcome.UNKNOWN and self._is_seen(number))
        ]
        self._is_committed = set(self.committed)
        self._ids()
        for number in self.committed:
            self._within(number)
        self._reads()
        self._updates()
        self._order()
        self._recency()

    def _is_seen(self, number: int) -> bool:
        """Who cannot tell its outcome has committed if anybody saw it."""
        own = {one.element for one in self.history[number].operations if isinstance(one, Append)}
        return any(
            isinstance(one, Read) and not own.isdisjoint(one.elements)
            for other, transaction in enumerate(self.history)
            if other != number and transaction.outcome is Outcome.COMMITTED
            for one in transaction.operations
        )

    def _found(self, name: str, words: str, *transactions: int | None) -> None:
        self.violations.append(Violation(name, words, tuple(n for n in transactions if n is not None)))

    def _ids(self) -> None:
        """No transaction id and no write id is ever given twice, whatever crashed."""
        owners: dict[tuple[str, int], int] = {}
        for number, transaction in enumerate(self.history):
            given = {("transactions", transaction.txn_id), *transaction.write_ids} - {("transactions", 0)}
            for what, identity in given:
                first = owners.setdefault((what, identity), number)
                if first != number:
                    self._found("doubled id", f"id {identity} of {what} was given to two", first, number)

    def _within(self, number: int) -> None:
        """A transaction sees the same at every look, and its own writes."""
        own: dict[Key, list[int]] = {}
        seen = self.seen[number]
        for one in self.history[number].operations:
            mine = own.setdefault(one.key, [])
            if isinstance(one, Append):
                mine.append(one.element)
                continue
            others = one.elements[: len(one.elements) - len(mine)]
            if one.elements[len(others) :] != tuple(mine):
                self._found(
                    "lost own write", f"own elements {mine} are not at the end of {shorten(one.elements)}", number
                )
            elif seen.setdefault(one.key, others) != others:
                self._found(
                    "non-repeatable read",
                    f"{one.key} was {shorten(seen[one.key])} and then {shorten(others)}",
                    number,
                    *(self._writer.get(element) for element in set(others) ^ set(seen[one.key])),
                )

    def _reads(self) -> None:
        """Nobody sees what is not committed, or a part of what is."""
        judged: dict[tuple[Key, Elements], float] = {}
        for number in self.committed:
            for one in self.history[number].operations:
                if not isinstance(one, Read) or not one.elements:
                    continue
                others = self.seen[number].get(one.key, ())
                known = judged.get((one.key, others))
                if known is None:
                    known = judged[one.key, others] = self._judge(number, one.key, others)
                if one.at < known:
                    writer = max(others, key=lambda element: self.history[self._writer[element]].committing)
                    self._found(
                        "dirty read",
                        f"{one.key}: element {writer} was seen at {one.at:.3f}, before its commit was asked for",
                        self._writer[writer],
                        number,
                    )

    def _judge(self, reader: int, key: Key, elements: Elements) -> float:
        """Look at a version when it is first seen; returns when the commit of its last writer was asked for."""
        latest = 0.0
        for position, element in enumerate(elements):
            writer = self._writer.get(element)
            if writer is None:
                self._found("phantom element", f"{key}: nobody ever wrote element {element}", reader)
                return 0.0
            if writer not in self._is_committed:
                self._found("aborted read", f"{key}: element {element} is of an aborted transaction", writer, reader)
                return 0.0
            latest = max(latest, self.history[writer].committing)
            if position == len(elements) - 1 and self._last[writer, key] != element:
                self._found("intermediate read", f"{key}: {element} is not the last its writer wrote", writer, reader)
        return latest

    def _updates(self) -> None:
        """Of two that replace the same version only one may commit."""
        replaced: dict[tuple[Key, Elements], int] = {}
        for number in self.committed:
            for key in {one.key for one in self.history[number].operations if isinstance(one, Append)}:
                first = replaced.setdefault((key, self.seen[number].get(key, ())), number)
                if first != number:
                    base = shorten(self.seen[number].get(key, ()))
                    self._forked.add(key)
                    self._found("lost update", f"both replaced {key} = {base} and both committed", first, number)

    def _order(self) -> None:
        """Put each list's versions on their line."""
        versions: dict[Key, dict[Elements, int]] = {}
        for number in self.committed:
            after: dict[Key, Elements] = {}
            for key, elements in self.seen[number].items():
                versions.setdefault(key, {}).setdefault(elements, number)
            for one in self.history[number].operations:
                if isinstance(one, Append):
                    after[one.key] = (*after.get(one.key, self.seen[number].get(one.key, ())), one.element)
            for key, elements in after.items():
                versions.setdefault(key, {}).setdefault(elements, number)
        for key, known in versions.items():
            longest = max(known, key=len)
            line = self.lines[key] = Line(longest)
            for length, element in enumerate(longest, 1):
                writer = self._committed_writer(element)
                if line.writers and line.writers[-1] == writer:
                    line.lengths[-1] = length
                else:
                    line.writers.append(writer)
                    line.lengths.append(length)
            for elements, number in known.items():
                if longest[: len(elements)] != elements and key not in self._forked:
                    self._found(
                        "incompatible versions",
                        f"{key} was {shorten(elements)} and was {shorten(longest)}: no version follows from the other",
                        known[longest],
                        number,
                    )
                    break

    def _recency(self) -> None:
        """Who begins after a commit was answered sees it."""
        earliest = {key: self._earliest_after(line) for key, line in self.lines.items()}
        lost: dict[Key, list[tuple[float, int]]] = {}
        on_line = {element for line in self.lines.values() for element in line.elements}
        for number in self.committed:
            transaction = self.history[number]
            for one in transaction.operations:
                if isinstance(one, Append) and one.element not in on_line:
                    lost.setdefault(one.key, []).append((transaction.ended, number))
        for number in self.committed:
            began = self.history[number].began
            for key, elements in self.seen[number].items():
                ended, writer = earliest[key][min(len(elements), len(earliest[key]) - 1)]
                if ended < began and writer != number:
                    self._found(
                        "stale read",
                        f"{key} was {shorten(elements)}, without what had been answered as committed at {ended:.3f}",
                        writer,
                        number,
                    )
                for ended, writer in lost.get(key, [])[:]:
                    if ended < began and writer != number:
                        self._found("lost write", f"{key} is without a committed element", writer, number)
                        lost[key].remove((ended, writer))  # said once

    def _committed_writer(self, element: int) -> int:
        writer = self._writer.get(element, -1)
        return writer if writer in self._is_committed else -1

    def _earliest_after(self, line: Line) -> list[tuple[float, int]]:
        """For each length: which of the versions beyond it was answered as committed first, and when."""
        found = [(float("inf"), -1)]
        for element in reversed(line.elements):
            writer = self._committed_writer(element)
            ended = self.history[writer].ended if writer >= 0 else float("inf")
            found.append(min(found[-1], (ended or float("inf"), writer)))
        return found[::-1]
