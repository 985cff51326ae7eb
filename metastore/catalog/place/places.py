"""One normal form of places, in which they are stored, and one identity, by which they are compared.

The stored form is that of Hadoop's `Path`, so Spark, Hive and this server mean the same directory by it: a scheme in
lower case, no empty, ``.`` or ``..`` steps, no slash at the end; ``file:/abs/path`` for local files. ``..`` is resolved
in the text, as Hadoop does, before any link is followed. A per cent sign stands for itself, as it does to the file
systems.

Different stored forms can still be one place: ``s3`` and ``s3a`` are one store, a host's default port may be left out,
local directories may be links, and some file systems do not mind the case. `identity` removes these differences.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hive_acid.errors import MetaError
from hive_acid.filesystem.files import LONGEST_NAME

LOCAL = "file"
SCHEMES = ("file", "hdfs", "viewfs", "s3", "s3a", "gs", "abfs", "abfss")
"""The schemes that may be places unless a setting says otherwise."""
MOST_BYTES = 4000
"""A longer location is refused; it is Hive's limit, too."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_SCHEME_NAME = re.compile(r"[a-z][a-z0-9+.-]*")
_BUCKETS = ("s3", "s3a", "s3n", "gs", "gcs")
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
_NAME = r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*"
_AUTHORITIES = {
    **dict.fromkeys(_BUCKETS, (re.compile(_NAME), "the name of a bucket")),
    **dict.fromkeys(_CONTAINERS, (re.compile(rf"[A-Za-z0-9$_-]+@{_NAME}"), "a container@account")),
}
_HOST = re.compile(rf"({_NAME}(:[1-9][0-9]{{0,4}})?)?"), "a host, or host:port"
"""Of other file systems. What else their clients understand (users, ports written otherwise, Amazon's resource names)
would be other names of the same places."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_FAMILIES = (("s3", "s3a", "s3n"), ("gs", "gcs"), ("abfs", "abfss"))
"""Schemes that are names of one store."""
_DEFAULT_PORTS = {"hdfs": "8020"}
_PLAIN = re.compile(r"[\x20-\x7d]*")
"""Steps of which all file systems have the same idea; a tilde is part of the short names of some."""
_MOST_LINKS = 40
_MOST_TRIED = 20
"""Names in a directory, any of which tells whether the case of letters counts there."""
_MOST_WAYS = 100


class OtherNameError(MetaError):
    """A place is spelt otherwise than its directory is named, on a file system that ignores the case of letters."""


@dataclass(frozen=True, slots=True)
class Alias:
    """What is known of a local directory: it is a link to `target`, or `ignores_case`. Both are absolute paths."""

    place: str
    target: str
    ignores_case: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """The parts of a location."""

    scheme: str
    authority: str
    path: str
    """Absolute and without ``.``, ``..`` and empty steps; ``/`` for the root."""

    @classmethod
    def of(cls, location: str) -> Place:
        """The parts of a location with a scheme; a path without one is local."""
        found = _SCHEME.match(location)
        scheme, rest = (found[0][:-1].lower(), location[found.end() :]) if found else (LOCAL, location)
        authority = ""
        if found and rest.startswith("//"):
            authority, _, rest = rest[2:].partition("/")
        return cls(scheme, authority, "/" + "/".join(_steps(rest)))

    def __str__(self) -> str:
        if self.scheme == LOCAL:
            return f"file:{self.path}"
        return f"{self.scheme}://{self.authority}{self.path}".rstrip("/")


def qualified(location: str, root: str = "file:/", schemes: Sequence[str] | None = None) -> str:
    """`location` as it is stored; what it does not say of scheme and host is that of `root`.

    Raises MetaError for what cannot be a place, or is none of the `schemes`.
    """
    if _CONTROL.search(location):
        raise MetaError(f"the location {location!r} cannot be a place: it has a control character")
    if len(location.encode("utf-8", "replace")) > MOST_BYTES:
        raise MetaError(f"the location {location[:80]}… cannot be a place: it is longer than {MOST_BYTES} bytes")
    if "::" in location:  # fsspec would open one file system inside of another
        raise MetaError(f"the location {location} cannot be a place: '::' is not allowed in it")
    home = Place.of(root)
    if not has_scheme(location):
        return _allowed(str(Place(home.scheme, home.authority, Place.of(location).path)), schemes)
    place = Place.of(location)
    if place.scheme == LOCAL and place.authority not in ("", "localhost"):
        raise MetaError(
            f"the location {location} cannot be a place: a local one has no host, so write file:/{place.authority}… or"
            " file:///…"
        )
    if not place.authority and place.scheme == home.scheme:
        place = Place(place.scheme, home.authority, place.path)
    stored = _allowed(str(place), schemes)
    form, words = _AUTHORITIES.get(place.scheme, _HOST)
    if place.scheme != LOCAL and not form.fullmatch(place.authority):
        raise MetaError(f"the location {location} cannot be a place: {place.scheme}:// is followed by {words}")
    if place.scheme in _BUCKETS and "?versionId=" in place.path:  # fsspec would mean the object without it
        raise MetaError(f"the location {location} cannot be a place: '?versionId=' is not allowed in it")
    return stored


def check_whole(location: str) -> None:
    """Raises MetaError for a path that does not begin at the root: below what it would lie is not known here."""
    scheme = _SCHEME.match(location)
    if not location.startswith("/", scheme.end() if scheme else 0):
        raise MetaError(
            f"the location {location} cannot be a place: it is not a whole path, such as file:/dir/table or"
            " s3a://bucket/dir/table"
        )


def has_scheme(location: str) -> bool:
    """Whether a location says on which file system it is."""
    return _SCHEME.match(location) is not None


def scheme_list(text: str) -> tuple[str, ...]:
    """The schemes that a setting names, with commas between. Raises ValueError for what is no name of a scheme."""
    found = tuple(part for part in (part.strip().lower() for part in text.split(",")) if part)
    wrong = [scheme for scheme in found if not _SCHEME_NAME.fullmatch(scheme)]
    if wrong or not found:
        raise ValueError(f"{text!r} names no schemes of file systems: write them with commas between, such as file,s3a")
    return found


def root_list(text: str) -> tuple[str, ...]:
    """The places that a setting names, with commas between, as they are stored. Raises ValueError for what is none."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        try:
            check_whole(part)
            found.append(qualified(part))
        except MetaError as error:
            raise ValueError(str(error)) from None
        if is_root(found[-1]) and Place.of(found[-1]).scheme == LOCAL:
            raise ValueError(f"{part} is the whole local file system: everything would be allowed")
    return tuple(found)


