"""Delegation tokens: what is in them, who gets, renews and cancels them; without a KDC."""

import random
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import text

from hive_acid import DelegationToken, connect
from hive_acid.errors import AddressError, LoginError, MetaError
from hive_acid.sasl.digest import DigestSeal, Exchange, directives
from hive_acid.sasl.hadoop_tokens import Identifier, Secret
from hive_acid.sasl.seals import SealError
from metastore.catalog.registry import issued_tokens
from metastore.catalog.registry.issued_tokens import IssuedTokens
from metastore.config import Config
from metastore.rpc.call import Session
from metastore.rpc.doors.mechanisms.digest import UNKNOWN, DigestMechanism
from metastore.rpc.doors.mechanisms.mechanism import Challenge, Proved, Rejected
from metastore.rpc.doors.users.delegation import Delegation
from metastore.rpc.doors.users.principals import Principals
from metastore.rpc.doors.users.proxies import Proxies
from metastore.store.database import Database

DAY_MS = 86_400_000


def session(user: str, authenticated: str | None = None, is_by_token: bool = False) -> Session:
    return Session("10.0.0.1:5", "10.0.0.1", user, authenticated=authenticated or user, is_by_token=is_by_token)


@pytest.fixture
def made(db: Database) -> Callable[..., Delegation]:
    def make(life_ms: int = 7 * DAY_MS, renew_ms: int = DAY_MS, key_ms: int = DAY_MS, *rules: str) -> Delegation:
        proxies = Proxies(Config.parse(list(rules)).doors)
        store = IssuedTokens(db, life_ms, renew_ms, key_ms)
        return Delegation(store, proxies, Principals("DEFAULT", "HOUSE.TEST").user_of)

    return make


def owner(delegation: Delegation, token: str) -> str | None:
    """Whose it is, if somebody comes in with it."""
    secret = Secret.parse(token)
    found = delegation.owner_of(secret.identifier)
    return found[0] if found is not None and found[1] == secret else None


def rows(db: Database, query: str) -> list[tuple[object, ...]]:
    with db.engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


# --- whose, until when -----------------------------------------------------------------------------


def test_a_token_is_its_owners_and_its_renewer_renews_it(made: Callable[..., Delegation], db: Database) -> None:
    tokens = made()
    ann = tokens.issue(session("ann"), "", "yarn/rm@HOUSE.TEST")
    told = Identifier.parse(Secret.parse(ann).identifier)
    assert (told.owner, told.renewer, told.real_user) == ("ann", "yarn", "")
    assert told.max_ms - told.issued_ms == 7 * DAY_MS
    assert owner(tokens, ann) == "ann"
    assert DelegationToken(ann).user == "ann"
    for who in ("ann", "eve"):
        with pytest.raises(MetaError, match=f"{who} may not renew this token: its renewer is yarn"):
            tokens.renew(session(who), ann)
    until_ms = tokens.renew(session("yarn"), ann)
    assert told.issued_ms + DAY_MS <= until_ms <= told.issued_ms + DAY_MS + 60_000
    with pytest.raises(MetaError, match="eve may not cancel this token: it is ann's"):
        tokens.cancel(session("eve"), ann)
    other = tokens.issue(session("ann"), "ann@HOUSE.TEST", "")
    with pytest.raises(MetaError, match="its renewer is nobody"):
        tokens.renew(session(""), other)
    with pytest.raises(MetaError, match="may not cancel"):
        tokens.cancel(session(""), other)
    tokens.cancel(session("yarn"), ann)
    tokens.cancel(session("ann"), other)
    assert owner(tokens, ann) is None
    for act in (tokens.cancel, tokens.renew):
        with pytest.raises(MetaError, match="no such delegation token"):
            act(session("yarn"), ann)
    assert rows(db, "SELECT count(*) FROM issued_token") == [(0,)]


