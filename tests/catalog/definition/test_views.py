"""Views and materialised views, over the wire."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.store.database import Database
from tests.caller import Caller, refused
from tests.catalog.conftest import ACID, table

MADE_OF = "7$default.t:0:9223372036854775807::"


@pytest.fixture
def ann(metastore: Callable[..., str]) -> Iterator[Caller]:
    """Beside no worker, which would find nothing to compact in these tables."""
    with Caller(metastore(**{"metastore.compactor.worker.threads": "0"})) as caller:
        caller.call("create_database", ttypes.Database(name="d"))
        caller.call("create_table", table("t", parameters=ACID))
        yield caller


def made_of(name: str = "mv", database: str = "default", text: str | None = MADE_OF, *tables: str, **more: Any) -> Any:
    used = set(tables or ("default.t",))
    return ttypes.CreationMetadata(
        catName="hive", dbName=database, tblName=name, tablesUsed=used, validTxnList=text, **more
    )


def view(name: str = "mv", database: str = "default", rewriting: bool | None = True, **more: Any) -> Any:
    fields = {"creationMetadata": made_of(name, database)} | more
    kind = {"tableType": "MATERIALIZED_VIEW", "viewOriginalText": "SELECT a FROM t", "rewriteEnabled": rewriting}
    return table(name, database, **(kind | fields))


def get(ann: Caller, name: str = "mv", database: str = "default") -> Any:
    return ann.call("get_table_req", ttypes.GetTableRequest(dbName=database, tblName=name)).table


def invalidation(ann: Caller, metadata: Any) -> tuple[bool, bool]:
    found = ann.call("get_materialization_invalidation_info", metadata, str(ann.snapshot()))
    return found.sourceTablesUpdateDeleteModified, found.sourceTablesCompacted


def write(ann: Caller, operation: str, target: str = "default/t") -> int:
    txn_id = ann.begin()
    write_id = ann.write(txn_id, target, operation)
    ann.commit(txn_id)
    return write_id


# --- storage ---


def test_a_view_comes_back_as_it_was_sent(ann: Caller) -> None:
    texts = {"viewOriginalText": "select * from t", "viewExpandedText": "select `t`.`a` from `default`.`t`"}
    ann.call("create_table", table("v", tableType="VIRTUAL_VIEW", **texts))  # type: ignore[arg-type]
    found = ann.call("get_table", "default", "v")
    assert (found.tableType, found.viewOriginalText, found.viewExpandedText) == ("VIRTUAL_VIEW", *texts.values())
    assert found.creationMetadata is None


def test_a_materialised_view_comes_back_as_it_was_sent(ann: Caller) -> None:
    source = ttypes.SourceTable(table=get(ann, "t"), insertedCount=3, updatedCount=2, deletedCount=1)
    ann.call("create_table", view(creationMetadata=made_of(sourceTables=[source])))
    found = get(ann)
    assert (found.tableType, found.rewriteEnabled) == ("MATERIALIZED_VIEW", True)
    its = found.creationMetadata
    assert (its.catName, its.dbName, its.tblName, set(its.tablesUsed)) == ("hive", "default", "mv", {"default.t"})
    assert its.validTxnList == MADE_OF
    assert its.materializationTime > 1_700_000_000_000
    assert its.sourceTables[0].table == source.table
    assert its.sourceTables[0].insertedCount == 3


def test_an_alteration_does_not_change_what_it_is_made_of(ann: Caller) -> None:
    ann.call("create_table", view())
    before = get(ann).creationMetadata
    for metadata in (None, made_of(text="other")):  # clients of Hive 2.3 do not know the field
        altered = view("mv2", creationMetadata=metadata, rewriting=False)
        ann.call("alter_table", "default", "mv", altered)
        assert get(ann, "mv2").creationMetadata == before
        ann.call("alter_table", "default", "mv2", view(creationMetadata=metadata))
    assert get(ann).creationMetadata == before


# --- rewriting ---


def test_those_for_rewriting(ann: Caller) -> None:
    ann.call("create_table", view())
    ann.call("create_table", view("mv2", "d"))
    ann.call("create_table", view("off", rewriting=False))
    ann.call("create_table", view("unsaid", rewriting=None))
    ann.call("create_table", table("v", tableType="VIRTUAL_VIEW", rewriteEnabled=True))
    found = ann.call("get_all_materialized_view_objects_for_rewriting")
    assert [(one.dbName, one.tableName) for one in found] == [("d", "mv2"), ("default", "mv")]
    assert found[0].creationMetadata.tblName == "mv2"
    assert ann.call("get_materialized_views_for_rewriting", "DEFAULT") == ["mv"]
    assert ann.call("get_materialized_views_for_rewriting", "@hive#nix") == []


def test_what_it_is_made_of_can_be_updated(ann: Caller) -> None:
    ann.call("create_table", view())
    before = get(ann).creationMetadata
    ann.call("update_creation_metadata", "hive", "DEFAULT", "MV", made_of(text="later"))
    after = get(ann)
    assert after.creationMetadata.validTxnList == "later"
    assert after.creationMetadata.materializationTime >= before.materializationTime
    assert after.viewOriginalText == "SELECT a FROM t"


@pytest.mark.parametrize(
    ("database", "name", "metadata", "kind"),
    [
        ("nix", "mv", made_of(), "UnknownDBException"),
        ("default", "nix", made_of(), "InvalidOperationException"),
        ("default", "t", made_of(), "InvalidOperationException"),
        ("default", "mv", None, "InvalidOperationException"),
    ],
)
def test_what_cannot_be_updated(ann: Caller, database: str, name: str, metadata: Any, kind: str) -> None:
    with refused(kind):
        ann.call("update_creation_metadata", "hive", database, name, metadata)


def test_there_are_no_scheduled_queries(ann: Caller) -> None:
    found = ann.call("scheduled_query_poll", ttypes.ScheduledQueryPollRequest(clusterNamespace="hive"))
    assert (found.scheduleKey, found.executionId, found.query) == (None, None, None)


# --- what has happened to the tables behind it ---


def seen(ann: Caller, *names: str) -> str:
    """What the tables show now, as Hive keeps it in a view."""
    lists = []
    for name in names or ("default.t",):
        found = ann.write_ids(name)
        flags = [
            found.abortedBits[at // 8] >> at % 8 & 1 if at // 8 < len(found.abortedBits) else 0
            for at in range(len(found.invalidWriteIds))
        ]
        parts = [
            [str(one) for one, flag in zip(found.invalidWriteIds, flags, strict=True) if flag == wanted]
            for wanted in (0, 1)
        ]
        lowest = found.minOpenWriteId or 2**63 - 1
        lists.append(f"{name}:{found.writeIdHighWaterMark}:{lowest}:{','.join(parts[0])}:{','.join(parts[1])}")
    return "$".join(["1", *lists])


def test_inserts_leave_a_view_renewable(ann: Caller) -> None:
    write(ann, "u")
    text = seen(ann)
    assert invalidation(ann, made_of("mv", "default", text)) == (False, False)
    write(ann, "i")
    assert invalidation(ann, made_of("mv", "default", text)) == (False, False)
    as_json = json.dumps({"validTxnList": text, "tableSnapshots": None})
    assert invalidation(ann, made_of("mv", "default", as_json)) == (False, False)
    assert invalidation(ann, made_of("mv", "default", text, "hive.default.t")) == (False, False)


@pytest.mark.parametrize("operation", ["u", "d"])
def test_updates_and_deletes_do_not(ann: Caller, operation: str) -> None:
    write(ann, "i")
    text = seen(ann)
    write(ann, operation)
    assert invalidation(ann, made_of("mv", "default", text)) == (True, False)
    assert invalidation(ann, made_of("mv", "default", seen(ann))) == (False, False)


def test_a_write_that_was_open_when_the_view_was_made_counts(ann: Caller) -> None:
    other = ann.begin()
    ann.write(other, "default/t", "u")
    write(ann, "i")
    text = seen(ann)
    assert invalidation(ann, made_of("mv", "default", text)) == (False, False)
    ann.commit(other)
    assert invalidation(ann, made_of("mv", "default", text)) == (True, False)


def test_every_table_of_the_view_counts(ann: Caller) -> None:
    ann.call("create_table", table("u", "d", parameters=ACID))
    text = seen(ann, "default.t", "d.u")
    both = made_of("mv", "default", text, "default.t", "d.u")
    assert invalidation(ann, both) == (False, False)
    write(ann, "d", "d/u")
    assert invalidation(ann, both) == (True, False)
    assert invalidation(ann, made_of("mv", "default", text, "default.t")) == (False, False)


def test_compactions_are_told(ann: Caller) -> None:
    text = seen(ann)
    write(ann, "i")
    request = ttypes.CompactionRequest(dbname="default", tablename="t", type=ttypes.CompactionType.MAJOR)
    ann.call("compact2", request)
    assert invalidation(ann, made_of("mv", "default", text)) == (False, True)


@pytest.mark.parametrize(
    "metadata",
    [
        made_of(text=None),
        made_of(text="nonsense"),
        made_of(text="{nonsense"),
        made_of(text="1$default.t:nonsense"),
        made_of(text="1$default.other:0:1::"),
        made_of(text="1$t:0:1::"),
        made_of(text="1$default.t:99:9223372036854775807::"),
        made_of(text=json.dumps({"validTxnList": MADE_OF, "tableSnapshots": {"default.t": {"snapshotId": 1}}})),
        ttypes.CreationMetadata(catName="hive", dbName="d", tblName="mv", tablesUsed=set(), validTxnList=MADE_OF),
    ],
)
def test_where_it_cannot_be_told_all_has_changed(ann: Caller, metadata: Any) -> None:
    assert invalidation(ann, metadata) == (True, True)


def test_a_write_without_a_record_may_have_been_anything(ann: Caller, db: Database) -> None:
    write(ann, "i")
    text = seen(ann)
    write(ann, "i")
    open_txn, aborted = ann.begin(), ann.begin()
    for txn_id in (open_txn, aborted):
        ann.write(txn_id, "default/t", "u")
    ann.abort(aborted)
    assert invalidation(ann, made_of("mv", "default", text)) == (False, False)
    with db.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM completed_component")
    assert invalidation(ann, made_of("mv", "default", text)) == (True, True)


def test_a_table_that_was_made_anew_is_another(ann: Caller) -> None:
    write(ann, "i")
    write(ann, "i")
    text = seen(ann)
    ann.call("drop_table", "default", "t", True)
    ann.call("create_table", table("t", parameters=ACID))
    write(ann, "i")
    assert invalidation(ann, made_of("mv", "default", text)) == (True, True)