def _allowed(stored: str, schemes: Sequence[str] | None) -> str:
    place = Place.of(stored)
    scheme = place.scheme
    if scheme == LOCAL and (long := [step for step in _steps(place.path) if len(os.fsencode(step)) > LONGEST_NAME]):
        raise MetaError(
            f"the location {stored[:80]}… cannot be a place: the name {long[0][:40]}… in it is longer than"
            f" {LONGEST_NAME} bytes"
        )
    if schemes is not None and scheme not in schemes:
        raise MetaError(
            f"the location {stored} cannot be a place: {scheme} is none of the file systems of"
            f" metastore.filesystem.schemes ({', '.join(dict.fromkeys(schemes))})"
        )
    return stored


def is_root(location: str) -> bool:
    """Whether a stored location is a whole file system."""
    return not Place.of(location).path.strip("/")


def is_below(location: str | None, above: str | None) -> bool:
    """Whether a stored location is `above` or lies in it, as the two are written."""
    return bool(location and above) and f"{location}/".startswith(f"{(above or '').rstrip('/')}/")


def identity(location: str, aliases: Iterable[Alias] = ()) -> str:
    """What is equal for two locations that are one place; what lies in a place begins with its identity and a slash."""
    place = Place.of(location)
    authority = place.authority.lower()
    port = _DEFAULT_PORTS.get(place.scheme)
    if port is not None:
        authority = authority.removesuffix(f":{port}")
    path = place.path
    if place.scheme == LOCAL:
        aliases = list(aliases)
        path = _followed(path, aliases)
        if _is_case_ignored(path, aliases):
            path = path.lower()
    return f"{_family(place.scheme)[0]}://{authority}{path.rstrip('/')}"


def case_ignored(location: str, aliases: Iterable[Alias]) -> bool:
    """Whether the case of letters is known not to count in a local place."""
    aliases = list(aliases)
    return _is_case_ignored(_followed(Place.of(location).path, aliases), aliases)


def spellings(location: str, aliases: Iterable[Alias] = ()) -> list[str]:
    """The stored forms that have the identity of a place, but for the case of letters."""
    place = Place.of(location)
    if place.scheme == LOCAL:
        aliases = list(aliases)
        path = _followed(place.path, aliases)
        paths = _ways({place.path, path}, aliases)
        return [str(Place(LOCAL, "", one)) for one in sorted(paths)]
    authorities = [place.authority]
    port = _DEFAULT_PORTS.get(place.scheme)
    if port is not None and place.authority:
        authorities = [place.authority.removesuffix(f":{port}")]
        authorities.append(f"{authorities[0]}:{port}")
    return [str(Place(scheme, one, place.path)) for scheme in _family(place.scheme) for one in authorities]


def spellings_below(location: str, aliases: Iterable[Alias] = ()) -> list[str]:
    """The links, in their stored form, through which one comes to what lies below a local place."""
    place = Place.of(location)
    if place.scheme != LOCAL:
        return []
    aliases = list(aliases)
    path = _followed(place.path, aliases)
    inside = {alias.place for alias in aliases if not alias.ignores_case and _is_within(alias.target, path)}
    return [str(Place(LOCAL, "", one)) for one in sorted(_ways(inside, aliases))]


def ancestors(location: str) -> Iterator[str]:
    """The places above a stored location, from the nearest to the root of its file system."""
    place = Place.of(location)
    steps = _steps(place.path)
    for length in range(len(steps) - 1, -1, -1):
        yield str(Place(place.scheme, place.authority, "/" + "/".join(steps[:length])))


