"""Who may do what, step by step over real sockets: grants, roles, owners, lists, transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid.format.properties import SUCCEEDS, successor_name
from hive_acid.transactions.locks import Operation, write_component
from hive_acid.wire import ttypes
from metastore.authorization.models import Who, table_thing
from metastore.authorization.rights import RightsBook
from tests.authorization.world import ROLE, acid, grant, person, revoke, table, target
from tests.caller import INTERNAL, Caller, refused
from tests.served import Served

MAY_NOT = "may not call"


@pytest.fixture
def cast(server: Served, root: Caller) -> Iterator[Callable[..., Caller]]:
    """People by name; each test has a database of its own, whose owner is ann."""
    people: dict[str, Caller] = {}

    def get(name: str, *groups: str) -> Caller:
        if name not in people:
            people[name] = person(server, name, *groups)
        return people[name]

    yield get
    for caller in people.values():
        caller.close()


@pytest.fixture
def home(root: Caller, cast: Callable[..., Caller], request: pytest.FixtureRequest) -> str:
    name = request.node.name.removeprefix("test_").partition("[")[0][:60]
    root.call("create_database", ttypes.Database(name=name, ownerName="ann", ownerType=1))
    cast("ann").call("create_table", acid("t", name))
    return str(name)


def test_verbs_are_enforced_one_by_one(root: Caller, cast: Callable[..., Caller], home: str) -> None:
    ann, bob = cast("ann"), cast("bob")
    with refused("MetaException", "bob may not call get_table_req: it takes any right on table hive"):
        bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    grant(ann, "SELECT", target(home, "t"), "bob")
    bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    bob.lock(f"r {home}/t s", txn=bob.begin())
    txn = bob.begin()
    for operation, verb in (("i", "INSERT"), ("u", "UPDATE"), ("d", "DELETE")):
        with refused(INTERNAL, f"it takes {verb} on table"):
            bob.lock(f"w {home}/t {operation}", txn=txn)
        grant(ann, verb, target(home, "t"), "bob")
        bob.lock(f"w {home}/t {operation}", txn=txn)
    bob.allocate(f"{home}.t", txn)
    bob.commit(txn)
    with refused("MetaException", "it takes DROP"):
        bob.call("drop_table", home, "t", False)
    with refused("MetaException", "it takes ALTER"):
        bob.call("alter_table", home, "t", acid("t", home, owner="ann"))
    with refused("MetaException", "it takes CREATE on database"):
        bob.call("create_table", table("u", home))
    with refused(INTERNAL, "it takes ADMIN"):
        bob.call("compact", ttypes.CompactionRequest(dbname=home, tablename="t", type=1))
    grant(ann, "DROP", target(home), "bob")
    bob.call("drop_table", home, "t", False)


def test_to_insert_rows_with_keys_is_a_change_and_takes_the_right_to_insert(
    root: Caller, cast: Callable[..., Caller], home: str
) -> None:
    ann, bob = cast("ann"), cast("bob")

    def lock(txn: int) -> None:
        component = write_component(home, "t", Operation.INSERT, keys=True)
        request = ttypes.LockRequest(component=[component], txnid=txn, user="bob", hostname="host1")
        bob.call("lock", request)

    grant(ann, "SELECT", target(home, "t"), "bob")
    grant(ann, "UPDATE", target(home, "t"), "bob")
    with refused(INTERNAL, "it takes INSERT on table"):
        lock(bob.begin())
    revoke(ann, "UPDATE", target(home, "t"), "bob")
    grant(ann, "INSERT", target(home, "t"), "bob")
    first, second = bob.begin(), bob.begin()
    for txn in (first, second):
        lock(txn)
        bob.allocate(f"{home}.t", txn)
    bob.commit(first)
    with refused("TxnAbortedException", "write conflict"):
        bob.commit(second)


def test_to_take_the_place_of_a_table_takes_what_drop_and_create_take(
    root: Caller, cast: Callable[..., Caller], home: str
) -> None:
    """Each right that is missing is one that it fails for; the new one has the owner and the privileges of before."""
    ann, bob = cast("ann"), cast("bob")
    txn = bob.begin()
    grant(ann, "DROP", target(home, "t"), "bob")
    with refused(INTERNAL, "it takes DELETE on table"):
        bob.lock(f"x {home}/t d", txn=txn)
    grant(ann, "DELETE", target(home, "t"), "bob")
    bob.lock(f"x {home}/t d", txn=txn)
    bob.allocate(f"{home}.t", txn)
    name = successor_name(txn)
    new = table(name, home, parameters={"transactional": "true", SUCCEEDS: "t"}, partitionKeys=[])
    with refused("MetaException", "it takes CREATE on database"):
        bob.call("create_table", new)
    grant(ann, "CREATE", target(home), "bob")
    bob.call("create_table", new)

    def seen(who: Caller, table: str) -> Any:
        return who.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName=table)).table

    made, old = seen(bob, name), seen(bob, "t")
    wanted = table("t", home, parameters={"transactional": "true"}, partitionKeys=[])
    request = ttypes.HiveAcidReplaceTableRequest(txnid=txn, tableId=old.id, table=wanted, successorId=made.id)
    for privilege, where in (("DROP", target(home, "t")), ("CREATE", target(home))):
        revoke(ann, privilege, where, "bob")
        with refused("MetaException", f"it takes {privilege} on"):
            bob.call("hive_acid_replace_table", request)
        grant(ann, privilege, where, "bob")
    with refused("MetaException", "another user's"):
        ann.call("hive_acid_replace_table", request)
    request.successorId = None
    with refused("MetaException", "it takes ALTER"):
        bob.call("hive_acid_replace_table", request)
    request.successorId = made.id
    bob.call("hive_acid_replace_table", request)
    now = seen(bob, "t")
    assert (now.id, now.owner, now.partitionKeys) == (made.id, "ann", [])
    with refused("MetaException", "it takes ALTER"):
        bob.call("alter_table", home, "t", acid("t", home, owner="ann"))
    seen(ann, "t")
    bob.call("drop_table", home, "t", False)


def test_a_revoke_holds_at_once(cast: Callable[..., Caller], home: str) -> None:
    ann, bob = cast("ann"), cast("bob")
    for _ in range(20):
        grant(ann, "INSERT", target(home, "t"), "bob")
        bob.allocate(f"{home}.t", bob.begin())
        revoke(ann, "INSERT", target(home, "t"), "bob")
        with refused("MetaException", MAY_NOT):
            bob.allocate(f"{home}.t", bob.begin())


def test_what_is_kept_is_thrown_away_when_the_owner_changes_or_another_table_comes(
    root: Caller, cast: Callable[..., Caller], home: str
) -> None:
    ann, bob = cast("ann"), cast("bob")
    ann.allocate(f"{home}.t", ann.begin())
    root.call("alter_table", home, "t", acid("t", home, owner="bob", ownerType=1))
    root.call("alter_database", home, ttypes.Database(name=home, ownerName="root", ownerType=1))
    bob.allocate(f"{home}.t", bob.begin())
    with refused("MetaException", MAY_NOT):
        ann.allocate(f"{home}.t", ann.begin())
    bob.call("drop_table", home, "t", False)
    root.call("create_table", table("t", home, owner="zoe", ownerType=1))
    with refused("MetaException", MAY_NOT):
        bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))


def test_roles_bring_their_privileges_and_may_be_granted_on_by_who_has_them_so(
    root: Caller, cast: Callable[..., Caller], home: str
) -> None:
    ann, bob, cid = cast("ann"), cast("bob"), cast("cid")
    for role in ("readers", "staff"):
        root.call("create_role", ttypes.Role(roleName=role))
    grant(ann, "SELECT", target(home), "readers", ROLE)
    root.call("grant_role", "readers", "staff", ROLE, "root", 1, False)
    with refused("MetaException", "the role staff with admin option"):
        bob.call("grant_role", "staff", "cid", 1, "bob", 1, False)
    root.call("grant_role", "staff", "bob", 1, "root", 1, True)
    bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    bob.call("grant_role", "staff", "cid", 1, "somebody", 1, False)
    cid.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    grants = bob.call("get_principals_in_role", ttypes.GetPrincipalsInRoleRequest(roleName="staff")).principalGrants
    assert {(one.principalName, one.grantorName) for one in grants} == {("bob", "root"), ("cid", "bob")}
    assert cid.call("get_role_names") == ["staff"] or set(cid.call("get_role_names")) == {"readers", "staff"}
    with refused("MetaException", MAY_NOT):
        cid.call("list_roles", "bob", 1)
    bob.call("revoke_role", "staff", "cid", 1)
    with refused("MetaException", MAY_NOT):
        cid.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    root.call("drop_role", "readers")
    with refused("MetaException", MAY_NOT):
        bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    root.call("drop_role", "staff")


def test_what_is_granted_to_public_everybody_may(cast: Callable[..., Caller], home: str) -> None:
    grant(cast("ann"), "SELECT", target(home, "t"), "public", ROLE)
    cast("bob").call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))


def test_groups_count_where_their_word_is_trusted(cast: Callable[..., Caller], home: str) -> None:
    grant(cast("ann"), "SELECT", target(home, "t"), "crew", ttypes.PrincipalType.GROUP)
    cast("gil", "crew").call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))


def test_a_grant_option_is_for_what_it_was_given_with(cast: Callable[..., Caller], home: str) -> None:
    ann, bob, cid = cast("ann"), cast("bob"), cast("cid")
    grant(ann, "SELECT", target(home, "t"), "bob", grant_option=True)
    grant(ann, "INSERT", target(home, "t"), "bob")
    grant(bob, "SELECT", target(home, "t"), "cid")
    for privilege in ("INSERT", "SELECT,INSERT", "ALL", "ADMIN"):
        with refused("MetaException", "with grant option, or ADMIN"):
            grant(bob, privilege, target(home, "t"), "cid")
    with refused("MetaException", "with grant option, or ADMIN"):
        grant(bob, "SELECT", target(home), "cid")
    found = cid.call("get_privilege_set", target(home, "t"), "cid", []).userPrivileges["cid"]
    assert [(one.privilege, one.grantor) for one in found] == [("SELECT", "bob")]
    with refused("MetaException", MAY_NOT):
        revoke(bob, "SELECT", target(home, "t"), "cid")
    revoke(ann, "SELECT", target(home, "t"), "cid")


def test_everything_and_everything_of_a_catalog(root: Caller, cast: Callable[..., Caller], home: str) -> None:
    bob = cast("bob")
    root.call(
        "create_catalog", ttypes.CreateCatalogRequest(catalog=ttypes.Catalog(name="other", locationUri="file:/other"))
    )
    root.call("create_database", ttypes.Database(name="o", catalogName="other", ownerName="root", ownerType=1))
    root.call("create_table", table("t", "o", catName="other"))
    wanted = ttypes.GetTableRequest(dbName="o", tblName="t", catName="other")
    grant(root, "SELECT", target(catalog="other"), "bob")
    bob.call("get_table_req", wanted)
    assert bob.call("get_databases", "@other#*") == ["default", "o"]
    with refused("MetaException", MAY_NOT):
        bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    held = bob.call("list_privileges", "bob", 1, target(catalog="other"))
    assert [(one.hiveObject.objectType, one.hiveObject.catName) for one in held] == [(1, "other")]
    with refused("MetaException", "CREATE on catalog other"):
        bob.call("create_database", ttypes.Database(name="p", catalogName="other"))
    grant(root, "CREATE", target(catalog="other"), "bob")
    bob.call("create_database", ttypes.Database(name="p", catalogName="other"))
    with refused("MetaException", "CREATE on catalog hive"):
        bob.call("create_database", ttypes.Database(name="p"))
    revoke(root, "SELECT", target(catalog="other"), "bob")
    with refused("MetaException", MAY_NOT):
        bob.call("get_table_req", wanted)
    grant(root, "SELECT", target(), "bob")
    bob.call("get_table_req", wanted)
    bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="t"))
    bob.call("get_next_notification", ttypes.NotificationEventRequest(lastEvent=0))
    revoke(root, "SELECT", target(), "bob")


def test_owners_are_who_has_come_in(root: Caller, cast: Callable[..., Caller], home: str) -> None:
    ann, bob = cast("ann"), cast("bob")
    grant(ann, "CREATE", target(home), "bob")
    bob.call("create_table", table("u", home, owner="ann", ownerType=1))
    found = bob.call("get_table_req", ttypes.GetTableRequest(dbName=home, tblName="u")).table
    assert (found.owner, found.ownerType) == ("bob", 1)
    grant(ann, "ALTER", target(home, "t"), "bob")
    for thief in (table("t", home, owner="bob"), table("t", home)):
        thief.parameters = {"transactional": "true"}
        with refused("MetaException", "it takes ADMIN on table"):
            bob.call("alter_table", home, "t", thief)
    same = acid("t", home, owner="ann")
    bob.call("alter_table", home, "t", same)
    with refused("MetaException", "it takes ADMIN on database"):
        grant(ann, "ALTER", target(home), "bob")
        bob.call("alter_database", home, ttypes.Database(name=home, ownerName="bob"))
    with refused("MetaException", "it takes CREATE on database hive.default"):
        bob.call("alter_table", home, "t", acid("t", "default", owner="ann"))


def test_transactions_and_locks_are_their_owners(
    root: Caller, cast: Callable[..., Caller], home: str, server: Served
) -> None:
    ann, bob = cast("ann"), cast("bob")
    grant(ann, "INSERT", target(home, "t"), "bob")
    txn = ann.begin()
    held = ann.lock(f"r {home}/t s").lockid
    in_txn = ann.lock(f"w {home}/t u", txn=txn).lockid
    for call in (
        lambda: bob.commit(txn),
        lambda: bob.abort(txn),
        lambda: bob.abort_all(bob.begin(), txn),
        lambda: bob.lock(f"w {home}/t i", txn=txn),
        lambda: bob.check(held),
        lambda: bob.check(in_txn, txn),
        lambda: bob.unlock(held),
        lambda: bob.heartbeat(txn),
        lambda: bob.heartbeat(None, held),
        lambda: bob.heartbeat(bob.begin(), held),
        lambda: bob.heartbeat_range(txn, txn),
        lambda: bob.heartbeat_range(0, 1 << 40),
        lambda: bob.allocate(f"{home}.t", bob.begin(), txn),
        lambda: bob.add_partitions(txn, 1, f"{home}.t", "p=1", operation="i"),
    ):
        with pytest.raises(Exception, match=r"another user's|other users'"):
            call()
    assert ann.info()[txn].user == "ann"
    assert txn not in bob.info()
    assert {one.user for one in bob.locks(dbname=home)} == {"ann"}, "bob sees who holds what on tables that he sees"
    with person(server, "eve") as eve:
        assert eve.locks(dbname=home) == []
    root.unlock(held)
    root.abort(txn)


def test_a_beginning_takes_the_rights_of_its_parts(server: Served, cast: Callable[..., Caller], home: str) -> None:
    """It is refused whole, with nothing opened, and what it has given out is its caller's."""
    ann, bob, eve = cast("ann"), cast("bob"), cast("eve")
    name = f"{home}.t"
    before = bob.call("get_open_txns").txn_high_water_mark
    for wanted, seen, written, lacks in (
        ([f"r {home} n"], [], [], "any right on"),
        ([f"r {home}/t s"], [], [], "SELECT on table"),
        ([], [name], [], "any right on table"),
        ([], [], [name], "on table"),
    ):
        with refused("MetaException", f"bob may not call hive_acid_begin: it takes .*{lacks}"):
            bob.begin_statement(*wanted, seen=seen, written=written)
    grant(ann, "SELECT", target(home, "t"), "bob")
    with refused("MetaException", "it takes UPDATE on table"):
        bob.begin_statement(f"r {home}/t s", f"w {home}/t u", seen=[name])
    assert bob.call("get_open_txns").txn_high_water_mark == before
    begun = bob.begin_statement(f"r {home}/t s", seen=[name])
    for caller in (eve, ann):
        with pytest.raises(Exception, match="another user's"):
            caller.heartbeat(begun.txnid)
    bob.heartbeat(begun.txnid, begun.lock.lockid)
    bob.commit(begun.txnid)
    with server.db.engine.connect() as connection:
        query = f"SELECT user_name FROM txn WHERE txn_id = {begun.txnid}"
        assert connection.exec_driver_sql(query).scalar_one_or_none() in (None, "bob")


