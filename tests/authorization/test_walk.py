"""Every method of the table over a real socket: refused to who has no right, with nothing changed, open to others."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import service, ttypes
from metastore.authorization.authority import Authority
from metastore.authorization.methods import needs
from metastore.authorization.models import Who
from metastore.authorization.shown import SHOWN
from tests.authorization.world import MAY_NOT, Requests, acid, person, rows
from tests.caller import INTERNAL, Caller, Refused
from tests.served import Served

pytestmark = pytest.mark.sampled

METHODS = Path(__file__).parents[2] / "idl" / "methods.tsv"
NEEDS = needs()
OPEN = sorted(method for method, need in NEEDS.items() if need in (("anyone",), ("user",)))
GUARDED = sorted(set(NEEDS) - set(OPEN) - {"open_txns"})
LEFT_OUT = ("shutdown", "reinitialize", "set_ugi")
"""The first two are not answered, the third makes another of the caller."""


def test_each_method_that_is_served_has_a_row() -> None:
    with METHODS.open() as file:
        tiers = {row["method"]: row["tier"] for row in csv.DictReader(file, delimiter="\t")}
    assert set(NEEDS) == {method for method, tier in tiers.items() if tier != "4"}
    assert set(SHOWN) <= set(OPEN)


def test_a_method_without_a_row_is_refused(server: Served) -> None:
    authority = Authority(server.db)
    with pytest.raises(Exception, match="nothing says who may call it"):
        authority.check("add_index", Who("root"), [None, None])


class World:
    """Ann's database d with her table t, a transaction, a lock and a compaction of hers; made anew where it is gone."""

    def __init__(self, server: Served) -> None:
        self.root = person(server, "root")
        self.ann = person(server, "ann")
        self.eve = person(server, "eve")
        self.requests = self.made()

    def made(self) -> Requests:
        for make in (
            lambda: self.root.call("create_database", ttypes.Database(name="d", ownerName="ann", ownerType=1)),
            lambda: self.root.call("create_role", ttypes.Role(roleName="crew")),
            lambda: self.root.call("grant_role", "crew", "ann", 1, "root", 1, True),
            lambda: self.ann.call("create_table", acid("t")),
            lambda: self.ann.call("drop_table", "d", "t2", False),
        ):
            try:
                make()
            except Refused as error:
                if not any(words in error.message for words in ("already", "exists", "not found")):
                    raise
        found = self.ann.call("get_table_req", ttypes.GetTableRequest(dbName="d", tblName="t")).table
        txn_id = self.ann.begin()
        lock_id = self.ann.lock("r d/t s").lockid
        request = ttypes.CompactionRequest(dbname="d", tablename="t", type=ttypes.CompactionType.MINOR)
        self.ann.call("compact", request)
        compaction_id = max(one.id for one in self.ann.call("show_compact", ttypes.ShowCompactRequest()).compacts)
        return Requests(txn_id, lock_id, compaction_id, found.id or 1)

    def close(self) -> None:
        for caller in (self.root, self.ann, self.eve):
            caller.close()


@pytest.fixture(scope="module")
def world(server: Served) -> Iterator[World]:
    made = World(server)
    yield made
    made.close()


def outcome(caller: Caller, method: str, arguments: list[Any]) -> Any:
    """The answer, or the error of a refusal."""
    try:
        return caller.call(method, *arguments)
    except Refused as error:
        return error


def is_refused(answer: Any) -> bool:
    return isinstance(answer, Refused) and any(words in answer.message for words in MAY_NOT)


def declared_kind(method: str) -> str:
    """The exception by which a method refuses."""
    spec = getattr(service, f"{method}_result").thrift_spec
    declared = [field[2].__name__ for number, field in sorted(spec.items()) if number != 0]
    if not declared:
        return INTERNAL
    return "MetaException" if "MetaException" in declared else declared[0]


def test_who_has_no_right_is_refused_everywhere_and_changes_nothing(world: World, server: Served) -> None:
    before = rows(server.db)
    allowed, wrong = [], []
    for method in GUARDED:
        answer = outcome(world.eve, method, world.requests.of(method))
        if not is_refused(answer):
            allowed.append(f"{method}: {answer}")
        elif answer.kind != declared_kind(method):
            wrong.append(f"{method}: {answer.kind}, not {declared_kind(method)}")
    assert not allowed
    assert not wrong
    assert rows(server.db) == before


def test_lists_show_nothing_of_what_one_may_not_see(world: World) -> None:
    for method in OPEN:
        if method in LEFT_OUT:
            continue
        answer = outcome(world.eve, method, world.requests.of(method))
        assert not is_refused(answer), f"{method}: {answer}"
        if method in SHOWN:
            assert not isinstance(answer, Refused), f"{method}: {answer}"
            field = SHOWN[method][1]
            found = answer if field is None else getattr(answer, field)
            left = [one for one in found or [] if one != "default" and getattr(one, "name", "") != "default"]
            assert not left, f"{method}: {left}"


def test_nobody_may_call_what_takes_a_user(world: World, server: Served) -> None:
    before = rows(server.db)
    with server.caller("nobody") as nobody:
        for method, need in NEEDS.items():
            if method not in LEFT_OUT:
                answer = outcome(nobody, method, world.requests.of(method))
                assert is_refused(answer) is (need != ("anyone",)), f"{method}: {answer}"
    assert rows(server.db) == before


@pytest.mark.parametrize("name", ["ann", "root"])
def test_owners_and_admins_pass(world: World, name: str) -> None:
    for method, need in NEEDS.items():
        if method in LEFT_OUT:
            continue
        caller = getattr(world, name)
        answer = outcome(caller, method, world.made().of(method))
        always = [one for one in need if not {"when", "unless"} & {*one.split()}]
        is_of_server = any("on server" in one or "on catalog" in one for one in always)
        may = name == "root" or not (is_of_server or method in ("list_roles", "get_role_grants_for_principal"))
        assert is_refused(answer) is not may, f"{method}: {answer}"