def local_aliases(location: str) -> list[Alias]:
    """The links on the way to a local place, and where on it the case of letters does not count; looks at the disk.

    What is not there is no link. Raises OSError, and MetaError for a way that passes one link twice: there is no end of
    such ways, and so of names of one place. So too where case does not count and a step is no name of what is there but
    for the case of A to Z: each file system has its own idea of other letters, and some have short names.
    """
    place = Place.of(location)
    if place.scheme != LOCAL:
        return []
    found: list[Alias] = []
    at, ignores_case = "/", False
    for step in _steps(place.path):
        above, at = at, os.path.join(at, step)
        if not os.path.lexists(at):
            if not ignores_case and _ignores_case_within(above):
                real = os.path.realpath(above)
                found.append(Alias(real, real, ignores_case=True))
            break
        if os.path.islink(at):
            link = Alias(os.path.join(os.path.realpath(above), step), os.path.realpath(at))
            if link in found:
                raise MetaError(f"the location {location} cannot be a place: the way to it passes {link.place} twice")
            found.append(link)
        if not ignores_case and _ignores_case(above, step):
            ignores_case = True
            real = os.path.realpath(above)
            found.append(Alias(real, real, ignores_case=True))
        if ignores_case and not _PLAIN.fullmatch(step):
            _check_name(location, above, step)
    return found


def _ignores_case(above: str, step: str) -> bool:
    """Whether a directory has what is there under a name in other letters as well, and no other entry of that name."""
    other = step.swapcase()
    if not _has_case(step):
        return False
    try:
        mine, theirs = (os.lstat(os.path.join(above, name)) for name in (step, other))
    except FileNotFoundError:
        return False
    # Some file systems, those of FUSE among them, number what is there by the name that was asked for.
    return os.path.samestat(mine, theirs) or not {step, other} <= set(os.listdir(above))


def _ignores_case_within(directory: str) -> bool:
    """Whether a directory has what is in it under names in other letters as well.

    If no name in it tells, the nearest one above that has letters does; on a disk without any, a file that is made.
    """
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_TRIED) if _has_case(entry.name)]
    except OSError:  # such as a file, or a directory that may not be read
        return False
    if names:
        return any(_ignores_case(directory, name) for name in names)
    at = os.path.realpath(directory)
    while not os.path.ismount(at):
        at, name = os.path.split(at)
        if _has_case(name):
            return _ignores_case(at, name)
    return _ignores_case_of_a_file(directory)


def _ignores_case_of_a_file(directory: str) -> bool:
    """Whether a directory has a new file under its name in other letters as well; False where none can be made."""
    name = f".case_of_letters_{secrets.token_hex(8)}"
    path = os.path.join(directory, name)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return False
    try:
        return _ignores_case(directory, name)
    finally:
        os.unlink(path)


def _has_case(name: str) -> bool:
    return name.swapcase() != name


def _check_name(location: str, above: str, step: str) -> None:
    """Raises OtherNameError if no entry of a directory is named so, but for the case of A to Z."""
    names = os.listdir(above)
    if step in names or _ascii_lower(step) in map(_ascii_lower, names):
        return
    raise OtherNameError(
        f"the location {location} cannot be a place: the case of letters does not count there, and what {above} has for"
        f" {step!r} is named otherwise; use its name"
    )


def _ascii_lower(name: str) -> str:
    return name.encode(errors="surrogateescape").lower().decode(errors="surrogateescape")


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    return steps


def _family(scheme: str) -> tuple[str, ...]:
    return next((family for family in _FAMILIES if scheme in family), (scheme,))


def _is_case_ignored(path: str, aliases: Sequence[Alias]) -> bool:
    return any(alias.ignores_case and _is_within(path.lower(), alias.place.lower()) for alias in aliases)


def _followed(path: str, aliases: Sequence[Alias]) -> str:
    """A local path with the known links on it followed."""
    for _ in range(_MOST_LINKS):
        links = [alias for alias in aliases if not alias.ignores_case and alias.target != alias.place]
        found = [alias for alias in links if _is_within(path, alias.place)]
        if not found:
            break
        first = min(found, key=lambda alias: len(alias.place))
        path = _onto(path, first.place, first.target)
    return path


def _ways(paths: set[str], aliases: Sequence[Alias]) -> set[str]:
    """Local paths by which one comes to `paths` through links, through each of them once, and these."""
    links = [alias for alias in aliases if not alias.ignores_case]
    found, new = set(paths), [(path, frozenset[Alias]()) for path in paths]
    while new and len(found) < _MOST_WAYS:
        ways = [
            (_onto(path, one.target, one.place), passed | {one})
            for path, passed in new
            for one in links
            if one not in passed and _is_within(path, one.target)
        ]
        new = [way for way in ways if way[0] not in found]
        found.update(path for path, _ in new)
    return found


def _is_within(path: str, above: str) -> bool:
    return f"{path}/".startswith(f"{above.rstrip('/')}/")


def _onto(path: str, above: str, other: str) -> str:
    """`path`, which lies in `above`, in `other` instead."""
    return "/" + "/".join(_steps(f"{other}/{path[len(above.rstrip('/')) :]}"))
