"""Files of credentials as Hadoop's own classes write them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hive_acid import DelegationToken, Kerberos
from hive_acid.errors import AddressError
from hive_acid.login import token_or
from hive_acid.sasl.hadoop_credentials import metastore_token
from hive_acid.sasl.hadoop_tokens import KIND, Identifier, Secret
from hive_acid.spark.jvm.java import ensure_java
from tests.clients.java.process import PYSPARK_JARS, JavaProcess

FORMS = ("WRITABLE", "PROTOBUF")


@pytest.fixture(scope="module")
def hadoop() -> Iterator[Any]:
    with JavaProcess(ensure_java() / "bin" / "java", [PYSPARK_JARS / "*"], ["-Xmx128m"]) as java:
        yield java.jvm


def written(hadoop: Any, file: Path, form: str, *tokens: tuple[str, Secret, str, str], secrets: int = 0) -> Path:
    """Tokens (alias, parts, kind and service), and some secrets beside them."""
    of_hadoop = hadoop.org.apache.hadoop
    credentials = of_hadoop.security.Credentials()
    for alias, secret, kind, service in tokens:
        words = [of_hadoop.io.Text(word) for word in (kind, service, alias)]
        credentials.addToken(words[2], of_hadoop.security.token.Token(*secret, *words[:2]))
    for number in range(secrets):
        credentials.addSecretKey(of_hadoop.io.Text(f"secret {number}"), bytes(range(number)))
    written_form = getattr(getattr(of_hadoop.security, "Credentials$SerializedFormat"), form)
    path = of_hadoop.fs.Path(f"file:{file}")
    credentials.writeTokenStorageFile(path, of_hadoop.conf.Configuration(), written_form)
    return file


def secret(chance: random.Random, owner: str = "ann") -> Secret:
    told = Identifier(owner, "yarn", "", chance.getrandbits(41), chance.getrandbits(41), chance.getrandbits(20), 7)
    return Secret(bytes(told), chance.randbytes(20))


@pytest.mark.parametrize("form", FORMS)
def test_the_metastores_token_is_found_among_others(hadoop: Any, tmp_path: Path, form: str) -> None:
    kind = KIND.decode()
    for seed in range(20):
        chance = random.Random(seed)
        wanted = secret(chance, "ann" * chance.choice((1, 100)))
        others = [
            (f"other {number}", Secret(chance.randbytes(size), b"p"), "HDFS_DELEGATION_TOKEN", "nn")
            for number, size in enumerate(chance.sample((0, 1, 127, 128, 70_000), chance.randrange(4)))
        ]
        elsewhere = [("hive of others", secret(chance, "bob"), kind, "another")] * chance.randrange(2)
        tokens = [*others, *elsewhere, ("hive.server2.delegation.token", wanted, kind, "")]
        chance.shuffle(tokens)
        file = written(hadoop, tmp_path / f"tokens {seed}", form, *tokens, secrets=chance.randrange(3))
        assert metastore_token(file.read_bytes()) == wanted, seed
        for variable, found in (
            ("HIVE_ACID_DELEGATION_TOKEN_FILE", DelegationToken.from_environment),
            ("HADOOP_TOKEN_FILE_LOCATION", DelegationToken.of_hadoop),
        ):
            token = found({variable: str(file)})
            assert token is not None
            assert token.secret() == wanted
        cut = chance.randrange(len(file.read_bytes()))
        with suppress(ValueError):  # unless it is the secrets behind the tokens that are cut
            assert metastore_token(file.read_bytes()[:cut]) == wanted, seed


@pytest.mark.parametrize("form", FORMS)
def test_where_there_is_none_a_ticket_is_shown(
    hadoop: Any, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ("nn", Secret(b"identifier", b"password"), "HDFS_DELEGATION_TOKEN", "nn")
    file = written(hadoop, tmp_path / "tokens", form, other)
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(file))
    assert token_or(Kerberos()) == Kerberos()
    assert token_or(None) is None
    with pytest.raises(AddressError, match="it has none for a metastore"):
        DelegationToken.from_environment({"HIVE_ACID_DELEGATION_TOKEN_FILE": str(file)})
    wanted = secret(random.Random(1))
    written(hadoop, file, form, other, ("hive", wanted, KIND.decode(), "of a signature"))
    assert token_or(Kerberos()) == DelegationToken(str(wanted))
    assert token_or(None) is None
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "none"))
    with pytest.raises(AddressError, match=r"cannot read the delegation token in .*No such file"):
        token_or(Kerberos())


def test_what_is_no_such_file_is_refused() -> None:
    for data, words in (
        (b"", "no file of Hadoop's credentials"),
        (b"HDTS\x07", "of version 7"),
        (b"HDTS\x01\x03\x0b\x00\x00", "damaged"),
        (b"HDTS\x01" + b"\xff" * 12, "damaged"),
        (b"HDTS\x00\x8f\x7f\xff\xff", "cut"),
    ):
        with pytest.raises(ValueError, match=words):
            metastore_token(data)
    assert metastore_token(b"HDTS\x00\x00\x00") is None
