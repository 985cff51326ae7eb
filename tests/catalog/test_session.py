"""RPCs about the connection and the server, and what the metastore does not have."""

import uuid
from collections.abc import Callable

import pytest

from hive_acid.errors import ConfigValSecurityError, MetaError
from hive_acid.wire import service, ttypes
from metastore.rpc.call import Session
from metastore.rpc.handlers import session
from tests.caller import INTERNAL, Caller, refused
from tests.catalog.conftest import Rpc, column, storage, table


def test_set_ugi_names_the_user_last(rpc: Rpc) -> None:
    assert rpc.set_ugi("bob", ["staff", "dev"]) == ["staff", "dev", "bob"]
    assert (rpc.session.user, rpc.session.groups) == ("bob", ["staff", "dev"])
    assert rpc.set_ugi("eve", None) == ["eve"]


def test_the_server_says_who_it_is(rpc: Rpc) -> None:
    assert (rpc.getStatus(), rpc.getName(), rpc.getVersion()) == (2, "metastore", "4.0.1")
    assert rpc.aliveSince() > 1_700_000_000
    assert rpc.getStatusDetails() == ""
    assert rpc.shutdown() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hive.txn.timeout", "300s"),
        ("metastore.txn.timeout", "300s"),
        ("hive.unknown", "fallback"),
        ("hive.metastore.keystore.password", "fallback"),
        ("metastore.compactor.spark.submit", "fallback"),
        ("hive.compactor.spark.remote", "fallback"),
    ],
)
def test_config_values(rpc: Rpc, name: str, value: str) -> None:
    assert rpc.get_config_value(name, "fallback") == value


def test_config_values_outside_may_not_be_read(rpc: Rpc) -> None:
    with pytest.raises(ConfigValSecurityError):
        rpc.get_config_value("javax.secret", "x")


def test_meta_conf(rpc: Rpc) -> None:
    assert rpc.getMetaConf("hive.metastore.try.direct.sql") == "true"
    rpc.setMetaConf("metastore.try.direct.sql", "true")
    for call in (lambda: rpc.getMetaConf("hive.nix"), lambda: rpc.setMetaConf("hive.nix", "1")):
        with pytest.raises(MetaError, match=r"^Invalid configuration key hive\.nix$"):
            call()


def test_a_key_without_effect_holds_for_its_connection(rpc: Rpc) -> None:
    rpc.setMetaConf("hive.metastore.try.direct.sql", "false")
    assert rpc.getMetaConf("metastore.try.direct.sql") == "false"
    rpc.session = Session(peer="another")
    assert rpc.getMetaConf("metastore.try.direct.sql") == "true"


def test_a_key_with_effect_is_fixed(metastore: Callable[..., str]) -> None:
    with Caller(metastore(**{"metastore.partition.name.whitelist.pattern": "[a-z]+"})) as ann:
        key = "hive.metastore.partition.name.whitelist.pattern"
        assert ann.call("getMetaConf", key) == "[a-z]+"
        ann.call("setMetaConf", key, "[a-z]+")
        with refused("MetaException", "fixed while the server runs"):
            ann.call("setMetaConf", key, "x")


def test_column_types_are_unchecked_for_the_connection_that_says_so(metastore: Callable[..., str]) -> None:
    """As PyPI's hive-metastore-client does to drop columns of a plain table."""
    key = "hive.metastore.disallow.incompatible.col.type.changes"
    uri = metastore()
    with Caller(uri) as ann, Caller(uri) as bob:
        ann.call("create_table", table("t", sd=storage(column("a", "string"), column("b", "int"))))
        without = table("t", sd=storage(column("b", "int")))
        with refused("InvalidOperationException", "incompatible"):
            ann.call("alter_table", "default", "t", without)
        with refused("MetaException", "true or false"):
            ann.call("setMetaConf", key, "maybe")
        ann.call("setMetaConf", key, "false")
        assert (ann.call("getMetaConf", key), bob.call("getMetaConf", key)) == ("false", "true")
        with refused("InvalidOperationException", "incompatible"):
            bob.call("alter_table", "default", "t", without)
        ann.call("alter_table", "default", "t", without)
        assert [one.name for one in bob.call("get_table", "default", "t").sd.cols] == ["b"]


def test_the_metastore_has_an_identity_that_stays(metastore: Callable[..., str]) -> None:
    with Caller(metastore()) as ann, Caller(metastore()) as bob:
        found = ann.call("get_metastore_db_uuid")
        assert uuid.UUID(found).version == 4
        assert bob.call("get_metastore_db_uuid") == found


def test_calls_are_counted(metastore: Callable[..., str]) -> None:
    with Caller(metastore()) as ann:
        for _ in range(3):
            ann.call("get_all_databases")
        with refused("NoSuchObjectException"):
            ann.call("get_database", "nix")
        found = ann.call("getCounters")
        assert (found["get_all_databases"], found["get_database"]) == (3, 1)
        assert ann.call("getCounter", "get_all_databases") == 3
        assert ann.call("getCounter", "nix") == 0


def test_options_are_kept(metastore: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    with Caller(metastore()) as ann:
        ann.call("setOption", "a", "1")
        assert ann.call("getOption", "a") == "1"
        assert ann.call("getOption", "nix") == ""
        assert ann.call("getOptions") == {"a": "1"}
        monkeypatch.setattr(session, "MAX_OPTIONS", 1)
        ann.call("setOption", "a", "2")
        with refused(INTERNAL, "one too many"):
            ann.call("setOption", "b", "1")
        assert ann.call("getOptions") == {"a": "2"}


def test_the_rest_of_the_service(metastore: Callable[..., str]) -> None:
    with Caller(metastore()) as ann:
        assert ann.call("getCpuProfile", 1) == ""
        assert ann.call("flushCache") is None
        assert ann.call("get_dataconnectors") == []
        with refused("NoSuchObjectException", "data connector c"):
            ann.call("get_dataconnector_req", ttypes.GetDataConnectorRequest(connectorName="c"))
        assert ann.call("get_config_value", "hive.txn.timeout", "x") == "300s"
        assert ann.call("get_config_value", None, "x") == "x"


def test_every_handler_is_a_method_of_the_interface(rpc: Rpc) -> None:
    assert rpc.handlers.keys() <= set(service.thrift_services)
