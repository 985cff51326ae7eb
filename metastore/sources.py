"""Where settings are given: a Hadoop-style XML file, a TOML file, the environment, the command line."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from metastore.settings import SettingError

ENVIRONMENT_PREFIX = "HIVE_ACID__"
"""``HIVE_ACID__HIVE_TXN_TIMEOUT=60s`` in the environment is ``hive.txn.timeout``: an underscore stands for a dot."""
SITE_FILES = ("hive-site.xml", "metastore-site.xml")
"""What is read of a directory of configuration, in this order; the later wins."""

_MOST_LETTERS = 16 << 20
"""In a file of settings or a password: one without end, such as a device, filled the memory."""
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_ENVIRONMENT_VARIABLE = re.compile(r"env[:.](\w+)")


@dataclass(frozen=True, slots=True)
class Given:
    """One setting as somebody wrote it."""

    key: str
    text: str
    source: str
    shared: bool = False
    """Written for all of Hive: settings that are not ours are passed over, and of two names the newer wins."""
    fault: str = ""
    """Why the text cannot be used, if it cannot; an error only if the setting is ours."""


def from_pairs(pairs: Sequence[str], source: str = "--set") -> list[Given]:
    """The settings of ``key=value`` texts. Raises SettingError for a text of another form."""
    return [_pair(pair, source) for pair in pairs]


def from_environment(environ: Mapping[str, str]) -> list[Given]:
    """The settings among the environment's variables (see ENVIRONMENT_PREFIX), in any case."""
    return [
        Given(name[len(ENVIRONMENT_PREFIX) :].replace("_", ".").lower(), value.strip(), f"environment {name}")
        for name, value in sorted(environ.items())
        if name.upper().startswith(ENVIRONMENT_PREFIX)
    ]


def from_toml(path: Path) -> list[Given]:
    """The settings of a TOML file: a key in quotes or in parts, in tables or not.

    Raises SettingError for a file that cannot be read, for a value that is no string, number or boolean, and for a key
    that is given in two of these ways.
    """
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"{path} is not TOML: {error}") from None
    found = [Given(key, _scalar(key, value, path), str(path)) for key, value in _leaves(document)]
    if twice := [key for key, count in Counter(given.key for given in found).items() if count > 1]:
        raise SettingError(f"setting {twice[0]} ({path}) is given twice")
    return found


def from_site(path: Path, environ: Mapping[str, str]) -> list[Given]:
    """The properties of a hive-site.xml; ``${env:NAME}`` is replaced, no other variable.

    ``<final>`` has no effect: what is given closer to the command wins, as everywhere. Raises SettingError for a file
    that cannot be read, and for one that includes others.
    """
    try:
        root = ElementTree.fromstring(read_text(path))
    except ElementTree.ParseError as error:
        raise SettingError(f"{path} is not XML: {error}") from None
    if root.tag != "configuration":
        raise SettingError(f"{path} is not a configuration of Hive: its root is <{root.tag}>, not <configuration>")
    found = []
    for element in root:
        if element.tag.endswith("include"):
            raise SettingError(f"{path} includes {element.get('href')}: give that file with a --hive-site of its own")
        name = (element.findtext("name") or "").strip()
        if element.tag == "property" and name:
            text, fault = _expanded((element.findtext("value") or "").strip(), environ)
            found.append(Given(name, text, str(path), shared=True, fault=fault))
    return found


def site_files(path: Path) -> list[Path]:
    """The file itself, or those of a directory. Raises SettingError for a directory without any."""
    if not path.is_dir():
        return [path]
    found = [path / name for name in SITE_FILES if (path / name).is_file()]
    if not found:
        raise SettingError(f"there is no {' or '.join(SITE_FILES)} in {path}")
    return found


def read_text(path: Path) -> str:
    """The text of a file. Raises SettingError if it cannot be read, or has no end."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_LETTERS + 1)
        if len(text) > _MOST_LETTERS:
            raise SettingError(f"cannot read {path}: it has more than {_MOST_LETTERS >> 20} million letters")
        return text
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def _pair(pair: str, source: str) -> Given:
    key, equals, value = pair.partition("=")
    if not equals:
        raise SettingError(f"'{pair}' is not of the form key=value")
    return Given(key.strip(), value.strip(), source)


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _scalar(key: str, value: Any, path: Path) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value).strip()
    raise SettingError(
        f"setting {key} ({path}): a {type(value).__name__} is no value; give a string, number or boolean"
    )


def _expanded(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The text with its variables replaced, and what is wrong with one that cannot be."""
    fault = ""

    def replacement(match: re.Match[str]) -> str:
        nonlocal fault
        variable = _ENVIRONMENT_VARIABLE.fullmatch(match[1])
        if variable is None:
            fault = f"'{match[0]}' is not replaced here, only ${{env:NAME}} is: write the value itself"
        elif variable[1] not in environ:
            fault = f"'{match[0]}' names a variable that the environment does not have"
        else:
            return environ[variable[1]]
        return match[0]

    return _VARIABLE.sub(replacement, text), fault
