"""The addresses that the server listens on: those of the machine itself, until it is said who may call."""

from __future__ import annotations

import socket

from hive_acid.login import is_loopback
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
        if (danger := config.danger()) and not is_loopback(address):
            raise OpenDoorError(f"{host} is an address that other machines reach, and {danger}")
    except BaseException:
        listener.close()
        raise
    return listener