def test_who_asks_for_a_transaction_is_who_has_come_in_whatever_it_says(cast: Callable[..., Caller]) -> None:
    bob = cast("bob")
    opened = bob.call("open_txns", ttypes.OpenTxnRequest(num_txns=1, user="ann", hostname="h")).txn_ids[0]
    assert bob.info()[opened].user == "bob"
    with refused("NoSuchTxnException", MAY_NOT):
        cast("ann").abort(opened)
    bob.abort(opened)


@pytest.mark.slow
def test_lists_show_what_one_may_see(root: Caller, cast: Callable[..., Caller], home: str) -> None:
    ann, bob = cast("ann"), cast("bob")
    for number in range(700):  # more than is held at once
        ann.call("create_table", table(f"n{number:03}", home))
    seen = ["n007", "n500", "n699"]
    for name in seen:
        grant(ann, "SELECT", target(home, name), "bob")
    everything = sorted(["t", *(f"n{number:03}" for number in range(700))])
    projection = ttypes.GetProjectionsSpec(fieldList=["tableType"])
    for who, expected in ((ann, everything), (bob, seen)):
        assert sorted(who.call("get_all_tables", home)) == expected
        assert sorted(who.call("get_tables", home, "*")) == expected
        assert sorted(who.call("get_tables_by_type", home, "*", "MANAGED_TABLE")) == expected
        found = who.call("get_table_meta", home, "*", [])
        assert sorted(one.tableName for one in found) == expected
        assert sorted(who.call("get_table_names_by_filter", home, 'hive_filter_field_owner__ = "ann"', -1)) == expected
        request = ttypes.GetTablesExtRequest(
            catalog="hive", database=home, tableNamePattern="*", requestedFields=1, limit=5000
        )
        assert sorted(one.tblName for one in who.call("get_tables_ext", request)) == expected
        request = ttypes.GetTablesRequest(dbName=home, tblNames=everything)
        assert sorted(one.tableName for one in who.call("get_table_objects_by_name_req", request).tables) == expected
        request = ttypes.GetTablesRequest(dbName=home, tblNames=everything, projectionSpec=projection)
        assert len(who.call("get_table_objects_by_name_req", request).tables) == len(expected)
        assert home in who.call("get_all_databases")
        assert home in who.call("get_databases", "*")
    grant(ann, "SELECT", target(home), "bob")
    assert sorted(bob.call("get_all_tables", home)) == everything


