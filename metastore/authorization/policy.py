"""An outside policy: a class of somebody else's that is asked before the grants are.

It is what an engine of policies, such as Open Policy Agent or Ranger, is joined by: see docs/operate/rights.md.
"""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from typing import Protocol, cast

from hive_acid.errors import MetaError
from metastore.authorization.models import Thing, Who
from metastore.catalog.names import split_key
from metastore.settings import SettingError

LOG = logging.getLogger("metastore.authorization")


@dataclass(frozen=True, slots=True)
class Question:
    """Whether `user` may do one of `verbs` with an object, by calling `method`.

    Catalog, database and table say as much of the object as there is: all None is the server itself. The verbs are
    SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, ADMIN, and ANY for whatever right there is.
    """

    user: str
    groups: tuple[str, ...]
    method: str
    verbs: frozenset[str]
    catalog: str | None
    database: str | None
    table: str | None


class Policy(Protocol):
    """What a class of `metastore.authorization.policy` has; it is made without arguments."""

    def decide(self, question: Question) -> bool | None:
        """Whether it may be; None leaves it to the grants.

        It is called on several threads at once, for each call of each user who is no admin; what takes long it keeps
        itself. If it raises something, the call is refused.
        """


def loaded(name: str) -> Policy:
    """The policy that a setting names. Raises SettingError if it cannot be made."""
    module, colon, kind = name.partition(":")
    try:
        if not colon:
            raise ValueError("it is not of the form module:Class")
        policy = getattr(importlib.import_module(module), kind)()
        if not callable(getattr(policy, "decide", None)):
            raise TypeError("it has no method decide")
    except Exception as error:  # whatever it does when it is made
        raise SettingError(f"metastore.authorization.policy {name} cannot be used: {error}") from None
    return cast("Policy", policy)


def decision(policy: Policy | None, who: Who, method: str, verbs: frozenset[str], thing: Thing) -> bool | None:
    """What a policy says; None if it says nothing. Raises the error of a refusal if it fails."""
    if policy is None:
        return None
    database = None if thing.database is None else split_key(thing.database)[1]
    question = Question(who.user or "", who.groups, method, verbs, thing.catalog, database, thing.table)
    try:
        return policy.decide(question)
    except Exception as error:
        LOG.exception("policy failed method=%s", method)
        raise MetaError(f"{method}: metastore.authorization.policy has failed: {error}") from error
