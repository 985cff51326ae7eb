"""A program with a classic session, which takes what is new in a table's stream each time it is told to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.stream_source.taken import Taken
from tests.values.rows.exact import rows_of
from tests.values.rows.hostile import TYPES

KINDS = ("int", *TYPES)


def without_connect() -> dict[str, str]:
    """The environment of a program that has nothing of this process's session."""
    return {key: value for key, value in os.environ.items() if "CONNECT" not in key and "REMOTE" not in key}


@contextmanager
def following(uri: str, room: Path) -> Iterator[Callable[[], None]]:
    """The program runs; call what is given to have it take what is new of ``d.t`` into ``room/taken``."""
    command = [sys.executable, "-m", __name__, uri, str(room)]
    pipe = subprocess.PIPE
    program = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=without_connect())
    assert program.stdin is not None
    assert program.stdout is not None
    given, told = program.stdin, program.stdout

    def drain() -> None:
        print("drain", file=given, flush=True)
        assert any(line == "done\n" for line in told), "the program has ended"

    try:
        yield drain
    finally:
        given.close()
        program.wait(60)


def main(uri: str, room: Path) -> None:
    import hive_acid.spark
    from tests.spark.conftest import started

    with hive_acid.spark.session(started(), uri) as acid:
        for _ in sys.stdin:
            writer = acid.read_stream("d.t").writeStream.option("checkpointLocation", str(room / "checkpoint"))
            taken = Taken(room / "taken", lambda frame: rows_of(frame, list(KINDS)))
            writer.trigger(availableNow=True).foreachBatch(taken).start().awaitTermination()
            print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
