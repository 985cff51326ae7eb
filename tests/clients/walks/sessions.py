"""Connecting, configuration, delegation tokens: what is no object of the catalogue."""

from __future__ import annotations

from tests.caller import refused
from tests.clients.walks.walk import Walk


def configuration(walk: Walk) -> None:
    client = walk.client
    client.setMetaConf("hive.metastore.try.direct.sql", "false")
    assert client.getMetaConf("hive.metastore.try.direct.sql") == "false"
    with refused("MetaException", "hive.exec.scratchdir"):
        client.setMetaConf("hive.exec.scratchdir", "/x")
    with refused("MetaException"):
        client.getMetaConf("hive.exec.scratchdir")
    assert client.getConfigValue("hive.no.such.key", "50") == "50"
    with refused("ConfigValSecurityException"):
        client.getConfigValue("java.home", "")
    client.flushCache()
    client.setHiveAddedJars("")


def life(walk: Walk) -> None:
    own = walk.hive.connect(walk.uri)
    assert not own.isLocalMetaStore()
    conf = walk.hive.configuration(walk.uri)
    assert own.isCompatibleWith(conf) in (True, False)
    assert own.isSameConfObj(conf) is False
    assert own.getTTransport().isOpen()
    own.reconnect()
    assert walk.db in own.getAllDatabases()
    shared = own.newSynchronizedClient(own.java)
    assert walk.db in shared.getAllDatabases()
    # `close` sends the oneway `shutdown`, which stops this connection and nothing else.
    own.close()
    assert walk.db in walk.client.getAllDatabases()


def tokens(walk: Walk) -> None:
    client = walk.client
    assert client.getTokenStrForm() is None
    for ask in (
        lambda: client.getDelegationToken("ann", "ann"),
        lambda: client.getDelegationToken("ann"),
        lambda: client.renewDelegationToken("nonsense"),
        lambda: client.cancelDelegationToken("nonsense"),
    ):
        with refused("MetaException"):
            ask()
    assert client.addToken("id1", "token1")
    assert client.getToken("id1") == "token1"
    assert list(client.getAllTokenIdentifiers()) == ["id1"]
    assert client.removeToken("id1")
    assert list(client.getAllTokenIdentifiers()) == []
    number = client.addMasterKey("key1")
    client.updateMasterKey(number, "key2")
    assert list(client.getMasterKeys()) == ["key2"]
    assert client.removeMasterKey(number)
    assert list(client.getMasterKeys()) == []


STORIES = [configuration, life, tokens]
