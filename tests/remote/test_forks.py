"""Remote file systems in a process that forks: the child has its own, and is not held up by what is the parent's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hive_acid.filesystem import files
from tests.remote.s3 import Store

pytestmark = [pytest.mark.maven, pytest.mark.sampled(of="stores beside the disk")]

PROGRAM = """
import gc, os, sys, threading
from hive_acid.filesystem import files

root = sys.argv[1]
before = threading.Thread(target=files.write, args=(files.join(root, "thread"), b"t"))
before.start()
before.join()
files.write(files.join(root, "parent"), b"p")
with files.create(files.join(root, "open")) as opened:
    opened.write(b"first,")
    children = []
    for number, leave in enumerate((sys.exit, os._exit)):
        children.append(os.fork())
        if not children[-1]:
            gc.collect()
            assert files.read(files.join(root, "parent")) == b"p"
            files.write(files.join(root, f"child {number}"), b"c")
            files.let_go(opened)
            leave(0)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    opened.write(b"second")
assert files.read(files.join(root, "open")) == b"first,second"
print(sorted(entry.path for entry in files.list_tree(root)))
"""


def told(root: str) -> str:
    """What a program says that forks after it has used the file system."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, root], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


EXPECTED = str(["child 0", "child 1", "open", "parent", "thread"])


def test_children_of_a_program_that_uses_hdfs(hdfs: str) -> None:
    assert told(files.join(hdfs, "forks")) == EXPECTED


def test_children_of_a_program_that_uses_s3(store: Store) -> None:
    assert told(f"s3://{store.bucket}/forks") == EXPECTED
