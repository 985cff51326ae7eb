"""Which users principals are, by Hadoop's rules; and what a server says that is to ask for Kerberos and cannot."""

import sys

import pytest

from hive_acid.errors import LoginError
from hive_acid.login import Kerberos
from metastore.config import Config
from metastore.rpc.doors.addresses import bound
from metastore.rpc.doors.config import KERBEROS
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.users.principals import Principals
from metastore.settings import SettingError

KEYTAB = "metastore.kerberos.keytab.file=/nowhere"


@pytest.mark.parametrize(
    ("rules", "principal", "user"),
    [
        ("DEFAULT", "ann@HOUSE.TEST", "ann"),
        ("DEFAULT", "hive/host.example.com@HOUSE.TEST", "hive"),
        ("DEFAULT", "ann@OTHER.TEST", None),
        ("DEFAULT", "ann", None),
        ("DEFAULT", "ann\\@x@HOUSE.TEST", None),
        ("RULE:[1:$1@$0](.*@OTHER\\.TEST)s/@.*//", "ann@OTHER.TEST", "ann"),
        ("RULE:[1:$1@$0](.*@OTHER\\.TEST)s/@.*//", "ann@OTHERXTEST", None),
        ("RULE:[1:$1@$0](.*@OTHER\\.TEST)s/@.*//\nDEFAULT", "bob@HOUSE.TEST", "bob"),
        ("RULE:[1:$1@$0](OTHER)s/@.*// DEFAULT", "ann@OTHER.TEST", None),  # a part of it does not fit
        ("RULE:[2:$1@$0](hdfs@HOUSE\\.TEST)s/.*/superuser/", "hdfs/a@HOUSE.TEST", "superuser"),
        ("RULE:[2:$1@$0](hdfs@HOUSE\\.TEST)s/.*/superuser/", "hdfs@HOUSE.TEST", None),
        ("RULE:[2:$2]", "ann/admin@HOUSE.TEST", "admin"),
        ("RULE:[1:$1](a.*)s/n/N/g", "anna@X", "aNNa"),
        ("RULE:[1:$1](a.*)s/n/N/", "anna@X", "aNna"),
        ("RULE:[1:$1]/L", "ANNA@X", "anna"),
        ("RULE:[1:$1@$0](.*@X)s/@.*///L", "ANNA@X", "anna"),
        ("RULE:[1:$1@$0]((ann|bob)@X)s/(.*)@(.*)/$2_$1/", "bob@X", "X_bob"),
        ("RULE:[1:$1@$0](.*@X)s/@(.*)/\\$1/", "bob@X", "bob$1"),
        ("RULE:[1:$1@$0]", "bob@X", None),  # still a principal
        ("RULE:[2:$1/$2] DEFAULT", "ann/admin@HOUSE.TEST", None),
    ],
)
def test_rules(rules: str, principal: str, user: str | None) -> None:
    principals = Principals(rules, "HOUSE.TEST")
    if user is not None:
        assert principals.user_of(principal) == user
    else:
        with pytest.raises(ValueError, match=r"is no user by|is not a principal"):
            principals.user_of(principal)


@pytest.mark.parametrize(
    "rules",
    [
        "NONE",
        "RULE:[1:$1",
        "RULE:[1:$1](()s/a/b/",
        "RULE:[1:$2]",
        "RULE:[1:$1](a)s/a/$1/",
        "DEFAULT RULE",
        "RULE:[1:$1]x",
    ],
)
def test_rules_that_are_none(rules: str) -> None:
    with pytest.raises(SettingError, match=r"hadoop\.security\.auth_to_local"):
        Principals(rules, "HOUSE.TEST")


def test_hives_elder_setting_is_kerberos() -> None:
    config = Config.parse(["hive.metastore.sasl.enabled=true", f"hive.{KEYTAB}"]).doors
    assert config.asks_for == KERBEROS
    assert config.proves_users
    assert config.kerberos_keytab == "/nowhere"
    bound("0.0.0.0", 0, config).close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["metastore.sasl.enabled=true", "metastore.authentication=password"], "say one of them"),
        (["metastore.sasl.enabled=true"], "where are its keys"),
        (
            ["metastore.authentication=kerberos", KEYTAB, "metastore.server.thrift.transport.mode=http"],
            "there are tokens",
        ),
    ],
)
def test_settings_that_do_not_go_together(settings: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Config.parse(settings).doors.check()
    with pytest.raises(SettingError, match=r"hadoop\.rpc\.protection"):
        Config.parse(["hadoop.rpc.protection=secret"])


def test_without_the_package_both_sides_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(SettingError, match=r"pip install 'hive-acid\[kerberos\]'.*libkrb5-dev"):
        Doors(Config.parse(["metastore.authentication=kerberos", KEYTAB]).doors)
    with pytest.raises(LoginError, match=r"pip install 'hive-acid\[kerberos\]'"):
        _ = Kerberos().user
