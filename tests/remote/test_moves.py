"""What a move is in every file system that is not the local one."""

from typing import Any

import pytest

from hive_acid.filesystem import files

pytestmark = [pytest.mark.maven, pytest.mark.sampled(of="stores beside the disk")]


@pytest.fixture(params=["s3", "hdfs"])
def root(request: pytest.FixtureRequest) -> Any:
    if request.param == "hdfs":
        return f"{request.getfixturevalue('hdfs')}/moves"
    return f"s3a://{request.getfixturevalue('store').bucket}/moves"


def test_a_move_replaces_nothing(root: str) -> None:
    files.write(files.join(root, "from", "a"), b"new")
    files.write(files.join(root, "to", "a"), b"older")
    with pytest.raises(FileExistsError, match="exists already"):
        files.rename(files.join(root, "from"), files.join(root, "to"))
    with pytest.raises(FileNotFoundError):
        files.rename(files.join(root, "nothing"), files.join(root, "somewhere"))
    assert files.read(files.join(root, "to", "a")) == b"older"
