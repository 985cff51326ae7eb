"""Users that may act for others, such as HiveServer2 for those who come to it: Hadoop's rules (`hadoop.proxyuser`)."""

from __future__ import annotations

import contextlib
import grp
import ipaddress
import os
import pwd
import socket
from collections.abc import Mapping

from hive_acid.login import parsed_address
from metastore.rpc.doors.config import DoorsConfig
from metastore.settings import SettingError

ALL = "*"
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Proxies:
    """Who may act for whom, and from where. Threads may share it."""

    def __init__(self, config: DoorsConfig) -> None:
        """Names of hosts are looked up now. Raises SettingError for a rule that can never hold."""
        self._networks = {user: _networks(user, text) for user, text in config.proxy_hosts.items()}
        self._users = _lists(config.proxy_users)
        self._groups = _lists(config.proxy_groups)
        for user in {*self._users, *self._groups} - {*self._networks}:
            raise SettingError(
                f"hadoop.proxyuser.{user}.hosts is missing: from where may {user} act for others? * is all"
            )
        for user in {*self._networks} - {*self._users, *self._groups}:
            raise SettingError(
                f"hadoop.proxyuser.{user}.users or .groups is missing: for whom may {user} act? * is all"
            )

    def refusal(self, user: str, other: str, client: str) -> str | None:
        """Why a user who has come in from this address may not act for another; None if it may."""
        if user == other:
            return None
        if user not in self._networks:
            return f"{user} has come in, and may not act for {other} (hadoop.proxyuser.{user}.hosts)"
        networks = self._networks[user]
        if networks is not None and not _is_within(client, networks):
            return f"{user} may not act for others from {client} (hadoop.proxyuser.{user}.hosts)"
        if not (_has(self._users.get(user), {other}) or _has(self._groups.get(user), _groups_of(other))):
            return f"{user} may not act for {other} (hadoop.proxyuser.{user}.users and .groups)"
        return None


def _lists(told: Mapping[str, str]) -> dict[str, frozenset[str]]:
    return {user: frozenset(one.strip() for one in text.split(",") if one.strip()) for user, text in told.items()}


def _has(allowed: frozenset[str] | None, those: set[str]) -> bool:
    return allowed is not None and (ALL in allowed or bool(allowed & those))


def _networks(user: str, text: str) -> list[_Network] | None:
    """None for all."""
    names = [one.strip() for one in text.split(",") if one.strip()]
    if ALL in names:
        return None
    found: list[_Network] = []
    for name in names:
        try:
            found.append(ipaddress.ip_network(name))
        except ValueError:
            try:
                found += [ipaddress.ip_network(one[4][0]) for one in socket.getaddrinfo(name, None)]
            except (OSError, ValueError):
                raise SettingError(
                    f"hadoop.proxyuser.{user}.hosts: {name!r} is neither an address, a network nor the name of a host"
                ) from None
    return found


def _is_within(client: str, networks: list[_Network]) -> bool:
    address = parsed_address(client)
    return any(address in network for network in networks)


def _groups_of(user: str) -> set[str]:
    """Of this machine; none of a user that it does not know."""
    try:
        ids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except (KeyError, OSError, ValueError):
        return set()
    groups = set()
    for group_id in ids:
        with contextlib.suppress(KeyError):
            groups.add(grp.getgrgid(group_id).gr_name)
    return groups
