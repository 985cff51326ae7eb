"""Outside policies for the tests."""

from __future__ import annotations

from metastore.authorization.policy import Question


class Tagged:
    """Lets zoe read whatever is called public_…, keeps everybody from secret_…, and leaves the rest to the grants."""

    def decide(self, question: Question) -> bool | None:
        """As `metastore.authorization.policy.Policy`."""
        table = question.table or ""
        if table.startswith("secret_"):
            return False
        if question.user == "zoe" and table.startswith("public_") and question.verbs <= {"SELECT", "ANY"}:
            return True
        return None


class Broken:
    """Fails whenever it is asked."""

    def decide(self, question: Question) -> bool | None:
        """As `metastore.authorization.policy.Policy`."""
        raise RuntimeError("the engine of policies is away")


class Unmade:
    """Cannot be made."""

    def __init__(self) -> None:
        raise OSError("no engine of policies")
