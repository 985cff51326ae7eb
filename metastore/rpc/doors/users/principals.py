"""Which user a principal of Kerberos is, by Hadoop's rules (`hadoop.security.auth_to_local`).

A rule is ``RULE:[n:text](pattern)s/pattern/text/gL``: of a principal of `n` parts it makes a text (``$0`` is the realm,
``$1`` the first part), and if that fits the pattern within brackets, replaces what fits the next one; ``g`` does so
everywhere, ``L`` makes small letters of the outcome. Patterns are in brackets and after ``s`` as Java has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from metastore.rpc.doors.users.passwords import is_name
from metastore.settings import SettingError

_RULE = re.compile(
    r"RULE:\[(?P<count>\d):(?P<text>[^\]]*)\]"
    r"(?:\((?P<fits>[^)]*(?:\([^)]*\)[^)]*)*)\))?"
    r"(?:s/(?P<pattern>[^/]*)/(?P<other>[^/]*)/(?P<all>g)?)?"
    r"(?:/?(?P<small>L))?(?=\s|$)"
)
_DEFAULT = re.compile(r"DEFAULT(?=\s|$)")
_PART = re.compile(r"\$(\d)")
_Rule = Callable[[list[str], str], str | None]


class Principals:
    """The rules, in their order: the first that has something to say of a principal counts."""

    def __init__(self, rules: str, realm: str) -> None:
        """`realm` is the metastore's own. Raises SettingError for a rule that is none."""
        self._realm = realm
        self._rules: list[_Rule] = []
        rest = rules.strip()
        while rest:
            if (match := _DEFAULT.match(rest)) is not None:
                self._rules.append(self._by_default)
            elif (match := _RULE.match(rest)) is not None:
                self._rules.append(_rule(match))
            else:
                raise SettingError(
                    f"hadoop.security.auth_to_local: {rest.split()[0]!r} is neither DEFAULT nor "
                    "RULE:[n:text](pattern)s/pattern/text/"
                )
            rest = rest[match.end() :].lstrip()

    def user_of(self, principal: str) -> str:
        """The user. Raises ValueError if the principal is none."""
        name, at, realm = principal.rpartition("@")
        if not at or "\\" in principal:  # which stands before what is no sign of its own
            raise ValueError(f"{principal!r} is not a principal with a realm and without signs in its parts")
        parts = name.split("/")
        for rule in self._rules:
            user = rule(parts, realm)
            if user is None:
                continue
            if not is_name(user) or "@" in user or "/" in user:
                break
            return user
        raise ValueError(f"{principal} is no user by hadoop.security.auth_to_local")

    def _by_default(self, parts: list[str], realm: str) -> str | None:
        return parts[0] if realm == self._realm else None


def _rule(match: re.Match[str]) -> _Rule:
    count, text, other = int(match["count"]), match["text"], match["other"]
    try:
        fits = None if match["fits"] is None else re.compile(match["fits"])
        pattern = None if match["pattern"] is None else re.compile(match["pattern"])
        replacement = _replacement(other or "", pattern)
    except (re.error, IndexError) as error:
        raise SettingError(f"hadoop.security.auth_to_local: {match[0]!r} has no pattern: {error}") from None
    for number in map(int, _PART.findall(text)):
        if number > count:
            raise SettingError(f"hadoop.security.auth_to_local: {match[0]!r} names part {number} of {count}")

    def user(parts: list[str], realm: str) -> str | None:
        if len(parts) != count:
            return None
        known = [realm, *parts]
        made = _PART.sub(lambda found: known[int(found[1])], text)
        if fits is not None and fits.fullmatch(made) is None:
            return None
        if pattern is not None:
            made = pattern.sub(replacement, made, count=0 if match["all"] else 1)
        return made.lower() if match["small"] else made

    return user


def _replacement(text: str, pattern: re.Pattern[str] | None) -> Callable[[re.Match[str]], str]:
    """What stands for ``$n`` and letters behind a backslash, as Java has it. Raises IndexError for a group too many."""
    pieces: list[str | int] = []
    for found in re.finditer(r"\\(.)|\$(\d)|([^\\$]+|.)", text):
        escaped, group, plain = found.groups()
        if group is not None and int(group) > (0 if pattern is None else pattern.groups):
            raise IndexError(f"no group {group}")
        pieces.append(int(group) if group is not None else escaped or plain)
    return lambda match: "".join((match[one] or "") if isinstance(one, int) else one for one in pieces)
