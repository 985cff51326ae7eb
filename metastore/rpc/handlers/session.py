"""RPCs about the connection and the server itself: who is calling, is it alive, how is it configured."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping

from hive_acid.errors import ConfigValSecurityError, MetaError
from hive_acid.wire import ttypes
from metastore.rpc.call import Call, Handler
from metastore.settings import spelling

HIVE_VERSION = "4.0.1"
"""What `getVersion` says, since Java clients choose features by it."""

_READABLE = re.compile(r"(hive|hdfs|mapred|metastore)\..*")
_SECRET = re.compile(r"password|secret|keystore|connectionurl|token|\.key$", re.IGNORECASE)

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
"""The keys that getMetaConf and setMetaConf may name, and what holds here (metastore-wire.md §5)."""


def handlers(settings: Mapping[str, str]) -> dict[str, Handler]:
    """RPC name to function; `settings` are those of the running server, key to text."""
    started_s = int(time.time())
    known = {spelling(key): value for key, value in settings.items()}

    def set_ugi(call: Call, user: str, groups: list[str] | None) -> list[str]:
        call.session.user = user
        call.session.groups = list(groups or [])
        return [*call.session.groups, user]  # the user must come last

    def get_meta_conf(call: Call, key: str) -> str:
        if spelling(key) not in _META_CONF:
            raise MetaError(f"Invalid configuration key {key}")
        return known.get(spelling(key), _META_CONF[spelling(key)])

    def set_meta_conf(call: Call, key: str, value: str) -> None:
        if get_meta_conf(call, key) != value:
            raise MetaError(f"{key} is fixed while the server runs: give it to the server as a setting")

    def get_config_value(call: Call, name: str, default: str | None) -> str | None:
        if not _READABLE.fullmatch(name):
            raise ConfigValSecurityError(f"the configuration value {name} may not be read")
        return default if _SECRET.search(name) else known.get(spelling(name), default)

    def nothing(call: Call) -> None:
        """The end of one client's connection, never of the server (metastore-wire.md §2)."""

    return {
        "set_ugi": set_ugi,
        "shutdown": nothing,
        "reinitialize": nothing,
        "getStatus": lambda call: ttypes.fb_status.ALIVE,
        "getStatusDetails": lambda call: "",
        "getName": lambda call: "metastore",
        "getVersion": lambda call: HIVE_VERSION,
        "aliveSince": lambda call: started_s,
        "getMetaConf": get_meta_conf,
        "setMetaConf": set_meta_conf,
        "get_config_value": get_config_value,
    }
