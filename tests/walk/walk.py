"""Plays steps against a server and a model at once, and compares every answer.

Steps of one group are sent together, before any answer is read: the server may carry them out in any order, but all its
answers must be those of one order. What the answers leave open is kept as several models, until later ones tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from hive_acid.format.snapshot import ValidTxnList
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.states import LockState
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from tests.caller import INTERNAL, Caller, Refused
from tests.served import Served
from tests.walk.model import META, Model
from tests.walk.records import Mismatch, Refusal
from tests.walk.verbs import VERBS, Step, Unbound, compare, told

Group = Sequence[Step]
HOUSE = "house"
"""The client of what the server does by itself, or the clock."""
MOST_MODELS = 50


class Broken(AssertionError):  # noqa: N818 - what the walk is after
    """An answer that no order of the calls explains."""


@dataclass
class Walk:
    """One walk on one fresh server."""

    server: Served
    models: list[Model] = field(default_factory=lambda: [Model()])
    known: dict[str, Any] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    """The steps with their answers."""
    seen: set[tuple[str, str]] = field(default_factory=set)
    """Verbs with the kinds of answers that they got."""

    def __post_init__(self) -> None:
        self._callers: dict[str, Caller] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def model(self) -> Model:
        return self.models[0]

    def play(self, group: Group) -> None:
        """Send a group, compare its answers. Raises Broken."""
        played = []
        for step in group:
            with suppress(Unbound):  # the step that would have brought it to light was left out, or refused
                played.append((step, step.resolved(self.known)))
        if played and played[0][0].client == HOUSE:
            self._keep_house(*played[0])
            return
        for step, arguments in played:
            verb = VERBS[step.verb]
            self._caller(step.client).send(verb.method, *verb.request(**arguments))
        calls: list[Call] = []
        for step, arguments in played:
            answer = self._answer(step)
            mark = "  together " if len(played) > 1 else ""
            self.told.append(f"{mark}{step} -> {told(answer)}")
            calls.append(Call(step, arguments, answer))
            self.seen.add((step.verb, _kind(step, answer)))
            self._bind(step, answer)
        self._explain(calls)

    def _explain(self, calls: list[Call]) -> None:
        reasons: list[str] = []
        after: list[Model] = []
        for model in self.models:
            for found in _orders(model, calls, len(calls) == 1, reasons):
                if found not in after:
                    after.append(found)
        if not after:
            raise Broken("; ".join(dict.fromkeys(reasons)))
        assert len(after) <= MOST_MODELS, "the answers leave too much open"
        self.models = after

    def _answer(self, step: Step) -> Any:
        try:
            return VERBS[step.verb].answer(self._caller(step.client).receive())
        except Refused as refused:
            return refused

    def _bind(self, step: Step, answer: Any) -> None:
        if isinstance(answer, Refused):
            return
        if step.verb == "open":
            self.known.update(zip(step.binds, answer, strict=False))
        elif step.verb == "lock":
            self.known[step.binds[0]] = answer[0]
        elif step.verb == "snapshot":
            high_water_mark, listed, aborted, _ = answer
            own = step.resolved(self.known)["txn"]
            seen = [txn_id for txn_id in listed if txn_id < own]
            self.known[step.binds[0]] = str(
                ValidTxnList(
                    min(own, high_water_mark),
                    tuple(txn_id for txn_id in seen if txn_id not in aborted),
                    tuple(txn_id for txn_id in seen if txn_id in aborted),
                )
            )

    def _caller(self, name: str) -> Caller:
        if name not in self._callers:
            self._callers[name] = self._stack.enter_context(self.server.caller(name))
        return self._callers[name]

    def _keep_house(self, step: Step, arguments: dict[str, Any]) -> None:
        _HOUSE[step.verb](self.server.db, **arguments)
        for model in self.models:
            getattr(model, step.verb)(**arguments)
        self.told.append(str(step))
        self.seen.add((step.verb, "ok"))


def _kind(step: Step, answer: Any) -> str:
    if isinstance(answer, Refused):
        return "conflict" if "write conflict" in answer.message else answer.kind
    return {"lock": lambda: answer[1], "check": lambda: answer}.get(step.verb, lambda: "ok")()


class Call(NamedTuple):
    """A step that has been answered; `has_looked` says that it has broken its deadlock already."""

    step: Step
    arguments: dict[str, Any]
    answer: Any
    has_looked: bool = False


def _orders(model: Model, calls: list[Call], alone: bool, reasons: list[str]) -> Iterator[Model]:
    """What the model becomes by each order of the calls that gives these answers.

    A check that has to wait looks for a deadlock, and checks again when it has broken one; `alone`, nothing comes in
    between.
    """
    if not calls:
        yield model
    for at, call in enumerate(calls):
        others = calls[:at] + calls[at + 1 :]
        victims: set[int] = set()
        if call.step.verb == "check" and not call.has_looked:
            tried = model.copy()
            with suppress(Refusal):
                tried.check(call.arguments["lock"], call.arguments["txn"])
            victims = tried.victims(call.arguments["lock"])
        for victim in sorted(victims):
            tried = model.copy()
            arguments = {**call.arguments, "txn": tried.requests[call.arguments["lock"]].txn_id}
            tried.break_deadlock(victim)
            again = call._replace(arguments=arguments, has_looked=True)
            yield from _orders(tried, [again, *others], alone, reasons)
        if victims and alone:
            continue
        tried = model.copy()
        try:
            _apply(tried, call.step.verb, call.arguments, call.answer)
        except Mismatch as mismatch:
            reasons.append(f"{call.step}: {mismatch}")
            if alone or not _is_passed_over(model, call):
                continue
            tried = model
        yield from _orders(tried, others, alone, reasons)


def _is_passed_over(model: Model, call: Call) -> bool:
    """A check does not wait for others who work on the same request in this instant: it says WAITING then."""
    request = model.requests.get(call.arguments.get("lock", 0))
    is_waiting = request is not None and request.state is LockState.WAITING
    return call.step.verb == "check" and call.answer == "W" and is_waiting


def _apply(model: Model, verb: str, arguments: dict[str, Any], answer: Any) -> None:
    """Carry the call out in the model. Raises Mismatch if its answer is another."""
    extra = {"answered": answer} if verb == "lock" else {}
    try:
        expected = VERBS[verb].expect(model, **arguments, **extra)
    except Refusal as refusal:
        if not isinstance(answer, Refused) or not _is_meant(refusal, answer):
            raise Mismatch(f"{told(answer)} instead of {refusal}") from None
        return
    if isinstance(answer, Refused):
        if not (model.has_purged and answer.kind == "NoSuchTxnException" and _is_committed(model, arguments)):
            raise Mismatch(f"{answer} instead of {told(expected)}")
        return
    compare(verb, model, expected, answer)


def _is_meant(refusal: Refusal, answer: Refused) -> bool:
    kinds = {*refusal.kinds, INTERNAL} if META in refusal.kinds else refusal.kinds
    return answer.kind in kinds and all(word in answer.message for word in refusal.words)


def _is_committed(model: Model, arguments: dict[str, Any]) -> bool:
    """Housekeeping may have forgotten it."""
    txn = model.txns.get(arguments.get("txn", 0))
    return txn is not None and txn.state.name == "COMMITTED"


# --- what the server does by itself --------------------------------------------------------------


def _time_out(db: Database, txn_ids: tuple[int, ...]) -> None:
    """No heartbeat for a day; one that was on its way meanwhile came to nothing."""
    for _ in range(10):
        _age(db, "txn", "txn_id", txn_ids)
        _keep(db)
        with db.engine.connect() as connection:
            counting = "SELECT count(*) FROM txn WHERE state = 'o' AND txn_id = ANY (%s)"
            if not connection.exec_driver_sql(counting, (list(txn_ids),)).scalar():
                return
    raise AssertionError(f"{txn_ids} do not time out")


def _expire_locks(db: Database, lock_ids: tuple[int, ...]) -> None:
    _age(db, "lock_component", "lock_id", lock_ids)
    _keep(db)


def _purge(db: Database) -> None:
    _keep(db)
    AcidTxnCleaner(db, HousekeepingConfig(finished_retention_ms=0)).run_once()


def _age(db: Database, table: str, key: str, ids: tuple[int, ...]) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            f"UPDATE {table} SET heartbeat_at = heartbeat_at - interval '1 day' WHERE {key} = ANY (%s)", (list(ids),)
        )


def _keep(db: Database) -> None:
    AcidHouseKeeper(db, HousekeepingConfig(), TxnConfig()).run_once()


_HOUSE: dict[str, Callable[..., None]] = {"time_out": _time_out, "expire_locks": _expire_locks, "keep_house": _purge}
