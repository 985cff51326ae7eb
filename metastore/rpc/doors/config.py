"""Settings of who may come in."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import choice

LOCAL, NONE, NOSASL = "local", "none", "nosasl"


@dataclass(frozen=True)
class DoorsConfig:
    """What a client has to show."""

    authentication: str = choice(
        "metastore.authentication",
        LOCAL,
        "Who may call: local is everybody on this machine, and the server listens on loopback addresses only; none (or "
        "Hive's NOSASL) is everybody who reaches the port.",
        (LOCAL, NONE, NOSASL),
        hive="NOSASL",
        why="A port that asks nobody is opened to others on purpose only.",
    )

    @property
    def asks_nobody(self) -> bool:
        """Whether everybody who reaches the port may call, as somebody has said on purpose."""
        return self.authentication in (NONE, NOSASL)
