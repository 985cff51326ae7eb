"""Scenarios of a few sessions in small text files, and all orders in which their steps can come.

::

    scenario a title
    each X: r t, w t                        # a scenario for each value, $X in the lines below
    session A: begin | lock $X | commit     # steps: begin, lock, check, unlock, commit, abort
    session B: begin | lock e t | check
    orders all                              # or: orders 200, as many drawn by lot
    ABABAB  ..AWW.                          # the answers of one order, step by step
    table X Y ABAB 4                        # the fourth answer of that order by X (a line each) and Y (a letter each)
        AW

A lock is a letter of a type, what to lock (``.`` the database, ``t``, ``t/p=1``), and the letter of an operation if
there is one; several with commas; then ``zero wait`` or ``ctas`` in brackets. A session that never begins locks without
a transaction. Answers: A acquired, W waiting, N not acquired, ``.`` done, ``!`` aborted by a conflict, ``?`` refused.

Every answer is compared with the model of the random walk, those that the file names with the file as well.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hive_acid.wire import ttypes
from metastore.lock.states import LockType
from metastore.txn.states import Operation, TxnType
from tests.caller import STATES, Caller, Refused
from tests.caller import component as wire_component
from tests.walk.model import Model
from tests.walk.records import Component, Refusal, Write

MOST_ORDERS = 2000
_names = itertools.count(1)


@dataclass
class Table:
    """Expected answers of one step of one order, by the values of two variables."""

    down: str
    across: str
    order: str
    step: int
    lines: list[str] = field(default_factory=list)


@dataclass
class Scenario:
    """One scenario as its file has it."""

    title: str
    variables: dict[str, list[str]] = field(default_factory=dict)
    sessions: dict[str, list[str]] = field(default_factory=dict)
    drawn: int | None = 0
    """Orders to be played besides those with answers; None for all."""
    answers: dict[str, str] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)

    def orders(self) -> list[str]:
        """What is to be played, each step as the letter of its session."""
        if self.drawn is None:
            steps = {name: len(lines) for name, lines in self.sessions.items()}
            found = ["".join(order) for order in _interleavings(steps)]
            assert len(found) <= MOST_ORDERS, f"{self.title}: {len(found)} orders are too many, draw some"
            return found
        chance = random.Random(self.title)
        letters = [name for name, lines in self.sessions.items() for _ in lines]
        drawn = ["".join(chance.sample(letters, len(letters))) for _ in range(self.drawn)]
        return [*dict.fromkeys([*self.answers, *(table.order for table in self.tables), *drawn])]


@dataclass
class Instance:
    """One order of a scenario with values for its variables, in a database of its own."""

    scenario: Scenario
    values: dict[str, str]
    order: str
    database: str = field(default_factory=lambda: f"s{next(_names)}")
    txns: dict[str, int] = field(default_factory=dict)
    locks: dict[str, int] = field(default_factory=dict)
    answers: str = ""

    def steps(self) -> list[tuple[str, str]]:
        """(session, step) in the order, without variables."""
        left = {name: iter(lines) for name, lines in self.scenario.sessions.items()}
        return [(name, self._filled(next(left[name]))) for name in self.order]

    def _filled(self, line: str) -> str:
        return re.sub(r"\$(\w)", lambda match: self.values[match[1]], line)

    def expected(self) -> str | None:
        """The answers that the file names for this order, with ``*`` for those it does not; None if it names none."""
        if not self.scenario.variables and self.order in self.scenario.answers:
            return self.scenario.answers[self.order]
        known = ["*"] * len(self.order)
        for table in self.scenario.tables:
            if self.order == table.order:
                row = self.scenario.variables[table.down].index(self.values[table.down])
                column = self.scenario.variables[table.across].index(self.values[table.across])
                known[table.step - 1] = table.lines[row][column]
        return "".join(known) if "*" in known and set(known) != {"*"} else None

    def __str__(self) -> str:
        told = "; ".join(
            f"{name} {step} {answer}" for (name, step), answer in zip(self.steps(), self.answers, strict=False)
        )
        return f"{self.scenario.title} {self.values or ''} {self.order}: {told}"


# --- the files -----------------------------------------------------------------------------------


def read(path: Path) -> list[Scenario]:
    """The scenarios of a file. Raises ValueError for a line that makes no sense."""
    found: list[Scenario] = []
    for number, raw in enumerate(path.read_text().splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if line:
            try:
                _read_line(line, found)
            except (ValueError, IndexError, AssertionError) as error:
                raise ValueError(f"{path.name}:{number}: '{raw}' makes no sense: {error}") from error
    return found


def _read_line(line: str, found: list[Scenario]) -> None:
    word, _, rest = line.partition(" ")
    if word == "scenario":
        found.append(Scenario(rest))
        return
    scenario = found[-1]
    if word == "each":
        name, values = rest.split(":")
        scenario.variables[name] = [value.strip() for value in values.split(",")]
    elif word == "session":
        name, steps = rest.split(":")
        scenario.sessions[name] = [step.strip() for step in steps.split("|")]
    elif word == "orders":
        scenario.drawn = None if rest == "all" else int(rest)
    elif word == "table":
        down, across, order, step = rest.split()
        _is_order(scenario, order)
        scenario.tables.append(Table(down, across, order, int(step)))
    elif scenario.tables and len(scenario.tables[-1].lines) < len(scenario.variables[scenario.tables[-1].down]):
        table = scenario.tables[-1]
        table.lines.append(line.replace(" ", ""))
        assert len(table.lines[-1]) == len(scenario.variables[table.across]), "wrong number of letters"
    else:
        order, answers = line.split()
        _is_order(scenario, order)
        assert len(answers) == len(order), "one answer for each step"
        scenario.answers[order] = answers


def _is_order(scenario: Scenario, order: str) -> None:
    for name, steps in scenario.sessions.items():
        assert order.count(name) == len(steps), f"{name} has {len(steps)} steps"


def _interleavings(left: dict[str, int]) -> Iterator[list[str]]:
    if not any(left.values()):
        yield []
    for name, count in left.items():
        if count:
            for rest in _interleavings({**left, name: count - 1}):
                yield [name, *rest]


# --- playing -------------------------------------------------------------------------------------


def instances(scenario: Scenario) -> list[Instance]:
    """All orders with all values."""
    names = list(scenario.variables)
    return [
        Instance(scenario, dict(zip(names, values, strict=True)), order)
        for values in itertools.product(*scenario.variables.values())
        for order in scenario.orders()
    ]


def play(chosen: Sequence[Instance], callers: Sequence[Caller]) -> None:
    """Play instances side by side, as many as there are callers: step by step, each step of all of them at once."""
    for first in range(0, len(chosen), len(callers)):
        side_by_side = list(zip(chosen[first : first + len(callers)], callers, strict=False))
        steps = [instance.steps() for instance, _ in side_by_side]
        for at in range(max(map(len, steps))):
            sent = []
            for (instance, caller), one in zip(side_by_side, steps, strict=True):
                if at < len(one) and _send(instance, caller, *one[at]):
                    sent.append((instance, caller, *one[at]))
                elif at < len(one):
                    instance.answers += "?"
            for instance, caller, session, step in sent:
                instance.answers += _receive(instance, caller, session, step)
        for instance, caller in side_by_side:
            caller.abort_all(10**9, *instance.txns.values())


def _send(instance: Instance, caller: Caller, session: str, step: str) -> bool:
    """False if there is nothing to ask for, since the session's request was refused before."""
    verb, _, wanted = step.partition(" ")
    txn_id = instance.txns.get(session, 0)
    if verb == "begin":
        caller.send("open_txns", ttypes.OpenTxnRequest(num_txns=1, user=session, hostname="h"))
    elif verb == "lock":
        texts, options = _wanted(wanted)
        components = [wire_component(_placed(text, instance.database)) for text in texts]
        caller.send(
            "lock",
            ttypes.LockRequest(
                component=components,
                txnid=txn_id,
                user=session,
                hostname="h",
                zeroWaitReadEnabled=options == "zero wait" or None,
                exclusiveCTAS=options == "ctas" or None,
            ),
        )
    elif verb in ("check", "unlock"):
        lock_id = instance.locks.get(session)
        if lock_id is None:
            return False
        kind = {"check": ttypes.CheckLockRequest, "unlock": ttypes.UnlockRequest}[verb]
        caller.send({"check": "check_lock"}.get(verb, verb), kind(lockid=lock_id))
    elif verb == "commit":
        caller.send("commit_txn", ttypes.CommitTxnRequest(txnid=txn_id, exclWriteEnabled=False))
    else:
        assert verb == "abort", f"{step}: no such step"
        caller.send("abort_txn", ttypes.AbortTxnRequest(txnid=txn_id))
    return True