def test_a_renewal_goes_no_further_than_the_longest_life(made: Callable[..., Delegation], db: Database) -> None:
    tokens = made(2 * DAY_MS)
    token = tokens.issue(session("ann"), "", "yarn")
    told = Identifier.parse(Secret.parse(token).identifier)
    tokens = made(2 * DAY_MS, 5 * DAY_MS)
    assert tokens.renew(session("yarn"), token) == told.max_ms
    with db.engine.begin() as connection:
        connection.execute(text("UPDATE issued_token SET ends_ms = issued_ms"))
    assert owner(tokens, token) is None
    with pytest.raises(MetaError, match="no such delegation token"):
        tokens.renew(session("yarn"), token)
    tokens.issue(session("ann"), "", "")
    assert rows(db, "SELECT count(*) FROM issued_token") == [(1,)]  # what has ended goes


def test_who_gets_none(made: Callable[..., Delegation]) -> None:
    tokens = made()
    with pytest.raises(MetaError, match="for those who have come in"):
        tokens.issue(Session("?", user="ann"), "", "")
    by_token = session("ann", is_by_token=True)
    with pytest.raises(MetaError, match="does not get one: log in with a ticket"):
        tokens.issue(by_token, "", "")
    token = tokens.issue(session("ann"), "", "ann")
    with pytest.raises(MetaError, match="does not renew one"):
        tokens.renew(by_token, token)
    tokens.cancel(by_token, token)
    with pytest.raises(MetaError, match="ann has come in, and may not act for bob"):
        tokens.issue(session("ann"), "bob", "")
    for owner_name, renewer in (("a\nb", ""), ("", "\0"), ("ann@OTHER.TEST", ""), ("", "yarn/rm@OTHER.TEST")):
        with pytest.raises(MetaError, match=r"is no name of a user|is no user by"):
            tokens.issue(session("ann"), owner_name, renewer)


def test_a_service_gets_one_for_those_it_acts_for(made: Callable[..., Delegation]) -> None:
    tokens = made(
        7 * DAY_MS, DAY_MS, DAY_MS, "hadoop.proxyuser.hive.hosts=10.0.0.0/24", "hadoop.proxyuser.hive.users=bob"
    )
    token = tokens.issue(session("hive"), "bob", "yarn")
    assert owner(tokens, token) == "bob"
    assert Identifier.parse(Secret.parse(token).identifier).real_user == "hive"
    assert owner(tokens, tokens.issue(session("bob", "hive"), "", "")) == "bob"  # after set_ugi
    with pytest.raises(MetaError, match="hive may not act for eve"):
        tokens.issue(session("hive"), "eve", "")


def test_keys_are_rolled_and_go_with_their_last_token(made: Callable[..., Delegation], db: Database) -> None:
    tokens = made()
    first = tokens.issue(session("ann"), "", "")
    tokens.issue(session("bob"), "", "")
    assert rows(db, "SELECT count(*) FROM token_key") == [(1,)]
    with db.engine.begin() as connection:
        connection.execute(text("UPDATE token_key SET created_ms = created_ms - :ms"), {"ms": DAY_MS + 1})
    second = tokens.issue(session("ann"), "", "")
    assert rows(db, "SELECT count(*) FROM token_key") == [(2,)]
    assert [owner(tokens, one) for one in (first, second)] == ["ann", "ann"]
    with db.engine.begin() as connection:
        connection.execute(text("UPDATE token_key SET created_ms = created_ms - :ms"), {"ms": 9 * DAY_MS})
    tokens.cancel(session("ann"), first)
    third = tokens.issue(session("ann"), "", "")
    assert rows(db, "SELECT count(*) FROM token_key") == [(3,)]  # bob's has the first
    assert owner(tokens, second) == "ann"
    tokens.cancel(session("ann"), second)
    tokens.issue(session("ann"), "", "")
    assert rows(db, "SELECT count(*) FROM token_key") == [(2,)]
    assert owner(tokens, third) == "ann"


