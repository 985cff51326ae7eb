"""A connection to a metastore: its calls, its catalogue, and transactions with their heartbeats.

Threads may share it. A process that was forked has sockets, heartbeats and transactions of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from hive_acid.catalog.calls import CatalogCalls
from hive_acid.errors import AddressError, LoginError, MetastoreUnreachableError
from hive_acid.login import PASSWORD_FILE, DelegationToken, Kerberos, Login, Token, token_or
from hive_acid.tls import Tls
from hive_acid.transactions.beginning import KnownAborted
from hive_acid.transactions.heartbeats import Heartbeats
from hive_acid.transactions.opening import open_transactions
from hive_acid.transactions.pressure import Pressure
from hive_acid.transactions.states import Isolation, TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes

DEFAULT_PORTS = {"thrift": 9083, "thrift+tls": 9083, "http": 80, "https": 443}
HTTP_PATH = "/metastore"
"""Where Hive has it on a server of HTTP."""


class Address(NamedTuple):
    """Where a metastore listens."""

    host: str
    port: int
    is_encrypted: bool = False
    user: str | None = None
    """Who logs in there with a password; None to come without."""
    http_path: str | None = None
    """Where it is on a server of HTTP; None for a port of Thrift's own."""


class Connection(CatalogCalls):
    """Calls to one metastore; begin transactions with `begin`, look tables up with `table`.

    Threads may share it, and so may a process and the children that it forks: each child connects anew. What was begun
    before the fork, transactions and streams, stays the parent's, and in the child raises OtherProcessError.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        timeout_ms: int = 60_000,
        user: str | None = None,
        application: str | None = None,
        tls: Tls | None = None,
        login: Login | Kerberos | DelegationToken | Token | None = None,
        http_path: str | None = None,
    ) -> None:
        """As `Transport`."""
        super().__init__(
            host,
            port,
            timeout_ms=timeout_ms,
            user=user,
            application=application,
            tls=tls,
            login=login,
            http_path=http_path,
        )
        self.heartbeats = Heartbeats(self)
        self.pressure = Pressure(self, self.heartbeats)
        self.begins_at_once = True
        self.known_aborted: KnownAborted | None = None

    def renew_in_child(self) -> None:
        """Have sockets and heartbeats of its own, and no transactions."""
        super().renew_in_child()
        self.heartbeats.renew_in_child()
        self.pressure = Pressure(self, self.heartbeats)

    def begin(
        self,
        kind: TransactionKind = TransactionKind.WRITE,
        *,
        lock_timeout_ms: int = 300_000,
        tables: Iterable[str] = (),
        may_begin_again: bool = False,
        isolation: Isolation = Isolation.SNAPSHOT,
        with_lock: bool = False,
    ) -> Transaction:
        """One transaction of `open_transactions`: its snapshot is taken, and its heartbeats are running.

        One that is opened `with_lock` has neither until it asks for its first lock, or for anything else.
        """
        (transaction,) = open_transactions(
            *(self, 1, kind),
            lock_timeout_ms=lock_timeout_ms,
            tables=tables,
            may_begin_again=may_begin_again,
            isolation=isolation,
            with_lock=with_lock,
        )
        return transaction

    def _before_drop(self) -> None:
        self.heartbeats.settle()

    def abort_transactions(self, ids: Sequence[int]) -> None:
        """Abort transactions, whoever has opened them; those that have ended are passed by."""
        self.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=list(ids)))

    def close(self) -> None:
        """End the transactions that are open still, stop the heartbeats and close the sockets.

        Snapshots end, writes are aborted. If the metastore does not answer, they end by its time-out.
        """
        self.heartbeats.stop()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    uri: str = "thrift://localhost:9083",
    *,
    timeout_ms: int = 60_000,
    user: str | None = None,
    application: str | None = None,
    tls: Tls | None = None,
    login: Login | Kerberos | DelegationToken | Token | None = None,
) -> Connection:
    """Connect to a metastore, which will know us as `user` and as `application` (the program, if nothing is said).

    `uri` is ``thrift://host:port``, or ``thrift+tls://host:port`` for TLS (port 9083 by default), or over HTTP
    ``https://host:port/metastore`` (443; ``http`` without TLS, 80); several, with commas between, are tried in order.
    `tls` says how to know the metastore; by default `Tls.from_environment`. With `login`, or a user in the address
    (``thrift+tls://ann@host:port``, with the password of `Login.from_environment`), we log in; over HTTP also with the
    token of `Token.from_environment`, else with
    the delegation token of `DelegationToken.from_environment`, or the ticket of `Kerberos.from_environment`, for which
    the token of `DelegationToken.of_hadoop` stands.
    Raises MetastoreUnreachableError when none answers, LoginError when one does not let us in, AddressError for an
    address of another form.
    """
    failure: MetastoreUnreachableError | None = None
    for address in addresses(uri):
        known = login
        if known is None and address.user is not None:
            known = Login.from_environment(address.user)
        elif known is None and address.http_path is not None:
            known = Token.from_environment()
        elif known is None:
            known = DelegationToken.from_environment() or token_or(Kerberos.from_environment())
        connection = Connection(
            address.host,
            address.port,
            timeout_ms=timeout_ms,
            user=user,
            application=application,
            tls=(tls or Tls.from_environment()) if address.is_encrypted else None,
            login=known,
            http_path=address.http_path,
        )
        try:
            connection.call("getStatus")
        except LoginError:
            connection.close()
            raise
        except MetastoreUnreachableError as error:
            connection.close()
            failure = error
            continue
        return connection
    assert failure is not None
    raise failure


def addresses(uri: str) -> list[Address]:
    """Each address in `uri`. Raises AddressError for one of another form."""
    return [_address(one) for one in uri.split(",")]


def _address(text: str) -> Address:
    try:
        parts = urlsplit(text.strip())
        host, port = parts.hostname, DEFAULT_PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    except ValueError:  # of a port, or brackets
        host, port = None, 0
    if host and parts.password is not None:
        raise AddressError(
            f"an address holds no password, since it is shown to others: name a file with it in {PASSWORD_FILE}"
        )
    if not host or not port or parts.scheme not in DEFAULT_PORTS:
        shown = re.sub(r"//.*@", "//…@", text)  # who errs here may have a password in it
        raise AddressError(
            f"'{shown}' is not the address of a metastore: give thrift://host:port, thrift+tls://host:port for TLS, or "
            f"https://host:port{HTTP_PATH}"
        )
    return Address(
        host,
        port,
        parts.scheme in ("thrift+tls", "https"),
        unquote(parts.username) if parts.username else None,
        (parts.path if parts.path.strip("/") else HTTP_PATH) if parts.scheme.startswith("http") else None,
    )
