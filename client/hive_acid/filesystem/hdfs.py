"""HDFS for `hive_acid.filesystem.files`: what fsspec's file systems of it do otherwise than others is put right."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any, NamedTuple

import fsspec

SCHEMES = frozenset({"hdfs", "viewfs"})
"""With or without mounts."""

_COPY_BYTES = 8 * 1024 * 1024
_OF_NATIVE = "owners of files on HDFS are known to hdfs-native alone: it needs hive-acid[hdfs]"


def opened(location: str) -> tuple[Any, str]:
    """The file system of a location, and its path there.

    Not by fsspec's reading of URLs, to which names of services are lower case and ``;`` and ``?`` end a path.
    """
    scheme, _, rest = location.partition(":")
    authority, path = "", rest
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        path = slash + path
    host, colon, port = authority.rpartition(":")
    where: dict[str, Any] = {"host": host, "port": int(port)} if colon else {"host": authority} if authority else {}
    try:
        return _class(scheme.lower())(**where), path
    except (ImportError, OSError) as error:
        raise OSError(f"{error} (without Hadoop's native client {scheme} needs hive-acid[hdfs])") from error


class Owner(NamedTuple):
    """A user and a group of the name node. A group of None is left as it is."""

    user: str
    group: str | None


@cache
def _class(scheme: str) -> Any:
    kind = fsspec.get_filesystem_class(scheme)
    return type(kind.__name__, (_Mended, kind), {})


class _Mended:
    """Goes before a class of fsspec's."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path

    def rm(self: Any, path: str, recursive: bool = False) -> None:
        """Remove; hdfs-native does not say that there is nothing."""
        if not self.exists(path):
            raise FileNotFoundError(path)
        super().rm(path, recursive=recursive)  # type: ignore[misc]

    def cp_file(self: Any, path1: str, path2: str) -> None:
        """Copy; hdfs-native would do it below the user's home."""
        with self.open(path1, "rb") as given, self.open(path2, "wb") as made:
            shutil.copyfileobj(given, made, _COPY_BYTES)

    def owner(self: Any, path: str) -> Owner:
        """Whose a file or directory is."""
        found = self.info(path)
        if "owner" not in found:
            raise OSError(_OF_NATIVE)
        return Owner(found["owner"], found["group"])

    def set_owner(self: Any, path: str, to: Owner) -> None:
        """Give a file or directory to somebody, as only a superuser may."""
        client = getattr(self, "client", None)
        if client is None:
            raise OSError(_OF_NATIVE)
        client.set_owner(path, to.user, to.group)