def test_one_owner_has_so_many(made: Callable[..., Delegation], db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issued_tokens, "MOST_OF_ONE", 2)
    tokens = made()
    for _ in range(2):
        tokens.issue(session("ann"), "", "")
    with pytest.raises(MetaError, match="ann has 2 delegation tokens already"):
        tokens.issue(session("ann"), "", "")
    tokens.issue(session("bob"), "", "")


@pytest.mark.parametrize("seed", range(4))
def test_a_token_that_was_changed_is_none(seed: int, made: Callable[..., Delegation]) -> None:
    """A bit of it, its fields, or the identifier of one with the password of another."""
    chance = random.Random(seed)
    tokens = made()
    secret, other = (Secret.parse(tokens.issue(session(who), "", "yarn")) for who in ("ann", "bob"))
    wrong = [Secret(other.identifier, secret.password), Secret(secret.identifier, other.password)]
    told = Identifier.parse(secret.identifier)
    for change in (
        told._replace(owner="root"),
        told._replace(max_ms=1 << 50),
        told._replace(sequence=1 << 40),
        told._replace(sequence=-5),
        told._replace(key_id=77),
    ):
        wrong.append(Secret(bytes(change), secret.password))  # noqa: PERF401
    for _ in range(200):
        identifier, password = bytearray(secret.identifier), bytearray(secret.password)
        broken = chance.choice((identifier, password))
        broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.2:
            del identifier[chance.randrange(len(identifier)) :]
        wrong.append(Secret(bytes(identifier), bytes(password)))
    for one in wrong:
        assert owner(tokens, str(one)) is None
        with pytest.raises(MetaError, match=r"no such delegation token|no delegation token"):
            tokens.cancel(session("yarn"), str(one))
    tokens.cancel(session("yarn"), str(secret))


# --- what is in them -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_hadoops_form(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        numbers = [chance.choice((0, 1, 127, 128, 255, 256, 1 << 20, 1 << 41, (1 << 63) - 1)) for _ in range(4)]
        made = Identifier("o" * chance.choice((0, 3, 127, 128, 300)), "rö", "", *numbers)
        assert Identifier.parse(bytes(made)) == made
        secret = Secret(bytes(made), chance.randbytes(20))
        assert Secret.parse(str(secret)) == secret
    assert bytes(Identifier("ann", "yarn", "", 1, 128, 300, -1)).hex() == (
        "0003616e6e047961726e00018f808e012cff"  # as Hadoop's WritableUtils has them
    )


@pytest.mark.parametrize("words", ["", "nonsense", "####", "AAAA", "AQ", "_" * 70_000])
def test_what_is_no_token(words: str) -> None:
    with pytest.raises(AddressError, match="this is no delegation token"):
        DelegationToken(words)


def test_a_token_is_shown_to_nobody(made: Callable[..., Delegation]) -> None:
    token = DelegationToken(made().issue(session("ann"), "", ""))
    assert token.text not in repr(token)
    with pytest.raises(AddressError, match="are not shown over HTTP"):
        connect("https://localhost", login=token)
    with pytest.raises(LoginError, match="of ann acts for nobody else, so not for bob"):
        token.mechanism("localhost", "bob")


# --- DIGEST-MD5 ------------------------------------------------------------------------------------


def test_what_a_response_is_made_of() -> None:
    """By the example of RFC 2831, whose realm is another."""
    made = Exchange("chris", "OA6MG9tEQGm2hh", "OA6MHXh6VqTrRk", "auth", "imap/elwood.innosoft.com")
    session_key = made.session("secret")
    assert made.response(session_key) != made.answer(session_key)
    assert made.session("secret", "chris") != session_key
    assert directives(b'a="b\\"c,d", e=f ,g="",') == {"a": 'b"c,d', "e": "f", "g": ""}
    for wrong in (b"a", b"a=b,a=c", b'a="b', b"=b", b"a=\xff"):
        with pytest.raises(ValueError, match=r"it |decode"):
            directives(wrong)


