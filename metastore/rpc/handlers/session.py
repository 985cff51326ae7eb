"""RPCs about the connection and the server itself: who is calling, is it alive, how is it configured."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from hive_acid.errors import ConfigValSecurityError, MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from metastore.observe.calls import CallCounts
from metastore.rpc.call import Call, Handler, Session
from metastore.rpc.doors.config import DoorsConfig
from metastore.rpc.doors.users.proxies import Proxies
from metastore.rpc.encoding.plain import checked_text
from metastore.settings import spelling

HIVE_VERSION = "4.0.1"
"""What `getVersion` says, since Java clients choose features by it."""

MAX_OPTIONS = 100
"""Of those that clients have set on a server; they mean nothing to it."""

_READABLE = re.compile(r"(hive|hdfs|mapred|metastore)\..*")
_SECRET = re.compile(
    r"password|secret|keystore|connectionurl|token|\.key$|compactor\.spark\.(submit|remote)$", re.IGNORECASE
)
"""In the names of settings whose values may hold some: a command's --conf, or the token of an address."""

_META_CONF = {
    spelling(key): default
    for key, default in {
        "metastore.try.direct.sql": "true",
        "metastore.try.direct.sql.ddl": "true",
        "metastore.client.socket.timeout": "600s",
        "metastore.partition.name.whitelist.pattern": "",
        "metastore.partition.order.expr": "",
        "metastore.client.capability.check": "false",
        "metastore.disallow.incompatible.col.type.changes": "true",
        "metastore.expression.proxy": "",
    }.items()
}
"""The keys that getMetaConf and setMetaConf may name, and what holds here (wire.md §5.7)."""
_CHECKS_COLUMN_TYPES = spelling("metastore.disallow.incompatible.col.type.changes")
"""What clients turn off for their connection to alter a table as they like, such as to drop columns."""


def handlers(
    settings: Mapping[str, str],
    counts: CallCounts,
    uuid: Callable[[], str],
    trouble: Callable[[], str | None],
    is_stopping: Callable[[], bool] = lambda: False,
    proxies: Proxies | None = None,
) -> dict[str, Handler]:
    """RPC name to function.

    `settings` are those of the running server, key to text, `uuid` tells who it is, `trouble` what is wrong with it,
    `is_stopping` whether it has been told to end, and `proxies` who may act for others.
    """
    known = {spelling(key): value for key, value in settings.items()}
    service = _service(counts, uuid, trouble, is_stopping)
    return (
        connection_handlers(proxies or Proxies(DoorsConfig()))
        | _configuration(known)
        | service
        | _options()
        | _dataconnectors()
    )


def checks_column_types(session: Session) -> bool | None:
    """What a client has said on its connection of the types that altered columns may have; None if nothing."""
    said = session.meta_conf.get(_CHECKS_COLUMN_TYPES)
    return None if said is None else said.lower() == "true"


def connection_handlers(proxies: Proxies) -> dict[str, Handler]:
    """Those by which a client says who it is."""

    def set_ugi(call: Call, user: str | None, groups: list[str] | None) -> list[str]:
        if user is None:
            raise MetaError("set_ugi was called without a user")
        authenticated = call.session.authenticated
        if authenticated is not None and (refusal := proxies.refusal(authenticated, user, call.session.client)):
            raise MetaError(f"set_ugi: {refusal}")
        call.session.user = user
        call.session.groups = list(groups or [])
        return [*call.session.groups, user]  # the user must come last

    def nothing(call: Call) -> None:
        """The end of one client's connection, never of the server (wire.md §2.4)."""

    return {"set_ugi": set_ugi, "shutdown": nothing, "reinitialize": nothing, "flushCache": nothing}


def _configuration(known: Mapping[str, str]) -> dict[str, Handler]:
    def get_meta_conf(call: Call, key: str | None) -> str:
        name = spelling(key or "")
        if name not in _META_CONF:
            raise MetaError(f"Invalid configuration key {key}")
        return call.session.meta_conf.get(name) or known.get(name) or _META_CONF[name]

    def set_meta_conf(call: Call, key: str, value: str | None) -> None:
        if get_meta_conf(call, key) == value:
            return
        if spelling(key) == _CHECKS_COLUMN_TYPES:
            if str(value).lower() not in ("true", "false"):
                raise MetaError(f"{key} is true or false, not {value}")
        elif spelling(key) in known:
            raise MetaError(f"{key} is fixed while the server runs: give it to the server as a setting")
        call.session.meta_conf[spelling(key)] = checked_text(value, key)

    def get_config_value(call: Call, name: str | None, default: str | None) -> str | None:
        if name is None:
            return default
        if not _READABLE.fullmatch(name):
            raise ConfigValSecurityError(f"the configuration value {name} may not be read")
        return default if _SECRET.search(name) else known.get(spelling(name), default)

    return {"getMetaConf": get_meta_conf, "setMetaConf": set_meta_conf, "get_config_value": get_config_value}


def _service(
    counts: CallCounts, uuid: Callable[[], str], trouble: Callable[[], str | None], is_stopping: Callable[[], bool]
) -> dict[str, Handler]:
    """The server as an instance of Facebook's service."""
    started_s = int(time.time())

    def counters() -> dict[str, int]:
        """How often each method was called."""
        return counts.by_method()

    # On the event loop, which no call holds up: of status one hears when all else stands still.
    async def get_status(call: Call) -> int:
        if is_stopping():
            return int(ttypes.fb_status.STOPPING)
        return int(ttypes.fb_status.ALIVE if trouble() is None else ttypes.fb_status.WARNING)

    async def get_status_details(call: Call) -> str:
        return trouble() or ""

    return {
        "getStatus": get_status,
        "getStatusDetails": get_status_details,
        "getName": lambda call: "metastore",
        "getVersion": lambda call: HIVE_VERSION,
        "aliveSince": lambda call: started_s,
        "getCpuProfile": lambda call, duration_s: "",
        "getCounters": lambda call: counters(),
        "getCounter": lambda call, key: counters().get(key, 0),
        "get_metastore_db_uuid": lambda call: uuid(),
    }


def _options() -> dict[str, Handler]:
    """What clients set on a server and read again; nothing depends on it."""
    options: dict[str, str] = {}

    def set_option(call: Call, key: str, value: str) -> None:
        if key not in options and len(options) >= MAX_OPTIONS:
            raise MetaError(f"{MAX_OPTIONS} options are set already: {key} is one too many")
        options[checked_text(key, "the option")] = checked_text(value, "its value")

    return {
        "setOption": set_option,
        "getOption": lambda call, key: options.get(key, ""),
        "getOptions": lambda call: dict(options),
    }


def _dataconnectors() -> dict[str, Handler]:
    def get_dataconnector_req(call: Call, request: Any) -> None:
        raise NoSuchObjectError(f"data connector {request.connectorName} does not exist: this metastore has none")

    return {"get_dataconnectors": lambda call: [], "get_dataconnector_req": get_dataconnector_req}
