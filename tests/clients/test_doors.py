"""Hive's own clients at a guarded port (wire.md §2)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.hive import HiveCatalog

from hive_acid.spark.jvm.java import ensure_java
from metastore.rpc.doors.users.passwords import change
from tests.authority import Authority
from tests.caller import Refused, refused
from tests.clients.conftest import jars_of_generation
from tests.clients.iceberg import SCHEMA, TABLE, append
from tests.clients.java.client import JavaHive
from tests.clients.java.maven import NotFetchedError
from tests.rpc.doors.issuer import Issuer
from tests.rpc.doors.realm import REALM, Realm, missing, realm
from tests.served import Served, served

pytestmark = pytest.mark.spark

GENERATIONS = (
    pytest.param(2, id="2.3.10"),
    pytest.param(3, id="3.1.3", marks=pytest.mark.maven),
    pytest.param(4, id="4.0.1", marks=pytest.mark.maven),
)


@pytest.fixture(scope="module")
def encrypted(
    authority: Authority, postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    settings = authority.issue("metastore", "DNS:localhost", "IP:127.0.0.1").shown_by_a_server
    with served(postgres_url, template, tmp_path_factory.mktemp("tls") / "warehouse", settings) as running:
        yield running


@pytest.fixture(scope="module")
def trust(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a client of Hive's that believes our CA."""
    own = Path(ensure_java() or "/") / "bin" / "keytool"
    keytool = str(own) if own.exists() else shutil.which("keytool")
    if keytool is None:
        pytest.skip("this Java has no keytool")
    store = tmp_path_factory.mktemp("trust") / "store"
    command = [keytool, "-importcert", "-noprompt", "-alias", "ca", "-file", str(authority.ca)]
    subprocess.run([*command, "-keystore", str(store), "-storepass", "changeit"], check=True, capture_output=True)
    return {
        "hive.metastore.use.SSL": "true",
        "hive.metastore.truststore.path": str(store),
        "hive.metastore.truststore.password": "changeit",
    }


def as_hive(served: Served) -> str:
    """The address as Hive's clients take it."""
    return "thrift://" + served.uri.partition("://")[2]


def walked(client: Any, hive: JavaHive, name: str) -> None:
    """A table is made, read and dropped."""
    client.createDatabase(hive.struct("Database", name=name, description="", parameters={}))
    assert name in list(client.getAllDatabases())
    client.dropDatabase(name)


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
def test_hives_client_over_tls(
    generation: int, hive_of: Callable[[int], JavaHive], encrypted: Served, trust: dict[str, str]
) -> None:
    hive = hive_of(generation)
    client = hive.connect(as_hive(encrypted), **trust)
    walked(client, hive, f"tls_{generation}")
    client.close()


@pytest.mark.maven
def test_hives_client_with_a_password(
    hive_of: Callable[[int], JavaHive], postgres_url: str, template: str, tmp_path: Path
) -> None:
    """Hive 4 has it; the password is that of the user's name in the credentials, or in the settings."""
    change(tmp_path / "users", "ann", "geheim")
    settings = {
        "metastore.authentication": "password",
        "metastore.authentication.password.file": str(tmp_path / "users"),
    }
    hive = hive_of(4)
    plain = {"metastore.client.auth.mode": "PLAIN", "metastore.client.plain.username": "ann"}
    with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
        client = hive.connect(running.uri, **plain, ann="geheim")
        walked(client, hive, "plain")
        client.close()
        with pytest.raises(Py4JJavaError, match=r"no user 'ann' with this password"):
            hive.connect(running.uri, **plain, ann="x")


OVER_HTTP = {"metastore.client.thrift.transport.mode": "http"}


@pytest.mark.maven
def test_hives_client_over_http(
    hive_of: Callable[[int], JavaHive], postgres_url: str, template: str, tmp_path: Path
) -> None:
    hive = hive_of(4)
    settings = {"metastore.server.thrift.transport.mode": "http"}
    with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
        client = hive.connect(as_hive(running), **OVER_HTTP)
        walked(client, hive, "http")
        client.close()


@pytest.mark.slow
@pytest.mark.maven
def test_hives_client_with_a_token(
    postgres_url: str,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    authority: Authority,
    trust: dict[str, str],
) -> None:
    """It takes the token from the environment of its process, and speaks HTTPS."""
    issuer = Issuer(tmp_path / "keys.json")
    pair = authority.issue("metastore", "DNS:localhost", "IP:127.0.0.1")
    settings = issuer.settings() | pair.shown_by_a_server | {"metastore.server.thrift.transport.mode": "http"}
    monkeypatch.setenv("HMS_JWT", issuer.token(sub="ann"))
    try:
        jars = jars_of_generation(4)
    except NotFetchedError as error:
        pytest.skip(str(error))
    with (
        served(postgres_url, template, tmp_path / "warehouse", settings) as running,
        JavaHive(4, jars, tmp_path) as hive,
    ):
        # Hive 4.0.1 has no default of its own for this one where it speaks HTTPS.
        algorithm = {"metastore.trustmanagerfactory.algorithm": "PKIX"}
        token = {**OVER_HTTP, **trust, **algorithm, "metastore.client.auth.mode": "JWT"}
        client = hive.connect(running.uri, **token)
        walked(client, hive, "token")
        client.createDatabase(hive.struct("Database", name="anns", description="", parameters={}))
        client.close()
        issuer.told.clear()
        issuer.add("ec")
        with pytest.raises(Refused, match="401"):
            hive.connect(running.uri, **token).getAllDatabases()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    if (words := missing()) is not None:
        pytest.skip(words)
    with realm(tmp_path_factory.mktemp("realm")) as running:
        running.add("ann")
        running.add("hive/localhost")
        yield running