@pytest.mark.parametrize("seed", range(4))
def test_a_changed_response_is_turned_away(seed: int, made: Callable[..., Delegation]) -> None:
    chance = random.Random(seed)
    tokens = made()
    token = DelegationToken(tokens.issue(session("ann"), "", ""))
    for _ in range(100):
        server = DigestMechanism(tokens.owner_of, ["auth", "auth-int"], "10.0.0.1")
        asked = server.step(b"")
        assert isinstance(asked, Challenge)
        client = token.mechanism("localhost", None)
        good = client.respond(asked.payload)
        changed = bytearray(good)
        kind = chance.choice(("good", "bit", "cut", "garbage"))
        if kind == "bit":
            # The charset and the size of frames prove nothing, and the letters of a name count as small ones.
            from_ = good.index(b"username")
            places = [at for at in range(from_, len(good)) if b"maxbuf" not in good[max(0, at - 16) : at + 8]]
            changed[chance.choice(places)] ^= 1 << chance.choice((0, 1, 2, 3, 4, 6, 7))
        elif kind == "cut":
            del changed[chance.randrange(len(changed) - 14) :]
        elif kind == "garbage":
            changed = bytearray(chance.randbytes(chance.randrange(300)))
        outcome = server.step(bytes(changed))
        if kind == "good":
            assert isinstance(outcome, Proved)
            assert outcome.identity == ("ann", "ann", True)
            seal = client.end(outcome.payload)
            assert seal is not None
            assert outcome.seal is not None
            assert outcome.seal.opened(seal.sealed(b"there")) == b"there"
            assert seal.opened(outcome.seal.sealed(b"back")) == b"back"
            with pytest.raises(LoginError, match="has not proved"):
                client.end(b"rspauth=0")
        else:
            assert isinstance(outcome, Rejected), changed


def test_a_response_is_good_for_its_challenge(made: Callable[..., Delegation]) -> None:
    tokens = made()
    token = DelegationToken(tokens.issue(session("ann"), "", ""))
    first, second = (DigestMechanism(tokens.owner_of, ["auth"], "10.0.0.1") for _ in range(2))
    asked = first.step(b"")
    second.step(b"")
    assert isinstance(asked, Challenge)
    response = token.mechanism("localhost", None).respond(asked.payload)
    assert second.step(response) == Rejected("the response is to another challenge")
    tokens.cancel(session("ann"), token.text)
    assert first.step(response) == Rejected(UNKNOWN)


def test_sealed_frames_keep_their_order() -> None:
    client, server = (DigestSeal(b"k" * 16, 65_536, is_server=one) for one in (False, True))
    frames = [client.sealed(bytes([number]) * number) for number in range(5)]
    for frame in (frames[1], frames[0][:-1], b"", server.sealed(b"")):
        with pytest.raises(SealError):
            server.opened(frame)
    for number, frame in enumerate(frames):
        broken = bytearray(frame)
        broken[0] ^= 1
        with pytest.raises(SealError):
            server.opened(bytes(broken))
        assert server.opened(frame) == bytes([number]) * number
        with pytest.raises(SealError):
            server.opened(frame)


def test_many_at_once(made: Callable[..., Delegation], db: Database) -> None:
    """Of several servers, while tokens end and keys are rolled."""
    tokens = [made(400, 200, 1) for _ in range(2)]
    failed: list[Exception] = []

    def go_on(number: int) -> None:
        own = tokens[number % 2]
        try:
            for _ in range(25):
                who = session(f"u{number}")
                token = own.issue(who, "", f"u{number}")
                assert owner(tokens[0], token) == who.user
                own.renew(who, token)
                if number % 3:
                    own.cancel(who, token)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=go_on, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert rows(db, "SELECT count(*) FROM token_key")[0] < (150,)
