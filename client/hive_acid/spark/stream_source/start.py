"""Where a stream without a checkpoint begins: with all rows, with a write, or with what is written from now on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from hive_acid.spark.stream_source.position import EARLIEST

OPTION = "startingWriteId"
_WORDS = ("earliest", "latest")


@dataclass(frozen=True, slots=True)
class Start:
    """The first write whose rows come, if they are committed; with `is_latest` none that are committed already."""

    since: int = EARLIEST
    is_latest: bool = False

    @classmethod
    def of(cls, given: object) -> Self:
        """What a user means by ``"earliest"``, ``"latest"``, or a write id. Raises ValueError."""
        word = given.strip().lower() if isinstance(given, str) else given
        if word in _WORDS:
            return cls(is_latest=word == "latest")
        if isinstance(word, bool) or not isinstance(word, int | str) or not str(word).isascii():
            raise _not_one(given)
        if not str(word).isdigit():
            raise _not_one(given)
        return cls(since=int(word))


def _not_one(given: object) -> ValueError:
    return ValueError(
        f"a stream begins at 'earliest', at 'latest', or at a write id, a whole number from 0, not at {given!r}"
    )