def with_token(hive: JavaHive, address: str, ticket: dict[str, str]) -> None:
    """It gets a delegation token, comes in with it, renews and cancels it."""
    first = hive.connect(address, **ticket)
    text = first.getDelegationToken("ann", f"ann@{REALM}")
    for protection in ("authentication", "integrity"):
        hive.take_token(text, "of-this-test")
        more = {"hive.metastore.token.signature": "of-this-test", "hadoop.rpc.protection": protection}
        client = hive.connect(address, **ticket, **more)
        with refused("MetaException", "who has come in with a delegation token does not get one"):
            client.getDelegationToken("ann", "ann")
        walked(client, hive, "token")
        large = hive.struct("Database", name="large", description="x" * 2_000_000, parameters={})
        client.createDatabase(large)
        assert len(client.getDatabase("large").getDescription()) == 2_000_000
        client.dropDatabase("large")
        client.close()
    assert first.renewDelegationToken(text) > 0
    first.cancelDelegationToken(text)
    with pytest.raises(Py4JJavaError):
        hive.connect(address, **ticket, **more)
    first.close()


@pytest.mark.parametrize("generation", GENERATIONS)
def test_hives_client_with_a_ticket(
    generation: int,
    house: Realm,
    postgres_url: str,
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As Hadoop's clients come in, whatever they ask for behind their login; 2.3.10 is that of PySpark."""
    house.enter(monkeypatch)
    try:
        jars = jars_of_generation(generation)
    except NotFetchedError as error:
        pytest.skip(str(error))
    settings = {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.keytab.file": str(house.keytab("hive/localhost")),
        "hive.metastore.kerberos.principal": f"hive/localhost@{REALM}",
    }
    options = [f"-Djava.security.krb5.conf={house.environment['KRB5_CONFIG']}"]
    with (
        served(postgres_url, template, tmp_path / "warehouse", settings) as running,
        JavaHive(generation, jars, tmp_path, options) as hive,
    ):
        ticket = {
            "hadoop.security.authentication": "kerberos",
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}",
        }
        address = running.uri.replace("127.0.0.1", "localhost")  # Hive 3 alone asks for the name of an address
        hive.log_in(f"ann@{REALM}", house.keytab("ann"), **ticket)
        for protection in ("authentication", "integrity", "privacy"):
            client = hive.connect(address, **ticket, **{"hadoop.rpc.protection": protection})
            walked(client, hive, f"ticket_{protection}")
            assert client.getDatabase("default") is not None
            large = hive.struct("Database", name="large", description="x" * 2_000_000, parameters={})
            client.createDatabase(large)
            assert len(client.getDatabase("large").getDescription()) == 2_000_000
            client.dropDatabase("large")
            client.close()
        with_token(hive, address, ticket)
        with pytest.raises(Py4JJavaError):
            hive.connect(address, **ticket | {"hive.metastore.kerberos.principal": f"ann@{REALM}"})


def test_pyiceberg_with_a_ticket(
    house: Realm, postgres_url: str, template: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over Thrift's own SASL of Python, which needs pure-sasl and kerberos."""
    for package in ("puresasl", "kerberos"):
        pytest.importorskip(package)
    house.enter(monkeypatch)
    monkeypatch.setenv("KRB5CCNAME", str(house.ticket("ann")))
    settings = {
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.keytab.file": str(house.keytab("hive/localhost")),
        "hive.metastore.kerberos.principal": f"hive/localhost@{REALM}",
    }
    with served(postgres_url, template, tmp_path / "warehouse", settings) as running:
        address = running.uri.replace("127.0.0.1", "localhost")
        own = {"hive.kerberos-authentication": "true"}
        catalog = HiveCatalog("hive", uri=address, warehouse=f"file://{tmp_path / 'lake'}", **own)
        catalog.create_namespace("lake")
        assert ("lake",) in catalog.list_namespaces()
        catalog.create_table(TABLE, schema=SCHEMA)
        assert append(catalog, "ann", 1) == 0
        assert catalog.load_table(TABLE).scan().to_arrow().num_rows == 1
