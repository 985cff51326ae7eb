"""RPCs about the connection, the server, and what the metastore does not have."""

import pytest

from hive_acid.errors import ConfigValSecurityError, MetaError, NoSuchObjectError
from hive_acid.wire import service
from tests.catalog.conftest import Rpc


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
    with pytest.raises(MetaError, match="fixed while the server runs"):
        rpc.setMetaConf("metastore.try.direct.sql", "false")
    for call in (lambda: rpc.getMetaConf("hive.nix"), lambda: rpc.setMetaConf("hive.nix", "1")):
        with pytest.raises(MetaError, match=r"^Invalid configuration key hive\.nix$"):
            call()


def test_what_does_not_exist_is_empty(rpc: Rpc) -> None:
    assert rpc.get_functions("default", "*") == []
    assert rpc.get_all_functions().functions == []
    assert rpc.get_all_materialized_view_objects_for_rewriting() == []
    assert rpc.scheduled_query_poll(None).query is None
    assert rpc.get_primary_keys(None).primaryKeys == []
    assert rpc.get_all_table_constraints(None).allTableConstraints.checkConstraints == []
    with pytest.raises(NoSuchObjectError, match=r"function d\.f does not exist"):
        rpc.get_function("D", "f")


def test_every_handler_is_a_method_of_the_interface(rpc: Rpc) -> None:
    assert rpc.handlers.keys() <= set(service.thrift_services)
