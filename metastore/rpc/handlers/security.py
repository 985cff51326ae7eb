"""RPCs of delegation tokens: those that the server issues where it asks for Kerberos, and those that clients keep.

A Java metastore without SASL fails inside get_, renew_ and cancel_delegation_token; here they say why they cannot work.
"""

from __future__ import annotations

from typing import Any

from hive_acid.errors import MetaError
from metastore.catalog.registry.tokens import Tokens
from metastore.rpc.call import Call, Handler
from metastore.rpc.doors.users.delegation import Delegation
from metastore.rpc.encoding.plain import checked_text

_ISSUING = "get_delegation_token", "renew_delegation_token", "cancel_delegation_token"


def handlers(tokens: Tokens, delegation: Delegation | None) -> dict[str, Handler]:
    """RPC name to function. `delegation` issues tokens, None if nobody does."""
    issuing = dict.fromkeys(_ISSUING, _no_tokens) if delegation is None else _issuing(delegation)
    return issuing | _keeping(tokens)


def _no_tokens(call: Call, *_: Any) -> None:
    raise MetaError(
        "this metastore has no delegation tokens, since it does not authenticate its clients by Kerberos, or only with "
        "privacy (hadoop.rpc.protection) and without TLS: connect without one, with hive.metastore.sasl.enabled=false"
    )


def _issuing(delegation: Delegation) -> dict[str, Handler]:
    def get_delegation_token(call: Call, owner: str | None, renewer: str | None) -> str:
        return delegation.issue(call.session, owner or "", renewer or "")

    def renew_delegation_token(call: Call, token: str | None) -> int:
        return delegation.renew(call.session, checked_text(token, "the token"))

    def cancel_delegation_token(call: Call, token: str | None) -> None:
        delegation.cancel(call.session, checked_text(token, "the token"))

    served = get_delegation_token, renew_delegation_token, cancel_delegation_token
    return dict(zip(_ISSUING, served, strict=True))


def _keeping(tokens: Tokens) -> dict[str, Handler]:
    """Of what clients keep: nothing of ours is there."""

    def add_token(call: Call, identifier: str | None, token: str | None) -> bool:
        return tokens.add(checked_text(identifier, "the token identifier"), checked_text(token, "the token"))

    def remove_token(call: Call, identifier: str | None) -> bool:
        return tokens.remove(checked_text(identifier, "the token identifier"))

    def get_token(call: Call, identifier: str | None) -> str:
        return tokens.get(checked_text(identifier, "the token identifier")) or ""  # the wire has no null

    def get_all_token_identifiers(call: Call) -> list[str]:
        return tokens.identifiers()

    def add_master_key(call: Call, key: str | None) -> int:
        return tokens.add_key(checked_text(key, "the key"))

    def update_master_key(call: Call, number: int, key: str | None) -> None:
        tokens.update_key(number, checked_text(key, "the key"))

    def remove_master_key(call: Call, number: int) -> bool:
        return tokens.remove_key(number)

    def get_master_keys(call: Call) -> list[str]:
        return tokens.keys()

    served: tuple[Handler, ...] = (
        add_token,
        remove_token,
        get_token,
        get_all_token_identifiers,
        add_master_key,
        update_master_key,
        remove_master_key,
        get_master_keys,
    )
    return {handler.__name__: handler for handler in served}
