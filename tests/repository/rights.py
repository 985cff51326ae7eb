"""docs/operate/rights-of-methods.md, made of the table of needs: `python -m tests.repository.rights`."""

from __future__ import annotations

from pathlib import Path

from metastore.authorization.methods import needs
from metastore.authorization.shown import SHOWN

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "rights-of-methods.md"
_HEAD = """# What each method needs

What a call takes with [`metastore.authorization=grants`](rights.md); ADMIN on the server is always enough. "any" is
whatever right there is with the object, "a or b" one of them. Made of `metastore/authorization/methods.py` by
`python -m tests.repository.rights`.

| method | takes |
|---|---|
"""
_KINDS = {
    "server": "the server",
    "catalog": "the catalog",
    "database": "the database",
    "table": "the table",
    "stored": "the table",
    "tables": "each table",
    "full": "each table",
    "used": "each table",
    "numbered": "the table with the id",
}


def words(need: str) -> str:
    """A need in the words of the page."""
    for word, meaning in (("when", "if `{}` is said"), ("unless", "if `{}` is not said")):
        if f" {word} " in need:
            before, _, fields = need.partition(f" {word} ")
            return f"{words(before)}, {meaning.format('` or `'.join(fields.split()))}"
    match need.split():
        case ["anyone"]:
            return "nothing"
        case ["user"]:
            return "a user who has come in"
        case [verbs, "on", kind, *_]:
            return f"{verbs.replace('|', ' or ').replace('ANY', 'any')} on {_KINDS[kind]}"
        case ["own", "txn", *_]:
            return "one's own transactions"
        case ["own", "range", *_]:
            return "no transaction of others in the range"
        case ["own", "lock", *_]:
            return "one's own lock"
        case ["lock", *_]:
            return (
                "for each component its operation; without one any right for a shared lock, and one to change something"
                " for others"
            )
        case ["compacted", *_]:
            return "ADMIN on the tables of the compactions"
        case ["create", *_]:
            return "CREATE on the database; ADMIN on it to bring back a dropped table"
        case ["alter", "table", *_]:
            return "ALTER on the table; CREATE on the database that it is renamed into; ADMIN for another owner"
        case ["alter", "database", *_]:
            return "ALTER on the database; ADMIN for another owner"
        case ["grant", "or", *_]:
            return "to grant, the privileges with grant option, or ADMIN on the object; to revoke, ADMIN on it"
        case ["grant", *_]:
            return "the privileges with grant option, or ADMIN on the object"
        case ["revoke", *_]:
            return "ADMIN on the object"
        case ["grantable", *_]:
            return "the role with admin option"
        case ["self", *rest]:
            return "oneself or a role of one's own" + (", or ADMIN on the object" if "or" in rest else "")
    raise ValueError(f"no words for {need}")


def document() -> str:
    """The page."""
    lines = []
    for method, texts in sorted(needs().items(), key=lambda item: item[0].lower()):
        told = list(dict.fromkeys(words(text) for text in texts))
        if method in SHOWN:
            told.append("the list has what one may see")
        lines.append(f"| `{method}` | {'; '.join(told)} |")
    return _HEAD + "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(document())


if __name__ == "__main__":
    main()
