"""Files by pyarrow's writer: its errors, which would end the process, and the memory of many small ones."""

import gc
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from hive_acid.filesystem import files
from hive_acid.streaming.orc_file import OrcFile

TABLE = pa.table({"a": pa.array(range(200_000)), "s": [str(n * 7919) for n in range(200_000)]})


class Full:
    """A disk that has room for so many bytes."""

    def __init__(self, room: Any) -> None:
        self.room = room
        self.closed = False

    def write(self, content: Any) -> None:
        if len(content) > self.room:
            raise OSError(28, "No space left on device")
        self.room -= len(content)

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("room", [0, 3, 100_000])
@pytest.mark.parametrize("ends", [True, False])
def test_a_full_disk_is_an_error(monkeypatch: pytest.MonkeyPatch, room: int, ends: bool) -> None:
    disk = Full(room)
    monkeypatch.setattr(files, "create", lambda _: disk)
    file = OrcFile("f", "none")
    with pytest.raises(OSError, match="No space left"):
        for _ in range(20):
            file.write(TABLE)
        file.close()
    if ends:
        file.abandon()
        assert disk.closed
    del file
    gc.collect()


def test_what_is_abandoned_or_forgotten_ends_no_process(tmp_path: Path) -> None:
    """Asked in a process of its own, which would be gone."""
    program = f"""
import pyarrow as pa
from hive_acid.streaming.orc_file import OrcFile
table = pa.table({{"a": range(1000)}})
for name in ("one", "other"):
    file = OrcFile({str(tmp_path)!r} + "/" + name, "zlib")
    file.write(table)
    file.abandon() if name == "one" else file._sink.file.close()
    del file
print("alive")
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert said.stdout == "alive\n"


def test_size_and_content(tmp_path: Path) -> None:
    file = OrcFile(str(tmp_path / "f"), "zstd")
    file.write(TABLE)
    file.write(TABLE)
    file.close()
    assert file.size == (tmp_path / "f").stat().st_size
    assert orc.read_table(tmp_path / "f") == pa.concat_tables([TABLE, TABLE])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators keep memory in their own ways")
def test_small_files_do_not_get_their_memory_anew(tmp_path: Path) -> None:
    """Of 12 MB for each file most comes page by page, which takes longer than to write it, unless told."""
    program = f"""
from concurrent.futures import ThreadPoolExecutor
from resource import RUSAGE_SELF, getrusage
import pyarrow as pa
from hive_acid.streaming import keep_freed_memory
from hive_acid.streaming.orc_file import OrcFile
keep_freed_memory()
table = pa.table({{f"c{{n}}": [str(n * m) for m in range(1000)] for n in range(20)}})

def write(number):
    file = OrcFile({str(tmp_path)!r} + f"/{{number}}", "zstd", is_small=True)
    file.write(table)
    file.close()

def statements(number):
    for _ in range(number):
        with ThreadPoolExecutor(2) as pool:  # of other threads each time
            list(pool.map(write, range(12)))

statements(3)
before = getrusage(RUSAGE_SELF).ru_minflt
statements(5)
print((getrusage(RUSAGE_SELF).ru_minflt - before) // 60)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert int(said.stdout) < 1000  # 2,000 if it is not told; how many threads meet at once is chance
