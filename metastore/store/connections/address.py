"""The address of a database as libpq takes it, with what makes a dead server or way noticed within seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from hive_acid.errors import MetaError

CONNECT_S = 5
"""How long one host may take to let us in."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.005, 0.25
"""Between two tries while nobody is let in, or after a lost connection: each is twice the one before."""
_DEFAULTS = {
    "connect_timeout": str(CONNECT_S),
    # A host that is gone says nothing: so long without an answer to what was sent, or to a probe, it counts as lost.
    "tcp_user_timeout": "15000",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "client_encoding": "utf8",
    "application_name": "hive-acid",
}


def conninfo_of(url: str) -> str:
    """Libpq's own form of a URL ``postgresql://user@host1:5432,host2:5432/name?target_session_attrs=read-write``.

    What the URL says wins over what is added. Of several hosts one that takes writes is wanted. Raises MetaError for
    what is no address of a Postgres.
    """
    plain = url.replace("postgresql+psycopg2://", "postgresql://", 1)
    try:
        given = conninfo_to_dict(plain)
    except psycopg.Error as error:
        # Libpq quotes what it does not understand: that may be a part of a password.
        words = str(error).strip().replace(plain, "it")
        reason = (
            _QUOTED.sub(lambda quoted: f" {quoted[1]}" if quoted[1] else " …", words)
            if without_password(url) != url
            else words
        )
        raise MetaError(
            f"'{without_password(url)}' is not the address of a Postgres, as postgresql://user@host:5432/name: {reason}"
        ) from None
    if _is_cut_wrongly(plain, given):
        raise MetaError(
            "the address of the Postgres cannot be understood: / @ : ? # % & in its user or password are written as "
            "%2F %40 %3A %3F %23 %25 %26, or the password is kept elsewhere (--database-password-file)"
        )
    defaults = dict(_DEFAULTS)
    if has_several_hosts(given):
        defaults["target_session_attrs"] = "read-write"
    return make_conninfo(**{**defaults, **{key: str(value) for key, value in given.items() if value is not None}})


def with_password(url: str, password: str) -> str:
    """The address with a password that is kept elsewhere. Raises MetaError for what is no address."""
    return make_conninfo(conninfo_of(url), password=password)


def has_several_hosts(given: Mapping[str, object] | str) -> bool:
    """Whether libpq has a choice."""
    parts = conninfo_to_dict(given) if isinstance(given, str) else given
    return any("," in str(parts.get(name) or "") for name in ("host", "hostaddr"))


def with_options(conninfo: str, options: str) -> str:
    """The address with settings of the session, behind those that it has."""
    given = conninfo_to_dict(conninfo).get("options")
    return make_conninfo(conninfo, options=f"{given} {options}" if given else options)


def in_any_order(conninfo: str) -> str:
    """The address with its hosts tried in random order, for one of them may let us wait in vain."""
    return make_conninfo(conninfo, load_balance_hosts="random") if has_several_hosts(conninfo) else conninfo


def without_password(url: str) -> str:
    """An address, right or wrong, as it may be shown."""
    return _PASSWORD.sub(r"\1***", _LOGIN.sub(r"\1***@", url))


_LOGIN = re.compile(r"^((?:[^/@:?\s]+://)?[^/@:?\s]*:).*@", re.DOTALL)
"""In a URL: what comes before the password, which may have anything in it that should have been written otherwise."""
_PASSWORD = re.compile(
    r"(password\s*=\s*)(?!\*\*\*)(?:'(?:[^'\\]|\\.)*'|.*?(?=[&\s]+\w+\s*=|$))", re.IGNORECASE | re.DOTALL
)
"""A parameter of either form, to its end or to the next one."""
_QUOTED = re.compile(r' *(?:(".")|"[^"]*")')
"""What libpq quotes: a single sign is its own."""
_PORTS = re.compile(r"[0-9]*(,[0-9]*)*")


def _is_cut_wrongly(url: str, given: Mapping[str, object]) -> bool:
    """Whether libpq takes a part of a password for something that it would show: the host, the port, the name."""
    if not _PORTS.fullmatch(str(given.get("port") or "")) or "@" in str(given.get("host") or "")[1:]:
        return True
    hosts, _, path = url.partition("://")[2].partition("?")[0].partition("/")
    return ":" in hosts and "@" not in hosts and "@" in path