def _receive(instance: Instance, caller: Caller, session: str, step: str) -> str:
    try:
        answer = caller.receive()
    except Refused as refused:
        return "!" if "write conflict" in refused.message else "?"
    if step.startswith("begin"):
        instance.txns[session] = answer.txn_ids[0]
    elif step.startswith("lock"):
        instance.locks[session] = answer.lockid
    return STATES[answer.state] if step.startswith(("lock", "check")) else "."


# --- the model's answers -------------------------------------------------------------------------


def modelled(instance: Instance) -> str:
    """The answers that the rules give."""
    model = Model()
    txns: dict[str, int] = {}
    locks: dict[str, int] = {}
    answers = ""
    for session, step in instance.steps():
        try:
            answers += _model_step(model, txns, locks, session, step) or "."
        except Refusal as refusal:
            answers += "!" if "write conflict" in refusal.words else "?"
    return answers


def _model_step(model: Model, txns: dict[str, int], locks: dict[str, int], session: str, step: str) -> str | None:
    verb, _, wanted = step.partition(" ")
    txn_id = txns.get(session, 0)
    if verb == "begin":
        (txns[session],) = model.open(1, TxnType.DEFAULT)
    elif verb == "lock":
        texts, options = _wanted(wanted)
        components, writes = [], []
        for text in texts:
            letter, target, operation = _placed(text, "db").split()
            db, table, partition = [*target.split("/", 2), None, None][:3]
            components.append(Component(LockType(letter), db or "", table, partition))
            if operation in "iud" and table:
                writes.append(Write(table, partition, Operation(operation)))
        locks[session] = model.last_lock + 1
        return model.lock(components, txn_id, writes, options == "zero wait", options == "ctas", locks[session])
    elif verb == "check":
        return _model_check(model, locks.get(session, 0))
    elif verb == "unlock":
        if session not in locks:
            raise Refusal("nothing was asked for")
        model.unlock(locks[session])
    elif verb == "commit":
        model.commit(txn_id, False)
    else:
        model.abort(txn_id)
    return None


def _model_check(model: Model, lock_id: int) -> str:
    answer = model.check(lock_id, 0)
    victims = model.victims(lock_id) if answer == "W" else set()
    assert len(victims) <= 1, "more than one circle: the outcome is open"
    for victim in victims:
        model.break_deadlock(victim)
        answer = model.check(lock_id, 0)
    return answer


def _wanted(text: str) -> tuple[list[str], str]:
    texts, _, options = text.partition("(")
    return [one.strip() for one in texts.split(",")], options.rstrip(")")


def _placed(text: str, database: str) -> str:
    """``"r t"`` as ``"r db/t s"``."""
    letter, target, *operation = text.split()
    return f"{letter} {database if target == '.' else f'{database}/{target}'} {operation[0] if operation else 's'}"


def problems(chosen: Sequence[Instance]) -> list[Any]:
    """Instances whose answers are not those of the model, or not those of the file."""
    found = []
    for instance in chosen:
        by_model, by_file = modelled(instance), instance.expected()
        if instance.answers != by_model:
            found.append(f"{instance} -- instead of {by_model}")
        if by_file and any(wanted not in ("*", given) for wanted, given in zip(by_file, instance.answers, strict=True)):
            found.append(f"{instance} -- the file says {by_file}")
    return found
