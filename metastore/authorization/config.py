"""Settings of what users may do."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, choice, text

NONE, GRANTS = "none", "grants"


@dataclass(frozen=True)
class AuthorizationConfig:
    """Whether rights are enforced, and whose word counts."""

    authorization: str = choice(
        "metastore.authorization",
        NONE,
        "What users may do: none lets everybody who has come in do everything, and stores privileges and roles without "
        "enforcing them; grants enforces them.",
        (NONE, GRANTS),
    )
    trusts_set_ugi: bool = boolean(
        "metastore.authorization.trust.set.ugi",
        "false",
        "With grants: a user is who it says it is in set_ugi, and in the groups it says, where nobody is asked for a "
        "password. For peers of whom all are trusted to say the truth.",
    )
    policy: str = text(
        "metastore.authorization.policy",
        "",
        "With grants: a Python class, module:Class, that is asked before the grants and may allow or refuse by itself; "
        "empty for none.",
    )

    @property
    def is_on(self) -> bool:
        """Whether rights are enforced."""
        return self.authorization == GRANTS
