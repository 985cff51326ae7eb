"""What a handler knows of the call it serves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from metastore.authorization.models import Who
from metastore.rpc.limits.workers import Workers
from metastore.store.config import StoreConfig
from metastore.store.connections.undertaking import repeated

T = TypeVar("T")

Handler = Callable[..., Any] | Callable[..., Awaitable[Any]]
"""``handler(call, *thrift_args)``: a plain function runs on a worker thread, a coroutine function on the event loop."""


@dataclass(slots=True)
class Session:
    """What a client has said about itself on one connection."""

    peer: str
    client: str = ""
    """The address without the port: what the server has is shared by these."""
    user: str | None = None
    """Who has come in, or as whom ``set_ugi`` has named itself where nobody is asked."""
    groups: list[str] = field(default_factory=list)
    meta_conf: dict[str, str] = field(default_factory=dict)
    """What ``setMetaConf`` has set for this connection."""
    listed: str | None = None
    """The database whose tables the client has listed last, all of them; its key."""
    last_method: str = ""
    """What it has called before this call."""
    authenticated: str | None = None
    """Who has come in by a password; None where nobody is asked."""
    is_by_token: bool = False
    """Whether it has come in with a delegation token."""
    is_hive_4: bool = False
    """Whether it has called what only Hive 4 knows; an elder client stumbles over newer values of enums."""

    @property
    def who(self) -> Who:
        """By whose rights it acts: of who has come in by a password nobody knows a group."""
        return Who(self.user, tuple(self.groups) if self.groups and self.authenticated is None else ())


@dataclass(slots=True)
class Call:
    """One RPC in progress."""

    method: str
    session: Session
    workers: Workers
    patience_s: float = StoreConfig().patience_s
    """How long it waits for a database that is away."""

    @property
    def user(self) -> str | None:
        """The user of this connection."""
        return self.session.user

    @property
    def peer(self) -> str:
        """The client's address."""
        return self.session.peer

    async def run(self, function: Callable[..., T], *args: Any) -> T:
        """Run blocking work on a worker thread; for coroutine handlers.

        It is begun anew if its connection to the database is lost before it has done anything.
        """
        work = partial(repeated, self.patience_s, function, *args)
        return await asyncio.wrap_future(self.workers.submit_for(self.session.client, work))
