"""The allocator of the user's process is not ours to set: only who asks for it gets another one.

What is free in it is given back all the same, now and then, or threads that write small files keep ever more.
"""

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
        if name in ("mallopt", "malloc_trim"):
            calls.append(name)
        return super().__getattr__(name)

ctypes.CDLL = Watched
"""

WRITTEN = "from hive_acid.streaming.memory import small_file_written"


@pytest.mark.parametrize(
    ("what", "calls"),
    [
        ("import hive_acid.streaming, hive_acid.streaming.orc_file", 0),
        ("import hive_acid.spark, hive_acid.spark.compact.arrow_merge, hive_acid.spark.write.stage", 0),
        ("import hive_acid.streaming; hive_acid.streaming.keep_freed_memory()", 1),
        (f"{WRITTEN}; [small_file_written() for _ in range(63)]", 0),
        (f"{WRITTEN}; [small_file_written() for _ in range(129)]", 2),
        (
            f"import hive_acid.streaming; hive_acid.streaming.keep_freed_memory(); {WRITTEN}; "
            "[small_file_written() for _ in range(129)]",
            1,
        ),
    ],
)
def test_settings_are_made_by_who_asks_and_memory_is_given_back_by_the_files(what: str, calls: int) -> None:
    program = f"{COUNT_CALLS}\n{what}\nprint(len(calls))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == (calls if sys.platform == "linux" else 0)