def test_foreign_keys_of_all_databases_are_not_told(cast: Callable[..., Caller], home: str) -> None:
    request = ttypes.ForeignKeysRequest(parent_tbl_name="t")
    with refused("MetaException", "it takes ADMIN on the server"):
        cast("bob").call("get_foreign_keys", request)


def test_an_empty_name_is_nobodys(server: Served, cast: Callable[..., Caller]) -> None:
    with person(server, "") as nobody, refused(INTERNAL, "no user has come in"):
        nobody.begin()


def test_events_take_a_right_on_everything(cast: Callable[..., Caller], home: str) -> None:
    with refused(INTERNAL, "it takes SELECT on the server"):
        cast("ann").call("get_next_notification", ttypes.NotificationEventRequest(lastEvent=0))


def test_a_name_is_checked_in_the_form_in_which_it_is_used(cast: Callable[..., Caller], home: str) -> None:
    bob = cast("bob")
    bob_home = f"{home}_of_bob"
    with refused("MetaException", MAY_NOT):
        bob.call("create_database", ttypes.Database(name=bob_home))
    for database in (home, home.upper(), f"@hive#{home}", f"@HIVE#{home.upper()}", f" {home} "):
        for name in ("t", "T", " t "):
            for call in (
                lambda database=database, name=name: bob.allocate(f"{database}.{name}", bob.begin()),
                lambda database=database, name=name: bob.write_ids(f"{database}.{name}"),
                lambda database=database, name=name: bob.lock(f"e {database.replace(' ', '')}/{name.strip()} n"),
                lambda database=database, name=name: bob.call("drop_table", database, name, False),
                lambda database=database, name=name: bob.call("get_table", database, name),
            ):
                with pytest.raises(Exception, match=MAY_NOT):
                    call()


def test_a_right_read_while_it_is_revoked_is_not_kept(server: Served, root: Caller, home: str) -> None:
    """Readers that are under way while others revoke: what is kept afterwards is never more than what there is."""
    book = RightsBook(server.db)
    book.listening(True)
    who, thing = Who("rae"), table_thing(home, "t")
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            book.read(who, thing)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        for _ in range(40):
            grant(root, "SELECT", target(home, "t"), "rae")
            book.forget()
            revoke(root, "SELECT", target(home, "t"), "rae")
            book.forget()
            kept = book.known(who, thing)
            assert kept is None or not kept.verbs
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
