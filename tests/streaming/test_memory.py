"""The allocator of the user's process is not ours to set: only who asks for it gets another one."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT_CALLS = """
import ctypes, sys
calls = []
plain = ctypes.CDLL

class Watched(plain):
    def __getattr__(self, name):
        if name == "mallopt":
            calls.append(name)
        return super().__getattr__(name)

ctypes.CDLL = Watched
"""


@pytest.mark.parametrize(
    ("what", "calls"),
    [
        ("import hive_acid.streaming, hive_acid.streaming.orc_file", 0),
        ("import hive_acid.spark, hive_acid.spark.compact.arrow_merge, hive_acid.spark.write.stage", 0),
        ("import hive_acid.streaming; hive_acid.streaming.keep_freed_memory()", 1),
    ],
)
def test_mallopt_is_called_by_who_asks_for_it(what: str, calls: int) -> None:
    program = f"{COUNT_CALLS}\n{what}\nprint(len(calls))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == (calls if sys.platform == "linux" else 0)
