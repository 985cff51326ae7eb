"""What has failed in the end, in one line: a failure of a job says first which call of ours has met it."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError

_CAUSE = re.compile(r"^(?:Caused by)?: ([\w.$]+(?:: .*)?)$", re.MULTILINE)
_OF_FILES = re.compile(
    r"(?:java\.io\.(?:IOException|FileNotFoundException)|java\.nio\.file\.\w+"
    r"|org\.apache\.hadoop\.(?:fs|security)\.\w+)(?:: |$)"
)


def last_cause(error: Exception) -> str:
    """The first line of an error; of one of Java the line that names its last cause."""
    text = str(error).strip()
    causes = _CAUSE.findall(text) if isinstance(error, Py4JJavaError) else []
    return str(causes[-1]) if causes else text.split("\n")[0]


def is_of_files(cause: str) -> bool:
    """Whether a cause is that files could not be read or written."""
    return _OF_FILES.match(cause) is not None
