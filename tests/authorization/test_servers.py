"""Servers that enforce rights: how they start, that others hear of a change, and who asks them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hive_acid import Login, connect
from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.app import StartError
from metastore.rpc.doors.users.passwords import change
from metastore.store.database import Database
from tests.authorization.world import SETTINGS, acid, grant, revoke, table, target
from tests.caller import INTERNAL, Caller, refused

Start = Callable[..., str]


def named(uri: str, name: str) -> Caller:
    caller = Caller(uri, name)
    caller.call("set_ugi", name, [])
    return caller


def test_it_does_not_start_where_nobody_proves_who_they_are(metastore: Start) -> None:
    for settings in ({}, {"metastore.authentication": "NONE"}):
        with pytest.raises(StartError, match=r"metastore\.authentication=password \(or jwt\), or"):
            metastore(**{"metastore.authorization": "grants", "hive.users.in.admin.role": "root", **settings})


def test_it_does_not_start_without_an_administrator(metastore: Start) -> None:
    with pytest.raises(StartError, match=r"hive\.users\.in\.admin\.role"):
        metastore(**{"metastore.authorization": "grants", "metastore.authorization.trust.set.ugi": "true"})


@pytest.mark.parametrize("policy", ["nowhere:Policy", "tests.authorization.policies", "tests.authorization.policies:No",
                                    "tests.authorization.policies:Unmade", "builtins:dict"])  # fmt: skip
def test_it_does_not_start_with_a_policy_that_is_none(metastore: Start, policy: str) -> None:
    with pytest.raises(StartError, match=r"metastore\.authorization\.policy .* cannot be used"):
        metastore(**SETTINGS, **{"metastore.authorization.policy": policy})


def test_without_the_setting_everybody_may_do_everything(metastore: Start) -> None:
    with named(metastore(), "eve") as eve:
        eve.call("create_database", ttypes.Database(name="d", ownerName="ann", ownerType=1))
        eve.call("drop_database", "d", True, True)


def test_another_server_hears_of_what_is_granted_and_revoked(metastore: Start) -> None:
    with two_servers(metastore) as (root, bob):
        for _ in range(5):
            grant(root, "SELECT", target("d", "t"), "bob")
            bob.write_ids("d.t")
            bob.write_ids("d.t")  # from memory
            revoke(root, "SELECT", target("d", "t"), "bob")
            assert seconds_until_refused(lambda: bob.write_ids("d.t")) < 2
        root.call("create_role", ttypes.Role(roleName="crew"))
        grant(root, "SELECT", target("d"), "crew", ttypes.PrincipalType.ROLE)
        root.call("grant_role", "crew", "bob", 1, "root", 1, False)
        bob.write_ids("d.t")
        root.call("drop_role", "crew")
        assert seconds_until_refused(lambda: bob.write_ids("d.t")) < 2
        root.call("alter_table", "d", "t", acid("t", "d", owner="bob"))
        bob.write_ids("d.t")
        root.call("drop_table", "d", "t", False)
        root.call("create_table", acid("t", "d"))
        assert seconds_until_refused(lambda: bob.write_ids("d.t")) < 2


@contextmanager
def two_servers(metastore: Start) -> Iterator[tuple[Caller, Caller]]:
    """An administrator on one, who has made a table, and a user on another of the same database."""
    here, there = metastore(**SETTINGS), metastore(**SETTINGS)
    with named(here, "root") as root, named(there, "bob") as bob:
        root.call("create_database", ttypes.Database(name="d"))
        root.call("create_table", acid("t", "d"))
        yield root, bob


def seconds_until_refused(call: Callable[[], object]) -> float:
    started = time.monotonic()
    with refused("MetaException", "may not call"):
        while time.monotonic() < started + 10:
            call()
    return time.monotonic() - started


def test_while_nobody_is_told_nothing_is_kept(metastore: Start, db: Database) -> None:
    """Its listening connection is cut again and again, and each revoke holds at once all the same, or nearly."""
    with two_servers(metastore) as (root, bob):
        for _ in range(5):
            grant(root, "SELECT", target("d", "t"), "bob")
            bob.write_ids("d.t")
            with db.engine.connect() as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN hive_acid_rights'"
                )
            revoke(root, "SELECT", target("d", "t"), "bob")
            assert seconds_until_refused(lambda: bob.write_ids("d.t")) < 2


def test_who_has_a_password_is_who_counts(metastore: Start, tmp_path: Path) -> None:
    users = tmp_path / "users"
    for name in ("root", "ann"):
        change(users, name, name)
    settings = {key: value for key, value in SETTINGS.items() if "trust" not in key}
    uri = metastore(
        **settings,
        **{"metastore.authentication": "password", "metastore.authentication.password.file": str(users)},
    )
    with (
        connect(uri, login=Login("root", "root")) as root,
        connect(uri, login=Login("ann", "ann")) as ann,
    ):
        root.call("create_database", ttypes.Database(name="d", ownerName="root", ownerType=1))
        grant_all = ttypes.HiveObjectRef(objectType=2, dbName="d")
        info = ttypes.PrivilegeGrantInfo(privilege="ALL", grantor="root", grantorType=1)
        crew = ttypes.HiveObjectPrivilege(hiveObject=grant_all, principalName="crew", principalType=3, grantInfo=info)
        root.call("grant_privileges", ttypes.PrivilegeBag(privileges=[crew]))
        with pytest.raises(MetaError, match="may not act for root"):
            ann.call("set_ugi", "root", [])
        ann.call("set_ugi", "ann", ["crew"])  # nobody has proven that
        with pytest.raises(MetaError, match="ann may not call create_table"):
            ann.call("create_table", table("t", "d"))


def test_a_policy_is_asked_first(metastore: Start) -> None:
    uri = metastore(**SETTINGS, **{"metastore.authorization.policy": "tests.authorization.policies:Tagged"})
    with named(uri, "root") as root, named(uri, "ann") as ann, named(uri, "zoe") as zoe:
        root.call("create_database", ttypes.Database(name="d", ownerName="ann", ownerType=1))
        for name in ("public_t", "secret_t", "t"):
            root.call("create_table", acid(name, "d", owner="ann"))
        zoe.write_ids("d.public_t")
        zoe.lock("r d/public_t s", txn=zoe.begin())
        with refused(INTERNAL, "it takes INSERT"):
            zoe.lock("w d/public_t i", txn=zoe.begin())
        for caller, name in ((ann, "secret_t"), (zoe, "t"), (zoe, "secret_t")):
            with refused("MetaException", "may not call get_valid_write_ids"):
                caller.write_ids(f"d.{name}")
        root.write_ids("d.secret_t")
        assert ann.call("get_all_tables", "d") == ["public_t", "t"]
        assert zoe.call("get_all_tables", "d") == ["public_t"]


def test_a_policy_that_fails_refuses(metastore: Start) -> None:
    uri = metastore(**SETTINGS, **{"metastore.authorization.policy": "tests.authorization.policies:Broken"})
    with named(uri, "root") as root, named(uri, "ann") as ann:
        root.call("create_database", ttypes.Database(name="d", ownerName="ann", ownerType=1))
        with refused("MetaException", "the engine of policies is away"):
            ann.call("create_table", table("t", "d"))
        with refused(INTERNAL, "the engine of policies is away"):
            ann.lock("r d/t s", txn=ann.begin())
