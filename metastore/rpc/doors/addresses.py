"""The addresses that the server listens on: those of the machine itself, until it is said who may call."""

from __future__ import annotations

import ipaddress
import socket

from metastore.rpc.doors.config import DoorsConfig


class OpenDoorError(ValueError):
    """An address that others reach, and nobody has said who may call."""


def bound(host: str, port: int, config: DoorsConfig) -> socket.socket:
    """A socket that is bound and does not listen yet.

    Raises OpenDoorError, and OSError, OverflowError, ValueError or TypeError for what is no address or is taken.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        address = listener.getsockname()[0]
        if not (config.is_open_on_purpose or _is_loopback(address)):
            raise OpenDoorError(
                f"{host} is an address that other machines reach, and everybody there could do everything: listen on "
                "127.0.0.1, ask for certificates (metastore.tls.client.ca), or say metastore.authentication=NONE if "
                "that is what you want"
            )
    except BaseException:
        listener.close()
        raise
    return listener


def _is_loopback(address: str) -> bool:
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return found.is_loopback
